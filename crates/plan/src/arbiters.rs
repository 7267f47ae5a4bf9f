//! Finds the unique indexes that arbitrate an INSERT ... ON CONFLICT.

use std::sync::Arc;

use melba_analyze::{Context, analyze_stored_expression, inline_in_expression};
use melba_catalog::{IndexInfo, IndexKey, Relation};
use melba_tree::{Expr, OnConflict, put_on_entry};
use melba_types::{Oid, Result, bail, err};

use super::implication::{implies, is_same};
use super::planner::Planner;

/// The indexes that the clause names, or whose keys match its inference clause; empty when every unique index arbitrates.
///
/// # Errors
/// 42P10 when no index has such keys, 55000 when only deferrable ones have.
pub fn arbiters(planner: &Planner<'_>, conflict: &OnConflict, relation: &Arc<Relation>, entry: usize) -> Result<Vec<Oid>> {
    if let Some(constraint) = planner.catalog().constraint(conflict.constraint) {
        if conflict.update.is_some() && !constraint.operators.is_empty() {
            bail!(WRONG_OBJECT_TYPE, "ON CONFLICT DO UPDATE not supported with exclusion constraints");
        }
        return Ok(vec![constraint.index]);
    }
    if conflict.inference.is_empty() {
        return Ok(Vec::new());
    }
    let (mut arbiters, mut is_deferrable) = (Vec::new(), false);
    for oid in &relation.indexes {
        let Some(index) = planner.catalog().relation(*oid).and_then(|r| r.index.clone()) else { continue };
        if !is_inferred(planner, &index, conflict, relation, entry)? {
            continue;
        }
        if index.deferrable {
            is_deferrable = true;
        } else {
            arbiters.push(*oid);
        }
    }
    match (arbiters.is_empty(), is_deferrable) {
        (false, _) => Ok(arbiters),
        (true, true) => Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
        )),
        (true, false) => Err(err!(
            INVALID_COLUMN_REFERENCE,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        )),
    }
}

/// Whether an index is unique over exactly the inferred keys, for the rows of the inferred predicate.
fn is_inferred(
    planner: &Planner<'_>,
    index: &IndexInfo,
    conflict: &OnConflict,
    relation: &Arc<Relation>,
    entry: usize,
) -> Result<bool> {
    let excludes = planner.catalog().constraint(index.constraint).is_some_and(|c| !c.operators.is_empty());
    if !index.unique || !index.valid || excludes {
        return Ok(false);
    }
    let column = |e: &Expr| if let Expr::Var(v) = e { Some(v.column) } else { None };
    let columns: Vec<i16> = conflict.inference.iter().filter_map(column).collect();
    let keys: Vec<i16> = index.keys.iter().map(|k| k.column).filter(|c| *c != 0).collect();
    if !(keys.iter().all(|k| columns.contains(k)) && columns.iter().all(|c| keys.contains(c))) {
        return Ok(false);
    }
    let wanted: Vec<&Expr> = conflict.inference.iter().filter(|e| column(e).is_none()).collect();
    let texts = index.keys.iter().filter_map(|k| k.expression.as_ref());
    let own = texts.map(|text| index_expression(planner, text, relation, entry)).collect::<Result<Vec<Expr>>>()?;
    if own.len() != wanted.len() || !own.iter().all(|o| wanted.iter().any(|e| is_same(o, e))) {
        return Ok(false);
    }
    for (wanted, by) in
        conflict.inference.iter().zip(&conflict.inference_by).filter(|(_, by)| **by != (Oid::INVALID, Oid::INVALID))
    {
        let mut own = own.iter();
        let is_its = |key: &IndexKey| match key.column {
            0 => own.next().is_some_and(|own| is_same(own, wanted)) && is_by(planner, key, *by),
            number => column(wanted) == Some(number) && is_by(planner, key, *by),
        };
        if !index.keys.iter().any(is_its) {
            return Ok(false);
        }
    }
    let Some(text) = &index.predicate else { return Ok(true) };
    let predicate = index_expression(planner, text, relation, entry)?;
    Ok(conflict.inference_filter.as_ref().is_some_and(|f| implies(planner, f, &predicate)))
}

/// Whether a key has a collation and an operator class that an inference clause names, each if it does.
fn is_by(planner: &Planner<'_>, key: &IndexKey, (collation, class): (Oid, Oid)) -> bool {
    let access = planner.catalog().access_methods();
    let of = |class: Oid| access.class(class).map(|class| (class.family, class.input_type));
    (!collation.is_valid() || key.collation == collation) && (!class.is_valid() || of(key.opclass) == of(class))
}

/// An index's stored expression over an entry of its table.
pub fn index_expression(planner: &Planner<'_>, text: &str, relation: &Arc<Relation>, entry: usize) -> Result<Expr> {
    let path = planner.inputs.session.search_path();
    let context = |search_path| Context {
        catalog: planner.inputs.catalog,
        session: planner.inputs.session,
        search_path,
        temp_namespace: Oid::INVALID,
        database: "",
        user: relation.owner,
    };
    let mut e = analyze_stored_expression(&context(&[]), text, Some(relation), None)?;
    // Queries have the bodies of functions LANGUAGE sql, too. One that cannot be analyzed any more stays a call.
    let mut inlined = e.clone();
    if inline_in_expression(&context(&path), &mut inlined).is_ok() {
        e = inlined;
    }
    put_on_entry(&mut e, entry);
    Ok(e)
}
