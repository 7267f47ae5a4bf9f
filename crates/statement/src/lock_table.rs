//! LOCK TABLE. A lock on a view reaches the tables and views in its query, which the view's owner must be allowed to lock, or the user
//! where the view is a security_invoker one (PostgreSQL's LockViewRecurse).

use std::collections::HashSet;
use std::sync::Arc;

use melba_catalog::{Relation, RelationKind, acl};
use melba_definition::lookup::Lookup;
use melba_engine::RelationLockMode;
use melba_tree::permissions::{denied, role_inside};
use melba_tree::{Expr, Query, RangeKind};
use melba_types::{Oid, Result, SqlState, err, limits};
use pg_query::protobuf::{LockStmt, node::Node as N};

use super::ddl_context::Utility;

pub fn mode(s: &LockStmt) -> RelationLockMode {
    use RelationLockMode::*;
    const MODES: [RelationLockMode; 8] =
        [AccessShare, RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive];
    MODES.get((s.mode - 1) as usize).copied().unwrap_or(AccessExclusive)
}

pub fn run(utility: &Utility<'_>, s: &LockStmt) -> Result<()> {
    let lookup = &utility.lookup;
    for node in &s.relations {
        let N::RangeVar(name) = melba_parse::nodes::inner(node)? else { continue };
        let relation = lookup.find_relation(name)?.ok_or_else(|| lookup.undefined_relation(name))?;
        if !is_lockable(&relation) {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot lock relation \"{}\"", relation.name)
                .detail(format!("This operation is not supported for {}.", melba_definition::words::plural(relation.kind))));
        }
        let mut locker = Locker { lookup, nowait: s.nowait, views: HashSet::new() };
        locker.relation(&relation, name.inh, None)?;
    }
    Ok(())
}

fn is_lockable(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Table | RelationKind::View | RelationKind::PartitionedTable)
}

struct Locker<'a> {
    lookup: &'a Lookup<'a>,
    nowait: bool,
    /// Those whose queries have been locked.
    views: HashSet<Oid>,
}

impl Locker<'_> {
    /// `role`: who must be allowed to; `None`: the user.
    fn relation(&mut self, relation: &Arc<Relation>, inherit: bool, role: Option<Oid>) -> Result<()> {
        self.require(relation, role)?;
        if relation.kind == RelationKind::View {
            self.lock(relation.oid)?;
            return self.view(relation, role);
        }
        let catalog = self.lookup.catalog();
        let members = if inherit { catalog.descendants(relation.oid) } else { vec![relation.oid] };
        for member in members {
            if catalog.relation(member).is_some_and(|m| m.is_temporary_elsewhere(self.lookup.temporary())) {
                continue;
            }
            self.lock(member)?;
        }
        Ok(())
    }

    fn lock(&self, relation: Oid) -> Result<()> {
        let mode = self.lookup.target_lock();
        match self.nowait {
            true => self.lookup.try_lock_relation(&*self.lookup.relation(relation)?, mode),
            false => self.lookup.lock_relation(relation, mode),
        }
    }

    /// Reading locks come with any privilege, writing ones with that to write.
    fn require(&self, relation: &Relation, role: Option<Oid>) -> Result<()> {
        use RelationLockMode::*;
        let writing = [acl::UPDATE, acl::DELETE, acl::TRUNCATE, acl::MAINTAIN];
        let more: &[u64] = match self.lookup.target_lock() {
            AccessShare => &[acl::SELECT, acl::INSERT],
            RowShare | RowExclusive => &[acl::INSERT],
            _ => &[],
        };
        let (catalog, role) = (self.lookup.catalog(), role.unwrap_or(self.lookup.user()));
        match writing.iter().chain(more).any(|mask| catalog.has_relation_privileges(role, relation, *mask)) {
            true => Ok(()),
            false => Err(denied(relation)),
        }
    }

    /// The relations in a view's query.
    fn view(&mut self, view: &Arc<Relation>, role: Option<Oid>) -> Result<()> {
        limits::check_stack()?;
        if !self.views.insert(view.oid) {
            return Ok(());
        }
        // Locked, the view has the query that it will have.
        let view = self.lookup.relation(view.oid)?;
        let query = match self.lookup.with_context(|c| melba_analyze::analyze_view(c, &view)) {
            // A view that contains itself shows nothing.
            Err(error) if error.sqlstate() == SqlState::INVALID_OBJECT_DEFINITION => return Ok(()),
            query => query?,
        };
        let role = role_inside(&self.lookup.catalog(), view.oid, role);
        self.query(&query, role)
    }

    fn query(&mut self, query: &Query, role: Option<Oid>) -> Result<()> {
        for entry in &query.range_table {
            match &entry.kind {
                RangeKind::Relation { oid, inherit, .. } => self.named(*oid, *inherit, role)?,
                RangeKind::Subquery { view, .. } if view.is_valid() => self.named(*view, true, role)?,
                RangeKind::Subquery { query, .. } => self.query(query, role)?,
                _ => {}
            }
        }
        let mut result = Ok(());
        query.expressions(&mut |e| {
            if result.is_ok() {
                result = self.expression(e, role);
            }
        });
        result?;
        query.ctes.iter().try_for_each(|cte| self.query(&cte.query, role))
    }

    fn named(&mut self, relation: Oid, inherit: bool, role: Option<Oid>) -> Result<()> {
        let relation = self.lookup.relation(relation)?;
        if is_lockable(&relation) { self.relation(&relation, inherit, role) } else { Ok(()) }
    }

    fn expression(&mut self, e: &Expr, role: Option<Oid>) -> Result<()> {
        if let Expr::Sublink(s) = e {
            self.query(&s.query, role)?;
        }
        let mut result = Ok(());
        e.children(&mut |child| {
            if result.is_ok() {
                result = self.expression(child, role);
            }
        });
        result
    }
}
