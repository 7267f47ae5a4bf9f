// Pictures of a result's rows: a line, bars, or a histogram, of columns that are chosen.

import { field, h } from "./dom.js";
import { bars, histogram, lines } from "./chart.js";
import { isNumber } from "./grid.js";

const isTime = (column) => [1082, 1114, 1184].includes(column.type);

/** Of an answer's rows, as far as they are shown; `rowsOf` returns them. */
export const plot = (columns, rowsOf) => {
  const numbers = columns.map((column, at) => [column, at]).filter(([column]) => isNumber(column));
  const option = ([column, at]) => h("option", { value: String(at) }, column.name);
  const kind = h("select", null, ["Line", "Bars", "Histogram"].map((text) => h("option", null, text)));
  const across = h("select", null, h("option", { value: "-1" }, "(number of the row)"), columns.map((column, at) => option([column, at])));
  const up = h("select", null, numbers.map(option));
  up.value = String(numbers.at(-1)[1]);
  across.value = String(columns.findIndex((column, at) => at !== Number(up.value)));
  const picture = h("div");
  const draw = () => {
    const rows = rowsOf();
    const [x, y] = [Number(across.value), Number(up.value)];
    const number = (text) => (text === null || !Number.isFinite(Number(text)) ? null : Number(text));
    const label = `${kind.value} of ${columns[y].name}`;
    across.disabled = kind.value === "Histogram";
    if (kind.value === "Histogram") {
      picture.replaceChildren(histogram(label, rows.map((row) => number(row[y])).filter((value) => value !== null)));
    } else if (kind.value === "Bars") {
      picture.replaceChildren(bars(label, rows.map((row, at) => [x < 0 ? String(at + 1) : row[x] ?? "NULL", number(row[y])]).filter(([, value]) => value !== null)));
    } else {
      const isDate = x >= 0 && isTime(columns[x]);
      const place = (row, at) => (x < 0 || !(isNumber(columns[x]) || isDate) ? at + 1 : isDate ? Date.parse(row[x]) : number(row[x]));
      const points = rows.map((row, at) => [place(row, at), number(row[y])]).filter(([at]) => at !== null && !Number.isNaN(at)).sort((a, b) => a[0] - b[0]);
      const options = isDate ? { xText: (at) => new Date(at).toISOString().slice(0, 16).replace("T", " ") } : {};
      picture.replaceChildren(lines(label, [{ name: columns[y].name, points }], { ...options, fromZero: false }));
    }
  };
  [kind, across, up].forEach((select) => select.addEventListener("change", draw));
  draw();
  return h("div", { class: "plot" }, h("div", { class: "fields" }, field("Picture", kind), field("Across", across), field("Up", up)), picture);
};
