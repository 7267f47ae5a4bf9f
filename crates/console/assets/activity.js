// Sessions, what they wait for, and the locks; statements can be cancelled and sessions ended.

import { button, errorBox, h, shown } from "./dom.js";
import { list } from "./grid.js";
import { rows } from "./interface.js";

const SESSIONS = `SELECT pid, usename AS role, datname AS database, application_name AS application, coalesce(host(client_addr), 'local') AS client, state,
  wait_event_type AS waits_for, wait_event AS event, round(extract(epoch FROM clock_timestamp() - xact_start)::numeric, 1) AS transaction_seconds,
  round(extract(epoch FROM clock_timestamp() - query_start)::numeric, 1) AS statement_seconds, array_to_string(pg_blocking_pids(pid), ', ') AS blocked_by,
  query, pid = pg_backend_pid() AS is_own FROM pg_stat_activity WHERE backend_type = 'client backend' ORDER BY state, pid`;
const LOCKS = `SELECT l.pid, l.locktype AS type, coalesce(l.relation::regclass::text, l.transactionid::text, l.classid::text, '') AS object, l.mode, l.granted,
  a.query FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.pid <> pg_backend_pid() AND (l.locktype <> 'virtualxid') ORDER BY l.granted, l.pid LIMIT 1000`;
const EVERY_MS = 3000;

export const view = () => {
  const problem = h("div", { "aria-live": "polite" });
  const place = h("div");
  const live = h("input", { type: "checkbox", id: "live", checked: true });
  const element = h("div", null, h("h1", null, "Sessions and locks"),
    h("div", { class: "tools" }, button("Refresh", () => draw()), h("label", null, live, " every 3 seconds")), problem, place);
  let timer = null;
  const act = (what, pid) => async () => {
    if (what === "pg_terminate_backend" && !confirm(`End the session of process ${pid}? Its transaction is rolled back.`)) return;
    try {
      const [answer] = await rows(`SELECT ${what}($1::int) AS done`, [pid]);
      problem.replaceChildren(h("p", { class: "notice" }, answer.done === "t" ? "done" : `process ${pid} is gone`));
    } catch (e) {
      problem.replaceChildren(errorBox(e.error ?? { message: e.message }));
    }
    draw();
  };
  const draw = async () => {
    clearTimeout(timer);
    await shown(place, async () => {
      const [sessions, locks] = [await rows(SESSIONS), await rows(LOCKS)];
      if (place.contains(document.activeElement) && document.activeElement.matches("button:not(.sort)")) return;
      const plain = (title, key, isNumber) => [title, (row) => row[key] ?? "", isNumber, isNumber && ((row) => Number(row[key]))];
      place.replaceChildren(
        list("Sessions", [plain("PID", "pid", true), ["", (row) => row.is_own !== "t" && h("span", { class: "pair" },
          button("Cancel", act("pg_cancel_backend", row.pid), { class: "small", title: `Cancels the statement of ${row.pid}` }),
          button("End", act("pg_terminate_backend", row.pid), { class: "small", title: `Ends session ${row.pid}` }))],
        plain("Role", "role"), plain("Database", "database"), plain("Application", "application"), plain("Client", "client"), plain("State", "state"),
        ["Waits for", (row) => [row.waits_for, row.event].filter(Boolean).join(": ")], plain("Blocked by", "blocked_by"),
        plain("Transaction, s", "transaction_seconds", true), plain("Statement, s", "statement_seconds", true),
        ["Statement", (row) => (row.query ?? "").slice(0, 300)]], sessions),
        h("h2", null, "Locks"),
        locks.length === 0 ? h("p", { class: "faint" }, "no session holds a lock or waits for one")
          : list("Locks", [plain("PID", "pid", true), ["", (row) => (row.granted === "t" ? "held" : h("strong", { class: "warn" }, "waits"))],
            plain("Mode", "mode"), plain("Type", "type"), plain("Object", "object"), ["Statement", (row) => (row.query ?? "").slice(0, 200)]], locks));
    });
    if (element.isConnected || timer === null) timer = setTimeout(() => (live.checked ? draw() : undefined), EVERY_MS);
  };
  live.addEventListener("change", () => live.checked && draw());
  draw();
  return { element, close: () => clearTimeout(timer) };
};
