//! Objects that depend on a column whose type has changed: its table's indexes and constraints, and foreign keys to it.
//!
//! As in PostgreSQL, which creates them again from their text, expressions without a meaning for the new type are refused.

use std::sync::Arc;

use melba_catalog::{Constraint, ConstraintKind, ForeignKeyInfo, IndexInfo, IndexKey, Object, Relation};
use melba_types::{Oid, Result, bail};
use pg_query::protobuf::AlterTableCmd;

use super::Ddl;
use super::alter_kind::check_form;
use super::exclusion::retyped_operators;
use super::expression::{Stored, Use};
use super::index::AccessMethod;
use super::rewrite::TypeChange;

/// Columns whose types a statement changes, by table.
#[derive(Default)]
pub struct Retyped(Vec<(Oid, Vec<TypeChange>)>);

impl Retyped {
    pub fn add(&mut self, table: Oid, change: TypeChange) {
        match self.0.iter_mut().find(|(t, _)| *t == table) {
            Some((_, changes)) => changes.push(change),
            None => self.0.push((table, vec![change])),
        }
    }
}

impl Ddl<'_> {
    /// All ALTER COLUMN TYPE of a statement: objects over several of the columns are adapted when all have changed.
    pub fn alter_column_types(&self, table: Oid, commands: &[&AlterTableCmd], recurse: bool) -> Result<()> {
        let mut retyped = Retyped::default();
        for (nth, c) in commands.iter().enumerate() {
            let relation = self.relation(table)?;
            check_form(c.subtype(), &relation)?;
            let at = self.place_of_column(&relation, c)?;
            if commands[..nth].iter().any(|before| before.name == c.name) {
                bail!(FEATURE_NOT_SUPPORTED, "cannot alter type of column \"{}\" twice", c.name);
            }
            let def = c.def.as_deref().and_then(|d| d.node.as_ref());
            self.alter_type_everywhere(&relation, at, def, recurse, &mut retyped)?;
        }
        for (table, changes) in &retyped.0 {
            let is_new = self.change_types(*table, changes)?;
            let changed: Vec<usize> = changes.iter().map(|c| c.at).collect();
            for index in self.relation(*table)?.indexes.clone() {
                self.retype_index(&*self.relation(*table)?, &*self.relation(index)?, &changed)?;
                if is_new {
                    self.fill_index(index)?;
                }
            }
        }
        retyped.0.iter().try_for_each(|(table, changes)| {
            let changed: Vec<usize> = changes.iter().map(|c| c.at).collect();
            self.retype_constraints(&*self.relation(*table)?, &changed)
        })
    }

    fn retype_constraints(&self, relation: &Relation, changed: &[usize]) -> Result<()> {
        let uses = |columns: &[i16]| columns.iter().any(|number| *number > 0 && changed.contains(&(*number as usize - 1)));
        let catalog = self.catalog();
        for check in relation.constraints.iter().filter_map(|c| catalog.constraint(*c)) {
            if check.kind == ConstraintKind::Check && uses(&check.columns) {
                self.retype_check(relation, check)?;
            }
        }
        let own = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| uses(&c.columns));
        let refers = |c: &&Arc<Constraint>| c.foreign_key.as_ref().is_some_and(|k| uses(&k.referenced_columns));
        let others = catalog.referencing_constraints(relation.oid);
        let mut keys: Vec<_> = own.filter(|c| c.foreign_key.is_some()).chain(others.into_iter().filter(refers)).collect();
        keys.sort_by_key(|c| c.oid);
        keys.dedup_by_key(|c| c.oid);
        keys.into_iter().try_for_each(|key| self.retype_foreign_key(key))
    }

    fn again(&self, text: &str, relation: &Relation, usage: Use) -> Result<Stored> {
        // Positions would be in the stored text, which the client did not send.
        let stored = self.stored_expression(&melba_parse::parse_expression(text)?, relation, usage, None);
        stored.map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })
    }

    fn retype_index(&self, relation: &Relation, index: &Relation, changed: &[usize]) -> Result<()> {
        let Some(info) = &index.index else { return Ok(()) };
        let catalog = self.catalog();
        let predicate = match &info.predicate {
            Some(text) => Some(self.again(text, relation, Use::IndexPredicate)?.text),
            None => None,
        };
        let mut keys = info.keys.clone();
        for key in &mut keys {
            let (ty, collation, natural) = match &key.expression {
                None if changed.contains(&(key.column as usize - 1)) => {
                    let column = &relation.columns[key.column as usize - 1];
                    (column.ty, column.collation, column.collation)
                }
                None => continue,
                Some(text) => {
                    let stored = self.again(text, relation, Use::IndexExpression)?;
                    key.expression = Some(stored.text);
                    if stored.ty == key.ty {
                        continue;
                    }
                    (stored.ty, stored.collation, stored.collation)
                }
            };
            let method = AccessMethod::of_oid(&catalog, index.access_method);
            let Some(opclass) = catalog.default_operator_class(method.oid, ty) else {
                bail!(
                    UNDEFINED_OBJECT,
                    "data type {} has no default operator class for access method \"{}\"",
                    catalog.type_name(ty, self.path),
                    method.name
                );
            };
            *key = IndexKey { ty, collation, natural_collation: natural, opclass: opclass.oid, ..key.clone() };
        }
        if let Some(constraint) = catalog.constraint(info.constraint).filter(|c| !c.operators.is_empty()) {
            let operators = retyped_operators(self, constraint, &keys)?;
            self.tx.put(Object::Constraint(Arc::new(Constraint { operators, ..(**constraint).clone() })));
        }
        let mut columns = index.columns.to_vec();
        for (key, c) in keys.iter().zip(&mut columns) {
            c.ty = key.ty;
            c.kind = catalog.kind_of(key.ty).unwrap_or(c.kind);
        }
        let info = IndexInfo { keys, predicate, ..(**info).clone() };
        self.put_relation(Relation { index: Some(Arc::new(info)), columns: columns.into(), ..index.clone() });
        Ok(())
    }

    fn retype_check(&self, relation: &Relation, check: &Constraint) -> Result<()> {
        let Some(text) = &check.expression else { return Ok(()) };
        let stored = self.again(text, relation, Use::Check)?;
        let row = Constraint { expression: Some(stored.text), depends_on: stored.depends_on, ..check.clone() };
        self.tx.put(Object::Constraint(Arc::new(row.clone())));
        if row.validated && row.enforced { self.check_existing_rows(&row) } else { Ok(()) }
    }

    /// A foreign key compares by the operators of the new types, and is checked again.
    fn retype_foreign_key(&self, key: &Constraint) -> Result<()> {
        let Some(info) = &key.foreign_key else { return Ok(()) };
        let (from, to) = (self.relation(key.relation)?, self.relation(info.referenced_table)?);
        let mut operators = Vec::new();
        for (referencing, referenced) in key.columns.iter().zip(&info.referenced_columns) {
            let (from, to) = (&from.columns[*referencing as usize - 1], &to.columns[*referenced as usize - 1]);
            operators.push(self.key_equality(&key.name, from, to)?);
        }
        let info = ForeignKeyInfo { operators, ..(**info).clone() };
        self.tx.put(Object::Constraint(Arc::new(Constraint { foreign_key: Some(Arc::new(info)), ..key.clone() })));
        if key.validated && key.enforced { self.validate_foreign_key(key.oid) } else { Ok(()) }
    }
}
