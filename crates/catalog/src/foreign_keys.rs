//! Foreign keys to partitioned tables: beside the key itself there is a part of it for each partition of the referenced table, on the
//! same referencing table. Rows are checked by the key, and actions are followed by the parts.

use std::sync::Arc;

use melba_types::Oid;

use crate::objects::{Constraint, ConstraintKind, ForeignKeyInfo, Relation};
use crate::snapshot::Catalog;

/// `anyrange && anyrange` and `anymultirange && anymultirange` in pg_operator.
pub const RANGES_OVERLAP: Oid = Oid(3888);
pub const MULTIRANGES_OVERLAP: Oid = Oid(2868);

impl ForeignKeyInfo {
    /// FOREIGN KEY (..., PERIOD column): the periods of several referenced rows together contain a referencing row's.
    pub fn has_period(&self) -> bool {
        matches!(self.operators.last(), Some(&RANGES_OVERLAP | &MULTIRANGES_OVERLAP))
    }
}

/// Whether a foreign key is a part of another one of its table: for a partition of the table that this one refers to.
pub fn is_referenced_part(catalog: &Catalog, key: &Constraint) -> bool {
    key.foreign_key.is_some() && catalog.constraint(key.parent).is_some_and(|whole| whole.relation == key.relation)
}

/// The foreign keys of a table by which its rows are checked.
pub fn foreign_keys<'a>(catalog: &'a Catalog, table: &'a Relation) -> impl Iterator<Item = &'a Arc<Constraint>> {
    let keys = table.constraints.iter().filter_map(|c| catalog.constraint(*c));
    keys.filter(|c| c.kind == ConstraintKind::ForeignKey && !is_referenced_part(catalog, c))
}

/// The parts of a foreign key for the partitions right below the table that it refers to.
pub fn referenced_parts<'a>(catalog: &'a Catalog, key: &Constraint) -> Vec<&'a Arc<Constraint>> {
    let own = catalog.relation(key.relation).into_iter().flat_map(|table| &table.constraints);
    own.filter_map(|c| catalog.constraint(*c)).filter(|c| c.parent == key.oid).collect()
}

/// The foreign keys that refer to a table and are no parts of others that do: those of partitions are parts of their parent's.
pub fn referencing_keys(catalog: &Catalog, table: Oid) -> impl Iterator<Item = &Arc<Constraint>> {
    let refers = move |key: &Constraint| key.foreign_key.as_ref().is_some_and(|info| info.referenced_table == table);
    let all = catalog.referencing_constraints(table).into_iter();
    all.filter(move |key| !catalog.constraint(key.parent).is_some_and(|above| refers(above)))
}

impl Relation {
    /// The number of the column with a name.
    pub fn number_of(&self, name: &str) -> Option<i16> {
        self.columns.iter().position(|c| !c.dropped && *c.name == *name).map(|at| at as i16 + 1)
    }
}
