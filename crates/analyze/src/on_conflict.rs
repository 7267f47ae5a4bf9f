//! INSERT ... ON CONFLICT: its inference clause, and the update. Planning finds the arbiter indexes.

use std::sync::Arc;

use melba_catalog::{Relation, classes};
use melba_parse::nodes::strings;
use melba_types::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::scope::{ExprKind, NsItem, note_selected};
use super::{assignment, columns, missing, view_target};
use melba_tree::*;

pub fn on_conflict<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    clause: &'p pb::OnConflictClause,
    relation: &Arc<Relation>,
) -> Result<OnConflict> {
    let update = clause.action == pb::OnConflictAction::OnconflictUpdate as i32;
    let mut conflict = OnConflict {
        inference: Vec::new(),
        inference_by: Vec::new(),
        inference_filter: None,
        constraint: Oid::INVALID,
        update: None,
    };
    if update && clause.infer.is_none() {
        return Err(err!(SYNTAX_ERROR, "ON CONFLICT DO UPDATE requires inference specification or constraint name")
            .hint("For example, ON CONFLICT (column_name).")
            .at(clause.location));
    }
    let target = analyzer.level().target.clone();
    let saved = std::mem::take(&mut analyzer.level_mut().namespace);
    analyzer.level_mut().namespace.extend(target.clone());
    if let Some(infer) = &clause.infer {
        arbiter(analyzer, infer, relation, &mut conflict)?;
        let parts = conflict.inference.iter_mut().chain(&mut conflict.inference_filter);
        parts.for_each(|e| view_target::expand_view_columns(analyzer, e));
    }
    if update {
        conflict.update = Some(conflict_update(analyzer, clause, relation)?);
    }
    analyzer.level_mut().namespace = saved;
    Ok(conflict)
}

fn conflict_update<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    clause: &'p pb::OnConflictClause,
    relation: &Arc<Relation>,
) -> Result<OnConflictUpdate> {
    let excluded = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Relation { oid: relation.oid, inherit: false, sample: None },
        alias: Some("excluded".into()),
        name: "excluded".into(),
        columns: super::range_columns::relation_columns(relation),
        ..RangeEntry::default()
    });
    if let Some(entry) = analyzer.target_entry() {
        analyzer.level_mut().range_table[entry].required.update = true;
    }
    let is_view = analyzer.level().view_target.is_some();
    let mut item =
        if is_view { view_target::excluded_of_view(analyzer, excluded)? } else { NsItem::new(excluded, "excluded".into()) };
    // The proposed row is stored nowhere.
    item.system_columns = false;
    analyzer.level_mut().namespace.push(item);
    let mut targets = assignment::set_clause(analyzer, &clause.target_list, relation)?;
    let mut filter = analyzer.condition(&clause.where_clause, ExprKind::Where, "WHERE")?;
    // A view's columns, of both rows, are those of the table and of the row proposed for it.
    if is_view {
        targets.iter_mut().map(|t| &mut t.expr).chain(&mut filter).for_each(|e| view_target::expand_view_columns(analyzer, e));
    }
    // Reading a proposed value is reading the table's column, or the view's.
    let read = std::mem::take(&mut analyzer.level_mut().range_table[excluded].required);
    select_of_target(analyzer, read.selected);
    if let (true, Some(table)) = (is_view, analyzer.target_entry()) {
        let entries = &mut analyzer.level_mut().range_table;
        entries[table].required.behind.extend(read.behind);
        let read = std::mem::take(&mut entries[excluded + 1].required);
        read.selected.into_iter().for_each(|column| note_selected(&mut entries[table + 1], column));
    }
    Ok(OnConflictUpdate { targets, filter, excluded })
}

/// The statement needs SELECT on these columns of the target.
fn select_of_target(analyzer: &mut Analyzer<'_, '_>, columns: Vec<i16>) {
    let Some(entry) = analyzer.target_entry().filter(|_| !columns.is_empty()) else { return };
    let required = &mut analyzer.level_mut().range_table[entry].required;
    required.select = true;
    for column in columns {
        if !required.selected.contains(&column) {
            required.selected.push(column);
        }
    }
}

fn arbiter<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    infer: &'p pb::InferClause,
    relation: &Arc<Relation>,
    conflict: &mut OnConflict,
) -> Result<()> {
    if !infer.conname.is_empty() {
        // A view has none.
        let named = analyzer.level().view_target.as_ref().map_or(relation, |target| &target.view);
        let constraints = named.constraints.iter().filter_map(|c| analyzer.cx().catalog.constraint(*c));
        let found = constraints.clone().find(|c| *c.name == *infer.conname);
        let Some(found) = found else {
            let (name, table) = (&infer.conname, &named.name);
            return Err(err!(UNDEFINED_OBJECT, "constraint \"{name}\" for table \"{table}\" does not exist"));
        };
        if !found.index.is_valid() || found.foreign_key.is_some() {
            return Err(err!(WRONG_OBJECT_TYPE, "constraint in ON CONFLICT clause has no associated index"));
        }
        if found.deferrable {
            return Err(deferrable());
        }
        let columns = found.columns.clone();
        conflict.constraint = found.oid;
        select_of_target(analyzer, columns);
        return Ok(());
    }
    for node in &infer.index_elems {
        let Some(NodeEnum::IndexElem(element)) = &node.node else { continue };
        if element.ordering > pb::SortByDir::SortbyDefault as i32 {
            return Err(err!(INVALID_COLUMN_REFERENCE, "ASC/DESC is not allowed in ON CONFLICT clause").at(infer.location));
        }
        if element.nulls_ordering > pb::SortByNulls::SortbyNullsDefault as i32 {
            return Err(
                err!(INVALID_COLUMN_REFERENCE, "NULLS FIRST/LAST is not allowed in ON CONFLICT clause").at(infer.location)
            );
        }
        let e = match &element.expr {
            Some(e) => analyzer.expression(e, ExprKind::IndexExpression)?,
            None => match columns::find_column(analyzer, &element.name, infer.location)? {
                Some(e) => e,
                None => return Err(missing::missing_column(analyzer, None, &element.name, infer.location)),
            },
        };
        conflict.inference.push(e);
        conflict.inference_by.push(index_of_element(analyzer, element, infer.location)?);
    }
    conflict.inference_filter = match &infer.where_clause {
        Some(_) => analyzer.condition(&infer.where_clause, ExprKind::IndexPredicate, "WHERE")?,
        None => None,
    };
    Ok(())
}

/// The collation and the operator class that an element names.
fn index_of_element(analyzer: &Analyzer<'_, '_>, element: &pb::IndexElem, location: i32) -> Result<(Oid, Oid)> {
    let cx = analyzer.cx();
    let collation = match &strings(&element.collation)[..] {
        [] => Oid::INVALID,
        names => cx.find_collation(names, location)?.oid,
    };
    let names = strings(&element.opclass);
    let (schemas, name) = match names[..] {
        [] => return Ok((collation, Oid::INVALID)),
        [schema, name] => (vec![cx.namespace(schema)?], name),
        [.., name] => (cx.search_path.to_vec(), name),
    };
    let class = cx.catalog.find_operator_class(&schemas, classes::BTREE, name).map(|class| class.oid);
    let missing = || {
        let shown = names.join(".");
        err!(UNDEFINED_OBJECT, "operator class \"{shown}\" does not exist for access method \"btree\"")
    };
    Ok((collation, class.ok_or_else(missing)?))
}

fn deferrable() -> melba_types::DbError {
    err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
    )
}
