//! Reads the log back.

use melba_types::Lsn;
use melba_vfs::Directory;

use crate::error::{Result, WalError};
use crate::format::{
    FILE_HEADER_BYTES, FileHeader, OLD_FILE_HEADER_BYTES, WalRecord, file_name, has_record_after_sync, is_end_mark,
    parse_file_name, parse_record,
};

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

/// Facts about a synced log that are stored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// A file began here, and exists unless replay begins behind it.
    pub start: Lsn,
    /// The log was durable up to here.
    pub durable: Lsn,
}

/// To whom the log belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Belongs {
    /// The database's number; 0: unknown.
    pub database: u64,
    /// The number of the manifest's last record.
    pub manifest: u64,
}

/// Hands every record from `from` on to `each`, in order; returns where the log ends.
///
/// A torn record in the last file is the end. Anything else that is not a whole record is an error, also one that was durable: there is
/// a later record that was written after a sync. So is a file that must be there and is not, or that is another one.
pub fn replay<E: From<WalError>>(
    directory: &dyn Directory,
    from: Lsn,
    belongs: Belongs,
    known: Option<Known>,
    mut each: impl FnMut(WalRecord<'_>) -> Result<(), E>,
) -> Result<Lsn, E> {
    let files = LogFiles::list(directory)?;
    // The file that `from` lies in is the last that begins at or before it.
    let first = files.starts.partition_point(|s| *s <= from).saturating_sub(1);
    let starts = &files.starts[first.min(files.starts.len())..];
    if let Some(known) = known.filter(|k| k.start >= from && !starts.contains(&k.start)) {
        return Err(WalError::misplaced(&file_name(known.start), "is missing").into());
    }
    let Some(&oldest) = starts.first() else {
        return match known {
            Some(_) => Err(WalError::misplaced("*.wal", format!("is missing: there is none that holds {from}")).into()),
            None => Ok(from),
        };
    };
    if oldest > from {
        return Err(WalError::corrupt(&file_name(oldest), 0, "the file before it is missing").into());
    }
    let mut end = from;
    for (i, start) in starts.iter().enumerate() {
        let next = starts.get(i + 1).copied();
        end = LogFile { directory, start: *start, next, belongs, must_be_whole: known.is_some() }.replay(from, &mut each)?;
    }
    let last = starts.last().copied().unwrap_or(oldest);
    if let Some(known) = known.filter(|k| end < k.durable) {
        let problem = format!("ends at {end}, and was durable up to {} once", known.durable);
        return Err(WalError::misplaced(&file_name(last), problem).into());
    }
    // The last file may be one that was abandoned long ago and whose removal was lost, its successor not yet named: then it ends
    // before `from`. New records must not begin there, or they would never be replayed.
    Ok(end.max(from))
}

struct LogFile<'a> {
    directory: &'a dyn Directory,
    start: Lsn,
    next: Option<Lsn>,
    belongs: Belongs,
    /// Its header was durable before it had this name.
    must_be_whole: bool,
}

impl LogFile<'_> {
    fn replay<E: From<WalError>>(&self, from: Lsn, each: &mut impl FnMut(WalRecord<'_>) -> Result<(), E>) -> Result<Lsn, E> {
        let LogFile { start, next, .. } = *self;
        let name = file_name(start);
        let io = |e| WalError::io(&name, e);
        let file = self.directory.open(&name).map_err(io)?;
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        file.read_at(&mut bytes, 0).map_err(io)?;
        let Some(header_bytes) = self.check_header(&name, &bytes)? else { return Ok(start) };
        let mut lsn = start;
        loop {
            if next == Some(lsn) {
                return Ok(lsn);
            }
            let offset = header_bytes + (lsn.0 - start.0) as usize;
            let rest = bytes.get(offset..).unwrap_or_default();
            match parse_record(rest, lsn) {
                Some(record) => {
                    lsn = record.end;
                    if record.lsn >= from {
                        each(record)?;
                    }
                }
                None if is_end_mark(rest, lsn) => return Err(WalError::misplaced(&file_name(lsn), "is missing").into()),
                None if next.is_none() && !has_record_after_sync(rest, lsn) => return Ok(lsn),
                None => return Err(WalError::corrupt(&name, offset as u64, "not a whole record").into()),
            }
        }
    }

    /// Where the records begin; `None` when the file was never begun.
    fn check_header(&self, name: &str, bytes: &[u8]) -> Result<Option<usize>> {
        let header = match FileHeader::parse(bytes) {
            Some(Ok(header)) => header,
            Some(Err(version)) => return Err(WalError::misplaced(name, format!("has unknown format version {version}"))),
            None => return self.without_header(name, bytes, "the header is not one"),
        };
        if header.database != 0 && self.belongs.database != 0 && header.database != self.belongs.database {
            return Err(WalError::misplaced(name, "belongs to another database"));
        }
        if header.start != self.start {
            return match self.must_be_whole {
                true => Err(WalError::misplaced(name, format!("was \"{}\" once", file_name(header.start)))),
                false => self.without_header(name, bytes, "the header is that of another file"),
            };
        }
        if header.manifest > self.belongs.manifest && self.must_be_whole {
            let problem = format!(
                "is newer than the file \"MANIFEST\": when it was begun that had {} records, and not {}",
                header.manifest, self.belongs.manifest
            );
            return Err(WalError::misplaced(name, problem));
        }
        if (bytes.len() as u64) < header.len && self.must_be_whole {
            return Err(WalError::misplaced(name, format!("has {} bytes, and {} once", bytes.len(), header.len)));
        }
        Ok(Some(header.bytes))
    }

    /// When the crash came before a header was durable, nothing in the file was ever acknowledged; unless there are records.
    fn without_header(&self, name: &str, bytes: &[u8], reason: &'static str) -> Result<Option<usize>> {
        let has_records = [FILE_HEADER_BYTES, OLD_FILE_HEADER_BYTES].into_iter().any(|header_bytes| {
            let first = bytes.get(header_bytes..).unwrap_or_default();
            parse_record(first, self.start).is_some() || has_record_after_sync(first, self.start)
        });
        if self.next.is_none() && !has_records && !self.must_be_whole {
            Ok(None)
        } else {
            Err(WalError::corrupt(name, 0, reason))
        }
    }
}
