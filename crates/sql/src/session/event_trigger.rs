//! Event triggers fire before and after the utility statements that define, change or drop objects.

use std::sync::Arc;

use melba_catalog::event_triggers::{events, firing_event_triggers};
use melba_fmgr::Session;
use melba_parse::command::{fires_event_triggers, tag};
use melba_transaction::Tx;
use melba_types::{DbError, Result};
use pg_query::protobuf::node::Node as N;

use super::context::StatementContext;
use super::language::{EventCall, language_of};

/// Runs a utility statement, and the event triggers before and after it.
///
/// # Errors
/// Those of the statement and of the triggers' functions.
pub(super) fn around<T>(context: &StatementContext, tx: &Arc<Tx>, statement: &N, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let fires = fires_event_triggers(statement);
    if fires {
        fire(context, tx, &EventCall { event: events::COMMAND_START, tag: tag(statement) })?;
    }
    let outcome = run()?;
    if fires {
        fire(context, tx, &EventCall { event: events::COMMAND_END, tag: tag(statement) })?;
    }
    Ok(outcome)
}

fn fire(context: &StatementContext, tx: &Arc<Tx>, call: &EventCall<'_>) -> Result<()> {
    let catalog = tx.catalog();
    if catalog.event_triggers().next().is_none() || context.setting("event_triggers").as_deref() == Some("off") {
        return Ok(());
    }
    let replica = context.setting("session_replication_role").as_deref() == Some("replica");
    let firing = firing_event_triggers(&catalog, call.event, call.tag, replica);
    firing.iter().try_for_each(|trigger| {
        let function = catalog.function(trigger.function);
        let function = function.ok_or_else(|| DbError::internal(format!("function {} is missing", trigger.function)))?;
        let called = context.within_routine(function)?;
        language_of(function)?.event_trigger(called, call)
    })
}
