// A table of values: what a statement returned, or what a view asks for.

import { h } from "./dom.js";

// OIDs of types whose values are written to the right.
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 790, 1700]);
const SHOWN_MAX = 300;

export const isNumber = (column) => NUMBERS.has(column.type);

const openValue = (title, text, note) => {
  const dialog = h("dialog", { class: "value", "aria-label": title },
    h("h2", null, title),
    note && h("p", { class: "faint" }, note),
    h("pre", { tabindex: "0" }, text),
    h("form", { method: "dialog" }, h("button", null, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};

const cell = (column, value, cutBytes) => {
  if (value === null) return h("td", { class: "null" }, "NULL");
  if (value.length <= SHOWN_MAX && !value.includes("\n") && !cutBytes) {
    return h("td", isNumber(column) ? { class: "number" } : null, value);
  }
  const note = cutBytes ? `the first part of ${cutBytes} bytes; a download has all of it` : undefined;
  const open = h("button", { type: "button", class: "more", onclick: () => openValue(column.name, value, note), title: "Show the whole value" }, "…");
  return h("td", null, value.slice(0, SHOWN_MAX).replaceAll("\n", " "), open);
};

/** The grid of an answer; `add` appends the rows of the next one. */
export const grid = (answer, label = "Result") => {
  const head = h("tr", null, answer.columns.map((column) => h("th", { scope: "col", class: isNumber(column) && "number" }, column.name)));
  const body = h("tbody");
  const add = (next) => {
    const cuts = new Map(next.cut.map((cut) => [`${cut.row} ${cut.column}`, cut.bytes]));
    body.append(...next.rows.map((row, at) =>
      h("tr", null, row.map((value, column) => cell(answer.columns[column], value, cuts.get(`${at} ${column}`))))));
  };
  add(answer);
  const element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: "grid" }, h("thead", null, head), body));
  return { element, add };
};

/** A table of a view: columns are `[title, (row) => text or element, isNumber]`; titles sort. */
export const list = (label, columns, rows) => {
  const body = h("tbody");
  let order = null;
  const draw = () => {
    const sorted = order === null ? rows : rows.toSorted((a, b) => {
      const [x, y] = [a, b].map((row) => columns[order.at][3]?.(row) ?? columns[order.at][1](row));
      const isLess = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return order.down ? -isLess : isLess;
    });
    body.replaceChildren(...sorted.map((row) =>
      h("tr", null, columns.map(([, value, number]) => h("td", number ? { class: "number" } : null, value(row))))));
  };
  const heads = columns.map(([title, , number], at) =>
    h("th", { scope: "col", class: number && "number" }, title && h("button", { type: "button", class: "sort", onclick: (event) => {
      order = { at, down: order?.at === at ? !order.down : Boolean(number) };
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      event.currentTarget.parentElement.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      draw();
    } }, title)));
  draw();
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: "grid" }, h("thead", null, h("tr", null, heads)), body));
};
