//! Keeps stored text correct when an object it uses is renamed: the text is analyzed before the change and printed again after it.

use std::sync::Arc;

use melba_catalog::{
    Column, Constraint, DomainInfo, Function, IndexInfo, IndexKey, Object, ObjectAddress, Policy, Relation, Trigger, Type,
    classes,
};
use melba_types::{DbError, Oid, Result};

use super::Ddl;
use melba_analyze::{Expected, RoutineScope, analyze_in_routine, routine_statements};
use melba_tree::{Expr, Query};

/// A stored text, analyzed so that it can be printed again.
pub enum StoredText {
    View { relation: Oid, query: Box<Query> },
    Check { constraint: Oid, expr: Expr },
    Default { relation: Oid, column: usize, expr: Expr },
    DomainDefault { domain: Oid, expr: Expr },
    IndexKey { index: Oid, key: usize, expr: Expr },
    Predicate { index: Oid, expr: Expr },
    PartitionKey { relation: Oid, column: usize, expr: Expr },
    Condition { trigger: Oid, condition: Expr },
    Policy { policy: Oid, using: Option<Expr>, check: Option<Expr> },
    Body { function: Oid, queries: Vec<Query>, scope: RoutineScope },
    ArgumentDefault { function: Oid, argument: usize, expr: Expr },
}

impl Ddl<'_> {
    /// Runs `change` and then prints every stored text that mentions the relation again, so that it uses the new names.
    pub fn rewriting_dependents(&self, relation: Oid, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let kept = self.read_texts([relation], [], [])?;
        change()?;
        self.print_texts(kept)
    }

    /// The same for an object that is no relation.
    pub fn rewriting_users_of(&self, of: ObjectAddress, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut kept = Vec::new();
        self.keep_users(of, &mut kept)?;
        change()?;
        self.print_texts(kept)
    }

    /// The texts of relations, and all texts that mention them or the functions.
    pub(super) fn read_texts(
        &self,
        relations: impl IntoIterator<Item = Oid>,
        functions: impl IntoIterator<Item = Oid>,
        types: impl IntoIterator<Item = Oid>,
    ) -> Result<Vec<StoredText>> {
        let mut kept = Vec::new();
        for relation in relations {
            let own = self.relation(relation)?;
            self.keep_checks(&own, &mut kept)?;
            own.triggers.iter().try_for_each(|t| self.keep_condition(*t, &mut kept))?;
            for policy in self.catalog().policies_of(relation) {
                self.keep_policy(policy, &mut kept)?;
            }
            for index in &own.indexes {
                self.keep_index(*index, &mut kept)?;
            }
            self.keep_users(ObjectAddress { class: classes::PG_CLASS, object: relation, sub: 0 }, &mut kept)?;
            if own.row_type.is_valid() {
                self.keep_users(ObjectAddress { class: classes::PG_TYPE, object: own.row_type, sub: 0 }, &mut kept)?;
            }
        }
        for object in functions {
            self.keep_users(ObjectAddress { class: classes::PG_PROC, object, sub: 0 }, &mut kept)?;
        }
        for object in types {
            self.keep_users(ObjectAddress { class: classes::PG_TYPE, object, sub: 0 }, &mut kept)?;
        }
        Ok(kept)
    }

    pub(super) fn print_texts(&self, kept: Vec<StoredText>) -> Result<()> {
        kept.into_iter().try_for_each(|item| self.print_again(item))
    }

    fn stored(&self, text: &str, of: &Arc<Relation>, column: Option<&Column>) -> Result<Expr> {
        let expected = column.map(|c| Expected { ty: c.ty, typmod: c.typmod, column: &c.name });
        self.with_context(|c| melba_analyze::analyze_stored_expression(c, text, Some(of), expected))
    }

    /// Checks, generation expressions and the partition key of a relation.
    fn keep_checks(&self, relation: &Arc<Relation>, kept: &mut Vec<StoredText>) -> Result<()> {
        let catalog = self.catalog();
        for constraint in relation.constraints.iter().filter_map(|c| catalog.constraint(*c)) {
            self.keep_check(constraint, relation, kept)?;
        }
        for (at, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated != 0 && !c.dropped) {
            self.keep_default(relation, at, column, kept)?;
        }
        for (at, column) in relation.partition_key.iter().flat_map(|k| k.columns.iter().enumerate()) {
            if let Some(text) = &column.expression {
                let expr = self.stored(text, relation, None)?;
                kept.push(StoredText::PartitionKey { relation: relation.oid, column: at, expr });
            }
        }
        Ok(())
    }

    fn keep_check(&self, constraint: &Constraint, relation: &Arc<Relation>, kept: &mut Vec<StoredText>) -> Result<()> {
        if let Some(text) = &constraint.expression {
            kept.push(StoredText::Check { constraint: constraint.oid, expr: self.stored(text, relation, None)? });
        }
        Ok(())
    }

    fn keep_domain_check(&self, constraint: &Constraint, kept: &mut Vec<StoredText>) -> Result<()> {
        let catalog = self.catalog();
        let Some(domain) = catalog.type_(constraint.domain).and_then(|t| t.domain.as_ref()) else { return Ok(()) };
        if let Some(text) = &constraint.expression {
            let (base, typmod) = catalog.base_type_and_typmod(domain.base, domain.typmod);
            let expr = self.with_context(|c| melba_analyze::analyze_stored_domain_check(c, text, base, typmod))?;
            kept.push(StoredText::Check { constraint: constraint.oid, expr });
        }
        Ok(())
    }

    fn keep_domain_default(&self, domain: Oid, of: ObjectAddress, kept: &mut Vec<StoredText>) -> Result<()> {
        let catalog = self.catalog();
        let Some(ty) = catalog.type_(domain).filter(|t| t.depends_on.iter().any(|d| d.object == of.object)) else {
            return Ok(());
        };
        let Some(info) = &ty.domain else { return Ok(()) };
        if let Some(text) = &info.default {
            let expected = Expected { ty: info.base, typmod: info.typmod, column: &ty.name };
            let expr = self.with_context(|c| melba_analyze::analyze_stored_expression(c, text, None, Some(expected)))?;
            kept.push(StoredText::DomainDefault { domain, expr });
        }
        Ok(())
    }

    fn keep_condition(&self, trigger: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
        let known = |k: &StoredText| matches!(k, StoredText::Condition { trigger: known, .. } if *known == trigger);
        let catalog = self.catalog();
        if let Some(row) = catalog.trigger(trigger).filter(|_| !kept.iter().any(known))
            && let Some(condition) = self.condition_of(row)?
        {
            kept.push(StoredText::Condition { trigger, condition });
        }
        Ok(())
    }

    fn keep_policy(&self, policy: &Policy, kept: &mut Vec<StoredText>) -> Result<()> {
        let known = |k: &StoredText| matches!(k, StoredText::Policy { policy: known, .. } if *known == policy.oid);
        if kept.iter().any(known) {
            return Ok(());
        }
        let table = self.relation(policy.table)?;
        let using = self.stored_policy_condition(&policy.using, &table)?;
        let check = self.stored_policy_condition(&policy.check, &table)?;
        kept.push(StoredText::Policy { policy: policy.oid, using, check });
        Ok(())
    }

    fn keep_default(&self, relation: &Arc<Relation>, at: usize, column: &Column, kept: &mut Vec<StoredText>) -> Result<()> {
        if let Some(text) = &column.default {
            let expr = self.stored(text, relation, Some(column))?;
            kept.push(StoredText::Default { relation: relation.oid, column: at, expr });
        }
        Ok(())
    }

    fn keep_index(&self, index: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
        let relation = self.relation(index)?;
        let Some(info) = &relation.index else { return Ok(()) };
        let table = self.relation(info.table)?;
        for (at, key) in info.keys.iter().enumerate() {
            if let Some(text) = &key.expression {
                kept.push(StoredText::IndexKey { index, key: at, expr: self.stored(text, &table, None)? });
            }
        }
        if let Some(text) = &info.predicate {
            kept.push(StoredText::Predicate { index, expr: self.stored(text, &table, None)? });
        }
        Ok(())
    }

    /// Views, functions, defaults, checks and indexes that mention an object.
    fn keep_users(&self, of: ObjectAddress, kept: &mut Vec<StoredText>) -> Result<()> {
        let catalog = self.catalog();
        // Arrays of a type are named after it.
        if let Some(array) = catalog.type_(of.object).filter(|t| of.class == classes::PG_TYPE && t.array.is_valid()) {
            self.keep_users(ObjectAddress { object: array.array, ..of }, kept)?;
        }
        let mut users: Vec<ObjectAddress> = catalog.dependents(of).map(|d| d.dependent).collect();
        users.dedup_by_key(|u| (u.class, u.object));
        let uses = |list: &[ObjectAddress]| list.iter().any(|d| d.object == of.object);
        for user in users {
            match user.class {
                classes::PG_PROC => self.keep_function(user.object, kept)?,
                classes::PG_CONSTRAINT => {
                    let Some(constraint) = catalog.constraint(user.object).filter(|c| uses(&c.depends_on)) else { continue };
                    match catalog.relation(constraint.relation) {
                        Some(relation) => self.keep_check(constraint, relation, kept)?,
                        None => self.keep_domain_check(constraint, kept)?,
                    }
                }
                classes::PG_ATTRDEF => {
                    if let Some((relation, at)) = catalog.column_with_default(user.object) {
                        self.keep_default(relation, at, &relation.columns[at], kept)?;
                    }
                }
                classes::PG_TRIGGER => self.keep_condition(user.object, kept)?,
                classes::PG_POLICY => {
                    if let Some(policy) = catalog.policy(user.object) {
                        self.keep_policy(policy, kept)?;
                    }
                }
                classes::PG_TYPE => self.keep_domain_default(user.object, of, kept)?,
                _ => self.keep_relation(user.object, of, kept)?,
            }
        }
        Ok(())
    }

    fn keep_relation(&self, oid: Oid, of: ObjectAddress, kept: &mut Vec<StoredText>) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(oid) else { return Ok(()) };
        if relation.view_query.is_some() {
            let query = self.with_context(|c| melba_analyze::analyze_view(c, relation))?;
            kept.push(StoredText::View { relation: oid, query: Box::new(query) });
        }
        for (at, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated != 0 && !c.dropped) {
            if column.default_depends_on.iter().any(|d| d.object == of.object) {
                self.keep_default(relation, at, column, kept)?;
            }
        }
        if relation.index.is_some() && of.class != classes::PG_CLASS {
            self.keep_index(oid, kept)?;
        }
        Ok(())
    }

    fn keep_function(&self, oid: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
        let catalog = self.catalog();
        let Some(f) = catalog.function(oid) else { return Ok(()) };
        if f.sql_body.is_some() {
            let scope = RoutineScope::of(f, &f.arg_types, Oid::INVALID);
            let statements = routine_statements(f, self.session)?;
            let queries = self.with_context(|c| {
                let c = c.of_body(f);
                statements.iter().map(|s| analyze_in_routine(&c, &s.node, &scope)).collect::<Result<Vec<_>>>()
            })?;
            kept.push(StoredText::Body { function: oid, queries, scope });
        }
        for (argument, text) in f.arg_defaults.iter().enumerate() {
            let expr = self.with_context(|c| melba_analyze::analyze_stored_expression(c, text, None, None))?;
            kept.push(StoredText::ArgumentDefault { function: oid, argument, expr });
        }
        Ok(())
    }

    fn print_again(&self, item: StoredText) -> Result<()> {
        let print =
            |expr: &Expr, of: Option<&Relation>| self.with_context(|c| Ok(Arc::from(melba_deparse::expression(c, expr, of))));
        match item {
            StoredText::View { relation, query } => {
                let text = self.with_context(|c| Ok(melba_deparse::stored_query(c, &query)))?;
                let relation = self.relation(relation)?;
                self.put_relation(Relation { view_query: Some(text.into()), ..(*relation).clone() });
            }
            StoredText::Check { constraint, expr } => {
                let catalog = self.catalog();
                let row = catalog.constraint(constraint).ok_or_else(|| DbError::internal("missing constraint"))?;
                let text = print(&expr, catalog.relation(row.relation).map(|r| &**r))?;
                self.tx.put(Object::Constraint(Arc::new(Constraint { expression: Some(text), ..(**row).clone() })));
            }
            StoredText::Condition { trigger, condition } => {
                let catalog = self.catalog();
                let row = catalog.trigger(trigger).ok_or_else(|| DbError::internal("missing trigger"))?;
                let when = Some(self.trigger_condition_text(&condition, &*self.relation(row.table)?)?);
                self.tx.put(Object::Trigger(Arc::new(Trigger { when, ..(**row).clone() })));
            }
            StoredText::Policy { policy, using, check } => self.print_policy(policy, using, check)?,
            StoredText::Default { relation, column, expr } => {
                let relation = self.relation(relation)?;
                let text = print(&expr, Some(&relation))?;
                let mut columns = relation.columns.to_vec();
                columns[column].default = Some(text);
                self.put_relation(Relation { columns: columns.into(), ..(*relation).clone() });
            }
            StoredText::DomainDefault { domain, expr } => {
                let catalog = self.catalog();
                let ty = catalog.type_(domain).ok_or_else(|| DbError::internal("missing type"))?;
                let info = ty.domain.as_ref().ok_or_else(|| DbError::internal("domain without definition"))?;
                let default = self.with_context(|c| Ok(melba_deparse::domain_default(c, &expr).into()))?;
                let domain = Some(Arc::new(DomainInfo { default: Some(default), ..(**info).clone() }));
                self.tx.put(Object::Type(Arc::new(Type { domain, ..(**ty).clone() })));
            }
            StoredText::PartitionKey { relation, column, expr } => {
                let relation = self.relation(relation)?;
                let Some(key) = &relation.partition_key else { return Ok(()) };
                let mut key = (**key).clone();
                key.columns[column].expression = Some(print(&expr, Some(&relation))?);
                self.put_relation(Relation { partition_key: Some(Arc::new(key)), ..(*relation).clone() });
            }
            StoredText::IndexKey { index, key, expr } => self.change_index(index, |info, table| {
                let text = print(&expr, Some(table))?;
                let mut keys = info.keys.clone();
                keys[key] = IndexKey { expression: Some(text), ..keys[key].clone() };
                Ok(IndexInfo { keys, ..info.clone() })
            })?,
            StoredText::Predicate { index, expr } => self.change_index(index, |info, table| {
                Ok(IndexInfo { predicate: Some(print(&expr, Some(table))?), ..info.clone() })
            })?,
            StoredText::Body { function, queries, scope } => self.change_function(function, |f| {
                let is_return = f.sql_body.as_deref().is_some_and(|b| b.starts_with("RETURN"));
                // Its own name may be the one that changed.
                let scope = RoutineScope { name: f.name.clone(), ..scope };
                let text = self.with_context(|c| Ok(melba_deparse::stored_body(c, &queries, &scope, is_return)))?;
                Ok(Function { sql_body: Some(text.into()), ..f.clone() })
            })?,
            StoredText::ArgumentDefault { function, argument, expr } => self.change_function(function, |f| {
                let mut f = f.clone();
                f.arg_defaults[argument] = print(&expr, None)?;
                Ok(f)
            })?,
        }
        Ok(())
    }

    fn change_function(&self, oid: Oid, f: impl FnOnce(&Function) -> Result<Function>) -> Result<()> {
        let catalog = self.catalog();
        let function = catalog.function(oid).ok_or_else(|| DbError::internal("missing function"))?;
        self.tx.put(Object::Function(Arc::new(f(function)?)));
        Ok(())
    }

    fn change_index(&self, index: Oid, f: impl FnOnce(&IndexInfo, &Relation) -> Result<IndexInfo>) -> Result<()> {
        let index = self.relation(index)?;
        let info = index.index.as_ref().ok_or_else(|| DbError::internal("index without definition"))?;
        let table = self.relation(info.table)?;
        let info = f(info, &table)?;
        self.put_relation(Relation { index: Some(Arc::new(info)), ..(*index).clone() });
        Ok(())
    }
}
