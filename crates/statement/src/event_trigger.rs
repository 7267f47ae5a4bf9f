//! Event triggers fire before and after the utility statements that define, change or drop objects, before a table is written again,
//! and when a session begins.

use std::sync::Arc;

use melba_catalog::event_triggers::{events, firing_event_triggers};
use melba_definition::context::RewriteReason;
use melba_definition::lookup::Lookup;
use melba_fmgr::Session as _;
use melba_parse::command::{fires_event_triggers, tag};
use melba_transaction::Tx;
use melba_types::{DbError, Oid, Result};
use pg_query::protobuf::node::Node as N;

use super::collected::EventState;
use super::context::{SessionState, StatementContext};
use super::event_commands::commands_of;
use super::function_counts::counted;
use super::language::{EventCall, language_of};

/// Runs a utility statement, and the event triggers before and after it.
///
/// # Errors
/// Those of the statement and of the triggers' functions.
pub(super) fn around<T>(
    context: &StatementContext,
    lookup: &Lookup<'_>,
    statement: &N,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let tx = lookup.tx();
    let before = tx.catalog();
    if !fires_event_triggers(statement) || before.event_triggers().next().is_none() {
        return run();
    }
    let tag = tag(statement);
    let _running = RunningCommand::begin(&context.session, tag);
    fire(context, tx, &EventCall { event: events::COMMAND_START, tag })?;
    let count = tx.change_count();
    let outcome = run()?;
    let commands = commands_of(lookup, statement, &before, &tx.changes_since(count))?;
    let has_dropped = change_state(context, |state| {
        state.commands = commands;
        state.is_dropping = !state.dropped.is_empty();
        state.is_dropping
    });
    if has_dropped == Some(true) {
        fire(context, tx, &EventCall { event: events::DROP, tag })?;
        change_state(context, |state| state.is_dropping = false);
    }
    fire(context, tx, &EventCall { event: events::COMMAND_END, tag })?;
    Ok(outcome)
}

/// A command whose event triggers may ask for what it does.
struct RunningCommand<'a>(&'a SessionState);

impl RunningCommand<'_> {
    fn begin<'a>(session: &'a SessionState, tag: &'static str) -> RunningCommand<'a> {
        session.event_states.lock().push(EventState::new(tag));
        RunningCommand(session)
    }
}

impl Drop for RunningCommand<'_> {
    fn drop(&mut self) {
        self.0.event_states.lock().pop();
    }
}

fn change_state<R>(context: &StatementContext, change: impl FnOnce(&mut EventState) -> R) -> Option<R> {
    context.session.event_states.lock().last_mut().map(change)
}

/// Fires the event triggers before a table's rows are written again.
///
/// # Errors
/// Those of the triggers' functions.
pub(super) fn before_rewrite(context: &StatementContext, table: Oid, reason: RewriteReason) -> Result<()> {
    let Some(tx) = &context.tx else { return Ok(()) };
    let Some(tag) = change_state(context, |state| {
        state.rewritten = Some((table, reason));
        state.tag
    }) else {
        return Ok(());
    };
    let fired = fire(context, tx, &EventCall { event: events::REWRITE, tag });
    change_state(context, |state| state.rewritten = None);
    fired
}

/// Fires the event triggers of a session that begins.
///
/// # Errors
/// Those of the triggers' functions.
pub fn on_login(context: &StatementContext, tx: &Arc<Tx>) -> Result<()> {
    let _running = RunningCommand::begin(&context.session, "LOGIN");
    fire(context, tx, &EventCall { event: events::LOGIN, tag: "LOGIN" })
}

fn fire(context: &StatementContext, tx: &Arc<Tx>, call: &EventCall<'_>) -> Result<()> {
    // A trigger before the command may have changed it.
    if context.setting("event_triggers").as_deref() == Some("off") {
        return Ok(());
    }
    let catalog = tx.catalog();
    let replica = context.setting("session_replication_role").as_deref() == Some("replica");
    let firing = firing_event_triggers(&catalog, call.event, call.tag, replica);
    firing.iter().try_for_each(|trigger| {
        let function = catalog.function(trigger.function);
        let function = function.ok_or_else(|| DbError::internal(format!("function {} is missing", trigger.function)))?;
        let called = context.within_routine(function)?;
        counted(context, function.oid, || language_of(function)?.event_trigger(called, call))
    })
}
