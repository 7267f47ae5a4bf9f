//! `melba salvage`: makes a database that opens from the readable data of a damaged one.
//!
//! It works in a folder that may be changed: an overlay, so that the damaged files stay as they are. Segments that cannot be read
//! as a whole are rewritten with their readable versions, the log is cut at the end of its readable beginning, and a new manifest
//! names the result. The ordinary start does the rest.
//!
//! A lost version may have replaced an older one, which then reappears; index entries may be left whose rows are lost, which
//! `Engine::drop_dangling_entries` removes.

use std::sync::Arc;

use melba_segment::{BlockCache, KeySegmentReader, TableSegmentReader};
use melba_store::{
    ColdDirectory, EngineError, Files, IndexOutput, Manifest, ManifestState, Persistence, Result, SegmentFile, Sizes,
    TableOutput, segment_name, segment_number,
};
use melba_threads::atomic::Ordering;
use melba_types::row::RowLayout;
use melba_types::{Csn, RowId, TreeId};
use melba_vfs::{Directory, SyncSwitch};

use crate::commit::{Operation, decode};
use crate::options::EngineOptions;

/// Rows that are abandoned together when one of them cannot be read.
const ROWS_MIN: usize = 16;

/// Makes a folder openable, and lists the losses: none when there was no damage.
///
/// # Errors
/// `Corrupt` when not even the manifest's beginning can be read, which says which file is whose; failures of the file system.
pub(crate) fn salvage(directory: &Arc<dyn Directory>) -> Result<Vec<String>> {
    let folder = |name| directory.subdirectory(name).map_err(|e| EngineError::io("open the data directory", e));
    let (segments, log) = (folder("segments")?, folder("wal")?);
    let segments = ColdDirectory::new(segments, Arc::clone(directory));
    let (mut state, damage) = Manifest::read_beginning(&**directory)?;
    let mut salvage = Salvage::new(segments, &state)?;
    salvage.losses.extend(damage.map(|e| format!("{e}: what it said from there on")));
    salvage.trees(&mut state)?;
    salvage.log(&*log, &state)?;
    if salvage.losses.is_empty() {
        return Ok(Vec::new());
    }
    // Facts that were certain about the log are not certain any more.
    state.log = None;
    state.records += 1;
    state.next_file = salvage.files.next_file();
    Manifest::replace(&**directory, &state)?;
    Ok(salvage.losses)
}

struct Salvage {
    segments: Arc<ColdDirectory>,
    cache: Arc<BlockCache>,
    files: Arc<Files>,
    losses: Vec<String>,
}

impl Salvage {
    fn new(segments: Arc<ColdDirectory>, state: &ManifestState) -> Result<Salvage> {
        let names = segments.list().map_err(|e| EngineError::io("list the segments", e))?;
        let next = names.iter().filter_map(|name| segment_number(name)).map(|file| file + 1).fold(state.next_file, u64::max);
        // A segment stays one.
        let sizes = Sizes { segment_bytes: usize::MAX, ..EngineOptions::default().sizes() };
        let files = Arc::new(Files::new(&segments, &SyncSwitch::new(false), sizes, next));
        Ok(Salvage { segments, cache: BlockCache::new(16 << 20), files, losses: Vec::new() })
    }

    /// The segments that the manifest names.
    fn trees(&mut self, state: &mut ManifestState) -> Result<()> {
        for (tree, files) in &mut state.segments {
            let record = state.trees.get(tree);
            // A crash may have taken segments that the next start forgets.
            if !state.clean && record.is_some_and(|t| t.persistence != Persistence::Logged) {
                continue;
            }
            let is_index = record.is_some_and(|t| t.is_index);
            let mut kept = Vec::with_capacity(files.len());
            for file in &*files {
                kept.extend(self.segment(*tree, *file, is_index)?);
            }
            *files = kept;
        }
        Ok(())
    }

    /// A segment, or a new one with its readable part; `None` when nothing is readable.
    fn segment(&mut self, tree: TreeId, file: SegmentFile, is_index: bool) -> Result<Option<SegmentFile>> {
        let salvaged = match is_index {
            true => self.index_segment(tree, file),
            false => self.table_segment(tree, file),
        };
        match salvaged {
            Err(e) if e.is_damage() => {
                self.losses.push(format!("tree {tree}: {e}: all that the file had"));
                Ok(None)
            }
            result => result,
        }
    }

    fn table_segment(&mut self, tree: TreeId, file: SegmentFile) -> Result<Option<SegmentFile>> {
        let name = segment_name(file.file);
        let reader = TableSegmentReader::open_assigned(&*self.segments, &name, &self.cache, file.assigned)?;
        file.recognised(reader.meta().footer_crc)?;
        if self.segments.is_cold(file.file) {
            // Its object is not looked at.
            return Ok(Some(file));
        }
        let Some(damage) = damage_of(reader.verify().map_err(EngineError::from))? else { return Ok(Some(file)) };
        let layout = Arc::new(RowLayout::new(reader.kinds().to_vec()));
        let mut rows = SalvagedRows {
            projection: (0..reader.kinds().len()).collect(),
            output: TableOutput::new(&self.files, false, layout, usize::MAX),
            reader,
            last: None,
            lost: Vec::new(),
        };
        for (group, summary) in rows.reader.row_groups().to_vec().iter().enumerate() {
            rows.read(group, 0, summary.rows)?;
        }
        let lost = rows.lost.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        self.losses.push(format!("tree {tree}: {damage}: {lost}"));
        Ok(rows.output.finish()?.first().map(|run| run.segment))
    }

    fn index_segment(&mut self, tree: TreeId, file: SegmentFile) -> Result<Option<SegmentFile>> {
        let name = segment_name(file.file);
        let reader = KeySegmentReader::open_assigned(&*self.segments, &name, &self.cache, file.assigned)?;
        file.recognised(reader.meta().footer_crc)?;
        let Some(damage) = damage_of(reader.verify().map_err(EngineError::from))? else { return Ok(Some(file)) };
        let mut output = IndexOutput::new(&self.files, false, usize::MAX);
        let mut last: Option<(Vec<u8>, Csn)> = None;
        let bounds: Vec<Vec<u8>> = reader.sample(usize::MAX).map(<[u8]>::to_vec).collect();
        for (block, lower) in bounds.iter().enumerate() {
            let upper = bounds.get(block + 1);
            let mut cursor = reader.cursor();
            let mut found = cursor.seek(lower);
            while let Ok(true) = found
                && upper.is_none_or(|upper| cursor.key() < upper.as_slice())
            {
                // Of one key the newest version comes first. A version out of order was read behind a damaged block.
                let is_next = last
                    .as_ref()
                    .is_none_or(|(key, csn)| key.as_slice() < cursor.key() || key == cursor.key() && *csn > cursor.csn());
                if is_next {
                    output.push(cursor.key(), cursor.csn(), cursor.tombstone())?;
                    last = Some((cursor.key().to_vec(), cursor.csn()));
                }
                found = cursor.next();
            }
            damage_of(found.map_err(EngineError::from))?;
        }
        let lost = reader.meta().entries.saturating_sub(output.entries() as u64);
        self.losses.push(format!("tree {tree}: {damage}: {lost} index entries"));
        Ok(output.finish()?.first().map(|run| run.segment))
    }

    /// The log as far as it can be read, and the segments that it links.
    fn log(&mut self, log: &dyn Directory, state: &ManifestState) -> Result<()> {
        let mut failure = None;
        let cut = melba_wal::salvage(log, state.replay, state.belongs(), state.log, |record, payload| {
            let mut links = Vec::new();
            let decoded = decode(record.payload, &mut |operation| {
                if let Operation::LinkSegments { tree, files } = operation {
                    links.extend(files.into_iter().map(|(file, crc)| (tree, file, crc)));
                }
            });
            if decoded.is_none() {
                self.losses.push(format!("the log record at {} is malformed: a commit", record.lsn));
            }
            for (tree, file, crc) in links {
                let segment = SegmentFile { file, assigned: record.csn, footer_crc: crc };
                let result = self.linked(tree, segment, state).map(|crc_now| replace_crc(payload, (file, crc), crc_now));
                failure = failure.take().or(result.err());
            }
        })?;
        if let Some(reason) = cut {
            self.losses.push(format!("log: {reason}: all commits from there on, but for what segments have of them"));
        }
        failure.map_or(Ok(()), Err)
    }

    /// A segment that the log links must keep its name. Returns the checksum of its footer.
    fn linked(&mut self, tree: TreeId, segment: SegmentFile, state: &ManifestState) -> Result<u32> {
        if state.is_named(segment.file) {
            return Ok(segment.footer_crc);
        }
        // The manifest may not know the number yet.
        self.files.next.fetch_max(segment.file + 1, Ordering::SeqCst);
        // Which kind of tree it is, its bytes say when the manifest does not know the tree yet.
        let name = segment_name(segment.file);
        let is_index = match state.trees.get(&tree) {
            Some(record) => record.is_index,
            None => KeySegmentReader::open(&*self.segments, &name, &self.cache).is_ok(),
        };
        let salvaged = match self.segment(tree, segment, is_index)? {
            Some(same) if same.file == segment.file => return Ok(segment.footer_crc),
            Some(salvaged) => salvaged,
            None => self.nothing(is_index)?,
        };
        // It may be missing.
        let _ = self.segments.remove(&name);
        let io = |e| EngineError::io(format!("rename a segment to \"{name}\""), e);
        self.segments.rename(&segment_name(salvaged.file), &name).map_err(io)?;
        Ok(salvaged.footer_crc)
    }

    /// A segment with a tombstone for a row or entry that never existed.
    fn nothing(&self, is_index: bool) -> Result<SegmentFile> {
        let made = match is_index {
            true => {
                let mut output = IndexOutput::new(&self.files, false, usize::MAX);
                output.push(&RowId(0).0.to_be_bytes(), Csn(1), true)?;
                output.finish()?.first().map(|run| run.segment)
            }
            false => {
                let mut output = TableOutput::new(&self.files, false, Arc::new(RowLayout::new(Vec::new())), usize::MAX);
                output.push_values(RowId(0), Csn(1), true, &[], 0)?;
                output.finish()?.first().map(|run| run.segment)
            }
        };
        made.ok_or(EngineError::Misuse("an output had one version"))
    }
}

/// Damage is an answer here, other failures are not.
fn damage_of<T>(result: Result<T>) -> Result<Option<EngineError>> {
    match result {
        Ok(_) => Ok(None),
        Err(e) if e.is_damage() => Ok(Some(e)),
        Err(e) => Err(e),
    }
}

/// A record names a file by number and checksum.
fn replace_crc(payload: &mut [u8], (file, crc): (u64, u32), by: u32) {
    let mut named = file.to_le_bytes().to_vec();
    named.extend(crc.to_le_bytes());
    if let Some(at) = payload.windows(named.len()).position(|bytes| bytes == named) {
        payload[at + 8..at + 12].copy_from_slice(&by.to_le_bytes());
    }
}

/// Versions of rows on their way from a damaged segment into another one.
struct SalvagedRows {
    reader: Arc<TableSegmentReader>,
    projection: Vec<usize>,
    output: TableOutput,
    last: Option<(RowId, Csn)>,
    lost: Vec<Lost>,
}

/// Versions of rows that cannot be read.
struct Lost {
    versions: usize,
    /// The row ids between which they are.
    from: RowId,
    to: RowId,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of rows {} to {}", self.versions, self.from, self.to)
    }
}

impl SalvagedRows {
    /// Copies rows of a group: all, or the readable part of either half.
    fn read(&mut self, group: usize, from: usize, to: usize) -> Result<()> {
        let mut reader = self.reader.group(group, &self.projection);
        let read = reader.read(from..to).map_err(EngineError::from);
        match read {
            Ok(data) => {
                for (at, id) in data.row_ids.iter().enumerate() {
                    let csn = data.csns.get(at);
                    // A segment's rows ascend, a row's versions descend; anything else is not a row.
                    if self.last.is_some_and(|(last, newer)| (last, std::cmp::Reverse(newer)) >= (*id, std::cmp::Reverse(csn))) {
                        self.lose(*id, *id, 1);
                        continue;
                    }
                    let dead = data.tombstones.as_ref().is_some_and(|t| t.get(at));
                    self.output.push_values(*id, csn, dead, &data.columns, at)?;
                    self.last = Some((*id, csn));
                }
                Ok(())
            }
            Err(e) if !e.is_damage() => Err(e),
            Err(_) if to - from > ROWS_MIN => {
                let half = from + (to - from) / 2;
                self.read(group, from, half)?;
                self.read(group, half, to)
            }
            Err(_) => {
                let summary = &self.reader.row_groups()[group];
                let (mut first, mut last) = (summary.row_id_min, summary.row_id_max);
                if let Ok(ids) = reader.row_ids(from..to)
                    && let (Some(from), Some(to)) = (ids.first(), ids.last())
                {
                    (first, last) = (*from, *to);
                }
                self.lose(first, last, to - from);
                Ok(())
            }
        }
    }

    /// Notes a loss, together with the one before where they touch.
    fn lose(&mut self, from: RowId, to: RowId, versions: usize) {
        match self.lost.last_mut() {
            Some(last) if last.to.0 + 1 >= from.0 && from >= last.from => {
                last.versions += versions;
                last.to = last.to.max(to);
            }
            _ => self.lost.push(Lost { versions, from, to }),
        }
    }
}
