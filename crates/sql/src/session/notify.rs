//! LISTEN, NOTIFY and UNLISTEN, and what a session tells its client of other sessions.
//!
//! A client hears of notifications between transactions only: before ReadyForQuery when some have come, and without being asked while
//! its session waits for it.

use melba_types::{Datum, Result, bail};
use pg_query::protobuf::node::Node as N;

use super::Session;
use super::client::Client;
use super::context::StatementContext;
use super::portal::Outcome;
use super::transaction::Block;
use melba_transaction::Tx;

/// Output that gathers as long as it must not be sent.
const HELD_BYTES_MAX: usize = 64 << 10;

impl Session {
    /// The client is to be told something that it has not asked for.
    #[inline]
    pub fn has_notifications(&self) -> bool {
        self.state.listener.has_queued() && self.block == Block::None && !self.busy && !self.skip_to_sync && !self.is_committing()
    }

    /// Tells the client. While a commit waits for the log what does not fit into a small output is left for later.
    pub fn send_notifications(&mut self, client: &mut dyn Client) {
        if !self.state.listener.has_queued() {
            return;
        }
        client.output().set_encoding(self.client_encoding());
        while !(self.is_committing() && client.output().len() >= HELD_BYTES_MAX) {
            let Some(delivery) = self.state.listener.take() else { return };
            let notification = delivery.notification();
            client.output().notification(delivery.pid(), &notification.channel, &notification.payload);
            // A connection that is gone shows at the next attempt to use it.
            if !self.is_committing() && client.flush_when_large().is_err() {
                return;
            }
        }
    }
}

/// Runs LISTEN, NOTIFY or UNLISTEN; `None`: it is another statement.
pub(super) fn run(context: &StatementContext, tx: &Tx, node: &N) -> Option<Result<Outcome>> {
    let listener = &context.session.listener;
    let result = match node {
        N::NotifyStmt(s) => tx.notify(listener, &s.conditionname, &s.payload).map(|()| "NOTIFY"),
        N::ListenStmt(s) => {
            check_unrestricted(context, "LISTEN").and_then(|()| tx.listen(listener, &s.conditionname)).map(|()| "LISTEN")
        }
        N::UnlistenStmt(s) => check_unrestricted(context, "UNLISTEN").map(|()| {
            tx.unlisten(listener, Some(&*s.conditionname).filter(|channel| !channel.is_empty()));
            "UNLISTEN"
        }),
        _ => return None,
    };
    Some(result.map(|tag| Outcome::Done { tag: tag.to_owned() }))
}

fn check_unrestricted(context: &StatementContext, command: &str) -> Result<()> {
    if context.user.restricted {
        bail!(INSUFFICIENT_PRIVILEGE, "cannot execute {command} within security-restricted operation");
    }
    Ok(())
}

impl StatementContext {
    /// pg_notify.
    pub(super) fn call_notify(&self, tx: &Tx, args: &[Datum]) -> Result<Datum> {
        let text = |argument: &Datum| if argument.is_null() { String::new() } else { argument.as_str().to_owned() };
        tx.notify(&self.session.listener, &text(&args[0]), &text(&args[1]))?;
        Ok(Datum::text(""))
    }
}
