//! The messages of a client: each is handed to what it asks for, and its error is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};

use melba_engine::io_counts;
use melba_protocol::Frontend;
use melba_statement::activity::Counter;
use melba_statement::client::Client;
use melba_statement::transaction::Block;
use melba_types::{DbError, Result, Severity, SqlState, err, limits};

use super::extended::{bind_message, close_message, describe_message, execute_portal_message};
use super::function_call::function_call;
use super::parsing::parse_message;
use super::simple::simple_query;
use super::{Flow, Session, traces};

impl Session {
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
        io_counts::measure_times(self.derived.io_timing);
        let result = match catch_unwind(AssertUnwindSafe(|| limits::run(interrupt, || self.dispatch(message, client)))) {
            Ok(result) => result,
            Err(panic) => Err(panic_error(panic.as_ref())),
        };
        self.count_io();
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

    /// What this thread has read and written was the session's.
    #[inline]
    fn count_io(&self) {
        if !io_counts::has_counted() {
            return;
        }
        let io = match &self.transaction {
            Some(transaction) => transaction.tx.engine.session().note_io(),
            None => self.state.engine().note_io(),
        };
        self.state.activity.add_io(&io);
    }

    fn dispatch(&mut self, message: Frontend<'_>, client: &mut dyn Client) -> Result<Flow> {
        match message {
            Frontend::Query(text) => {
                self.executed_in_pipeline = false;
                self.begin_logging();
                simple_query(self, text, client)?;
                self.end_logged_statement();
                self.ready(client);
                return Ok(Flow::Flush);
            }
            Frontend::Parse { name, text, parameter_types } => parse_message(self, name, text, parameter_types, client)?,
            Frontend::Bind(bind) => bind_message(self, &bind, client)?,
            Frontend::Describe(target) => describe_message(self, target, client)?,
            Frontend::Execute { portal, max_rows } => execute_portal_message(self, portal, max_rows, client)?,
            Frontend::Close(target) => close_message(self, target, client),
            Frontend::Sync => {
                self.skip_to_sync = false;
                self.executed_in_pipeline = false;
                self.end_implicit_block();
                traces::begin_sync(self);
                self.lend(client, Session::finish_command)?;
                self.ready(client);
                return Ok(Flow::Flush);
            }
            Frontend::Flush => return Ok(Flow::Flush),
            // Remaining messages of a COPY that failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
            Frontend::FunctionCall(call) => {
                function_call(self, &call, client)?;
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
        traces::fail(self, &error);
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

fn panic_error(panic: &(dyn std::any::Any + Send)) -> DbError {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned());
    DbError::new(SqlState::INTERNAL_ERROR, format!("internal error: {text}"))
}
