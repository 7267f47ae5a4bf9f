//! The items of a namespace: found by their names.

use melba_tree::{RangeEntry, RangeKind};
use melba_types::{Oid, Result, err};

use super::analyzer::Analyzer;
use super::scope::NsItem;

/// The range entry that a qualifier names: how many levels outwards, and the item.
pub fn find_item(
    analyzer: &Analyzer<'_, '_>,
    schema: Option<&str>,
    name: &str,
    location: i32,
) -> Result<Option<(usize, NsItem)>> {
    let wanted = match schema {
        Some(schema) => match analyzer.cx().find_relation(Some(schema), name) {
            Some(relation) => Some(relation.oid),
            None => return Ok(None),
        },
        None => None,
    };
    for (up, level) in analyzer.levels().enumerate() {
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

/// 42712 when two items have the same name.
pub fn check_name_conflicts(analyzer: &Analyzer<'_, '_>, old: &[NsItem], new: &[NsItem]) -> Result<()> {
    let table = &analyzer.level().range_table;
    for item in new.iter().filter(|i| i.relation_visible) {
        for other in old.iter().filter(|i| i.relation_visible && i.name == item.name) {
            let (a, b) = (&table[item.entry], &table[other.entry]);
            let by_name = |e: &RangeEntry| match (&e.alias, relation_oid(e)) {
                (None, Some(oid)) => Some(oid),
                _ => None,
            };
            // Two tables of one name in different schemas are distinguishable.
            if let (Some(a), Some(b)) = (by_name(a), by_name(b))
                && a != b
            {
                continue;
            }
            return Err(err!(DUPLICATE_ALIAS, "table name \"{}\" specified more than once", item.name));
        }
    }
    Ok(())
}

pub fn check_lateral(item: &NsItem, target: Option<&NsItem>, location: i32) -> Result<()> {
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

pub fn relation_oid(entry: &RangeEntry) -> Option<Oid> {
    match &entry.kind {
        RangeKind::Relation { oid, .. } => Some(*oid),
        RangeKind::Subquery { view, .. } if view.is_valid() => Some(*view),
        _ => None,
    }
}
