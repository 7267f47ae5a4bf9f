//! What a running command leaves for its event triggers.

use melba_catalog::ObjectAddress;
use melba_definition::context::RewriteReason;
use melba_types::{Datum, Oid};

/// What event triggers may ask for, of one command.
#[derive(Debug)]
pub struct EventState {
    pub(super) tag: &'static str,
    /// Rows of pg_event_trigger_dropped_objects(), in the order in which the objects were found.
    pub(super) dropped: Vec<Vec<Datum>>,
    pub(super) commands: CollectedCommands,
    pub(super) is_dropping: bool,
    pub(super) rewritten: Option<(Oid, RewriteReason)>,
}

impl EventState {
    pub(super) fn new(tag: &'static str) -> EventState {
        EventState { tag, dropped: Vec::new(), commands: CollectedCommands::default(), is_dropping: false, rewritten: None }
    }
}

/// A row of pg_event_trigger_ddl_commands().
#[derive(Clone, Debug)]
pub(super) enum CollectedCommand {
    On {
        tag: &'static str,
        address: ObjectAddress,
    },
    /// GRANT and REVOKE, which name no object.
    Privileges {
        tag: &'static str,
        kind: &'static str,
    },
}

impl CollectedCommand {
    pub(super) fn tag(&self) -> &'static str {
        match self {
            CollectedCommand::On { tag, .. } | CollectedCommand::Privileges { tag, .. } => tag,
        }
    }
}

/// The commands of one statement.
#[derive(Clone, Debug)]
pub(super) enum CollectedCommands {
    Known(Vec<CollectedCommand>),
    Unknown,
}

impl Default for CollectedCommands {
    fn default() -> CollectedCommands {
        CollectedCommands::Known(Vec::new())
    }
}
