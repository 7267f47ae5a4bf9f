//! The clients that may connect, and how they authenticate: pg_hba.conf and pg_ident.conf, as in PostgreSQL 18.
//!
//! `tokenizer` splits lines, `file` reads files with their included files, `rule` and `ident` parse lines, `matching` finds the
//! rule for a client, `system` and `sockets` ask the system, `rows` has the rows of the views. Only these two and `file` do I/O.
//!
//! Invariants:
//! 1. The rules change as a whole: a file with an error changes nothing.
//! 2. Without a rule for it, a client is rejected.
//! 3. Built-in rules are for a data directory that never had a pg_hba.conf while this server ran: a file that disappears leaves
//!    its rules in force.

mod file;
mod ident;
mod matching;
mod options;
mod pattern;
mod rows;
mod rule;
mod sockets;
pub(crate) mod system;
mod tokenizer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_serverlog::{Level, ServerLog};
use melba_settings::Settings;
use melba_types::{DbError, Result, SqlState, err};
use parking_lot::RwLock;

pub(crate) use ident::{Mapping, check_map};
pub(crate) use matching::{Applicant, Network, find};
pub(crate) use rule::{ClientCert, ClientName, Method, Rule};

use file::FileLine;
use rule::{Address, Connections, MethodOptions};
use tokenizer::Token;

/// Whether `client`, the far end of a TCP connection to `server` within this machine, belongs to the account of this process.
pub fn is_own_account(client: std::net::SocketAddr, server: std::net::SocketAddr) -> bool {
    sockets::local_account(client, server) == Some(system::own_account())
}

/// The rules in force.
#[derive(Debug)]
pub(crate) struct InForce {
    pub rules: Vec<Rule>,
    pub mappings: Vec<Mapping>,
    is_built_in: bool,
}

/// The files, and their parsed content.
#[derive(Debug)]
pub(crate) struct HostAccess {
    /// `None`: there is no data directory, so the rules are built in.
    pub hba_file: Option<PathBuf>,
    pub ident_file: Option<PathBuf>,
    /// A setting names the file, which must exist then.
    is_named: bool,
    /// The account on this machine does not suffice.
    require_password: bool,
    in_force: RwLock<Arc<InForce>>,
    log: Arc<ServerLog>,
}

/// Where a setting says that its file is; in the data directory by default.
fn path(settings: &Settings, setting: &str, default: &str) -> (Option<PathBuf>, bool) {
    let (named, data) = (settings.get(setting).as_text(), settings.get("data_directory").as_text());
    let default = (!data.is_empty()).then(|| Path::new(data).join(default));
    match named {
        "" => (default, false),
        named => {
            let path = Path::new(data).join(named);
            let is_default = default.as_ref() == Some(&path);
            (Some(path), !is_default)
        }
    }
}

impl HostAccess {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// F0000 when the rules cannot be read. With an error in the mappings there are none.
    pub fn load(settings: &Settings, require_password: bool, log: &Arc<ServerLog>) -> Result<HostAccess> {
        let (hba_file, is_named) = path(settings, "hba_file", "pg_hba.conf");
        let (ident_file, ident_is_named) = path(settings, "ident_file", "pg_ident.conf");
        let in_force = RwLock::new(Arc::new(built_in(false)));
        let mut access = HostAccess { hba_file, ident_file, is_named, require_password, in_force, log: Arc::clone(log) };
        let mut first = access.read_rules(settings, false).map_err(|errors| access.load_error(&errors))?;
        if ident_is_named || access.ident_file.as_ref().is_some_and(|file| file.exists()) {
            match access.read_mappings() {
                Ok(mappings) => first.mappings = mappings,
                Err(errors) => errors.iter().for_each(|error| access.say(error)),
            }
        }
        access.in_force = RwLock::new(Arc::new(first));
        Ok(access)
    }

    /// One rule: processes of this account, by Unix-domain sockets.
    pub fn owner_only() -> HostAccess {
        let rules = vec![built_in_rule(Connections::Local, Address::All, Method::Owner)];
        let in_force = InForce { rules, mappings: Vec::new(), is_built_in: true };
        HostAccess {
            hba_file: None,
            ident_file: None,
            is_named: false,
            require_password: false,
            in_force: RwLock::new(Arc::new(in_force)),
            log: Arc::default(),
        }
    }

    fn say(&self, message: &str) {
        self.log.server(Level::Log, message);
    }

    pub fn in_force(&self) -> Arc<InForce> {
        self.in_force.read().clone()
    }

    /// Reads the files again. A file with errors changes nothing, and the log says why.
    pub fn reload(&self, settings: &Settings) {
        let old = self.in_force();
        let mut next = match self.read_rules(settings, !old.is_built_in) {
            Ok(next) => next,
            Err(errors) => {
                errors.iter().for_each(|error| self.say(error));
                let file = self.hba_file.as_deref().unwrap_or(Path::new("pg_hba.conf"));
                self.say(&format!("\"{}\" was not reloaded", file.display()));
                InForce { rules: old.rules.clone(), mappings: Vec::new(), is_built_in: old.is_built_in }
            }
        };
        let is_there = self.ident_file.as_ref().is_some_and(|file| file.exists());
        next.mappings = match self.read_mappings() {
            Ok(mappings) => mappings,
            // There never was one.
            Err(_) if !is_there && old.mappings.is_empty() => Vec::new(),
            Err(errors) => {
                errors.iter().for_each(|error| self.say(error));
                let file = self.ident_file.as_deref().unwrap_or(Path::new(""));
                self.say(&format!("\"{}\" was not reloaded", file.display()));
                old.mappings.clone()
            }
        };
        *self.in_force.write() = Arc::new(next);
    }

    fn load_error(&self, errors: &[String]) -> DbError {
        let file = self.hba_file.as_deref().unwrap_or(Path::new("pg_hba.conf"));
        let error = DbError::new(SqlState::CONFIG_FILE_ERROR, format!("could not load \"{}\"", file.display()));
        error.detail(errors.join("\n"))
    }

    /// The rules of the file, or the built-in ones when it may be missing and is.
    fn read_rules(&self, settings: &Settings, must_exist: bool) -> std::result::Result<InForce, Vec<String>> {
        let has_tls = settings.get("ssl").as_bool();
        let Some(file) = self.hba_file.as_ref().filter(|file| self.is_named || must_exist || file.exists()) else {
            return Ok(built_in(self.require_password));
        };
        let lines = file::read(file).map_err(|e| vec![e])?;
        let rules = parse_all(&lines, |line| {
            let rule = Rule::parse(line, has_tls)?;
            if self.require_password && matches!(rule.method, Method::Trust | Method::Peer) {
                return Err(format!("method \"{}\" asks for no password, but the server requires one", rule.method.name()));
            }
            Ok(rule)
        })?;
        if rules.is_empty() {
            return Err(vec![format!("configuration file \"{}\" contains no entries", file.display())]);
        }
        for rule in &rules {
            rule.warning.iter().for_each(|warning| self.say(&in_line(warning, file, rule.line)));
        }
        Ok(InForce { rules, mappings: Vec::new(), is_built_in: false })
    }

    fn read_mappings(&self) -> std::result::Result<Vec<Mapping>, Vec<String>> {
        let Some(file) = &self.ident_file else { return Ok(Vec::new()) };
        parse_all(&file::read(file).map_err(|e| vec![e])?, Mapping::parse)
    }

    /// Refuses a server whose rules require a password of all clients while no superuser has one.
    pub fn check_somebody_has_password(&self, catalog: &melba_catalog::Catalog) -> Result<()> {
        let is_usable = |role: &melba_catalog::Role| role.superuser && role.can_login && role.password.is_some();
        if !self.require_password || catalog.roles().any(|role| is_usable(role)) {
            return Ok(());
        }
        Err(err!(CONFIG_FILE_ERROR, "a password is required, but no superuser has one")
            .hint("Start the server once without requiring passwords, and give one by ALTER ROLE postgres PASSWORD '...'."))
    }
}

/// All lines, or all errors.
fn parse_all<T>(
    lines: &[FileLine],
    parse: impl Fn(&FileLine) -> std::result::Result<T, String>,
) -> std::result::Result<Vec<T>, Vec<String>> {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    for line in lines {
        match line.error.clone().map_or_else(|| parse(line), Err) {
            Ok(parsed) => out.push(parsed),
            Err(e) => errors.push(in_line(&e, &line.file, line.number)),
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

fn in_line(message: &str, file: &Path, line: usize) -> String {
    format!("{message} (line {line} of configuration file \"{}\")", file.display())
}

const IPV4_LOOPBACK: Address = Address::Network {
    address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    mask: std::net::IpAddr::V4(std::net::Ipv4Addr::new(255, 0, 0, 0)),
};
const IPV6_LOOPBACK: Address = Address::Network {
    address: std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
    mask: std::net::IpAddr::V6(std::net::Ipv6Addr::from_bits(u128::MAX)),
};

/// Without a password: processes of the account that runs the server. All others need one, wherever they come from.
fn built_in(require_password: bool) -> InForce {
    let near = if require_password { Method::ScramSha256 } else { Method::Owner };
    let rules = vec![
        built_in_rule(Connections::Local, Address::All, near),
        built_in_rule(Connections::Host, IPV4_LOOPBACK, near),
        built_in_rule(Connections::Host, IPV6_LOOPBACK, near),
        built_in_rule(Connections::Host, Address::All, Method::ScramSha256),
    ];
    InForce { rules, mappings: Vec::new(), is_built_in: true }
}

fn built_in_rule(connections: Connections, address: Address, method: Method) -> Rule {
    let all = || vec![Token { text: "all".to_owned(), quoted: false }];
    Rule {
        file: None,
        line: 0,
        text: String::new(),
        connections,
        databases: all(),
        users: all(),
        address,
        method,
        options: MethodOptions::default(),
        warning: None,
    }
}

#[cfg(test)]
mod tests;
