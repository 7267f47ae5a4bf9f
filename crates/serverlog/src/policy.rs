//! The messages that a session logs, by its settings.

use std::time::Duration;

use melba_settings::Settings;

use crate::level::Level;

/// log_error_verbosity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Terse,
    #[default]
    Default,
    Verbose,
}

impl Verbosity {
    pub(crate) fn of(settings: &Settings) -> Verbosity {
        match settings.get("log_error_verbosity").as_text() {
            "terse" => Verbosity::Terse,
            "verbose" => Verbosity::Verbose,
            _ => Verbosity::Default,
        }
    }
}

/// log_statement: which statements; each kind has those of the kinds before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statements {
    #[default]
    None,
    /// Statements of DDL.
    Ddl,
    /// That change rows too.
    Mod,
    All,
}

/// log_connections, as of PostgreSQL 18.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionAspects {
    pub receipt: bool,
    pub authentication: bool,
    pub authorization: bool,
    pub setup_durations: bool,
}

impl ConnectionAspects {
    /// Of a setting that was checked.
    pub fn of(text: &str) -> ConnectionAspects {
        let mut aspects = ConnectionAspects::default();
        let classic = ConnectionAspects { receipt: true, authentication: true, authorization: true, setup_durations: false };
        for word in text.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            match word.as_str() {
                "receipt" => aspects.receipt = true,
                "authentication" => aspects.authentication = true,
                "authorization" => aspects.authorization = true,
                "setup_durations" => aspects.setup_durations = true,
                "all" => aspects = ConnectionAspects { setup_durations: true, ..classic },
                _ if melba_types::boolean::parse(&word) == Some(true) => aspects = classic,
                _ => {}
            }
        }
        aspects
    }
}

/// A session's settings about the log.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Neither texts nor durations of statements are logged, or wanted otherwise: the usual case.
    pub is_quiet: bool,
    pub statements: Statements,
    pub duration: bool,
    /// `None`: never.
    pub min_duration: Option<Duration>,
    pub min_duration_sample: Option<Duration>,
    /// Of 1.
    pub statement_sample_rate: f64,
    pub transaction_sample_rate: f64,
    /// Bytes of a parameter; `None`: all of it, `Some(0)`: parameters are not logged.
    pub parameter_max: Option<usize>,
    pub parameter_max_on_error: Option<usize>,
    pub min_messages: Level,
    pub min_error_statement: Level,
    pub verbosity: Verbosity,
    /// Bytes from which on a temporary file is logged.
    pub temp_files: Option<u64>,
    pub lock_waits: bool,
    pub disconnections: bool,
}

impl Policy {
    pub fn of(settings: &Settings) -> Policy {
        let level = |name| Level::by_name(settings.get(name).as_text()).unwrap_or_default();
        let number = |name| settings.get(name).as_integer();
        let milliseconds = |name| u64::try_from(number(name)).ok().map(Duration::from_millis);
        let bytes = |name| usize::try_from(number(name)).ok();
        let mut policy = Policy {
            is_quiet: false,
            statements: match settings.get("log_statement").as_text() {
                "ddl" => Statements::Ddl,
                "mod" => Statements::Mod,
                "all" => Statements::All,
                _ => Statements::None,
            },
            duration: settings.get("log_duration").as_bool(),
            min_duration: milliseconds("log_min_duration_statement"),
            min_duration_sample: milliseconds("log_min_duration_sample"),
            statement_sample_rate: settings.get("log_statement_sample_rate").as_real(),
            transaction_sample_rate: settings.get("log_transaction_sample_rate").as_real(),
            parameter_max: bytes("log_parameter_max_length"),
            parameter_max_on_error: bytes("log_parameter_max_length_on_error"),
            min_messages: level("log_min_messages"),
            min_error_statement: level("log_min_error_statement"),
            verbosity: Verbosity::of(settings),
            temp_files: u64::try_from(number("log_temp_files")).ok().map(|kilobytes| kilobytes << 10),
            lock_waits: settings.get("log_lock_waits").as_bool(),
            disconnections: settings.get("log_disconnections").as_bool(),
        };
        policy.is_quiet = policy.statements == Statements::None && !policy.times();
        policy
    }

    /// Of a server without a log.
    pub fn silent() -> Policy {
        Policy { is_quiet: true, min_messages: Level::Panic, min_error_statement: Level::Panic, ..Policy::default() }
    }

    /// How long statements take may matter.
    fn times(&self) -> bool {
        self.duration || self.min_duration.is_some() || self.min_duration_sample.is_some() || self.transaction_sample_rate > 0.0
    }

    /// Whether a statement of this duration is logged, and whether with its text. `is_sampled`: the transaction was chosen by
    /// log_transaction_sample_rate; `chance`: a random number in 0..1.
    pub fn of_duration(&self, took: Duration, is_sampled: bool, chance: impl FnOnce() -> f64) -> Option<bool> {
        if !self.times() {
            return None;
        }
        let exceeds = |limit: Option<Duration>| limit.is_some_and(|limit| took >= limit);
        let in_sample = exceeds(self.min_duration_sample)
            && self.statement_sample_rate > 0.0
            && (self.statement_sample_rate >= 1.0 || chance() < self.statement_sample_rate);
        match exceeds(self.min_duration) || in_sample || is_sampled {
            true => Some(true),
            false => self.duration.then_some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(changes: &[(&str, &str)]) -> Policy {
        let changes: Vec<_> = changes.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Policy::of(&Settings::server(&changes).expect("settings"))
    }

    #[test]
    fn nothing_about_statements_is_logged_unless_asked_for() {
        assert!(policy(&[]).is_quiet);
        assert!(!policy(&[("log_duration", "on")]).is_quiet);
        assert!(!policy(&[("log_statement", "ddl")]).is_quiet);
        assert!(!policy(&[("log_min_duration_statement", "1s")]).is_quiet);
    }

    #[test]
    fn durations_are_logged_by_limit_sample_and_wish() {
        let took = Duration::from_millis(50);
        let slow = policy(&[("log_min_duration_statement", "40ms")]);
        assert_eq!(slow.of_duration(took, false, || 0.0), Some(true));
        assert_eq!(slow.of_duration(Duration::from_millis(39), false, || 0.0), None);
        let all = policy(&[("log_duration", "on"), ("log_min_duration_statement", "60ms")]);
        assert_eq!(all.of_duration(took, false, || 0.0), Some(false));
        let sampled = policy(&[("log_min_duration_sample", "10ms"), ("log_statement_sample_rate", "0.5")]);
        assert_eq!(sampled.of_duration(took, false, || 0.4), Some(true));
        assert_eq!(sampled.of_duration(took, false, || 0.6), None);
        assert_eq!(policy(&[("log_transaction_sample_rate", "1")]).of_duration(took, true, || 0.9), Some(true));
    }

    #[test]
    fn aspects_of_connections_are_those_of_postgresql_18() {
        let classic = ConnectionAspects { receipt: true, authentication: true, authorization: true, setup_durations: false };
        assert_eq!(ConnectionAspects::of("on"), classic);
        assert_eq!(ConnectionAspects::of("all"), ConnectionAspects { setup_durations: true, ..classic });
        assert_eq!(ConnectionAspects::of("off"), ConnectionAspects::default());
        let two = ConnectionAspects { receipt: true, setup_durations: true, ..ConnectionAspects::default() };
        assert_eq!(ConnectionAspects::of("receipt, setup_durations"), two);
    }
}
