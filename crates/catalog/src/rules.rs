//! The rules of relations, and which of them apply to a command.

use std::sync::Arc;

use melba_types::Oid;

use crate::classes;
use crate::objects::{Object, ObjectAddress};
use crate::snapshot::Catalog;
use crate::triggers::fires;

/// A row of pg_rewrite. The `_RETURN` rules of views are parts of their relations (`Relation::rule`).
#[derive(Clone, Debug)]
pub struct RewriteRule {
    pub oid: Oid,
    pub name: Arc<str>,
    pub table: Oid,
    /// pg_rewrite.ev_type, one of `rule_events`.
    pub event: u8,
    /// pg_rewrite.ev_enabled, as pg_trigger.tgenabled.
    pub enabled: u8,
    pub instead: bool,
    /// WHERE, over the entries `old` and `new`.
    pub condition: Option<Arc<str>>,
    /// The commands; none: NOTHING.
    pub actions: Vec<Arc<str>>,
    /// The dependencies of the condition and the commands.
    pub depends_on: Vec<ObjectAddress>,
}

/// The name of the rule that is a view's query.
pub const VIEW_RULE: &str = "_RETURN";

/// pg_rewrite.ev_type.
pub mod rule_events {
    pub const UPDATE: u8 = b'2';
    pub const INSERT: u8 = b'3';
    pub const DELETE: u8 = b'4';
}

impl RewriteRule {
    /// Whether the command that it is for is not run, whatever the rows.
    pub fn replaces(&self) -> bool {
        self.instead && self.condition.is_none()
    }

    pub fn address(&self) -> ObjectAddress {
        ObjectAddress { class: classes::PG_REWRITE, object: self.oid, sub: 0 }
    }
}

/// Whether any relation has a rule other than `_RETURN`.
pub fn has_rules(catalog: &Catalog) -> bool {
    catalog.rules.user_objects().next().is_some()
}

/// The rules of a relation by name, in which order they apply.
pub fn rules_of(catalog: &Catalog, relation: Oid) -> Vec<&Arc<RewriteRule>> {
    let mut all: Vec<_> = catalog.rules.within(relation).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Those that apply to one of `rule_events`. `replica`: whether session_replication_role is replica.
pub fn rules_for(catalog: &Catalog, relation: Oid, event: u8, replica: bool) -> Vec<&Arc<RewriteRule>> {
    let mut all = rules_of(catalog, relation);
    all.retain(|rule| rule.event == event && fires(rule.enabled, replica));
    all
}

/// The name of a rule, that of a view's query included, and its relation.
pub fn rule_name(catalog: &Catalog, oid: Oid) -> Option<(&str, Oid)> {
    match catalog.rule(oid) {
        Some(rule) => Some((&*rule.name, rule.table)),
        None => catalog.relation_of_part(oid).filter(|view| view.rule == oid).map(|view| (VIEW_RULE, view.oid)),
    }
}

/// Whether a relation has a rule for one of `rule_events`, enabled or not.
pub fn has_rule(catalog: &Catalog, relation: Oid, event: u8) -> bool {
    catalog.rules.within(relation).any(|rule| rule.event == event)
}

impl From<RewriteRule> for Object {
    fn from(rule: RewriteRule) -> Object {
        Object::Rule(Arc::new(rule))
    }
}
