//! The severity of a message for the log, where LOG comes after ERROR.

use melba_types::Severity;

/// PostgreSQL's levels in the order that log_min_messages counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug5,
    Debug4,
    Debug3,
    Debug2,
    Debug1,
    Info,
    Notice,
    #[default]
    Warning,
    Error,
    Log,
    Fatal,
    Panic,
}

impl Level {
    /// By a value of log_min_messages.
    pub fn by_name(name: &str) -> Option<Level> {
        Some(match name {
            "debug5" => Level::Debug5,
            "debug4" => Level::Debug4,
            "debug3" => Level::Debug3,
            "debug2" => Level::Debug2,
            "debug1" => Level::Debug1,
            "info" => Level::Info,
            "notice" => Level::Notice,
            "warning" => Level::Warning,
            "error" => Level::Error,
            "log" => Level::Log,
            "fatal" => Level::Fatal,
            "panic" => Level::Panic,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Level::Debug5 | Level::Debug4 | Level::Debug3 | Level::Debug2 | Level::Debug1 => "DEBUG",
            Level::Info => "INFO",
            Level::Notice => "NOTICE",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
            Level::Log => "LOG",
            Level::Fatal => "FATAL",
            Level::Panic => "PANIC",
        }
    }
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Level {
        match severity {
            Severity::Debug => Level::Debug1,
            Severity::Log => Level::Log,
            Severity::Info => Level::Info,
            Severity::Notice => Level::Notice,
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
            Severity::Fatal => Level::Fatal,
            Severity::Panic => Level::Panic,
        }
    }
}
