//! Event triggers: functions that run when commands of a database define, change or drop objects.

use std::sync::Arc;

use melba_types::Oid;

use crate::snapshot::Catalog;
use crate::triggers::fires;

/// The events, as pg_event_trigger.evtevent names them.
pub mod events {
    pub const COMMAND_START: &str = "ddl_command_start";
    pub const COMMAND_END: &str = "ddl_command_end";
    pub const DROP: &str = "sql_drop";
    pub const REWRITE: &str = "table_rewrite";
    pub const LOGIN: &str = "login";
}

/// A row of pg_event_trigger.
#[derive(Clone, Debug)]
pub struct EventTrigger {
    pub oid: Oid,
    pub name: Arc<str>,
    /// One of `events`.
    pub event: Arc<str>,
    pub owner: Oid,
    pub function: Oid,
    /// As pg_trigger.tgenabled.
    pub enabled: u8,
    /// The command tags for which it fires; none: for all.
    pub tags: Vec<Arc<str>>,
}

/// The event triggers that fire for a command, in the order of their names.
pub fn firing_event_triggers(catalog: &Catalog, event: &str, tag: &str, replica: bool) -> Vec<Arc<EventTrigger>> {
    let does = |t: &&Arc<EventTrigger>| {
        *t.event == *event && fires(t.enabled, replica) && (t.tags.is_empty() || t.tags.iter().any(|own| **own == *tag))
    };
    let mut found: Vec<_> = catalog.event_triggers().filter(does).cloned().collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
