//! The open transaction of a session: starting, committing, aborting, savepoints.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use melba_catalog::{Catalog, acl, classes};
use melba_engine::{Committing, Durability, Isolation, io_counts};
use melba_fmgr::FormatSettings;
use melba_types::{DbError, Result, Severity, err};

use melba_parse::notices::{LexicalNotice, is_lexical, notices};
use melba_parse::{Parsed, Strings, parse_as};
use melba_serverlog::Policy;
use melba_settings::value::Value;
use melba_spill::Resources;
use melba_statement::context::{SessionState, StatementContext, format_settings, sends};
use melba_statement::engine_settings::set_commit_delay;
use melba_statement::language::languages;
use melba_statement::names::SearchPath;
use melba_statement::prepared::Prepared;
use melba_statement::statement_counts::tracking::Tracking;
use melba_statement::transaction::{Block, IsolationLevel, Modes};
use melba_statement::user::User;
use melba_transaction::{Tx, TxSavepoint};

use super::Session;
use super::measured::count_commit;
use super::traces::{self, Tracing};

/// Values computed from settings, again whenever one changes.
pub(super) struct DerivedSettings {
    pub version: u64,
    pub format: Arc<FormatSettings>,
    pub statement_timeout: Duration,
    /// How texts of the client are to be read.
    pub strings: Strings,
    pub log: Policy,
    pub tracing: Option<Tracing>,
    pub tracking: Tracking,
    pub default_modes: Modes,
    pub user: Arc<User>,
    durability: Durability,
    idle_timeout: Duration,
    idle_in_transaction_timeout: Duration,
    transaction_timeout: Duration,
    /// track_io_timing.
    pub io_timing: bool,
}

impl DerivedSettings {
    pub fn new(state: &SessionState, catalog: &Catalog) -> DerivedSettings {
        let mut settings = state.settings.lock();
        let user = User::of((state.user_oid, &state.user), &settings, catalog);
        settings.set_superuser(user.superuser);
        let may_set = |name: &str| catalog.may_use(user.oid, classes::PG_PARAMETER_ACL, name, acl::SET);
        settings.set_granted(catalog.parameter_acls().map(|g| g.name.clone()).filter(|name| may_set(name)).collect());
        settings.apply_to_socket();
        set_commit_delay(&state.engine(), &settings);
        let milliseconds = |name| Duration::from_millis(settings.get(name).as_integer().max(0) as u64);
        let isolation = settings.get("default_transaction_isolation").as_text();
        let lock_timeout = milliseconds("lock_timeout");
        state.engine().set_lock_timeout((!lock_timeout.is_zero()).then_some(lock_timeout));
        state.engine().set_deadlock_timeout(milliseconds("deadlock_timeout"));
        let mut log = if state.instance.log().is_silent() { Policy::silent() } else { Policy::of(&settings) };
        let tracing = Tracing::of(state, &settings);
        log.is_quiet &= tracing.is_none();
        state.follow_policy(&log);
        state.auto_explain.configure(&settings);
        if let Some(client) = &state.log_source.client {
            client.set_application_name(settings.get("application_name").as_text());
        }
        state.activity.peer.lock().application_name = settings.get("application_name").as_text().into();
        DerivedSettings {
            version: settings.version(),
            log,
            tracing,
            tracking: Tracking::of(&settings),
            io_timing: settings.get("track_io_timing").as_bool(),
            user: Arc::new(user),
            format: Arc::new(format_settings(&settings)),
            statement_timeout: milliseconds("statement_timeout"),
            strings: Strings {
                conforming: settings.get("standard_conforming_strings").as_bool(),
                warn: settings.get("escape_string_warning").as_bool(),
                backslash_quote: settings.get("backslash_quote").as_text() != "off",
            },
            durability: if settings.get("synchronous_commit").as_text() == "off" { Durability::Async } else { Durability::Sync },
            idle_timeout: milliseconds("idle_session_timeout"),
            idle_in_transaction_timeout: milliseconds("idle_in_transaction_session_timeout"),
            transaction_timeout: milliseconds("transaction_timeout"),
            default_modes: Modes {
                isolation: IsolationLevel::from_name(isolation).unwrap_or(IsolationLevel::ReadCommitted),
                read_only: settings.get("default_transaction_read_only").as_bool(),
                deferrable: settings.get("default_transaction_deferrable").as_bool(),
            },
        }
    }
}

fn isolation(modes: Modes) -> Isolation {
    match modes.isolation {
        IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
        IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        IsolationLevel::Serializable => Isolation::Serializable,
    }
}

/// The versions from which a statement's context was made.
#[derive(PartialEq)]
pub(super) struct ContextVersions {
    /// `NO_VERSION`: a catalog of the transaction's own.
    catalog: u64,
    settings: u64,
    derived: u64,
}

/// Catalogs are counted from 1.
const NO_VERSION: u64 = 0;

impl ContextVersions {
    fn now(state: &SessionState, derived: &DerivedSettings) -> ContextVersions {
        ContextVersions {
            catalog: state.instance.cluster.catalog_version(),
            settings: state.settings_version(),
            derived: derived.version,
        }
    }
}

fn search_path(state: &SessionState, derived: &DerivedSettings, catalog: &Catalog) -> SearchPath {
    let temporary = *state.temporary_namespace.lock();
    SearchPath::new(state.settings.lock().get("search_path").as_text(), catalog, &derived.user, temporary)
}

/// The surroundings of no statement yet.
pub(super) fn first_context(state: &Arc<SessionState>, derived: &DerivedSettings) -> (StatementContext, ContextVersions) {
    let versions = ContextVersions::now(state, derived);
    let catalog = state.catalog();
    let context = StatementContext {
        user: derived.user.clone(),
        session: state.clone(),
        path: Arc::new(search_path(state, derived, &catalog)),
        catalog,
        catalog_version: versions.catalog,
        tx: None,
        format: derived.format.clone(),
        transaction_start: 0,
        statement_start: 0,
        transitions: None,
    };
    (context, versions)
}

/// An open savepoint.
pub(super) struct OpenSavepoint {
    name: String,
    mark: TxSavepoint,
    /// The transaction's modes at its creation, which its end restores.
    modes: Modes,
    /// Number of the next portal when it was made.
    portals: u64,
}

/// A transaction that was started and neither committed nor rolled back.
pub(super) struct OpenTransaction {
    pub start: i64,
    pub modes: Modes,
    /// A statement has run: the isolation level is fixed.
    pub used: bool,
    pub savepoints: Vec<OpenSavepoint>,
    /// Version of the settings when it began.
    settings_version: u64,
    pub tx: Arc<Tx>,
}

impl OpenTransaction {
    /// The settings have levels that its end resolves.
    fn has_settings_levels(&self, state: &SessionState) -> bool {
        !self.savepoints.is_empty() || self.settings_version != state.settings_version()
    }
}

impl Session {
    /// Makes sure that a transaction is open; every statement starts with this.
    pub(super) fn start_command(&mut self) -> Result<()> {
        self.statement_start = self.state.instance.cluster.clock.now_micros();
        self.join_command()
    }

    /// The same for describing a statement: it begins at the time of the one before.
    pub(super) fn continue_command(&mut self) -> Result<()> {
        if self.transaction.is_none() { self.start_command() } else { self.join_command() }
    }

    pub(super) fn join_command(&mut self) -> Result<()> {
        let server_settings = self.state.instance.settings_version();
        if std::mem::replace(&mut self.server_settings, server_settings) != server_settings {
            self.state.settings.lock().rebase(&self.state.instance.settings());
        }
        self.refresh();
        if self.transaction.is_none() && self.block != Block::Failed {
            self.begin_transaction(self.derived.default_modes)?;
        }
        if !std::mem::replace(&mut self.busy, true) {
            self.state.interrupt.start_work();
        }
        if self.state.interrupt.start_statement(self.derived.statement_timeout) {
            self.state.instance.backends.wake_watchdog();
        }
        Ok(())
    }

    /// How long the session may wait for its client now.
    pub fn idle_timeout(&self) -> Option<Duration> {
        let timeout =
            if self.block == Block::None { self.derived.idle_timeout } else { self.derived.idle_in_transaction_timeout };
        (!timeout.is_zero()).then_some(timeout)
    }

    /// The error that ends the session when it has waited too long.
    pub fn idle_timeout_error(&self) -> DbError {
        let error = if self.block == Block::None {
            err!(IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout")
        } else {
            err!(IDLE_IN_TRANSACTION_SESSION_TIMEOUT, "terminating connection due to idle-in-transaction timeout")
        };
        error.severity(Severity::Fatal)
    }

    /// Takes the text that positions of errors refer to from now on.
    pub(super) fn set_source(&mut self, text: &Arc<str>) {
        if !Arc::ptr_eq(&self.source, text) {
            self.source = text.clone();
            self.announced = false;
        }
    }

    /// The same, of a prepared statement.
    pub(super) fn set_source_of(&mut self, prepared: &Prepared) {
        match &prepared.statement {
            Some(statement) => self.set_source(&statement.source),
            None => self.set_source(&"".into()),
        }
    }

    /// Reports the running command to pg_stat_activity.
    pub(super) fn announce(&mut self) {
        if !std::mem::replace(&mut self.announced, true) {
            self.state.activity.set_query(self.source.clone());
        }
        self.state.activity.start(self.statement_start);
    }

    /// Reads the settings again if any has changed.
    pub(super) fn refresh(&mut self) {
        if self.state.settings_version() != self.derived.version {
            let derived = DerivedSettings::new(&self.state, &self.current_catalog());
            let before = std::mem::replace(&mut self.derived, derived);
            io_counts::measure_times(self.derived.io_timing);
            if before.transaction_timeout != self.derived.transaction_timeout && self.transaction.is_some() {
                self.watch_transaction();
            }
            if before.strings != self.derived.strings || before.format != self.derived.format {
                // The same text may be another statement now, or have other constants.
                self.cache.clear();
            }
        }
    }

    /// transaction_timeout begins.
    fn watch_transaction(&self) {
        if self.state.interrupt.start_transaction(self.derived.transaction_timeout) {
            self.state.instance.backends.wake_watchdog();
        }
    }

    /// Tells the client what PostgreSQL's lexer would about its text, as often as it comes.
    pub(super) fn tell_lexical_notices(&self, text: &str) {
        let told = notices(text, self.derived.strings);
        if !told.is_empty() {
            told.iter().for_each(|told| self.state.log_notice(&told.notice));
            let sent = self.sent(told);
            self.state.notices.lock().extend(sent);
        }
    }

    /// Those that client_min_messages lets pass.
    fn sent(&self, told: Vec<LexicalNotice>) -> Vec<DbError> {
        let settings = self.state.settings.lock();
        told.into_iter().map(|told| told.notice).filter(|notice| sends(&settings, notice.fields().severity)).collect()
    }

    /// Parses a text of the client, who was told of it.
    pub(super) fn parse_text(&self, text: &str) -> Result<Parsed> {
        parse_as(text, self.derived.strings).inspect_err(|error| {
            let Some(mut pending) = self.state.notices.used() else { return };
            // PostgreSQL's lexer comes no further than to the error.
            let end = error.fields().position.map_or(usize::MAX, |position| position as usize - 1);
            pending.retain(|notice| !is_lexical(notice));
            let mut told = notices(text, self.derived.strings);
            told.retain(|told| told.at < end);
            pending.extend(self.sent(told));
        })
    }

    pub(super) fn begin_transaction(&mut self, modes: Modes) -> Result<()> {
        self.finish_commit()?;
        let tx = self.state.begin(isolation(modes))?;
        tx.engine.set_access(modes.read_only, modes.deferrable);
        self.show_modes(modes);
        self.transaction = Some(OpenTransaction {
            start: self.statement_start,
            modes,
            used: false,
            savepoints: Vec::new(),
            settings_version: self.state.settings_version(),
            tx: Arc::new(tx),
        });
        self.state.activity.set_transaction_start(self.statement_start);
        self.sample_transaction();
        if !self.derived.transaction_timeout.is_zero() {
            self.watch_transaction();
        }
        Ok(())
    }

    /// Sets the settings that show the transaction's modes.
    fn show_modes(&mut self, modes: Modes) {
        if self.shown_modes == Some((modes, self.state.settings_version())) {
            return;
        }
        let mut settings = self.state.settings.lock();
        settings.set_internal("transaction_isolation", Value::Text(modes.isolation.name().into()));
        settings.set_internal("transaction_read_only", Value::Bool(modes.read_only));
        settings.set_internal("transaction_deferrable", Value::Bool(modes.deferrable));
        self.shown_modes = Some((modes, settings.version()));
    }

    /// Changes the open transaction's modes by PostgreSQL's rules about when that is still possible.
    pub(super) fn set_modes(&mut self, change: impl FnOnce(&mut Modes)) -> Result<()> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        let (old, mut modes) = (transaction.modes, transaction.modes);
        change(&mut modes);
        if modes.isolation != old.isolation {
            if transaction.used {
                return Err(err!(ACTIVE_SQL_TRANSACTION, "SET TRANSACTION ISOLATION LEVEL must be called before any query"));
            }
            if !transaction.savepoints.is_empty() {
                return Err(err!(
                    ACTIVE_SQL_TRANSACTION,
                    "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
                ));
            }
            if isolation(modes) != isolation(old) {
                // It has no changes: another one replaces it.
                transaction.tx.rollback();
                transaction.tx = Arc::new(self.state.begin(isolation(modes))?);
            }
        }
        if old.read_only && !modes.read_only {
            if !transaction.savepoints.is_empty() {
                return Err(err!(
                    ACTIVE_SQL_TRANSACTION,
                    "cannot set transaction read-write mode inside a read-only transaction"
                ));
            }
            if transaction.used {
                return Err(err!(ACTIVE_SQL_TRANSACTION, "transaction read-write mode must be set before any query"));
            }
        }
        if old.deferrable != modes.deferrable {
            if !transaction.savepoints.is_empty() {
                return Err(err!(
                    ACTIVE_SQL_TRANSACTION,
                    "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
                ));
            }
            if transaction.used {
                return Err(err!(ACTIVE_SQL_TRANSACTION, "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"));
            }
        }
        transaction.modes = modes;
        // The engine relies on READ ONLY to the end, and a rollback to a savepoint would take it back.
        if transaction.savepoints.is_empty() {
            transaction.tx.engine.set_access(modes.read_only, modes.deferrable);
        }
        self.show_modes(modes);
        Ok(())
    }

    /// SET TRANSACTION SNAPSHOT.
    pub(super) fn adopt_snapshot(&mut self, name: &str) -> Result<()> {
        let usable = self.transaction.as_ref().filter(|t| !t.used && t.savepoints.is_empty());
        let Some(transaction) = usable else {
            return Err(err!(ACTIVE_SQL_TRANSACTION, "SET TRANSACTION SNAPSHOT must be called before any query"));
        };
        match isolation(transaction.modes) {
            Isolation::RepeatableRead => transaction.tx.adopt_snapshot(name),
            // The exporter's own serializability would have to be known.
            Isolation::Serializable => Err(DbError::unsupported("SET TRANSACTION SNAPSHOT in a SERIALIZABLE transaction")),
            Isolation::ReadCommitted => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ"
            )),
        }
    }

    /// The catalog as the open transaction sees it.
    pub(super) fn current_catalog(&self) -> Arc<Catalog> {
        self.transaction.as_ref().map_or_else(|| self.state.catalog(), |t| t.tx.catalog())
    }

    /// The surroundings of the statement that runs now.
    pub(super) fn context(&mut self) -> &Arc<StatementContext> {
        self.renew_context();
        &self.context
    }

    /// Rebuilds `context` for the present state.
    pub(super) fn renew_context(&mut self) {
        self.state.in_block.store(self.block != Block::None, Ordering::Relaxed);
        let tx = self.transaction.as_ref().map(|t| &t.tx);
        let has_own_catalog = tx.is_some_and(|tx| tx.has_own_catalog());
        // Before the catalog is read, so that a change meanwhile is noticed the next time.
        let versions = ContextVersions::now(&self.state, &self.derived);
        if has_own_catalog || versions != self.context_versions {
            self.make_context(versions);
            if has_own_catalog {
                self.context_versions.catalog = NO_VERSION;
            }
            return;
        }
        let same_tx = self.context.tx.as_ref().map(Arc::as_ptr) == tx.map(Arc::as_ptr);
        let starts = (self.transaction.as_ref().map_or(self.statement_start, |t| t.start), self.statement_start);
        if same_tx && (self.context.transaction_start, self.context.statement_start) == starts {
            return;
        }
        let context = Arc::make_mut(&mut self.context);
        if !same_tx {
            context.tx = tx.cloned();
        }
        (context.transaction_start, context.statement_start) = starts;
    }

    fn make_context(&mut self, versions: ContextVersions) {
        let catalog = self.current_catalog();
        let known = (self.context_versions.settings, self.context_versions.derived) == (versions.settings, versions.derived)
            && Arc::ptr_eq(&self.context.catalog, &catalog);
        self.context = Arc::new(StatementContext {
            user: self.derived.user.clone(),
            session: self.state.clone(),
            path: if known { self.context.path.clone() } else { Arc::new(search_path(&self.state, &self.derived, &catalog)) },
            catalog,
            catalog_version: versions.catalog,
            tx: self.transaction.as_ref().map(|t| t.tx.clone()),
            format: self.derived.format.clone(),
            transaction_start: self.transaction.as_ref().map_or(self.statement_start, |t| t.start),
            statement_start: self.statement_start,
            transitions: None,
        });
        self.context_versions = versions;
    }

    /// The state that languages keep for the calls of a statement.
    pub(super) fn end_calls(&self) {
        languages().for_each(|language| language.end_statement(&self.state));
    }

    /// The transaction that has ended lives on no longer than its statements.
    fn forget_transaction(&mut self) {
        self.state.activity.set_transaction_start(0);
        self.end_calls();
        let instance = &self.state.instance;
        instance.functions.gather(&self.state.calls, self.state.database_oid, || instance.cluster.catalogs());
        self.state.fetched.clear();
        if !self.derived.transaction_timeout.is_zero() {
            self.state.interrupt.end_transaction();
        }
        if self.context.tx.is_some() {
            Arc::make_mut(&mut self.context).tx = None;
        }
    }

    /// The end of a statement: commits when it had the transaction to itself.
    pub(super) fn finish_command(&mut self) -> Result<()> {
        self.end_calls();
        match &self.transaction {
            Some(_) if self.block == Block::None => self.commit_transaction(),
            Some(transaction) => {
                // Idle in a transaction, READ COMMITTED holds back nothing.
                transaction.tx.engine.end_statement();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A second statement of the same message joins the transaction of the first.
    pub(super) fn begin_implicit_block(&mut self) {
        if self.block == Block::None {
            self.block = Block::Implicit;
        }
    }

    pub(super) fn end_implicit_block(&mut self) {
        if self.block == Block::Implicit {
            self.block = Block::None;
        }
    }

    /// The checks of constraints that wait for the transaction's end.
    pub(super) fn run_deferred_checks(&mut self) -> Result<()> {
        match self.transaction.as_ref().is_some_and(|t| !t.tx.deferred.is_empty()) {
            true => melba_statement::deferred::run_deferred(self.context(), true),
            false => Ok(()),
        }
    }

    /// The ON COMMIT actions of temporary tables.
    pub(super) fn run_on_commit(&mut self) -> Result<()> {
        match self.transaction.is_none() || self.state.on_commit.lock().is_empty() {
            true => Ok(()),
            false => melba_statement::temporary::run_on_commit(self.context()),
        }
    }

    /// Commits. On an error the caller aborts.
    pub(super) fn commit_transaction(&mut self) -> Result<()> {
        self.run_deferred_checks()?;
        self.hold_portals()?;
        self.state.portals.retain(|p| p.hold || p.pinned);
        self.run_on_commit()?;
        let Some(transaction) = &self.transaction else { return Ok(()) };
        // A session that has changed the catalog reads it next, one that has written much waits for the background, and a
        // transaction's notifications are sent before its client is told of the commit.
        let tx = &transaction.tx;
        let before = io_counts::counted();
        let began = if self.derived.tracing.is_some() { self.state.instance.cluster.clock.now_micros() } else { 0 };
        let waits = !self.defers_commits || tx.has_catalog_changes() || tx.engine.is_large() || tx.has_notifications();
        if waits {
            let (_, warning) = tx.commit(self.derived.durability)?;
            warning.into_iter().for_each(|warning| self.state.warning(warning));
        } else {
            self.committing = match transaction.tx.start_commit(self.derived.durability)?.poll() {
                Ok(ended) => ended.map(|_| None)?,
                Err(committing) => Some(committing),
            };
        }
        if waits || self.is_committing() {
            traces::note_commit(self, began);
        }
        self.detach_transaction();
        count_commit(self, &io_counts::counted().since(&before));
        Ok(())
    }

    /// The session's part of a transaction's end, which is a commit, or is up to others.
    pub(super) fn detach_transaction(&mut self) {
        let changes_settings = self.transaction.as_ref().is_some_and(|t| t.has_settings_levels(&self.state));
        self.state.activity.note_end(true);
        self.transaction = None;
        self.forget_transaction();
        if changes_settings {
            self.state.settings.lock().commit();
        }
    }

    /// Portals that outlive the transaction read the rest of their rows.
    pub(super) fn hold_portals(&mut self) -> Result<()> {
        if !self.state.portals.has_named() {
            return Ok(());
        }
        let context = self.context().clone();
        let resources = Arc::new(Resources::new(&*context, &self.state.engine()));
        self.state.portals.each(|p| p.hold || p.pinned, |portal| portal.hold(&resources))
    }

    /// Whether the last commit waits for the log: the session's output must not reach its client before `finish_commit`.
    pub fn is_committing(&self) -> bool {
        self.committing.is_some()
    }

    /// Waits for the last commit.
    ///
    /// # Errors
    /// FATAL: the client got no answer, and it is too late to report that an earlier statement has failed.
    pub fn finish_commit(&mut self) -> Result<()> {
        match self.committing.take().map(Committing::wait) {
            Some(Err(error)) => {
                let error = DbError::from(error).severity(Severity::Fatal);
                self.log_error(&error);
                Err(error)
            }
            Some(Ok(_)) => {
                self.end_logged_commit();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Drops the temporary schema and its objects.
    pub(super) fn end_temporary(&mut self) -> Result<()> {
        self.statement_start = self.state.instance.cluster.clock.now_micros();
        self.begin_transaction(self.derived.default_modes)?;
        melba_statement::temporary::end_temporary(self.context())?;
        self.commit_transaction()
    }

    /// Undoes the open transaction, if any. Cursors held over from earlier transactions stay.
    pub(super) fn roll_back_transaction(&mut self) {
        self.undo_transaction();
        self.state.portals.retain(|p| p.held);
    }

    fn undo_transaction(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            self.forget_transaction();
            transaction.tx.rollback();
            self.state.activity.note_end(false);
            if transaction.has_settings_levels(&self.state) {
                self.state.settings.lock().rollback();
            }
        }
    }

    /// After an error: undoes as much as the block requires.
    pub(super) fn abort(&mut self) {
        match self.block {
            Block::None | Block::Implicit => {
                self.roll_back_transaction();
                self.block = Block::None;
            }
            Block::Explicit | Block::Failed => {
                self.block = Block::Failed;
                self.failed_modes = self.transaction.as_ref().map(|t| t.modes).or(self.failed_modes);
                let depth = self.depth();
                let since = self.transaction.as_ref().and_then(|t| t.savepoints.last()).map_or(0, |s| s.portals);
                // Portals end with the block, or with the savepoint; until then they exist and cannot be run.
                self.state.portals.fail(|p| p.number >= since && !p.held);
                if depth == 0 || self.undo_work(depth).is_err() {
                    self.state.portals.fail(|p| !p.held);
                    self.undo_transaction();
                }
            }
        }
    }

    /// Number of open savepoints.
    pub(super) fn depth(&self) -> usize {
        self.transaction.as_ref().map_or(0, |t| t.savepoints.len())
    }

    pub(super) fn define_savepoint(&mut self, name: &str) -> Result<()> {
        let Some(transaction) = &mut self.transaction else { return Err(DbError::internal("no transaction is open")) };
        let mark = transaction.tx.savepoint()?;
        let portals = self.state.portals.next_number();
        transaction.savepoints.push(OpenSavepoint { name: name.to_owned(), mark, modes: transaction.modes, portals });
        self.state.settings.lock().push_level();
        Ok(())
    }

    /// The number of the innermost savepoint of that name, counted from 1.
    pub(super) fn find_savepoint(&self, name: &str) -> Result<usize> {
        let found = self.transaction.as_ref().and_then(|t| t.savepoints.iter().rposition(|s| s.name == name));
        found.map(|i| i + 1).ok_or_else(|| err!(S_E_INVALID_SPECIFICATION, "savepoint \"{name}\" does not exist"))
    }

    /// Forgets a savepoint and those after it, keeping their changes.
    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let depth = self.find_savepoint(name)?;
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        let modes = transaction.savepoints[depth - 1].modes;
        {
            let mut settings = self.state.settings.lock();
            for _ in depth..=transaction.savepoints.len() {
                settings.commit_level();
            }
        }
        for savepoint in transaction.savepoints.drain(depth - 1..).rev() {
            transaction.tx.release(savepoint.mark)?;
        }
        self.go_back_to(modes);
        Ok(())
    }

    /// Restores the modes of a savepoint that ends, whatever they were set to after it.
    fn go_back_to(&mut self, modes: Modes) {
        if let Some(transaction) = &mut self.transaction {
            transaction.modes = modes;
            transaction.tx.engine.set_access(modes.read_only, modes.deferrable);
        }
        self.show_modes(modes);
    }

    /// Undoes everything after the `depth`-th savepoint (counted from 1), which stays.
    pub(super) fn undo_to_savepoint(&mut self, depth: usize) -> Result<()> {
        self.undo_work(depth)?;
        let since = self.transaction.as_ref().and_then(|t| t.savepoints.last()).map_or(0, |s| s.portals);
        self.state.portals.retain(|p| p.number < since || p.held);
        Ok(())
    }

    /// The same, without the portals.
    fn undo_work(&mut self, depth: usize) -> Result<()> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        let savepoint = &transaction.savepoints[depth - 1];
        let modes = savepoint.modes;
        transaction.tx.rollback_to(&savepoint.mark)?;
        {
            let mut settings = self.state.settings.lock();
            for _ in depth..=transaction.savepoints.len() {
                settings.rollback_level();
            }
            settings.push_level();
        }
        transaction.savepoints.truncate(depth);
        self.go_back_to(modes);
        Ok(())
    }
}
