//! Indexes of partitioned tables: one on each partition, which may have existed before.

use std::sync::Arc;

use melba_catalog::{Catalog, Constraint as Row, IndexInfo, IndexKey, Object, Relation};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::PartitionCmd;

use super::Ddl;
use super::index::IndexRequest;

impl Ddl<'_> {
    /// A unique key of a partitioned table has all columns of its partition key: uniqueness is a matter of each partition.
    pub fn check_partitioned_key(&self, relation: &Relation, request: &IndexRequest) -> Result<()> {
        let Some(key) = relation.partition_key.as_ref().filter(|_| request.unique) else { return Ok(()) };
        let what = if request.primary { "PRIMARY KEY" } else { "UNIQUE" };
        for column in &key.columns {
            if column.column == 0 {
                return Err(err!(FEATURE_NOT_SUPPORTED, "unsupported {what} constraint with partition key definition")
                    .detail(format!("{what} constraints cannot be used when partition keys include expressions.")));
            }
            if !request.keys.iter().any(|k| k.column == column.column) {
                let name = &relation.columns[column.column as usize - 1].name;
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "unique constraint on partitioned table must include all partitioning columns"
                )
                .detail(format!(
                    "{what} constraint on table \"{}\" lacks column \"{name}\" which is part of the partition key.",
                    relation.name
                )));
            }
        }
        Ok(())
    }

    /// Adds an index like it to every partition of an index's table.
    pub fn index_partitions(&self, index: Oid) -> Result<()> {
        let relation = self.relation(index)?;
        let Some(info) = &relation.index else { return Ok(()) };
        if self.relation(info.table)?.is_partitioned() {
            for partition in self.catalog().children(info.table) {
                self.index_partition(partition, index)?;
            }
        }
        Ok(())
    }

    /// Adds the indexes of its parents to a partition.
    pub fn add_parent_indexes(&self, partition: Oid) -> Result<()> {
        for parent in &self.relation(partition)?.parents {
            for index in &self.relation(*parent)?.indexes {
                self.index_partition(partition, *index)?;
            }
        }
        Ok(())
    }

    /// Attaches an index of a partition to its parent's, or makes one.
    fn index_partition(&self, partition: Oid, parent: Oid) -> Result<()> {
        let (table, above) = (self.relation(partition)?, self.relation(parent)?);
        let Some(info) = &above.index else { return Ok(()) };
        let catalog = self.catalog();
        let over = self.relation(info.table)?;
        let number = |n: i16| {
            let name = &over.columns[n as usize - 1].name;
            table.columns.iter().position(|c| !c.dropped && c.name == *name).map_or(0, |at| at as i16 + 1)
        };
        let own = table.indexes.iter().filter_map(|i| catalog.relation(*i));
        let fits = |i: &&Arc<Relation>| {
            let alike = |own: &Arc<IndexInfo>| is_alike(&catalog, info, own, &number) && has_such_constraint(info, own);
            i.parents.is_empty() && i.index.as_ref().is_some_and(alike)
        };
        let index = match own.into_iter().find(fits) {
            Some(found) => found.oid,
            None if info.primary && has_primary(&catalog, &table) => {
                bail!(INVALID_TABLE_DEFINITION, "multiple primary keys for table \"{}\" are not allowed", table.name)
            }
            None => self.copy_index(partition, &above, &number)?,
        };
        self.attach_index(index, parent)
    }

    /// Makes an index a part of a partitioned one, and its constraint a part of that one's.
    fn attach_index(&self, index: Oid, parent: Oid) -> Result<()> {
        let (relation, above) = (self.relation(index)?, self.relation(parent)?);
        let constraint_of = |r: &Relation| r.index.as_ref().map_or(Oid::INVALID, |i| i.constraint);
        self.put_relation(Relation { parents: vec![parent], ..(*relation).clone() });
        let catalog = self.catalog();
        let parent = constraint_of(&above);
        if let Some(row) = catalog.constraint(constraint_of(&relation)).filter(|_| parent.is_valid()) {
            let row = Row { parent, inherited: 1, local: false, ..(**row).clone() };
            self.tx.put(Object::Constraint(Arc::new(row)));
        }
        Ok(())
    }

    /// A former partition keeps its indexes as its own.
    pub fn detach_indexes(&self, table: &Relation) -> Result<()> {
        let catalog = self.catalog();
        for index in table.indexes.iter().filter_map(|i| catalog.relation(*i)).filter(|i| !i.parents.is_empty()) {
            self.put_relation(Relation { parents: vec![], ..(**index).clone() });
            if let Some(row) = index.index.as_ref().and_then(|i| catalog.constraint(i.constraint)) {
                let row = Row { parent: Oid::INVALID, inherited: 0, local: true, ..(**row).clone() };
                self.tx.put(Object::Constraint(Arc::new(row)));
            }
        }
        Ok(())
    }

    /// A part of a partitioned index is dropped only with it.
    pub fn refuse_index_part(&self, index: &Relation) -> Result<()> {
        let catalog = self.catalog();
        let Some(parent) = index.parents.first().and_then(|p| catalog.relation(*p)) else { return Ok(()) };
        Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop index {} because index {} requires it", index.name, parent.name)
            .hint(format!("You can drop index {} instead.", parent.name)))
    }

    /// ALTER INDEX ... ATTACH PARTITION.
    pub fn attach_index_partition(&self, parent: &Relation, c: &PartitionCmd) -> Result<()> {
        let name = c.name.as_ref().ok_or_else(|| DbError::internal("ATTACH PARTITION without an index"))?;
        if c.bound.is_some() {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a partitioned table", parent.name);
        }
        let index = self.open_relation(name, melba_engine::RelationLockMode::AccessExclusive)?;
        let (Some(own), Some(info)) = (&index.index, &parent.index) else {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", index.name);
        };
        if index.parents.contains(&parent.oid) {
            return Ok(());
        }
        let (table, over) = (self.relation(own.table)?, self.relation(info.table)?);
        let cannot = |detail: String| {
            err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                index.name,
                parent.name
            )
            .detail(detail)
        };
        let catalog = self.catalog();
        let mut others = table.indexes.iter().filter_map(|i| catalog.relation(*i));
        if others.any(|i| i.parents.contains(&parent.oid)) {
            return Err(cannot(format!("Another index is already attached for partition \"{}\".", table.name)));
        }
        if !index.parents.is_empty() {
            return Err(cannot(format!("Index \"{}\" is already attached to another index.", index.name)));
        }
        if !table.parents.contains(&over.oid) {
            return Err(cannot(format!("Index \"{}\" is not an index on any partition of table \"{}\".", index.name, over.name)));
        }
        let number = |n: i16| {
            let name = &over.columns[n as usize - 1].name;
            table.columns.iter().position(|c| !c.dropped && c.name == *name).map_or(0, |at| at as i16 + 1)
        };
        if !is_alike(&catalog, info, own, &number) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                index.name,
                parent.name
            )
            .detail("The index definitions do not match."));
        }
        if info.constraint.is_valid() && !own.constraint.is_valid() {
            return Err(cannot(format!(
                "The index \"{}\" belongs to a constraint in table \"{}\" but no constraint exists for index \"{}\".",
                parent.name, over.name, index.name
            )));
        }
        self.attach_index(index.oid, parent.oid)?;
        self.validate_partitioned_index(parent.oid)
    }

    /// A partitioned index is valid once all partitions have their part.
    fn validate_partitioned_index(&self, index: Oid) -> Result<()> {
        let relation = self.relation(index)?;
        let Some(info) = relation.index.as_ref().filter(|i| !i.valid) else { return Ok(()) };
        let catalog = self.catalog();
        // A partition has one part at most.
        if catalog.child_count(info.table) == catalog.child_count(index) {
            let info = Arc::new(IndexInfo { valid: true, ..(**info).clone() });
            self.put_relation(Relation { index: Some(info), ..(*relation).clone() });
        }
        Ok(())
    }
}

/// Whether an index of a partition is equivalent to its parent's. `number`: the partition's column for one of the parent.
fn is_alike(catalog: &Catalog, parent: &IndexInfo, own: &IndexInfo, number: &dyn Fn(i16) -> i16) -> bool {
    let same_key = |(a, b): (&IndexKey, &IndexKey)| {
        let column = if a.column == 0 { 0 } else { number(a.column) };
        column == b.column
            && a.expression == b.expression
            && a.collation == b.collation
            && a.opclass == b.opclass
            && a.descending == b.descending
            && a.nulls_first == b.nulls_first
    };
    let operators = |of: &IndexInfo| catalog.constraint(of.constraint).map_or(&[][..], |c| &c.operators[..]);
    operators(parent) == operators(own)
        && parent.unique == own.unique
        && parent.nulls_not_distinct == own.nulls_not_distinct
        && parent.predicate == own.predicate
        && parent.keys.len() == own.keys.len()
        && parent.keys.iter().zip(&own.keys).all(same_key)
        && parent.include.iter().map(|n| number(*n)).eq(own.include.iter().copied())
}

/// An index behind a constraint needs one that is behind a constraint of the kind.
fn has_such_constraint(parent: &IndexInfo, own: &IndexInfo) -> bool {
    !parent.constraint.is_valid() || (own.constraint.is_valid() && parent.primary == own.primary)
}

fn has_primary(catalog: &Catalog, table: &Relation) -> bool {
    table.indexes.iter().filter_map(|i| catalog.relation(*i)?.index.as_ref()).any(|i| i.primary)
}
