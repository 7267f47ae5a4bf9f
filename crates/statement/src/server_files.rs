//! Files on the server's machine that users name: pg_read_file and similar functions, and code shared with lo_import and lo_export.
//!
//! These are the user's files, not the database's: they are read and written without `vfs`.

#![expect(clippy::disallowed_methods, reason = "server-side files: what they may be is checked here")]

use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use melba_catalog::privileges::RoleUse;
use melba_fmgr::Session;
use melba_types::{Datum, DbError, Oid, Record, Result, SqlState, bail, err, oids};

use super::context::StatementContext;

/// The longest text or bytea.
const VALUE_BYTES_MAX: i64 = 0x3fff_ffff - 4;
/// Members may read any file that the server can.
const READ_SERVER_FILES: Oid = Oid(4569);
/// Seconds from 1970 to 2000.
const EPOCH_SECONDS: i64 = 946_684_800;

/// PostgreSQL's error for a failed operation on a file: the operation, and the system's reason.
pub(crate) fn error(what: &str, error: &io::Error) -> DbError {
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    DbError::new(state(error), format!("{what}: {reason}"))
}

/// The SQLSTATE for a failed operation on a file.
fn state(error: &io::Error) -> SqlState {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => SqlState::INSUFFICIENT_PRIVILEGE,
        ErrorKind::NotFound => SqlState::UNDEFINED_FILE,
        ErrorKind::AlreadyExists => SqlState::DUPLICATE_FILE,
        ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::DirectoryNotEmpty => SqlState::WRONG_OBJECT_TYPE,
        ErrorKind::StorageFull => SqlState::DISK_FULL,
        ErrorKind::OutOfMemory => SqlState::OUT_OF_MEMORY,
        _ => SqlState::IO_ERROR,
    }
}

/// The path of a name: relative ones count from the data directory.
pub(super) fn resolve(session: &dyn Session, name: &str) -> PathBuf {
    PathBuf::from(session.setting("data_directory").unwrap_or_default()).join(name)
}

pub(super) fn call_server_file(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let name = args[0].as_str();
    if source.starts_with("pg_stat_file") {
        return stat_file(context, name, matches!(args.get(1), Some(Datum::Bool(true))));
    }
    let (range, missing_ok) = match args {
        [_] => (None, false),
        [_, Datum::Bool(missing_ok)] => (None, *missing_ok),
        [_, offset, length] => (Some((offset.as_i64(), length.as_i64())), false),
        [_, offset, length, missing_ok, ..] => (Some((offset.as_i64(), length.as_i64())), missing_ok.as_bool()),
        _ => return Err(DbError::unsupported(format!("function {source}"))),
    };
    if range.is_some_and(|(_, length)| length < 0) {
        bail!(INVALID_PARAMETER_VALUE, "requested length cannot be negative");
    }
    let (path, shown) = checked_path(context, name)?;
    let Some(bytes) = read(&path, &shown, range, missing_ok)? else { return Ok(Datum::Null) };
    if source.starts_with("pg_read_binary_file") {
        return Ok(Datum::bytes(bytes));
    }
    Ok(Datum::text(melba_protocol::body::utf8(&bytes)?))
}

/// pg_ls_dir.
pub(super) fn list_directory(context: &StatementContext, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let set = |at: usize| matches!(args.get(at), Some(Datum::Bool(true)));
    let (path, shown) = checked_path(context, args[0].as_str())?;
    let failed = |e| error(&format!("could not open directory \"{shown}\""), &e);
    let entries = match fs::read_dir(path) {
        Err(e) if e.kind() == ErrorKind::NotFound && set(1) => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let dots = if set(2) { &[".", ".."][..] } else { &[] };
    let mut rows: Vec<Vec<Datum>> = dots.iter().map(|name| vec![Datum::text(*name)]).collect();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        rows.push(vec![Datum::text(melba_protocol::body::utf8(entry.file_name().as_encoded_bytes())?)]);
    }
    Ok(rows)
}

/// Where a file is, and how messages name it: roles without pg_read_server_files stay below the data directory.
fn checked_path(context: &StatementContext, name: &str) -> Result<(PathBuf, String)> {
    let canonical = canonical(name);
    let shown = canonical.to_string_lossy().into_owned();
    let path = resolve(context, &shown);
    if !context.catalog.has_role(context.user.oid, READ_SERVER_FILES, RoleUse::Inherit) {
        if canonical.is_absolute() {
            let directory = canonical_directory(context);
            if !canonical.starts_with(directory) {
                bail!(INSUFFICIENT_PRIVILEGE, "absolute path not allowed");
            }
        } else if canonical.components().any(|c| c == Component::ParentDir) {
            bail!(INSUFFICIENT_PRIVILEGE, "path must be in or below the data directory");
        }
        check_links(context, &path)?;
    }
    Ok((path, shown))
}

/// Symbolic links below the data directory must not lead out of it. A missing file leads nowhere.
fn check_links(context: &StatementContext, path: &Path) -> Result<()> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let Some(found) = real(path) else { return Ok(()) };
    match real(&resolve(context, ".")).is_some_and(|directory| found.starts_with(directory)) {
        true => Ok(()),
        false => bail!(INSUFFICIENT_PRIVILEGE, "path must be in or below the data directory"),
    }
}

fn stat_file(context: &StatementContext, name: &str, missing_ok: bool) -> Result<Datum> {
    let (path, shown) = checked_path(context, name)?;
    let found = match fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound && missing_ok => return Ok(Datum::Null),
        found => found.map_err(|e| error(&format!("could not stat file \"{shown}\""), &e))?,
    };
    let time = |seconds: i64| Datum::Int8((seconds - EPOCH_SECONDS) * 1_000_000);
    let fields = vec![
        Datum::Int8(found.len() as i64),
        time(found.atime()),
        time(found.mtime()),
        time(found.ctime()),
        Datum::Null,
        Datum::Bool(found.is_dir()),
    ];
    let zone = oids::TIMESTAMPTZ;
    let field_types = [oids::INT8, zone, zone, zone, zone, oids::BOOL].into();
    Ok(Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types, field_names: None, fields })))
}

fn canonical_directory(context: &StatementContext) -> PathBuf {
    canonical(context.session.settings.lock().get("data_directory").as_text())
}

/// A path without `.`, and without `..` wherever a name stands before it.
fn canonical(name: &str) -> PathBuf {
    let mut out = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            Component::ParentDir if out.has_root() => {}
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() { PathBuf::from(".") } else { out }
}

/// The bytes of a file, or of a part of it: a negative offset counts from the end. `None`: there is no such file.
fn read(path: &Path, shown: &str, range: Option<(i64, i64)>, missing_ok: bool) -> Result<Option<Vec<u8>>> {
    let (offset, length) = range.unwrap_or((0, VALUE_BYTES_MAX + 1));
    if range.is_some() && length > VALUE_BYTES_MAX {
        bail!(INVALID_PARAMETER_VALUE, "requested length too large");
    }
    let mut file = match fs::File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound && missing_ok => return Ok(None),
        file => file.map_err(|e| error(&format!("could not open file \"{shown}\" for reading"), &e))?,
    };
    let place = if offset >= 0 { SeekFrom::Start(offset as u64) } else { SeekFrom::End(offset) };
    file.seek(place).map_err(|e| error(&format!("could not seek in file \"{shown}\""), &e))?;
    let mut bytes = Vec::new();
    let read = file.take(length as u64).read_to_end(&mut bytes);
    read.map_err(|e| error(&format!("could not read file \"{shown}\""), &e))?;
    if bytes.len() as i64 > VALUE_BYTES_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "file length too large"));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_canonicalized() {
        for (name, expected) in [
            ("a/./b//c", "a/b/c"),
            ("a/../b", "b"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("/../etc/./motd", "/etc/motd"),
            ("./", "."),
        ] {
            assert_eq!(canonical(name), Path::new(expected), "{name}");
        }
    }
}
