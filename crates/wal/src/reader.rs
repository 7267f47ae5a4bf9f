//! Reading the log back.

use melba_types::Lsn;
use melba_vfs::Directory;

use crate::error::{Result, WalError};
use crate::format::{FILE_HEADER_BYTES, Record, file_header, file_name, has_record_after_sync, parse_file_name, parse_record};

/// The log's files in a directory, by start, ascending.
#[derive(Clone, Debug, Default)]
pub struct LogFiles {
    pub starts: Vec<Lsn>,
    /// Files kept to be reused.
    pub spares: Vec<String>,
}

pub(crate) const SPARE_PREFIX: &str = "spare-";

impl LogFiles {
    /// Lists a directory.
    pub fn list(directory: &dyn Directory) -> Result<LogFiles> {
        let names = directory.list().map_err(|e| WalError::io(".", e))?;
        let mut files = LogFiles::default();
        for name in names {
            if let Some(start) = parse_file_name(&name) {
                files.starts.push(start);
            } else if name.starts_with(SPARE_PREFIX) && name.ends_with(".wal") {
                files.spares.push(name);
            }
        }
        files.starts.sort_unstable();
        Ok(files)
    }
}

/// Hands every record from `from` on to `each`, in order; returns where the log ends.
///
/// A torn record in the last file is the end. Anything else that is not a whole record is an error, also one that was durable: there is
/// a later record that was written after a sync.
pub fn replay<E: From<WalError>>(
    directory: &dyn Directory,
    from: Lsn,
    mut each: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Lsn, E> {
    let files = LogFiles::list(directory)?;
    // The file that `from` lies in is the last that begins at or before it.
    let first = files.starts.partition_point(|s| *s <= from).saturating_sub(1);
    let starts = &files.starts[first.min(files.starts.len())..];
    let Some(&oldest) = starts.first() else { return Ok(from) };
    if oldest > from {
        return Err(WalError::corrupt(&file_name(oldest), 0, "the file before it is missing").into());
    }
    let mut end = from;
    for (i, start) in starts.iter().enumerate() {
        let next = starts.get(i + 1).copied();
        end = replay_file(directory, *start, from, next, &mut each)?;
    }
    // The last file may be one that was given up long ago and whose removal was lost, its successor not yet named: then it ends
    // before `from`. New records must not begin there, or they would never be replayed.
    Ok(end.max(from))
}

fn replay_file<E: From<WalError>>(
    directory: &dyn Directory,
    start: Lsn,
    from: Lsn,
    next: Option<Lsn>,
    each: &mut impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Lsn, E> {
    let name = file_name(start);
    let io = |e| WalError::io(&name, e);
    let file = directory.open(&name).map_err(io)?;
    let mut bytes = vec![0; file.len().map_err(io)? as usize];
    file.read_at(&mut bytes, 0).map_err(io)?;
    if bytes.get(..FILE_HEADER_BYTES) != Some(&file_header(start)[..]) {
        // The crash came before the header was durable, so nothing in the file was ever acknowledged; unless there are records.
        let first = bytes.get(FILE_HEADER_BYTES..).unwrap_or_default();
        let empty = next.is_none() && parse_record(first, start).is_none() && !has_record_after_sync(first, start);
        return if empty { Ok(start) } else { Err(WalError::corrupt(&name, 0, "the header is not one").into()) };
    }
    let mut lsn = start;
    loop {
        if next == Some(lsn) {
            return Ok(lsn);
        }
        let offset = FILE_HEADER_BYTES + (lsn.0 - start.0) as usize;
        match bytes.get(offset..).and_then(|b| parse_record(b, lsn)) {
            Some(record) => {
                lsn = record.end;
                if record.lsn >= from {
                    each(record)?;
                }
            }
            None if next.is_none() && !has_record_after_sync(bytes.get(offset..).unwrap_or_default(), lsn) => return Ok(lsn),
            None => return Err(WalError::corrupt(&name, offset as u64, "not a whole record").into()),
        }
    }
}
