// Completion in the editor: keywords, tables and columns that begin with the word before the cursor.

import { h } from "./dom.js";
import { rows } from "./interface.js";
import { KEYWORDS, name } from "./sql.js";

const NAMES = `SELECT DISTINCT c.relname AS name, 1 AS rank FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(c.oid)
  UNION SELECT DISTINCT a.attname, 2 FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') LIMIT 9000`;
const SHOWN_MAX = 8;
const RESERVED = new Set(KEYWORDS.map((word) => word.toLowerCase()));

const written = (text) => (/^[a-z_][a-z0-9_]*$/.test(text) && !RESERVED.has(text) ? text : name(text));

/** Adds it to a text area; `refresh` asks for the names again. */
export const complete = (text) => {
  let names = [];
  let shown = [];
  let chosen = 0;
  const box = h("ul", { class: "choices", role: "listbox", id: "choices", hidden: true });
  text.setAttribute("aria-controls", "choices");
  text.setAttribute("aria-autocomplete", "list");
  const refresh = () => rows(NAMES).then((found) => (names = found.sort((a, b) => a.rank - b.rank).map((row) => row.name)), () => {});
  const hide = () => (box.hidden = true);
  const word = () => /[\w\u0080-\uffff]+$/.exec(text.value.slice(0, text.selectionStart))?.[0] ?? "";
  const accept = (choice) => {
    const end = text.selectionStart;
    text.setRangeText(choice, end - word().length, end, "end");
    text.dispatchEvent(new Event("input"));
    hide();
    text.focus();
  };
  const draw = () => box.replaceChildren(...shown.map((choice, at) =>
    h("li", { role: "option", "aria-selected": String(at === chosen), onmousedown: (event) => {
      event.preventDefault();
      accept(choice);
    } }, choice)));
  text.addEventListener("input", (event) => {
    const begun = word();
    const isTyped = event.inputType?.startsWith("insert") && begun.length >= 2;
    if (!isTyped) return hide();
    const low = begun.toLowerCase();
    const found = [...names.filter((one) => one.toLowerCase().startsWith(low)).map(written),
      ...KEYWORDS.filter((keyword) => keyword.startsWith(begun.toUpperCase())).map((keyword) => (begun === low ? keyword.toLowerCase() : keyword))];
    shown = [...new Set(found)].filter((choice) => choice !== begun).slice(0, SHOWN_MAX);
    chosen = 0;
    draw();
    box.hidden = shown.length === 0;
    return undefined;
  });
  text.addEventListener("keydown", (event) => {
    if (box.hidden || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") chosen = (chosen + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length;
    else if (event.key === "Tab" && !event.shiftKey) accept(shown[chosen]);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
    draw();
  });
  text.addEventListener("blur", hide);
  refresh();
  return { box, refresh };
};
