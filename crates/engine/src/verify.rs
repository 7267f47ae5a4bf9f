//! `melba check`: checks every checksum of a data directory, offline, and whether indexes match their tables.

use std::ops::Bound;
use std::sync::Arc;

use melba_segment::{BlockCache, KeySegmentReader, TableSegmentReader};
use melba_store::{ColdDirectory, EngineError, Manifest, Persistence, Result, segment_name};
use melba_types::TreeId;
use melba_vfs::Directory;
use roaring::RoaringTreemap;

use crate::commit::{Durability, decode};
use crate::engine::Engine;
use crate::view::Isolation;

/// The number of segments in the manifest, and the problems of them or the log. A damaged manifest is an error: nothing else can
/// be checked then.
pub(crate) fn verify(directory: &Arc<dyn Directory>) -> Result<(usize, Vec<String>)> {
    let folder = |name| directory.subdirectory(name).map_err(|e| EngineError::io("open the data directory", e));
    let (segments, log) = (folder("segments")?, folder("wal")?);
    let segments = ColdDirectory::new(segments, Arc::clone(directory));
    // Finds the segments that are in stores.
    segments.list().map_err(|e| EngineError::io("list the segments", e))?;
    let state = Manifest::read(&**directory)?;
    let cache = BlockCache::new(16 << 20);
    let mut problems = Vec::new();
    let mut count = 0;
    for (tree, files) in &state.segments {
        let record = state.trees.get(tree);
        let is_index = record.is_some_and(|t| t.is_index);
        // A crash may have taken segments that the next start forgets.
        let is_forgotten = !state.clean && record.is_some_and(|t| t.persistence != Persistence::Logged);
        count += files.len();
        for file in files.iter().filter(|_| !is_forgotten) {
            let name = segment_name(file.file);
            // Of a segment in a store only what is here.
            let is_here = !segments.is_cold(file.file);
            let result = match is_index {
                true => KeySegmentReader::open(&*segments, &name, &cache).and_then(|r| r.verify().map(|()| r.meta().footer_crc)),
                false => TableSegmentReader::open(&*segments, &name, &cache)
                    .and_then(|r| if is_here { r.verify().map(|()| r) } else { Ok(r) })
                    .map(|r| r.meta().footer_crc),
            };
            let result = result.map_err(EngineError::from).and_then(|crc| file.recognised(crc));
            problems.extend(result.err().map(|e| format!("tree {tree}: {e}")));
        }
    }
    let replayed = melba_wal::replay(&*log, state.replay, state.belongs(), state.log, |record| {
        if decode(record.payload, &mut |_| {}).is_none() {
            problems.push(format!("the log record at {} is malformed", record.lsn));
        }
        Ok::<(), melba_wal::WalError>(())
    });
    problems.extend(replayed.err().map(|e| e.to_string()));
    Ok((count, problems))
}

impl Engine {
    /// Compares each index with its table: every entry has a row, and, when `is_whole` says that the index has all rows, every
    /// row has an entry. Returns the problems found.
    pub fn check_indexes(&self, is_whole: impl Fn(TreeId) -> bool) -> Vec<String> {
        let mut indexes: Vec<(TreeId, TreeId)> =
            self.shared.store.all_trees().iter().filter(|t| t.as_index().is_some()).map(|t| (t.table, t.id)).collect();
        indexes.sort_unstable();
        let mut problems = Vec::new();
        for of_table in indexes.chunk_by(|a, b| a.0 == b.0) {
            let table = of_table[0].0;
            match self.live_rows(table) {
                Ok(rows) => {
                    for (_, index) in of_table {
                        let found = self.compare(*index, &rows, is_whole(*index));
                        problems.extend(found.unwrap_or_else(|e| Some(e.to_string())).map(|p| format!("tree {index}: {p}")));
                    }
                }
                Err(e) => problems.push(format!("tree {table}: {e}")),
            }
        }
        problems
    }

    /// Removes index entries whose rows do not exist, which a salvage may leave; returns their number.
    pub fn drop_dangling_entries(&self) -> Result<u64> {
        let trees = self.shared.store.all_trees();
        let t = self.begin(Isolation::RepeatableRead)?;
        let mut dropped = 0;
        for index in trees.iter().filter(|t| t.as_index().is_some() && !t.is_damaged()) {
            let rows = self.live_rows(index.table)?;
            let mut scan = t.index(index.id).scan(t.statement_view(), Bound::Unbounded, Bound::Unbounded, false)?;
            while let Some((key, row)) = scan.next()? {
                if !rows.contains(row.0) {
                    t.index(index.id).delete(key, row)?;
                    dropped += 1;
                }
            }
        }
        t.commit(Durability::Sync)?;
        Ok(dropped)
    }

    fn live_rows(&self, table: TreeId) -> Result<RoaringTreemap> {
        let t = self.begin(Isolation::RepeatableRead)?;
        let mut scan = t.scan(t.statement_view(), table, &[], &[], &[], None)?;
        let mut rows = RoaringTreemap::new();
        while let Some(batch) = scan.next()? {
            rows.extend(batch.row_ids.iter().map(|id| id.0));
        }
        Ok(rows)
    }

    fn compare(&self, index: TreeId, rows: &RoaringTreemap, is_whole: bool) -> Result<Option<String>> {
        let t = self.begin(Isolation::RepeatableRead)?;
        let mut scan = t.index(index).scan(t.statement_view(), Bound::Unbounded, Bound::Unbounded, false)?;
        let (mut found, mut dangling) = (RoaringTreemap::new(), RoaringTreemap::new());
        while let Some((_, id)) = scan.next()? {
            (if rows.contains(id.0) { &mut found } else { &mut dangling }).insert(id.0);
        }
        if let Some(first) = dangling.min() {
            return Ok(Some(format!("entries of {} rows that are not in the table, row {first} first", dangling.len())));
        }
        let missing = rows - &found;
        Ok(missing.min().filter(|_| is_whole).map(|first| format!("{} rows have no entry, row {first} first", missing.len())))
    }
}
