//! pg_rewrite: rules, the `_RETURN` rules of views among them.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes::FIRST_USER_OID;
use crate::objects::*;
use crate::rules::{VIEW_RULE, rules_of};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    match (s.oid(2), s.oid(0)) {
        (Some(relation), _) => {
            s.catalog.relation(relation).into_iter().for_each(|r| push_view_rule(r, out));
            rules_of(s.catalog, relation).into_iter().for_each(|rule| push_rule(rule, out));
        }
        (None, Some(rule)) if rule.0 >= FIRST_USER_OID => {
            s.catalog.relation_of_part(rule).into_iter().for_each(|r| push_view_rule(r, out));
            s.catalog.rule(rule).into_iter().for_each(|rule| push_rule(rule, out));
        }
        _ => {
            s.catalog.relations().for_each(|r| push_view_rule(r, out));
            s.catalog.rules().for_each(|rule| push_rule(rule, out));
        }
    }
}

fn push_view_rule(view: &Relation, out: &mut RelationRows<'_>) {
    let Some(query) = view.view_query.as_ref().filter(|_| view.rule.is_valid()) else { return };
    push_row(view.rule, VIEW_RULE, view.oid, (b'1', b'O', true), "<>", query, out);
}

fn push_rule(rule: &RewriteRule, out: &mut RelationRows<'_>) {
    let condition = rule.condition.as_deref().unwrap_or("<>");
    let actions = rule.actions.join(";");
    push_row(rule.oid, &rule.name, rule.table, (rule.event, rule.enabled, rule.instead), condition, &actions, out);
}

/// `kind`: ev_type, ev_enabled, is_instead.
fn push_row(
    rule: Oid,
    name: &str,
    relation: Oid,
    kind: (u8, u8, bool),
    condition: &str,
    actions: &str,
    out: &mut RelationRows<'_>,
) {
    let (event, enabled, instead) = kind;
    push!(
        out,
        [
            oid(rule),
            Datum::text(name),
            oid(relation),
            char(event),
            char(enabled),
            bool(instead),
            Datum::text(condition),
            Datum::text(actions),
        ]
    );
}
