//! INSERT, UPDATE and DELETE, as in bodies of functions and in rules.

use melba_catalog::Relation;

use super::{INDENT_STANDARD, Printer};
use melba_tree::*;

/// The clause of a query that cannot be printed; `None`: all can.
pub fn unprintable(query: &Query) -> Option<&'static str> {
    let is_partial = |t: &Target| {
        t.expr.any(&mut |e| match e {
            Expr::FieldStore { .. } => true,
            Expr::Subscript(s) => s.assign.is_some(),
            Expr::Sublink(s) => s.kind == SublinkKind::MultiExpr,
            _ => false,
        })
    };
    let conflict = query.insert.as_ref().and_then(|i| i.on_conflict.as_ref()).and_then(|c| c.update.as_ref());
    let assigned = conflict.map_or(&[][..], |u| &u.targets);
    match query.command {
        Command::Select => {}
        Command::Merge => return Some("MERGE"),
        _ if query.targets.iter().chain(assigned).any(is_partial) => return Some("an assignment to a part of a column"),
        _ if query.result.is_some_and(|r| !query.range_table[r].required.through.is_empty()) => {
            return Some("a change of a view");
        }
        _ => {}
    }
    let mut found = None;
    query.subqueries(&mut |q| found = found.or_else(|| unprintable(q)));
    query.visit(0, &mut |e, _| {
        if let Expr::Sublink(s) = e {
            found = found.or_else(|| unprintable(&s.query));
        }
        true
    });
    found
}

pub(super) fn modify<'a>(printer: &mut Printer<'a>, query: &'a Query) {
    printer.indent += INDENT_STANDARD;
    printer.put(" ");
    match query.command {
        Command::Insert => insert(printer, query),
        Command::Update => {
            printer.put("UPDATE ");
            target_table(printer, query, " ");
            printer.put(" SET ");
            assignments(printer, query, &query.targets);
            printer.from_clause(query, " FROM ");
            changed_rows(printer, query);
        }
        _ => {
            printer.put("DELETE FROM ");
            target_table(printer, query, " ");
            printer.from_clause(query, " USING ");
            changed_rows(printer, query);
        }
    }
    if !query.returning.is_empty() {
        printer.keyword(" RETURNING", -INDENT_STANDARD, INDENT_STANDARD, 1);
        printer.target_items(&query.returning);
    }
}

fn changed_rows<'a>(printer: &mut Printer<'a>, query: &'a Query) {
    if let Some(filter) = &query.filter {
        printer.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
        printer.expr(filter, false);
    }
}

fn target_relation<'a>(printer: &Printer<'a>, query: &Query) -> Option<&'a Relation> {
    match &query.range_table.get(query.result?)?.kind {
        // A view, whose rules or triggers change something.
        RangeKind::Relation { oid, .. } | RangeKind::Subquery { view: oid, .. } => printer.catalog.relation(*oid).map(|r| &**r),
        _ => None,
    }
}

/// The table with its alias, after `before`.
fn target_table<'a>(printer: &mut Printer<'a>, query: &'a Query, before: &str) {
    let (Some(relation), Some(at)) = (target_relation(printer, query), query.result) else { return };
    if matches!(query.range_table[at].kind, RangeKind::Relation { inherit: false, .. }) && query.command != Command::Insert {
        printer.put("ONLY ");
    }
    let name = printer.relation_name(relation);
    printer.put(&name);
    let alias = printer.entry_name(0, at);
    if query.range_table[at].alias.is_some() || *alias != *relation.name {
        printer.put(before);
        printer.ident(&alias);
    }
}

fn column(printer: &mut Printer<'_>, query: &Query, number: i16) {
    let found = target_relation(printer, query).and_then(|r| r.columns.get(number as usize - 1));
    if let Some(column) = found {
        printer.ident(&column.name);
    }
}

fn assignments<'a>(printer: &mut Printer<'a>, query: &'a Query, targets: &'a [Target]) {
    for (i, target) in targets.iter().enumerate() {
        if i > 0 {
            printer.put(", ");
        }
        column(printer, query, target.column);
        printer.put(" = ");
        printer.expr(&target.expr, false);
    }
}

fn insert<'a>(printer: &mut Printer<'a>, query: &'a Query) {
    let Some(info) = &query.insert else { return };
    printer.put("INSERT INTO ");
    target_table(printer, query, " AS ");
    printer.put(" ");
    if !info.written.is_empty() {
        printer.put("(");
        for (i, number) in info.written.iter().enumerate() {
            if i > 0 {
                printer.put(", ");
            }
            column(printer, query, *number);
        }
        printer.put(") ");
    }
    match info.overriding {
        Overriding::None => {}
        Overriding::User => printer.put("OVERRIDING USER VALUE "),
        Overriding::System => printer.put("OVERRIDING SYSTEM VALUE "),
    }
    match info.source.map(|s| &query.range_table[s].kind) {
        Some(RangeKind::Subquery { query, .. }) => {
            printer.hide_names = true;
            printer.query(query);
        }
        Some(RangeKind::Values { rows }) => printer.values(rows),
        _ if info.written.is_empty() => printer.put("DEFAULT VALUES"),
        _ => {
            printer.keyword("VALUES (", -INDENT_STANDARD, INDENT_STANDARD, 2);
            for (i, number) in info.written.iter().enumerate() {
                if i > 0 {
                    printer.put(", ");
                }
                if let Some(target) = query.targets.iter().find(|t| t.column == *number) {
                    printer.expr(&target.expr, false);
                }
            }
            printer.put(")");
        }
    }
    if let Some(conflict) = &info.on_conflict {
        on_conflict(printer, query, conflict);
    }
}

fn on_conflict<'a>(printer: &mut Printer<'a>, query: &'a Query, conflict: &'a OnConflict) {
    printer.put(" ON CONFLICT");
    if let Some(constraint) = printer.catalog.constraint(conflict.constraint) {
        printer.put(" ON CONSTRAINT ");
        printer.ident(&constraint.name);
    } else if !conflict.inference.is_empty() {
        let qualify = std::mem::replace(&mut printer.qualify, false);
        printer.put("(");
        for (i, (element, (collation, class))) in conflict.inference.iter().zip(&conflict.inference_by).enumerate() {
            printer.put(if i == 0 { "" } else { ", " });
            printer.expr(element, false);
            if collation.is_valid() {
                printer.put(" COLLATE ");
                printer.collation_name(*collation);
            }
            printer.operator_class(*class);
        }
        printer.put(")");
        if let Some(filter) = &conflict.inference_filter {
            printer.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
            printer.expr(filter, false);
        }
        printer.qualify = qualify;
    }
    let Some(update) = &conflict.update else { return printer.put(" DO NOTHING") };
    printer.put(" DO UPDATE SET ");
    assignments(printer, query, &update.targets);
    if let Some(filter) = &update.filter {
        printer.keyword(" WHERE ", -INDENT_STANDARD, INDENT_STANDARD, 1);
        printer.expr(filter, false);
    }
}
