// Files into a table by COPY: CSV as it is, JSON (an array of objects, or an object a line) as CSV made here.

import { button, errorBox, field, h } from "./dom.js";
import { rows, upload } from "./interface.js";
import { name, qualified } from "./sql.js";

const SAMPLE_BYTES = 1 << 20;

/** The fields of the first record of a CSV file. */
export const firstRecord = (text) => {
  const fields = [];
  const piece = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/gy;
  for (let found = piece.exec(text); found; found = piece.exec(text)) {
    const [, value, end] = found;
    fields.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
    if (end !== ",") break;
  }
  return fields;
};

/** The objects of a JSON file. */
export const objectsOf = (text) => {
  const trimmed = text.trim();
  const all = trimmed.startsWith("[") ? JSON.parse(trimmed) : trimmed.split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  if (!all.every((one) => one !== null && typeof one === "object" && !Array.isArray(one))) throw new Error("the file is not made of JSON objects");
  return all;
};

const csvValue = (value) => {
  if (value === null || value === undefined) return "";
  return `"${(typeof value === "object" ? JSON.stringify(value) : String(value)).replaceAll('"', '""')}"`;
};

/** The table of a name as it would be typed, or with its schema. */
const targetOf = (text) => {
  const dot = text.indexOf(".");
  return dot < 0 ? qualified("public", text) : qualified(text.slice(0, dot), text.slice(dot + 1));
};

export const view = () => {
  const file = h("input", { type: "file", accept: ".csv,.json,.jsonl,.ndjson,text/csv,application/json" });
  const table = h("input", { autocapitalize: "off", spellcheck: "false", placeholder: "schema.table" });
  const create = h("input", { type: "checkbox", id: "create", checked: true });
  const report = h("div", { "aria-live": "polite" });
  const drop = h("div", { class: "drop" }, h("p", null, "Drop a CSV or JSON file here, or choose one:"), file);
  const choose = (files) => {
    if (files.length === 0) return;
    file.files = files;
    if (table.value === "") table.value = files[0].name.replace(/\.[^.]*$/, "").toLowerCase().replace(/\W+/g, "_");
  };
  file.addEventListener("change", () => choose(file.files));
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    choose(event.dataTransfer.files);
  });

  const load = async () => {
    const [chosen] = file.files;
    if (!chosen || table.value.trim() === "") throw new Error("choose a file and a table");
    const target = targetOf(table.value.trim());
    let [columns, blob, options] = [[], chosen, "FORMAT csv, HEADER"];
    if (/\.(json|jsonl|ndjson)$/i.test(chosen.name)) {
      const objects = objectsOf(await chosen.text());
      columns = [...new Set(objects.flatMap((one) => Object.keys(one)))];
      blob = new Blob([objects.map((one) => `${columns.map((column) => csvValue(one[column])).join(",")}\n`).join("")]);
      options = "FORMAT csv";
    } else {
      columns = firstRecord((await chosen.slice(0, SAMPLE_BYTES).text()).replace(/^\ufeff/, ""));
    }
    if (columns.length === 0 || columns.some((column) => column === "")) throw new Error("the file has a column without a name");
    if (create.checked) await rows(`CREATE TABLE IF NOT EXISTS ${target} (${columns.map((column) => `${name(column)} text`).join(", ")})`);
    return upload(`COPY ${target} (${columns.map(name).join(", ")}) FROM STDIN (${options})`, blob);
  };
  const begin = button("Import", async () => {
    begin.disabled = true;
    report.replaceChildren(h("p", { class: "faint" }, "loading…"));
    try {
      const tag = await load();
      report.replaceChildren(h("p", { class: "notice" }, `${tag.replace("COPY ", "")} rows loaded`));
    } catch (e) {
      report.replaceChildren(errorBox(e.error ?? { message: e.message }));
    }
    begin.disabled = false;
  }, { class: "primary" });
  return { element: h("div", null, h("h1", null, "Import"), drop, h("div", { class: "fields" }, field("Into table", table), begin),
    h("p", null, create, h("label", { for: "create" }, " Make the table if it is missing, with columns of type text")), report,
    h("p", { class: "faint" }, "A CSV file begins with the names of its columns. All rows of a file are loaded, or none. For guessed types use melba import.")) };
};
