//! What the statements of a session write into the server log: notices, plans, temporary files, waits for locks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_engine::{LongWait, WaitPhase, WaitWatch};
use melba_serverlog::{Entry, Level, Policy, Verbosity};
use melba_types::{Datum, DbError, SqlState};

use super::activity::Counter;
use super::auto_explain_settings::severity;
use super::context::{SessionState, StatementContext};

impl SessionState {
    /// The session's logging by its present settings.
    pub(super) fn log_policy(&self) -> Policy {
        match self.instance.log().is_silent() {
            true => Policy::silent(),
            false => Policy::of(&self.settings.lock()),
        }
    }

    /// Logs a notice on its way to the client, if log_min_messages lets it pass.
    pub fn log_notice(&self, notice: &DbError) {
        let level = Level::from(notice.fields().severity);
        if self.instance.log().is_silent() || level < self.min_messages() {
            return;
        }
        let policy = self.log_policy();
        let mut entry = Entry::of(notice);
        let query = self.activity.query();
        if level >= policy.min_error_statement {
            entry.statement = Some(query.as_ref().into());
        }
        entry.command = "idle";
        self.instance.log().emit(&self.log_source, policy.verbosity, &entry);
    }

    /// Logs a plan, whose text has the statement, and tells the client of it.
    pub(super) fn tell_plan(&self, message: String, level: Level) {
        if !self.instance.log().is_silent() && level >= self.min_messages() {
            let mut entry = Entry::new(level, &message);
            entry.query_id = self.activity.query_id();
            entry.command = "idle";
            self.instance.log().emit(&self.log_source, self.log_policy().verbosity, &entry);
        }
        self.send(DbError::new(SqlState::SUCCESSFUL_COMPLETION, message).severity(severity(level)));
    }

    fn min_messages(&self) -> Level {
        Level::by_name(self.settings.lock().get("log_min_messages").as_text()).unwrap_or_default()
    }
}

/// A message of level LOG about the statement that runs.
fn within_statement<'e>(message: &'e str, detail: Option<String>, query: &'e str) -> Entry<'e> {
    let mut entry = Entry::new(Level::Log, message);
    entry.detail = detail.map(Into::into);
    entry.statement = Some(query.into());
    entry
}

impl SessionState {
    /// Has the temporary files of a session counted, and logged as its settings want it (log_temp_files).
    pub fn watch_temporary_files(&self) {
        let (log, source) = (Arc::clone(self.instance.log()), Arc::clone(&self.log_source));
        let (least, activity) = (Arc::clone(&self.log_temp_files), Arc::clone(&self.activity));
        self.engine().set_temp_watch(Box::new(move |name, bytes| {
            activity.add(Counter::TempFiles, 1);
            activity.add(Counter::TempBytes, bytes);
            if bytes >= least.load(Ordering::Relaxed) && least.load(Ordering::Relaxed) != u64::MAX {
                let message = format!("temporary file: path \"temp/{name}\", size {bytes}");
                log.emit(&source, Verbosity::Default, &within_statement(&message, None, &activity.query()));
            }
        }));
    }

    /// Watches waits and temporary files as a changed policy wants it.
    pub fn follow_policy(&self, policy: &Policy) {
        self.log_temp_files.store(policy.temp_files.unwrap_or(u64::MAX), Ordering::Relaxed);
        let watch = policy.lock_waits.then(|| self.lock_watch(policy.verbosity));
        self.engine().set_wait_watch(watch);
    }

    /// log_lock_waits.
    fn lock_watch(&self, verbosity: Verbosity) -> Arc<WaitWatch> {
        let (log, source) = (Arc::clone(self.instance.log()), Arc::clone(&self.log_source));
        let activity = Arc::clone(&self.activity);
        Arc::new(move |wait: &LongWait| {
            let milliseconds = wait.waited.as_secs_f64() * 1000.0;
            let what = match wait.phase {
                WaitPhase::Waiting => "still waiting for",
                WaitPhase::Acquired => "acquired",
                WaitPhase::Failed => "failed to acquire",
            };
            let message = format!("process {} {what} {} after {milliseconds:.3} ms", wait.pid, wait.lock);
            let list = |pids: &[i32]| pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
            let process = if wait.holders.len() == 1 { "Process" } else { "Processes" };
            let detail = format!("{process} holding the lock: {}. Wait queue: {}.", list(&wait.holders), list(&wait.queue));
            let detail = (wait.phase == WaitPhase::Waiting).then_some(detail);
            log.emit(&source, verbosity, &within_statement(&message, detail, &activity.query()));
        })
    }
}

/// pg_rotate_logfile().
pub(super) fn rotate_log(context: &StatementContext) -> Datum {
    let rotates = context.session.instance.log().rotate();
    if !rotates {
        let warning =
            melba_types::err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "rotation not possible because log collection not active");
        context.session.warning(warning);
    }
    Datum::Bool(rotates)
}

/// pg_current_logfile(), of any format or the one that is named.
pub(super) fn current_log_file(context: &StatementContext, format: Option<&str>) -> melba_types::Result<Datum> {
    if let Some(format) = format
        && !matches!(format, "stderr" | "csvlog" | "jsonlog")
    {
        let error = melba_types::err!(INVALID_PARAMETER_VALUE, "log format \"{format}\" is not supported");
        return Err(error.hint("The supported log formats are \"stderr\", \"csvlog\", and \"jsonlog\"."));
    }
    let directory = context.session.settings.lock().get("data_directory").as_text().to_owned();
    if directory.is_empty() {
        return Ok(Datum::Null);
    }
    let found = melba_serverlog::current_file(std::path::Path::new(&directory), format);
    let found = found.map_err(|e| melba_types::err!(IO_ERROR, "could not read file \"current_logfiles\": {e}"))?;
    Ok(found.map_or(Datum::Null, Datum::text))
}
