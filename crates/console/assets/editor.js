// The editor: statements typed, run one after the other, their results below.

import { button, errorBox, h, milliseconds } from "./dom.js";
import { complete } from "./complete.js";
import { grid, isNumber } from "./grid.js";
import { cancel, download, fetchMore, run } from "./interface.js";
import { plot } from "./plot.js";
import { offsetOf, statements } from "./sql.js";

const KEY = "melba-editor";
const PAGE_ROWS = 200;

let isRunning = false;

/** The line of an error with a mark at its place. */
const place = (statement, position) => {
  const at = offsetOf(statement, position);
  const start = statement.lastIndexOf("\n", at - 1) + 1;
  const end = statement.indexOf("\n", at) < 0 ? statement.length : statement.indexOf("\n", at);
  const [, word] = /^(\w+|.)?/.exec(statement.slice(at, end));
  const line = statement.slice(0, start).split("\n").length;
  return h("pre", { class: "place" }, `${line}: `, statement.slice(start, at), h("mark", null, word ?? " "),
    statement.slice(at + (word ?? "").length, end));
};

const shownTransaction = { I: "", T: "in a transaction", E: "in a failed transaction: ROLLBACK ends it" };

const resultOf = (statement, answer, mark) => {
  const text = statement.text.trim();
  const box = h("section", { class: "result" });
  const notes = h("p", { class: "faint", role: "status" });
  const note = (shown, last) => {
    notes.textContent = [last.tag, last.columns || shown ? `${shown} rows shown${last.more ? ", there are more" : ""}` : "",
      milliseconds(last.milliseconds), shownTransaction[last.transaction]].filter(Boolean).join(" · ");
  };
  box.append(h("pre", { class: "statement" }, text.length > 200 ? `${text.slice(0, 200)}…` : text));
  answer.notices.forEach((notice) => box.append(h("div", { class: "notice" }, `${notice.severity}: ${notice.message}`)));
  if (answer.error) {
    box.append(errorBox(answer.error));
    if (answer.error.position) {
      box.append(place(statement.text, answer.error.position), button("Go to it", () =>
        mark(statement.start + offsetOf(statement.text, answer.error.position)), { class: "small" }));
    }
  }
  if (answer.columns) {
    const table = grid(answer);
    const all = [...answer.rows];
    let shown = answer.rows.length;
    const more = button("More rows", async () => {
      more.disabled = true;
      const next = await fetchMore("editor", PAGE_ROWS).catch((e) => ({ error: e.error }));
      if (next.error) {
        box.append(errorBox(next.error));
        more.remove();
        return;
      }
      table.add(next);
      all.push(...next.rows);
      shown += next.rows.length;
      note(shown, { ...answer, ...next, columns: answer.columns });
      more.disabled = false;
      if (!next.more) more.remove();
    });
    const save = (format) => button(`Download ${format.toUpperCase()}`, () => {
      download(statement.text, format, "result").catch((e) => box.append(errorBox(e.error)));
    }, { title: "Runs the statement again, and saves all of its rows" });
    const pictures = h("div");
    const picture = button("Picture", () => {
      pictures.replaceChildren(...(pictures.childElementCount ? [] : [plot(answer.columns, () => all)]));
      picture.setAttribute("aria-expanded", String(pictures.childElementCount > 0));
    }, { "aria-expanded": "false" });
    const isQuery = /^\s*(select|with|values|table|show|explain)\b/i.test(text);
    box.append(h("div", { class: "tools" }, answer.more && more, isQuery && [save("csv"), save("json")], answer.columns.some(isNumber) && picture), pictures, table.element);
  }
  note(answer.rows.length, answer);
  box.append(notes);
  return box;
};

export const view = () => {
  const text = h("textarea", {
    id: "sql", class: "sql", rows: "8", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
    "aria-label": "Statements", placeholder: "SELECT …",
  });
  text.value = localStorage.getItem(KEY) ?? "SELECT version();\n";
  text.addEventListener("input", () => localStorage.setItem(KEY, text.value));
  const completion = complete(text);
  const results = h("div", { class: "results", "aria-live": "polite" });
  const status = h("span", { class: "faint", role: "status" });

  const mark = (offset) => {
    text.focus();
    text.setSelectionRange(offset, offset);
  };
  // The selection, or the statement with the cursor.
  const wanted = () => {
    const [start, end] = [text.selectionStart, text.selectionEnd];
    if (start !== end) return statements(text.value.slice(start, end)).map((st) => ({ ...st, start: st.start + start, end: st.end + start }));
    const all = statements(text.value);
    return [all.findLast((st) => st.start <= start) ?? all[0]].filter(Boolean);
  };
  const runAll = async (list) => {
    if (isRunning || list.length === 0) return;
    isRunning = true;
    [runOne, runEvery].forEach((b) => (b.disabled = true));
    stop.disabled = false;
    status.textContent = "running…";
    results.replaceChildren();
    try {
      for (const statement of list) {
        const answer = await run(statement.text, { limit: PAGE_ROWS });
        const box = resultOf(statement, answer, mark);
        results.append(box);
        if (/^(CREATE|ALTER|DROP) /.test(answer.tag ?? "")) completion.refresh();
        if (answer.error) break;
      }
    } catch (e) {
      results.append(errorBox(e.error ?? { message: e.message }));
    }
    isRunning = false;
    [runOne, runEvery].forEach((b) => (b.disabled = false));
    stop.disabled = true;
    status.textContent = "";
  };
  const runOne = button("Run", () => runAll(wanted()), { class: "primary", title: "Ctrl+Enter" });
  const runEvery = button("Run all", () => runAll(statements(text.value)), { title: "Ctrl+Shift+Enter" });
  const stop = button("Cancel", () => cancel("editor").catch((e) => results.append(errorBox(e.error))), { title: "Esc", disabled: true });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      runAll(event.shiftKey ? statements(text.value) : wanted());
    } else if (event.key === "Escape" && isRunning && !event.defaultPrevented) {
      stop.click();
    }
  });
  return {
    element: h("div", null, h("h1", null, "Editor"),
      h("div", { class: "typing" }, text, completion.box),
      h("div", { class: "tools" }, runOne, runEvery, stop, status,
        h("span", { class: "faint keys" }, h("kbd", null, "Ctrl+Enter"), " runs the statement at the cursor, ", h("kbd", null, "Ctrl+Shift+Enter"), " all, ", h("kbd", null, "Esc"), " cancels")),
      results),
    focus: () => text.focus(),
  };
};
