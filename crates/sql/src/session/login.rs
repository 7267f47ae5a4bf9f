//! The beginning of a session: login event triggers.

use melba_catalog::event_triggers::events;
use melba_statement::client::Client;
use melba_statement::event_trigger::on_login;
use melba_types::{DbError, Result, Severity};

use super::Session;

/// Fires the event triggers of a session that begins, in a transaction of their own.
///
/// # Errors
/// Those of the triggers' functions, as FATAL.
pub(super) fn fire_triggers(session: &mut Session, client: &mut dyn Client) -> Result<()> {
    if !session.state().catalog().event_triggers().any(|trigger| *trigger.event == *events::LOGIN) {
        return Ok(());
    }
    let fired = session.start_command().and_then(|()| {
        let context = session.context().clone();
        let tx = context.tx.clone().ok_or_else(|| DbError::internal("no transaction is open"))?;
        session.lend_for(client, || on_login(&context, &tx))?;
        session.lend(client, Session::finish_command)
    });
    fired.map_err(|error| {
        session.abort();
        error.severity(Severity::Fatal)
    })
}
