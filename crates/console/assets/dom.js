// Elements from data. Text becomes text nodes, never markup: nothing else in the page writes into the document.

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
};

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

const SVG = "http://www.w3.org/2000/svg";
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

let labels = 0;

/** An input with its label above it. */
export const field = (label, input) => {
  input.id ||= `field-${(labels += 1)}`;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
};

export const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);

/** The error of a statement or of the console, as an alert. */
export const errorBox = (error) =>
  h("div", { class: "error", role: "alert" },
    h("strong", null, `${error.severity || "ERROR"}${error.code ? ` ${error.code}` : ""}: `), error.message,
    error.detail && h("div", null, `Detail: ${error.detail}`),
    error.hint && h("div", null, `Hint: ${error.hint}`),
    error.context && h("div", { class: "faint" }, error.context));

/** Runs something that may fail, and shows the failure in a place. */
export const shown = async (place, run) => {
  try {
    return await run();
  } catch (e) {
    place.replaceChildren(errorBox(e.error ?? { message: String(e.message ?? e) }));
    return undefined;
  }
};

export const bytes = (n) => {
  if (n === null || n === undefined) return "";
  let value = Number(n);
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (Math.abs(value) < 1000 || unit === "TB") return `${value.toPrecision(Math.abs(value) < 1000 && unit === "B" ? Math.max(1, String(Math.trunc(Math.abs(value))).length) : 3)} ${unit}`;
    value /= 1000;
  }
  return "";
};

export const milliseconds = (n) => {
  const value = Number(n);
  if (value < 1) return `${value.toPrecision(2)} ms`;
  return value < 1000 ? `${value.toPrecision(3)} ms` : `${(value / 1000).toPrecision(3)} s`;
};

export const count = (n) => Number(n).toLocaleString("en");
