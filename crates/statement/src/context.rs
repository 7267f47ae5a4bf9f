//! The context of running code: its session, and the server that all sessions share.

use std::sync::Arc;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use melba_catalog::Catalog;
use melba_catalog::relations::LiveInfo;
use melba_definition::context::OnCommit;
use melba_encoding::{Encoding, UTF8};
use melba_engine::{Isolation, ReadView};
use melba_expression::{Evaluation, Expression, NoSubPlans};
use melba_fmgr::{FormatSettings, IntervalStyle, Session as _, TransitionTable};
use melba_types::{Datum, DbError, Oid, Result, Severity};
use parking_lot::{Mutex, RwLock};

use melba_serverlog::{Entry, Level, ServerLog, Source};
use melba_settings::configuration::{Assignment, Configured, Place};
use melba_settings::value::Value;
use melba_settings::{Reconfigured, Settings, check};
use melba_traces::Tracer;
use melba_transaction::Tx;
use melba_transaction::cluster::Cluster;
use melba_transaction::notify::Listener;
use melba_types::RarelyUsed;

use super::auto_explain_settings::AutoExplain;
use super::backends::{Activity, Backends};
use super::background_work::BackgroundWork;
use super::call_counts::{FunctionCounts, LocalCalls};
use super::cold::ColdWork;
use super::collected::EventState;
use super::engine_info::EngineInfo;
use super::engine_settings::engine_options;
use super::error_context;
use super::fetched::FetchedCounts;
use super::interrupt::Interrupt;
use super::language::LanguageState;
use super::lent;
use super::maintained::Maintained;
use super::names::SearchPath;
use super::portals::Portals;
use super::prepared::NamedStatements;
use super::publishing::Publishing;
use super::resets::Resets;
use super::shown_cache::ShownCache;
use super::statement_counts::{LocalCounts, StatementCounts};
use super::user::User;

/// Everything that the sessions of one server share.
pub struct Instance {
    /// Configuration files and command line applied.
    settings: RwLock<Arc<Settings>>,
    settings_version: AtomicU64,
    configuration: OnceLock<Box<dyn Configuration>>,
    gate: OnceLock<Arc<dyn Gate>>,
    log: Arc<ServerLog>,
    /// Of a server with a collector of traces.
    tracer: Option<Arc<Tracer>>,
    pub backends: Arc<Backends>,
    pub cluster: Arc<Cluster>,
    /// Sizes for pg_class.
    pub live: Arc<dyn LiveInfo + Send + Sync>,
    /// Microseconds since 2000-01-01.
    pub started: i64,
    /// When the configuration was read.
    loaded: AtomicI64,
    pub background_work: BackgroundWork,
    pub publishing: Publishing,
    pub cold: ColdWork,
    pub(super) resets: Resets,
    pub(super) maintained: Maintained,
    pub statements: StatementCounts,
    pub functions: FunctionCounts,
}

impl Instance {
    pub fn new(settings: Settings, cluster: Arc<Cluster>) -> Instance {
        melba_builtins::install();
        let started = cluster.clock.now_micros();
        const PAGE_BYTES: u64 = 8192;
        let pages = settings.get("max_notify_queue_pages").as_integer().max(1) as u64;
        cluster.notifications.limit_to(pages.saturating_mul(PAGE_BYTES));
        cluster.prepared.set_limit(settings.get("max_prepared_transactions").as_integer().max(0) as usize);
        ColdWork::begin(&cluster);
        Instance {
            settings: RwLock::new(Arc::new(settings)),
            settings_version: AtomicU64::new(1),
            configuration: OnceLock::new(),
            gate: OnceLock::new(),
            log: Arc::new(ServerLog::silent()),
            tracer: None,
            backends: Arc::default(),
            live: Arc::new(EngineInfo(cluster.engine.clone())),
            cluster,
            started,
            loaded: AtomicI64::new(started),
            background_work: BackgroundWork::default(),
            publishing: Publishing::default(),
            cold: ColdWork::default(),
            resets: Resets::default(),
            maintained: Maintained::default(),
            statements: StatementCounts::default(),
            functions: FunctionCounts::default(),
        }
    }

    /// When the configuration was read last, in microseconds since 2000-01-01.
    pub fn loaded_at(&self) -> i64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// The server with files that settings come from: ALTER SYSTEM and pg_reload_conf() work.
    pub fn with_configuration(self, configuration: Box<dyn Configuration>) -> Instance {
        // A new instance has none yet.
        let _ = self.configuration.set(configuration);
        self
    }

    /// The server with a log; without one nothing is logged.
    pub fn with_log(mut self, log: Arc<ServerLog>) -> Instance {
        self.log = log;
        self
    }

    /// The server with a collector of traces.
    pub fn with_tracer(mut self, tracer: Option<Arc<Tracer>>) -> Instance {
        self.tracer = tracer;
        self
    }

    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }

    pub fn log(&self) -> &Arc<ServerLog> {
        &self.log
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    /// Settings with their actual values at the start, before any client receives them.
    pub fn set_internal(&self, values: &[(&str, Value)]) {
        let mut settings = self.settings.write();
        let mut actual = settings.for_session(true);
        values.iter().for_each(|(name, value)| actual.set_internal(name, value.clone()));
        *settings = Arc::new(actual);
    }

    /// Changes whenever the server's settings do.
    pub fn settings_version(&self) -> u64 {
        self.settings_version.load(Ordering::Acquire)
    }

    pub fn configuration(&self) -> Result<&dyn Configuration> {
        let configuration = self.configuration.get().map(|c| &**c);
        configuration.ok_or_else(|| DbError::unsupported("changing the configuration of a server without configuration files"))
    }

    /// Reads the configuration files again (pg_reload_conf, SIGHUP). Changes and errors are logged: after a syntax error nothing
    /// changes, an invalid value leaves its setting as it is.
    ///
    /// # Errors
    /// The server has no files, or the engine is out of order.
    pub fn reload(&self) -> Result<()> {
        let configuration = self.configuration()?;
        let configured = configuration.read();
        if !configured.errors.is_empty() {
            configured.errors.iter().for_each(|error| self.log.server(Level::Log, &*error.message));
            let main = configuration.main_file();
            self.log.server(Level::Log, format!("configuration file \"{main}\" contains errors; no changes were applied"));
            return Ok(());
        }
        let Reconfigured { settings: next, changes, problems } = self.settings().reconfigured(&configured);
        self.cluster.engine.reconfigure(&engine_options(&next))?;
        self.loaded.store(self.cluster.clock.now_micros(), Ordering::Relaxed);
        *self.settings.write() = Arc::new(next);
        self.settings_version.fetch_add(1, Ordering::AcqRel);
        self.log.configure(&self.settings());
        for (at, problem) in &problems {
            let message = problem_in_place(problem, &configured.assignments[*at]);
            self.log.server_entry(&Entry { level: Level::Log, message: message.into(), ..Entry::of(problem) });
        }
        changes.into_iter().for_each(|change| self.log.server(Level::Log, change));
        if !problems.is_empty() {
            let main = configuration.main_file();
            self.log
                .server(Level::Log, format!("configuration file \"{main}\" contains errors; unaffected changes were applied"));
        }
        if let Some(gate) = self.gate.get() {
            gate.reload(&self.settings());
        }
        Ok(())
    }

    /// The same, logging the reason and errors.
    pub fn reload_logged(&self, why: &str) {
        self.log.server(Level::Log, why);
        if let Err(e) = self.reload() {
            self.log.server_entry(&Entry { level: Level::Log, ..Entry::of(&e) });
        }
    }

    /// Sets the gate that authenticates clients, which reloads and views use from now on.
    pub fn set_gate(&self, gate: Arc<dyn Gate>) {
        // An instance has one server.
        let _ = self.gate.set(gate);
    }

    pub fn gate(&self) -> Result<&dyn Gate> {
        self.gate.get().map(|gate| &**gate).ok_or_else(|| DbError::unsupported("looking at who may connect, without a server"))
    }
}

/// The error of an assignment, and its place.
pub fn problem_in_place(problem: &DbError, assignment: &Assignment) -> String {
    match &assignment.place {
        Place::File(file, line) => format!("{} in file \"{file}\" line {line}", problem.message()),
        _ => problem.message().to_owned(),
    }
}

/// The rules that admit clients, with their own files.
pub trait Gate: Send + Sync + std::fmt::Debug {
    /// Reads the files again. A file with errors changes nothing, and the server's log says so.
    fn reload(&self, settings: &Settings);
    /// pg_hba_file_rules.
    fn rule_rows(&self, settings: &Settings) -> Result<Vec<Vec<Datum>>>;
    /// pg_ident_file_mappings.
    fn mapping_rows(&self) -> Result<Vec<Vec<Datum>>>;
}

/// Where a server's settings come from.
pub trait Configuration: Send + Sync + std::fmt::Debug {
    /// All assignments, later ones override earlier ones, and the errors in the files.
    fn read(&self) -> Configured;
    /// The file that is read first.
    fn main_file(&self) -> String;
    /// Those of ALTER SYSTEM.
    fn read_auto(&self) -> Result<Vec<(String, String)>>;
    /// Replaces those of ALTER SYSTEM.
    fn write_auto(&self, assignments: &[(String, String)]) -> Result<()>;
}

/// Values of sequences that the session has seen.
#[derive(Debug, Default)]
pub struct Sequences {
    /// By relation.
    pub current: HashMap<Oid, i64>,
    /// The value of lastval().
    pub last: Option<(Oid, i64)>,
}

/// The part of a session that its running statements share with it.
pub struct SessionState {
    pub instance: Arc<Instance>,
    pub settings: Mutex<Settings>,
    settings_version: Arc<AtomicU64>,
    pub interrupt: Arc<Interrupt>,
    /// Notices that wait for the session to have its client at hand.
    pub notices: RarelyUsed<Vec<DbError>>,
    /// The role that logged in.
    pub user: Arc<str>,
    pub user_oid: Oid,
    pub database: Arc<str>,
    pub database_oid: Oid,
    engine: Mutex<Arc<melba_engine::EngineSession>>,
    pub pid: i32,
    /// The statement runs in a transaction block, or with others of a message.
    pub in_block: AtomicBool,
    /// Notifications of other sessions for this one.
    pub listener: Arc<Listener>,
    /// The session as the log knows it.
    pub log_source: Arc<Source>,
    /// Bytes from which on a temporary file is logged; `u64::MAX`: none is.
    pub(super) log_temp_files: Arc<AtomicU64>,
    clock_reads: AtomicU64,
    /// State of random(), once it was called.
    pub random: Mutex<Option<u64>>,
    pub sequences: Mutex<Sequences>,
    /// This session's row of pg_stat_activity.
    pub activity: Arc<Activity>,
    pub auto_explain: AutoExplain,
    /// The costs of its statements.
    pub statements: Arc<LocalCounts>,
    /// The calls of functions in its transaction.
    pub calls: LocalCalls,
    /// The statistics that its transaction has read.
    pub fetched: FetchedCounts,
    /// The session's temporary schema, 0 until it is needed.
    pub temporary_namespace: Mutex<Oid>,
    /// Temporary tables that are emptied or dropped at a commit.
    pub on_commit: Mutex<Vec<(Oid, OnCommit)>>,
    pub prepared: Arc<NamedStatements>,
    pub portals: Portals,
    pub(super) language_sql: LanguageState,
    pub language_plpgsql: LanguageState,
    /// The tables of triggers that run, within each other.
    pub(super) running_triggers: Mutex<Vec<Oid>>,
    /// What event triggers may ask for, of each command that runs, within each other.
    pub(super) event_states: Arc<Mutex<Vec<EventState>>>,
    /// The files that a backup by this session holds.
    pub backup: Mutex<Option<melba_engine::OnlineBackup>>,
    pub(super) domain_checks: Mutex<DomainChecks>,
    pub shown: Mutex<ShownCache>,
}

/// Compiled checks of domains by their constraints, and the catalog that they were compiled against.
pub(super) type DomainChecks = (Option<Arc<Catalog>>, HashMap<Oid, Arc<Expression>>);

/// The role, database and process id of a session.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: Arc<str>,
    pub user_oid: Oid,
    pub database: Arc<str>,
    pub database_oid: Oid,
    pub pid: i32,
}

impl SessionState {
    pub fn new(
        instance: &Arc<Instance>,
        login: Login,
        engine: Arc<melba_engine::EngineSession>,
        settings: Settings,
    ) -> SessionState {
        SessionState {
            instance: instance.clone(),
            settings_version: settings.version_counter(),
            settings: Mutex::new(settings),
            interrupt: Arc::new(Interrupt::new(instance.cluster.clock.clone())),
            notices: RarelyUsed::default(),
            auto_explain: AutoExplain::default(),
            user: login.user,
            user_oid: login.user_oid,
            database: login.database,
            database_oid: login.database_oid,
            engine: Mutex::new(engine),
            pid: login.pid,
            in_block: AtomicBool::new(false),
            listener: Listener::new(login.pid, login.database_oid),
            log_temp_files: Arc::new(AtomicU64::new(u64::MAX)),
            log_source: Arc::new(Source::server("client backend", login.pid, instance.cluster.clock.now_micros())),
            clock_reads: AtomicU64::default(),
            random: Mutex::default(),
            sequences: Mutex::default(),
            activity: Arc::default(),
            statements: instance.statements.join(),
            calls: LocalCalls::default(),
            fetched: FetchedCounts::default(),
            temporary_namespace: Mutex::default(),
            on_commit: Mutex::default(),
            prepared: Arc::default(),
            portals: Portals::default(),
            language_sql: LanguageState::default(),
            language_plpgsql: LanguageState::default(),
            running_triggers: Mutex::default(),
            event_states: Arc::default(),
            backup: Mutex::default(),
            domain_checks: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// The session as the log knows it since the client has connected.
    pub fn with_log_source(mut self, source: Arc<Source>) -> SessionState {
        self.log_source = source;
        self
    }

    /// The session that runs its transactions.
    pub fn engine(&self) -> Arc<melba_engine::EngineSession> {
        self.engine.lock().clone()
    }

    /// Another one runs them from now on: the last transaction, which is prepared, keeps the one it has.
    pub fn set_engine(&self, engine: Arc<melba_engine::EngineSession>) {
        let before = std::mem::replace(&mut *self.engine.lock(), engine);
        self.engine().take_place_of(&before);
    }

    /// Begins a transaction in the session's database.
    pub fn begin(&self, isolation: Isolation) -> Result<Tx> {
        Tx::begin(&self.instance.cluster, &self.engine(), self.database_oid, isolation)
    }

    /// Changes whenever the session's settings do.
    pub fn settings_version(&self) -> u64 {
        self.settings_version.load(Ordering::Acquire)
    }

    /// The client disconnected `since` ago while the session works: ends the work if client_connection_check_interval is set and
    /// has passed.
    pub fn client_is_gone(&self, since: Duration) {
        let interval = self.settings.lock().get("client_connection_check_interval").as_integer().max(0) as u64;
        if interval > 0 && since >= Duration::from_millis(interval) && self.activity.is_active() {
            self.interrupt.lose_client();
        }
    }

    /// The newest committed catalog of the session's database.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.instance.cluster.catalog(self.database_oid)
    }

    /// Tells the client a notice if client_min_messages lets it pass: at once where that can be (`lent`).
    pub fn notice(&self, notice: DbError) {
        let notice = match error_context::lines() {
            Some(lines) => notice.within(lines),
            None => notice,
        };
        self.log_notice(&notice);
        self.send(notice);
    }

    /// Sends a notice if client_min_messages lets it pass.
    pub fn send(&self, notice: DbError) {
        let (is_sent, encoding) = {
            let settings = self.settings.lock();
            (sends(&settings, notice.fields().severity), client_encoding(&settings))
        };
        if !is_sent {
            return;
        }
        match lent::send(notice, &self.notices, encoding) {
            Ok(true) => {}
            // The statement ends when it looks the next time.
            Ok(false) => self.interrupt.lose_client(),
            Err(notice) => self.notices.lock().push(notice),
        }
    }

    pub fn warning(&self, warning: DbError) {
        self.notice(warning.severity(Severity::Warning));
    }
}

/// The formatting settings as they are now.
pub fn format_settings(settings: &Settings) -> FormatSettings {
    let definition = settings.definition(settings.find("DateStyle").expect("a setting of the table"));
    let style = settings.get("DateStyle").as_text();
    let (date_style, date_order) = definition
        .and_then(|d| check::full_date_style(d, style).ok())
        .unwrap_or((melba_fmgr::DateStyle::Iso, melba_fmgr::DateOrder::Mdy));
    FormatSettings {
        date_style,
        date_order,
        interval_style: match settings.get("IntervalStyle").as_text() {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        },
        time_zone: settings.get("TimeZone").as_text().into(),
        extra_float_digits: settings.get("extra_float_digits").as_integer() as i32,
        bytea_hex: settings.get("bytea_output").as_text() != "escape",
        xml_document: settings.get("xmloption").as_text() == "document",
        client_encoding: client_encoding(settings),
    }
}

fn client_encoding(settings: &Settings) -> Encoding {
    Encoding::by_name(settings.get("client_encoding").as_text()).unwrap_or(UTF8)
}

/// The surroundings of one statement.
#[derive(Clone)]
pub struct StatementContext {
    pub session: Arc<SessionState>,
    pub tx: Option<Arc<Tx>>,
    pub catalog: Arc<Catalog>,
    /// `Cluster::catalog_version` before the catalog was read.
    pub catalog_version: u64,
    pub format: Arc<FormatSettings>,
    pub path: Arc<SearchPath>,
    pub user: Arc<User>,
    pub transaction_start: i64,
    pub statement_start: i64,
    /// Rows that the statement of the trigger has changed whose function these are the surroundings of.
    pub transitions: Transitions,
}

impl StatementContext {
    /// Before each piece of a wait for something outside of the server: other sessions get the thread's turn.
    ///
    /// # Errors
    /// When the statement is to end.
    pub fn check_wait(&self) -> Result<()> {
        self.session.instance.cluster.engine.scheduler().before_wait();
        self.check_interrupt()
    }

    /// How often an expression has asked for the time: a plan that asked when it was made has constants of one statement.
    pub fn clock_reads(&self) -> u64 {
        self.session.clock_reads.load(Ordering::Relaxed)
    }

    /// For what is computed before a statement runs; `None` outside transactions.
    pub(super) fn evaluation_without_rows(self: Arc<Self>, parameters: Arc<[Datum]>) -> Option<Evaluation<NoSubPlans>> {
        let tx = self.tx.as_ref()?.engine.clone();
        // A plan takes no snapshot. No row is read in it: sampled values are none in stored form.
        let view = ReadView { csn: self.session.instance.cluster.engine.visible_csn(), command: 0 };
        Some(Evaluation::new(self, tx, view, parameters, NoSubPlans))
    }

    pub(super) fn note_clock_read(&self) {
        // Only the session's own thread compares counts.
        self.session.clock_reads.store(self.clock_reads() + 1, Ordering::Relaxed);
    }
}

/// By name.
pub(super) type Transitions = Option<Arc<[(Arc<str>, Arc<dyn TransitionTable>)]>>;

/// Whether client_min_messages lets a notice pass.
pub fn sends(settings: &Settings, severity: Severity) -> bool {
    let threshold = match settings.get("client_min_messages").as_text() {
        "notice" => Severity::Notice,
        "warning" => Severity::Warning,
        "error" => Severity::Error,
        "log" => Severity::Log,
        _ => Severity::Debug,
    };
    // INFO is always sent.
    severity >= threshold || severity == Severity::Info
}
