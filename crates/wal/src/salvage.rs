//! Reads the readable part of a damaged log.

use melba_types::Lsn;
use melba_vfs::Directory;

use crate::error::{Result, WalError};
use crate::format::{
    FileHeader, RECORD_HEADER_BYTES, file_name, has_record_after_sync, is_end_mark, parse_record, record_header,
};
use crate::reader::{Belongs, Known, LogFiles};
use crate::{WalRecord, payload_crc};

/// Cuts the log in a folder at the end of its readable beginning, so that `replay` without `known` facts finds no error. `change`
/// is given each record from `from` on, in order, and may change its payload, but not the length.
///
/// Returns why the log was cut; `None` when it was whole or torn as a crash leaves it, and nothing was changed.
pub fn salvage(
    directory: &dyn Directory,
    from: Lsn,
    belongs: Belongs,
    known: Option<Known>,
    mut change: impl FnMut(WalRecord<'_>, &mut [u8]),
) -> Result<Option<String>> {
    let files = LogFiles::list(directory)?;
    let first = files.starts.partition_point(|start| *start <= from).saturating_sub(1);
    let starts = &files.starts[first.min(files.starts.len())..];
    let mut log = Cut { directory, belongs, reason: None, mark: None };
    let mut end = starts.first().copied().filter(|start| *start <= from);
    if end.is_none() && (known.is_some() || !starts.is_empty()) {
        log.reason = Some(format!("no file holds {from}"));
    }
    for (i, start) in starts.iter().enumerate() {
        if end != Some(*start) {
            // Records behind a gap belong to no known state.
            log.remove(*start, "does not follow the file before it")?;
        } else {
            end = Some(log.file(*start, starts.get(i + 1).copied(), from, &mut change)?);
        }
    }
    let end = end.unwrap_or(from);
    if let Some(known) = known.filter(|known| end < known.durable) {
        log.cut(format!("it ends at {end}, and was durable up to {} once", known.durable))?;
    }
    Ok(log.reason)
}

/// A log that is walked through.
struct Cut<'a> {
    directory: &'a dyn Directory,
    belongs: Belongs,
    /// Why it was cut.
    reason: Option<String>,
    /// Where the last file says that it continues in another one.
    mark: Option<(String, u64)>,
}

impl Cut<'_> {
    /// The log ends before this: no end mark may say that it continues.
    fn cut(&mut self, reason: String) -> Result<()> {
        self.reason.get_or_insert(reason);
        if let Some((name, offset)) = self.mark.take() {
            let cut = self.directory.open(&name).and_then(|file| file.set_len(offset).and_then(|()| file.sync()));
            cut.map_err(|e| WalError::io(&name, e))?;
        }
        Ok(())
    }

    fn remove(&mut self, start: Lsn, reason: &str) -> Result<()> {
        let name = file_name(start);
        self.cut(format!("file \"{name}\" {reason}"))?;
        self.directory.remove(&name).map_err(|e| WalError::io(&name, e))
    }

    /// One file: where its records end.
    fn file(
        &mut self,
        start: Lsn,
        next: Option<Lsn>,
        from: Lsn,
        change: &mut impl FnMut(WalRecord<'_>, &mut [u8]),
    ) -> Result<Lsn> {
        let name = file_name(start);
        let io = |e| WalError::io(&name, e);
        let file = self.directory.open(&name).map_err(io)?;
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        let read = file.read_at(&mut bytes, 0);
        let header = read.ok().and_then(|()| FileHeader::parse(&bytes)?.ok());
        let is_ours = |h: &FileHeader| [0, self.belongs.database].contains(&h.database) || self.belongs.database == 0;
        let Some(header) = header.filter(|h| h.start == start && is_ours(h)) else {
            self.remove(start, "has no header that can be read, or another's")?;
            return Ok(start);
        };
        if (bytes.len() as u64) < header.len {
            self.reason = Some(format!("file \"{name}\" has {} bytes, and {} once", bytes.len(), header.len));
        }
        self.mark = None;
        let mut lsn = start;
        loop {
            let offset = header.bytes + (lsn.0 - start.0) as usize;
            let rest = bytes.get(offset..).unwrap_or_default();
            let Some(record) = parse_record(rest, lsn) else {
                self.mark = Some((name.clone(), offset as u64));
                let is_torn = next.is_none() && !has_record_after_sync(rest, lsn);
                match is_end_mark(rest, lsn) {
                    true if next.is_none() => self.cut(format!("file \"{}\" is missing", file_name(lsn)))?,
                    false if !is_torn && next != Some(lsn) => {
                        self.cut(format!("file \"{name}\" at offset {offset}: not a whole record"))?;
                    }
                    _ => {}
                }
                return Ok(lsn);
            };
            lsn = record.end;
            if record.lsn >= from {
                let mut payload = record.payload.to_vec();
                change(record, &mut payload);
                if payload != record.payload {
                    let header =
                        record_header(payload.len() as u32, payload_crc(&payload), record.lsn, record.csn, record.after_sync);
                    let at = offset as u64;
                    file.write_at(&header, at)
                        .and_then(|()| file.write_at(&payload, at + RECORD_HEADER_BYTES as u64))
                        .map_err(io)?;
                }
            }
        }
    }
}
