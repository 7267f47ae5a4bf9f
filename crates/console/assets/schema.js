// The objects of the database, and the rows of a table, which are edited by their primary key. Values are parameters of the
// statements, names are quoted; a row is found by the key that it had when it was read.

import { button, errorBox, field, h, shown } from "./dom.js";
import { list } from "./grid.js";
import { isCut, rows, run } from "./interface.js";
import { name, qualified } from "./sql.js";

const PAGE_ROWS = 50;
const RELATIONS = `SELECT n.nspname AS schema, c.relname AS name, c.relkind AS kind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)' ORDER BY 1, 2 LIMIT 10000`;
const COLUMNS = `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required, a.attidentity <> '' OR a.attgenerated <> '' AS made,
  pg_get_expr(d.adbin, d.adrelid) AS default, coalesce(a.attnum = ANY (k.conkey), false) AS key
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
  WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;
const INDEXES = "SELECT pg_get_indexdef(indexrelid) AS text FROM pg_index WHERE indrelid = to_regclass($1) ORDER BY 1";
const CONSTRAINTS = "SELECT conname AS name, pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conrelid = to_regclass($1) ORDER BY 1";
const KINDS = { r: "table", p: "partitioned table", v: "view", m: "materialized view", f: "foreign table" };

const address = (schema, relation) => `#schema/${encodeURIComponent(schema)}/${encodeURIComponent(relation)}`;

/** Runs a statement that must change one row. */
const changeOne = async (sql, parameters) => {
  const answer = await run(sql, { parameters, connection: "page" });
  if (answer.error) throw Object.assign(new Error(answer.error.message), { error: answer.error });
  if (!/ 1$/.test(answer.tag)) throw new Error("the row is not there any more; show the rows again");
};

/** How the lines of a text end, which a text field does not keep; undefined: in several ways. */
const lineEnd = (text) => {
  if (!text.includes("\r")) return "\n";
  return text.replaceAll("\r\n", "").match(/[\r\n]/) ? undefined : "\r\n";
};

/** Why a value cannot be edited: the form would not give back what it was. */
const lockOf = (row, column) => {
  if (row === null || row[column.name] === null) return undefined;
  if (isCut(row, column.name)) return "too long to be edited here";
  return lineEnd(row[column.name]) === undefined ? "lines end in several ways: not edited here" : undefined;
};

/** A form for a row; `row` is null for a new one. */
const editRow = (schema, relation, columns, row, done) => {
  const keys = columns.filter((column) => column.key === "t");
  const problem = h("div", { "aria-live": "assertive" });
  const inputs = columns.filter((column) => column.made !== "t").map((column) => {
    const input = h("textarea", { rows: "1", spellcheck: "false", value: row?.[column.name] ?? "" });
    const before = input.value;
    const lock = lockOf(row, column);
    const isNull = h("input", { type: "checkbox", "aria-label": `${column.name} is NULL`, onchange: () => disable() });
    isNull.checked = row !== null && row[column.name] === null;
    const disable = () => (input.disabled = isNull.checked || lock !== undefined);
    disable();
    const isDefault = row === null && h("input", { type: "checkbox", "aria-label": `${column.name} has its default`, checked: true });
    input.addEventListener("input", () => isDefault && (isDefault.checked = false));
    return { column, input, before, lock, isNull, isDefault };
  });
  const where = () => keys.map((key, at) => `${name(key.name)} = $${at + 1}`).join(" AND ");
  const keyValues = () => keys.map((key) => row[key.name]);
  const valueOf = ({ column, input, isNull }) => {
    if (isNull.checked) return null;
    return input.value.replaceAll("\n", lineEnd(row?.[column.name] ?? "") ?? "\n");
  };
  const isChanged = ({ column, input, before, isNull }) => isNull.checked !== (row[column.name] === null) || (!isNull.checked && input.value !== before);
  const save = async () => {
    if (row === null) {
      const given = inputs.filter(({ isDefault, isNull }) => !isDefault.checked || isNull.checked);
      const into = given.length === 0 ? "DEFAULT VALUES"
        : `(${given.map(({ column }) => name(column.name)).join(", ")}) VALUES (${given.map((_, at) => `$${at + 1}`).join(", ")})`;
      return changeOne(`INSERT INTO ${qualified(schema, relation)} ${into}`, given.map(valueOf));
    }
    const changed = inputs.filter(isChanged);
    if (changed.length === 0) return undefined;
    const set = changed.map(({ column }, at) => `${name(column.name)} = $${keys.length + at + 1}`).join(", ");
    return changeOne(`UPDATE ${qualified(schema, relation)} SET ${set} WHERE ${where()}`, [...keyValues(), ...changed.map(valueOf)]);
  };
  const remove = () => changeOne(`DELETE FROM ${qualified(schema, relation)} WHERE ${where()}`, keyValues());
  const act = (what) => async (event) => {
    event?.preventDefault();
    try {
      await what();
      dialog.close();
      done();
    } catch (e) {
      problem.replaceChildren(errorBox(e.error ?? { message: e.message }));
    }
  };
  const dialog = h("dialog", { "aria-label": "Row" }, h("h2", null, row === null ? "New row" : "Row"),
    h("form", { onsubmit: act(save) },
      inputs.map(({ column, input, lock, isNull, isDefault }) => h("div", { class: "edited" }, field(`${column.name} · ${column.type}${column.key === "t" ? " · key" : ""}`, input),
        h("div", { class: "flags" }, lock !== undefined && h("span", { class: "faint" }, lock), column.required !== "t" && h("label", null, isNull, " NULL"), isDefault && h("label", null, isDefault, " default")))),
      problem,
      h("div", { class: "tools" }, h("button", { class: "primary" }, "Save"), button("Close", () => dialog.close()),
        row !== null && button("Delete row", (event) => confirm("Delete this row?") && act(remove)(event), { class: "danger" }))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};

const relationView = (place, schema, relation) => shown(place, async () => {
  const target = qualified(schema, relation);
  const columns = await rows(COLUMNS, [target]);
  const keys = columns.filter((column) => column.key === "t");
  const [indexes, constraints] = [await rows(INDEXES, [target]), await rows(CONSTRAINTS, [target])];
  const content = h("div", null, h("p", { class: "faint" }, "asking…"));
  let from = 0;
  const show = () => shown(content, async () => {
    const order = keys.length > 0 ? `ORDER BY ${keys.map((key) => name(key.name)).join(", ")}` : "";
    const found = await rows(`SELECT * FROM ${target} ${order} LIMIT $1::int8 OFFSET $2::int8`, [PAGE_ROWS + 1, from]);
    const edit = (row) => keys.length > 0 && button("Edit", () => editRow(schema, relation, columns, row, show), { class: "small" });
    const shownRows = found.slice(0, PAGE_ROWS);
    const value = (column) => (row) => {
      const text = row[column.name];
      return text === null ? h("span", { class: "null" }, "NULL") : text.length > 200 ? `${text.slice(0, 200)}…` : text;
    };
    content.replaceChildren(
      h("div", { class: "tools" }, keys.length > 0 && button("New row", () => editRow(schema, relation, columns, null, show)),
        button("Back", () => { from = Math.max(0, from - PAGE_ROWS); show(); }, { disabled: from === 0 }),
        button("Next", () => { from += shownRows.length; show(); }, { disabled: found.length <= PAGE_ROWS && !found.more }),
        h("span", { class: "faint" }, shownRows.length ? `rows ${from + 1} to ${from + shownRows.length}` : "no rows",
          keys.length === 0 && "; without a primary key rows cannot be edited")),
      list(`Rows of ${relation}`, [["", edit], ...columns.map((column) => [column.name, value(column), false, (row) => row[column.name] ?? ""])], shownRows));
  });
  const section = (title, content) => [h("h2", null, title), content];
  place.replaceChildren(...[h("h2", null, `${schema}.${relation}`), content,
    section("Columns", list("Columns", [["Column", (row) => row.name], ["Type", (row) => row.type], ["Not null", (row) => (row.required === "t" ? "yes" : "")],
      ["Default", (row) => row.default ?? ""], ["Key", (row) => (row.key === "t" ? "yes" : "")]], columns)),
    indexes.length > 0 ? section("Indexes", h("pre", null, indexes.map((index) => index.text).join("\n"))) : [],
    constraints.length > 0 ? section("Constraints", h("pre", null, constraints.map((one) => `${one.name}: ${one.text}`).join("\n"))) : []].flat());
  await show();
});

export const view = ([schema, relation]) => {
  const names = h("div", { class: "names" });
  const place = h("div", { class: "content" }, h("p", { class: "faint" }, "Choose a table."));
  const search = h("input", { type: "search", "aria-label": "Search a table", placeholder: "Search", autocomplete: "off" });
  shown(names, async () => {
    const relations = await rows(RELATIONS);
    const draw = () => {
      const wanted = relations.filter((one) => `${one.schema}.${one.name}`.toLowerCase().includes(search.value.toLowerCase()));
      names.replaceChildren(...wanted.slice(0, 500).map((one) => h("a", {
        href: address(one.schema, one.name), title: KINDS[one.kind], "aria-current": one.schema === schema && one.name === relation && "true",
      }, one.schema === "public" ? one.name : `${one.schema}.${one.name}`, one.kind !== "r" && h("span", { class: "faint" }, ` ${KINDS[one.kind]}`))));
      if (wanted.length === 0) names.append(h("p", { class: "faint" }, "no tables"));
    };
    search.addEventListener("input", draw);
    draw();
  });
  if (relation !== undefined) relationView(place, schema, relation);
  return { element: h("div", null, h("h1", null, "Schema"), h("div", { class: "split" }, h("div", { class: "side" }, search, names), place)) };
};
