//! `melba check`: every checksum of a data directory, offline.

use std::sync::Arc;

use melba_segment::{BlockCache, KeySegmentReader, TableSegmentReader};
use melba_vfs::Directory;

use crate::batch;
use crate::error::{EngineError, Result};
use crate::levels::segment_name;
use crate::manifest::Manifest;
use crate::tree::Persistence;

/// How many segments the manifest names, and what is wrong with them or the log. A damaged manifest is an error: nothing else
/// can be judged then.
pub(crate) fn verify(directory: &Arc<dyn Directory>) -> Result<(usize, Vec<String>)> {
    let folder = |name| directory.subdirectory(name).map_err(|e| EngineError::io("open the data directory", e));
    let (segments, log) = (folder("segments")?, folder("wal")?);
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
            let result = match is_index {
                true => KeySegmentReader::open(&*segments, &name, &cache).and_then(|r| r.verify().map(|()| r.meta().footer_crc)),
                false => {
                    TableSegmentReader::open(&*segments, &name, &cache).and_then(|r| r.verify().map(|()| r.meta().footer_crc))
                }
            };
            let result = result.map_err(EngineError::from).and_then(|crc| file.recognised(crc));
            problems.extend(result.err().map(|e| format!("tree {tree}: {e}")));
        }
    }
    let replayed = melba_wal::replay(&*log, state.replay, state.belongs(), state.log, |record| {
        if batch::decode(record.payload, &mut |_| {}).is_none() {
            problems.push(format!("the log record at {} is malformed", record.lsn));
        }
        Ok::<(), melba_wal::WalError>(())
    });
    problems.extend(replayed.err().map(|e| e.to_string()));
    Ok((count, problems))
}
