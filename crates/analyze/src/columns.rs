//! Column references: names to Vars, whole rows, `*`.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, SqlState, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::scope::{ExprKind, NsItem};
use super::{Analyzer, nodes};
use melba_tree::*;

/// The system columns: name, number, type.
pub const SYSTEM_COLUMNS: [(&str, i16, Oid); 6] = [
    ("tableoid", -6, oids::OID),
    ("cmax", -5, oids::CID),
    ("xmax", -4, oids::XID),
    ("cmin", -3, oids::CID),
    ("xmin", -2, oids::XID),
    ("ctid", -1, oids::TID),
];

/// A system column of a range entry.
pub fn system_var(entry: usize, column: i16, ty: Oid) -> Expr {
    Expr::Var(Var {
        entry,
        column,
        levels_up: 0,
        ty,
        typmod: -1,
        collation: Oid::INVALID,
        version: RowVersion::Default,
        location: -1,
    })
}

impl<'p> Analyzer<'_, 'p> {
    pub fn column_reference(&mut self, node: &'p pb::ColumnRef) -> Result<Expr> {
        self.check_column_place(node)?;
        let names = nodes::strings(&node.fields);
        let starred = matches!(node.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_)));
        if starred {
            // `tbl.*` as an argument is the whole row.
            return self.whole_row_reference(&names, node.location);
        }
        if self.prefers_variables()
            && let Some(variable) = self.variable_reference(&names, node.location)?
        {
            return Ok(variable);
        }
        match self.named_column(&names, node.location) {
            // A function's arguments never hide columns.
            Err(e) if self.routine.is_some() && is_missing(&e) => self.routine_reference(&names, node.location)?.ok_or(e),
            Err(e) if self.variables.is_some() && is_missing(&e) => self.variable_reference(&names, node.location)?.ok_or(e),
            Ok(column) => self.check_not_variable(&names, node.location).map(|()| column),
            Err(e) => Err(e),
        }
    }

    fn named_column(&mut self, names: &[&str], location: i32) -> Result<Expr> {
        match *names {
            [name] => self.unqualified_column(name, location),
            [relation, name] => self.qualified_column(None, relation, name, location),
            [schema, relation, name] => self.qualified_column(Some(schema), relation, name, location),
            [database, schema, relation, name] => {
                self.cx.check_database(database, names).map_err(|e| e.at(location))?;
                self.qualified_column(Some(schema), relation, name, location)
            }
            _ => {
                let shown = names.join(".");
                Err(err!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {shown}").at(location))
            }
        }
    }

    fn check_column_place(&self, node: &pb::ColumnRef) -> Result<()> {
        let text = match self.level().kind.0 {
            ExprKind::ColumnDefault => "cannot use column reference in DEFAULT expression",
            ExprKind::PartitionBound => "cannot use column reference in partition bound expression",
            _ => return Ok(()),
        };
        Err(err!(FEATURE_NOT_SUPPORTED, "{text}").at(node.location))
    }

    fn unqualified_column(&mut self, name: &str, location: i32) -> Result<Expr> {
        if name == "value"
            && let Some((ty, typmod, collation)) = self.level().domain_value
        {
            return Ok(Expr::DomainValue { ty, typmod, collation });
        }
        if let Some(var) = self.find_column(name, location)? {
            return Ok(var);
        }
        if let Some((up, item)) = self.find_item(None, name, location)? {
            return self.whole_row(up, &item, location);
        }
        Err(self.missing_column(None, name, location))
    }

    /// A column by its unqualified name, from the nearest level that has it.
    pub fn find_column(&mut self, name: &str, location: i32) -> Result<Option<Expr>> {
        for up in 0..self.levels.len() {
            let level = &self.levels[self.levels.len() - 1 - up];
            let mut found: Option<(usize, Found)> = None;
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
                return self.var(up, &item, column, location).map(Some);
            }
        }
        Ok(None)
    }

    fn qualified_column(&mut self, schema: Option<&str>, relation: &str, name: &str, location: i32) -> Result<Expr> {
        let Some((up, item)) = self.find_item(schema, relation, location)? else {
            return Err(self.missing_range(schema, relation, location));
        };
        if let Some(var) = self.item_column(up, &item, name, location)? {
            return Ok(var);
        }
        // Perhaps a function of the whole row.
        let row = self.whole_row(up, &item, location)?;
        if let Some(e) = self.functional_notation(name, row, location)? {
            return Ok(e);
        }
        Err(self.missing_column(Some(relation), name, location))
    }

    /// A column of one namespace item.
    pub fn item_column(&mut self, up: usize, item: &NsItem, name: &str, location: i32) -> Result<Option<Expr>> {
        let table = &self.levels[self.levels.len() - 1 - up].range_table;
        let found = scan(table, item, name, true).map_err(|()| ambiguous(name, location))?;
        match found.or_else(|| system_column(table, item, name)) {
            Some(column) => self.var(up, item, column, location).map(Some),
            None => Ok(None),
        }
    }

    fn whole_row_reference(&mut self, names: &[&str], location: i32) -> Result<Expr> {
        let (schema, relation) = match names {
            [relation] => (None, *relation),
            [schema, relation] => (Some(*schema), *relation),
            [database, schema, relation] => {
                self.cx.check_database(database, names).map_err(|e| e.at(location))?;
                (Some(*schema), *relation)
            }
            _ => return Err(err!(SYNTAX_ERROR, "row expansion via \"*\" is not supported here").at(location)),
        };
        match self.find_item(schema, relation, location)? {
            Some((up, item)) => self.whole_row(up, &item, location),
            None => match self.routine_reference(names, location)?.or(self.variable_reference(names, location)?) {
                Some(argument) => Ok(argument),
                None => Err(self.missing_range(schema, relation, location)),
            },
        }
    }

    /// The range entry that a qualifier names: how many levels outwards, and the item.
    pub fn find_item(&self, schema: Option<&str>, name: &str, location: i32) -> Result<Option<(usize, NsItem)>> {
        let wanted = match schema {
            Some(schema) => match self.cx.find_relation(Some(schema), name) {
                Some(relation) => Some(relation.oid),
                None => return Ok(None),
            },
            None => None,
        };
        for (up, level) in self.levels.iter().rev().enumerate() {
            let mut found: Option<&NsItem> = None;
            for item in &level.namespace {
                if !item.relation_visible || item.lateral_only && !level.lateral_active || &*item.name != name {
                    continue;
                }
                if let Some(wanted) = wanted {
                    let entry = &level.range_table[item.entry];
                    if entry.alias.is_some() || relation_oid(entry) != Some(wanted) {
                        continue;
                    }
                }
                if found.is_some() {
                    return Err(err!(AMBIGUOUS_ALIAS, "table reference \"{name}\" is ambiguous").at(location));
                }
                found = Some(item);
            }
            if let Some(item) = found {
                check_lateral(item, level.target.as_ref(), location)?;
                return Ok(Some((up, item.clone())));
            }
        }
        Ok(None)
    }

    /// The Var for a column found in an item.
    fn var(&mut self, up: usize, item: &NsItem, found: Found, location: i32) -> Result<Expr> {
        let level = self.level_up(up);
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
    pub fn whole_row(&mut self, up: usize, item: &NsItem, location: i32) -> Result<Expr> {
        let cx = self.cx;
        let level = self.level_up(up);
        if level.kind.0 == ExprKind::GeneratedColumn {
            return Err(err!(INVALID_OBJECT_DEFINITION, "cannot use whole-row variable in column generation expression")
                .detail("This would cause the generated column to depend on its own value.")
                .at(location));
        }
        if item.columns.is_some() {
            let (fields, names) = self.item_vars(up, item, location)?.into_iter().unzip();
            let row = RowExpr { fields, names, ty: oids::RECORD, explicit: false, location };
            return Ok(Expr::Row(Box::new(row)));
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
        Ok(Expr::Var(Var {
            entry: item.entry,
            column,
            levels_up: up,
            ty,
            typmod: -1,
            collation,
            version: item.version,
            location,
        }))
    }

    /// All visible columns of an item with their names.
    pub fn item_vars(&mut self, up: usize, item: &NsItem, location: i32) -> Result<Vec<(Expr, Arc<str>)>> {
        let table = &self.levels[self.levels.len() - 1 - up].range_table;
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
        all.into_iter().map(|(found, name)| Ok((self.var(up, item, found, location)?, name))).collect()
    }

    /// The fields of a whole-row Var of record type.
    pub fn expand_whole_row(&mut self, v: &Var) -> Result<Box<RowExpr>> {
        let level = &self.levels[self.levels.len() - 1 - v.levels_up];
        let entry = &level.range_table[v.entry];
        let columns = entry.columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid());
        let fields = columns.clone().map(|(i, c)| {
            Expr::Var(Var { column: i as i16 + 1, ty: c.ty, typmod: c.typmod, collation: c.collation, ..v.clone() })
        });
        let names = columns.clone().map(|(_, c)| c.name.clone()).collect();
        Ok(Box::new(RowExpr { fields: fields.collect(), names, ty: oids::RECORD, explicit: false, location: v.location }))
    }
}

/// Nothing has the name.
fn is_missing(e: &DbError) -> bool {
    matches!(e.sqlstate(), SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE)
}

/// A column found by name.
#[derive(Clone, Copy)]
pub struct Found {
    pub entry: usize,
    pub column: i16,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

fn at(table: &[RangeEntry], item: &NsItem, i: usize) -> Option<Found> {
    match &item.columns {
        Some(columns) => {
            let c = columns.get(i)?;
            Some(Found { entry: c.entry, column: c.column, ty: c.ty, typmod: c.typmod, collation: c.collation })
        }
        None => {
            let c = table[item.entry].columns.get(i)?;
            Some(Found { entry: item.entry, column: i as i16 + 1, ty: c.ty, typmod: c.typmod, collation: c.collation })
        }
    }
}

/// Looks for a user column; `Err` when the item has two of that name.
fn scan(table: &[RangeEntry], item: &NsItem, name: &str, qualified: bool) -> Result<Option<Found>, ()> {
    let entry = &table[item.entry];
    let count = item.visible_columns.unwrap_or(entry.columns.len());
    let mut found = None;
    for (i, column) in entry.columns.iter().enumerate().take(count) {
        if &*column.name != name || !column.ty.is_valid() {
            continue;
        }
        if !qualified && item.columns.as_ref().is_some_and(|c| c[i].merged_away) {
            continue;
        }
        if found.is_some() {
            return Err(());
        }
        found = at(table, item, i);
    }
    Ok(found)
}

fn system_column(table: &[RangeEntry], item: &NsItem, name: &str) -> Option<Found> {
    let entry = &table[item.entry];
    if !matches!(entry.kind, RangeKind::Relation { .. }) {
        return None;
    }
    let (_, column, ty) = SYSTEM_COLUMNS.iter().find(|(n, _, _)| *n == name)?;
    Some(Found { entry: item.entry, column: *column, ty: *ty, typmod: -1, collation: Oid::INVALID })
}

fn ambiguous(name: &str, location: i32) -> DbError {
    err!(AMBIGUOUS_COLUMN, "column reference \"{name}\" is ambiguous").at(location)
}

fn check_lateral(item: &NsItem, target: Option<&NsItem>, location: i32) -> Result<()> {
    if !item.lateral_only || item.lateral_ok {
        return Ok(());
    }
    let name = &item.name;
    let e = err!(INVALID_COLUMN_REFERENCE, "invalid reference to FROM-clause entry for table \"{name}\"").at(location);
    Err(if target.is_some_and(|t| t.entry == item.entry) {
        e.hint(format!("There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."))
    } else {
        e.detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
    })
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

/// Records that the statement reads a column.
pub fn note_selected(entry: &mut RangeEntry, column: i16) {
    let required = &mut entry.required;
    required.select = true;
    if !required.selected.contains(&column) {
        required.selected.push(column);
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

pub fn relation_oid(entry: &RangeEntry) -> Option<Oid> {
    match &entry.kind {
        RangeKind::Relation { oid, .. } => Some(*oid),
        RangeKind::Subquery { view, .. } if view.is_valid() => Some(*view),
        _ => None,
    }
}
