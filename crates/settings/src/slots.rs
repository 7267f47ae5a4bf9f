//! The slots of all settings. A session shares those of the table with its server until it changes one: a server has hundreds of
//! settings and may have thousands of sessions.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::configuration::Place;
use crate::value::Value;
use crate::{SettingId, SettingSource};

/// A value that is in force, or may come back into force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub value: Value,
    /// SET has given it, be it the default's value. Otherwise it is the default, and follows that.
    pub is_set: bool,
}

impl Held {
    pub fn default(value: Value) -> Held {
        Held { value, is_set: false }
    }

    pub fn set(value: Value) -> Held {
        Held { value, is_set: true }
    }

    /// The default is another one now.
    pub fn follow(&mut self, default: &Value) {
        if !self.is_set {
            self.value = default.clone();
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub current: Held,
    pub session: Held,
    /// The default: the value that RESET restores.
    pub reset: Value,
    /// The session got the default when it began: the server's does not replace it.
    pub of_session: bool,
    /// The server's value that the session started from; of the server's own settings, the one that was configured.
    pub based_on: Value,
    /// Where `reset` comes from.
    pub source: SettingSource,
    /// The files have another value, which the next start will use.
    pub pending_restart: bool,
}

impl Slot {
    pub fn new(value: Value, source: SettingSource) -> Slot {
        let [current, session] = std::array::from_fn(|_| Held::default(value.clone()));
        Slot { current, session, reset: value.clone(), of_session: false, based_on: value, source, pending_restart: false }
    }

    pub fn configured(value: Value, place: &Place) -> Slot {
        Slot::new(value, SettingSource::of(place))
    }

    pub fn default(value: Value) -> Slot {
        Slot::new(value, SettingSource::named("default"))
    }

    /// Of a setting that is not in the table.
    pub fn custom() -> Slot {
        Slot::default(Value::Text("".into()))
    }
}

/// By setting. A clone shares the table's slots.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// Of the settings of the table.
    shared: Arc<Vec<Slot>>,
    /// Those that differ from the shared ones, and those of settings that are not in the table; in order.
    own: Vec<(SettingId, Slot)>,
}

impl Slots {
    pub fn new(of_table: Vec<Slot>) -> Slots {
        Slots { shared: Arc::new(of_table), own: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.own.last().map_or(0, |(id, _)| id + 1).max(self.shared.len())
    }

    /// Adds the slot of a setting that is not in the table.
    pub fn push(&mut self, slot: Slot) -> SettingId {
        let id = self.len();
        self.own.push((id, slot));
        id
    }

    pub fn is_shared(&self, id: SettingId) -> bool {
        self.place(id).is_err()
    }

    /// Where `own` has it, or would have it.
    fn place(&self, id: SettingId) -> Result<usize, usize> {
        self.own.binary_search_by_key(&id, |(own, _)| *own)
    }

    /// Shares the slots of others from now on, and returns those that were shared before.
    pub fn share(&mut self, others: &Slots) -> Arc<Vec<Slot>> {
        let mut shared = Arc::clone(&others.shared);
        for (id, slot) in &others.own {
            if *id < shared.len() {
                Arc::make_mut(&mut shared)[*id] = slot.clone();
            }
        }
        std::mem::replace(&mut self.shared, shared)
    }

    /// Replaces a slot of the server's, before it has sessions.
    pub fn configure(&mut self, id: SettingId, slot: Slot) {
        match self.place(id) {
            Ok(at) => self.own[at].1 = slot,
            Err(_) => Arc::make_mut(&mut self.shared)[id] = slot,
        }
    }

    /// Replaces a slot by one that is not shared.
    pub fn own(&mut self, id: SettingId, slot: Slot) {
        match self.place(id) {
            Ok(at) => self.own[at].1 = slot,
            Err(at) => self.own.insert(at, (id, slot)),
        }
    }
}

impl Index<SettingId> for Slots {
    type Output = Slot;

    fn index(&self, id: SettingId) -> &Slot {
        match self.place(id) {
            Ok(at) => &self.own[at].1,
            Err(_) => &self.shared[id],
        }
    }
}

impl IndexMut<SettingId> for Slots {
    fn index_mut(&mut self, id: SettingId) -> &mut Slot {
        let at = match self.place(id) {
            Ok(at) => at,
            Err(at) => {
                self.own.insert(at, (id, self.shared[id].clone()));
                at
            }
        };
        &mut self.own[at].1
    }
}
