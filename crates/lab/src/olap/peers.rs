//! The databases of a run: the available ones, and why others are not.

use std::path::{Path, PathBuf};

use super::data::drop_tables;
use super::database::{Database, Dialect};
use super::embedded::Embedded;
use super::server::ServerDatabase;
use crate::report::Described;
use crate::server::Server;
use crate::{Result, Target, python};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    Melba,
    #[value(name = "postgresql")]
    PostgreSql,
    #[value(name = "mysql")]
    MySql,
    #[value(name = "duckdb")]
    DuckDb,
    #[value(name = "clickhouse")]
    ClickHouse,
}

/// Which databases there are, where, and how they run.
#[derive(Debug, clap::Args)]
pub struct Setup {
    /// Threads of each query: of DuckDB and ClickHouse, and of Melba and PostgreSQL with its workers
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// max_parallel_workers_per_gather of Melba and PostgreSQL [default: one less than the threads]
    #[arg(long)]
    workers: Option<u32>,
    /// A setting of each session of Melba and PostgreSQL: "work_mem = '1GB'"; may be given several times
    #[arg(long = "set", value_name = "SETTING")]
    settings: Vec<String>,
    /// Databases to measure
    #[arg(long, value_enum, value_delimiter = ',', default_value = "melba,postgresql,mysql,duckdb,clickhouse")]
    databases: Vec<Name>,
    /// A Melba server [default: this binary is started]
    #[arg(long, value_name = "URL", value_parser = |url: &str| Target::parse(&format!("Melba={url}")))]
    melba: Option<Target>,
    /// A PostgreSQL server [default: the newest version installed is started]
    #[arg(long, value_name = "URL", value_parser = |url: &str| Target::parse(&format!("PostgreSQL={url}")))]
    postgres: Option<Target>,
    /// A MySQL server that takes LOAD DATA LOCAL: mysql://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", value_parser = |url: &str| Target::parse(&format!("MySQL={url}")))]
    mysql: Option<Target>,
    /// A virtual environment of Python that has the packages duckdb, pyarrow, chdb, pymysql [default: python3 of PATH]
    #[arg(long, value_name = "DIR")]
    venv: Option<PathBuf>,
}

impl Setup {
    /// The settings of a session of Melba and PostgreSQL.
    pub fn session(&self) -> Vec<String> {
        let workers = format!("max_parallel_workers_per_gather = {}", self.workers.unwrap_or(self.threads - 1));
        [workers].into_iter().chain(self.settings.iter().cloned()).collect()
    }
}

/// A database of the run.
pub struct Peer {
    pub name: String,
    pub dialect: Dialect,
    version: String,
    url: String,
    /// `None` while it is between two folders.
    pub database: Option<Box<dyn Database>>,
    /// A server that the experiment started: it ends after the connection to it.
    _server: Option<Server>,
}

impl Peer {
    pub fn database(&mut self) -> Result<&mut dyn Database> {
        match &mut self.database {
            Some(database) => Ok(&mut **database),
            None => Err(format!("{} has ended", self.name)),
        }
    }

    /// Databases that live in a folder of ours get an empty one.
    pub fn renew(&mut self, setup: &Setup, scratch: &Path) -> Result<()> {
        if !matches!(self.dialect, Dialect::DuckDb | Dialect::ClickHouse) {
            return self.database()?.execute(&drop_tables()).map(drop);
        }
        self.database = None;
        let (database, _) = embedded(setup, self.dialect, scratch, "")?;
        self.database = Some(database);
        Ok(())
    }

    #[cfg(test)]
    pub fn unreachable(name: &str) -> Peer {
        let (name, dialect) = (name.to_owned(), Dialect::PostgreSql);
        Peer { name, dialect, version: String::new(), url: String::new(), database: None, _server: None }
    }
}

/// Starts the requested databases. Unavailable ones are reported with the reason.
pub fn start(setup: &Setup, scratch: &Path) -> (Vec<Peer>, Vec<String>) {
    let (mut peers, mut absent) = (Vec::new(), Vec::new());
    for name in &setup.databases {
        let (title, peer) = match name {
            Name::Melba => ("Melba", server(setup, setup.melba.as_ref(), || Server::melba(scratch))),
            Name::PostgreSql => ("PostgreSQL", server(setup, setup.postgres.as_ref(), || Server::postgresql(scratch))),
            Name::MySql => ("MySQL", mysql(setup, scratch)),
            Name::DuckDb => ("DuckDB", inside(setup, "DuckDB", Dialect::DuckDb, scratch)),
            Name::ClickHouse => ("ClickHouse", inside(setup, "ClickHouse", Dialect::ClickHouse, scratch)),
        };
        match peer {
            Ok(peer) => peers.push(peer),
            Err(why) => absent.push(format!("{title} is absent: {why}")),
        }
    }
    (peers, absent)
}

pub fn described(peers: &[Peer]) -> Vec<Described> {
    let each = |p: &Peer| Described { name: p.name.clone(), url: p.url.clone(), version: p.version.clone() };
    peers.iter().map(each).collect()
}

/// A server that is given, or one that is started.
fn server(setup: &Setup, given: Option<&Target>, start: impl FnOnce() -> Result<Server>) -> Result<Peer> {
    let started = if given.is_none() { Some(start()?) } else { None };
    let target = given.or(started.as_ref().map(|server| &server.target)).ok_or("no server")?;
    Ok(Peer {
        name: target.name.clone(),
        dialect: Dialect::PostgreSql,
        version: target.version()?,
        url: target.url(),
        database: Some(Box::new(ServerDatabase::connect(target, &setup.session())?)),
        _server: started,
    })
}

fn mysql(setup: &Setup, scratch: &Path) -> Result<Peer> {
    let target = setup.mysql.as_ref().ok_or("no server was given (--mysql URL)")?;
    let server = serde_json::json!({
        "host": target.host, "port": target.port, "user": target.user, "password": target.password, "database": target.database
    });
    let (database, version) = embedded(setup, Dialect::MySql, scratch, &server.to_string())?;
    Ok(Peer {
        name: target.name.clone(),
        dialect: Dialect::MySql,
        version,
        url: target.url(),
        database: Some(database),
        _server: None,
    })
}

fn inside(setup: &Setup, name: &str, dialect: Dialect, scratch: &Path) -> Result<Peer> {
    let (database, version) = embedded(setup, dialect, scratch, "")?;
    let url = format!("inside of Python, {} threads", setup.threads);
    Ok(Peer { name: name.to_owned(), dialect, version, url, database: Some(database), _server: None })
}

fn embedded(setup: &Setup, dialect: Dialect, scratch: &Path, server: &str) -> Result<(Box<dyn Database>, String)> {
    let interpreter = python::interpreter(setup.venv.as_deref());
    let started = Embedded::start(&interpreter, dialect, scratch, setup.threads, server)?;
    let version = started.version.clone();
    Ok((Box::new(started), version))
}
