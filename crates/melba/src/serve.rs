//! Opening a data directory, and serving it until a signal comes.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use melba_engine::{Engine, EngineOptions, RecoveryProgress};
use melba_server::{Access, BoundListeners, ColdMover, Metrics, Publisher, Server, Work};
use melba_serverlog::{Entry, Level, ServerLog};
use melba_settings::Settings;
use melba_settings::configuration::Configured;
use melba_settings::value::Value;
use melba_statement::context::{Instance, problem_in_place};
use melba_statement::engine_settings::engine_options;
use melba_traces::Exporter;
use melba_transaction::cluster::Cluster;
use melba_types::DbError;
use melba_types::error::ErrorFields;
use melba_vfs::{Clock, Directory, OsClock, OsDirectory, OsRandom};

use crate::background_log;
use crate::config::{self, ConfigFiles};
use crate::console;
use crate::data_directory;
use crate::embedded::{Ending, PrivateSocket, SigintEffect};
use crate::memory;
use crate::open_files::Shares;
use crate::recovery;
use crate::self_signed;
use crate::signals::{self, RunningServer};
use crate::traces;

type Result<T> = std::result::Result<T, String>;

/// How clients come in.
pub struct Entrance {
    /// HOST:PORT; without it, listen_addresses and port say.
    pub listen: Option<String>,
    /// HOST:PORT of the console in the browser.
    pub console: Option<String>,
    /// Of all clients, wherever they come from.
    pub require_password: bool,
    pub tls_self_signed: bool,
}

/// `melba serve`.
pub fn serve(data: &Path, entrance: &Entrance, mut overrides: Vec<(String, String)>) -> Result<()> {
    let mode = data_directory::prepare(data)?;
    let directory = open_directory(data)?;
    let _lock = lock(&*directory, data)?;
    if entrance.tls_self_signed {
        self_signed::make(data)?;
        overrides.push(("ssl".to_owned(), "on".to_owned()));
    }
    let files = ConfigFiles::new(data, overrides)?;
    let (settings, open_files_max) = fit_open_files(&files.configured()?)?;
    let log = Arc::new(ServerLog::start(&settings, Arc::new(OsClock::new()))?);
    let running = RunningServer::default();
    signals::watch(&log, &running)?;
    let result = serve_logged(files, entrance, mode, directory, (settings, open_files_max), &log, &running);
    if let Err(error) = &result {
        let message = error.split('\n').next().unwrap_or(error);
        log.server(Level::Fatal, message);
    }
    log.server(Level::Log, "database system is shut down");
    log.flush(LOG_PATIENCE);
    result
}

/// How long the log may keep a server from ending.
const LOG_PATIENCE: Duration = Duration::from_secs(5);

/// Serves until a signal comes.
fn serve_logged(
    files: ConfigFiles,
    entrance: &Entrance,
    mode: u32,
    directory: Arc<dyn Directory>,
    (settings, open_files_max): (Settings, usize),
    log: &Arc<ServerLog>,
    running: &RunningServer,
) -> Result<()> {
    log.server(Level::Log, format!("starting {}", melba_statement::system::version()));
    let access = Access::load(&settings, entrance.require_password, log).map_err(|e| full(&e))?;
    let listen = entrance.listen.as_deref();
    let bound = BoundListeners::new(listen, &settings, OsClock::new().now_micros()).map_err(|e| in_use(&full(&e)))?;
    bound.descriptions().into_iter().for_each(|listener| log.server(Level::Log, format!("listening on {listener}")));
    let work = Arc::<Work>::default();
    let metrics = listen_for_metrics(&settings, &work, log)?;
    let console = entrance.console.as_deref().map(|address| melba_console::Bound::new(address, &[])).transpose()?;
    let (exporter, tracer) = traces::start(&settings, log)?.unzip();
    let cluster = open_while_listening(&bound, directory, &settings, open_files_max, log)?;
    for (identifier, cause) in cluster.prepared.damaged() {
        log.server(Level::Warning, format!("prepared transaction \"{identifier}\" could not be restored: {cause}"));
    }
    let engine = cluster.engine.clone();
    let instance = Instance::new(settings, cluster).with_configuration(Box::new(files)).with_log(Arc::clone(log));
    let instance = instance.with_tracer(tracer);
    let instance = Arc::new(instance);
    let config_file = Path::new(instance.settings().get("data_directory").as_text()).join(config::MAIN);
    let config_file = Value::Text(config_file.display().to_string().into());
    instance.set_internal(&[("data_directory_mode", Value::Integer(mode.into())), ("config_file", config_file)]);
    instance.backends.start_watchdog().map_err(|e| format!("could not start a thread: {e}"))?;
    let configured = Arc::clone(&instance);
    let served = Arc::clone(&instance);
    let server = Server::new(bound, instance, access).map_err(|e| full(&e))?;
    server.warnings().iter().for_each(|w| log.server_entry(&Entry { level: Level::Warning, ..Entry::of(w) }));
    background_log::watch(&engine, &configured, log, &work);
    running.set(server.handle(), configured);
    engine.start_background();
    log.server(Level::Log, "database system is ready to accept connections");
    metrics.iter().for_each(|metrics| metrics.set_ready(Arc::clone(&served)));
    let cold_mover = ColdMover::start(Arc::clone(&served)).map_err(|e| full(&e))?;
    let publisher = Publisher::start(served).map_err(|e| full(&e))?;
    let address = server.local_addr();
    say(&format!("melba is ready: psql -h {} -p {} -U postgres", address.ip(), address.port()));
    if let Some(directory) = server.socket_directory() {
        say(&format!("            or: psql -h {} -p {} -U postgres", directory.display(), address.port()));
    }
    if let Some(console) = console {
        let url = console.url();
        console::serve(console, address)?;
        log.server(Level::Log, format!("console on {url}"));
        say(&format!("        console: {url}"));
    }
    server.run().map_err(|e| format!("the listener failed: {e}"))?;
    log.server(Level::Log, "shutting down");
    metrics.iter().for_each(Metrics::set_stopping);
    publisher.stop();
    exporter.into_iter().for_each(Exporter::stop);
    cold_mover.stop();
    engine.shutdown().map_err(|e| e.to_string())
}

/// A line on standard output, for whom it may concern: a server serves without a reader, too.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The listener for metrics, if metrics_listen is set.
fn listen_for_metrics(settings: &Settings, work: &Arc<Work>, log: &ServerLog) -> Result<Option<Metrics>> {
    let text = |name: &str| settings.get(name).as_text().to_owned();
    let address = text("metrics_listen");
    if address.is_empty() {
        return Ok(None);
    }
    let metrics = Metrics::listen(&address, &text("metrics_token_file"), Arc::clone(work)).map_err(|e| full(&e))?;
    log.server(Level::Log, format!("metrics on http://{}/metrics", metrics.address()));
    Ok(Some(metrics))
}

/// Serves a stopped server's data directory to this process for as long as `body` runs, then stops cleanly. `body` gets the
/// connection parameters as libpq's keywords, without the database.
pub fn while_serving(data: &Path, body: impl FnOnce(&str) -> Result<()>) -> Result<()> {
    if !data.is_dir() {
        return Err(format!("{} is no directory", data.display()));
    }
    serve_for(data, Vec::new(), SigintEffect::Ends, |_| {}, body)
}

/// The same for a shell, which interrupts its statements itself, and makes the directory if it is missing.
pub fn while_serving_shell(data: &Path, body: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    serve_for(data, Vec::new(), SigintEffect::IsTheBodys, Engine::start_background, body)
}

/// Serves a new database in a temporary directory, with some settings, for as long as `body` runs.
pub fn while_serving_anew(settings: Vec<(String, String)>, body: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let data = tempfile::tempdir().map_err(|e| format!("could not make a temporary directory: {e}"))?;
    let path = data.path().to_owned();
    serve_for(&path, settings, SigintEffect::EndsAndRemoves(data), Engine::start_background, body)
}

/// A shell's directory, or a new database in a temporary one.
pub fn while_serving_any(data: Option<&Path>, body: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    match data {
        Some(data) => while_serving_shell(data, body),
        None => while_serving_anew(Vec::new(), body),
    }
}

/// Serves a data directory to `body` alone, by a socket in a directory that no other account may read, once the engine has been
/// prepared for it.
fn serve_for(
    data: &Path,
    mut overrides: Vec<(String, String)>,
    interrupt: SigintEffect,
    prepare: impl FnOnce(&Engine),
    body: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    data_directory::prepare(data)?;
    let directory = open_directory(data)?;
    let _lock = lock(&*directory, data)?;
    let socket = PrivateSocket::new()?;
    overrides.extend(socket.settings());
    let files = ConfigFiles::new(data, overrides)?;
    let (settings, open_files_max) = fit_open_files(&files.configured()?)?;
    let cluster = open_cluster(directory, &settings, open_files_max, &RecoveryProgress::default())?;
    let engine = cluster.engine.clone();
    let instance = Arc::new(Instance::new(settings, cluster));
    let bound = BoundListeners::new(None, &instance.settings(), instance.started).map_err(|e| full(&e))?;
    let server = Server::new(bound, instance, Access::owner_only()).map_err(|e| full(&e))?;
    let handle = server.handle();
    prepare(&engine);
    let keywords = socket.keywords();
    let ending = Ending::watch(interrupt, socket, handle.clone(), Arc::clone(&engine))?;
    let over = ending.over();
    let result = std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.run()));
            over();
            result.unwrap_or_else(|_| Err(std::io::Error::other("it panicked")))
        });
        // The server ends also when the body panics; the scope waits for it.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&keywords)));
        handle.stop();
        match serving.join() {
            Ok(Ok(())) => Ok(result),
            Ok(Err(e)) => Err(format!("the listener failed: {e}")),
            Err(_) => Err("the listener panicked".to_owned()),
        }
    });
    ending.shut_down()?;
    result?.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// An error with its detail and hint, a line each.
fn full(error: &DbError) -> String {
    let ErrorFields { detail, hint, .. } = error.fields();
    let lines = [("detail", detail), ("hint", hint)];
    let lines =
        lines.iter().filter_map(|(what, text)| Some(format!("\n  {what}: {}", text.as_ref()?.replace('\n', "\n          "))));
    lines.fold(error.message().to_owned(), |text, line| text + &line)
}

pub fn open_directory(data: &Path) -> Result<Arc<dyn Directory>> {
    let directory = OsDirectory::open(data).map_err(|e| format!("could not open {}: {e}", data.display()))?;
    Ok(Arc::new(directory))
}

pub fn lock(directory: &dyn Directory, data: &Path) -> Result<Box<dyn Send + Sync>> {
    directory.lock("server.lock").map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => format!("another server is using {}", data.display()),
        _ => format!("could not lock {}: {e}", data.display()),
    })
}

/// Advice for a port that another process uses.
fn in_use(error: &str) -> String {
    match error.contains("already in use") && !error.contains("hint:") {
        true => format!(
            "{error}\n  hint: Another server may be running on the port. Choose another one: --listen 127.0.0.1:5433, \
             or make run LISTEN=127.0.0.1:5433."
        ),
        false => error.to_owned(),
    }
}

/// The settings, or everything that is wrong with them, a line each.
fn checked(configured: &Configured) -> Result<Settings> {
    let (settings, problems) = Settings::configured(configured);
    let of_files = configured.errors.iter().map(|error| error.message.clone());
    let of_values = problems.iter().map(|(at, problem)| {
        let ErrorFields { detail, hint, .. } = problem.fields();
        let more = [("detail", detail), ("hint", hint)];
        let more = more.iter().filter_map(|(what, text)| Some(format!("\n  {what}: {}", text.as_ref()?)));
        problem_in_place(problem, &configured.assignments[*at]) + &more.collect::<String>()
    });
    let wrong: Vec<String> = of_files.chain(of_values).collect();
    if wrong.is_empty() { Ok(settings) } else { Err(wrong.join("\nmelba: ")) }
}

/// The server's settings, with max_connections as the limit of open files allows; and how many files the engine keeps open.
pub fn fit_open_files(configured: &Configured) -> Result<(Settings, usize)> {
    let limit = melba_vfs::raise_open_files_limit().map_err(|e| format!("could not raise the limit of open files: {e}"))?;
    let mut settings = checked(configured)?;
    let wanted = settings.get("max_connections").as_integer().max(1) as u64;
    let too_low = || format!("{limit} open files are not enough: raise the limit (ulimit -n)");
    let Shares { max_connections, cached } = Shares::new(limit, wanted).ok_or_else(too_low)?;
    if max_connections == wanted {
        return Ok((settings, cached));
    }
    eprintln!("melba: max_connections is {max_connections}, not {wanted}: only {limit} files may be open (ulimit -n)");
    settings.set_internal("max_connections", Value::Integer(max_connections as i64));
    Ok((settings, cached))
}

/// Opens the database; clients that connect meanwhile get the progress.
fn open_while_listening(
    bound: &BoundListeners,
    directory: Arc<dyn Directory>,
    settings: &Settings,
    open_files_max: usize,
    log: &ServerLog,
) -> Result<Arc<Cluster>> {
    let progress = RecoveryProgress::default();
    let interval = settings.get("log_startup_progress_interval").as_integer().max(0) as u64;
    let detail = || recovery::describe(&progress).map(|text| format!("Recovery: {text}."));
    bound.refuse_while(detail, || {
        recovery::report_while(&progress, log, Duration::from_millis(interval), || {
            open_cluster(directory, settings, open_files_max, &progress)
        })
    })
}

pub fn open_cluster(
    directory: Arc<dyn Directory>,
    settings: &Settings,
    open_files_max: usize,
    progress: &RecoveryProgress,
) -> Result<Arc<Cluster>> {
    let engine = open_engine(directory, settings, open_files_max, progress)?;
    Cluster::open(engine, Arc::new(OsClock::new()), Arc::new(OsRandom)).map_err(|e| e.to_string())
}

pub fn open_engine(
    directory: Arc<dyn Directory>,
    settings: &Settings,
    open_files_max: usize,
    progress: &RecoveryProgress,
) -> Result<Arc<Engine>> {
    let memory_bytes = memory::setting_bytes(settings);
    memory::purge_soon(memory_bytes);
    melba_types::limits::set_memory_limit(memory::statement_limit(memory_bytes));
    melba_types::limits::keep_reserve();
    let query_bytes = memory::query_bytes(memory_bytes);
    let write_set_bytes = memory::write_set_bytes(query_bytes);
    let options = EngineOptions { query_bytes, write_set_bytes, open_files_max, ..engine_options(settings) };
    let opened = Engine::open_in_server(options, directory, Arc::new(OsClock::new()), melba_server::scheduler(), progress);
    opened.map_err(|e| e.to_string())
}
