//! FOR UPDATE, FOR SHARE and similar clauses.

use melba_types::{Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use melba_tree::*;

pub fn locking_clauses<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node], q: &mut Query) -> Result<()> {
    for node in list {
        let Some(NodeEnum::LockingClause(clause)) = &node.node else { continue };
        locking_clause(analyzer, clause, q)?;
    }
    Ok(())
}

fn locking_clause<'p>(analyzer: &mut Analyzer<'_, 'p>, clause: &'p pb::LockingClause, q: &mut Query) -> Result<()> {
    let strength = strength(clause.strength);
    let text = strength.clause();
    let wait = match pb::LockWaitPolicy::try_from(clause.wait_policy) {
        Ok(pb::LockWaitPolicy::LockWaitSkip) => LockWait::SkipLocked,
        Ok(pb::LockWaitPolicy::LockWaitError) => LockWait::NoWait,
        _ => LockWait::Block,
    };
    let level = analyzer.level();
    let refuse = |what: &str| Err(err!(FEATURE_NOT_SUPPORTED, "{text} is not allowed with {what}"));
    if !matches!(q.distinct, Distinct::None) {
        return refuse("DISTINCT clause");
    }
    if !q.group_by.is_empty() || q.grouping_sets.is_some() {
        return refuse("GROUP BY clause");
    }
    if q.having.is_some() {
        return refuse("HAVING clause");
    }
    if level.has_aggregates {
        return refuse("aggregate functions");
    }
    if level.has_windows {
        return refuse("window functions");
    }
    if level.has_set_returning {
        return refuse("set-returning functions in the target list");
    }
    let all = clause.locked_rels.is_empty();
    if all {
        let entries: Vec<usize> = (0..analyzer.level().range_table.len()).collect();
        for entry in entries {
            if matches!(analyzer.level().range_table[entry].kind, RangeKind::Relation { .. } | RangeKind::Subquery { .. }) {
                lock_entry(analyzer, q, entry, strength, wait);
            }
        }
        return Ok(());
    }
    for node in &clause.locked_rels {
        let Some(NodeEnum::RangeVar(name)) = &node.node else { continue };
        if !name.schemaname.is_empty() || !name.catalogname.is_empty() {
            return Err(err!(SYNTAX_ERROR, "{text} must specify unqualified relation names").at(name.location));
        }
        let found = analyzer.level().namespace.iter().find(|i| i.relation_visible && *i.name == *name.relname);
        let Some(entry) = found.map(|i| i.entry) else {
            return Err(err!(UNDEFINED_TABLE, "relation \"{}\" in {text} clause not found in FROM clause", name.relname)
                .at(name.location));
        };
        let what = match &analyzer.level().range_table[entry].kind {
            RangeKind::Relation { .. } | RangeKind::Subquery { .. } => None,
            RangeKind::Join { .. } => Some("a join"),
            RangeKind::Function { .. } => Some("a function"),
            RangeKind::JsonTable(_) => Some("a table function"),
            RangeKind::Values { .. } => Some("VALUES"),
            RangeKind::Cte { .. } => Some("a WITH query"),
            RangeKind::Transition { .. } => Some("a named tuplestore"),
            RangeKind::Result => Some("a join"),
        };
        if let Some(what) = what {
            return Err(err!(FEATURE_NOT_SUPPORTED, "{text} cannot be applied to {what}").at(name.location));
        }
        lock_entry(analyzer, q, entry, strength, wait);
    }
    Ok(())
}

fn lock_entry(analyzer: &mut Analyzer<'_, '_>, q: &mut Query, entry: usize, strength: LockStrength, wait: LockWait) {
    let range = &mut analyzer.level_mut().range_table[entry];
    range.required.update = true;
    if let RangeKind::Subquery { query, .. } = &mut range.kind {
        lock_query(query, strength, wait);
    }
    add_lock(q, entry, strength, wait);
}

/// Locks reach into subqueries and views.
fn lock_query(query: &mut Query, strength: LockStrength, wait: LockWait) {
    if query.set_operation.is_some()
        || !matches!(query.distinct, Distinct::None)
        || query.has_aggregates
        || !query.group_by.is_empty()
    {
        return;
    }
    for entry in 0..query.range_table.len() {
        let range = &mut query.range_table[entry];
        match &mut range.kind {
            RangeKind::Relation { .. } => range.required.update = true,
            RangeKind::Subquery { query, view } => {
                range.required.update |= view.is_valid();
                lock_query(query, strength, wait);
            }
            _ => continue,
        }
        add_lock(query, entry, strength, wait);
    }
}

fn add_lock(q: &mut Query, entry: usize, strength: LockStrength, wait: LockWait) {
    let rank = |w: LockWait| match w {
        LockWait::Block => 0,
        LockWait::SkipLocked => 1,
        LockWait::NoWait => 2,
    };
    match q.locking.iter_mut().find(|l| l.entry == entry) {
        Some(old) => {
            old.strength = old.strength.max(strength);
            if rank(wait) > rank(old.wait) {
                old.wait = wait;
            }
        }
        None => q.locking.push(Locking { entry, strength, wait }),
    }
}

fn strength(value: i32) -> LockStrength {
    match pb::LockClauseStrength::try_from(value) {
        Ok(pb::LockClauseStrength::LcsForkeyshare) => LockStrength::KeyShare,
        Ok(pb::LockClauseStrength::LcsForshare) => LockStrength::Share,
        Ok(pb::LockClauseStrength::LcsFornokeyupdate) => LockStrength::NoKeyUpdate,
        _ => LockStrength::Update,
    }
}

/// The text of the first clause of a list.
pub fn strength_text_of(list: &[pb::Node]) -> &'static str {
    match list.first().and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::LockingClause(c)) => strength(c.strength).clause(),
        _ => "FOR UPDATE",
    }
}
