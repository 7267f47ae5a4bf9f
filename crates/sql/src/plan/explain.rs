//! EXPLAIN: a plan as PostgreSQL prints its own.

use std::fmt::Write;

use super::node::*;
use crate::execute::NodeTiming;
use crate::tree::{Expr, SortGroup, Target};

/// What to print.
#[derive(Clone, Copy, Debug)]
pub struct ExplainOptions {
    pub costs: bool,
    pub verbose: bool,
    pub analyze: bool,
    pub timing: bool,
}

/// `name alias`, when they differ.
pub(super) fn named(name: &str, alias: &str) -> String {
    if name == alias || alias.is_empty() { name.to_string() } else { format!("{name} {alias}") }
}

pub(super) fn conjunction(conditions: &[Expr]) -> String {
    match conditions {
        [one] => text(one),
        many => format!("({})", many.iter().map(text).collect::<Vec<_>>().join(" AND ")),
    }
}

pub(super) fn equalities(keys: &[(Expr, Expr)]) -> String {
    let each: Vec<String> = keys.iter().map(|(a, b)| format!("({} = {})", text(a), text(b))).collect();
    if each.len() == 1 { each.concat() } else { format!("({})", each.join(" AND ")) }
}

pub(super) fn list(exprs: &[Expr]) -> String {
    exprs.iter().map(text).collect::<Vec<_>>().join(", ")
}

pub(super) fn sort_key(groups: &[SortGroup], targets: &[Target]) -> String {
    let mut out = Vec::new();
    for group in groups {
        let Some(target) = targets.iter().find(|t| t.reference == group.reference) else { continue };
        let mut key = text(&target.expr);
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

/// An expression for EXPLAIN. Entries are not named here; the text shows the form of the condition.
fn text(e: &Expr) -> String {
    match e {
        Expr::Var(v) => format!("${}.{}", v.entry, v.column),
        Expr::Const(c) => format!("{:?}", c.value),
        Expr::Param(p) => format!("${}", p.number),
        Expr::Operator(o) => match &o.args[..] {
            [a, b] => format!("({} op {})", text(a), text(b)),
            args => format!("(op {})", list(args)),
        },
        Expr::And(args) => format!("({})", args.iter().map(text).collect::<Vec<_>>().join(" AND ")),
        Expr::Or(args) => format!("({})", args.iter().map(text).collect::<Vec<_>>().join(" OR ")),
        Expr::Not(arg) => format!("(NOT {})", text(arg)),
        Expr::Relabel { arg, .. } => text(arg),
        Expr::NullTest { arg, is_null, .. } => format!("({} IS {}NULL)", text(arg), if *is_null { "" } else { "NOT " }),
        Expr::Function(f) => format!("f({})", list(&f.args)),
        _ => "...".to_string(),
    }
}

/// The lines of EXPLAIN in text format.
pub fn explain(plan: &Plan, options: ExplainOptions, timings: &[NodeTiming]) -> Vec<String> {
    let mut printer = Printer { plan, options, timings, lines: vec![] };
    printer.node(&plan.root, 0, "");
    for cte in &plan.ctes {
        printer.lines.push(format!("  CTE {}", cte.name));
        printer.node(&cte.node, 2, "");
    }
    for subplan in &plan.subplans {
        printer.lines.push(format!("  {}", subplan.name));
        printer.node(&subplan.node, 2, "");
    }
    printer.lines
}

struct Printer<'a> {
    plan: &'a Plan,
    options: ExplainOptions,
    timings: &'a [NodeTiming],
    lines: Vec<String>,
}

impl Printer<'_> {
    fn node(&mut self, node: &PlanNode, depth: usize, relation: &str) {
        let mut line = String::new();
        let indent = if depth == 0 { 0 } else { depth * 6 - 4 };
        line.push_str(&" ".repeat(indent));
        if depth > 0 {
            line.push_str("->  ");
        }
        line.push_str(relation);
        line.push_str(&self.title(node));
        if self.options.costs {
            let e = node.estimate;
            let _ = write!(line, "  (cost={:.2}..{:.2} rows={:.0} width={})", e.startup, e.total, e.rows.max(1.0), e.width);
        }
        if self.options.analyze {
            let t = self.timings.get(node.id).copied().unwrap_or_default();
            if t.loops == 0 {
                line.push_str(" (never executed)");
            } else {
                let ms = |d: std::time::Duration| d.as_secs_f64() * 1000.0 / t.loops as f64;
                let rows = t.rows as f64 / t.loops as f64;
                if self.options.timing {
                    let _ =
                        write!(line, " (actual time={:.3}..{:.3} rows={rows:.2} loops={})", ms(t.startup), ms(t.total), t.loops);
                } else {
                    let _ = write!(line, " (actual rows={rows:.2} loops={})", t.loops);
                }
            }
        }
        self.lines.push(line);
        let detail = " ".repeat(if depth == 0 { 2 } else { depth * 6 + 2 });
        for (key, value) in node.details.iter().filter(|(key, _)| *key != "on") {
            self.lines.push(format!("{detail}{key}: {value}"));
        }
        for child in children(&node.op) {
            self.node(child, depth + 1, "");
        }
    }

    fn title(&self, node: &PlanNode) -> String {
        let on = node.details.iter().find(|(key, _)| *key == "on").map_or(String::new(), |(_, v)| format!(" on {v}"));
        match &node.op {
            Op::Result(_) => "Result".into(),
            Op::Values(_) => "Values Scan".into(),
            Op::TableScan(_) | Op::SystemScan(_) => format!("Seq Scan{on}"),
            Op::IndexScan(n) => match &n.arms[..] {
                [arm] => {
                    format!("Index Scan{} using {}{on}", if n.reverse { " Backward" } else { "" }, arm.name)
                }
                _ => format!("Bitmap Heap Scan{on}"),
            },
            Op::FunctionScan(_) => format!("Function Scan{on}"),
            Op::CteScan { cte } => match self.plan.ctes.get(*cte) {
                Some(_) => format!("CTE Scan{on}"),
                None => "CTE Scan".into(),
            },
            Op::WorkTableScan { .. } => format!("WorkTable Scan{on}"),
            Op::Filter(_) => "Filter".into(),
            Op::Project(_) => "Projection".into(),
            Op::ProjectSet(_) => "ProjectSet".into(),
            Op::HashJoin(n) => format!("Hash{} Join", join_name(n.join)).replace("Hash Join Join", "Hash Join"),
            Op::NestedLoop(n) => match n.join {
                JoinType::Inner => "Nested Loop".into(),
                other => format!("Nested Loop{} Join", join_name(other)),
            },
            Op::Aggregate(n) if n.groups.is_empty() => "Aggregate".into(),
            Op::Aggregate(n) if n.sets.len() > 1 => "MixedAggregate".into(),
            Op::Aggregate(_) => "HashAggregate".into(),
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
}

fn join_name(join: JoinType) -> &'static str {
    match join {
        JoinType::Inner => "",
        JoinType::Left => " Left",
        JoinType::Right => " Right",
        JoinType::Full => " Full",
        JoinType::Semi => " Semi",
        JoinType::Anti => " Anti",
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
        Op::Append(n) => n.iter().collect(),
        Op::RecursiveUnion(n) => vec![&n.base, &n.recursive],
        Op::LockRows(n) => vec![&n.input],
        Op::Modify(n) => n.input().into_iter().collect(),
        _ => vec![],
    }
}
