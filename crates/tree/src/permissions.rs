//! Privileges that a query needs: found when it is planned, checked when it runs.
//!
//! Invariants:
//! 1. Relations in a view's query are checked as the view's owner, unless the view is a security_invoker one; the view itself as
//!    its user. The table that is changed through a view is checked the same way.
//! 2. A relation may be used with privileges on the whole of it, or on every used column.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use melba_catalog::acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Catalog, Column, FunctionKind, Persistence, Relation, RelationKind, classes};
use melba_types::{DbError, Oid, Result, err};

use crate::{Expr, Privileges, Query, RangeEntry, RangeKind};

/// A query's needs of one relation.
struct Use {
    relation: Oid,
    /// Whose privileges count; `None`: those of the role that runs it.
    role: Option<Oid>,
    required: Privileges,
}

impl Use {
    fn changes(&self) -> bool {
        self.required.insert || self.required.update || self.required.delete
    }

    fn is_of_temporary(&self, catalog: &Catalog) -> bool {
        catalog.relation(self.relation).is_some_and(|relation| relation.persistence == Persistence::Temporary)
    }
}

/// A query's needs, and the role for which they were last found to be met.
#[derive(Default)]
pub struct Permissions {
    uses: Vec<Use>,
    functions: Vec<Oid>,
    /// It calls functions that are not built in.
    calls_others: bool,
    /// It changes a relation or locks rows of one, also in its WITH clause.
    changes: bool,
    /// It does so to a relation that is not temporary.
    changes_permanent: bool,
    /// It reads a materialized view that has no rows yet.
    unpopulated: Option<Arc<str>>,
    /// The views and foreign tables of users that it reads, and the views that it changes.
    restrictable: Vec<Oid>,
    /// Checks hold as long as the catalog does, which plans do not outlive.
    granted_to: AtomicU32,
}

impl Permissions {
    pub fn of(query: &Query, catalog: &Catalog) -> Permissions {
        let mut collector = Collector { catalog, found: Permissions::default() };
        collector.query(query, None);
        let found = &mut collector.found;
        found.changes = found.uses.iter().any(Use::changes);
        found.changes_permanent = found.uses.iter().any(|one| one.changes() && !one.is_of_temporary(catalog));
        collector.found
    }

    /// The needs of an expression on behalf of `role`, or of the role that runs the query.
    pub fn of_expression(e: &Expr, role: Option<Oid>, catalog: &Catalog) -> Permissions {
        let mut collector = Collector { catalog, found: Permissions::default() };
        collector.expression(e, role);
        collector.found
    }

    /// The relations that are used.
    pub fn relations(&self) -> impl Iterator<Item = Oid> {
        self.uses.iter().map(|u| u.relation)
    }

    /// Whether the query calls functions that are not built in, which may have something to tell.
    pub fn calls_functions_of_users(&self) -> bool {
        self.calls_others
    }

    /// Whether the query changes a relation or locks rows of one, also in its WITH clause.
    pub fn changes(&self) -> bool {
        self.changes
    }

    /// # Errors
    /// 55000 when the query reads a materialized view that has not been populated.
    pub fn check_populated(&self) -> Result<()> {
        match &self.unpopulated {
            None => Ok(()),
            Some(name) => Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "materialized view \"{name}\" has not been populated")
                .hint("Use the REFRESH MATERIALIZED VIEW command.")),
        }
    }

    /// Whether it uses what `restrict_nonsystem_relation_kind` may refuse.
    pub fn is_restrictable(&self) -> bool {
        !self.restrictable.is_empty()
    }

    /// `kinds`: the value of `restrict_nonsystem_relation_kind`.
    ///
    /// # Errors
    /// 55000 for a view or foreign table of such a kind.
    pub fn check_restricted(&self, catalog: &Catalog, kinds: &str) -> Result<()> {
        let kinds = kinds.to_ascii_lowercase();
        // "foreign-table" is the other one.
        let (views, tables) = (kinds.contains("view"), kinds.contains("foreign-table"));
        for relation in self.restrictable.iter().filter_map(|oid| catalog.relation(*oid)) {
            match relation.kind {
                RelationKind::View if views => {
                    let message = format!("access to non-system view \"{}\" is restricted", relation.name);
                    return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}"));
                }
                RelationKind::ForeignTable if tables => {
                    return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "access to non-system foreign table is restricted"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The same of a relation that is not temporary: what a read-only transaction refuses.
    pub fn changes_permanent(&self) -> bool {
        self.changes_permanent
    }

    /// Adds the needs of others.
    pub fn add(&mut self, more: Permissions) {
        self.uses.extend(more.uses);
        self.functions.extend(more.functions);
        self.restrictable.extend(more.restrictable);
        self.calls_others |= more.calls_others;
        self.changes |= more.changes;
        self.changes_permanent |= more.changes_permanent;
        self.unpopulated = self.unpopulated.take().or(more.unpopulated);
    }

    /// # Errors
    /// 42501 for the first privilege that `role` lacks.
    pub fn check(&self, catalog: &Catalog, role: Oid) -> Result<()> {
        if self.granted_to.load(Ordering::Relaxed) == role.0 {
            return Ok(());
        }
        for one in &self.uses {
            if let Some(relation) = catalog.relation(one.relation)
                && !may_use(catalog, one.role.unwrap_or(role), relation, &one.required)
            {
                return Err(denied(relation));
            }
        }
        for function in self.functions.iter().filter_map(|oid| catalog.function(*oid)) {
            if !catalog.has_privileges(role, AclKind::Function, function.owner, &function.acl, acl::EXECUTE) {
                let what = if function.kind == FunctionKind::Aggregate { "aggregate" } else { "function" };
                return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for {what} {}", function.name));
            }
        }
        self.granted_to.store(role.0, Ordering::Relaxed);
        Ok(())
    }
}

struct Collector<'a> {
    catalog: &'a Catalog,
    found: Permissions,
}

impl Collector<'_> {
    fn query(&mut self, query: &Query, role: Option<Oid>) {
        for (i, entry) in query.range_table.iter().enumerate() {
            let role = entry.required.role_within(role);
            match &entry.kind {
                RangeKind::Relation { oid, .. } => {
                    self.target(query, i, *oid, role);
                }
                RangeKind::Subquery { query: inner, view } => {
                    let user = if view.is_valid() { self.target(query, i, *view, role) } else { role };
                    self.query(inner, self.role_inside(*view, user));
                }
                _ => {}
            }
        }
        query.expressions(&mut |e| self.expression(e, role));
        for cte in &query.ctes {
            self.query(&cte.query, role);
        }
    }

    /// The needs on a relation, and on the views through which it is changed. Returns the role that uses it.
    fn target(&mut self, query: &Query, at: usize, relation: Oid, role: Option<Oid>) -> Option<Oid> {
        let entry = &query.range_table[at];
        let view = self.catalog.relation(relation).filter(|r| r.kind == RelationKind::MaterializedView && !r.populated);
        self.found.unpopulated = self.found.unpopulated.take().or(view.map(|view| view.name.clone()));
        self.note_restrictable(entry, relation);
        let mut user = role;
        for (nth, (view, columns)) in entry.required.through.iter().enumerate() {
            let mut required = of_view(&entry.required, columns);
            if let Some(own) = query.range_table.get(at + 1).map(|names| &names.required).filter(|_| nth == 0) {
                required.select |= own.select;
                required.selected.extend(&own.selected);
            }
            self.found.uses.push(Use { relation: *view, role: user, required });
            user = self.role_inside(*view, user);
        }
        let mut required = entry.required.clone();
        required.select |= !required.behind.is_empty();
        required.selected.append(&mut required.behind);
        self.found.uses.push(Use { relation, role: user, required });
        user
    }

    /// A view that is named as a target, whose triggers do the work, is not read.
    fn note_restrictable(&mut self, entry: &RangeEntry, relation: Oid) {
        let is_read = matches!(entry.kind, RangeKind::Subquery { .. });
        let is_foreign = || self.catalog.relation(relation).is_some_and(|r| r.kind == RelationKind::ForeignTable);
        let own = (is_read || is_foreign()).then_some(relation);
        let all = entry.required.through.iter().map(|(view, _)| *view).chain(own);
        self.found.restrictable.extend(all.filter(|oid| oid.0 >= classes::FIRST_USER_OID));
    }

    fn expression(&mut self, e: &Expr, role: Option<Oid>) {
        let function = match e {
            Expr::Function(f) => f.function,
            Expr::Aggregate(a) => a.function,
            Expr::Window(w) => w.function,
            Expr::Sublink(s) => {
                self.query(&s.query, self.role_inside(s.view, role));
                Oid::INVALID
            }
            _ => Oid::INVALID,
        };
        self.found.calls_others |= function.0 >= classes::FIRST_USER_OID;
        // Without a list of privileges everybody may call it.
        if self.catalog.function(function).is_some_and(|f| f.acl.is_some()) && !self.found.functions.contains(&function) {
            self.found.functions.push(function);
        }
        e.children(&mut |child| self.expression(child, role));
    }

    fn role_inside(&self, view: Oid, around: Option<Oid>) -> Option<Oid> {
        role_inside(self.catalog, view, around)
    }
}

/// The role that stands for the user inside a query; `None`: the user. `view`: whose query it is, or 0; `around`: the role around it. A
/// security_invoker view is used by the user, also in views of others (PostgreSQL's manual, CREATE VIEW).
pub fn role_inside(catalog: &Catalog, view: Oid, around: Option<Oid>) -> Option<Oid> {
    match catalog.relation(view) {
        Some(view) => (!view.has_option("security_invoker")).then_some(view.owner),
        None => around,
    }
}

/// The needs on a view's table, in terms of the view's columns.
fn of_view(table: &Privileges, columns: &[i16]) -> Privileges {
    let mapped = |used: &[i16]| -> Vec<i16> {
        let number = |n: &i16| columns.iter().position(|c| c == n).map(|at| at as i16 + 1);
        used.iter().filter_map(number).collect()
    };
    Privileges {
        selected: mapped(&table.selected),
        inserted: mapped(&table.inserted),
        updated: mapped(&table.updated),
        behind: Vec::new(),
        through: Vec::new(),
        ..*table
    }
}

fn may_use(catalog: &Catalog, role: Oid, relation: &Relation, required: &Privileges) -> bool {
    let has = |mask| catalog.has_relation_privileges(role, relation, mask);
    let columns = |mask, used: &[i16]| {
        let may = |c: &Column| catalog.has_column_privileges(role, relation, c, mask);
        let live = || relation.columns.iter().filter(|c| !c.dropped);
        if used.is_empty() {
            return live().any(may);
        }
        used.iter().all(|number| match *number {
            0 => live().all(may),
            n if n > 0 => relation.columns.get(n as usize - 1).is_some_and(may),
            _ => false,
        })
    };
    (!required.delete || has(acl::DELETE))
        && (!required.select || has(acl::SELECT) || columns(acl::SELECT, &required.selected))
        && (!required.insert || has(acl::INSERT) || columns(acl::INSERT, &required.inserted))
        && (!required.update || has(acl::UPDATE) || columns(acl::UPDATE, &required.updated))
}

/// # Errors
/// 42501 when `role` may not use the relation so.
pub fn require(catalog: &Catalog, role: Oid, relation: &Relation, required: &Privileges) -> Result<()> {
    if may_use(catalog, role, relation, required) { Ok(()) } else { Err(denied(relation)) }
}

/// PostgreSQL's error for a privilege that is missing on a relation.
pub fn denied(relation: &Relation) -> DbError {
    let what = match relation.kind {
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Sequence => "sequence",
        RelationKind::Index | RelationKind::PartitionedIndex => "index",
        RelationKind::ForeignTable => "foreign table",
        _ => "table",
    };
    err!(INSUFFICIENT_PRIVILEGE, "permission denied for {what} {}", relation.name)
}
