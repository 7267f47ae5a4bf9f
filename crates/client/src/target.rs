//! The address of a server, and the user: a URL, libpq's keywords, or PostgreSQL's environment variables.

use std::env;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use postgres::config::Host;

use crate::Result;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const PORT: u16 = 5432;
/// The one role that a new server knows.
const USER: &str = "postgres";

/// How much of a server must be proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    fn parse(text: &str) -> Result<SslMode> {
        Ok(match text {
            "disable" => SslMode::Disable,
            "allow" | "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return Err(format!("invalid sslmode value: \"{text}\"")),
        })
    }
}

#[derive(Clone, Debug)]
pub struct Target {
    /// They are tried in this order.
    pub hosts: Vec<(Host, u16)>,
    pub user: String,
    pub database: String,
    pub password: Option<String>,
    /// Settings of the session, as `-c name=value`.
    pub options: Option<String>,
    pub application_name: String,
    pub ssl: SslMode,
    /// Certificates that are trusted; `system`: those of the machine.
    pub ssl_root: Option<PathBuf>,
    pub timeout: Duration,
}

impl Target {
    /// A URL, keywords, the name of a database, or nothing; the environment supplies missing parts.
    pub fn parse(text: &str) -> Result<Target> {
        Target::with_environment(text, &|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn with_environment(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Target> {
        let is_name = !text.is_empty() && !text.contains("://") && !text.contains('=');
        let (rest, [ssl, ssl_root]) = take_options(if is_name { "" } else { text }, ["sslmode", "sslrootcert"]);
        let config = postgres::Config::from_str(&rest).map_err(|e| format!("{}: {}", without_password(text), full(&e)))?;
        let is_bound = config.get_channel_binding() == postgres::config::ChannelBinding::Require;
        if is_bound {
            return Err("channel_binding=require is not supported".to_owned());
        }
        let mut ports = config.get_ports().to_vec();
        if ports.is_empty() {
            let port = environment("PGPORT").map_or(Ok(PORT), |p| p.parse().map_err(|_| format!("PGPORT: \"{p}\" is no port")));
            ports.push(port?);
        }
        let mut hosts = config.get_hosts().to_vec();
        if hosts.is_empty() {
            let host = environment("PGHOST").unwrap_or_else(|| "127.0.0.1".to_owned());
            hosts.push(if host.starts_with('/') { Host::Unix(host.into()) } else { Host::Tcp(host) });
        }
        let port_of = |at: usize| *ports.get(at).unwrap_or(&ports[0]);
        let hosts = hosts.into_iter().enumerate().map(|(at, host)| (host, port_of(at))).collect();
        let user = config.get_user().map(str::to_owned).or_else(|| environment("PGUSER")).unwrap_or_else(|| USER.to_owned());
        let named = if is_name { Some(text) } else { config.get_dbname() };
        let database = named.map(str::to_owned).or_else(|| environment("PGDATABASE")).unwrap_or_else(|| user.clone());
        let password = config.get_password().map(|p| String::from_utf8_lossy(p).into_owned());
        let ssl = ssl.or_else(|| environment("PGSSLMODE")).map_or(Ok(SslMode::Prefer), |mode| SslMode::parse(&mode))?;
        Ok(Target {
            hosts,
            user,
            database,
            password: password.or_else(|| environment("PGPASSWORD")),
            options: config.get_options().map(str::to_owned).or_else(|| environment("PGOPTIONS")),
            application_name: config.get_application_name().unwrap_or("melba").to_owned(),
            ssl,
            ssl_root: ssl_root.or_else(|| environment("PGSSLROOTCERT")).map(PathBuf::from),
            timeout: config.get_connect_timeout().copied().unwrap_or(CONNECT_WITHIN),
        })
    }

    /// For `\conninfo` and messages.
    pub fn place(&self) -> String {
        let places = self.hosts.iter().map(|(host, port)| match host {
            Host::Tcp(host) => format!("host \"{host}\", port {port}"),
            Host::Unix(path) => format!("socket in \"{}\", port {port}", path.display()),
        });
        places.collect::<Vec<_>>().join(" or ")
    }
}

/// The error with its cause, which explains it.
fn full(e: &postgres::Error) -> String {
    use std::error::Error as _;
    e.source().map_or_else(|| e.to_string(), |cause| format!("{e}: {cause}"))
}

/// A URL for messages.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    match rest.split_once('@') {
        Some((user, rest)) => format!("{scheme}://{}@{rest}", user.split(':').next().unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Takes options, which the parser of the rest knows less of than libpq, out of a URL or keywords.
fn take_options<const N: usize>(text: &str, names: [&str; N]) -> (String, [Option<String>; N]) {
    let mut found = [const { None }; N];
    let mut take = |part: &str| {
        let Some((name, value)) = part.split_once('=') else { return false };
        let Some(at) = names.iter().position(|n| *n == name.trim()) else { return false };
        found[at] = Some(value.trim().trim_matches('\'').to_owned());
        true
    };
    let rest = if text.contains("://") {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let kept: Vec<&str> = query.split('&').filter(|part| !part.is_empty() && !take(part)).collect();
        if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) }
    } else {
        let kept: Vec<&str> = keywords(text).into_iter().filter(|part| !take(part)).collect();
        kept.join(" ")
    };
    (rest, found)
}

/// Splits at spaces that are not in quotes.
fn keywords(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut in_quotes, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => in_quotes = !in_quotes,
            c if c.is_whitespace() && !in_quotes => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Target {
        Target::with_environment(text, &|name| (name == "PGDATABASE").then(|| "shop".to_owned())).expect("it is right")
    }

    #[test]
    fn urls_keywords_and_names_are_understood() {
        let target = parse("postgres://me:se%20cret@db:5433/sales?sslmode=verify-full&sslrootcert=root.crt&application_name=x");
        assert_eq!(target.hosts, [(Host::Tcp("db".to_owned()), 5433)]);
        assert_eq!(
            (target.user.as_str(), target.database.as_str(), target.password.as_deref()),
            ("me", "sales", Some("se cret"))
        );
        assert_eq!((target.ssl, target.ssl_root), (SslMode::VerifyFull, Some("root.crt".into())));
        assert_eq!(target.application_name, "x");
        let target = parse("host=/tmp sslmode=disable password='a b' user=me");
        assert_eq!(target.hosts, [(Host::Unix("/tmp".into()), 5432)]);
        assert_eq!((target.ssl, target.password.as_deref()), (SslMode::Disable, Some("a b")));
        assert_eq!((parse("").database.as_str(), parse("other").database.as_str()), ("shop", "other"));
        assert_eq!((parse("").user.as_str(), parse("").ssl), ("postgres", SslMode::Prefer));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        let none = |_: &str| None;
        let error = Target::with_environment("postgres://me:secret@h/d?colour=red", &none).expect_err("it is no option");
        assert!(error.contains("colour") && !error.contains("secret"), "{error}");
        let error = Target::with_environment("sslmode=never", &none).expect_err("it is no mode");
        assert_eq!(error, "invalid sslmode value: \"never\"");
    }
}
