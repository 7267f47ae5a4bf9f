//! The server side of `melba backup`: a state of the database, its files, and its log, as long as the session holds them.

use melba_types::{Datum, DbError, Lsn, Result, err};

use super::context::StatementContext;

/// For users who try PostgreSQL's way.
pub const BACKUP_HINT: &str = "Use melba backup, which copies a running server into a folder or an object store.";
/// The most that one call returns.
const BYTES_MAX: usize = 16 << 20;

/// melba_backup_start: the database's number, where replay of the log begins, up to where the backup needs it, and the manifest.
pub(super) fn start_backup(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    let backup = context.session.instance.cluster.engine.begin_backup()?;
    let state = &backup.state;
    let row = vec![
        Datum::Int8(state.database as i64),
        Datum::Int8(state.replay.0 as i64),
        Datum::Int8(backup.end.0 as i64),
        Datum::bytes(state.to_bytes()),
    ];
    // One that was begun before ends.
    *context.session.backup.lock() = Some(backup);
    Ok(vec![row])
}

/// melba_backup_files: number, checksum of the footer, and bytes of each segment.
pub(super) fn backup_files(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    let backup = context.session.backup.lock();
    let segments = &backup.as_ref().ok_or_else(not_begun)?.segments;
    Ok(segments.iter().map(|s| [s.file, u64::from(s.footer_crc), s.bytes].map(|n| Datum::Int8(n as i64)).into()).collect())
}

/// PostgreSQL's ways to back up a server.
pub(super) fn refused_backup(source: &str) -> DbError {
    DbError::unsupported(format!("function {source}")).hint(BACKUP_HINT)
}

/// melba_backup_file, melba_backup_log, melba_backup_advance and melba_backup_stop.
pub(super) fn call_backup(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let of = |at: usize| args[at].as_i64().max(0) as u64;
    let bytes = |at: usize| (args[at].as_i32().max(0) as usize).min(BYTES_MAX);
    let mut held = context.session.backup.lock();
    let backup = held.as_mut().ok_or_else(not_begun)?;
    Ok(match source {
        "melba_backup_file" => Datum::bytes(backup.read_segment(of(0), of(1), bytes(2))?),
        "melba_backup_log" => Datum::bytes(backup.read_log(Lsn(of(0)), bytes(1))?),
        "melba_backup_advance" => {
            backup.advance()?;
            Datum::Int8(backup.end.0 as i64)
        }
        "melba_backup_stop" => {
            *held = None;
            Datum::text("")
        }
        _ => return Err(DbError::unsupported(format!("function {source}"))),
    })
}

fn not_begun() -> DbError {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "backup is not in progress")
        .hint("Call melba_backup_start() in the same session first.")
}
