//! The portals of a session by name, which the client's statements and functions share.
//!
//! Invariants:
//! 1. A portal is taken out while it runs, so that its statement may use the session; its name stays taken meanwhile.
//! 2. Portals are numbered in order of creation: a rollback to a savepoint drops those that were created after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hashbrown::HashMap;
use melba_protocol::Format;
use melba_types::{DbError, RarelyUsed, Result, bail, err};

use super::outcome::ResultColumn;
use super::portal::{Listed, Portal, PortalState};

#[derive(Default)]
pub struct Portals {
    /// The one whose name is "", which most statements use.
    unnamed: RarelyUsed<Option<Portal>>,
    named: RarelyUsed<HashMap<String, PortalEntry>>,
    /// Portals made so far.
    made: AtomicU64,
    /// Names of portals whose creators gave none.
    numbered: AtomicU32,
}

/// Columns, if there are any, and their formats.
pub(super) type PortalShape = (Option<Arc<[ResultColumn]>>, Vec<Format>);

struct PortalEntry {
    listed: Option<Listed>,
    number: u64,
    /// `None` while it runs.
    portal: Option<Portal>,
}

impl Portals {
    /// The number of the next portal.
    pub fn next_number(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// A name that no portal has.
    pub fn new_name(&self) -> String {
        loop {
            let name = format!("<unnamed portal {}>", self.numbered.fetch_add(1, Ordering::Relaxed) + 1);
            if !self.contains(&name) {
                return name;
            }
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        if name.is_empty() {
            return self.unnamed.used().is_some_and(|unnamed| unnamed.is_some());
        }
        self.named.used().is_some_and(|named| named.contains_key(name))
    }

    pub fn has_named(&self) -> bool {
        self.named.used().is_some_and(|named| !named.is_empty())
    }

    /// The columns of a portal's result, `None` inside when it has none, and their formats.
    pub fn shape(&self, name: &str) -> Option<PortalShape> {
        let shape = |portal: &Portal| (portal.columns.clone(), portal.formats.clone());
        if name.is_empty() {
            return self.unnamed.used()?.as_ref().map(shape);
        }
        self.named.used()?.get(name)?.portal.as_ref().map(shape)
    }

    /// Adds a portal.
    pub fn insert(&self, name: String, mut portal: Portal) {
        portal.number = self.made.fetch_add(1, Ordering::Relaxed);
        self.put_back(name, portal);
    }

    /// Takes a portal out to run it; it stays listed until `put_back` or `remove`.
    pub fn take(&self, name: &str) -> Option<Portal> {
        if name.is_empty() {
            return self.unnamed.used()?.take();
        }
        self.named.used()?.get_mut(name)?.portal.take()
    }

    pub fn put_back(&self, name: String, portal: Portal) {
        if name.is_empty() {
            *self.unnamed.lock() = Some(portal);
            return;
        }
        let mut named = self.named.lock();
        match named.get_mut(&name) {
            Some(entry) => entry.portal = Some(portal),
            None => {
                let entry = PortalEntry { listed: Listed::of(&name, &portal), number: portal.number, portal: Some(portal) };
                named.insert(name, entry);
            }
        }
    }

    /// The portal, and its name is free again.
    pub fn remove(&self, name: &str) -> Option<Portal> {
        if name.is_empty() {
            return self.unnamed.take();
        }
        self.named.used()?.remove(name)?.portal
    }

    /// Drops portals that are not to be kept; those that run are kept.
    pub fn retain(&self, keep: impl Fn(&Portal) -> bool) {
        if let Some(mut unnamed) = self.unnamed.used() {
            unnamed.take_if(|portal| !keep(portal));
        }
        if let Some(mut named) = self.named.used() {
            named.retain(|_, entry| entry.portal.as_ref().is_none_or(&keep));
        }
    }

    /// Portals that cannot be run any more.
    pub fn fail(&self, fails: impl Fn(&Portal) -> bool) {
        let mut fail = |portal: &mut Portal| {
            if fails(portal) {
                portal.state = PortalState::Failed;
            }
        };
        if let Some(mut unnamed) = self.unnamed.used() {
            unnamed.as_mut().map(&mut fail);
        }
        if let Some(mut named) = self.named.used() {
            named.values_mut().filter_map(|entry| entry.portal.as_mut()).for_each(fail);
        }
    }

    /// Runs each of the portals that are to be worked on, one after the other.
    pub fn each(&self, is_one: impl Fn(&Portal) -> bool, mut work: impl FnMut(&mut Portal) -> Result<()>) -> Result<()> {
        let names: Vec<String> = match self.named.used() {
            None => return Ok(()),
            Some(named) => {
                let chosen = named.iter().filter(|(_, entry)| entry.portal.as_ref().is_some_and(&is_one));
                chosen.map(|(name, _)| name.clone()).collect()
            }
        };
        for name in names {
            let Some(mut portal) = self.take(&name) else { continue };
            let result = work(&mut portal);
            self.put_back(name, portal);
            result?;
        }
        Ok(())
    }

    /// CLOSE.
    ///
    /// # Errors
    /// 24000 for one that a loop reads.
    pub fn close(&self, name: &str) -> Result<bool> {
        let is_pinned = |entry: &PortalEntry| entry.portal.as_ref().is_some_and(|p| p.pinned);
        if self.named.used().is_some_and(|named| named.get(name).is_some_and(is_pinned)) {
            bail!(INVALID_CURSOR_STATE, "cannot drop pinned portal \"{name}\"");
        }
        Ok(self.remove(name).is_some())
    }

    pub fn clear(&self) {
        self.unnamed.take();
        self.named.take();
    }

    /// CLOSE ALL: all but those that run.
    pub fn close_named(&self) {
        if let Some(mut named) = self.named.used() {
            named.retain(|_, entry| entry.portal.as_ref().is_none_or(|p| p.pinned));
        }
    }

    /// The rows of pg_cursors, in order of creation.
    pub fn listed(&self) -> Vec<Listed> {
        let Some(named) = self.named.used() else { return Vec::new() };
        let mut listed: Vec<_> = named.values().filter_map(|e| Some((e.number, e.listed.clone()?))).collect();
        listed.sort_by_key(|(number, _)| *number);
        listed.into_iter().map(|(_, listed)| listed).collect()
    }
}

pub fn no_cursor(name: &str) -> DbError {
    err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist")
}
