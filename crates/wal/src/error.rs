//! The errors of the log.

use std::io;
use std::sync::Arc;

/// The log's result.
pub type Result<T, E = WalError> = std::result::Result<T, E>;

/// An error of the log.
#[derive(Clone, Debug)]
pub enum WalError {
    /// The file system failed; `file` names the operation and its file.
    Io { file: String, source: Arc<io::Error> },
    /// A file differs from the bytes that were written.
    Corrupt { file: String, offset: u64, reason: &'static str },
    /// A file is missing, or is not the one that belongs there; `problem` completes a sentence about it.
    Misplaced { file: String, problem: String },
    /// An earlier write or sync failed: it is unknown what is durable.
    Failed,
    /// Log positions are used up.
    Exhausted,
}

impl WalError {
    pub(crate) fn io(file: &str, source: io::Error) -> WalError {
        WalError::Io { file: file.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn corrupt(file: &str, offset: u64, reason: &'static str) -> WalError {
        WalError::Corrupt { file: file.to_owned(), offset, reason }
    }

    pub(crate) fn misplaced(file: &str, problem: impl Into<String>) -> WalError {
        WalError::Misplaced { file: file.to_owned(), problem: problem.into() }
    }
}

impl std::fmt::Display for WalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WalError::Io { file, source } => write!(f, "write-ahead log file \"{file}\": {source}"),
            WalError::Corrupt { file, offset, reason } => {
                write!(f, "write-ahead log file \"{file}\" is damaged at offset {offset}: {reason}")
            }
            WalError::Misplaced { file, problem } => write!(f, "write-ahead log file \"{file}\" {problem}"),
            WalError::Exhausted => f.write_str("the positions of the write-ahead log are used up"),
            WalError::Failed => f.write_str("the write-ahead log has failed earlier"),
        }
    }
}

impl std::error::Error for WalError {}
