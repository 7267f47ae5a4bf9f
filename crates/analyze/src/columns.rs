//! Column references: names to Vars, whole rows, `*`.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use melba_types::{DbError, Oid, Result, SqlState, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::items::check_lateral;
use super::scope::SYSTEM_COLUMNS;
use super::scope::note_selected;
use super::scope::{ExprKind, NsItem};
use super::{items, missing, nodes, routine_names};
use melba_tree::*;

pub fn column_reference<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p pb::ColumnRef) -> Result<Expr> {
    check_column_place(analyzer, node)?;
    let names = nodes::strings(&node.fields);
    let starred = matches!(node.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_)));
    if starred {
        // `tbl.*` as an argument is the whole row.
        return whole_row_reference(analyzer, &names, node.location);
    }
    if routine_names::prefers_variables(analyzer)
        && let Some(variable) = routine_names::variable_reference(analyzer, &names, node.location)?
    {
        return Ok(variable);
    }
    match named_column(analyzer, &names, node.location) {
        // A function's arguments never hide columns.
        Err(e) if analyzer.routine().is_some() && is_missing(&e) => {
            routine_names::routine_reference(analyzer, &names, node.location)?.ok_or(e)
        }
        Err(e) if analyzer.variables().is_some() && is_missing(&e) => {
            routine_names::variable_reference(analyzer, &names, node.location)?.ok_or(e)
        }
        Ok(column) => routine_names::check_not_variable(analyzer, &names, node.location).map(|()| column),
        Err(e) => Err(e),
    }
}

fn named_column(analyzer: &mut Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<Expr> {
    match *names {
        [name] => unqualified_column(analyzer, name, location),
        [relation, name] => qualified_column(analyzer, None, relation, name, location),
        [schema, relation, name] => qualified_column(analyzer, Some(schema), relation, name, location),
        [database, schema, relation, name] => {
            analyzer.cx().check_database(database, names).map_err(|e| e.at(location))?;
            qualified_column(analyzer, Some(schema), relation, name, location)
        }
        _ => {
            let shown = names.join(".");
            Err(err!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {shown}").at(location))
        }
    }
}

fn check_column_place(analyzer: &Analyzer<'_, '_>, node: &pb::ColumnRef) -> Result<()> {
    let text = match analyzer.level().kind.0 {
        ExprKind::ColumnDefault => "cannot use column reference in DEFAULT expression",
        ExprKind::PartitionBound => "cannot use column reference in partition bound expression",
        _ => return Ok(()),
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "{text}").at(node.location))
}

fn unqualified_column(analyzer: &mut Analyzer<'_, '_>, name: &str, location: i32) -> Result<Expr> {
    if name == "value"
        && let Some((ty, typmod, collation)) = analyzer.level().domain_value
    {
        return Ok(Expr::DomainValue { ty, typmod, collation });
    }
    if let Some(var) = find_column(analyzer, name, location)? {
        return Ok(var);
    }
    if let Some((up, item)) = items::find_item(analyzer, None, name, location)? {
        return whole_row(analyzer, up, &item, location);
    }
    Err(missing::missing_column(analyzer, None, name, location))
}

/// A column by its unqualified name, from the nearest level that has it.
pub fn find_column(analyzer: &mut Analyzer<'_, '_>, name: &str, location: i32) -> Result<Option<Expr>> {
    find_column_within(analyzer, analyzer.depth(), name, location)
}

/// A column of the innermost level by its unqualified name.
pub fn find_own_column(analyzer: &mut Analyzer<'_, '_>, name: &str, location: i32) -> Result<Option<Expr>> {
    find_column_within(analyzer, 1, name, location)
}

fn find_column_within(analyzer: &mut Analyzer<'_, '_>, levels: usize, name: &str, location: i32) -> Result<Option<Expr>> {
    for up in 0..levels {
        let level = analyzer.level_up(up);
        let mut found: Option<(usize, FoundColumn)> = None;
        for (i, item) in level.namespace.iter().enumerate() {
            if !item.columns_visible || item.lateral_only && !level.lateral_active {
                continue;
            }
            let Some(column) = scan(&level.range_table, item, name, false).map_err(|()| ambiguous(name, location))? else {
                continue;
            };
            if found.is_some() {
                return Err(ambiguous(name, location));
            }
            found = Some((i, column));
        }
        // System columns are found only when no user column has the name.
        if found.is_none() {
            for (i, item) in level.namespace.iter().enumerate() {
                if !item.columns_visible || item.lateral_only && !level.lateral_active {
                    continue;
                }
                if let Some(column) = system_column(&level.range_table, item, name) {
                    if found.is_some() {
                        return Err(ambiguous(name, location));
                    }
                    found = Some((i, column));
                }
            }
        }
        if let Some((i, column)) = found {
            let item = level.namespace[i].clone();
            return var(analyzer, up, &item, column, location).map(Some);
        }
    }
    Ok(None)
}

fn qualified_column(
    analyzer: &mut Analyzer<'_, '_>,
    schema: Option<&str>,
    relation: &str,
    name: &str,
    location: i32,
) -> Result<Expr> {
    let Some((up, item)) = items::find_item(analyzer, schema, relation, location)? else {
        return Err(missing::missing_range(analyzer, schema, relation, location));
    };
    if let Some(var) = item_column(analyzer, up, &item, name, location)? {
        return Ok(var);
    }
    // Perhaps a function of the whole row.
    let row = whole_row(analyzer, up, &item, location)?;
    if let Some(e) = analyzer.functional_notation(name, row, location)? {
        return Ok(e);
    }
    Err(missing::missing_column(analyzer, Some(relation), name, location))
}

/// A column of one namespace item.
pub fn item_column(analyzer: &mut Analyzer<'_, '_>, up: usize, item: &NsItem, name: &str, location: i32) -> Result<Option<Expr>> {
    let table = &analyzer.level_up(up).range_table;
    let found = scan(table, item, name, true).map_err(|()| ambiguous(name, location))?;
    match found.or_else(|| system_column(table, item, name)) {
        Some(column) => var(analyzer, up, item, column, location).map(Some),
        None => Ok(None),
    }
}

fn whole_row_reference(analyzer: &mut Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<Expr> {
    let (schema, relation) = match names {
        [relation] => (None, *relation),
        [schema, relation] => (Some(*schema), *relation),
        [database, schema, relation] => {
            analyzer.cx().check_database(database, names).map_err(|e| e.at(location))?;
            (Some(*schema), *relation)
        }
        _ => return Err(err!(SYNTAX_ERROR, "row expansion via \"*\" is not supported here").at(location)),
    };
    match items::find_item(analyzer, schema, relation, location)? {
        Some((up, item)) => whole_row(analyzer, up, &item, location),
        None => match routine_names::routine_reference(analyzer, names, location)?
            .or(routine_names::variable_reference(analyzer, names, location)?)
        {
            Some(argument) => Ok(argument),
            None => Err(missing::missing_range(analyzer, schema, relation, location)),
        },
    }
}

/// The Var for a column found in an item.
fn var(analyzer: &mut Analyzer<'_, '_>, up: usize, item: &NsItem, found: FoundColumn, location: i32) -> Result<Expr> {
    let level = analyzer.level_up_mut(up);
    check_lateral(item, level.target.as_ref(), location)?;
    self_check_generated(level.kind.0, found.column, location)?;
    note_selected_through(&mut level.range_table, found.entry, found.column);
    Ok(Expr::Var(Var {
        entry: found.entry,
        column: found.column,
        levels_up: up,
        ty: found.ty,
        typmod: found.typmod,
        collation: found.collation,
        version: item.version,
        location,
    }))
}

/// A reference to all columns of an item as one composite value.
pub fn whole_row(analyzer: &mut Analyzer<'_, '_>, up: usize, item: &NsItem, location: i32) -> Result<Expr> {
    let cx = analyzer.cx();
    let level = analyzer.level_up_mut(up);
    if level.kind.0 == ExprKind::GeneratedColumn {
        return Err(err!(INVALID_OBJECT_DEFINITION, "cannot use whole-row variable in column generation expression")
            .detail("This would cause the generated column to depend on its own value.")
            .at(location));
    }
    if item.columns.is_some() {
        let (fields, names) = item_vars(analyzer, up, item, location)?.into_iter().unzip();
        let row = Expr::Row(Box::new(RowExpr { fields, names, ty: oids::RECORD, explicit: false, location }));
        if item.version == RowVersion::Default {
            return Ok(row);
        }
        // There may be no such row of the table that is changed through the view, whose entry is the one before.
        let of_table = Var::new(item.entry - 1, 0, oids::RECORD, -1, Oid::INVALID);
        let of_table = Expr::Var(Var { levels_up: up, version: item.version, ..of_table });
        let exists = Expr::NullTest { arg: Box::new(of_table), is_null: false, row: false };
        return Ok(Expr::Case(Box::new(CaseExpr {
            arg: None,
            whens: vec![(exists, row)],
            default: Expr::null(oids::RECORD, -1, Oid::INVALID),
            ty: oids::RECORD,
            typmod: -1,
            collation: Oid::INVALID,
            location,
        })));
    }
    let entry = &mut level.range_table[item.entry];
    let mut column = 0;
    let ty = match &entry.kind {
        RangeKind::Relation { oid, .. } => cx.relation(*oid)?.row_type,
        RangeKind::Subquery { view, .. } if view.is_valid() => cx.relation(*view)?.row_type,
        RangeKind::Transition { table, .. } => cx.relation(*table)?.row_type,
        RangeKind::Function { functions, ordinality } => match &functions[..] {
            [one] if !*ordinality => {
                let ty = one.expr.ty();
                if ty == oids::RECORD || cx.is_complex(ty) {
                    ty
                } else {
                    column = 1;
                    ty
                }
            }
            _ => oids::RECORD,
        },
        _ => oids::RECORD,
    };
    let ty = if ty.is_valid() { ty } else { oids::RECORD };
    note_selected(entry, column);
    let collation = if column == 1 { entry.columns[0].collation } else { Oid::INVALID };
    Ok(Expr::Var(Var { entry: item.entry, column, levels_up: up, ty, typmod: -1, collation, version: item.version, location }))
}

/// All visible columns of an item with their names.
pub fn item_vars(analyzer: &mut Analyzer<'_, '_>, up: usize, item: &NsItem, location: i32) -> Result<Vec<(Expr, Arc<str>)>> {
    let table = &analyzer.level_up(up).range_table;
    let entry = &table[item.entry];
    let count = item.visible_columns.unwrap_or(entry.columns.len());
    let mut all = Vec::with_capacity(count);
    for (i, column) in entry.columns.iter().enumerate().take(count) {
        if !column.ty.is_valid() {
            continue;
        }
        if let Some(found) = at(table, item, i) {
            all.push((found, column.name.clone()));
        }
    }
    all.into_iter().map(|(found, name)| Ok((var(analyzer, up, item, found, location)?, name))).collect()
}

/// Nothing has the name.
fn is_missing(e: &DbError) -> bool {
    matches!(e.sqlstate(), SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE)
}

/// A column found by name.
#[derive(Clone, Copy)]
pub struct FoundColumn {
    pub entry: usize,
    pub column: i16,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

fn at(table: &[RangeEntry], item: &NsItem, i: usize) -> Option<FoundColumn> {
    match &item.columns {
        Some(columns) => {
            let c = columns.get(i)?;
            Some(FoundColumn { entry: c.entry, column: c.column, ty: c.ty, typmod: c.typmod, collation: c.collation })
        }
        None => {
            let c = table[item.entry].columns.get(i)?;
            Some(FoundColumn { entry: item.entry, column: i as i16 + 1, ty: c.ty, typmod: c.typmod, collation: c.collation })
        }
    }
}

/// Columns from which on an entry gets an index of their names.
const WIDE_COLUMNS: usize = 64;

/// Looks for a user column; `Err` when the item has two of that name.
fn scan(table: &[RangeEntry], item: &NsItem, name: &str, qualified: bool) -> Result<Option<FoundColumn>, ()> {
    let entry = &table[item.entry];
    let count = item.visible_columns.unwrap_or(entry.columns.len());
    let mut found = None;
    let mut test = |i: usize, column: &OutputColumn| {
        if &*column.name != name || !column.ty.is_valid() || i >= count {
            return Ok(());
        }
        if !qualified && item.columns.as_ref().is_some_and(|c| c[i].merged_away) {
            return Ok(());
        }
        if found.is_some() {
            return Err(());
        }
        found = at(table, item, i);
        Ok(())
    };
    if entry.columns.len() >= WIDE_COLUMNS {
        let places = item.names.get_or_init(|| Rc::new(places_by_name(&entry.columns))).get(name);
        let mut columns = places.into_iter().flatten().filter_map(|i| Some((*i, entry.columns.get(*i)?)));
        columns.try_for_each(|(i, column)| test(i, column))?;
    } else {
        entry.columns.iter().enumerate().try_for_each(|(i, column)| test(i, column))?;
    }
    Ok(found)
}

fn places_by_name(columns: &[OutputColumn]) -> HashMap<Arc<str>, Vec<usize>> {
    let mut places: HashMap<Arc<str>, Vec<usize>> = HashMap::with_capacity(columns.len());
    for (i, column) in columns.iter().enumerate() {
        places.entry(Arc::clone(&column.name)).or_default().push(i);
    }
    places
}

fn system_column(table: &[RangeEntry], item: &NsItem, name: &str) -> Option<FoundColumn> {
    let entry = &table[item.entry];
    if !item.system_columns || !matches!(entry.kind, RangeKind::Relation { .. }) {
        return None;
    }
    let (_, column, ty) = SYSTEM_COLUMNS.iter().find(|(n, _, _)| *n == name)?;
    Some(FoundColumn { entry: item.entry, column: *column, ty: *ty, typmod: -1, collation: Oid::INVALID })
}

fn ambiguous(name: &str, location: i32) -> DbError {
    err!(AMBIGUOUS_COLUMN, "column reference \"{name}\" is ambiguous").at(location)
}

fn self_check_generated(kind: ExprKind, column: i16, location: i32) -> Result<()> {
    // As in PostgreSQL, tableoid (-6) is the one system column that is allowed here.
    if column >= 0 || column == -6 {
        return Ok(());
    }
    let name = SYSTEM_COLUMNS.iter().find(|c| c.1 == column).map_or("", |c| c.0);
    match kind {
        ExprKind::CheckConstraint => {
            Err(err!(INVALID_COLUMN_REFERENCE, "system column \"{name}\" reference in check constraint is invalid").at(location))
        }
        ExprKind::GeneratedColumn => {
            Err(err!(INVALID_COLUMN_REFERENCE, "cannot use system column \"{name}\" in column generation expression")
                .at(location))
        }
        ExprKind::MergeWhen => {
            Err(err!(INVALID_COLUMN_REFERENCE, "cannot use system column \"{name}\" in MERGE WHEN condition").at(location))
        }
        _ => Ok(()),
    }
}

/// The same for a column of a join: its expression is read.
fn note_selected_through(table: &mut [RangeEntry], entry: usize, column: i16) {
    note_selected(&mut table[entry], column);
    let RangeKind::Join { merged, .. } = &table[entry].kind else { return };
    let Some(meaning) = column.checked_sub(1).and_then(|at| merged.get(at as usize)) else { return };
    let mut behind = Vec::new();
    meaning.visit_vars(&mut |v| behind.push((v.entry, v.column)));
    // A join of FROM, or the columns of a view that is changed.
    let is_join = table[entry].in_from;
    for (entry, column) in behind {
        match is_join {
            true => note_selected_through(table, entry, column),
            false => table[entry].required.behind.push(column),
        }
    }
}
