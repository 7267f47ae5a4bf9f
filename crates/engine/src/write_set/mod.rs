//! A transaction's private changes.
//!
//! All changes are one list in the order they were made; each names the older one of the same key. So the head has the newest
//! change of a key, walking back finds the change that a command may see, and rolling back to a savepoint cuts the list.
//!
//! Invariants:
//! 1. Command numbers never fall along the list, nor along the links.
//! 2. `heads` of a tree maps each changed key to its newest change in memory, in key order.
//! 3. A private segment that was linked before a change in memory is older than it, also where both are of one command.

mod bulk;
mod moved;
mod spill;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use melba_store::{IndexRun, KeyBytes, Persistence, RowBytes, RowCounts, SegmentFile, Sequence, TableRun, Tree, TreeData};
use melba_types::row::RowLayout;
use melba_types::{RowId, TreeId};

pub(crate) use bulk::{BulkWriter, Pool};
pub(crate) use moved::MovedRows;

const NONE: u32 = u32::MAX;

/// One change.
#[derive(Clone)]
pub(crate) struct Change {
    pub command: u32,
    /// Position of the tree in `WriteSet::trees`; meaningless for changes of the schema.
    pub(crate) tree: u32,
    /// The previous change of the same key, or `NONE`.
    pub(crate) older: u32,
    pub kind: ChangeKind,
}

/// The kinds of changes.
#[derive(Clone)]
pub(crate) enum ChangeKind {
    Row {
        row: RowId,
        bytes: Option<RowBytes>,
        live: i8,
    },
    Key {
        key: KeyBytes,
        live: bool,
    },
    CreateTree(Arc<Tree>),
    DropTree(Arc<Tree>),
    /// The layout before, when this transaction had extended the tree already.
    ExtendTable {
        tree: Arc<Tree>,
        before: Option<Arc<RowLayout>>,
    },
    CreateSequence(Arc<Sequence>),
    DropSequence(Arc<Sequence>),
}

/// Rows or entries in a segment that only this transaction knows.
pub(crate) struct Link {
    /// The command that wrote them, or the last of several.
    pub command: u32,
    pub tree: Arc<Tree>,
    pub run: PrivateRun,
    /// Rows or entries added less those removed.
    pub live: i64,
    /// Changes moved out of memory (`spill`): unlike a bulk load's rows they may replace committed ones. The number tells how
    /// often they were merged.
    pub spilled: Option<u8>,
}

/// A segment of a bulk load, or of changes that were moved out of memory.
#[derive(Clone)]
pub(crate) enum PrivateRun {
    Table(Arc<TableRun>),
    Index(Arc<IndexRun>),
}

impl PrivateRun {
    pub fn segment(&self) -> SegmentFile {
        match self {
            PrivateRun::Table(run) => run.segment,
            PrivateRun::Index(run) => run.segment,
        }
    }

    fn of_tree(self, tree: TreeId) -> PrivateRun {
        match self {
            PrivateRun::Table(run) => PrivateRun::Table(run.of_tree(tree)),
            PrivateRun::Index(run) => PrivateRun::Index(run.of_tree(tree)),
        }
    }

    /// Rows or entries, tombstones too.
    pub fn len(&self) -> u64 {
        match self {
            PrivateRun::Table(run) => run.reader.meta().rows,
            PrivateRun::Index(run) => run.reader.meta().entries,
        }
    }

    /// Rolled back: deletes the file.
    pub fn discard(&self) {
        match self {
            PrivateRun::Table(run) => run.discard(),
            PrivateRun::Index(run) => run.discard(),
        }
    }
}

/// Ordered map of heads. Most transactions change a few keys, or many in ascending order: a sorted list serves both without
/// allocating, and is replaced by a tree when neither holds.
#[derive(Clone)]
pub(crate) enum Heads<K> {
    List(Vec<(K, u32)>),
    Tree(BTreeMap<K, u32>),
}

const LIST_MAX: usize = 64;

/// Keys and heads of a part of `Heads`, ascending.
enum HeadsRange<'a, K> {
    List(std::slice::Iter<'a, (K, u32)>),
    Tree(std::collections::btree_map::Range<'a, K, u32>),
}

impl<'a, K> Iterator for HeadsRange<'a, K> {
    type Item = (&'a K, u32);

    fn next(&mut self) -> Option<(&'a K, u32)> {
        match self {
            HeadsRange::List(list) => list.next().map(|(k, h)| (k, *h)),
            HeadsRange::Tree(tree) => tree.next().map(|(k, h)| (k, *h)),
        }
    }
}

impl<K> DoubleEndedIterator for HeadsRange<'_, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            HeadsRange::List(list) => list.next_back().map(|(k, h)| (k, *h)),
            HeadsRange::Tree(tree) => tree.next_back().map(|(k, h)| (k, *h)),
        }
    }
}

impl<K: Ord + Clone> Heads<K> {
    fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: std::borrow::Borrow<Q>,
    {
        match self {
            Heads::List(list) => list.binary_search_by(|(k, _)| k.borrow().cmp(key)).ok().map(|at| list[at].1),
            Heads::Tree(tree) => tree.get(key).copied(),
        }
    }

    /// Sets the head of a key and returns the previous one.
    fn set(&mut self, key: K, head: u32) -> Option<u32> {
        match self {
            Heads::List(list) => {
                let at = match list.last() {
                    Some((last, _)) if *last < key => list.len(),
                    _ => match list.binary_search_by(|(k, _)| k.cmp(&key)) {
                        Ok(at) => return Some(std::mem::replace(&mut list[at].1, head)),
                        Err(at) => at,
                    },
                };
                if at < list.len() && list.len() >= LIST_MAX {
                    let mut tree: BTreeMap<K, u32> = std::mem::take(list).into_iter().collect();
                    tree.insert(key, head);
                    *self = Heads::Tree(tree);
                } else {
                    list.insert(at, (key, head));
                }
                None
            }
            Heads::Tree(tree) => tree.insert(key, head),
        }
    }

    fn remove(&mut self, key: &K) {
        match self {
            Heads::List(list) => {
                if let Ok(at) = list.binary_search_by(|(k, _)| k.cmp(key)) {
                    list.remove(at);
                }
            }
            Heads::Tree(tree) => {
                tree.remove(key);
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Heads::List(list) => list.len(),
            Heads::Tree(tree) => tree.len(),
        }
    }

    fn clear(&mut self) {
        match self {
            Heads::List(list) if list.capacity() <= 4096 => list.clear(),
            _ => *self = Heads::List(Vec::new()),
        }
    }

    /// Keys and heads from the first key that is not `before`, ascending.
    fn range<'a, Q: Ord + ?Sized + 'a>(
        &'a self,
        lower: std::ops::Bound<&'a Q>,
        upper: std::ops::Bound<&'a Q>,
    ) -> HeadsRange<'a, K>
    where
        K: std::borrow::Borrow<Q>,
    {
        use std::ops::Bound;
        match self {
            Heads::List(list) => {
                let start = match lower {
                    Bound::Unbounded => 0,
                    Bound::Included(l) => list.partition_point(|(k, _)| k.borrow() < l),
                    Bound::Excluded(l) => list.partition_point(|(k, _)| k.borrow() <= l),
                };
                let end = match upper {
                    Bound::Unbounded => list.len(),
                    Bound::Included(u) => list.partition_point(|(k, _)| k.borrow() <= u),
                    Bound::Excluded(u) => list.partition_point(|(k, _)| k.borrow() < u),
                };
                HeadsRange::List(list[start..end.max(start)].iter())
            }
            Heads::Tree(tree) => HeadsRange::Tree(tree.range((lower, upper))),
        }
    }
}

#[derive(Clone)]
pub(crate) enum TreeHeads {
    Rows(Heads<RowId>),
    Keys(Heads<KeyBytes>),
}

/// The changed keys of one tree.
#[derive(Clone)]
pub(crate) struct TreeWrites {
    pub tree: Arc<Tree>,
    pub heads: TreeHeads,
    /// Rows or entries added less those removed.
    pub live: i64,
    /// Changes of rows, those that were rolled back to a savepoint too.
    pub changed: RowCounts,
}

/// All changes of a transaction.
#[derive(Default)]
pub(crate) struct WriteSet {
    pub changes: Vec<Change>,
    /// Private segments.
    pub links: Vec<Link>,
    /// Trees touched, in the order of their first change.
    pub trees: Vec<TreeWrites>,
    /// Where each is, once they are many.
    places: HashMap<TreeId, usize>,
    /// Layouts of tables that this transaction has extended.
    pub layouts: Vec<(TreeId, Arc<RowLayout>)>,
    /// Rows that were deleted because they moved to other trees.
    pub moved: MovedRows,
    /// Bytes of rows and keys, to tell large transactions.
    pub bytes: usize,
    /// Those put into memory tables.
    pub memory_table_bytes: usize,
    /// The log record's buffer.
    pub encoded: Vec<u8>,
}

/// Trees of a transaction that are searched one by one; more are put into a map.
const TREES_SEARCHED_MAX: usize = 16;

/// The write set of a transaction that may never need one: made by the first change.
#[derive(Default)]
pub(crate) struct LazyWriteSet(Option<Box<WriteSet>>);

impl LazyWriteSet {
    /// `spare`: the emptied one of an earlier transaction.
    pub fn new(spare: Option<Box<WriteSet>>) -> LazyWriteSet {
        LazyWriteSet(spare)
    }

    pub fn into_inner(self) -> Option<Box<WriteSet>> {
        self.0
    }
}

impl std::ops::Deref for LazyWriteSet {
    type Target = WriteSet;

    fn deref(&self) -> &WriteSet {
        static NOTHING: OnceLock<WriteSet> = OnceLock::new();
        self.0.as_deref().unwrap_or_else(|| NOTHING.get_or_init(WriteSet::default))
    }
}

impl std::ops::DerefMut for LazyWriteSet {
    fn deref_mut(&mut self) -> &mut WriteSet {
        self.0.get_or_insert_default()
    }
}

impl WriteSet {
    fn slot(&mut self, tree: &Arc<Tree>) -> usize {
        let is_it = |t: &TreeWrites| Arc::ptr_eq(&t.tree, tree);
        let known = match self.places.is_empty() {
            true => self.trees.iter().position(is_it),
            false => self.places.get(&tree.id).copied().filter(|at| is_it(&self.trees[*at])),
        };
        if let Some(at) = known {
            return at;
        }
        let heads = match tree.data {
            TreeData::Table(_) => TreeHeads::Rows(Heads::List(Vec::new())),
            TreeData::Index(_) => TreeHeads::Keys(Heads::List(Vec::new())),
        };
        self.trees.push(TreeWrites { tree: Arc::clone(tree), heads, live: 0, changed: RowCounts::default() });
        let at = self.trees.len() - 1;
        if at == TREES_SEARCHED_MAX {
            self.places.extend(self.trees.iter().enumerate().map(|(at, t)| (t.tree.id, at)));
        } else if at > TREES_SEARCHED_MAX {
            self.places.insert(tree.id, at);
        }
        at
    }

    /// The changes in memory, for readers; rows and keys are shared.
    pub fn copy_of_changes(&self) -> WriteSet {
        WriteSet { changes: self.changes.clone(), trees: self.trees.clone(), places: self.places.clone(), ..WriteSet::default() }
    }

    pub fn writes(&self, tree: TreeId) -> Option<&TreeWrites> {
        match self.places.is_empty() {
            true => self.trees.iter().find(|t| t.tree.id == tree),
            false => self.places.get(&tree).map(|at| &self.trees[*at]),
        }
    }

    /// Records a new state of a row; `live` is 1 for an insertion, -1 for a deletion, 0 for an update.
    pub fn put_row(&mut self, command: u32, tree: &Arc<Tree>, row: RowId, bytes: Option<RowBytes>, live: i8) {
        self.count(tree, bytes.as_ref().map_or(0, |b| b.len()) as isize, bytes.is_some());
        let slot = self.slot(tree);
        self.trees[slot].live += i64::from(live);
        let changed = &mut self.trees[slot].changed;
        match live {
            1 => changed.inserted += 1,
            -1 => changed.deleted += 1,
            _ => changed.updated += 1,
        }
        let at = self.changes.len() as u32;
        let TreeHeads::Rows(heads) = &mut self.trees[slot].heads else { unreachable!("the heads are of the tree's kind") };
        let older = heads.set(row, at).unwrap_or(NONE);
        self.changes.push(Change { command, tree: slot as u32, older, kind: ChangeKind::Row { row, bytes, live } });
    }

    /// Records the presence or absence of an index entry.
    pub fn put_key(&mut self, command: u32, tree: &Arc<Tree>, key: KeyBytes, live: bool) {
        self.count(tree, key.as_slice().len() as isize, live);
        let slot = self.slot(tree);
        self.trees[slot].live += if live { 1 } else { -1 };
        let at = self.changes.len() as u32;
        let TreeHeads::Keys(heads) = &mut self.trees[slot].heads else { unreachable!("the heads are of the tree's kind") };
        let older = heads.set(key.clone(), at).unwrap_or(NONE);
        self.changes.push(Change { command, tree: slot as u32, older, kind: ChangeKind::Key { key, live } });
    }

    /// Records a private segment of a bulk load.
    pub fn put_link(&mut self, command: u32, tree: &Arc<Tree>, run: PrivateRun) {
        let live = run.len() as i64;
        let run = run.of_tree(tree.id);
        self.links.push(Link { command, tree: Arc::clone(tree), run, live, spilled: None });
    }

    /// Counts the bytes of a change, or takes them back.
    fn count(&mut self, tree: &Tree, bytes: isize, adds: bool) {
        self.bytes = self.bytes.wrapping_add_signed(bytes);
        if adds && tree.persistence == Persistence::Memory {
            self.memory_table_bytes = self.memory_table_bytes.wrapping_add_signed(bytes);
        }
    }

    /// Records a change of the schema.
    pub fn put_schema(&mut self, command: u32, kind: ChangeKind) {
        self.changes.push(Change { command, tree: NONE, older: NONE, kind });
    }

    /// The newest change at or before `head` that commands before `command` made.
    pub(crate) fn seen(&self, head: u32, command: u32) -> Option<&Change> {
        let mut at = head;
        loop {
            let change = &self.changes[at as usize];
            if change.command < command {
                return Some(change);
            }
            if change.older == NONE {
                return None;
            }
            at = change.older;
        }
    }

    /// The effect of commands before `command` on a row: `None` no change, `Some(None)` deleted it.
    pub fn row(&self, tree: TreeId, row: RowId, command: u32) -> Option<Option<&RowBytes>> {
        let TreeHeads::Rows(heads) = &self.writes(tree)?.heads else { return None };
        match &self.seen(heads.get(&row)?, command)?.kind {
            ChangeKind::Row { bytes, .. } => Some(bytes.as_ref()),
            _ => None,
        }
    }

    /// The row's newest own change, by any command: the command and the row.
    pub fn newest_row(&self, tree: TreeId, row: RowId) -> Option<(u32, Option<&RowBytes>)> {
        let TreeHeads::Rows(heads) = &self.writes(tree)?.heads else { return None };
        let change = &self.changes[heads.get(&row)? as usize];
        match &change.kind {
            ChangeKind::Row { bytes, .. } => Some((change.command, bytes.as_ref())),
            _ => None,
        }
    }

    /// Up to `limit` rows from `from` on that commands before `command` changed.
    pub fn rows_from(&self, tree: TreeId, from: RowId, command: u32, limit: usize, out: &mut Vec<(RowId, Option<RowBytes>)>) {
        let Some(TreeWrites { heads: TreeHeads::Rows(heads), .. }) = self.writes(tree) else { return };
        let seen = heads
            .range(std::ops::Bound::Included(&from), std::ops::Bound::Unbounded)
            .filter_map(|(_, head)| self.seen(head, command));
        for change in seen.take(limit) {
            if let ChangeKind::Row { row, bytes, .. } = &change.kind {
                out.push((*row, bytes.clone()));
            }
        }
    }

    /// The rows from `first` to `last` that commands before `command` changed.
    pub fn row_ids_between(&self, tree: TreeId, first: RowId, last: RowId, command: u32, out: &mut Vec<RowId>) {
        let Some(TreeWrites { heads: TreeHeads::Rows(heads), .. }) = self.writes(tree) else { return };
        let range = heads.range(std::ops::Bound::Included(&first), std::ops::Bound::Included(&last));
        out.extend(range.filter(|(_, head)| self.seen(*head, command).is_some()).map(|(id, _)| *id));
    }

    /// Up to `limit` index entries within bounds that commands before `command` changed, in scan order.
    pub fn keys_between(
        &self,
        tree: TreeId,
        bounds: (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>),
        reverse: bool,
        command: u32,
        limit: usize,
        mut each: impl FnMut(&[u8], bool),
    ) {
        let Some(TreeWrites { heads: TreeHeads::Keys(heads), .. }) = self.writes(tree) else { return };
        let mut range = heads.range::<[u8]>(bounds.0, bounds.1);
        let mut left = limit;
        while left > 0 {
            let Some((_, head)) = (if reverse { range.next_back() } else { range.next() }) else { return };
            if let Some(Change { kind: ChangeKind::Key { key, live }, .. }) = self.seen(head, command) {
                each(key.as_slice(), *live);
                left -= 1;
            }
        }
    }

    /// Undoes every change of `command` and later; schema changes are handed to `undo`, newest first.
    pub fn roll_back_to(&mut self, command: u32, mut undo: impl FnMut(ChangeKind)) {
        self.moved.roll_back_to(command);
        while let Some(link) = self.links.pop_if(|l| l.command >= command) {
            link.run.discard();
        }
        while self.changes.last().is_some_and(|c| c.command >= command) {
            let Some(change) = self.changes.pop() else { return };
            let tree = self.trees.get(change.tree as usize).map(|t| Arc::clone(&t.tree));
            if let Some(tree) = tree {
                match &change.kind {
                    ChangeKind::Row { bytes, .. } => {
                        self.count(&tree, -(bytes.as_ref().map_or(0, |b| b.len()) as isize), bytes.is_some())
                    }
                    ChangeKind::Key { key, live } => self.count(&tree, -(key.as_slice().len() as isize), *live),
                    _ => {}
                }
            }
            let tree = self.trees.get_mut(change.tree as usize);
            let (heads, count) = tree.map(|t| (&mut t.heads, &mut t.live)).unzip();
            match (change.kind, heads) {
                (ChangeKind::Row { row, live, .. }, Some(TreeHeads::Rows(heads))) => {
                    count.into_iter().for_each(|c| *c -= i64::from(live));
                    match change.older {
                        NONE => heads.remove(&row),
                        older => drop(heads.set(row, older)),
                    }
                }
                (ChangeKind::Key { key, live }, Some(TreeHeads::Keys(heads))) => {
                    count.into_iter().for_each(|c| *c -= if live { 1 } else { -1 });
                    match change.older {
                        NONE => heads.remove(&key),
                        older => drop(heads.set(key, older)),
                    }
                }
                (ChangeKind::ExtendTable { tree, before }, _) => {
                    self.layouts.retain(|(id, _)| *id != tree.id);
                    self.layouts.extend(before.map(|layout| (tree.id, layout)));
                }
                (what, _) => undo(what),
            }
        }
    }

    /// The final state of each changed key of a tree, in key order.
    pub fn final_rows<'a>(&'a self, heads: &'a Heads<RowId>) -> impl Iterator<Item = (RowId, Option<&'a RowBytes>)> {
        heads.range::<RowId>(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).filter_map(|(_, head)| {
            match &self.changes[head as usize].kind {
                ChangeKind::Row { row, bytes, .. } => Some((*row, bytes.as_ref())),
                _ => None,
            }
        })
    }

    /// The final state of each changed entry of an index, in key order.
    pub fn final_keys<'a>(&'a self, heads: &'a Heads<KeyBytes>) -> impl Iterator<Item = (&'a KeyBytes, bool)> {
        heads.range::<[u8]>(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).filter_map(|(_, head)| {
            match &self.changes[head as usize].kind {
                ChangeKind::Key { key, live } => Some((key, *live)),
                _ => None,
            }
        })
    }

    /// The private segments of a tree that commands before `command` wrote, newest first.
    pub fn private_runs(&self, tree: TreeId, command: u32) -> impl Iterator<Item = &Link> {
        self.links.iter().rev().filter(move |l| l.command < command && l.tree.id == tree)
    }

    /// Some of the private segments replace committed rows.
    pub fn replaces(&self) -> bool {
        self.links.iter().any(|l| l.spilled.is_some())
    }

    /// Only rows and entries of indexes were changed, and all of that is in memory.
    pub fn is_rows_only(&self) -> bool {
        self.links.is_empty() && self.changes.iter().all(|c| matches!(c.kind, ChangeKind::Row { .. } | ChangeKind::Key { .. }))
    }

    /// Whether a tree is dropped (or replaced by another), or there are only deletions: that frees space.
    pub fn frees(&self) -> bool {
        let deletes =
            |what: &ChangeKind| matches!(what, ChangeKind::Row { bytes: None, .. } | ChangeKind::Key { live: false, .. });
        let drops = |what: &ChangeKind| matches!(what, ChangeKind::DropTree(_));
        self.changes.iter().any(|c| drops(&c.kind)) || self.links.is_empty() && self.changes.iter().all(|c| deletes(&c.kind))
    }

    /// Whether anything of a tree was changed.
    pub fn knows(&self, tree: TreeId) -> bool {
        self.writes(tree).is_some_and(|writes| !writes.is_empty()) || self.links.iter().any(|l| l.tree.id == tree)
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.links.is_empty()
    }

    /// Empties it for the next transaction; small buffers are kept.
    pub fn clear(&mut self) {
        self.links.clear();
        if self.changes.capacity() <= 4096 {
            self.changes.clear();
        } else {
            self.changes = Vec::new();
        }
        if self.trees.len() > TREES_SEARCHED_MAX {
            self.trees.clear();
            self.places = HashMap::new();
        }
        for tree in &mut self.trees {
            (tree.live, tree.changed) = (0, RowCounts::default());
            match &mut tree.heads {
                TreeHeads::Rows(heads) => heads.clear(),
                TreeHeads::Keys(heads) => heads.clear(),
            }
        }
        self.layouts.clear();
        self.moved.clear();
        (self.bytes, self.memory_table_bytes) = (0, 0);
        if self.encoded.capacity() > 1 << 20 {
            self.encoded = Vec::new();
        }
    }
}

impl TreeWrites {
    pub fn is_empty(&self) -> bool {
        match &self.heads {
            TreeHeads::Rows(Heads::List(list)) => list.is_empty(),
            TreeHeads::Keys(Heads::List(list)) => list.is_empty(),
            TreeHeads::Rows(Heads::Tree(tree)) => tree.is_empty(),
            TreeHeads::Keys(Heads::Tree(tree)) => tree.is_empty(),
        }
    }
}

/// The time between two moves of changes, shared by the scans that were opened in it.
#[derive(Default)]
pub(crate) struct Epoch(OnceLock<WriteSet>);

impl Epoch {
    /// Keeps the changes as they are before a move: once, at the epoch's end.
    pub fn end(&self, writes: &WriteSet) {
        let _ = self.0.set(writes.copy_of_changes());
    }

    /// The changes as they were before the move that has ended the epoch.
    pub fn before_move(&self) -> Option<&WriteSet> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_store::Persistence;
    use melba_types::Kind;

    fn row(text: &str) -> RowBytes {
        text.as_bytes().into()
    }

    #[test]
    fn commands_see_earlier_changes_and_savepoints_cut() {
        let tree = Arc::new(Tree::table(TreeId(1), &[Kind::Int4], Persistence::Logged));
        let mut set = WriteSet::default();
        set.put_row(1, &tree, RowId(5), Some(row("a")), 1);
        set.put_row(2, &tree, RowId(5), Some(row("b")), 0);
        set.put_row(2, &tree, RowId(3), None, -1);
        let at = |set: &WriteSet, command| set.row(TreeId(1), RowId(5), command).map(|r| r.cloned());
        assert_eq!(at(&set, 1), None);
        assert_eq!(at(&set, 2), Some(Some(row("a"))));
        assert_eq!(at(&set, 3), Some(Some(row("b"))));
        let mut rows = Vec::new();
        set.rows_from(TreeId(1), RowId(0), 3, 10, &mut rows);
        assert_eq!(rows, [(RowId(3), None), (RowId(5), Some(row("b")))]);
        set.roll_back_to(2, |_| {});
        assert_eq!(at(&set, 3), Some(Some(row("a"))));
        assert_eq!(set.row(TreeId(1), RowId(3), 3), None);
        set.roll_back_to(0, |_| {});
        assert!(set.is_empty() && set.bytes == 0 && set.trees[0].is_empty());
    }

    #[test]
    fn heads_keep_order_when_the_list_becomes_a_tree() {
        let mut heads = Heads::List(Vec::new());
        for i in 0..500u64 {
            assert_eq!(heads.set(RowId(i * 7919 % 500), i as u32), None);
        }
        assert!(matches!(heads, Heads::Tree(_)));
        let keys: Vec<u64> = heads
            .range::<RowId>(std::ops::Bound::Excluded(&RowId(10)), std::ops::Bound::Included(&RowId(13)))
            .map(|(k, _)| k.0)
            .collect();
        assert_eq!(keys, [11, 12, 13]);
    }
}
