//! Draws the rows of a sample: clusters of rows that lie close to each other, spread evenly over the table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use melba_segment::{Position, Statistics, TableSegmentReader, chunks_of_sample};
use melba_store::{MemTable, RowBytes, TableTree, Tree};
use melba_threads::Guard;
use melba_types::row::{Field, RowLayout};
use melba_types::{Column, Csn, RowId, codec};

use super::SampledColumn;

/// Rows of a sample; of a table with fewer rows all are taken.
const ROWS: usize = 1024;
/// Rows that lie close to each other: blocks are decoded as a whole.
const CLUSTER_ROWS: usize = 8;
/// Rows between two of a cluster, at most: neighbours often are alike.
const STRIDE: usize = 16;
/// Values that are longer on average are not sampled.
const VALUE_BYTES_MAX: usize = 256;
/// After these rows it is known whether values are too long.
const FIRST_ROWS: usize = 16;
/// Rows taken from a memory table per hold of its lock: commits wait for it.
const LOCKED_ROWS: usize = 64;
/// Chunks as which rows of the row store count when no others are known.
const CHUNKS: usize = 32;

type RowTable = MemTable<RowId, Option<RowBytes>>;

/// A table whose rows can be drawn.
pub(crate) struct Drawing {
    /// Oldest first, with the numbers of their files, and whether they lie in a store: there each block would be a request.
    readers: Vec<Arc<TableSegmentReader>>,
    files: Vec<(u64, bool)>,
    /// Newest first, with the numbers of their rows, tombstones among them.
    memory: Vec<(Arc<RowTable>, usize)>,
    layout: Arc<RowLayout>,
    rows_stored: usize,
    rows_in_memory: usize,
    csn: Csn,
    changes: u64,
}

/// The rows of a sample.
#[derive(Default)]
pub(crate) struct SampledPlaces {
    files: Vec<(u64, bool)>,
    /// The changes of the table's rows before.
    changes: u64,
    /// By segment, oldest first, ascending.
    stored: Vec<Vec<Position>>,
    /// In the row store.
    in_memory: Vec<RowBytes>,
}

impl Drawing {
    /// Of a table as it is for a view at `csn`.
    pub fn new(tree: &Tree, table: &TableTree, csn: Csn, is_cold: impl Fn(u64) -> bool) -> Drawing {
        // Before anything else: what changes meanwhile counts as missed.
        let counts = tree.changed.read();
        let levels = table.levels.read();
        let readers: Vec<Arc<TableSegmentReader>> = levels.runs.iter().rev().map(|run| Arc::clone(&run.reader)).collect();
        let files = levels.runs.iter().rev().map(|run| (run.segment.file, is_cold(run.segment.file))).collect();
        let memory = levels.used_memory().map(|table| (Arc::clone(table), table.map.read().len()));
        let memory: Vec<(Arc<RowTable>, usize)> = memory.filter(|(_, rows)| *rows > 0).collect();
        Drawing {
            rows_stored: readers.iter().flat_map(|reader| reader.row_groups()).map(|group| group.rows).sum(),
            rows_in_memory: memory.iter().map(|(_, rows)| rows).sum(),
            layout: Guard::into_inner(table.layout.read()),
            changes: counts.inserted + counts.updated + counts.deleted,
            readers,
            files,
            memory,
            csn,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows_stored + self.rows_in_memory
    }

    pub fn is_complete(&self) -> bool {
        self.rows() <= ROWS && self.files.iter().all(|(_, is_cold)| !is_cold)
    }

    pub fn cluster_rows(&self) -> usize {
        if self.is_complete() { 1 } else { CLUSTER_ROWS }
    }

    /// Whether rows that were drawn before are as good as those that would be drawn now.
    pub fn is_like(&self, places: &SampledPlaces, changes_max: u64) -> bool {
        self.files == places.files && self.changes.abs_diff(places.changes) <= changes_max
    }

    /// Draws rows. Rows of the row store hide their versions in segments.
    pub fn places(&self) -> SampledPlaces {
        let numbers = numbers(self.rows());
        let (stored, in_memory) = numbers.split_at(numbers.partition_point(|number| *number < self.rows_stored));
        let (in_memory, mut seen) = self.rows_in_memory(in_memory);
        let mut numbers = stored.iter().copied().peekable();
        let mut before = 0;
        let mut of_segment = |reader: &Arc<TableSegmentReader>| {
            let mut positions = Vec::new();
            for (number, group) in (0..).zip(reader.row_groups()) {
                while let Some(row) = numbers.next_if(|row| *row < before + group.rows) {
                    positions.push(Position { group: number, row: (row - before) as u32 });
                }
                before += group.rows;
            }
            positions
        };
        let mut stored: Vec<Vec<Position>> = self.readers.iter().map(&mut of_segment).collect();
        let is_complete = self.is_complete();
        for ((reader, (_, is_cold)), positions) in self.readers.iter().zip(&self.files).zip(&mut stored).rev() {
            if *is_cold {
                positions.clear();
            }
            positions.retain(|position| {
                let is_hidden = is_complete || !self.memory.is_empty();
                let is_hidden = is_hidden && reader.row_id(*position).map_or(true, |id| self.is_hidden(id, &mut seen));
                // A segment that cannot be read is no matter here: the query that reads it says why.
                !is_hidden && !reader.is_tombstone(*position).unwrap_or(true)
            });
        }
        SampledPlaces { files: self.files.clone(), changes: self.changes, stored, in_memory }
    }

    /// Whether a version in a segment is replaced by one in the row store or in a newer segment, as far as those have been met.
    fn is_hidden(&self, id: RowId, seen: &mut HashSet<RowId>) -> bool {
        !seen.insert(id) || self.memory.iter().any(|(table, _)| table.version(&id, self.csn).is_some())
    }

    /// Rows of the row store by their numbers, those of the older table first, and the ids that were met.
    fn rows_in_memory(&self, numbers: &[usize]) -> (Vec<RowBytes>, HashSet<RowId>) {
        let (mut rows, mut seen) = (Vec::with_capacity(numbers.len()), HashSet::new());
        let is_complete = self.is_complete();
        let mut before = self.rows_stored;
        for at in (0..self.memory.len()).rev() {
            let (table, of_table) = &self.memory[at];
            let from = numbers.partition_point(|number| *number < before);
            let to = numbers.partition_point(|number| *number < before + of_table);
            for (id, row) in
                rows_of(table, numbers[from..to].iter().map(|number| number - before), *of_table, self.csn, is_complete)
            {
                let is_newest = self.memory[..at].iter().all(|(newer, _)| newer.version(&id, self.csn).is_none());
                if is_newest && seen.insert(id) {
                    rows.extend(row);
                }
            }
            before += of_table;
        }
        (rows, seen)
    }

    /// The values of a column; `None` where it is not sampled, or cannot be read: the query that reads it says why.
    pub fn draw(&self, column: usize, places: &SampledPlaces) -> Option<SampledColumn> {
        let kind = *self.layout.kinds().get(column)?;
        let mut values = [Column::with_capacity(kind, places.rows())];
        let fits = |values: &Column| {
            let rows = values.len();
            !values.is_stored() && (0..rows).map(|i| values.heap_bytes(i)).sum::<usize>() <= rows * VALUE_BYTES_MAX
        };
        for (reader, positions) in self.readers.iter().zip(&places.stored) {
            if reader.kinds().get(column) != Some(&kind) || reader.is_dense(column) {
                return None;
            }
            let (first, rest) = positions.split_at(positions.len().min(FIRST_ROWS));
            for positions in [first, rest] {
                reader.read_rows(positions, &[column], &mut values).ok()?;
                if !fits(&values[0]) {
                    return None;
                }
            }
        }
        let [mut values] = values;
        let stored = values.len();
        for row in &places.in_memory {
            match self.layout.view(row)?.get(column) {
                // The row is older than the column.
                Field::Absent | Field::Stored(_) => return None,
                Field::Null => values.push_null(),
                Field::Value(bytes) => values.push_encoded(kind, bytes).then_some(())?,
            }
        }
        if !fits(&values) {
            return None;
        }
        let chunks = if self.rows_stored == 0 { CHUNKS } else { 1 };
        Some(SampledColumn {
            nulls: (0..values.len()).filter(|i| values.is_null(*i)).count(),
            repeated: repeated(&values),
            in_memory: chunks_of_sample(kind, &values, stored..values.len(), self.rows_in_memory as u64, chunks),
            values,
        })
    }
}

impl SampledPlaces {
    pub fn rows(&self) -> usize {
        self.stored.iter().map(Vec::len).sum::<usize>() + self.in_memory.len()
    }

    pub fn memory_bytes(&self) -> usize {
        let positions: usize = self.stored.iter().map(|positions| positions.len() * size_of::<Position>()).sum();
        let rows: usize = self.in_memory.iter().map(|row| row.len() + size_of::<RowBytes>()).sum();
        positions + rows + self.files.len() * size_of::<(u64, bool)>()
    }
}

impl SampledColumn {
    pub fn memory_bytes(&self) -> usize {
        let statistics = self.in_memory.len() * size_of::<(u64, Statistics)>();
        self.values.memory_bytes() + self.repeated.len() * size_of::<(u32, u32)>() + statistics
    }
}

/// Rows of a memory table, ascending, each with its version at `csn`. Their ids stand for the rows' numbers, which a tree does not
/// know; `in_turn`: rows follow each other.
fn rows_of(
    table: &RowTable,
    numbers: impl Iterator<Item = usize>,
    rows: usize,
    csn: Csn,
    in_turn: bool,
) -> Vec<(RowId, Option<RowBytes>)> {
    let ends = {
        let map = table.map.read();
        map.first_key_value().zip(map.last_key_value()).map(|((first, _), (last, _))| (first.0, last.0))
    };
    let Some((first, last)) = ends else { return Vec::new() };
    let (span, mut next) = (last - first + 1, first);
    let mut found = Vec::new();
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let map = table.map.read();
        for number in numbers.by_ref().take(LOCKED_ROWS) {
            let even = first + (number as u128 * u128::from(span) / rows as u128) as u64;
            let from = if in_turn { next } else { next.max(even) };
            let Some((id, chain)) = map.range(RowId(from)..).next() else { return found };
            next = id.0 + 1;
            found.extend(chain.visible(csn).map(|version| (*id, version.value.clone())));
        }
    }
    found
}

/// The numbers of the rows to be drawn from a table, ascending.
fn numbers(rows: usize) -> Vec<usize> {
    if rows <= ROWS {
        return (0..rows).collect();
    }
    const CLUSTERS: usize = ROWS / CLUSTER_ROWS;
    // Without an order, so that nothing that repeats in the table is met in step.
    let scatter = |n: usize, below: usize| (((n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize) % below;
    let cluster = |number: usize| {
        let (start, end) = (number * rows / CLUSTERS, (number + 1) * rows / CLUSTERS);
        let stride = ((end - start) / CLUSTER_ROWS).clamp(1, STRIDE);
        let first = start + scatter(number, end - start + 1 - stride * CLUSTER_ROWS);
        (0..CLUSTER_ROWS).map(move |i| first + i * stride + scatter(number * CLUSTER_ROWS + i, stride))
    };
    (0..CLUSTERS).flat_map(cluster).collect()
}

/// See `SampledColumn::repeated`.
fn repeated(values: &Column) -> Vec<(u32, u32)> {
    let mut counts: HashMap<Vec<u8>, (u32, u32)> = HashMap::with_capacity(values.len());
    for row in (0..values.len()).filter(|row| !values.is_null(*row)) {
        let mut bytes = Vec::new();
        codec::encode(&values.get(row), &mut bytes);
        counts.entry(bytes).or_insert((row as u32, 0)).1 += 1;
    }
    let mut repeated: Vec<(u32, u32)> = counts.into_values().filter(|(_, count)| *count > 1).collect();
    repeated.sort_unstable_by_key(|(row, count)| (u32::MAX - count, *row));
    repeated
}

#[cfg(test)]
mod tests {
    use melba_store::Chain;
    use melba_types::{Datum, Kind};

    use super::*;

    #[test]
    fn rows_are_drawn_from_everywhere_once() {
        for rows in [0, 1, 1023, 1024] {
            assert_eq!(numbers(rows), (0..rows).collect::<Vec<_>>());
        }
        for rows in [1025, 1100, 2048, 5000, 150_000, 6_001_215] {
            let drawn = numbers(rows);
            assert_eq!(drawn.len(), ROWS);
            assert!(drawn.is_sorted_by(|a, b| a < b) && drawn[ROWS - 1] < rows, "{rows}");
            let half = drawn.iter().filter(|number| **number < rows / 2).count();
            assert!(half.abs_diff(ROWS / 2) <= CLUSTER_ROWS, "{rows}: {half} in the first half");
        }
    }

    #[test]
    fn rows_of_a_memory_table_are_those_of_the_view_and_spread_over_all_ids() {
        let table = RowTable::new();
        let row = |n: u8| Some(RowBytes::from([n].as_slice()));
        {
            let mut map = table.map.write();
            (0..1000).for_each(|id| drop(map.insert(RowId(10 + id * 3), Chain::new(Csn(1), row(1)))));
            if let Some(chain) = map.get_mut(&RowId(10)) {
                chain.push(Csn(5), row(5));
            }
            map.insert(RowId(5000), Chain::new(Csn(9), row(9)));
        }
        let all = rows_of(&table, 0..1001, 1001, Csn(4), true);
        assert_eq!(all.len(), 1000, "the last row is too new");
        assert!(all.iter().all(|(_, row)| row.as_deref() == Some([1].as_slice())), "as the view sees them");
        let some = rows_of(&table, (0..1001).step_by(10), 1001, Csn(4), false);
        assert!(some.is_sorted_by(|a, b| a.0 < b.0));
        let half = some.iter().filter(|(id, _)| id.0 < 1500).count();
        assert!((25..=60).contains(&half), "{half} in the first half");
    }

    #[test]
    fn repeated_values_are_counted() {
        let mut values = Column::with_capacity(Kind::Text, 8);
        for value in ["b", "a", "c", "a", "d", "b", "a"] {
            values.push(Datum::text(value));
        }
        values.push(Datum::Null);
        values.push(Datum::Null);
        assert_eq!(repeated(&values), [(1, 3), (0, 2)]);
    }
}
