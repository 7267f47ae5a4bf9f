// What the server does now: throughput, latency, memory, disk, sessions, every few seconds.

import { bytes, count, errorBox, h } from "./dom.js";
import { lines, short } from "./chart.js";
import { rows } from "./interface.js";

const EVERY_MS = 2000;
const POINTS_MAX = 150;

const COUNTS = `SELECT extract(epoch FROM clock_timestamp())::float8 AS at, sum(xact_commit)::int8 AS commits, sum(xact_rollback)::int8 AS rollbacks,
  sum(tup_returned)::int8 AS read, sum(tup_inserted + tup_updated + tup_deleted)::int8 AS written,
  sum(blks_hit)::int8 AS hits, sum(blks_read)::int8 AS misses, sum(temp_bytes)::int8 AS temporary FROM pg_stat_database`;
const SESSIONS = `SELECT count(*) AS all, count(*) FILTER (WHERE state = 'active' AND pid <> pg_backend_pid()) AS active,
  count(*) FILTER (WHERE state LIKE 'idle in transaction%') AS idle, count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting
  FROM pg_stat_activity WHERE backend_type = 'client backend'`;
const DISK = "SELECT sum(pg_database_size(oid))::int8 AS size FROM pg_database WHERE datallowconn AND has_database_privilege(oid, 'CONNECT')";
const LATENCY = "SELECT sum(calls)::int8 AS calls, sum(total_exec_time)::float8 AS time FROM pg_stat_statements";
const MEMORY = "SELECT sum(used_bytes)::int8 AS bytes FROM pg_backend_memory_contexts WHERE type = 'budget'";

const ask = (sql) => rows(sql, [], { connection: "monitor" }).then(([row]) => row);
// What a server does not have is not asked again.
const optional = (sql) => {
  let isThere = true;
  return async () => {
    if (!isThere) return null;
    return ask(sql).catch((e) => {
      if (!e.error?.code) throw e;
      isThere = false;
      return null;
    });
  };
};

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();

export const view = () => {
  const problem = h("div");
  const cards = h("div", { class: "cards" });
  const charts = h("div", { class: "charts" });
  const element = h("div", null, h("h1", null, "Overview"), problem, cards, charts);
  const history = [];
  const [latency, memory, disk] = [optional(LATENCY), optional(MEMORY), optional(DISK)];
  let timer = null;
  let isClosed = false;

  const rates = (key) => history.slice(1).map((now, at) => {
    const before = history[at];
    const passed = now.at - before.at;
    return [now.at, passed > 0 && now[key] !== null && before[key] !== null ? Math.max(0, (now[key] - before[key]) / passed) : null];
  });
  const levels = (key) => history.map((now) => [now.at, now[key]]);
  const means = () => history.slice(1).map((now, at) => {
    const calls = now.calls - history[at].calls;
    return [now.at, calls > 0 ? Math.max(0, (now.time - history[at].time) / calls) : null];
  });
  const chart = (title, series, options) => h("section", { class: "panel" }, h("h2", null, title), lines(title, series, { xText: clock, ...options }));
  const card = (title, value) => h("div", { class: "card" }, h("div", { class: "faint" }, title), h("div", { class: "big" }, value));

  const draw = () => {
    const now = history.at(-1);
    const last = (points) => points.findLast(([, y]) => y !== null)?.[1];
    const tps = last(rates("commits"));
    const hits = now.hits + now.misses > 0 ? `${((100 * now.hits) / (now.hits + now.misses)).toFixed(1)} %` : "–";
    cards.replaceChildren(
      card("Transactions a second", tps === undefined ? "…" : short(tps)), card("Sessions", `${now.active} active of ${now.all}`),
      card("Waiting for locks", count(now.waiting)), card("Blocks found in memory", hits), card("Databases on disk", now.size === null ? "–" : bytes(now.size)));
    const shown = [
      chart("Transactions a second", [{ name: "committed", points: rates("commits") }, { name: "rolled back", points: rates("rollbacks") }]),
      chart("Rows a second", [{ name: "read", points: rates("read") }, { name: "written", points: rates("written") }]),
      now.calls !== null && chart("Mean time of statements, ms", [{ name: "mean", points: means() }]),
      chart("Sessions", [{ name: "active", points: levels("active") }, { name: "idle in transaction", points: levels("idle") }, { name: "waiting", points: levels("waiting") }]),
      now.memory !== null && chart("Memory of queries", [{ name: "bytes", points: levels("memory") }], { format: bytes }),
      now.size !== null && chart("Databases on disk", [{ name: "bytes", points: levels("size") }], { format: bytes }),
    ];
    charts.replaceChildren(...shown.filter(Boolean));
  };

  const step = async () => {
    try {
      const [counts, sessions, times, held, size] = [await ask(COUNTS), await ask(SESSIONS), await latency(), await memory(), await disk()];
      const number = (value) => (value === null || value === undefined ? null : Number(value));
      const all = { ...counts, ...sessions, calls: times?.calls, time: times?.time, memory: held?.bytes, size: size?.size };
      history.push(Object.fromEntries(Object.entries(all).map(([key, value]) => [key, number(value)])));
      if (history.length > POINTS_MAX) history.shift();
      if (!isClosed) draw();
      problem.replaceChildren();
    } catch (e) {
      problem.replaceChildren(errorBox(e.error ?? { message: e.message }));
    }
    if (!isClosed) timer = setTimeout(step, EVERY_MS);
  };
  step();
  return { element, close: () => {
    isClosed = true;
    clearTimeout(timer);
  } };
};
