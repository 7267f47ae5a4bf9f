//! EXPLAIN: a plan as PostgreSQL prints its own.

use std::fmt::Write;

use melba_catalog::quote_ident;
use melba_engine::IoCounts;
use melba_types::Kind;

use super::explain_output::{above, outputs_of};
use super::node::*;
use super::path::OrderKey;
use super::planner::Planner;
use super::shown::{ScannedName, ShownOutput};
use crate::explain_document::{Group, PropertyValue, list_items};
use crate::file_scan::ScannedFiles;
use crate::io_usage::{buffer_fields, buffer_lines, log_fields, log_line};
use crate::timing::NodeTiming;
use melba_tree::{Expr, SortGroup, Target, places_of_targets};

/// Options of EXPLAIN.
#[derive(Clone, Copy, Debug)]
pub struct ExplainOptions {
    pub costs: bool,
    pub analyze: bool,
    pub timing: bool,
    pub buffers: bool,
    pub wal: bool,
    /// track_io_timing is on.
    pub io_timing: bool,
    /// The columns of nodes, and the schemas of what they read.
    pub verbose: bool,
}

pub(super) fn equalities(planner: &Planner<'_>, keys: &[(Expr, Expr)]) -> String {
    let each: Vec<String> = keys.iter().map(|(a, b)| format!("({} = {})", planner.show(a), planner.show(b))).collect();
    if each.len() == 1 { each.concat() } else { format!("({})", each.join(" AND ")) }
}

pub(super) fn list(planner: &Planner<'_>, exprs: &[Expr]) -> String {
    exprs.iter().map(|e| planner.show(e)).collect::<Vec<_>>().join(", ")
}

pub(super) fn sort_key(planner: &Planner<'_>, groups: &[SortGroup], targets: &[Target]) -> String {
    if !planner.inputs.explain {
        return String::new();
    }
    let mut out = Vec::new();
    for (group, place) in places_of_targets(groups, targets) {
        let Some(target) = place.map(|at| &targets[at]) else { continue };
        out.push(shown_key(planner, &target.expr, group.descending, group.nulls_first));
    }
    out.join(", ")
}

/// Sort keys without their direction.
pub(super) fn keys_alone(planner: &Planner<'_>, groups: &[SortGroup], targets: &[Target]) -> Vec<String> {
    let shown = |at: usize| if planner.inputs.explain { planner.show(&targets[at].expr) } else { String::new() };
    places_of_targets(groups, targets).filter_map(|(_, place)| place.map(shown)).collect()
}

/// The required order, as a sort key.
pub(super) fn order_key(planner: &Planner<'_>, order: &[OrderKey]) -> String {
    let shown = order.iter().map(|key| shown_key(planner, &key.expr, key.descending, key.nulls_first));
    shown.collect::<Vec<_>>().join(", ")
}

fn shown_key(planner: &Planner<'_>, expr: &Expr, descending: bool, nulls_first: bool) -> String {
    with_direction(planner.show(expr), descending, nulls_first)
}

/// A sort key, if it is in another direction than the usual one, with that.
pub(super) fn with_direction(mut key: String, descending: bool, nulls_first: bool) -> String {
    if descending {
        key.push_str(" DESC");
    }
    if nulls_first != descending {
        key.push_str(if nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
    }
    key
}

/// A node as EXPLAIN shows it: several plan nodes may be one of PostgreSQL's.
struct Shown {
    title: String,
    scanned: Option<ScannedName>,
    /// `None`: they are not known.
    outputs: Option<Vec<ShownOutput>>,
    /// The tables of a family that a change reaches.
    changed: Vec<ScannedName>,
    estimate: Estimate,
    /// Bytes of a row, estimated.
    width: usize,
    timing: Option<NodeTiming>,
    details: Vec<(&'static str, String)>,
    children: Vec<Shown>,
    /// "InitPlan 1", "CTE x": printed above the node.
    label: Option<String>,
}

fn shown(node: &PlanNode, timings: &[NodeTiming]) -> Shown {
    let mut own: Vec<(&'static str, String)> = node.details.clone();
    let own_timing = timings.get(node.id).copied();
    tell_removed(&mut own, own_timing);
    match &node.op {
        // Index entries have versions: visibility is known without reading the row.
        Op::IndexScan(n) if !timings.is_empty() => {
            own.extend(n.covered.is_some().then(|| ("Heap Fetches", "0".into())));
            own.push(searches(own_timing));
        }
        // PostgreSQL's nodes project and filter themselves.
        Op::Project(n) => {
            let below = shown(&n.input, timings);
            return Shown { width: width(&node.kinds), outputs: outputs_of(node, &[below.outputs.as_ref()]), ..below };
        }
        Op::Filter(n) => {
            let mut below = shown(&n.input, timings);
            below.details.extend(own);
            below.estimate = at_least_a_row(node.estimate);
            below.timing = own_timing;
            return below;
        }
        _ => {}
    }
    let mut own_timing = own_timing;
    let mut children: Vec<Shown> = children(&node.op).into_iter().map(|c| shown(c, timings)).collect();
    let inputs: Vec<Option<&Vec<ShownOutput>>> = children.iter().map(|child| child.outputs.as_ref()).collect();
    let outputs = if matches!(node.op, Op::Modify(_)) { node.outputs.clone() } else { outputs_of(node, &inputs) };
    if let (Op::HashJoin(n), 2) = (&node.op, children.len())
        && let Some(built) = children.pop()
    {
        let mut hash = Shown {
            title: if n.workers > 0 { "Parallel Hash" } else { "Hash" }.into(),
            scanned: None,
            outputs: above(built.outputs.as_ref()),
            changed: vec![],
            estimate: at_least_a_row(n.right.estimate),
            width: built.width,
            timing: timings.get(n.right.id).map(|t| t.with_storage(own_timing.and_then(|t| t.storage))),
            details: vec![],
            children: vec![built],
            label: None,
        };
        hash.tell_workers(n.workers, own_timing);
        children.push(hash);
        // PostgreSQL shows the table's memory at the node that builds it.
        own_timing = own_timing.map(|t| t.with_storage(None));
    }
    let mut out = Shown {
        title: title(node),
        scanned: node.scanned.as_deref().cloned(),
        outputs,
        changed: if let Op::Modify(n) = &node.op { changed_members(n) } else { vec![] },
        estimate: at_least_a_row(node.estimate),
        width: width(&node.kinds),
        timing: own_timing,
        details: own,
        children,
        label: None,
    };
    match &node.op {
        Op::BitmapScan(n) => out.tell_index(&n.name),
        Op::Aggregate(n) => out.tell_workers(n.workers, own_timing),
        Op::Sort(n) => out.tell_workers(n.workers, own_timing),
        Op::Modify(n) => out.tell_change(n, node),
        _ => {}
    }
    out
}

fn at_least_a_row(estimate: Estimate) -> Estimate {
    Estimate { rows: estimate.rows.max(1.0), ..estimate }
}

impl Shown {
    /// The columns that EXPLAIN prints: PostgreSQL leaves those of all inputs one after the other out, which are the first one's.
    fn shown_outputs(&self, options: &ExplainOptions) -> Option<Vec<&str>> {
        let is_shown = options.verbose && !matches!(&*self.title, "Append" | "Recursive Union");
        let outputs = self.outputs.as_ref().filter(|outputs| is_shown && !outputs.is_empty())?;
        Some(outputs.iter().map(|output| &*output.text).collect())
    }

    /// PostgreSQL finds the rows in a separate node.
    fn tell_index(&mut self, index: &str) {
        let is_condition = |detail: &mut (&'static str, String)| detail.0 == "Index Cond";
        let mut details: Vec<_> = self.details.extract_if(.., is_condition).collect();
        details.extend(self.timing.map(|timing| searches(Some(timing))));
        self.children.push(Shown {
            title: format!("Bitmap Index Scan on {}", quote_ident(index)),
            scanned: None,
            outputs: None,
            changed: vec![],
            estimate: Estimate { startup: 0.0, total: self.estimate.startup, ..self.estimate },
            width: 0,
            timing: self.timing.map(|timing| timing.with_storage(None)),
            details,
            children: vec![],
            label: None,
        });
    }

    /// A change returns rows only by RETURNING; PostgreSQL computes the single row of VALUES in a separate node.
    fn tell_change(&mut self, change: &super::modify_node::ModifyNode, node: &PlanNode) {
        if change.input().is_none() {
            let columns: Vec<Kind> = change.target.relation.columns.iter().filter(|c| !c.dropped).map(|c| c.kind).collect();
            self.children.push(Shown {
                title: "Result".into(),
                scanned: None,
                outputs: None,
                changed: vec![],
                estimate: self.estimate,
                width: width(&columns),
                timing: self.timing.map(|t| NodeTiming { rows: 1, io: IoCounts::default(), ..t }),
                details: vec![],
                children: vec![],
                label: None,
            });
        }
        if node.kinds.is_empty() {
            self.estimate.rows = 0.0;
        }
    }

    /// Notes at a node that several threads read its input, as the timing has measured.
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

/// Marks the scan whose table several threads divide as parallel: the left-most one.
fn mark_driving_scan(node: &mut Shown) {
    match node.children.iter_mut().find(|child| child.label.is_none()) {
        Some(child) => mark_driving_scan(child),
        None => node.title.insert_str(0, "Parallel "),
    }
}

/// The tables of a family whose rows a change reads, and so may change.
fn changed_members(node: &super::modify_node::ModifyNode) -> Vec<ScannedName> {
    let Some(family) = &node.family else { return vec![] };
    let (mut names, mut todo) = (Vec::new(), node.input().into_iter().collect::<Vec<_>>());
    while let Some(next) = todo.pop() {
        let source = match &next.op {
            Op::TableScan(n) => Some(&n.source),
            Op::IndexScan(n) => Some(&n.source),
            Op::BitmapScan(n) => Some(&n.source),
            _ => None,
        };
        let is_its = |s: &&TableSource| family.members.iter().any(|m| m.source.relation == s.relation);
        names.extend(next.scanned.as_deref().filter(|_| source.is_some_and(|s| is_its(&s))).cloned());
        todo.extend(children(&next.op).into_iter().rev());
    }
    names
}

/// PostgreSQL's assumption for columns without statistics: values of varying length take 32 bytes.
fn width(kinds: &[Kind]) -> usize {
    kinds.iter().map(|kind| kind.width().unwrap_or(32)).sum()
}

fn whole(plan: &Plan, timings: &[NodeTiming]) -> Shown {
    let mut root = shown(&plan.root, timings);
    let mut first = Vec::new();
    for cte in &plan.ctes {
        let mut node = shown(&cte.node, timings);
        node.label = Some(format!("CTE {}", cte.name));
        first.push(node);
    }
    for subplan in &plan.subplans {
        let mut node = shown(&subplan.node, timings);
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
    if let Some(scanned) = &node.scanned {
        let _ = write!(line, " on {}", scanned.text(options.verbose));
    }
    if options.costs {
        let e = node.estimate;
        let _ = write!(line, "  (cost={:.2}..{:.2} rows={:.0} width={})", e.startup, e.total, e.rows, node.width);
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
    if let Some(outputs) = node.shown_outputs(options) {
        lines.push(format!("{}Output: {}", " ".repeat(inner), outputs.join(", ")));
    }
    lines
        .extend(node.changed.iter().map(|name| format!("{}{} on {}", " ".repeat(inner), node.title, name.text(options.verbose))));
    let is_shown = |(key, value): &&(&'static str, String)| !(key.starts_with("Rows Removed") && value == "0");
    for (key, value) in node.details.iter().filter(is_shown) {
        let colon = if key.is_empty() { "" } else { ": " };
        lines.push(format!("{}{key}{colon}{value}", " ".repeat(inner)));
    }
    let timing = node.timing.unwrap_or_default();
    let measured = timing.storage.map(|storage| storage.line()).into_iter();
    let measured = measured.chain(if options.buffers { buffer_lines(&timing.io) } else { vec![] });
    let measured = measured.chain(if options.wal { log_line(&timing.io) } else { None });
    lines.extend(measured.map(|line| format!("{}{line}", " ".repeat(inner))));
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

/// The plan in machine-readable form: the content of "Plan" in all formats except text.
pub fn explain_document(plan: &Plan, options: ExplainOptions, timings: &[NodeTiming]) -> Group {
    properties(&whole(plan, timings), None, &options)
}

/// A title that PostgreSQL divides: the node's type, and further properties.
type TitleParts = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const KINDS: [TitleParts; 8] = [
    ("Insert", "ModifyTable", &[("Operation", "Insert")]),
    ("Update", "ModifyTable", &[("Operation", "Update")]),
    ("Delete", "ModifyTable", &[("Operation", "Delete")]),
    ("Merge", "ModifyTable", &[("Operation", "Merge")]),
    ("Aggregate", "Aggregate", &[("Strategy", "Plain"), ("Partial Mode", "Simple")]),
    ("HashAggregate", "Aggregate", &[("Strategy", "Hashed"), ("Partial Mode", "Simple")]),
    ("MixedAggregate", "Aggregate", &[("Strategy", "Mixed"), ("Partial Mode", "Simple")]),
    ("HashSetOp", "SetOp", &[("Strategy", "Hashed")]),
];

/// Properties that are lists, and numbers.
const LISTS: [&str; 3] = ["Sort Key", "Presorted Key", "Group Key"];
const NUMBERS: [&str; 7] = [
    "Heap Fetches",
    "Index Searches",
    "Workers Planned",
    "Workers Launched",
    "Rows Removed by Filter",
    "Rows Removed by Join Filter",
    "Rows Removed by Index Recheck",
];

/// Conditions, and what is said of the rows that they leave out; a node's rows are counted for the first that it has.
const REMOVED: [(&str, &str); 3] = [
    ("Filter", "Rows Removed by Filter"),
    ("Join Filter", "Rows Removed by Join Filter"),
    ("Recheck Cond", "Rows Removed by Index Recheck"),
];

/// Adds behind a condition how many rows it has left out, a loop.
fn tell_removed(details: &mut Vec<(&'static str, String)>, timing: Option<NodeTiming>) {
    let Some(timing) = timing else { return };
    let place = |(condition, text): &(&str, &'static str)| {
        let at = details.iter().rposition(|(key, _)| key == condition)?;
        Some((at + 1, *text))
    };
    if let Some((at, text)) = REMOVED.iter().find_map(place) {
        let a_loop = timing.removed as f64 / timing.loops.max(1) as f64;
        details.insert(at, (text, format!("{a_loop:.0}")));
    }
}

fn searches(timing: Option<NodeTiming>) -> (&'static str, String) {
    ("Index Searches", timing.unwrap_or_default().searches.to_string())
}

/// A title without its relation, taken apart.
#[derive(Default)]
struct NodeType {
    name: String,
    /// Properties that follow directly.
    more: &'static [(&'static str, &'static str)],
    /// Properties after those that all nodes have.
    later: Vec<(&'static str, String)>,
}

fn node_type(title: &str) -> NodeType {
    for method in ["Hash", "Nested Loop"] {
        let bare = if method == "Hash" { "Hash Join" } else { "Nested Loop" };
        let join = if title == bare { Some("Inner") } else { title.strip_prefix(method).and_then(|t| t.strip_suffix(" Join")) };
        if let Some(join) = join {
            let later = vec![("Join Type", join.trim_start().to_owned())];
            return NodeType { name: bare.to_owned(), later, ..NodeType::default() };
        }
    }
    let (word, rest) = title.split_once(' ').unwrap_or((title, ""));
    if let Some((_, kind, more)) = KINDS.iter().find(|(known, ..)| *known == word) {
        let command = (*kind == "SetOp").then(|| ("Command", rest.to_owned()));
        return NodeType { name: (*kind).to_owned(), more, later: command.into_iter().collect() };
    }
    let (scan, index) = title.split_once(" using ").map_or((title, None), |(scan, index)| (scan, Some(index)));
    let Some(index) = index else { return NodeType { name: title.to_owned(), ..NodeType::default() } };
    let (scan, direction) = scan.strip_suffix(" Backward").map_or((scan, "Forward"), |scan| (scan, "Backward"));
    let later = vec![("Scan Direction", direction.to_owned()), ("Index Name", index.to_owned())];
    NodeType { name: scan.to_owned(), later, ..NodeType::default() }
}

/// `place`: among its parent's children.
fn properties(node: &Shown, place: Option<usize>, options: &ExplainOptions) -> Group {
    let (bare, parallel) = node.title.strip_prefix("Parallel ").map_or((&node.title[..], false), |title| (title, true));
    let (title, index) = bare.split_once(" on ").map_or((bare, None), |(title, index)| (title, Some(index)));
    let NodeType { name, more, later } = node_type(title);
    let mut out: Group = vec![("Node Type".into(), PropertyValue::Text(name))];
    let mut add = |key: &str, value: PropertyValue| out.push((key.into(), value));
    more.iter().for_each(|(key, value)| add(key, PropertyValue::text(*value)));
    let relationship = match (&node.label, place) {
        (Some(label), _) if label.starts_with("SubPlan") => Some("SubPlan"),
        (Some(_), _) => Some("InitPlan"),
        (None, Some(0)) => Some("Outer"),
        (None, Some(_)) => Some("Inner"),
        (None, None) => None,
    };
    relationship.into_iter().for_each(|of| add("Parent Relationship", PropertyValue::text(of)));
    node.label.iter().for_each(|label| add("Subplan Name", PropertyValue::text(label)));
    add("Parallel Aware", PropertyValue::plain(parallel));
    add("Async Capable", PropertyValue::plain(false));
    later.into_iter().for_each(|(key, value)| add(key, PropertyValue::Text(value)));
    if let Some(index) = index {
        add("Index Name", PropertyValue::text(index));
    }
    node.scanned.iter().flat_map(|scanned| named(title, scanned, options)).for_each(|(key, value)| add(&key, value));
    if options.costs {
        let e = node.estimate;
        add("Startup Cost", PropertyValue::Plain(format!("{:.2}", e.startup)));
        add("Total Cost", PropertyValue::Plain(format!("{:.2}", e.total)));
        add("Plan Rows", PropertyValue::Plain(format!("{:.0}", e.rows)));
        add("Plan Width", PropertyValue::plain(node.width));
    }
    if options.analyze {
        let t = node.timing.unwrap_or_default();
        let loops = t.loops.max(1) as f64;
        if options.timing {
            add("Actual Startup Time", PropertyValue::Plain(format!("{:.3}", t.startup.as_secs_f64() * 1000.0 / loops)));
            add("Actual Total Time", PropertyValue::Plain(format!("{:.3}", t.total.as_secs_f64() * 1000.0 / loops)));
        }
        add("Actual Rows", PropertyValue::Plain(format!("{:.2}", t.rows as f64 / loops)));
        add("Actual Loops", PropertyValue::plain(t.loops));
    }
    add("Disabled", PropertyValue::plain(false));
    if let Some(outputs) = node.shown_outputs(options) {
        add("Output", PropertyValue::Texts(outputs.into_iter().map(str::to_owned).collect()));
    }
    if !node.changed.is_empty() {
        let tables = node.changed.iter().map(|table| named("", table, options)).collect();
        add("Target Tables", PropertyValue::Groups("Target Table", tables));
    }
    for (key, value) in &node.details {
        add(key, detail(key, value));
    }
    measured_fields(&node.timing.unwrap_or_default(), options).into_iter().for_each(|(key, value)| add(&key, value));
    if !node.children.is_empty() {
        // Plans that are not the node's input do not count.
        let place = |at: usize| node.children[..at].iter().filter(|c| c.label.is_none()).count();
        let below = node.children.iter().enumerate().map(|(at, child)| properties(child, Some(place(at)), options));
        add("Plans", PropertyValue::Groups("Plan", below.collect()));
    }
    out
}

/// What a node reads or changes.
fn named(title: &str, scanned: &ScannedName, options: &ExplainOptions) -> Group {
    let kind = ["Table Function", "Function", "CTE", "WorkTable"].into_iter().find(|word| title.starts_with(word));
    let key = match kind {
        Some("Table Function") => "Table Function Name",
        Some("Function") => "Function Name",
        Some(_) => "CTE Name",
        None => "Relation Name",
    };
    let schema = scanned.schema.as_ref().filter(|_| options.verbose);
    let fields = [(key, scanned.name.as_ref()), ("Schema", schema), ("Alias", Some(&scanned.alias))];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), PropertyValue::text(&**value?)))).collect()
}

/// What a node has used, beside time.
fn measured_fields(timing: &NodeTiming, options: &ExplainOptions) -> Group {
    let storage = timing.storage.into_iter().flat_map(|s| s.fields()).map(|(key, value)| (key.to_owned(), value));
    let mut fields: Group = storage.collect();
    if options.analyze && options.buffers {
        fields.extend(buffer_fields(&timing.io, options.io_timing));
    }
    if options.analyze && options.wal {
        fields.extend(log_fields(&timing.io));
    }
    fields
}

fn detail(key: &str, value: &str) -> PropertyValue {
    match key {
        _ if LISTS.contains(&key) => PropertyValue::Texts(list_items(value)),
        _ if NUMBERS.contains(&key) => PropertyValue::plain(value),
        _ => PropertyValue::text(value),
    }
}

fn title(node: &PlanNode) -> String {
    match &node.op {
        Op::Result(_) => "Result".into(),
        Op::Values(_) => "Values Scan".into(),
        Op::TableScan(n) if n.row.is_some() => "Tid Scan".into(),
        Op::TableScan(n) if !n.ends.is_empty() => "Tid Range Scan".into(),
        Op::TableScan(_) | Op::SystemScan(_) => "Seq Scan".into(),
        Op::IndexScan(n) => match n.arms.first() {
            Some(arm) if n.is_one_scan() => {
                let only = if n.covered.is_some() { " Only" } else { "" };
                format!("Index{only} Scan{} using {}", if n.reverse { " Backward" } else { "" }, quote_ident(&arm.name))
            }
            _ => "Bitmap Heap Scan".into(),
        },
        Op::BitmapScan(_) => "Bitmap Heap Scan".into(),
        Op::FileScan(n) if matches!(n.files, ScannedFiles::Table(_)) => "Foreign Scan".into(),
        Op::FunctionScan(_) | Op::FileScan(_) => "Function Scan".into(),
        Op::JsonTable(_) => "Table Function Scan".into(),
        Op::CteScan { .. } => "CTE Scan".into(),
        Op::WorkTableScan { .. } => "WorkTable Scan".into(),
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
        Op::Sort(n) if n.presorted > 0 => "Incremental Sort".into(),
        Op::Sort(n) => if n.workers > 0 { "Parallel Sort" } else { "Sort" }.into(),
        Op::Distinct(n) if n.sorted => "Unique".into(),
        Op::Distinct(_) => "HashAggregate".into(),
        Op::Limit(_) => "Limit".into(),
        Op::SetOp(n) => format!("HashSetOp {:?}{}", n.operation, if n.all { " All" } else { "" }),
        Op::Append(n) => if n.merge.is_empty() { "Append" } else { "Merge Append" }.into(),
        Op::RecursiveUnion(_) => "Recursive Union".into(),
        Op::LockRows(_) => "LockRows".into(),
        Op::Modify(n) => n.title().into(),
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
        JoinType::NotIn => " Null-Aware Anti",
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
