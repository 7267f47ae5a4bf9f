//! The meaning of pg_trigger's letters and bits; lookups of triggers.

use std::sync::Arc;

use melba_types::Oid;

use crate::event_triggers::EventTrigger;
use crate::objects::{Relation, Trigger};
use crate::snapshot::Catalog;

/// Bits of pg_trigger.tgtype.
pub mod trigger_events {
    pub const ROW: i16 = 1;
    pub const BEFORE: i16 = 2;
    pub const INSERT: i16 = 4;
    pub const DELETE: i16 = 8;
    pub const UPDATE: i16 = 16;
    pub const TRUNCATE: i16 = 32;
    pub const INSTEAD: i16 = 64;
}

/// pg_trigger.tgenabled of a trigger that fires unless session_replication_role is replica.
pub const FIRES_ON_ORIGIN: u8 = b'O';

/// Whether a trigger fires: by its pg_trigger.tgenabled, and whether session_replication_role is replica.
pub fn fires(enabled: u8, replica: bool) -> bool {
    match enabled {
        b'A' => true,
        b'R' => replica,
        b'O' => !replica,
        _ => false,
    }
}

impl Trigger {
    pub fn has(&self, bits: i16) -> bool {
        self.events & bits == bits
    }

    /// Neither BEFORE nor INSTEAD OF.
    pub fn is_after(&self) -> bool {
        self.events & (trigger_events::BEFORE | trigger_events::INSTEAD) == 0
    }
}

impl Catalog {
    /// Whether a view has an INSTEAD OF trigger for one of `trigger_events`.
    pub fn has_instead_trigger(&self, view: &Relation, event: i16) -> bool {
        let does = |t: &Oid| self.trigger(*t).is_some_and(|t| t.has(trigger_events::INSTEAD | event));
        event != 0 && view.triggers.iter().any(does)
    }

    pub fn event_trigger(&self, oid: Oid) -> Option<&Arc<EventTrigger>> {
        self.event_triggers.get(oid)
    }

    pub fn event_trigger_by_name(&self, name: &str) -> Option<&Arc<EventTrigger>> {
        let oid = self.event_triggers.named(Oid::INVALID, name).next()?.oid;
        self.event_triggers.get(oid)
    }

    /// In OID order.
    pub fn event_triggers(&self) -> impl Iterator<Item = &Arc<EventTrigger>> {
        self.event_triggers.iter()
    }
}
