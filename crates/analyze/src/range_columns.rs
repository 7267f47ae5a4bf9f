//! The columns of range entries: those of a relation, and their names by an alias.

use melba_catalog::Relation;
use melba_types::{Oid, Result, err};
use pg_query::protobuf as pb;

use super::nodes;
use melba_tree::*;

/// A relation's columns by attribute number; dropped ones have type 0.
pub fn relation_columns(relation: &Relation) -> Vec<OutputColumn> {
    let column = |c: &melba_catalog::Column| OutputColumn {
        name: c.name.clone(),
        ty: if c.dropped { Oid::INVALID } else { c.ty },
        typmod: c.typmod,
        collation: c.collation,
    };
    relation.columns.iter().map(column).collect()
}

/// Renames columns by an alias list.
pub fn apply_aliases(columns: &mut [OutputColumn], names: &[pb::Node], table: &str) -> Result<()> {
    let available = columns.iter().filter(|c| c.ty.is_valid()).count();
    if names.len() > available {
        let given = names.len();
        return Err(err!(
            INVALID_COLUMN_REFERENCE,
            "table \"{table}\" has {available} columns available but {given} columns specified"
        ));
    }
    let visible = columns.iter_mut().filter(|c| c.ty.is_valid());
    for (column, name) in visible.zip(names.iter().filter_map(nodes::string)) {
        column.name = name.into();
    }
    Ok(())
}
