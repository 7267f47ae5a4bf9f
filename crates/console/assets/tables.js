// Tables with their sizes; on Melba also how densely their values are stored, and by which method.

import { bytes, count, h, shown } from "./dom.js";
import { list } from "./grid.js";
import { rows } from "./interface.js";

const SIZES = `SELECT n.nspname AS schema, c.relname AS name, c.oid, c.reltuples::float8 AS tuples, pg_total_relation_size(c.oid) AS total,
  pg_table_size(c.oid) AS table, pg_indexes_size(c.oid) AS indexes
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
  ORDER BY 5 DESC LIMIT 2000`;
const DENSITY = `SELECT schemaname AS schema, relname AS relation, attname AS column, place, "values", raw_bytes AS raw, stored_bytes AS stored,
  reference_bytes AS references, methods FROM melba_compression_stats ORDER BY raw_bytes DESC LIMIT 5000`;

const times = (raw, stored) => (Number(stored) > 0 ? `${(Number(raw) / Number(stored)).toFixed(2)} ×` : "");

export const view = () => {
  const place = h("div", null, h("p", { class: "faint" }, "asking…"));
  const element = h("div", null, h("h1", null, "Tables"), place);
  const number = (key) => (row) => Number(row[key]);
  const size = (title, key) => [title, (row) => bytes(row[key]), true, number(key)];
  shown(place, async () => {
    const tables = await rows(SIZES);
    const [isMelba] = await rows("SELECT to_regclass('pg_catalog.melba_compression_stats') IS NOT NULL AS here");
    const parts = isMelba.here === "t" ? await rows(DENSITY) : [];
    const sums = new Map();
    parts.forEach((part) => {
      const key = JSON.stringify([part.schema, part.relation]);
      const sum = sums.get(key) ?? { raw: 0, stored: 0 };
      sums.set(key, { raw: sum.raw + Number(part.raw), stored: sum.stored + Number(part.stored) + Number(part.references) });
    });
    const density = (row) => sums.get(JSON.stringify([row.schema, row.name]));
    const link = (row) => h("a", { href: `#schema/${encodeURIComponent(row.schema)}/${encodeURIComponent(row.name)}` }, `${row.schema}.${row.name}`);
    const columns = [["Table", link, false, (row) => `${row.schema}.${row.name}`],
      ["Rows (estimate)", (row) => (Number(row.tuples) < 0 ? "–" : count(Math.round(Number(row.tuples)))), true, number("tuples")],
      size("Total", "total"), size("Table", "table"), size("Indexes", "indexes")];
    if (isMelba.here === "t") {
      columns.push(["Compressed values", (row) => (density(row) ? `${bytes(density(row).raw)} in ${bytes(density(row).stored)}` : ""), true, (row) => density(row)?.raw ?? -1],
        ["Density", (row) => (density(row) ? times(density(row).raw, density(row).stored) : ""), true,
          (row) => (density(row)?.stored ? density(row).raw / density(row).stored : -1)]);
    }
    place.replaceChildren(tables.length ? list("Tables", columns, tables) : h("p", { class: "faint" }, "there are no tables yet"));
    if (parts.length > 0) {
      place.append(h("h2", null, "How long values are stored"), list("Density of columns", [
        ["Column", (part) => `${part.schema}.${part.relation}.${part.column}`], ["Place", (part) => part.place ?? ""],
        ["Values", (part) => count(part.values), true, number("values")], size("Raw", "raw"), size("Stored", "stored"), size("References", "references"),
        ["Density", (part) => times(part.raw, Number(part.stored) + Number(part.references)), true, (part) => Number(part.raw) / (Number(part.stored) + Number(part.references) || Infinity)],
        ["Method", (part) => part.methods ?? ""]], parts));
    }
  });
  return { element };
};
