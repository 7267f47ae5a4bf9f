//! INSERT, UPDATE and DELETE on a simple view are done to the table under it.
//!
//! The table gets the range entry that is changed; an entry of the join kind, in no FROM, gives the view's column names
//! for the table's columns and for the view's expressions.

use std::sync::Arc;

use melba_catalog::{Relation, RelationKind};
use melba_types::{DbError, Oid, Result, err};
use pg_query::protobuf as pb;

use super::range_columns::{apply_aliases, relation_columns};
use super::scope::{NsColumn, NsItem, ViewTarget};
use super::{Analyzer, Context};
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    /// Makes the table under a view the target; 55000 when the view is not simple enough.
    pub fn view_target(&mut self, view: &Arc<Relation>, name: &'p pb::RangeVar, command: Command) -> Result<Arc<Relation>> {
        if command == Command::Merge || view.options.iter().any(|o| o.starts_with("check_option=")) {
            return Err(DbError::unsupported("this change of a view").at(name.location));
        }
        let query = super::expression::analyze_view(self.cx, view)?;
        let table = match base_table(self.cx, &query) {
            Ok(table) => table,
            Err(reason) => return Err(not_updatable(view, command, reason)),
        };
        let entry = self.level().range_table.len();
        let inner = match query.from.first() {
            Some(FromItem::Range(i)) => *i,
            _ => return Err(DbError::internal("simple view without a table")),
        };
        let shown: Arc<str> = name.alias.as_ref().map_or(name.relname.as_str(), |a| &a.aliasname).into();
        self.add_entry(RangeEntry {
            kind: RangeKind::Relation { oid: table.oid, inherit: true, sample: None },
            alias: Some(shown.clone()),
            name: shown.clone(),
            columns: relation_columns(&table),
            ..RangeEntry::default()
        });
        let filter = query.filter.clone().map(|e| moved(e, inner, entry));
        let merged: Vec<Expr> = query.targets.iter().filter(|t| !t.junk).map(|t| moved(t.expr.clone(), inner, entry)).collect();
        let mut columns = relation_columns(view);
        if let Some(alias) = &name.alias {
            apply_aliases(&mut columns, &alias.colnames, &shown)?;
        }
        let target = ViewTarget { view: view.clone(), columns: plain_columns(&merged), filter, command };
        let numbers = target.columns.iter().map(|c| c.map_or(0, |i| i as i16 + 1));
        self.level_mut().range_table[entry].required.through = Some((view.oid, numbers.collect()));
        let item = self.view_columns(shown, merged, columns);
        let level = self.level_mut();
        level.target = Some(item);
        level.view_target = Some(target);
        Ok(table)
    }

    /// An entry of the join kind, whose columns are these expressions, and its names.
    fn view_columns(&mut self, shown: Arc<str>, merged: Vec<Expr>, columns: Vec<OutputColumn>) -> NsItem {
        let entry = self.level().range_table.len();
        let ns_columns = merged.iter().enumerate().map(|(i, e)| {
            let (at, column) = match e {
                Expr::Var(v) => (v.entry, v.column),
                _ => (entry, i as i16 + 1),
            };
            NsColumn { entry: at, column, ty: e.ty(), typmod: e.typmod(), collation: e.collation(), merged_away: false }
        });
        let ns_columns: Arc<[NsColumn]> = ns_columns.collect();
        self.add_entry(RangeEntry {
            kind: RangeKind::Join { kind: JoinKind::Inner, merged, using_columns: 0, using_alias: None },
            alias: Some(shown.clone()),
            name: shown.clone(),
            columns,
            in_from: false,
            ..RangeEntry::default()
        });
        let mut item = NsItem::new(entry, shown);
        item.columns = Some(ns_columns);
        item
    }

    /// The names of a row that was proposed for a view, of whose table `excluded` is.
    pub fn excluded_of_view(&mut self, excluded: usize) -> Result<NsItem> {
        let target = self.level().target.as_ref().map(|item| &self.level().range_table[item.entry]);
        let Some(RangeEntry { kind: RangeKind::Join { merged, .. }, columns, .. }) = target else {
            return Err(DbError::internal("a view's target without its columns"));
        };
        let (columns, merged) = (columns.clone(), merged.clone());
        let table = self.target_entry().unwrap_or_default();
        let merged = merged.into_iter().map(|e| moved(e, table, excluded)).collect();
        Ok(self.view_columns("excluded".into(), merged, columns))
    }

    /// Puts what columns of views stand for in their place.
    pub fn expand_view_columns(&self, e: &mut Expr) {
        let table = &self.level().range_table;
        e.visit_mut(0, &mut |e, level| {
            let Expr::Var(v) = e else { return true };
            if v.levels_up != level {
                return true;
            }
            let RangeKind::Join { merged, .. } = &table[v.entry].kind else { return true };
            let mut meaning = match v.column.checked_sub(1).and_then(|at| merged.get(at as usize)) {
                Some(meaning) => meaning.clone(),
                None => Expr::Row(Box::new(RowExpr {
                    fields: merged.clone(),
                    names: table[v.entry].columns.iter().map(|c| c.name.clone()).collect(),
                    ty: v.ty,
                    explicit: false,
                    location: -1,
                })),
            };
            meaning.shift_levels(level, 0);
            *e = meaning;
            false
        });
    }

    /// The range entry that the statement changes.
    pub fn target_entry(&self) -> Option<usize> {
        let level = self.level();
        let item = level.target.as_ref()?;
        Some(if level.view_target.is_some() { item.entry - 1 } else { item.entry })
    }

    /// The table's column that an assignment to a view's column means.
    pub fn view_column(&self, name: &str, location: i32) -> Result<Option<usize>> {
        let Some(target) = &self.level().view_target else { return Ok(None) };
        let view = &target.view.name;
        let Some(i) = target.view.columns.iter().position(|c| *c.name == *name) else {
            return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{view}\" does not exist").at(location));
        };
        match target.columns.get(i).copied().flatten() {
            Some(index) => Ok(Some(index)),
            None => {
                let does = if target.command == Command::Insert { "insert into" } else { "update" };
                Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot {does} column \"{name}\" of view \"{view}\"")
                    .detail("View columns that are not columns of their base relation are not updatable."))
            }
        }
    }

    /// Adds the view's condition to that of an UPDATE or DELETE.
    pub fn add_view_filter(&mut self, q: &mut Query) -> Result<()> {
        let Some(target) = &self.level().view_target else { return Ok(()) };
        let Some(filter) = target.filter.clone() else { return Ok(()) };
        if target.view.has_option("security_barrier") {
            if let Some(entry) = self.target_entry() {
                self.level_mut().range_table[entry].security.push(filter);
            }
            return Ok(());
        }
        q.filter = Some(match q.filter.take() {
            Some(own) => Expr::And(vec![filter, own]),
            None => filter,
        });
        Ok(())
    }
}

/// The same of another entry.
fn moved(mut e: Expr, from: usize, to: usize) -> Expr {
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level
            && v.entry == from
        {
            v.entry = to;
        }
        true
    });
    e
}

/// For each expression the index of the table's column that it is, if it is one.
fn plain_columns(exprs: &[Expr]) -> Vec<Option<usize>> {
    let plain = |e: &Expr| match e {
        Expr::Var(v) if v.column > 0 => Some(v.column as usize - 1),
        _ => None,
    };
    exprs.iter().map(plain).collect()
}

fn not_updatable(view: &Relation, command: Command, reason: &str) -> DbError {
    let name = &view.name;
    let (does, doing, event) = match command {
        Command::Insert => ("insert into", "inserting into", "INSERT"),
        Command::Update => ("update", "updating", "UPDATE"),
        _ => ("delete from", "deleting from", "DELETE"),
    };
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot {does} view \"{name}\"").detail(reason).hint(format!(
        "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
    ))
}

/// The only table of a view that can be changed through it, or why it cannot.
fn base_table(cx: &Context<'_>, q: &Query) -> Result<Arc<Relation>, &'static str> {
    if !matches!(q.distinct, Distinct::None) {
        return Err("Views containing DISTINCT are not automatically updatable.");
    }
    if !q.group_by.is_empty() || q.grouping_sets.is_some() {
        return Err("Views containing GROUP BY are not automatically updatable.");
    }
    if q.having.is_some() {
        return Err("Views containing HAVING are not automatically updatable.");
    }
    if q.set_operation.is_some() {
        return Err("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
    }
    if !q.ctes.is_empty() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if q.limit.is_some() || q.offset.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    if q.has_aggregates {
        return Err("Views that return aggregate functions are not automatically updatable.");
    }
    if q.has_windows {
        return Err("Views that return window functions are not automatically updatable.");
    }
    if q.has_set_returning {
        return Err("Views that return set-returning functions are not automatically updatable.");
    }
    const SINGLE: &str = "Views that do not select from a single table or view are not automatically updatable.";
    let [FromItem::Range(entry)] = q.from[..] else { return Err(SINGLE) };
    let oid = match &q.range_table[entry].kind {
        RangeKind::Relation { oid, sample: None, .. } => *oid,
        RangeKind::Relation { .. } => return Err("Views containing TABLESAMPLE are not automatically updatable."),
        _ => Oid::INVALID,
    };
    let table = cx.catalog.relation(oid).ok_or(SINGLE)?;
    match table.kind {
        RelationKind::Table | RelationKind::PartitionedTable => Ok(table.clone()),
        _ => Err(SINGLE),
    }
}
