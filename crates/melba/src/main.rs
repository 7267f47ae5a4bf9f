//! The melba binary: command line, configuration, signals. Wires the parts together and holds no logic of its own.

#![allow(
    clippy::disallowed_methods,
    reason = "the edge: the command line, the configuration, the directory that a server is given"
)]

mod background_log;
mod broken_pipe;
mod check;
mod config;
mod console;
mod data_directory;
mod embedded;
mod manual;
mod memory;
mod open_files;
mod recovery;
mod salvage;
mod self_signed;
mod serve;
mod signals;
mod traces;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use melba_types::limits::Counting;

/// Small statements are mostly allocation; docs/design/oltp.md has the measurement.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// With the commit.
const VERSION: &str = env!("MELBA_VERSION");

/// A PostgreSQL-compatible database in one binary.
#[derive(Parser)]
#[command(name = "melba", version = VERSION, about, long_about = LONG_ABOUT, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str =
    "Melba is a PostgreSQL-compatible database in one binary. It stores large, repetitive values many times \
smaller than PostgreSQL does, and answers analytical questions over the same tables.

Every PostgreSQL client works with it: psql, drivers, pg_dump. It knows one superuser at first, \"postgres\", and one \
database, \"postgres\". Programs of the account that runs the server need no password on this machine; all others need one \
(SCRAM-SHA-256). DATA/pg_hba.conf, if there is one, says otherwise, as in PostgreSQL.";

const EXAMPLES: &str = "Examples:
  melba serve                                  a server on 127.0.0.1:5432 with its data in ./melba-data
  melba serve --data /srv/melba --listen 0.0.0.0:5432 -c max_connections=300
  psql -h 127.0.0.1 -p 5432 -U postgres        connect to it
  psql -h /tmp -U postgres                     the same by a Unix-domain socket (-c unix_socket_directories=DIR,... for others)
  melba serve --listen 0.0.0.0:5432 --tls-self-signed --require-password
  melba sql --data ./melba-data                a shell on the data directory of a stopped server
  melba import sales.csv events.jsonl --to postgres://me@db/shop
  melba sql postgres://me@db/shop -c 'SELECT 1' --format json
  melba serve --console 127.0.0.1:8432         with a console in the browser (melba console URL for another server)
  melba check --data /srv/melba                verify every checksum, while the server is stopped
  melba salvage /srv/melba /srv/copy           what can be read of a damaged data directory, in a new one
  melba dump --from postgres://postgres@127.0.0.1/postgres --to backup.melba
  melba restore --from backup.melba --to postgres://postgres@127.0.0.1/copy
  melba backup --from postgres://postgres@127.0.0.1/postgres --to s3://bucket/melba --keep 7d
  melba restore --from s3://bucket/melba --to /srv/melba-again
  melba advise postgres://me@db/shop --space 25GB --rows-per-day 100000      what that database would take here

Settings are in DATA/melba.conf, one `name = value` a line as in postgresql.conf; -c overrides them, and
`SHOW ALL` in psql lists them.";

#[derive(Subcommand)]
enum Command {
    /// Runs the server until it gets SIGINT or SIGTERM
    Serve(Serve),
    /// Verifies the data directory of a stopped server, and writes nothing: every checksum, every catalog row, indexes and tables
    Check {
        #[command(flatten)]
        data: DataArguments,
    },
    /// Makes a new data directory from the readable data of a damaged one, and lists the losses
    Salvage {
        /// The data directory of a stopped server; it stays as it is
        from: PathBuf,
        /// The new data directory
        to: PathBuf,
    },
    /// Dumps a database of a running server, or of a stopped one's data directory
    Dump {
        /// The database of a running server: postgres://USER@HOST:PORT/DATABASE
        #[arg(long = "from", value_name = "URL", required_unless_present = "data")]
        from: Option<String>,
        /// The data directory of a stopped server
        #[arg(long, value_name = "DIR", conflicts_with = "from")]
        data: Option<PathBuf>,
        /// The database to dump of a data directory
        #[arg(long, value_name = "NAME", default_value = "postgres", requires = "data")]
        database: String,
        #[command(flatten)]
        options: melba_dump::DumpOptions,
    },
    /// Restores a dump, or parts of it, into a database that exists; or a backup, into a new data directory
    Restore {
        #[command(flatten)]
        options: melba_dump::RestoreOptions,
        #[command(flatten)]
        point: melba_backup::Point,
    },
    /// Makes a backup of a running server in a folder or an object store; `melba restore` makes a data directory of it
    Backup(BackupArguments),
    /// Reruns published experiments on servers side by side, and reports
    #[command(subcommand)]
    Lab(melba_lab::Experiment),
    /// Looks at a sample of data, elsewhere or here, and says what each way to compress it would take, how many rows fit, what to type
    Advise(melba_advise::Options),
    /// A shell: statements typed, or of a script, on a server or on a data directory
    Sql(melba_shell::SqlOptions),
    /// Loads a small shop's data, asks five questions, and compares sizes and times with PostgreSQL's
    Demo(melba_shell::DemoOptions),
    /// Makes tables of files: CSV, JSON, Parquet
    Import(melba_shell::ImportOptions),
    /// A console in the browser, for any server
    Console(melba_console::Options),
    /// Prints the completions of a shell: source <(melba completions bash)
    Completions { shell: clap_complete::Shell },
    /// Writes the man pages into a directory
    Manual {
        #[arg(value_name = "DIR")]
        to: PathBuf,
    },
}

#[derive(Args)]
struct DataArguments {
    /// The data directory; `serve` creates it when it is missing
    #[arg(long = "data", value_name = "DIR", default_value = "./melba-data")]
    directory: PathBuf,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
struct BackupArguments {
    #[command(subcommand)]
    look: Option<melba_backup::Look>,
    #[command(flatten)]
    options: Option<melba_backup::Options>,
}

#[derive(Args)]
struct Serve {
    #[command(flatten)]
    data: DataArguments,
    /// Address and port to listen on, instead of listen_addresses and port (127.0.0.1:5432 unless melba.conf says otherwise); the socket
    /// in each of unix_socket_directories (/tmp) has the same port
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Address and port for /metrics, /health and /ready over HTTP: short for -c metrics_listen=HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Address and port for the console in the browser, on this machine: 127.0.0.1:8432
    #[arg(long, value_name = "HOST:PORT")]
    console: Option<String>,
    /// Memory of the whole server, 256MB say: short for -c memory=SIZE
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    memory: Option<String>,
    /// Ask everybody for a password, also programs of this account on this machine
    #[arg(long)]
    require_password: bool,
    /// Offer TLS with a certificate of our own, which is made and kept in the data directory (-c ssl=on for one of yours)
    #[arg(long)]
    tls_self_signed: bool,
    /// A setting that overrides melba.conf; may be given several times
    #[arg(short = 'c', value_name = "NAME=VALUE", value_parser = config::assignment)]
    settings: Vec<(String, String)>,
}

fn main() -> ExitCode {
    melba_statement::system::set_version(VERSION);
    match Cli::parse().command {
        server @ Command::Serve(_) => ExitCode::from(report(run(server))),
        command => broken_pipe::run(|| run(command)),
    }
}

/// The exit code; an error is told.
fn report(result: Result<u8, String>) -> u8 {
    result.unwrap_or_else(|error| {
        eprintln!("melba: {error}");
        1
    })
}

fn serve_with(args: Serve) -> Result<(), String> {
    let mut settings = args.settings;
    settings.extend(args.memory.map(|size| ("memory".to_owned(), size)));
    settings.extend(args.metrics.map(|address| ("metrics_listen".to_owned(), address)));
    let entrance = serve::Entrance {
        listen: args.listen,
        console: args.console,
        require_password: args.require_password,
        tls_self_signed: args.tls_self_signed,
    };
    serve::serve(&args.data.directory, &entrance, settings)
}

/// Runs a command to its exit code.
fn run(command: Command) -> Result<u8, String> {
    match command {
        Command::Serve(args) => serve_with(args),
        Command::Check { data } => check::check(&data.directory),
        Command::Salvage { from, to } => salvage::salvage(&from, &to),
        Command::Dump { from: Some(url), options, .. } => melba_dump::dump(&options, &url),
        Command::Dump { data, database, options, .. } => match data {
            Some(data) => serve::while_serving(&data, |keywords| {
                melba_dump::dump(&options, &format!("{keywords} dbname={}", embedded::quoted(&database)))
            }),
            None => Err("--from or --data is needed".to_owned()),
        },
        Command::Restore { options, point } => match options.backup() {
            Some((place, to)) if melba_backup::is_repository(&place) => melba_backup::restore(&place, &to, &point),
            _ => melba_dump::restore(&options),
        },
        Command::Backup(BackupArguments { look: Some(look), .. }) => melba_backup::look(&look),
        Command::Backup(BackupArguments { options: Some(options), .. }) => melba_backup::backup(&options),
        Command::Backup(_) => Err("--to is needed".to_owned()),
        Command::Lab(experiment) => melba_lab::run(experiment),
        Command::Advise(options) => melba_advise::advise(&options, &serve::while_serving_anew),
        Command::Sql(options) => return melba_shell::sql(&options, &serve::while_serving_shell),
        Command::Demo(options) => melba_shell::demo(&options, &serve::while_serving_any, &melba_lab::while_postgresql),
        Command::Import(options) => melba_shell::import(&options, &serve::while_serving_shell),
        Command::Console(options) => melba_console::console(&options, console::is_own_account()),
        Command::Completions { shell } => {
            manual::complete(shell, Cli::command());
            Ok(())
        }
        Command::Manual { to } => manual::write(&to, Cli::command()),
    }
    .map(|()| 0)
}
