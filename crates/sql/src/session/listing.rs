//! The portals of a session, and what pg_cursors and pg_prepared_statements say of it.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::{Array, ArrayDim, Datum, Oid, oids};

use super::context::{SessionState, StatementContext};
use super::portal::{Listed, Portal, PortalState};
use super::prepared::Prepared;

/// Portals by name. Named ones are listed in the session's shared state.
pub(super) struct Portals {
    /// The one whose name is "", which most statements use.
    unnamed: Option<Portal>,
    by_name: HashMap<String, Portal>,
    state: Arc<SessionState>,
}

impl Portals {
    pub fn new(state: Arc<SessionState>) -> Portals {
        Portals { unnamed: None, by_name: HashMap::new(), state }
    }

    pub fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.by_name.get(name) }
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Portal> {
        self.unnamed.iter_mut().chain(self.by_name.values_mut())
    }

    /// Adds a portal.
    pub fn insert(&mut self, name: String, portal: Portal) {
        if let Some(listed) = Listed::of(&name, &portal) {
            let mut cursors = self.state.cursors.lock();
            cursors.retain(|c| c.name != name);
            cursors.push(listed);
        }
        self.put_back(name, portal);
    }

    /// Takes a portal out to run it; it stays listed until `put_back` or `remove`.
    pub fn take(&mut self, name: &str) -> Option<Portal> {
        if name.is_empty() { self.unnamed.take() } else { self.by_name.remove(name) }
    }

    pub fn put_back(&mut self, name: String, portal: Portal) {
        match name.is_empty() {
            true => self.unnamed = Some(portal),
            false => drop(self.by_name.insert(name, portal)),
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Portal> {
        if !name.is_empty() {
            self.unlist(|n| n != name);
        }
        self.take(name)
    }

    pub fn retain(&mut self, keep: impl Fn(&Portal) -> bool) {
        self.unnamed.take_if(|portal| !keep(portal));
        if !self.by_name.is_empty() {
            self.by_name.retain(|_, portal| keep(portal));
            let by_name = &self.by_name;
            self.state.cursors.lock().retain(|c| by_name.contains_key(&c.name));
        }
    }

    /// Portals that cannot be run any more.
    pub fn fail(&mut self, fails: impl Fn(&Portal) -> bool) {
        for portal in self.values_mut().filter(|portal| fails(portal)) {
            portal.state = PortalState::Failed;
        }
    }

    /// A portal that was taken out is gone for good.
    pub fn unlist(&self, keep: impl Fn(&str) -> bool) {
        self.state.cursors.lock().retain(|c| keep(&c.name));
    }

    pub fn clear(&mut self) {
        self.unnamed = None;
        self.clear_named();
    }

    pub fn clear_named(&mut self) {
        self.by_name.clear();
        self.state.cursors.lock().clear();
    }
}

/// Prepared statements by name. Named ones are listed in the session's shared state.
pub(super) struct PreparedStatements {
    unnamed: Option<Arc<Prepared>>,
    by_name: HashMap<String, Arc<Prepared>>,
    state: Arc<SessionState>,
}

impl PreparedStatements {
    pub fn new(state: Arc<SessionState>) -> PreparedStatements {
        PreparedStatements { unnamed: None, by_name: HashMap::new(), state }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Prepared>> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.by_name.get(name) }
    }

    /// Adds a statement, or replaces it.
    pub fn insert(&mut self, name: &str, prepared: Arc<Prepared>) {
        if name.is_empty() {
            self.unnamed = Some(prepared);
        } else {
            self.state.prepared.lock().insert(name.to_owned(), prepared.clone());
            self.by_name.insert(name.to_owned(), prepared);
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Arc<Prepared>> {
        if name.is_empty() {
            return self.unnamed.take();
        }
        self.state.prepared.lock().remove(name);
        self.by_name.remove(name)
    }

    pub fn clear(&mut self) {
        self.unnamed = None;
        self.by_name.clear();
        self.state.prepared.lock().clear();
    }
}

impl StatementContext {
    /// name, statement, is_holdable, is_binary, is_scrollable, creation_time
    pub(super) fn cursor_rows(&self) -> Vec<Vec<Datum>> {
        let cursors = self.session.cursors.lock();
        let row = |c: &Listed| {
            vec![
                Datum::text(c.name.as_str()),
                Datum::text(c.statement.as_str()),
                Datum::Bool(c.hold),
                Datum::Bool(c.binary),
                Datum::Bool(c.scroll),
                Datum::Int8(c.created),
            ]
        };
        cursors.iter().map(row).collect()
    }

    /// name, statement, prepare_time, parameter_types, result_types, from_sql, generic_plans, custom_plans
    pub(super) fn prepared_rows(&self) -> Vec<Vec<Datum>> {
        let statements = self.session.prepared.lock();
        let mut named: Vec<_> = statements.iter().collect();
        named.sort_by(|a, b| a.0.cmp(b.0));
        let row = |(name, p): (&String, &Arc<Prepared>)| {
            let results = p.columns.as_ref().map_or(Datum::Null, |c| types(c.iter().map(|c| c.ty)));
            vec![
                Datum::text(name.as_str()),
                Datum::text(p.source()),
                Datum::Int8(p.prepared_at),
                types(p.parameter_types.iter().copied()),
                results,
                Datum::Bool(p.from_sql),
                // Plans are made once and hold no values of parameters.
                Datum::Int8(p.executions.load(std::sync::atomic::Ordering::Relaxed)),
                Datum::Int8(0),
            ]
        };
        named.into_iter().map(row).collect()
    }
}

fn types(of: impl Iterator<Item = Oid>) -> Datum {
    let elements: Vec<Datum> = of.map(|oid| Datum::Oid(oid.0)).collect();
    let dims = match elements.len() {
        0 => Vec::new(),
        n => vec![ArrayDim { length: n as i32, lower_bound: 1 }],
    };
    Datum::Array(Arc::new(Array { element_type: oids::REGTYPE, dims, elements }))
}
