// A plan as a tree: each node with its share of the time, and how far the estimate of its rows was off.

import { count, h, milliseconds } from "./dom.js";

const about = (node) => {
  const target = node["Index Name"] ?? node["Function Name"] ?? node["CTE Name"];
  const relation = node["Relation Name"] && `on ${node.Schema ? `${node.Schema}.` : ""}${node["Relation Name"]}${node.Alias && node.Alias !== node["Relation Name"] ? ` ${node.Alias}` : ""}`;
  return [node["Join Type"] && node["Join Type"] !== "Inner" && node["Join Type"], node["Node Type"], target && `using ${target}`, relation].filter(Boolean).join(" ");
};

const CONDITIONS = ["Index Cond", "Hash Cond", "Merge Cond", "Join Filter", "Filter", "Recheck Cond", "Sort Key", "Group Key"];

const nodeOf = (node, total) => {
  const loops = node["Actual Loops"] ?? 1;
  const time = node["Actual Total Time"] === undefined ? null : node["Actual Total Time"] * loops;
  const children = node.Plans ?? [];
  const below = children.reduce((sum, child) => sum + (child["Actual Total Time"] ?? 0) * (child["Actual Loops"] ?? 1), 0);
  const own = time === null ? null : Math.max(0, time - below);
  const rows = node["Actual Rows"] === undefined ? null : node["Actual Rows"] * loops;
  const estimate = (node["Plan Rows"] ?? 0) * loops;
  const off = rows === null ? 1 : Math.max(rows, 1) / Math.max(estimate, 1);
  const isOff = off > 10 || off < 0.1;
  const facts = [
    own !== null && `${milliseconds(own)} here, ${milliseconds(time)} with what is below`,
    rows === null ? `${count(estimate)} rows estimated` : `${count(Math.round(rows))} rows, ${count(Math.round(estimate))} estimated`,
    loops > 1 && `${count(loops)} times`, time === null && `cost ${node["Total Cost"]}`,
  ].filter(Boolean).join(" · ");
  return h("li", null,
    h("div", { class: "node" }, h("strong", null, about(node)),
      own !== null && total > 0 && h("meter", { min: 0, max: total, value: String(own), "aria-label": "share of the time" }),
      h("div", { class: isOff ? "warn" : "faint" }, facts, isOff && " – far from the estimate"),
      CONDITIONS.filter((name) => node[name]).map((name) => h("div", { class: "condition" }, `${name}: ${[node[name]].flat().join(", ")}`))),
    children.length > 0 && h("ul", null, children.map((child) => nodeOf(child, total))));
};

/** Of the text that EXPLAIN (FORMAT JSON) returns. */
export const planTree = (text) => {
  const [explained] = JSON.parse(text);
  const total = explained.Plan["Actual Total Time"] ?? 0;
  const times = [explained["Planning Time"] !== undefined && `planning ${milliseconds(explained["Planning Time"])}`,
    explained["Execution Time"] !== undefined && `execution ${milliseconds(explained["Execution Time"])}`].filter(Boolean).join(" · ");
  return h("div", { class: "plan" }, h("p", { class: "faint" }, times), h("ul", { class: "tree" }, nodeOf(explained.Plan, total)));
};
