//! INSERT, and assignment to columns.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::assignment::{Assigned, assigned_part, assigned_target};
use super::scope::ExprKind;
use super::values::column_var;
use super::{assignment, collate, cte, nodes, on_conflict, returning, view_target};
use melba_tree::*;

pub fn insert_statement<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::InsertStmt) -> Result<Query> {
    let mut q = Query::new(Command::Insert);
    q.recursive = cte::with_clause(analyzer, s.with_clause.as_ref())?;
    let overriding = match pb::OverridingKind::try_from(s.r#override) {
        Ok(pb::OverridingKind::OverridingUserValue) => Overriding::User,
        Ok(pb::OverridingKind::OverridingSystemValue) => Overriding::System,
        _ => Overriding::None,
    };
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("INSERT without a table"))?;
    let select = super::set_operation::as_select(s.select_stmt.as_deref());
    // The source is analyzed before the target is visible to anything, and after the target's own errors.
    let source = match select {
        Some(select) if is_general(select) => {
            assignment::open_target(analyzer, name)?;
            Some(insert_source(analyzer, s.select_stmt.as_deref(), select)?)
        }
        _ => None,
    };
    let relation = assignment::target_relation(analyzer, name, Command::Insert, &[Command::Insert])?;
    let width = match (&source, select) {
        (Some(query), _) => query.output_columns().len(),
        (None, select) => select.and_then(|s| s.values_lists.first()).map_or(0, |list| nodes::list(list).len()),
    };
    let columns = insert_columns(analyzer, &relation, &s.cols, width)?;
    let mut info = InsertInfo { source: None, written: Vec::new(), overriding, on_conflict: None };
    match (source, select) {
        (Some(query), _) => {
            let (entry, values) = source_entry(analyzer, query);
            info.source = Some(entry);
            q.from.push(FromItem::Range(entry));
            q.targets = insert_row(analyzer, values, &relation, &columns, s, &[])?;
            analyzer.type_source_parameters(entry);
        }
        (None, Some(select)) if select.values_lists.len() > 1 => {
            let (entry, targets) = insert_values(analyzer, select, &relation, &columns, s, overriding)?;
            info.source = Some(entry);
            q.from.push(FromItem::Range(entry));
            q.targets = targets;
        }
        (None, Some(select)) => {
            let list = select.values_lists.first().map_or(&[][..], nodes::list);
            let row = analyzer.with_kind(ExprKind::ValuesSingle, |a| values_row(a, list))?;
            q.targets = insert_row(analyzer, row, &relation, &columns, s, list)?;
        }
        (None, None) => {}
    }
    info.written = q.targets.iter().map(|t| t.column).collect();
    q.targets = complete_insert(analyzer, std::mem::take(&mut q.targets), &relation, overriding)?;
    let target = analyzer.level().target.clone();
    q.result = analyzer.target_entry();
    if let Some(clause) = &s.on_conflict_clause {
        info.on_conflict = Some(on_conflict::on_conflict(analyzer, clause, &relation)?);
    }
    q.insert = Some(info);
    if s.returning_clause.is_some() {
        if let Some(item) = target {
            analyzer.level_mut().namespace.clear();
            analyzer.level_mut().namespace.push(item);
        }
        returning::returning_clause(analyzer, s.returning_clause.as_ref(), &mut q, ExprKind::Returning)?;
    }
    collate::assign_query(analyzer.cx(), &mut q)?;
    Ok(q)
}

fn insert_source<'p>(analyzer: &mut Analyzer<'_, 'p>, node: Option<&'p pb::Node>, _select: &'p pb::SelectStmt) -> Result<Query> {
    let node = node.and_then(|n| n.node.as_ref()).ok_or_else(|| DbError::internal("INSERT without a source"))?;
    let rows = super::rule::take_rows(analyzer);
    analyzer.with_level(|a| {
        a.level_mut().is_insert_select = true;
        if let Some(rows) = rows {
            super::rule::put_rows(a, rows);
        }
        a.statement_here(node)
    })
}

/// The subquery's range entry and, for each of its columns, the expression to assign.
fn source_entry(analyzer: &mut Analyzer<'_, '_>, query: Query) -> (usize, Vec<Expr>) {
    let columns = query.output_columns();
    let literals: Vec<Option<Expr>> = query
        .targets
        .iter()
        .filter(|t| !t.junk)
        .map(|t| match &t.expr {
            e @ (Expr::Const(_) | Expr::Param(_)) if e.ty() == oids::UNKNOWN => Some(e.clone()),
            _ => None,
        })
        .collect();
    let locations: Vec<i32> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.location()).collect();
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID },
        alias: None,
        name: "*SELECT*".into(),
        columns: columns.clone(),
        in_from: false,
        ..RangeEntry::default()
    });
    let var = |(i, c): (usize, &OutputColumn)| {
        let mut var = column_var(entry, i, c);
        if let Expr::Var(v) = &mut var {
            v.location = locations[i];
        }
        literals[i].clone().unwrap_or(var)
    };
    (entry, columns.iter().enumerate().map(var).collect())
}

/// The columns an INSERT names, or all of them. `width`: how many values there are, as far as is known.
pub fn insert_columns<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    relation: &Relation,
    list: &'p [pb::Node],
    width: usize,
) -> Result<Vec<Assigned<'p>>> {
    if list.is_empty()
        && let Some(target) = &analyzer.level().view_target
    {
        let names: Vec<_> = target.view.columns.iter().map(|c| c.name.clone()).collect();
        let column = |name: Arc<str>| {
            let index = view_target::view_column(analyzer, &name, -1)?.unwrap_or(0);
            Ok(Assigned { index, name: "", indirection: &[], location: -1 })
        };
        // A column without a value need not be a column of the table.
        let columns =
            names.into_iter().enumerate().filter(|(at, name)| *at < width || view_target::is_assignable(analyzer, name));
        return columns.map(|(_, name)| name).collect::<Vec<_>>().into_iter().map(column).collect();
    }
    if list.is_empty() {
        let visible = relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
        return Ok(visible.map(|(index, _)| Assigned { index, name: "", indirection: &[], location: -1 }).collect());
    }
    let mut columns: Vec<Assigned<'p>> = Vec::with_capacity(list.len());
    for node in list {
        let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
        let index = assignment::assigned_column(analyzer, relation, &target.name, target.location)?;
        let whole = target.indirection.is_empty();
        // Two columns of a view may be one of its table.
        let is_same = |c: &Assigned<'p>| c.index == index && c.name == target.name;
        if columns.iter().any(|c| is_same(c) && (whole || c.indirection.is_empty())) {
            return Err(err!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", target.name).at(target.location));
        }
        columns.push(Assigned { index, name: &target.name, indirection: &target.indirection, location: target.location });
    }
    Ok(columns)
}

/// A row of VALUES in which DEFAULT is allowed.
pub fn values_row<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node]) -> Result<Vec<Expr>> {
    if !list.iter().any(nodes::is_default) {
        return analyzer.expression_list(list);
    }
    let mut row = Vec::with_capacity(list.len());
    for node in list {
        if nodes::is_default(node) {
            row.push(Expr::Default { ty: oids::UNKNOWN, typmod: -1 });
        } else {
            row.extend(analyzer.expression_list(std::slice::from_ref(node))?);
        }
    }
    Ok(row)
}

fn check_row_width<'p>(row: &[Expr], columns: &[Assigned<'p>], s: &pb::InsertStmt, list: &[pb::Node]) -> Result<()> {
    if row.len() > columns.len() {
        // DEFAULT has no position in the expression.
        let written = if list.len() == row.len() { nodes::location(&list[columns.len()]) } else { -1 };
        let location = if written >= 0 { written } else { row[columns.len()].location() };
        return Err(err!(SYNTAX_ERROR, "INSERT has more expressions than target columns").at(location));
    }
    if !s.cols.is_empty() && row.len() < columns.len() {
        let e = err!(SYNTAX_ERROR, "INSERT has more target columns than expressions").at(columns[row.len()].location);
        let one_row = matches!(row, [Expr::Row(r)] if r.fields.len() == columns.len());
        return Err(if one_row {
            e.hint(
                "The insertion source is a row expression containing the same number of columns expected by the \
                     INSERT. Did you accidentally use extra parentheses?",
            )
        } else {
            e
        });
    }
    Ok(())
}

fn insert_row<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    row: Vec<Expr>,
    relation: &Arc<Relation>,
    columns: &[Assigned<'p>],
    s: &pb::InsertStmt,
    list: &[pb::Node],
) -> Result<Vec<Target>> {
    check_row_width(&row, columns, s, list)?;
    let mut targets: Vec<Target> = Vec::with_capacity(relation.columns.len());
    for (e, column) in row.into_iter().zip(columns) {
        let previous = targets.iter().position(|t| t.column as usize == column.index + 1);
        if previous.is_some() && column.indirection.is_empty() {
            return Err(err!(SYNTAX_ERROR, "multiple assignments to same column \"{}\"", relation.columns[column.index].name));
        }
        let base = previous.map(|i| targets.remove(i).expr);
        let expr = assignment::assigned_expression(analyzer, e, relation, column, base, true)?;
        targets.push(assigned_target(relation, column.index, expr));
    }
    Ok(targets)
}

/// Several rows of VALUES: a range entry whose columns have the target's types.
fn insert_values<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    select: &'p pb::SelectStmt,
    relation: &Arc<Relation>,
    columns: &[Assigned<'p>],
    s: &pb::InsertStmt,
    overriding: Overriding,
) -> Result<(usize, Vec<Target>)> {
    let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(select.values_lists.len());
    let mut width = None;
    for list in &select.values_lists {
        let items = nodes::list(list);
        let row = analyzer.with_kind(ExprKind::Values, |a| values_row(a, items))?;
        if *width.get_or_insert(row.len()) != row.len() {
            return Err(
                err!(SYNTAX_ERROR, "VALUES lists must all be the same length").at(items.first().map_or(-1, nodes::location))
            );
        }
        if let Some(e) = row.iter().find(|e| super::coerce::returns_set(e)) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "set-returning functions are not allowed in VALUES").at(e.location()));
        }
        check_row_width(&row, columns, s, items)?;
        let mut out = Vec::with_capacity(row.len());
        for (e, column) in row.into_iter().zip(columns) {
            let is_default = matches!(e, Expr::Default { .. });
            assignment::check_assignable(relation, column.index, is_default, overriding)?;
            let plain = Assigned { index: column.index, name: column.name, indirection: &[], location: column.location };
            let e = match is_default || column.indirection.is_empty() {
                true => assignment::assigned_expression(analyzer, e, relation, &plain, None, true)?,
                // As the part's type; all rows have the same one.
                false => assigned_part(assignment::assigned_expression(analyzer, e, relation, column, None, true)?),
            };
            let described = &relation.columns[column.index];
            out.push(match e {
                // The column gets its own default beside this one, which must not take another number from the sequence.
                Expr::Default { .. } if overriding == Overriding::User && described.identity != 0 => {
                    Expr::null(described.ty, described.typmod, described.collation)
                }
                Expr::Default { .. } => assignment::default_or_null(analyzer, relation, column.index)?,
                e => e,
            });
        }
        rows.push(out);
    }
    for row in &mut rows {
        super::collate::assign_list(analyzer.cx(), row)?;
    }
    let mut shape = Vec::with_capacity(columns.len());
    for (i, e) in rows.first().map_or(&[][..], |r| r).iter().enumerate() {
        let own = columns[i].indirection.is_empty();
        let c = &relation.columns[columns[i].index];
        let (ty, typmod) = if own { (c.ty, c.typmod) } else { (e.ty(), e.typmod()) };
        let collation = if own { c.collation } else { e.collation() };
        shape.push(OutputColumn { name: format!("column{}", i + 1).into(), ty, typmod, collation });
    }
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Values { rows },
        alias: None,
        name: "*VALUES*".into(),
        columns: shape.clone(),
        in_from: false,
        ..RangeEntry::default()
    });
    let vars: Vec<Expr> = shape.iter().enumerate().map(|(i, c)| column_var(entry, i, c)).collect();
    let targets = insert_row(analyzer, vars, relation, columns, s, &[])?;
    Ok((entry, targets))
}

/// Adds defaults, checks generated and identity columns, orders targets by column.
pub fn complete_insert(
    analyzer: &mut Analyzer<'_, '_>,
    targets: Vec<Target>,
    relation: &Arc<Relation>,
    overriding: Overriding,
) -> Result<Vec<Target>> {
    view_target::refuse_blocked_defaults(analyzer)?;
    let mut given: Vec<Option<Target>> = vec![None; relation.columns.len()];
    for target in targets {
        let index = target.column as usize - 1;
        given[index] = Some(target);
    }
    let mut out = Vec::with_capacity(given.len());
    for (index, target) in given.into_iter().enumerate() {
        let c = &relation.columns[index];
        if c.dropped {
            continue;
        }
        let from_values = target.as_ref().is_some_and(|t| matches!(&t.expr, Expr::Var(_)))
            && analyzer.level().range_table.iter().any(|e| matches!(e.kind, RangeKind::Values { .. }));
        let mut target = match target {
            Some(t) if matches!(t.expr, Expr::Default { .. }) => None,
            Some(t) => {
                if !from_values {
                    assignment::check_assignable(relation, index, false, overriding)?;
                }
                Some(t)
            }
            None => None,
        };
        if overriding == Overriding::User && c.identity != 0 {
            target = None;
        }
        let target = match target {
            Some(t) => Some(t),
            None => assignment::inserted_default(analyzer, relation, index)?.map(|e| assigned_target(relation, index, e)),
        };
        out.extend(target);
    }
    Ok(out)
}

/// A source that is more than VALUES of one or several rows.
fn is_general(s: &pb::SelectStmt) -> bool {
    s.values_lists.is_empty()
        || !s.sort_clause.is_empty()
        || s.limit_offset.is_some()
        || s.limit_count.is_some()
        || !s.locking_clause.is_empty()
        || s.with_clause.is_some()
}
