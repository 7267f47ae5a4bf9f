//! Foreign keys to partitioned tables: they have a part for each partition of the table that they refer to.

use std::sync::Arc;

use melba_catalog::{Constraint as Row, FIRES_ON_ORIGIN, ForeignKeyInfo, Object, Relation};
use melba_engine::RelationLockMode;
use melba_table::check_removal;
use melba_types::{DbError, Oid, Result};

use super::Ddl;
use super::naming::object_name;

impl Ddl<'_> {
    /// Creates the parts of a new foreign key. `name`: the beginning of their names.
    pub fn add_referenced_parts(&self, key: &Row, name: &str) -> Result<()> {
        let Some(info) = &key.foreign_key else { return Ok(()) };
        let referenced = self.relation(info.referenced_table)?;
        if !referenced.is_partitioned() {
            return Ok(());
        }
        self.each_child(&referenced, RelationLockMode::ShareRowExclusive, |partition| {
            self.add_referenced_part(key, name, &referenced, &partition)
        })
    }

    fn add_referenced_part(&self, key: &Row, name: &str, referenced: &Relation, partition: &Relation) -> Result<()> {
        let Some(info) = &key.foreign_key else { return Ok(()) };
        let catalog = self.catalog();
        let lost = || DbError::internal(format!("partition \"{}\" lacks a column or index of its parent", partition.name));
        let number = |n: &i16| partition.number_of(&referenced.columns[*n as usize - 1].name);
        let referenced_columns = info.referenced_columns.iter().map(number).collect::<Option<Vec<_>>>().ok_or_else(lost)?;
        let is_part = |oid: &&Oid| catalog.relation(**oid).is_some_and(|i| i.parents.contains(&key.index));
        let index = *partition.indexes.iter().find(is_part).ok_or_else(lost)?;
        let info = ForeignKeyInfo { referenced_table: partition.oid, referenced_columns, ..(**info).clone() };
        let part = Row {
            oid: self.tx.new_oid(),
            name: self.unused_part_name(key.namespace, name).into(),
            index,
            foreign_key: Some(Arc::new(info)),
            parent: key.oid,
            local: false,
            inherited: 1,
            no_inherit: false,
            check_enabled: FIRES_ON_ORIGIN,
            action_enabled: FIRES_ON_ORIGIN,
            ..key.clone()
        };
        self.put_constraint((*self.relation(key.relation)?).clone(), part.clone());
        self.add_referenced_parts(&part, name)
    }

    /// The name of a part of a constraint, where the constraint's is taken.
    pub fn unused_part_name(&self, namespace: Oid, name: &str) -> String {
        let catalog = self.catalog();
        let names = (1..).map(|n: u64| object_name(name, None, &n.to_string()));
        let mut unused = names.filter(|name| catalog.constraint_by_name(namespace, name).is_none());
        unused.next().expect("one number after all constraints is unused")
    }

    /// The foreign keys to the parent of a new partition get parts for it.
    pub fn add_parent_references(&self, partition: Oid) -> Result<()> {
        for parent in &self.relation(partition)?.parents {
            let (catalog, parent) = (self.catalog(), self.relation(*parent)?);
            for key in catalog.referencing_keys(parent.oid) {
                self.add_referenced_part(key, &key.name, &parent, &*self.relation(partition)?)?;
            }
        }
        Ok(())
    }

    /// A former partition loses its parts of the foreign keys to its parent.
    pub fn drop_parent_references(&self, partition: Oid) -> Result<()> {
        let catalog = self.catalog();
        for part in catalog.referencing_constraints(partition).into_iter().filter(|key| catalog.is_referenced_part(key)) {
            self.drop_part(part)?;
        }
        Ok(())
    }

    /// 23503 when rows refer to those of a partition that is to leave.
    pub fn check_parent_references(&self, partition: Oid) -> Result<()> {
        let catalog = self.catalog();
        for part in catalog.referencing_constraints(partition).into_iter().filter(|key| catalog.is_referenced_part(key)) {
            self.lock_relation(part.relation, RelationLockMode::Share)?;
            check_removal(&self.exec_context(), &self.tx.engine, part)?;
        }
        Ok(())
    }

    /// Drops the parts of a foreign key, which becomes one itself of that of a partitioned table.
    pub fn drop_referenced_parts(&self, key: &Row) -> Result<()> {
        self.catalog().referenced_parts(key).into_iter().try_for_each(|part| self.drop_part(part))
    }

    fn drop_part(&self, part: &Row) -> Result<()> {
        self.drop_referenced_parts(part)?;
        self.drop_constraint_row(part)
    }

    /// Does the same to all parts of a foreign key.
    pub fn change_referenced_parts(&self, key: &Row, change: &dyn Fn(&mut Row)) {
        for part in self.catalog().referenced_parts(key) {
            let mut next = (**part).clone();
            change(&mut next);
            self.change_referenced_parts(part, change);
            self.tx.put(Object::Constraint(Arc::new(next)));
        }
    }
}
