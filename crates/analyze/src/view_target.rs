//! INSERT, UPDATE, DELETE and MERGE on a simple view change the table under it.
//!
//! The table gets the range entry that is changed; an entry of the join kind, in no FROM, has the view's column names for the
//! table's columns and for the view's expressions. A view in it whose triggers do what the statement says is such a table.

use std::sync::Arc;

use melba_catalog::{Relation, RelationKind};
use melba_types::{DbError, Result, err};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::context::Context;
use super::range_columns::{apply_aliases, relation_columns};
use super::scope::{Layer, NsColumn, NsItem, ViewTarget};
use super::updatable::{NotUpdatable, Updatable, has_triggers, unchangeable};
use melba_tree::*;

/// Makes the table under a view the target. `commands`: those of MERGE's actions, else the command.
///
/// # Errors
/// 55000 when the view is not simple enough.
pub fn open_view<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    view: &Arc<Relation>,
    name: &'p pb::RangeVar,
    command: Command,
    commands: &[Command],
) -> Result<Arc<Relation>> {
    let found = match Updatable::of(analyzer.cx(), view, command != Command::Delete, commands) {
        Ok(found) => found,
        Err(NotUpdatable::Because(view, reason)) => {
            // The first that nothing does.
            let lacks = |command: &&Command| !has_triggers(analyzer.cx(), &view, &[**command]);
            let refused = commands.iter().find(lacks).copied().unwrap_or(command);
            return Err(not_updatable(&view, refused, command == Command::Merge).detail(reason));
        }
        Err(NotUpdatable::Rules) => {
            return Err(DbError::unsupported("changing a view over a view that has conditional rules or DO ALSO rules only"));
        }
        Err(NotUpdatable::Failed(e)) => return Err(e),
    };
    if found.table.foreign.is_some() {
        return Err(unchangeable(analyzer.cx(), &found.table, command));
    }
    if command == Command::Merge && found.table.kind == RelationKind::View {
        super::updatable::refuse_merge(analyzer.cx(), &found.table)?;
    }
    refuse_triggers(analyzer.cx(), &found, command, commands)?;
    let Updatable { table, columns: merged, mut layers } = found;
    let entry = analyzer.level().range_table.len();
    let shown: Arc<str> = name.alias.as_ref().map_or(name.relname.as_str(), |a| &a.aliasname).into();
    let kind = match table.kind {
        RelationKind::View if command != Command::Insert => {
            let query = super::expression::analyze_view(analyzer.cx(), &table)?;
            RangeKind::Subquery { query: Box::new(query), view: table.oid }
        }
        _ => RangeKind::Relation { oid: table.oid, inherit: true, sample: None },
    };
    analyzer.add_entry(RangeEntry {
        kind,
        alias: Some(shown.clone()),
        name: shown.clone(),
        columns: relation_columns(&table),
        ..RangeEntry::default()
    });
    let merged: Vec<Expr> = merged.into_iter().map(|e| moved(e, 0, entry)).collect();
    for layer in &mut layers {
        layer.filter = layer.filter.take().map(|e| moved(e, 0, entry));
    }
    let mut columns = relation_columns(view);
    if let Some(alias) = &name.alias {
        apply_aliases(&mut columns, &alias.colnames, &shown)?;
    }
    let number = |c: &Result<usize, _>| c.as_ref().map_or(0, |at| *at as i16 + 1);
    let through = layers.iter().map(|layer| (layer.view.oid, layer.columns.iter().map(number).collect()));
    analyzer.level_mut().range_table[entry].required.through = through.collect();
    let item = view_columns(analyzer, shown, merged, columns);
    let level = analyzer.level_mut();
    level.target = Some(item);
    level.view_target = Some(ViewTarget { view: view.clone(), layers, command });
    Ok(table)
}

/// # Errors
/// 0A000 for MERGE into a view whose triggers do only some of its actions; and for one whose triggers another view would have to
/// hide rows from.
fn refuse_triggers(cx: &Context<'_>, found: &Updatable, command: Command, commands: &[Command]) -> Result<()> {
    let has_some = |layer: &&Layer| commands.iter().any(|command| has_triggers(cx, &layer.view, &[*command]));
    if let Some(layer) = found.layers.iter().find(has_some) {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot merge into view \"{}\"", layer.view.name)
            .detail("MERGE is not supported for views with INSTEAD OF triggers for some actions but not all.")
            .hint("To enable merging into the view, either provide a full set of INSTEAD OF triggers or drop the existing INSTEAD OF triggers."));
    }
    let hides =
        |layer: &Layer| layer.filter.is_some() && (command == Command::Merge || layer.view.has_option("security_barrier"));
    match found.table.kind == RelationKind::View && command != Command::Insert && found.layers.iter().any(hides) {
        true => Err(DbError::unsupported("MERGE or security_barrier of a view with WHERE over a view with INSTEAD OF triggers")),
        false => Ok(()),
    }
}

/// An entry of the join kind, whose columns are these expressions, and its names.
fn view_columns(analyzer: &mut Analyzer<'_, '_>, shown: Arc<str>, merged: Vec<Expr>, columns: Vec<OutputColumn>) -> NsItem {
    let entry = analyzer.level().range_table.len();
    let ns_columns = merged.iter().enumerate().map(|(i, e)| {
        let (at, column) = match e {
            Expr::Var(v) => (v.entry, v.column),
            _ => (entry, i as i16 + 1),
        };
        NsColumn { entry: at, column, ty: e.ty(), typmod: e.typmod(), collation: e.collation(), merged_away: false }
    });
    let ns_columns: Arc<[NsColumn]> = ns_columns.collect();
    analyzer.add_entry(RangeEntry {
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
pub fn excluded_of_view(analyzer: &mut Analyzer<'_, '_>, excluded: usize) -> Result<NsItem> {
    let target = analyzer.level().target.as_ref().map(|item| &analyzer.level().range_table[item.entry]);
    let Some(RangeEntry { kind: RangeKind::Join { merged, .. }, columns, .. }) = target else {
        return Err(DbError::internal("a view's target without its columns"));
    };
    let (columns, merged) = (columns.clone(), merged.clone());
    let table = analyzer.target_entry().unwrap_or_default();
    let merged = merged.into_iter().map(|e| moved(e, table, excluded)).collect();
    Ok(view_columns(analyzer, "excluded".into(), merged, columns))
}

/// Replaces columns of views by their expressions.
pub fn expand_view_columns(analyzer: &Analyzer<'_, '_>, e: &mut Expr) {
    let table = &analyzer.level().range_table;
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

/// The table's column of an assignment to a view's column.
pub fn view_column(analyzer: &Analyzer<'_, '_>, name: &str, location: i32) -> Result<Option<usize>> {
    let Some(target) = &analyzer.level().view_target else { return Ok(None) };
    let view = &target.view.name;
    let Some(i) = target.view.columns.iter().position(|c| *c.name == *name) else {
        return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{view}\" does not exist").at(location));
    };
    match &target.layers[0].columns[i] {
        Ok(index) => Ok(Some(*index)),
        Err(blocked) => {
            let does = match target.command {
                Command::Insert => "insert into",
                Command::Merge => "merge into",
                _ => "update",
            };
            Err(blocked.error(does))
        }
    }
}

pub fn is_assignable(analyzer: &Analyzer<'_, '_>, name: &str) -> bool {
    matches!(view_column(analyzer, name, -1), Ok(Some(_)))
}

/// # Errors
/// 0A000 for a column with a default of the view's own that nothing can be assigned to.
pub fn refuse_blocked_defaults(analyzer: &Analyzer<'_, '_>) -> Result<()> {
    let layers = analyzer.level().view_target.iter().flat_map(|target| &target.layers);
    let blocked = layers.flat_map(|layer| layer.columns.iter().zip(layer.view.columns.iter()));
    match blocked.filter(|(_, c)| c.default.is_some()).find_map(|(column, _)| column.as_ref().err()) {
        Some(blocked) => Err(blocked.error("insert into")),
        None => Ok(()),
    }
}

/// Adds the conditions of the view, and of those in it, to the rows that an UPDATE, DELETE or MERGE finds.
pub fn add_view_filter(analyzer: &mut Analyzer<'_, '_>, q: &mut Query) -> Result<()> {
    let (Some(target), Some(entry)) = (&analyzer.level().view_target, analyzer.target_entry()) else { return Ok(()) };
    let is_merge = target.command == Command::Merge;
    let (mut hidden, mut plain) = (Vec::new(), Vec::new());
    for layer in target.layers.iter().rev() {
        // A row that is not visible cannot be matched by MERGE.
        let list = if is_merge || layer.view.has_option("security_barrier") { &mut hidden } else { &mut plain };
        list.extend(layer.filter.clone());
    }
    analyzer.level_mut().range_table[entry].security.extend(hidden);
    if !plain.is_empty() {
        plain.extend(q.filter.take());
        q.filter = Some(if plain.len() == 1 { plain.remove(0) } else { Expr::And(plain) });
    }
    Ok(())
}

/// Adds the checks of WITH CHECK OPTION for rows that are written.
pub fn add_view_checks(analyzer: &Analyzer<'_, '_>, q: &mut Query) {
    let Some(target) = analyzer.level().view_target.as_ref().filter(|_| q.command != Command::Delete) else { return };
    let mut is_cascaded = false;
    for layer in &target.layers {
        let option = layer.view.options.iter().find_map(|o| o.strip_prefix("check_option="));
        is_cascaded |= option == Some("cascaded");
        if let Some(condition) = layer.filter.clone().filter(|_| is_cascaded || option.is_some()) {
            let check = RowCheck { kind: RowCheckKind::View, name: layer.view.name.clone(), policy: None, condition };
            q.row_checks.insert(0, check);
        }
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

pub fn not_updatable(view: &Relation, command: Command, by_merge: bool) -> DbError {
    let name = &view.name;
    let (does, doing, event) = match command {
        Command::Insert => ("insert into", "inserting into", "INSERT"),
        Command::Update => ("update", "updating", "UPDATE"),
        _ => ("delete from", "deleting from", "DELETE"),
    };
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot {does} view \"{name}\"").hint(match by_merge {
        true => format!("To enable {doing} the view using MERGE, provide an INSTEAD OF {event} trigger."),
        false => format!(
            "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
        ),
    })
}
