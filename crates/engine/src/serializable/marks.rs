//! What a transaction has read or written, in bounded memory.
//!
//! Marks become coarser as they become many. A caller that adds a mark must search the others by its coarser form: `add` returns
//! that. From then on everything the mark covers is known, and the others search for it.
//!
//! Of a table: rows, blocks of `1 << BLOCK_SHIFT` row ids, or all of it. Of an index: ranges of entries (those scanned, so that a
//! row that appears within them is noticed) and entries, or all of it.

use std::collections::BTreeSet;
use std::ops::Bound;

use hashbrown::{HashMap, HashSet};
use melba_store::KeyBytes;
use melba_types::{Csn, RowId, TreeId};

/// A block is 256 consecutive row ids.
const BLOCK_SHIFT: u32 = 8;
/// More rows of a block than this are the block.
const BLOCK_ROWS_MAX: usize = 16;
/// More blocks of a table than this are the table.
const BLOCKS_MAX: usize = 1024;
/// More ranges, or entries, of an index than this are the index.
const RANGES_MAX: usize = 256;
const ENTRIES_MAX: usize = 4096;

/// Something that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read<'a> {
    /// Every row of a table.
    Table(TreeId),
    Row(TreeId, RowId),
    /// A block of rows.
    Block(TreeId, u64),
    /// The entries of an index within bounds.
    Range(TreeId, Bound<&'a [u8]>, Bound<&'a [u8]>),
}

/// Something that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Write<'a> {
    /// A row is changed or removed; its version so far is of this commit.
    Row(TreeId, RowId, Csn),
    /// Any row of a block.
    Block(TreeId, u64),
    /// Rows are added: no transaction that read single rows has read them.
    NewRows(TreeId),
    /// An index entry is added or removed.
    Entry(TreeId, &'a [u8]),
    /// Any part of a table or index.
    All(TreeId),
}

impl Read<'_> {
    pub fn tree(&self) -> TreeId {
        match *self {
            Read::Table(tree) | Read::Row(tree, _) | Read::Block(tree, _) | Read::Range(tree, ..) => tree,
        }
    }
}

impl Write<'_> {
    pub fn tree(&self) -> TreeId {
        match *self {
            Write::Row(tree, ..) | Write::Block(tree, _) => tree,
            Write::NewRows(tree) | Write::Entry(tree, _) | Write::All(tree) => tree,
        }
    }
}

/// Rows of a table.
#[derive(Default)]
struct MarkedRows {
    all: bool,
    /// By block: offsets of its rows, `None` for all of them.
    blocks: HashMap<u64, Option<Vec<u8>>>,
}

fn place(row: RowId) -> (u64, u8) {
    (row.0 >> BLOCK_SHIFT, (row.0 & 0xff) as u8)
}

impl MarkedRows {
    fn has(&self, row: RowId) -> bool {
        let (block, offset) = place(row);
        self.all || self.blocks.get(&block).is_some_and(|rows| rows.as_ref().is_none_or(|rows| rows.contains(&offset)))
    }

    fn has_any_of(&self, block: u64) -> bool {
        self.all || self.blocks.contains_key(&block)
    }

    /// The part that is new with a row.
    fn add(&mut self, row: RowId) -> Option<MarkedPart> {
        if self.has(row) {
            return None;
        }
        let (block, offset) = place(row);
        match self.blocks.entry(block).or_insert_with(|| Some(Vec::new())) {
            Some(known) if known.len() < BLOCK_ROWS_MAX => known.push(offset),
            _ => return self.add_block(block),
        }
        if self.blocks.len() > BLOCKS_MAX { self.add_all() } else { Some(MarkedPart::Row) }
    }

    fn add_block(&mut self, block: u64) -> Option<MarkedPart> {
        let known = self.all || self.blocks.insert(block, None) == Some(None);
        (!known).then_some(MarkedPart::Block(block))
    }

    fn add_all(&mut self) -> Option<MarkedPart> {
        self.blocks = HashMap::new();
        (!std::mem::replace(&mut self.all, true)).then_some(MarkedPart::All)
    }
}

/// The part that a mark of rows covers and no mark covered before.
enum MarkedPart {
    Row,
    Block(u64),
    All,
}

type Range = (Bound<KeyBytes>, Bound<KeyBytes>);

/// Ranges of an index.
#[derive(Default)]
struct Ranges {
    all: bool,
    list: Vec<Range>,
}

fn owned(bound: Bound<&[u8]>) -> Bound<KeyBytes> {
    bound.map(KeyBytes::new)
}

fn borrowed(bound: &Bound<KeyBytes>) -> Bound<&[u8]> {
    bound.as_ref().map(KeyBytes::as_slice)
}

fn is_within(entry: &[u8], lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    let above = match lower {
        Bound::Included(l) => entry >= l,
        Bound::Excluded(l) => entry > l,
        Bound::Unbounded => true,
    };
    above
        && match upper {
            Bound::Included(u) => entry <= u,
            Bound::Excluded(u) => entry < u,
            Bound::Unbounded => true,
        }
}

impl Ranges {
    fn has(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        self.all || self.list.iter().any(|(l, u)| borrowed(l) == lower && borrowed(u) == upper)
    }

    fn has_entry(&self, entry: &[u8]) -> bool {
        self.all || self.list.iter().any(|(l, u)| is_within(entry, borrowed(l), borrowed(u)))
    }

    /// Notes a range; whether this made it all of them.
    fn add(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        // A scan that continues: its ranges are neighbours.
        if let Some((last_lower, last_upper)) = self.list.last_mut() {
            if matches!((borrowed(last_upper), lower), (Bound::Included(a), Bound::Excluded(b)) if a == b) {
                *last_upper = owned(upper);
                return false;
            }
            if matches!((borrowed(last_lower), upper), (Bound::Included(a), Bound::Excluded(b)) if a == b) {
                *last_lower = owned(lower);
                return false;
            }
        }
        self.list.push((owned(lower), owned(upper)));
        if self.list.len() > RANGES_MAX {
            (self.all, self.list) = (true, Vec::new());
        }
        self.all
    }
}

/// Entries of an index.
#[derive(Default)]
struct MarkedEntries {
    all: bool,
    set: BTreeSet<KeyBytes>,
}

impl MarkedEntries {
    fn has_within(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        self.all
            || self.set.range::<[u8], _>((lower, Bound::Unbounded)).next().is_some_and(|e| is_within(e.as_slice(), lower, upper))
    }

    fn add_all(&mut self) {
        (self.all, self.set) = (true, BTreeSet::new());
    }
}

/// All that a transaction has read.
#[derive(Default)]
pub(super) struct Reads {
    /// A tree it read was dropped, and its replacement is unknown: any write may concern it.
    pub anything: bool,
    rows: HashMap<TreeId, MarkedRows>,
    ranges: HashMap<TreeId, Ranges>,
}

impl Reads {
    /// Notes a read. `None` when it was noted before; else the read, or the wider one that it has become part of.
    pub fn add<'a>(&mut self, read: Read<'a>) -> Option<Read<'a>> {
        let tree = read.tree();
        let part = match read {
            Read::Range(_, lower, upper) => {
                let ranges = self.ranges.entry(tree).or_default();
                if ranges.has(lower, upper) {
                    return None;
                }
                let whole = Read::Range(tree, Bound::Unbounded, Bound::Unbounded);
                return Some(if ranges.add(lower, upper) { whole } else { read });
            }
            Read::Table(_) => self.rows.entry(tree).or_default().add_all(),
            Read::Block(_, block) => self.rows.entry(tree).or_default().add_block(block),
            Read::Row(_, row) => self.rows.entry(tree).or_default().add(row),
        };
        part.map(|part| match part {
            MarkedPart::Row => read,
            MarkedPart::Block(block) => Read::Block(tree, block),
            MarkedPart::All => Read::Table(tree),
        })
    }

    /// Whether a write changes data that was read with a snapshot. A version newer than the snapshot was not read: its writer is
    /// the one in conflict with the reader.
    pub fn meets(&self, write: Write<'_>, snapshot: Csn) -> bool {
        let in_rows = |tree, test: &dyn Fn(&MarkedRows) -> bool| self.rows.get(&tree).is_some_and(test);
        self.anything
            || match write {
                Write::Row(tree, row, version) => version <= snapshot && in_rows(tree, &|rows| rows.has(row)),
                Write::Block(tree, block) => in_rows(tree, &|rows| rows.has_any_of(block)),
                Write::NewRows(tree) => in_rows(tree, &|rows| rows.all),
                Write::Entry(tree, entry) => self.ranges.get(&tree).is_some_and(|r| r.has_entry(entry)),
                Write::All(tree) => self.rows.contains_key(&tree) || self.ranges.contains_key(&tree),
            }
    }

    pub fn trees(&self) -> impl Iterator<Item = TreeId> {
        self.rows.keys().chain(self.ranges.keys()).copied()
    }

    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.rows.contains_key(&tree) || self.ranges.contains_key(&tree)
    }

    /// The marks held, for pg_locks: the tree, and of it the block and the row; neither: all, or a range.
    pub fn list(&self) -> Vec<(TreeId, Option<u64>, Option<RowId>)> {
        let mut out = Vec::new();
        for (tree, rows) in &self.rows {
            if rows.all {
                out.push((*tree, None, None));
            }
            for (block, offsets) in &rows.blocks {
                match offsets {
                    None => out.push((*tree, Some(*block), None)),
                    Some(offsets) => out
                        .extend(offsets.iter().map(|o| (*tree, Some(*block), Some(RowId(block << BLOCK_SHIFT | u64::from(*o)))))),
                }
            }
        }
        for (tree, ranges) in &self.ranges {
            out.extend((0..ranges.list.len().max(1)).map(|_| (*tree, None, None)));
        }
        out
    }
}

/// All that a transaction has written.
#[derive(Default)]
pub(super) struct Writes {
    /// As for `Reads`.
    pub anything: bool,
    rows: HashMap<TreeId, MarkedRows>,
    /// The tables, of those in `rows`, that rows were added to.
    added: HashSet<TreeId>,
    entries: HashMap<TreeId, MarkedEntries>,
}

impl Writes {
    /// Notes a write. `None` when it was noted before; else the write, or the wider one that it has become part of.
    pub fn add<'a>(&mut self, write: Write<'a>) -> Option<Write<'a>> {
        let tree = write.tree();
        let part = match write {
            Write::NewRows(_) => {
                // No transaction that this concerns can name the rows: it is enough that there are some.
                let known = self.rows.entry(tree).or_default().all;
                return (self.added.insert(tree) && !known).then_some(write);
            }
            Write::Entry(_, entry) => {
                let entries = self.entries.entry(tree).or_default();
                if entries.all || !entries.set.insert(KeyBytes::new(entry)) {
                    return None;
                }
                if entries.set.len() <= ENTRIES_MAX {
                    return Some(write);
                }
                entries.add_all();
                return Some(Write::All(tree));
            }
            Write::All(_) => {
                self.entries.entry(tree).or_default().add_all();
                self.rows.entry(tree).or_default().add_all();
                return Some(write);
            }
            Write::Block(_, block) => self.rows.entry(tree).or_default().add_block(block),
            Write::Row(_, row, _) => self.rows.entry(tree).or_default().add(row),
        };
        part.map(|part| match part {
            MarkedPart::Row => write,
            MarkedPart::Block(block) => Write::Block(tree, block),
            MarkedPart::All => Write::All(tree),
        })
    }

    /// Whether the written data is among the data read.
    pub fn meets(&self, read: Read<'_>) -> bool {
        self.anything
            || match read {
                Read::Table(tree) => self.rows.contains_key(&tree),
                Read::Row(tree, row) => self.rows.get(&tree).is_some_and(|rows| rows.has(row)),
                Read::Block(tree, block) => self.rows.get(&tree).is_some_and(|rows| rows.has_any_of(block)),
                Read::Range(tree, lower, upper) => self.entries.get(&tree).is_some_and(|e| e.has_within(lower, upper)),
            }
    }

    pub fn trees(&self) -> impl Iterator<Item = TreeId> {
        self.rows.keys().chain(self.entries.keys()).copied()
    }

    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.rows.contains_key(&tree) || self.entries.contains_key(&tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TreeId = TreeId(7);

    fn meets(reads: &Reads, write: Write<'_>) -> bool {
        reads.meets(write, Csn(1))
    }

    #[test]
    fn rows_become_blocks_and_blocks_the_table() {
        let mut reads = Reads::default();
        assert!(reads.add(Read::Row(T, RowId(5))).is_some() && reads.add(Read::Row(T, RowId(5))).is_none());
        assert!(meets(&reads, Write::Row(T, RowId(5), Csn(1))) && !meets(&reads, Write::Row(T, RowId(6), Csn(1))));
        for row in 6..30 {
            reads.add(Read::Row(T, RowId(row)));
        }
        assert!(meets(&reads, Write::Row(T, RowId(200), Csn(1))), "the block");
        assert!(!meets(&reads, Write::Row(T, RowId(256), Csn(1))) && !meets(&reads, Write::NewRows(T)));
        for block in 0..=BLOCKS_MAX as u64 {
            reads.add(Read::Row(T, RowId(block << BLOCK_SHIFT)));
        }
        assert!(meets(&reads, Write::NewRows(T)), "the table");
        assert!(!meets(&reads, Write::Row(TreeId(8), RowId(5), Csn(1))));
    }

    #[test]
    fn ranges_notice_entries_that_appear_and_grow_with_their_scan() {
        let (mut reads, mut writes) = (Reads::default(), Writes::default());
        let range =
            |l: &'static str, u: &'static str| Read::Range(T, Bound::Included(l.as_bytes()), Bound::Excluded(u.as_bytes()));
        reads.add(range("b", "d"));
        assert!(meets(&reads, Write::Entry(T, b"c")) && !meets(&reads, Write::Entry(T, b"d")) && meets(&reads, Write::All(T)));
        reads.add(Read::Range(T, Bound::Included(b"x"), Bound::Included(b"y")));
        reads.add(Read::Range(T, Bound::Excluded(b"y"), Bound::Unbounded));
        assert_eq!(reads.list().len(), 2, "a scan's ranges are one");
        assert!(meets(&reads, Write::Entry(T, b"zzz")));
        writes.add(Write::Entry(T, b"c1"));
        assert!(writes.meets(range("c", "d")) && !writes.meets(range("a", "c")) && !writes.meets(range("c2", "d")));
        for i in 0..=RANGES_MAX {
            let key = (i as u32).to_be_bytes();
            reads.add(Read::Range(T, Bound::Included(&key), Bound::Included(&key)));
        }
        assert!(meets(&reads, Write::Entry(T, b"a")), "the whole index");
    }
}
