//! Changes that move from memory into private segments, as a bulk load's rows do.

use std::sync::Arc;

use melba_store::{EntryMerge, Files, IndexOutput, IndexRun, Result, TableOutput, TreeData};
use melba_threads::atomic::Ordering;
use melba_types::Csn;

use super::{Change, ChangeKind, Heads, Link, PrivateRun, TreeHeads, WriteSet};

/// The size of a change beside its row or key: itself, and its place in the heads.
const CHANGE_BYTES: usize = 112;
/// So many segments of an index's entries are merged into one.
const MERGED_RUNS: usize = 8;
/// How often entries are merged at most.
const MERGES_MAX: u8 = 3;

impl WriteSet {
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.changes.len() * CHANGE_BYTES
    }

    /// The command of the oldest change that may move.
    pub fn first_movable(&self) -> Option<u32> {
        self.changes.iter().find(|c| self.is_movable(c)).map(|c| c.command)
    }

    fn is_movable(&self, change: &Change) -> bool {
        let moves = matches!(change.kind, ChangeKind::Row { .. } | ChangeKind::Key { .. });
        moves && self.trees[change.tree as usize].tree.is_flushed()
    }

    /// Moves all changes of rows and entries by commands before `end` into one set of segments.
    pub fn move_changes(&mut self, end: u32, files: &Arc<Files>) -> Result<()> {
        let mut links = Vec::new();
        for slot in 0..self.trees.len() {
            self.write_changes(slot, end, files, &mut links)?;
        }
        // Nothing fails from here on.
        let mut kept_at: Vec<u32> = Vec::with_capacity(self.changes.len());
        let mut kept: Vec<Change> = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            if change.command < end && self.is_movable(&change) {
                kept_at.push(u32::MAX);
                let written = &mut self.trees[change.tree as usize];
                match change.kind {
                    ChangeKind::Row { bytes, live, .. } => {
                        self.bytes -= bytes.map_or(0, |b| b.len());
                        written.live -= i64::from(live);
                    }
                    ChangeKind::Key { key, live } => {
                        self.bytes -= key.as_slice().len();
                        written.live -= if live { 1 } else { -1 };
                    }
                    _ => {}
                }
                continue;
            }
            kept_at.push(kept.len() as u32);
            let older = kept_at.get(change.older as usize).copied().unwrap_or(u32::MAX);
            kept.push(Change { older, ..change });
        }
        self.changes = kept;
        for written in &mut self.trees {
            match &mut written.heads {
                TreeHeads::Rows(heads) => heads.renumber(&kept_at),
                TreeHeads::Keys(heads) => heads.renumber(&kept_at),
            }
        }
        // Links are in the order of their commands; of one command, the later ones are newer.
        let at = self.links.partition_point(|l| l.command < end);
        self.links.splice(at..at, links);
        Ok(())
    }

    /// Writes the changes of commands before `end` to one tree.
    fn write_changes(&self, slot: usize, end: u32, files: &Arc<Files>, links: &mut Vec<Link>) -> Result<()> {
        let written = &self.trees[slot];
        let tree = &written.tree;
        if written.is_empty() || !tree.is_flushed() {
            return Ok(());
        }
        let of_tree = |c: &&Change| c.tree as usize == slot && c.command < end && self.is_movable(c);
        let Some(command) = self.changes.iter().rev().find(of_tree).map(|c| c.command) else { return Ok(()) };
        let mut live = 0;
        self.changes.iter().filter(of_tree).for_each(|c| match &c.kind {
            ChangeKind::Row { live: l, .. } => live += i64::from(*l),
            ChangeKind::Key { live: l, .. } => live += if *l { 1 } else { -1 },
            _ => {}
        });
        let runs: Vec<PrivateRun> = match (&tree.data, &written.heads) {
            (TreeData::Table(table), TreeHeads::Rows(heads)) => {
                let own = self.layouts.iter().find(|(id, _)| *id == tree.id).map(|(_, layout)| Arc::clone(layout));
                let layout = own.unwrap_or_else(|| Arc::clone(&table.layout.read()));
                let mut output = TableOutput::new(files, tree.is_synced(), layout, files.segment_bytes)
                    .dense_columns(tree.dense_columns.load(Ordering::Relaxed));
                for change in heads.all().filter_map(|head| self.seen(head, end)) {
                    if let ChangeKind::Row { row, bytes, .. } = &change.kind {
                        output.push_row(*row, Csn(0), bytes.as_deref())?;
                    }
                }
                output.finish()?.into_iter().map(PrivateRun::Table).collect()
            }
            (TreeData::Index(_), TreeHeads::Keys(heads)) => {
                let mut output = IndexOutput::new(files, tree.is_synced(), files.segment_bytes);
                for change in heads.all().filter_map(|head| self.seen(head, end)) {
                    if let ChangeKind::Key { key, live } = &change.kind {
                        output.push(key.as_slice(), Csn(0), !live)?;
                    }
                }
                output.finish()?.into_iter().map(PrivateRun::Index).collect()
            }
            _ => unreachable!("the heads are of the tree's kind"),
        };
        for run in runs {
            links.push(Link { command, tree: Arc::clone(tree), run, live: std::mem::take(&mut live), spilled: Some(0) });
        }
        Ok(())
    }

    /// Merges segments of index entries, so that a lookup need not search many.
    pub fn merge_links(&mut self, cuts: &[u32], files: &Arc<Files>) -> Result<()> {
        for level in 0..MERGES_MAX {
            let wanted = MERGED_RUNS.pow(u32::from(level) + 1);
            while let Some(places) = self.mergeable(level, wanted, cuts) {
                let runs: Vec<Arc<IndexRun>> = places.iter().filter_map(|at| self.links[*at].run.as_index()).collect();
                let Some(last) = places.last().map(|at| &self.links[*at]) else { break };
                let (command, tree) = (last.command, Arc::clone(&last.tree));
                let merged = merge_entries(&runs, tree.is_synced(), files)?;
                let mut live: i64 = places.iter().map(|at| self.links[*at].live).sum();
                let new = merged.into_iter().map(|run| {
                    let live = std::mem::take(&mut live);
                    Link { command, tree: Arc::clone(&tree), run: PrivateRun::Index(run), live, spilled: Some(level + 1) }
                });
                let new: Vec<Link> = new.collect();
                let at = places[places.len() - 1] + 1;
                self.links.splice(at..at, new);
                for at in places.into_iter().rev() {
                    self.links.remove(at).run.discard();
                }
            }
        }
        Ok(())
    }

    /// Places of `wanted` links of one index that were merged `level` times, with no cut between their commands and no other
    /// link of the index between them.
    fn mergeable(&self, level: u8, wanted: usize, cuts: &[u32]) -> Option<Vec<usize>> {
        let interval = |command: u32| cuts.partition_point(|cut| *cut <= command);
        for (at, link) in self.links.iter().enumerate() {
            if link.spilled != Some(level) || link.run.as_index().is_none() {
                continue;
            }
            let of_tree = self.links.iter().enumerate().skip(at).filter(|(_, l)| l.tree.id == link.tree.id);
            let alike = of_tree
                .take_while(|(_, l)| l.spilled == Some(level) && interval(l.command) == interval(link.command))
                .map(|(at, _)| at)
                .take(wanted);
            let places: Vec<usize> = alike.collect();
            if places.len() == wanted {
                return Some(places);
            }
        }
        None
    }
}

/// The newest state of each entry of some runs, given oldest first.
fn merge_entries(runs: &[Arc<IndexRun>], synced: bool, files: &Arc<Files>) -> Result<Vec<Arc<IndexRun>>> {
    let mut output = IndexOutput::new(files, synced, files.segment_bytes);
    // The newest first: of equal entries its state counts.
    let mut merge = EntryMerge::new(runs.iter().rev())?;
    let mut last: Vec<u8> = Vec::new();
    let mut first = true;
    while let Some(cursor) = merge.least() {
        if std::mem::take(&mut first) || cursor.key() != last {
            last.clear();
            last.extend_from_slice(cursor.key());
            output.push(&last, Csn(0), cursor.tombstone())?;
        }
        merge.advance()?;
    }
    output.finish()
}

impl PrivateRun {
    fn as_index(&self) -> Option<Arc<IndexRun>> {
        match self {
            PrivateRun::Index(run) => Some(Arc::clone(run)),
            PrivateRun::Table(_) => None,
        }
    }
}

impl<K: Ord + Clone> Heads<K> {
    /// The heads in key order.
    fn all(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Heads::List(list) => Box::new(list.iter().map(|(_, head)| *head)),
            Heads::Tree(tree) => Box::new(tree.values().copied()),
        }
    }

    /// Moves heads to the new places of changes; keys whose newest change was removed lose their head.
    fn renumber(&mut self, places: &[u32]) {
        let follow = |head: &mut u32| {
            *head = places[*head as usize];
            *head != u32::MAX
        };
        match self {
            Heads::List(list) => list.retain_mut(|(_, head)| follow(head)),
            Heads::Tree(tree) => tree.retain(|_, head| follow(head)),
        }
    }
}
