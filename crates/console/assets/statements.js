// The statements that took the server's time, from pg_stat_statements, and the plan of a statement.

import { button, count, errorBox, field, h, milliseconds, shown } from "./dom.js";
import { list } from "./grid.js";
import { rows } from "./interface.js";
import { planTree } from "./plan.js";
import { statements } from "./sql.js";

const TOP = `SELECT s.query, s.calls, s.total_exec_time AS total, s.mean_exec_time AS mean, s.max_exec_time AS worst, s.rows, r.rolname AS role
  FROM pg_stat_statements s LEFT JOIN pg_roles r ON r.oid = s.userid ORDER BY s.total_exec_time DESC LIMIT 200`;

export const view = () => {
  const text = h("textarea", { class: "sql", rows: "4", spellcheck: "false", placeholder: "SELECT …" });
  const place = h("div", { "aria-live": "polite" });
  const explain = async (options) => {
    const [statement] = statements(text.value);
    if (!statement) return;
    place.replaceChildren(h("p", { class: "faint" }, "running…"));
    await shown(place, async () => {
      if (options.includes("ANALYZE") && !/^\s*(select|with|values|table)\b/i.test(statement.text)) {
        throw new Error("only a query is run for its times; Explain shows the plan of other statements");
      }
      // A transaction that writes nothing: WITH may hold an UPDATE.
      await rows("BEGIN READ ONLY");
      try {
        const [plan] = await rows(`EXPLAIN (${options}) ${statement.text}`);
        place.replaceChildren(planTree(Object.values(plan)[0]));
      } finally {
        await rows("ROLLBACK");
      }
    });
  };
  const top = h("div", null, h("p", { class: "faint" }, "asking…"));
  const fill = () => rows(TOP).then((found) => {
    top.replaceChildren(list("Statements", [
      ["Statement", (row) => row.query.slice(0, 400)], ["", (row) => button("Plan", () => {
        text.value = row.query;
        text.focus();
        text.scrollIntoView({ block: "center" });
        explain(/\$\d/.test(row.query) ? "GENERIC_PLAN, FORMAT JSON" : "FORMAT JSON");
      }, { class: "small" })],
      ["Calls", (row) => count(row.calls), true, (row) => Number(row.calls)], ["Total", (row) => milliseconds(row.total), true, (row) => Number(row.total)],
      ["Mean", (row) => milliseconds(row.mean), true, (row) => Number(row.mean)], ["Worst", (row) => milliseconds(row.worst), true, (row) => Number(row.worst)],
      ["Rows", (row) => count(row.rows), true, (row) => Number(row.rows)], ["Role", (row) => row.role ?? ""]], found));
  }).catch((e) => {
    const isMissing = e.error?.code === "42P01";
    top.replaceChildren(isMissing ? h("p", { class: "notice" }, "The extension pg_stat_statements is not in this database: CREATE EXTENSION pg_stat_statements adds it.")
      : errorBox(e.error ?? { message: e.message }));
  });
  fill();
  return { element: h("div", null, h("h1", null, "Statements"), field("Plan of a statement", text),
    h("div", { class: "tools" }, button("Explain", () => explain("FORMAT JSON"), { class: "primary" }),
      button("Run and show times", () => explain("ANALYZE, FORMAT JSON"), { title: "Runs the query in a transaction that can write nothing" })), place,
    h("h2", null, "Most time in all"), h("div", { class: "tools" }, button("Refresh", fill)), top) };
};
