//! One connection's state, between the server and the stages of SQL.
//!
//! The server hands each decoded message to `Session::handle`, which writes the answers to the client's output buffer. All the
//! protocol's rules about transactions, prepared statements, portals and cursors live here; sockets do not.
//!
//! Invariants:
//! 1. An error aborts the statement and its transaction, but ends the session only if it is FATAL.
//! 2. After an error inside an extended-query sequence, messages are skipped until Sync.
//! 3. Positions of errors leave the session in characters; inside, they are bytes.

pub mod activity;
mod arbiter_values;
pub mod backends;
mod backup;
mod blocking;
mod cache;
pub mod client;
mod command;
pub mod context;
mod control;
mod copy;
mod created_file;
mod current_row;
mod cursor;
mod ddl_context;
mod deferred;
mod domain;
mod encode;
mod engine_info;
pub mod engine_settings;
mod execution;
mod explain;
mod extended;
mod filling;
mod function_call;
pub mod interrupt;
mod language;
mod large_objects;
mod lent;
mod listing;
mod literals;
mod local_settings;
mod log_state;
mod logging;
mod maintenance;
mod monitoring;
pub mod names;
mod notifications;
mod notify;
mod outcome;
mod pipeline;
mod planned;
mod planning;
mod plpgsql;
mod portal;
mod portals;
mod positioned;
mod prepared;
mod prepared_query;
mod procedure_transactions;
mod progress;
mod reset;
mod resets;
mod routine;
mod run;
mod serialization;
mod server_files;
mod server_settings;
mod session_statement;
mod set;
mod shown;
mod shown_cache;
mod simple;
mod state;
mod statement_counts;
mod statistics;
mod system;
mod system_rows;
mod temporary;
pub mod transaction;
mod two_phase;
pub mod user;
mod utility;
mod vacuum;
mod value_io;
mod values;

pub use backup::BACKUP_HINT;
pub use melba_settings::{self as settings, socket_options, value as setting_value};
pub use system::{set_version, version};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use melba_encoding::Encoding;
use melba_engine::Committing;
use melba_protocol::Frontend;
use melba_types::{DbError, Result, Severity, SqlState, err, limits};

use activity::Counter;
use cache::StatementCache;

use client::Client;
use context::{SessionState, StatementContext};
use language::Language;
use log_state::Logging;
use state::{ContextVersions, Derived, OpenTransaction};
use transaction::Block;

use melba_parse::literals::Normalized;
use prepared::PreparedStatements;

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
static LANGUAGES: [&dyn Language; 2] = [&routine::Sql, &plpgsql::PlPgSql];

/// One connection after authentication.
pub struct Session {
    state: Arc<SessionState>,
    block: Block,
    transaction: Option<OpenTransaction>,
    /// Modes of the transaction that failed in this block, for AND CHAIN.
    failed_modes: Option<transaction::Modes>,
    derived: Derived,
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
}

impl Session {
    pub fn new(state: Arc<SessionState>) -> Session {
        language::install(&LANGUAGES);
        let derived = Derived::new(&state, &state.catalog());
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

    /// Tells the client all reported settings, how it can cancel, and that the session is ready: the end of startup.
    pub fn greet(&mut self, secret: &[u8], client: &mut dyn Client) {
        self.send_notices(client);
        self.report_settings(client);
        client.output().backend_key_data(self.state.pid, secret);
        self.ready(client);
    }

    /// The encoding of the client's next message.
    #[inline]
    pub fn client_encoding(&self) -> Encoding {
        self.derived.format.client_encoding
    }

    /// Processes one message. An error means that the session ends; it has been written to the output.
    pub fn handle(&mut self, message: Frontend<'_>, client: &mut dyn Client) -> Result<Flow> {
        let extended = matches!(
            message,
            Frontend::Parse { .. } | Frontend::Bind(_) | Frontend::Describe(_) | Frontend::Execute { .. } | Frontend::Close(_)
        );
        if self.busy
            && !self.skip_to_sync
            && let Some(error) = self.state.interrupt.timed_out()
        {
            // statement_timeout runs from a statement's first message to its Execute, also while the client is slow.
            self.report(error, client)?;
            self.skip_to_sync = true;
            if !matches!(message, Frontend::Sync | Frontend::Terminate) {
                return Ok(Flow::Flush);
            }
        }
        if self.skip_to_sync && !matches!(message, Frontend::Sync | Frontend::Terminate) {
            return Ok(Flow::Continue);
        }
        let interrupt = self.state.interrupt.clone();
        let result = match catch_unwind(AssertUnwindSafe(|| limits::run(interrupt, || self.dispatch(message, client)))) {
            Ok(result) => result,
            Err(panic) => Err(panic_error(panic.as_ref())),
        };
        match result {
            Ok(flow) => Ok(flow),
            Err(error) => {
                self.report(error, client)?;
                if extended {
                    self.skip_to_sync = true;
                } else {
                    self.ready(client);
                }
                // At once: the client may be waiting for it before it sends Sync.
                Ok(Flow::Flush)
            }
        }
    }

    /// A message whose body could not be decoded: an error like one of its execution.
    pub fn reject(&mut self, tag: u8, error: DbError, client: &mut dyn Client) -> Result<Flow> {
        if self.skip_to_sync && !matches!(tag, b'S' | b'X') {
            return Ok(Flow::Continue);
        }
        self.report(error, client)?;
        if matches!(tag, b'P' | b'B' | b'D' | b'E' | b'C' | b'H') {
            self.skip_to_sync = true;
        } else {
            self.ready(client);
        }
        Ok(Flow::Flush)
    }

    fn dispatch(&mut self, message: Frontend<'_>, client: &mut dyn Client) -> Result<Flow> {
        match message {
            Frontend::Query(text) => {
                self.executed_in_pipeline = false;
                self.begin_logging();
                self.simple_query(text, client)?;
                self.end_logged_statement();
                self.ready(client);
                return Ok(Flow::Flush);
            }
            Frontend::Parse { name, text, parameter_types } => self.parse(name, text, parameter_types, client)?,
            Frontend::Bind(bind) => self.bind(&bind, client)?,
            Frontend::Describe(target) => self.describe(target, client)?,
            Frontend::Execute { portal, max_rows } => self.execute(portal, max_rows, client)?,
            Frontend::Close(target) => self.close(target, client),
            Frontend::Sync => {
                self.skip_to_sync = false;
                self.executed_in_pipeline = false;
                self.end_implicit_block();
                self.lend(client, Session::finish_command)?;
                self.ready(client);
                return Ok(Flow::Flush);
            }
            Frontend::Flush => return Ok(Flow::Flush),
            // Remaining messages of a COPY that failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
            Frontend::FunctionCall(call) => {
                self.function_call(&call, client)?;
                self.ready(client);
                return Ok(Flow::Flush);
            }
            Frontend::Password(_) => {
                return Err(err!(PROTOCOL_VIOLATION, "invalid frontend message type {}", b'p').severity(Severity::Fatal));
            }
            Frontend::Terminate => return Ok(Flow::End),
        }
        Ok(Flow::Continue)
    }

    /// Writes an error and aborts the transaction. Returns the error when the session has ended.
    fn report(&mut self, error: DbError, client: &mut dyn Client) -> Result<()> {
        client.output().abandon_open();
        self.state.interrupt.end_statement();
        self.state.interrupt.start_work();
        let error = melba_parse::position_in_characters(error, &self.source);
        self.log_error(&error);
        if error.sqlstate() == SqlState::T_R_DEADLOCK_DETECTED {
            self.state.activity.add(Counter::Deadlocks, 1);
        }
        let error = self.in_client_encoding(error);
        self.send_notices(client);
        client.output().report(&error);
        let lost = "terminating connection because protocol synchronization was lost";
        let error = if std::mem::take(&mut self.lost_sync) {
            let error = err!(PROTOCOL_VIOLATION, "{lost}").severity(Severity::Fatal);
            self.log_error(&error);
            client.output().report(&error);
            error
        } else {
            error
        };
        if error.fields().severity >= Severity::Fatal {
            self.close_all();
            return Err(error);
        }
        match catch_unwind(AssertUnwindSafe(|| self.abort())) {
            Ok(()) => Ok(()),
            Err(panic) => {
                let error = panic_error(panic.as_ref()).severity(Severity::Fatal);
                self.log_error(&error);
                client.output().report(&error);
                Err(error)
            }
        }
    }

    /// The error, or that it has no form in the client's encoding.
    fn in_client_encoding(&self, error: DbError) -> DbError {
        let encoding = self.client_encoding();
        if encoding.is_plain() {
            return error;
        }
        let fields = error.fields();
        let texts = [Some(&fields.message), fields.detail.as_ref(), fields.hint.as_ref()];
        let untranslatable = texts.into_iter().flatten().find_map(|text| encoding.encode(text).err());
        let severity = fields.severity;
        untranslatable.map(|e| e.severity(severity)).unwrap_or(error)
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
        self.busy = false;
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

    /// The connection is closed or must be: undoes all open work.
    pub fn close_all(&mut self) {
        self.state.portals.clear();
        self.state.instance.cluster.notifications.forget(&self.state.listener);
        // The client has disconnected: there is no one to report an error to.
        let _ = self.finish_commit();
        self.roll_back_transaction();
        self.block = Block::None;
        if self.state.temporary_namespace.lock().is_valid() {
            // A request to end must not keep the session from cleaning up. A restart forgets what remains after an error.
            self.state.interrupt.start_work();
            if self.end_temporary().is_err() {
                self.roll_back_transaction();
            }
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

fn panic_error(panic: &(dyn std::any::Any + Send)) -> DbError {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned());
    DbError::new(SqlState::INTERNAL_ERROR, format!("internal error: {text}"))
}

#[cfg(test)]
mod catalog_tests;
#[cfg(test)]
mod event_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod sqljson_tests;
#[cfg(test)]
mod statement_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod two_phase_tests;
