//! Views that are simple enough to be updatable: follows the views in them to the table whose rows they show.

use std::sync::Arc;

use melba_catalog::foreign::require_handler;
use melba_catalog::rules::{rules_for, rules_of};
use melba_catalog::{Relation, RelationKind, rule_events, trigger_events};
use melba_types::{DbError, Oid, Result, err, limits};

use super::context::Context;
use super::scope::{Blocked, Layer};
use super::trigger::{event_of, trigger_event_of};
use melba_tree::*;

/// A view as its table's rows.
pub struct Updatable {
    /// It may be a view, whose triggers or rules change its rows.
    pub table: Arc<Relation>,
    /// The expressions of the view's columns, the table being entry 0.
    pub columns: Vec<Expr>,
    /// The view, and the views in it.
    pub layers: Vec<Layer>,
}

/// Why a view cannot be changed.
pub enum NotUpdatable {
    /// The content of this view, or of one in it.
    Because(Arc<Relation>, &'static str),
    /// Rules of a view in it would do a part of it.
    Rules,
    Failed(DbError),
}

impl From<DbError> for NotUpdatable {
    fn from(e: DbError) -> NotUpdatable {
        NotUpdatable::Failed(e)
    }
}

const NO_COLUMNS: &str = "Views that have no updatable columns are not automatically updatable.";
const SINGLE: &str = "Views that do not select from a single table or view are not automatically updatable.";

impl Updatable {
    /// `assigns`: there must be a column that can be assigned to. `commands`: what triggers of a view in it may do; without any,
    /// triggers are not looked at.
    pub fn of(cx: &Context<'_>, view: &Arc<Relation>, assigns: bool, commands: &[Command]) -> Result<Updatable, NotUpdatable> {
        let query = super::expression::analyze_view(cx, view)?;
        Updatable::of_query(cx, view, &query, assigns, commands)
    }

    /// The same of a view with another query than it has.
    pub fn of_query(
        cx: &Context<'_>,
        view: &Arc<Relation>,
        query: &Query,
        assigns: bool,
        commands: &[Command],
    ) -> Result<Updatable, NotUpdatable> {
        let because = |reason| NotUpdatable::Because(view.clone(), reason);
        if let Some(reason) = forbidden_clause(query) {
            return Err(because(reason));
        }
        let [FromItem::Range(entry)] = query.from[..] else { return Err(because(SINGLE)) };
        let (table, inner) = match &query.range_table[entry].kind {
            RangeKind::Relation { sample: Some(_), .. } => {
                return Err(because("Views containing TABLESAMPLE are not automatically updatable."));
            }
            RangeKind::Relation { oid, .. } => match cx.catalog.relation(*oid) {
                Some(r)
                    if matches!(r.kind, RelationKind::Table | RelationKind::PartitionedTable | RelationKind::ForeignTable) =>
                {
                    (r.clone(), None)
                }
                _ => return Err(because(SINGLE)),
            },
            RangeKind::Subquery { view: oid, .. } => {
                let Some(inner) = cx.catalog.relation(*oid) else { return Err(because(SINGLE)) };
                let by_rules = has_rules(cx, inner, commands)?;
                match by_rules || !commands.is_empty() && has_triggers(cx, inner, commands) {
                    true => (inner.clone(), None),
                    false => {
                        let inner = Updatable::of(cx, inner, false, commands)?;
                        (inner.table.clone(), Some(inner))
                    }
                }
            }
            _ => return Err(because(SINGLE)),
        };
        let meaning = |e: &Expr| over_table(e.clone(), entry, inner.as_ref().map(|inner| &inner.columns[..]));
        let targets = || query.targets.iter().filter(|t| !t.junk);
        let column = |(at, target): (usize, &Target)| {
            let name = view.columns.get(at).map_or_else(|| target.name.clone(), |c| c.name.clone());
            assignable(&target.expr, entry, inner.as_ref())
                .unwrap_or_else(|reason| Err(Blocked { view: view.name.clone(), column: name, reason }))
        };
        let columns: Vec<_> = targets().enumerate().map(column).collect();
        let own = |target: &Target| assignable(&target.expr, entry, inner.as_ref()).is_ok();
        if assigns && !targets().any(own) {
            return Err(because(NO_COLUMNS));
        }
        let layer = Layer { view: view.clone(), filter: query.filter.as_ref().map(meaning), columns };
        let columns = targets().map(|t| meaning(&t.expr)).collect();
        let layers = std::iter::once(layer).chain(inner.into_iter().flat_map(|inner| inner.layers)).collect();
        let mut found = Updatable { table, columns, layers };
        found.note_view(view.oid);
        Ok(found)
    }

    /// Subqueries that are no view's in it are this view's.
    fn note_view(&mut self, view: Oid) {
        let filters = self.layers.iter_mut().filter_map(|layer| layer.filter.as_mut());
        for e in self.columns.iter_mut().chain(filters) {
            e.visit_mut(0, &mut |e, _| {
                if let Expr::Sublink(s) = e
                    && !s.view.is_valid()
                {
                    s.view = view;
                }
                true
            });
        }
    }
}

/// The error of a command that changes a foreign table: no wrapper can.
pub fn unchangeable(cx: &Context<'_>, table: &Relation, command: Command) -> DbError {
    let doing = match command {
        Command::Insert => "insert into",
        Command::Delete => "delete from",
        Command::Merge => {
            return err!(FEATURE_NOT_SUPPORTED, "cannot execute MERGE on relation \"{}\"", table.name)
                .detail("This operation is not supported for foreign tables.");
        }
        _ => "update",
    };
    let handler = table.foreign.as_ref().map_or(Ok(()), |foreign| require_handler(cx.catalog, foreign.server));
    if let Err(error) = handler {
        return error;
    }
    err!(FEATURE_NOT_SUPPORTED, "cannot {doing} foreign table \"{}\"", table.name)
}

/// # Errors
/// 0A000 for MERGE into a relation with rules.
pub fn refuse_merge(cx: &Context<'_>, relation: &Relation) -> Result<()> {
    let events = [rule_events::INSERT, rule_events::UPDATE, rule_events::DELETE];
    if events.into_iter().all(|event| rules_for(cx.catalog, relation.oid, event, cx.session.is_replica()).is_empty()) {
        return Ok(());
    }
    Err(err!(FEATURE_NOT_SUPPORTED, "cannot execute MERGE on relation \"{}\"", relation.name)
        .detail("MERGE is not supported for relations with rules."))
}

/// Whether a view's rules do what commands say. MERGE is refused where any does.
fn has_rules(cx: &Context<'_>, view: &Relation, commands: &[Command]) -> Result<bool, NotUpdatable> {
    let mut found = false;
    for event in commands.iter().filter_map(|command| event_of(*command)) {
        let rules = rules_for(cx.catalog, view.oid, event, cx.session.is_replica());
        if !rules.is_empty() && !rules.iter().any(|rule| rule.replaces()) {
            return Err(NotUpdatable::Rules);
        }
        found |= !rules.is_empty();
    }
    Ok(found)
}

/// Whether a view's triggers do all that commands say.
pub fn has_triggers(cx: &Context<'_>, view: &Relation, commands: &[Command]) -> bool {
    commands.iter().all(|command| cx.catalog.has_instead_trigger(view, trigger_event_of(*command)))
}

/// Why a view with this query cannot have WITH CHECK OPTION, if it cannot.
///
/// # Errors
/// Those of the queries of views in it.
pub fn refused_check_option(cx: &Context<'_>, view: &Arc<Relation>, query: &Query) -> Result<Option<&'static str>> {
    match Updatable::of_query(cx, view, query, true, &[]) {
        Ok(_) => Ok(None),
        Err(NotUpdatable::Because(of, reason)) if of.oid == view.oid => Ok(Some(reason)),
        // That a view in it cannot be changed is found when it is.
        Err(NotUpdatable::Because(..) | NotUpdatable::Rules) => Ok(None),
        Err(NotUpdatable::Failed(e)) => Err(e),
    }
}

/// The result of pg_relation_is_updatable: bits of command numbers. `column`: as far as this one can be assigned to, by its index.
pub fn updatable_events(cx: &Context<'_>, relation: Oid, with_triggers: bool, column: Option<usize>) -> Result<i32> {
    let columns = column.map(|at| vec![at]);
    cx.catalog.relation(relation).map_or(Ok(0), |relation| events_of(cx, relation, with_triggers, columns.as_deref()))
}

/// `columns`: as far as these can be assigned to.
fn events_of(cx: &Context<'_>, relation: &Arc<Relation>, with_triggers: bool, columns: Option<&[usize]>) -> Result<i32> {
    const UPDATE: i32 = 1 << 2;
    const INSERT: i32 = 1 << 3;
    const DELETE: i32 = 1 << 4;
    limits::check_stack()?;
    if matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable) {
        return Ok(UPDATE | INSERT | DELETE);
    }
    if relation.kind != RelationKind::View {
        return Ok(0);
    }
    let rules = rules_of(cx.catalog, relation.oid).into_iter().filter(|rule| rule.replaces());
    let by_rules = rules.fold(0, |all, rule| {
        all | match rule.event {
            rule_events::UPDATE => UPDATE,
            rule_events::INSERT => INSERT,
            _ => DELETE,
        }
    });
    let triggers = [(trigger_events::UPDATE, UPDATE), (trigger_events::INSERT, INSERT), (trigger_events::DELETE, DELETE)];
    let by_trigger = |all, (event, bit)| if cx.catalog.has_instead_trigger(relation, event) { all | bit } else { all };
    let by_others = if with_triggers { triggers.into_iter().fold(by_rules, by_trigger) } else { by_rules };
    let query = super::expression::analyze_view(cx, relation)?;
    let Some((entry, table)) = single_table(cx, &query) else { return Ok(by_others) };
    let targets = query.targets.iter().filter(|t| !t.junk).enumerate();
    let asked = targets.filter(|(at, _)| columns.is_none_or(|columns| columns.contains(at)));
    let below: Vec<usize> = asked.filter_map(|(_, target)| assignable(&target.expr, entry, None).ok()?.ok()).collect();
    let own = if below.is_empty() { DELETE } else { UPDATE | INSERT | DELETE };
    // What is below may be a view that does less.
    Ok(by_others | own & events_of(cx, table, with_triggers, Some(&below))?)
}

/// The table or view whose rows a view's query shows, and its entry; `None`: the query is more than that.
fn single_table<'a>(cx: &Context<'a>, query: &Query) -> Option<(usize, &'a Arc<Relation>)> {
    if forbidden_clause(query).is_some() {
        return None;
    }
    let [FromItem::Range(entry)] = query.from[..] else { return None };
    match &query.range_table[entry].kind {
        RangeKind::Relation { sample: None, oid, .. } | RangeKind::Subquery { view: oid, .. } => {
            cx.catalog.relation(*oid).map(|table| (entry, table))
        }
        _ => None,
    }
}

/// An expression of a view's query over the table under it, as entry 0; `columns`: the expressions of the view in it.
fn over_table(mut e: Expr, entry: usize, columns: Option<&[Expr]>) -> Expr {
    e.visit_mut(0, &mut |e, level| {
        let Expr::Var(v) = e else { return true };
        if v.levels_up != level || v.entry != entry {
            return true;
        }
        let Some(columns) = columns else {
            v.entry = 0;
            return true;
        };
        let mut meaning = match v.column.checked_sub(1).and_then(|at| columns.get(at as usize)) {
            Some(meaning) => meaning.clone(),
            None => Expr::Row(Box::new(RowExpr {
                fields: columns.to_vec(),
                names: columns.iter().map(|_| "".into()).collect(),
                ty: v.ty,
                explicit: false,
                location: -1,
            })),
        };
        meaning.shift_levels(level, 0);
        *e = meaning;
        false
    });
    e
}

/// The table's column of an output column; or the reason why it is no column of the view's table.
fn assignable(e: &Expr, entry: usize, inner: Option<&Updatable>) -> Result<Result<usize, Blocked>, &'static str> {
    match e {
        Expr::Var(v) if v.entry == entry && v.levels_up == 0 && v.column > 0 => {
            let at = v.column as usize - 1;
            Ok(inner.map_or(Ok(at), |inner| inner.layers[0].columns[at].clone()))
        }
        Expr::Var(v) if v.entry == entry && v.levels_up == 0 && v.column < 0 => {
            Err("View columns that refer to system columns are not updatable.")
        }
        Expr::Var(v) if v.entry == entry && v.levels_up == 0 => {
            Err("View columns that return whole-row references are not updatable.")
        }
        _ => Err("View columns that are not columns of their base relation are not updatable."),
    }
}

/// A clause that a view that can be changed must not have.
fn forbidden_clause(q: &Query) -> Option<&'static str> {
    let found = [
        (!matches!(q.distinct, Distinct::None), "Views containing DISTINCT are not automatically updatable."),
        (!q.group_by.is_empty() || q.grouping_sets.is_some(), "Views containing GROUP BY are not automatically updatable."),
        (q.having.is_some(), "Views containing HAVING are not automatically updatable."),
        (q.set_operation.is_some(), "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable."),
        (!q.ctes.is_empty(), "Views containing WITH are not automatically updatable."),
        (q.limit.is_some() || q.offset.is_some(), "Views containing LIMIT or OFFSET are not automatically updatable."),
        (q.has_aggregates, "Views that return aggregate functions are not automatically updatable."),
        (q.has_windows, "Views that return window functions are not automatically updatable."),
        (q.has_set_returning, "Views that return set-returning functions are not automatically updatable."),
    ];
    found.into_iter().find(|(is_there, _)| *is_there).map(|(_, reason)| reason)
}
