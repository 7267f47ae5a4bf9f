//! The errors of the engine, and the one place where they become a `DbError`.

use std::io;
use std::sync::Arc;

use melba_types::{DbError, SqlState, TreeId};

use crate::ids::SequenceId;

/// The engine's result.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// An error of the engine. `From` turns it into the `DbError` that a client sees.
#[derive(Clone, Debug)]
pub enum EngineError {
    /// 40001: REPEATABLE READ found a row that another transaction changed after its snapshot.
    SerializationFailure,
    /// 40001: SERIALIZABLE would not be; the reason is PostgreSQL's DETAIL.
    SerializationConflict { reason: String },
    /// 40P01: this transaction was chosen to break a cycle of waits; the text is PostgreSQL's DETAIL.
    Deadlock { detail: String },
    /// 55P03: waited for a lock longer than lock_timeout.
    LockTimeout,
    /// A wait was interrupted.
    Interrupted(InterruptReason),
    /// 0A000: not built yet.
    Unsupported(&'static str),
    /// 58030 (53100 when the disk is full): an operation of the file system failed.
    Io { what: String, source: Arc<io::Error> },
    /// 58030: after an earlier failure it is unknown which changes are durable; only a restart helps.
    Poisoned { cause: String },
    /// XX001: bytes on disk differ from those written.
    Corrupt { what: String },
    /// 53200: a memory limit does not allow it.
    OutOfMemory { what: &'static str },
    /// 54000: a counter is at its end.
    Limit(&'static str),
    /// 53200: queries hold all the memory they may.
    MemoryExhausted { request: u64, limit: u64 },
    /// 53400: a session's temporary files would exceed temp_file_limit.
    TempFileLimit { kilobytes: u64 },
    /// 53300: more sessions than the engine has places for.
    TooManySessions,
    /// 2200H: a sequence without CYCLE has no next value; `limit` is the bound it reached.
    SequenceExhausted { ascending: bool, limit: i64 },
    /// 22003: setval outside the bounds.
    SequenceBounds { value: i64, min: i64, max: i64 },
    /// XX000: no such tree; the catalog and the engine disagree.
    UnknownTree(TreeId),
    /// XX000: no such sequence.
    UnknownSequence(SequenceId),
    /// XX000: a caller broke the rules of this API.
    Misuse(&'static str),
    /// F0001: another process has the data directory.
    DirectoryInUse,
}

impl EngineError {
    /// An I/O error with the operation that failed.
    pub fn io(what: impl Into<String>, source: io::Error) -> EngineError {
        EngineError::Io { what: what.into(), source: Arc::new(source) }
    }

    pub fn is_full_disk(&self) -> bool {
        matches!(self, EngineError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }

    /// Whether bytes on disk are wrong or missing: a second try does not help, but users of other data are not affected.
    pub fn is_damage(&self) -> bool {
        use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        match self {
            EngineError::Corrupt { .. } => true,
            EngineError::Io { source, .. } => matches!(source.kind(), InvalidData | NotFound | UnexpectedEof),
            _ => false,
        }
    }
}

impl From<EngineError> for DbError {
    fn from(e: EngineError) -> DbError {
        let message = e.to_string();
        match e {
            EngineError::SerializationFailure => DbError::new(SqlState::T_R_SERIALIZATION_FAILURE, message),
            EngineError::SerializationConflict { reason } => DbError::new(SqlState::T_R_SERIALIZATION_FAILURE, message)
                .detail(format!("Reason code: {reason}"))
                .hint("The transaction might succeed if retried."),
            EngineError::Deadlock { detail } => {
                DbError::new(SqlState::T_R_DEADLOCK_DETECTED, message).detail(detail).hint("See server log for query details.")
            }
            EngineError::LockTimeout => DbError::new(SqlState::LOCK_NOT_AVAILABLE, message),
            EngineError::Interrupted(InterruptReason::TransactionTimeout) => {
                DbError::new(SqlState::TRANSACTION_TIMEOUT, message).severity(melba_types::Severity::Fatal)
            }
            EngineError::Interrupted(InterruptReason::ClientGone) => {
                DbError::new(SqlState::CONNECTION_FAILURE, message).severity(melba_types::Severity::Fatal)
            }
            EngineError::Interrupted(InterruptReason::Terminate) => {
                DbError::new(SqlState::ADMIN_SHUTDOWN, message).severity(melba_types::Severity::Fatal)
            }
            EngineError::Interrupted(_) => DbError::new(SqlState::QUERY_CANCELED, message),
            EngineError::Unsupported(what) => DbError::unsupported(what),
            EngineError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                DbError::new(SqlState::DISK_FULL, message)
            }
            EngineError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                DbError::new(SqlState::DATA_CORRUPTED, message)
            }
            // Of an object store, or of a wait for one that was interrupted.
            EngineError::Io { source, .. } if source.get_ref().is_some_and(|e| e.is::<DbError>()) => {
                let own = source.get_ref().and_then(|e| e.downcast_ref::<DbError>()).cloned();
                own.unwrap_or_else(|| DbError::new(SqlState::IO_ERROR, message))
            }
            EngineError::Io { .. } | EngineError::Poisoned { .. } => DbError::new(SqlState::IO_ERROR, message),
            EngineError::Corrupt { .. } => DbError::new(SqlState::DATA_CORRUPTED, message),
            EngineError::MemoryExhausted { request, limit } => DbError::new(SqlState::OUT_OF_MEMORY, message)
                .detail(format!("Failed on request of size {request}: queries may hold {} kB in all.", limit >> 10))
                .hint("Queries share a part of the server's setting \"memory\"."),
            EngineError::TempFileLimit { .. } => DbError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message),
            EngineError::OutOfMemory { .. } => DbError::new(SqlState::OUT_OF_MEMORY, message),
            EngineError::Limit(_) => DbError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message),
            EngineError::TooManySessions => DbError::new(SqlState::TOO_MANY_CONNECTIONS, message),
            EngineError::SequenceExhausted { .. } => DbError::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message),
            EngineError::SequenceBounds { .. } => DbError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message),
            EngineError::UnknownTree(_) | EngineError::UnknownSequence(_) | EngineError::Misuse(_) => DbError::internal(message),
            EngineError::DirectoryInUse => DbError::new(SqlState::LOCK_FILE_EXISTS, message),
        }
    }
}

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EngineError::SerializationFailure => f.write_str("could not serialize access due to concurrent update"),
            EngineError::SerializationConflict { .. } => {
                f.write_str("could not serialize access due to read/write dependencies among transactions")
            }
            EngineError::Deadlock { .. } => f.write_str("deadlock detected"),
            EngineError::LockTimeout => f.write_str("canceling statement due to lock timeout"),
            EngineError::Interrupted(reason) => f.write_str(reason.message()),
            EngineError::Unsupported(what) => write!(f, "{what} is not supported yet"),
            EngineError::Io { what, source } => write!(f, "could not {what}: {source}"),
            EngineError::Poisoned { cause } => write!(f, "the storage engine has stopped after an earlier failure: {cause}"),
            EngineError::Corrupt { what } => f.write_str(what),
            EngineError::MemoryExhausted { .. } => f.write_str("out of memory"),
            EngineError::TempFileLimit { kilobytes } => {
                write!(f, "temporary file size exceeds \"temp_file_limit\" ({kilobytes}kB)")
            }
            EngineError::OutOfMemory { what } => write!(f, "out of memory: {what}"),
            EngineError::Limit(what) => f.write_str(what),
            EngineError::TooManySessions => f.write_str("sorry, too many clients already"),
            EngineError::SequenceExhausted { ascending: true, limit } => {
                write!(f, "nextval: reached maximum value of sequence ({limit})")
            }
            EngineError::SequenceExhausted { ascending: false, limit } => {
                write!(f, "nextval: reached minimum value of sequence ({limit})")
            }
            EngineError::SequenceBounds { value, min, max } => {
                write!(f, "setval: value {value} is out of bounds for sequence ({min}..{max})")
            }
            EngineError::UnknownTree(tree) => write!(f, "tree {tree} does not exist"),
            EngineError::UnknownSequence(id) => write!(f, "sequence storage {} does not exist", id.0),
            EngineError::Misuse(what) => f.write_str(what),
            EngineError::DirectoryInUse => f.write_str("the data directory is in use by another server"),
        }
    }
}

impl std::error::Error for EngineError {}

impl From<melba_wal::WalError> for EngineError {
    fn from(e: melba_wal::WalError) -> EngineError {
        match e {
            melba_wal::WalError::Io { file, source } => EngineError::Io { what: format!("access log file \"{file}\""), source },
            melba_wal::WalError::Corrupt { .. } | melba_wal::WalError::Misplaced { .. } => {
                EngineError::Corrupt { what: e.to_string() }
            }
            melba_wal::WalError::Exhausted => EngineError::Limit("the positions of the write-ahead log are used up"),
            melba_wal::WalError::Failed => EngineError::Poisoned { cause: e.to_string() },
        }
    }
}

impl From<melba_segment::SegmentError> for EngineError {
    fn from(e: melba_segment::SegmentError) -> EngineError {
        match e {
            melba_segment::SegmentError::Io { file, error } => EngineError::io(format!("access file \"{file}\""), error),
            e => EngineError::Corrupt { what: e.to_string() },
        }
    }
}

/// Why a session is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum InterruptReason {
    /// pg_cancel_backend or a CancelRequest.
    Cancel = 1,
    /// statement_timeout ran out.
    StatementTimeout = 2,
    /// transaction_timeout ran out, which ends the session.
    TransactionTimeout = 3,
    /// pg_terminate_backend, or the server stops.
    Terminate = 4,
    /// The client has disconnected.
    ClientGone = 5,
}

impl InterruptReason {
    /// PostgreSQL's message.
    pub fn message(self) -> &'static str {
        match self {
            InterruptReason::Cancel => "canceling statement due to user request",
            InterruptReason::StatementTimeout => "canceling statement due to statement timeout",
            InterruptReason::TransactionTimeout => "terminating connection due to transaction timeout",
            InterruptReason::Terminate => "terminating connection due to administrator command",
            InterruptReason::ClientGone => "connection to client lost",
        }
    }
}
