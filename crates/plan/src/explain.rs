//! EXPLAIN: a plan as PostgreSQL prints its own.

use std::fmt::Write;

use melba_types::Kind;

use super::node::*;
use super::planner::Planner;
use crate::timing::NodeTiming;
use melba_tree::{Expr, SortGroup, Target};

/// What to print.
#[derive(Clone, Copy, Debug)]
pub struct ExplainOptions {
    pub costs: bool,
    pub analyze: bool,
    pub timing: bool,
}

/// `name alias`, when they differ.
pub(super) fn named(name: &str, alias: &str) -> String {
    if name == alias || alias.is_empty() { name.to_string() } else { format!("{name} {alias}") }
}

pub(super) fn conjunction(planner: &Planner<'_>, conditions: &[Expr]) -> String {
    match conditions {
        [one] => parenthesized(planner.show(one)),
        many => {
            let each: Vec<String> = many.iter().map(|c| parenthesized(planner.show(c))).collect();
            format!("({})", each.join(" AND "))
        }
    }
}

/// Conditions stand in parentheses; most print with their own.
fn parenthesized(text: String) -> String {
    if text.starts_with('(') || !text.contains(' ') { text } else { format!("({text})") }
}

pub(super) fn equalities(planner: &Planner<'_>, keys: &[(Expr, Expr)]) -> String {
    let each: Vec<String> = keys.iter().map(|(a, b)| format!("({} = {})", planner.show(a), planner.show(b))).collect();
    if each.len() == 1 { each.concat() } else { format!("({})", each.join(" AND ")) }
}

pub(super) fn list(planner: &Planner<'_>, exprs: &[Expr]) -> String {
    exprs.iter().map(|e| planner.show(e)).collect::<Vec<_>>().join(", ")
}

pub(super) fn sort_key(planner: &Planner<'_>, groups: &[SortGroup], targets: &[Target]) -> String {
    if !planner.context.explain {
        return String::new();
    }
    let mut out = Vec::new();
    for group in groups {
        let Some(target) = targets.iter().find(|t| t.reference == group.reference) else { continue };
        let mut key = planner.show(&target.expr);
        if group.descending {
            key.push_str(" DESC");
        }
        if group.nulls_first != group.descending {
            key.push_str(if group.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
        out.push(key);
    }
    out.join(", ")
}

/// A node as it is shown: several plan nodes may be one of PostgreSQL's.
struct Shown {
    title: String,
    estimate: Estimate,
    /// Bytes of a row, estimated.
    width: usize,
    timing: Option<NodeTiming>,
    details: Vec<(&'static str, String)>,
    children: Vec<Shown>,
    /// "InitPlan 1", "CTE x": printed above the node.
    label: Option<String>,
}

fn shown(plan: &Plan, node: &PlanNode, timings: &[NodeTiming]) -> Shown {
    let mut own: Vec<(&'static str, String)> = node.details.iter().filter(|(key, _)| *key != "on").cloned().collect();
    match &node.op {
        // Index entries have versions of their own: no row is looked at to know whether it is there.
        Op::IndexScan(n) if n.covered.is_some() && !timings.is_empty() => own.push(("Heap Fetches", "0".into())),
        Op::Modify(n) => own.extend(changed_members(n).into_iter().map(|line| ("", line))),
        // PostgreSQL's nodes project and filter by themselves.
        Op::Project(n) => return Shown { width: width(&node.kinds), ..shown(plan, &n.input, timings) },
        Op::Filter(n) => {
            let mut below = shown(plan, &n.input, timings);
            below.details.extend(own);
            below.estimate = node.estimate;
            below.timing = timings.get(node.id).copied();
            return below;
        }
        _ => {}
    }
    let mut own_timing = timings.get(node.id).copied();
    let mut children: Vec<Shown> = children(&node.op).into_iter().map(|c| shown(plan, c, timings)).collect();
    if let (Op::HashJoin(n), 2) = (&node.op, children.len())
        && let Some(built) = children.pop()
    {
        let mut hash = Shown {
            title: if n.workers > 0 { "Parallel Hash" } else { "Hash" }.into(),
            estimate: n.right.estimate,
            width: built.width,
            timing: timings.get(n.right.id).map(|t| t.with_storage(own_timing.and_then(|t| t.storage))),
            details: vec![],
            children: vec![built],
            label: None,
        };
        hash.tell_workers(n.workers, own_timing);
        children.push(hash);
        // PostgreSQL shows what the table took at the node that builds it.
        own_timing = own_timing.map(|t| t.with_storage(None));
    }
    let mut out = Shown {
        title: title(plan, node),
        estimate: node.estimate,
        width: width(&node.kinds),
        timing: own_timing,
        details: own,
        children,
        label: None,
    };
    if let Op::Aggregate(n) = &node.op {
        out.tell_workers(n.workers, own_timing);
    }
    out
}

impl Shown {
    /// Says of a node that several threads read its input, which the timing has measured.
    fn tell_workers(&mut self, planned: usize, timing: Option<NodeTiming>) {
        if planned == 0 {
            return;
        }
        self.details.push(("Workers Planned", planned.to_string()));
        let launched = timing.filter(|timing| timing.loops > 0).map(|timing| ("Workers Launched", timing.workers.to_string()));
        self.details.extend(launched);
        self.children.iter_mut().for_each(mark_driving_scan);
    }
}

/// Says of the scan whose table several threads divide that it is parallel: the left-most one.
fn mark_driving_scan(node: &mut Shown) {
    match node.children.iter_mut().find(|child| child.label.is_none()) {
        Some(child) => mark_driving_scan(child),
        None => node.title.insert_str(0, "Parallel "),
    }
}

/// The tables of a family whose rows a change reads, and so may change: "Update on child parent_1".
fn changed_members(node: &super::modify::ModifyNode) -> Vec<String> {
    let Some(family) = &node.family else { return vec![] };
    let (mut lines, mut todo) = (Vec::new(), node.input().into_iter().collect::<Vec<_>>());
    while let Some(next) = todo.pop() {
        let source = match &next.op {
            Op::TableScan(n) => Some(&n.source),
            Op::IndexScan(n) => Some(&n.source),
            _ => None,
        };
        let is_its = |s: &&TableSource| family.members.iter().any(|m| m.source.relation == s.relation);
        lines.extend(source.filter(is_its).map(|s| format!("{} on {}", node.title(), named(&s.name, &s.alias))));
        todo.extend(children(&next.op).into_iter().rev());
    }
    lines
}

/// What PostgreSQL assumes of columns that it has no statistics of: values of varying length take 32 bytes.
fn width(kinds: &[Kind]) -> usize {
    kinds.iter().map(|kind| kind.width().unwrap_or(32)).sum()
}

fn whole(plan: &Plan, timings: &[NodeTiming]) -> Shown {
    let mut root = shown(plan, &plan.root, timings);
    let mut first = Vec::new();
    for cte in &plan.ctes {
        let mut node = shown(plan, &cte.node, timings);
        node.label = Some(format!("CTE {}", cte.name));
        first.push(node);
    }
    for subplan in &plan.subplans {
        let mut node = shown(plan, &subplan.node, timings);
        node.label = Some(subplan.name.clone());
        first.push(node);
    }
    first.append(&mut root.children);
    root.children = first;
    root
}

/// The lines of EXPLAIN in text format.
pub fn explain(plan: &Plan, options: ExplainOptions, timings: &[NodeTiming]) -> Vec<String> {
    let mut lines = Vec::new();
    print(&whole(plan, timings), 0, true, &options, &mut lines);
    lines
}

/// `indent` is where the node's arrow stands.
fn print(node: &Shown, indent: usize, root: bool, options: &ExplainOptions, lines: &mut Vec<String>) {
    let mut line = " ".repeat(indent);
    if !root {
        line.push_str("->  ");
    }
    line.push_str(&node.title);
    if options.costs {
        let e = node.estimate;
        let _ = write!(line, "  (cost={:.2}..{:.2} rows={:.0} width={})", e.startup, e.total, e.rows.max(1.0), node.width);
    }
    if options.analyze {
        let t = node.timing.unwrap_or_default();
        if t.loops == 0 {
            line.push_str(" (never executed)");
        } else {
            let ms = |d: std::time::Duration| d.as_secs_f64() * 1000.0 / t.loops as f64;
            let rows = t.rows as f64 / t.loops as f64;
            if options.timing {
                let _ = write!(line, " (actual time={:.3}..{:.3} rows={rows:.2} loops={})", ms(t.startup), ms(t.total), t.loops);
            } else {
                let _ = write!(line, " (actual rows={rows:.2} loops={})", t.loops);
            }
        }
    }
    lines.push(line);
    let inner = if root { indent + 2 } else { indent + 6 };
    for (key, value) in &node.details {
        let colon = if key.is_empty() { "" } else { ": " };
        lines.push(format!("{}{key}{colon}{value}", " ".repeat(inner)));
    }
    if let Some(storage) = node.timing.and_then(|t| t.storage) {
        lines.push(format!("{}{}", " ".repeat(inner), storage.line()));
    }
    for child in &node.children {
        match &child.label {
            Some(label) => {
                lines.push(format!("{}{label}", " ".repeat(inner)));
                print(child, inner + 2, false, options, lines);
            }
            None => print(child, inner, false, options, lines),
        }
    }
}

/// EXPLAIN (FORMAT JSON).
pub fn explain_json(plan: &Plan, options: ExplainOptions, timings: &[NodeTiming]) -> String {
    let mut out = String::from("[\n  {\n    \"Plan\": ");
    json(&whole(plan, timings), 4, &options, &mut out);
    out.push_str("\n  }\n]");
    out
}

fn json(node: &Shown, indent: usize, options: &ExplainOptions, out: &mut String) {
    let mut fields: Vec<(String, String)> = Vec::new();
    let quoted = |s: &str| format!("{:?}", s);
    let (kind, on) = node.title.split_once(" on ").map_or((&node.title[..], None), |(k, o)| (k, Some(o)));
    let (kind, index) = kind.split_once(" using ").map_or((kind, None), |(k, i)| (k, Some(i)));
    fields.push(("Node Type".into(), quoted(kind)));
    if let Some(label) = &node.label {
        fields.push(("Subplan Name".into(), quoted(label)));
    }
    if let Some(index) = index {
        fields.push(("Index Name".into(), quoted(index)));
    }
    if let Some(on) = on {
        let (name, alias) = on.split_once(' ').unwrap_or((on, on));
        fields.push(("Relation Name".into(), quoted(name)));
        fields.push(("Alias".into(), quoted(alias)));
    }
    if options.costs {
        let e = node.estimate;
        fields.push(("Startup Cost".into(), format!("{:.2}", e.startup)));
        fields.push(("Total Cost".into(), format!("{:.2}", e.total)));
        fields.push(("Plan Rows".into(), format!("{:.0}", e.rows.max(1.0))));
        fields.push(("Plan Width".into(), node.width.to_string()));
    }
    if options.analyze {
        let t = node.timing.unwrap_or_default();
        let loops = t.loops.max(1) as f64;
        if options.timing {
            fields.push(("Actual Startup Time".into(), format!("{:.3}", t.startup.as_secs_f64() * 1000.0 / loops)));
            fields.push(("Actual Total Time".into(), format!("{:.3}", t.total.as_secs_f64() * 1000.0 / loops)));
        }
        fields.push(("Actual Rows".into(), format!("{:.2}", t.rows as f64 / loops)));
        fields.push(("Actual Loops".into(), t.loops.to_string()));
    }
    for (key, value) in &node.details {
        fields.push(((*key).to_string(), quoted(value)));
    }
    if let Some(storage) = node.timing.and_then(|t| t.storage) {
        fields.extend(storage.fields().into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    let pad = " ".repeat(indent + 2);
    out.push_str("{\n");
    let last = fields.len() - 1;
    for (i, (key, value)) in fields.iter().enumerate() {
        let comma = if i < last || !node.children.is_empty() { "," } else { "" };
        let _ = writeln!(out, "{pad}\"{key}\": {value}{comma}");
    }
    if !node.children.is_empty() {
        let _ = write!(out, "{pad}\"Plans\": [\n{pad}  ");
        for (i, child) in node.children.iter().enumerate() {
            if i > 0 {
                let _ = write!(out, ",\n{pad}  ");
            }
            json(child, indent + 4, options, out);
        }
        let _ = write!(out, "\n{pad}]\n");
    }
    let _ = write!(out, "{}}}", " ".repeat(indent));
}

fn title(plan: &Plan, node: &PlanNode) -> String {
    let on = node.details.iter().find(|(key, _)| *key == "on").map_or(String::new(), |(_, v)| format!(" on {v}"));
    match &node.op {
        Op::Result(_) => "Result".into(),
        Op::Values(_) => "Values Scan on \"*VALUES*\"".into(),
        Op::TableScan(_) | Op::SystemScan(_) => format!("Seq Scan{on}"),
        Op::IndexScan(n) => match n.arms.first() {
            Some(arm) if n.is_one_scan() => {
                let only = if n.covered.is_some() { " Only" } else { "" };
                format!("Index{only} Scan{} using {}{on}", if n.reverse { " Backward" } else { "" }, arm.name)
            }
            _ => format!("Bitmap Heap Scan{on}"),
        },
        Op::FunctionScan(_) => format!("Function Scan{on}"),
        Op::CteScan { cte } => match plan.ctes.get(*cte) {
            Some(_) => format!("CTE Scan{on}"),
            None => "CTE Scan".into(),
        },
        Op::WorkTableScan { .. } => format!("WorkTable Scan{on}"),
        Op::Filter(_) => "Filter".into(),
        Op::Project(_) => "Projection".into(),
        Op::ProjectSet(_) => "ProjectSet".into(),
        Op::HashJoin(n) => match n.join {
            JoinType::Inner => "Hash Join".into(),
            other => format!("Hash{} Join", join_name(other)),
        },
        Op::NestedLoop(n) => match n.join {
            JoinType::Inner => "Nested Loop".into(),
            other => format!("Nested Loop{} Join", join_name(other)),
        },
        Op::Aggregate(n) if n.sets.len() > 1 => "MixedAggregate".into(),
        Op::Aggregate(n) => {
            let parallel = if n.workers > 0 { "Parallel " } else { "" };
            format!("{parallel}{}", if n.groups.is_empty() { "Aggregate" } else { "HashAggregate" })
        }
        Op::Window(_) => "WindowAgg".into(),
        Op::Sort(_) => "Sort".into(),
        Op::Distinct(n) if n.sorted => "Unique".into(),
        Op::Distinct(_) => "HashAggregate".into(),
        Op::Limit(_) => "Limit".into(),
        Op::SetOp(n) => format!("HashSetOp {:?}{}", n.operation, if n.all { " All" } else { "" }),
        Op::Append(_) => "Append".into(),
        Op::RecursiveUnion(_) => "Recursive Union".into(),
        Op::LockRows(_) => "LockRows".into(),
        Op::Modify(n) => format!("{} on {}", n.title(), n.name()),
    }
}

fn join_name(join: JoinType) -> &'static str {
    match join {
        JoinType::Inner => "",
        JoinType::Left => " Left",
        JoinType::Right => " Right",
        JoinType::Full => " Full",
        JoinType::Semi | JoinType::SemiPair => " Semi",
        JoinType::Anti => " Anti",
        JoinType::RightSemi => " Right Semi",
        JoinType::RightAnti => " Right Anti",
    }
}

fn children(op: &Op) -> Vec<&PlanNode> {
    match op {
        Op::Result(n) => n.input.iter().collect(),
        Op::Filter(n) => vec![&n.input],
        Op::Project(n) => vec![&n.input],
        Op::ProjectSet(n) => vec![&n.input],
        Op::HashJoin(n) => vec![&n.left, &n.right],
        Op::NestedLoop(n) => vec![&n.left, &n.right],
        Op::Aggregate(n) => vec![&n.input],
        Op::Window(n) => vec![&n.input],
        Op::Sort(n) => vec![&n.input],
        Op::Distinct(n) => vec![&n.input],
        Op::Limit(n) => vec![&n.input],
        Op::SetOp(n) => vec![&n.left, &n.right],
        Op::Append(n) => n.inputs.iter().collect(),
        Op::RecursiveUnion(n) => vec![&n.base, &n.recursive],
        Op::LockRows(n) => vec![&n.input],
        Op::Modify(n) => n.input().into_iter().collect(),
        _ => vec![],
    }
}
