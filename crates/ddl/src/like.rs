//! Copies the parts of CREATE TABLE ... (LIKE ...) besides columns: checks, indexes with their constraints, comments.

use std::sync::Arc;

use melba_catalog::{
    Column, Constraint as Row, ConstraintKind, Description, IndexInfo, Object, ObjectAddress, Relation, classes,
};
use melba_types::{DbError, Oid, Result, bail};

use super::Ddl;
use super::create_table::like;
use super::exclusion::check_excluded_rows;
use super::index::{AccessMethod, IndexRequest, KeyRequest};
use super::naming::{column_part, unused_relation_name};

impl Ddl<'_> {
    pub(super) fn copy_like(&self, table: Oid, source: Oid, bits: u32) -> Result<()> {
        let source = self.relation(source)?;
        let catalog = self.catalog();
        let target = self.relation(table)?;
        // Column numbers of the source in the new table.
        let number = |n: i16| {
            let name = &source.columns[n as usize - 1].name;
            target.columns.iter().position(|c| c.name == *name).map_or(0, |at| at as i16 + 1)
        };
        let comments = bits & like::COMMENTS != 0;
        for constraint in source.constraints.iter().filter_map(|c| catalog.constraint(*c)) {
            let copy = match constraint.kind {
                ConstraintKind::Check if bits & like::CONSTRAINTS != 0 => self.copy_check(table, constraint, &number)?,
                ConstraintKind::NotNull => {
                    let of = constraint.columns.first().map(|c| number(*c));
                    let target = self.relation(table)?;
                    of.and_then(|n| self.catalog().not_null_constraint(&target, n).map(|c| c.oid))
                }
                _ => None,
            };
            if let Some(copy) = copy.filter(|_| comments) {
                self.copy_comment((classes::PG_CONSTRAINT, constraint.oid, 0), (copy, 0));
            }
        }
        if bits & like::INDEXES != 0 {
            for index in source.indexes.iter().filter_map(|i| catalog.relation(*i)) {
                let copy = self.copy_index(table, index, &number)?;
                if comments {
                    self.copy_comment((classes::PG_CLASS, index.oid, 0), (copy, 0));
                }
            }
        }
        if comments {
            for at in (1..).zip(source.columns.iter()).filter(|(_, c)| !c.dropped).map(|(at, _)| at) {
                let to = i32::from(number(at));
                if to > 0 {
                    self.copy_comment((classes::PG_CLASS, source.oid, i32::from(at)), (table, to));
                }
            }
        }
        Ok(())
    }

    fn copy_comment(&self, (class, object, sub): (Oid, Oid, i32), (to, to_sub): (Oid, i32)) {
        let catalog = self.catalog();
        if let Some(comment) = catalog.description(ObjectAddress { class, object, sub }) {
            let address = ObjectAddress { class, object: to, sub: to_sub };
            self.tx.put(Object::Description(Arc::new(Description { address, text: comment.text.clone() })));
        }
    }

    /// Adds another table's check to a table; an inherited one becomes its own, too.
    fn copy_check(&self, table: Oid, check: &Row, number: &dyn Fn(i16) -> i16) -> Result<Option<Oid>> {
        let target = self.relation(table)?;
        let catalog = self.catalog();
        let mut own = target.constraints.iter().filter_map(|c| catalog.constraint(*c));
        let same = |c: &&Arc<Row>| c.name == check.name && c.inherited > 0 && c.expression == check.expression;
        if let Some(inherited) = own.find(same) {
            self.notice(format!("merging constraint \"{}\" with inherited definition", check.name));
            self.tx.put(Object::Constraint(Arc::new(Row { local: true, ..(**inherited).clone() })));
            return Ok(Some(inherited.oid));
        }
        let row = Row {
            columns: check.columns.iter().map(|c| number(*c)).collect(),
            expression: check.expression.clone(),
            depends_on: check.depends_on.clone(),
            no_inherit: check.no_inherit,
            enforced: check.enforced,
            validated: check.enforced,
            ..self.bare_constraint(&target, &check.name, ConstraintKind::Check)?
        };
        let oid = row.oid;
        self.put_constraint((*target).clone(), row);
        Ok(Some(oid))
    }

    /// Adds an index like another table's to a table, with a constraint if that one has. Returns its OID.
    pub fn copy_index(&self, table: Oid, index: &Relation, number: &dyn Fn(i16) -> i16) -> Result<Oid> {
        let Some(info) = &index.index else { return Err(DbError::internal("an index without its definition")) };
        let target = self.relation(table)?;
        let catalog = self.catalog();
        let is_primary = |i: &Oid| catalog.relation(*i).and_then(|r| r.index.as_ref()).is_some_and(|i| i.primary);
        if info.primary && target.indexes.iter().any(is_primary) {
            bail!(INVALID_TABLE_DEFINITION, "multiple primary keys for table \"{}\" are not allowed", target.name);
        }
        let keys: Vec<KeyRequest> = info
            .keys
            .iter()
            .zip(index.columns.iter())
            .map(|(k, own)| KeyRequest {
                column: if k.column == 0 { 0 } else { number(k.column) },
                expression: k.expression.clone().map(|text| (text, k.ty, k.collation)),
                collation: Some(k.collation),
                opclass: Some(k.opclass),
                descending: k.descending,
                nulls_first: k.nulls_first,
                name: Some(own.name.to_string()),
            })
            .collect();
        let name = self.copied_index_name(&target, index, info, &keys, number);
        let old = catalog.constraint(info.constraint);
        let constraint = old.map(|old| self.bare_constraint(&target, &name, old.kind)).transpose()?;
        let renumbered = |of: &ObjectAddress| match of.class == classes::PG_CLASS && of.object == info.table {
            true => ObjectAddress { object: table, sub: number(of.sub as i16).into(), ..*of },
            false => *of,
        };
        let depends_on = index.depends_on.iter().map(renumbered).collect();
        let request = IndexRequest {
            keys,
            include: info.include.iter().map(|c| number(*c)).collect(),
            unique: info.unique,
            primary: info.primary,
            nulls_not_distinct: info.nulls_not_distinct,
            predicate: info.predicate.clone(),
            method: AccessMethod::of_oid(&catalog, index.access_method),
            constraint: constraint.as_ref().map_or(Oid::INVALID, |c| c.oid),
            deferrable: info.deferrable,
            options: index.options.clone(),
            depends_on,
            name,
        };
        let columns: Vec<i16> = request.keys.iter().map(|k| k.column).collect();
        let oid = self.build_index(&target, request)?;
        if let Some(bare) = constraint {
            let row = Row {
                columns,
                index: oid,
                deferrable: old.is_some_and(|c| c.deferrable),
                initially_deferred: old.is_some_and(|c| c.initially_deferred),
                operators: old.map_or_else(Vec::new, |c| c.operators.clone()),
                no_inherit: true,
                ..bare
            };
            self.put_constraint((*self.relation(table)?).clone(), row);
            check_excluded_rows(self, oid)?;
        }
        self.index_partitions(oid)?;
        Ok(oid)
    }

    fn copied_index_name(
        &self,
        target: &Relation,
        index: &Relation,
        info: &IndexInfo,
        keys: &[KeyRequest],
        number: &dyn Fn(i16) -> i16,
    ) -> String {
        // An expression's column is called like its function.
        let name = |(key, own): (&KeyRequest, &Column)| match key.column {
            0 => own.name.clone(),
            n => target.columns[n as usize - 1].name.clone(),
        };
        let mut names: Vec<Arc<str>> = keys.iter().zip(index.columns.iter()).map(name).collect();
        names.extend(info.include.iter().map(|c| target.columns[number(*c) as usize - 1].name.clone()));
        let names: Vec<&str> = names.iter().map(|n| &**n).collect();
        let part = column_part(&names);
        let catalog = self.catalog();
        let (middle, label) = match (info.primary, catalog.constraint(info.constraint).map(|c| c.kind)) {
            (true, _) => (None, "pkey"),
            (false, Some(ConstraintKind::Exclusion)) => (Some(part.as_str()), "excl"),
            (false, Some(_)) => (Some(part.as_str()), "key"),
            (false, None) => (Some(part.as_str()), "idx"),
        };
        unused_relation_name(&self.catalog(), target.namespace, &target.name, middle, label)
    }
}
