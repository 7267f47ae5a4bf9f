//! Rules: a statement that changes a relation becomes the commands of the relation's rules (PostgreSQL's RewriteQuery, and its
//! manual's chapter "The Rule System").
//!
//! Invariants:
//! 1. Rules apply in the order of their names. An INSERT runs before the commands of its rules; an UPDATE or DELETE runs after
//!    them, so that they find its rows.
//! 2. `new` stands for the expressions that the statement assigns, computed again at each place, as in PostgreSQL; `old` for the
//!    row that it finds.
//! 3. The relations that a rule names are used with the privileges of the owner of the rule's relation.

use std::sync::Arc;

use melba_catalog::{Catalog, Relation, RelationKind, RewriteRule, rule_events, rules};
use melba_types::{DbError, Oid, Result, bail, err, limits};

use super::context::Context;
use super::rewrite_action::ActionRewrite;
use super::rule::{RuleAction, stored_rule};
use super::rule_rows::{EventRows, expand_joins, with_source};
use super::trigger::{event_of, trigger_event_of};
use super::updatable::refuse_merge;
use super::view_target::not_updatable;
use melba_tree::*;

/// A statement that rules have rewritten.
pub struct Rewritten {
    /// The commands that run instead, in order.
    pub steps: Vec<RuleAction>,
    /// The one whose rows the command tag counts, and whose RETURNING the statement returns.
    pub counted: Option<usize>,
    /// The kind of rules by which it is something else than one statement.
    pub not_one: Option<&'static str>,
    /// Whose rules have rewritten it.
    pub relations: Vec<Oid>,
}

/// The reason why a command is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Original,
    Also,
    Instead,
    /// Instead, for the rows of which a condition holds.
    ConditionalInstead,
}

struct Produced {
    step: RuleAction,
    source: Source,
}

/// Rewrites a statement by the rules of the relations that it changes; `None`: none apply.
///
/// # Errors
/// 42P17 for rules that need themselves; 0A000 for clauses that PostgreSQL refuses with rules.
pub fn apply_rules(cx: &Context<'_>, query: &Query) -> Result<Option<Rewritten>> {
    let changes = |q: &Query| q.command != Command::Select;
    if !rules::has_rules(cx.catalog) || !changes(query) && !query.ctes.iter().any(|cte| changes(&cte.query)) {
        return Ok(None);
    }
    let mut rewriter = RuleRewriter { cx, active: Vec::new(), applied: Vec::new() };
    let produced = rewriter.query(query.clone(), Source::Original)?;
    if rewriter.applied.is_empty() {
        return Ok(None);
    }
    let is_same = |p: &Produced| matches!(&p.step, RuleAction::Query(q) if q.command == query.command);
    let original = produced.iter().position(|p| p.source == Source::Original);
    let last_instead =
        || produced.iter().rposition(|p| matches!(p.source, Source::Instead | Source::ConditionalInstead) && is_same(p));
    let counted = original.or_else(last_instead);
    let not_one = not_one(&produced);
    let steps = produced.into_iter().map(|p| p.step).collect();
    Ok(Some(Rewritten { steps, counted, not_one, relations: rewriter.applied }))
}

fn rules_for<'a>(cx: &Context<'a>, relation: Oid, event: u8) -> Vec<&'a Arc<RewriteRule>> {
    rules::rules_for(cx.catalog, relation, event, cx.session.is_replica())
}

/// The relation that a statement changes.
fn target<'a>(catalog: &'a Catalog, query: &Query) -> Option<&'a Arc<Relation>> {
    match query.range_table.get(query.result?)?.kind {
        RangeKind::Relation { oid, .. } | RangeKind::Subquery { view: oid, .. } => catalog.relation(oid),
        _ => None,
    }
}

struct RuleRewriter<'a> {
    cx: &'a Context<'a>,
    /// The events whose rules' commands are being rewritten.
    active: Vec<(Oid, u8)>,
    /// Relations of which rules applied.
    applied: Vec<Oid>,
}

/// The result of the rules of one event.
struct Fired {
    products: Vec<Produced>,
    /// An unconditional INSTEAD rule: the statement itself is not run.
    replaced: bool,
    /// The conditions of INSTEAD rules, in terms of the statement: it runs where none holds.
    conditions: Vec<Expr>,
    /// A command returns what the statement's RETURNING asks for.
    returns: bool,
}

impl RuleRewriter<'_> {
    fn query(&mut self, mut query: Query, source: Source) -> Result<Vec<Produced>> {
        limits::check_stack()?;
        self.modifying_ctes(&mut query)?;
        let Some(relation) = target(self.cx.catalog, &query) else { return Ok(vec![produced(query, source)]) };
        if query.command == Command::Merge {
            refuse_merge(self.cx, relation)?;
        }
        let Some(event) = event_of(query.command) else { return Ok(vec![produced(query, source)]) };
        let rules = rules_for(self.cx, relation.oid, event);
        let conflicts = query.insert.as_ref().is_some_and(|insert| insert.on_conflict.is_some());
        if rules.is_empty() && !conflicts {
            return Ok(vec![produced(query, source)]);
        }
        if !rules.is_empty() {
            self.applied.push(relation.oid);
        }
        expand_joins(&mut query);
        let Fired { products, replaced, conditions, returns } = self.fire(&query, relation, event, &rules)?;
        if !replaced {
            self.check_view(relation, &query, !conditions.is_empty())?;
        }
        let has_products = !products.is_empty();
        let mut all = self.products(products, relation, event)?;
        if (replaced || !conditions.is_empty()) && !query.returning.is_empty() && !returns {
            return Err(cannot_return(relation, query.command));
        }
        if conflicts && (has_products || rules::has_rule(self.cx.catalog, relation.oid, rule_events::UPDATE)) {
            let message = "INSERT with ON CONFLICT clause cannot be used with table that has INSERT or UPDATE rules";
            bail!(FEATURE_NOT_SUPPORTED, "{message}");
        }
        let has_ctes = !query.ctes.is_empty();
        if !replaced {
            let own = produced(restricted(query, conditions), source);
            all.insert(if event == rule_events::INSERT { 0 } else { all.len() }, own);
        }
        if has_ctes && all.iter().filter(|p| matches!(p.step, RuleAction::Query(_))).count() > 1 {
            let message = "WITH cannot be used in a query that is rewritten by rules into multiple queries";
            bail!(FEATURE_NOT_SUPPORTED, "{message}");
        }
        Ok(all)
    }

    /// # Errors
    /// 55000 for a view that no unconditional INSTEAD rule or trigger changes, where PostgreSQL would have to change its table.
    fn check_view(&self, relation: &Arc<Relation>, query: &Query, is_conditional: bool) -> Result<()> {
        let event = trigger_event_of(query.command);
        if relation.kind != RelationKind::View || self.cx.catalog.has_instead_trigger(relation, event) {
            return Ok(());
        }
        if is_conditional {
            let detail = "Views with conditional DO INSTEAD rules are not automatically updatable.";
            return Err(not_updatable(relation, query.command, false).detail(detail));
        }
        Err(DbError::unsupported("a DO ALSO rule of a view without a DO INSTEAD rule or an INSTEAD OF trigger"))
    }

    fn fire(&mut self, query: &Query, relation: &Arc<Relation>, event: u8, rules: &[&Arc<RewriteRule>]) -> Result<Fired> {
        let mut fired = Fired { products: Vec::new(), replaced: false, conditions: Vec::new(), returns: false };
        let rows = EventRows::new(self.cx, query, relation);
        for rule in rules {
            let analyzed = stored_rule(self.cx, rule, relation, false)?;
            let condition = analyzed.condition;
            let source = match (rule.instead, &condition) {
                (false, _) => Source::Also,
                (true, None) => Source::Instead,
                (true, Some(_)) => Source::ConditionalInstead,
            };
            fired.replaced |= source == Source::Instead;
            if let (Source::ConditionalInstead, Some(condition)) = (source, &condition) {
                let mut own = condition.clone();
                rows.replace_in(&mut own, 0)?;
                fired.conditions.push(own);
            }
            for action in analyzed.actions {
                let step = match action {
                    RuleAction::Query(action) => {
                        let rewrite = ActionRewrite { rows: &rows, query, event, condition: condition.as_ref() };
                        RuleAction::Query(Box::new(rewrite.apply(*action, &mut fired.returns)?))
                    }
                    notify => notify,
                };
                fired.products.push(Produced { step, source });
            }
        }
        Ok(fired)
    }

    /// Rewrites the commands of rules in turn.
    fn products(&mut self, products: Vec<Produced>, relation: &Relation, event: u8) -> Result<Vec<Produced>> {
        if products.is_empty() {
            return Ok(products);
        }
        if self.active.contains(&(relation.oid, event)) {
            let name = &relation.name;
            bail!(INVALID_OBJECT_DEFINITION, "infinite recursion detected in rules for relation \"{name}\"");
        }
        self.active.push((relation.oid, event));
        let mut all = Vec::with_capacity(products.len());
        for Produced { step, source } in products {
            match step {
                RuleAction::Query(query) => all.extend(self.query(*query, source)?),
                notify => all.push(Produced { step: notify, source }),
            }
        }
        self.active.pop();
        Ok(all)
    }

    /// A statement in WITH must remain one.
    fn modifying_ctes(&mut self, query: &mut Query) -> Result<()> {
        for cte in query.ctes.iter_mut().filter(|cte| cte.query.command != Command::Select) {
            let own = std::mem::replace(&mut *cte.query, Query::new(Command::Select));
            let mut all = self.query(own, Source::Original)?;
            if let Some(which) = not_one(&all) {
                bail!(FEATURE_NOT_SUPPORTED, "{which} rules are not supported for data-modifying statements in WITH");
            }
            if let Some(Produced { step: RuleAction::Query(one), .. }) = all.pop() {
                cte.query = one;
            }
        }
        Ok(())
    }
}

/// The kind of rules by which a statement has become something else than one statement.
fn not_one(all: &[Produced]) -> Option<&'static str> {
    let has = |source| all.iter().any(|p| p.source == source);
    Some(match all {
        [Produced { step: RuleAction::Query(_), .. }] => return None,
        [_] => "DO INSTEAD NOTIFY",
        [] => "DO INSTEAD NOTHING",
        _ if has(Source::ConditionalInstead) => "conditional DO INSTEAD",
        _ if has(Source::Also) => "DO ALSO",
        _ => "multi-statement DO INSTEAD",
    })
}

fn produced(query: Query, source: Source) -> Produced {
    Produced { step: RuleAction::Query(Box::new(query)), source }
}

/// The statement for the rows for which no condition holds.
fn restricted(mut query: Query, conditions: Vec<Expr>) -> Query {
    if conditions.is_empty() {
        return query;
    }
    let others = conditions.into_iter().map(|c| Expr::BooleanTest { arg: Box::new(c), test: BooleanTest::NotTrue });
    query.add_conditions(others);
    if query.command == Command::Insert { with_source(query) } else { query }
}

fn cannot_return(relation: &Relation, command: Command) -> DbError {
    let word = match command {
        Command::Insert => "INSERT",
        Command::Update => "UPDATE",
        _ => "DELETE",
    };
    err!(FEATURE_NOT_SUPPORTED, "cannot perform {word} RETURNING on relation \"{}\"", relation.name)
        .hint(format!("You need an unconditional ON {word} DO INSTEAD rule with a RETURNING clause."))
}
