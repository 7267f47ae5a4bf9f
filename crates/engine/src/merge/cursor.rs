//! The inputs of a merge in key order, each open only while the merge is between its first key and its last.
//!
//! So a merge of hundreds of segments of which few overlap holds a piece of those few. `choose` limits how many may overlap
//! (fan-in); here a piece of a table segment has a size in bytes.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_segment::{GroupData, GroupReader, KeyCursor, KeySegmentReader, TableSegmentReader};
use melba_store::Result;
use melba_types::RowId;

/// Rows of a row group decoded at a time, at most.
const PIECE_ROWS: usize = 4096;

/// A walk over the versions in a segment.
pub(super) trait Cursor: Sized {
    type Reader;
    /// Positions at the first version with a key at or after `from`; decodes about `piece_bytes` at a time.
    fn open(reader: &Arc<Self::Reader>, from: &[u8], piece_bytes: usize) -> Result<Self>;
    fn is_valid(&self) -> bool;
    /// The order of the keys that two valid cursors are at.
    fn compare(&self, other: &Self) -> Ordering;
    /// Whether a valid cursor's key comes before all of a segment's.
    fn is_before(&self, reader: &Self::Reader) -> bool;
    /// The order of two segments' first keys.
    fn compare_first(a: &Self::Reader, b: &Self::Reader) -> Ordering;
}

/// The inputs of a merge.
pub(super) struct Inputs<C: Cursor> {
    /// Those that are ahead, the next one last, each with its place among all.
    ahead: Vec<(usize, Arc<C::Reader>)>,
    /// Newest first as they came: of equal versions (a transaction's runs have one CSN) the first counts.
    open: Vec<(usize, C)>,
    from: Vec<u8>,
    piece_bytes: usize,
}

impl<C: Cursor> Inputs<C> {
    /// Walks readers, newest first, from a key on.
    pub fn new(readers: impl Iterator<Item = Arc<C::Reader>>, from: &[u8], piece_bytes: usize) -> Inputs<C> {
        let mut ahead: Vec<_> = readers.enumerate().collect();
        ahead.sort_by(|a, b| C::compare_first(&b.1, &a.1));
        Inputs { ahead, open: Vec::new(), from: from.to_vec(), piece_bytes }
    }

    /// Opens and closes the inputs as needed; returns a cursor at the least key. All inputs that have that key are open then.
    pub fn least(&mut self) -> Result<Option<&C>> {
        loop {
            self.open.retain(|(_, cursor)| cursor.is_valid());
            let least = self.open.iter().map(|(_, cursor)| cursor).min_by(|a, b| a.compare(b));
            let is_next = |(_, reader): &mut (usize, Arc<C::Reader>)| least.is_none_or(|least| !least.is_before(reader));
            let Some((place, next)) = self.ahead.pop_if(is_next) else { break };
            let at = self.open.partition_point(|(other, _)| *other < place);
            self.open.insert(at, (place, C::open(&next, &self.from, self.piece_bytes)?));
        }
        Ok(self.open.iter().map(|(_, cursor)| cursor).min_by(|a, b| a.compare(b)))
    }

    /// The open cursors, newest first.
    pub fn cursors(&mut self) -> impl Iterator<Item = &mut C> {
        self.open.iter_mut().map(|(_, cursor)| cursor)
    }
}

impl Cursor for KeyCursor {
    type Reader = KeySegmentReader;

    fn open(reader: &Arc<KeySegmentReader>, from: &[u8], _piece_bytes: usize) -> Result<KeyCursor> {
        let mut cursor = reader.cursor();
        cursor.seek(from)?;
        Ok(cursor)
    }

    fn is_valid(&self) -> bool {
        KeyCursor::is_valid(self)
    }

    fn compare(&self, other: &KeyCursor) -> Ordering {
        self.key().cmp(other.key())
    }

    fn is_before(&self, reader: &KeySegmentReader) -> bool {
        self.key() < reader.meta().key_min.as_slice()
    }

    fn compare_first(a: &KeySegmentReader, b: &KeySegmentReader) -> Ordering {
        a.meta().key_min.cmp(&b.meta().key_min)
    }
}

/// Walks the row versions of a table segment.
pub(super) struct TableCursor {
    reader: Arc<TableSegmentReader>,
    projection: Vec<usize>,
    from: RowId,
    piece_rows: usize,
    /// The row group, and how many of its rows have been decoded.
    group: usize,
    decoded: usize,
    group_reader: Option<GroupReader>,
    /// The last rows decoded, and the one among them that the cursor is at; `None`: at the end.
    piece: Option<Arc<GroupData>>,
    at: usize,
}

impl TableCursor {
    /// The row id that a valid cursor is at.
    pub fn row_id(&self) -> Option<RowId> {
        self.piece.as_ref().and_then(|piece| piece.row_ids.get(self.at)).copied()
    }

    /// The piece and the position in it of the version that a valid cursor is at.
    pub fn version(&self) -> Option<(Arc<GroupData>, usize)> {
        self.piece.as_ref().map(|piece| (Arc::clone(piece), self.at))
    }

    pub fn advance(&mut self) -> Result<()> {
        self.at += 1;
        self.fill()
    }

    /// Decodes on until there is a row at or after `from`.
    fn fill(&mut self) -> Result<()> {
        while self.row_id().is_none() {
            self.piece = None;
            let Some(group) = self.reader.row_groups().get(self.group) else { return Ok(()) };
            if self.decoded == group.rows {
                (self.group, self.decoded, self.group_reader) = (self.group + 1, 0, None);
                continue;
            }
            let to = (self.decoded + self.piece_rows).min(group.rows);
            let reader = self.group_reader.get_or_insert_with(|| self.reader.group(self.group, &self.projection));
            let data = reader.read(self.decoded..to)?;
            self.at = data.row_ids.partition_point(|id| *id < self.from);
            (self.piece, self.decoded) = (Some(Arc::new(data)), to);
        }
        Ok(())
    }
}

impl Cursor for TableCursor {
    type Reader = TableSegmentReader;

    fn open(reader: &Arc<TableSegmentReader>, from: &[u8], piece_bytes: usize) -> Result<TableCursor> {
        let from = row_of(from).unwrap_or(RowId(0));
        let meta = reader.meta();
        let row_bytes = (meta.raw_bytes / meta.rows.max(1)).max(1) as usize;
        let mut cursor = TableCursor {
            reader: Arc::clone(reader),
            projection: (0..reader.kinds().len()).collect(),
            from,
            piece_rows: (piece_bytes / row_bytes).clamp(1, PIECE_ROWS),
            group: reader.row_groups().partition_point(|g| g.row_id_max < from),
            decoded: 0,
            group_reader: None,
            piece: None,
            at: 0,
        };
        cursor.fill()?;
        Ok(cursor)
    }

    fn is_valid(&self) -> bool {
        self.piece.is_some()
    }

    fn compare(&self, other: &TableCursor) -> Ordering {
        self.row_id().cmp(&other.row_id())
    }

    fn is_before(&self, reader: &TableSegmentReader) -> bool {
        self.row_id().is_some_and(|id| id < reader.meta().row_id_min)
    }

    fn compare_first(a: &TableSegmentReader, b: &TableSegmentReader) -> Ordering {
        a.meta().row_id_min.cmp(&b.meta().row_id_min)
    }
}

/// A row id as a bound of slices; `None`: before all rows.
pub(super) fn row_of(bound: &[u8]) -> Option<RowId> {
    bound.try_into().ok().map(|b| RowId(u64::from_be_bytes(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with the keys from the first to the last.
    struct Keys(u8, u8);

    struct Walk {
        at: u8,
        last: u8,
    }

    impl Cursor for Walk {
        type Reader = Keys;

        fn open(reader: &Arc<Keys>, from: &[u8], _piece_bytes: usize) -> Result<Walk> {
            Ok(Walk { at: reader.0.max(from.first().copied().unwrap_or(0)), last: reader.1 })
        }

        fn is_valid(&self) -> bool {
            self.at <= self.last
        }

        fn compare(&self, other: &Walk) -> Ordering {
            self.at.cmp(&other.at)
        }

        fn is_before(&self, reader: &Keys) -> bool {
            self.at < reader.0
        }

        fn compare_first(a: &Keys, b: &Keys) -> Ordering {
            a.0.cmp(&b.0)
        }
    }

    #[test]
    fn inputs_are_open_between_their_first_key_and_their_last() {
        let segments = [(20, 29), (0, 9), (10, 19), (9, 10), (25, 40), (3, 4)];
        let readers = segments.iter().map(|(first, last)| Arc::new(Keys(*first, *last)));
        let mut inputs: Inputs<Walk> = Inputs::new(readers, &[4], 0);
        let mut keys = Vec::new();
        while let Some(key) = inputs.least().expect("cannot fail").map(|w| w.at) {
            let here = segments.iter().filter(|(first, last)| (*first..=*last).contains(&key)).map(|(_, last)| *last);
            assert_eq!(inputs.cursors().map(|w| w.last).collect::<Vec<_>>(), here.collect::<Vec<_>>(), "at {key}, in order");
            inputs.cursors().filter(|w| w.at == key).for_each(|w| w.at += 1);
            keys.push(key);
        }
        assert_eq!(keys, (4..=40).collect::<Vec<_>>());
    }
}
