//! Rows with distinct keys, in any number: the keys seen are kept as long as they fit; rows with other keys are then split by key
//! into files, and each file is a later pass.

use hashbrown::HashSet;
use melba_engine::Held;
use melba_types::{Batch, ByteStrings, Result};

use crate::ExecContext;
use crate::key_overhead::KEY_OVERHEAD_BYTES;
use melba_plan::NodeStorage;
use melba_spill::{Partitions, Run, RunReader};

#[derive(Default)]
pub(super) struct Dedup {
    level: u32,
    seen: HashSet<Box<[u8]>>,
    held: Option<Held>,
    bytes: usize,
    /// Rows with keys that do not fit in this pass.
    elsewhere: Option<Partitions>,
    /// Later passes, the next one last.
    work: Vec<(Run, u32)>,
    /// Passes, most memory, bytes of files: for EXPLAIN ANALYZE.
    used: (u64, u64, u64),
}

impl Dedup {
    /// The rows of a batch with new keys. Others may come in a later pass.
    pub fn take(&mut self, ctx: &ExecContext, batch: &Batch, keys: &ByteStrings) -> Result<Vec<u32>> {
        let (mut kept, mut out, mut parts) = (Vec::with_capacity(batch.rows), Vec::new(), Vec::new());
        if self.elsewhere.is_none() {
            self.seen.reserve(batch.rows);
        }
        for i in 0..batch.rows {
            let key = keys.get(i);
            if let Some(elsewhere) = &self.elsewhere {
                if !self.seen.contains(key) {
                    out.push(i as u32);
                    parts.push(elsewhere.part_of(key));
                }
                continue;
            }
            let before = self.seen.len();
            self.seen.get_or_insert_with(key, |key| key.into());
            if self.seen.len() > before {
                self.bytes += key.len() + KEY_OVERHEAD_BYTES;
                kept.push(i as u32);
            }
        }
        let resources = ctx.resources();
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.push(batch.take(&out), &parts)?;
        } else {
            let held = self.held.get_or_insert_with(|| resources.held());
            if !resources.holds(held, self.bytes, resources.hash_bytes) {
                self.elsewhere = Some(Partitions::new(resources, resources.hash_bytes, self.level)?);
            }
        }
        Ok(kept)
    }

    /// Ends a pass: the rows of the next one, if there is one.
    pub fn next_pass(&mut self) -> Result<Option<RunReader>> {
        self.used.0 = self.used.0.max(1);
        self.used.1 = self.used.1.max(self.bytes as u64);
        if let Some(elsewhere) = self.elsewhere.take() {
            self.used.2 += elsewhere.bytes();
            let runs: Vec<Run> = elsewhere.finish()?.into_iter().filter(|r| r.rows > 0).collect();
            self.used.0 += runs.len() as u64;
            self.work.extend(runs.into_iter().rev().map(|run| (run, self.level + 1)));
        }
        self.seen = HashSet::new();
        self.held = None;
        self.bytes = 0;
        let Some((run, level)) = self.work.pop() else { return Ok(None) };
        self.level = level;
        Ok(Some(run.reader()))
    }

    pub fn storage(&self) -> NodeStorage {
        let (batches, memory, disk) = self.used;
        NodeStorage::HashAggregate { batches, memory, disk }
    }
}
