//! One connection's state, between the server and the stages of SQL.
//!
//! The server hands each decoded message to `Session::handle`, which writes the answers to the client's output buffer. All the
//! protocol's rules about transactions, prepared statements, portals and cursors live here; sockets do not.
//!
//! Invariants:
//! 1. An error aborts the statement and its transaction, but ends the session only if it is FATAL.
//! 2. After an error inside an extended-query sequence, messages are skipped until Sync.
//! 3. Positions of errors leave the session in characters; inside, they are bytes.

mod cache;
mod detach;
mod encode;
mod extended;
mod function_call;
mod literals;
mod locking;
mod log_state;
mod logging;
mod login;
mod measured;
mod messages;
mod notifications;
mod parsing;
mod preparation;
mod procedure_transactions;
mod run;
mod server_settings;
mod session_set;
mod session_statement;
mod simple;
mod state;
mod traces;
mod two_phase;

use std::sync::Arc;

use melba_encoding::Encoding;
use melba_engine::Committing;
use melba_parse::literals::Normalized;
use melba_statement::client::Client;
use melba_statement::context::{SessionState, StatementContext};
use melba_statement::language::{self, Language};
use melba_statement::prepared::PreparedStatements;
use melba_statement::transaction::Block;
use melba_statement::{lent, routine, statement_counts, transaction};

use cache::StatementCache;
use log_state::Logging;
use state::{ContextVersions, DerivedSettings, OpenTransaction};
use traces::TraceState;

/// Stack that a thread running sessions must have: the deepest tree the grammar lets through must fit, decoded and analyzed.
pub const STACK_BYTES: usize = melba_types::limits::SESSION_STACK_BYTES;

/// The server's next step after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Read on; output may stay in the buffer while more messages wait.
    Continue,
    /// The client waits for the output.
    Flush,
    /// The client has sent Terminate.
    End,
}

/// The languages of functions.
static LANGUAGES: [&dyn Language; 2] = [&routine::Sql, &melba_interpreter::PlPgSql];

/// One connection after authentication.
pub struct Session {
    state: Arc<SessionState>,
    block: Block,
    transaction: Option<OpenTransaction>,
    /// Modes of the transaction that failed in this block, for AND CHAIN.
    failed_modes: Option<transaction::Modes>,
    derived: DerivedSettings,
    prepared: PreparedStatements,
    /// The caller calls `finish_commit` before it sends the output.
    defers_commits: bool,
    /// A commit that waits for the log.
    committing: Option<Committing>,
    cache: StatementCache,
    /// A buffer for cache keys.
    normalized: Normalized,
    /// An error was reported and Sync has not come yet.
    skip_to_sync: bool,
    /// The client has broken off the data of a COPY: its next message cannot be understood.
    lost_sync: bool,
    /// The query string that the positions of errors refer to.
    source: Arc<str>,
    /// pg_stat_activity shows it.
    announced: bool,
    statement_start: i64,
    /// Something was done since the last ReadyForQuery.
    busy: bool,
    /// An Execute has run since the last Sync: the next one shares its transaction.
    executed_in_pipeline: bool,
    /// The last statement's surroundings: most of the next one's. As they are now after `renew_context`.
    context: Arc<StatementContext>,
    /// The versions from which `context` was made.
    context_versions: ContextVersions,
    /// Version of the server's settings that the session's are based on.
    server_settings: u64,
    /// The modes that the settings show, as of a version of them.
    shown_modes: Option<(transaction::Modes, u64)>,
    /// Version of the settings that the client knows.
    reported_settings: u64,
    /// Data for the server log.
    logging: Logging,
    traces: TraceState,
    /// The statement that was counted last, while its transaction may still commit on its own.
    counted: Option<statement_counts::Key>,
}

impl Session {
    pub fn new(state: Arc<SessionState>) -> Session {
        language::install(&LANGUAGES);
        let derived = DerivedSettings::new(&state, &state.catalog());
        let (context, context_versions) = state::first_context(&state, &derived);
        state.watch_temporary_files();
        Session {
            prepared: PreparedStatements::new(state.prepared.clone()),
            context: Arc::new(context),
            context_versions,
            server_settings: state.instance.settings_version(),
            state,
            block: Block::None,
            transaction: None,
            failed_modes: None,
            derived,
            defers_commits: false,
            committing: None,
            cache: StatementCache::default(),
            normalized: Normalized::default(),
            skip_to_sync: false,
            lost_sync: false,
            source: "".into(),
            announced: false,
            statement_start: 0,
            busy: false,
            executed_in_pipeline: false,
            shown_modes: None,
            reported_settings: 0,
            logging: Logging::default(),
            traces: TraceState::default(),
            counted: None,
        }
    }

    /// From now on `handle` does not wait for the log: the caller checks `is_committing` before it sends anything, so that
    /// commits of several sessions share a write.
    pub fn defer_commits(&mut self) {
        self.defers_commits = true;
    }

    pub fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    /// The end of startup: tells the client all reported settings and how it can cancel, fires the login event triggers, and tells that
    /// the session is ready.
    ///
    /// # Errors
    /// Those of the triggers' functions, as FATAL.
    pub fn log_in(&mut self, secret: &[u8], client: &mut dyn Client) -> melba_types::Result<()> {
        self.introduce(secret, client);
        login::fire_triggers(self, client)?;
        self.ready(client);
        Ok(())
    }

    /// The same for a session of the server's own, which fires no triggers.
    pub fn greet(&mut self, secret: &[u8], client: &mut dyn Client) {
        self.introduce(secret, client);
        self.ready(client);
    }

    fn introduce(&mut self, secret: &[u8], client: &mut dyn Client) {
        self.send_notices(client);
        self.report_settings(client);
        client.output().backend_key_data(self.state.pid, secret);
    }

    /// The encoding of the client's next message.
    #[inline]
    pub fn client_encoding(&self) -> Encoding {
        self.derived.format.client_encoding
    }

    /// ReadyForQuery, with the settings that changed before it.
    fn ready(&mut self, client: &mut dyn Client) {
        self.send_notices(client);
        if self.block == Block::None {
            self.send_notifications(client);
        }
        self.report_settings(client);
        client.output().ready_for_query(self.block.status());
        self.state.activity.end(self.block.activity(), self.state.instance.cluster.clock.now_micros());
        self.state.interrupt.end_statement();
        self.logging.command = None;
        traces::end_pipeline(self);
        self.busy = false;
    }

    /// Runs what may raise notices, which go to the client at once (`lent`).
    pub(super) fn lend<R>(&mut self, client: &mut dyn Client, run: impl FnOnce(&mut Session) -> R) -> R {
        self.send_notices(client);
        if self.is_committing() {
            // Nothing may reach the client yet.
            return run(self);
        }
        let (state, source) = (self.state.clone(), self.source.clone());
        lent::lend(client, &state.notices, &source, || run(self))
    }

    /// The same for what leaves the session alone.
    pub(super) fn lend_for<R>(&self, client: &mut dyn Client, run: impl FnOnce() -> R) -> R {
        self.send_notices(client);
        if self.is_committing() { run() } else { lent::lend(client, &self.state.notices, &self.source, run) }
    }

    fn report_settings(&mut self, client: &mut dyn Client) {
        self.refresh();
        let version = self.state.settings_version();
        if std::mem::replace(&mut self.reported_settings, version) != version {
            let out = client.output();
            self.state.settings.lock().report_changes(|name, value| out.parameter_status(name, value));
        }
    }

    fn send_notices(&self, client: &mut dyn Client) {
        client.output().set_encoding(self.client_encoding());
        for notice in self.state.notices.take() {
            client.output().report(&melba_parse::position_in_characters(notice, &self.source));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Their queries, and functions, hold the state in which they are.
        self.state.portals.clear();
        self.end_calls();
        self.state.instance.statements.detach(&self.state.statements);
    }
}

#[cfg(test)]
mod auto_explain_tests;
#[cfg(test)]
mod catalog_tests;
#[cfg(test)]
mod dependency_tests;
#[cfg(test)]
mod detach_tests;
#[cfg(test)]
mod estimate_tests;
#[cfg(test)]
mod event_tests;
#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod gin_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod io_tests;
#[cfg(test)]
mod operator_class_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod sqljson_tests;
#[cfg(test)]
mod statement_counts_tests;
#[cfg(test)]
mod statement_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod two_phase_tests;
