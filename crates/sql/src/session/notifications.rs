//! Notifications of other sessions, sent to a session's client.
//!
//! A client gets notifications only between transactions: before ReadyForQuery when some have come, and unasked while its session
//! waits for it.

use melba_statement::client::Client;
use melba_statement::transaction::Block;

use super::Session;

/// Output that gathers as long as it must not be sent.
const HELD_BYTES_MAX: usize = 64 << 10;

impl Session {
    /// There are unsolicited messages for the client.
    #[inline]
    pub fn has_notifications(&self) -> bool {
        self.state.listener.has_queued() && self.block == Block::None && !self.busy && !self.skip_to_sync && !self.is_committing()
    }

    /// Sends them to the client. While a commit waits for the log, those that do not fit into a small output are left for later.
    pub fn send_notifications(&mut self, client: &mut dyn Client) {
        if !self.state.listener.has_queued() {
            return;
        }
        client.output().set_encoding(self.client_encoding());
        while !(self.is_committing() && client.output().len() >= HELD_BYTES_MAX) {
            let Some(delivery) = self.state.listener.take() else { return };
            let notification = delivery.notification();
            client.output().notification(delivery.pid(), &notification.channel, &notification.payload);
            // A closed connection shows at the next attempt to use it.
            if !self.is_committing() && client.flush_when_large().is_err() {
                return;
            }
        }
    }
}
