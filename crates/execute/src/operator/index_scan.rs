//! Index scans: key ranges computed from the current parameters, row ids, then rows fetched in batches.

use std::ops::Bound;
use std::sync::Arc;

use melba_engine::IndexScan;
use melba_types::{Batch, Column, Datum, DbError, Result, RowId, SqlState};

use super::note_scan;
use super::pending::{Pending, give_filtered};
use super::table_scan::outputs;
use crate::{ExecContext, Operator};
use melba_expression::has_effects;
use melba_expression::key::KeyPart;
use melba_plan::node::{Covered, IndexArm, IndexScanNode, KeyBound, KeyMatch, KeyRange};
use melba_plan::pattern;
use melba_types::BATCH_ROWS;

/// Room made for the values of a batch.
const ROWS_EXPECTED: usize = 256;

/// Keys from `lower` to `upper`. Included bounds are prefixes: keys that start with them are within.
#[derive(Clone, Debug, PartialEq)]
struct ByteRange {
    lower: Vec<u8>,
    upper: Vec<u8>,
    upper_inclusive: bool,
}

impl ByteRange {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let upper = if self.upper_inclusive { Bound::Included(&self.upper[..]) } else { Bound::Excluded(&self.upper[..]) };
        (Bound::Included(&self.lower), upper)
    }

    /// The least bytes above all of its keys; `None`: there are none.
    fn end(&self) -> Option<Vec<u8>> {
        let mut end = self.upper.clone();
        (!self.upper_inclusive || successor(&mut end)).then_some(end)
    }
}

pub(super) struct IndexScanOp {
    id: usize,
    node: Arc<IndexScanNode>,
    /// Ranges still to scan, the next one last.
    ranges: Vec<ByteRange>,
    scan: Option<IndexScan>,
    /// It has not reached the end of its range.
    scanning: bool,
    /// Arms of several scans: the rows of their union, still to fetch.
    union: Option<std::vec::IntoIter<RowId>>,
    started: bool,
    pending: Pending,
    ids: Vec<RowId>,
    /// Rows fetched at once; grows, so that a point lookup stays one and a long scan becomes batched.
    batch: usize,
}

impl IndexScanOp {
    pub fn new(id: usize, node: Arc<IndexScanNode>) -> IndexScanOp {
        IndexScanOp {
            id,
            node,
            ranges: Vec::new(),
            scan: None,
            scanning: false,
            union: None,
            started: false,
            pending: Pending::default(),
            ids: Vec::new(),
            batch: 16,
        }
    }

    fn start(&mut self, ctx: &ExecContext) -> Result<()> {
        self.started = true;
        self.batch = 16;
        if self.node.is_one_scan() {
            for arm in &self.node.arms {
                self.ranges.extend(ranges(arm, ctx)?);
            }
            if self.node.arms.len() > 1 {
                self.ranges = disjoint(std::mem::take(&mut self.ranges));
            }
            if !self.node.reverse {
                self.ranges.reverse();
            }
            return Ok(());
        }
        let mut ids = Vec::new();
        for arm in &self.node.arms {
            for range in ranges(arm, ctx)? {
                let mut scan = open(arm, &range, false, ctx)?;
                let before = ids.len();
                while let Some((_, id)) = scan.next()? {
                    ids.push(id);
                }
                note_scan(ctx, arm.tree, 1, ids.len() - before);
                ctx.record_timing(self.id, |t| t.searches += 1);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        self.union = Some(ids.into_iter());
        Ok(())
    }

    /// The scan at the next entries; false when there are none.
    fn advance(&mut self, ctx: &ExecContext) -> Result<bool> {
        if !self.scanning {
            let Some(range) = self.ranges.pop() else { return Ok(false) };
            note_scan(ctx, self.node.arms[0].tree, 1, 0);
            ctx.record_timing(self.id, |t| t.searches += 1);
            match &mut self.scan {
                Some(scan) => scan.restart(range.bounds(), None)?,
                None => self.scan = Some(open(&self.node.arms[0], &range, self.node.reverse, ctx)?),
            }
        }
        Ok(true)
    }

    /// Fills `ids` with the next rows.
    fn collect(&mut self, ctx: &ExecContext, limit: usize) -> Result<()> {
        self.ids.clear();
        if let Some(union) = &mut self.union {
            self.ids.extend(union.take(limit));
            return Ok(());
        }
        while self.ids.len() < limit && self.advance(ctx)? {
            let Some(scan) = &mut self.scan else { return Ok(()) };
            self.scanning = scan.next_rows(limit - self.ids.len(), &mut self.ids)?;
        }
        note_scan(ctx, self.node.arms[0].tree, 0, self.ids.len());
        Ok(())
    }

    /// Fills `ids` with the next rows, and returns their columns from the keys.
    fn collect_covered(&mut self, ctx: &ExecContext, covered: &Covered, limit: usize) -> Result<Vec<Column>> {
        self.ids.clear();
        let mut columns: Vec<Column> =
            covered.kinds.iter().map(|kind| Column::with_capacity(*kind, limit.min(ROWS_EXPECTED))).collect();
        let node = self.node.clone();
        let parts = &node.arms[0].parts;
        while self.ids.len() < limit && self.advance(ctx)? {
            let Some(scan) = &mut self.scan else { break };
            let ids = &mut self.ids;
            let mut intact = true;
            self.scanning = scan.next_entries(limit - ids.len(), |key, row| {
                ids.push(row);
                intact &= push_key(parts, &covered.places, key, &mut columns).is_some();
            })?;
            if !intact {
                return Err(not_a_key());
            }
        }
        note_scan(ctx, node.arms[0].tree, 0, self.ids.len());
        Ok(columns)
    }

    /// The next rows before the filter, about `want`; `None` at the end.
    fn read(&mut self, ctx: &ExecContext, want: usize) -> Result<Option<Batch>> {
        let node = self.node.clone();
        let source = &node.source;
        if let Some(covered) = &node.covered {
            let columns = self.collect_covered(ctx, covered, want)?;
            let batch = outputs(ctx, source, &self.ids, columns)?;
            return Ok((batch.rows > 0).then_some(batch));
        }
        loop {
            self.collect(ctx, want)?;
            if self.ids.is_empty() {
                return Ok(None);
            }
            let (kept, columns) =
                ctx.transaction().fetch(ctx.view(), source.tree, &self.ids, &source.projection, &source.missing)?;
            if kept.is_empty() {
                continue;
            }
            if kept.len() == self.ids.len() {
                return outputs(ctx, source, &self.ids, columns).map(Some);
            }
            let ids: Vec<RowId> = kept.iter().map(|&i| self.ids[i as usize]).collect();
            return outputs(ctx, source, &ids, columns).map(Some);
        }
    }
}

/// Appends the values that a key has to the columns that they are of; `None` when it is not such a key.
pub(super) fn push_key(parts: &[KeyPart], places: &[Option<usize>], key: &[u8], columns: &mut [Column]) -> Option<()> {
    let mut rest = key;
    for (part, place) in parts.iter().zip(places) {
        let (value, behind) = part.decode(rest)?;
        rest = behind;
        if let Some(place) = place {
            columns[*place].push(value);
        }
    }
    Some(())
}

pub(super) fn not_a_key() -> DbError {
    DbError::new(SqlState::DATA_CORRUPTED, "an index entry is not a key of its index")
}

fn open(arm: &IndexArm, range: &ByteRange, reverse: bool, ctx: &ExecContext) -> Result<IndexScan> {
    let (lower, upper) = range.bounds();
    Ok(ctx.transaction().index(arm.tree).scan(ctx.view(), lower, upper, reverse)?)
}

impl Operator for IndexScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(self.pending.rows_within(limit)) {
            return Ok(Some(batch));
        }
        if !self.started {
            self.start(ctx)?;
        }
        loop {
            // Without a filter, no more rows are fetched than requested; with effects, those of rows that are not are yet to come.
            let exact = self.node.filter.is_empty() || has_effects(self.node.filter.iter());
            let want = if exact { self.batch.min(limit) } else { self.batch };
            let Some(batch) = self.read(ctx, want)? else { return Ok(None) };
            self.batch = (self.batch * 4).min(BATCH_ROWS);
            let passed = give_filtered(&mut self.pending, (self.id, &self.node.filter), ctx, batch, limit)?;
            if passed.is_some() {
                return Ok(passed);
            }
        }
    }

    /// The entries that a view sees are those of the rows that it sees: skipped rows are not fetched.
    fn skip(&mut self, ctx: &ExecContext, limit: usize) -> Result<usize> {
        if !self.node.filter.is_empty() {
            return Ok(0);
        }
        if !self.started {
            self.start(ctx)?;
        }
        self.collect(ctx, limit)?;
        Ok(self.ids.len())
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.started = false;
        self.ranges.clear();
        self.scan = None;
        self.scanning = false;
        self.union = None;
        self.pending.clear();
        Ok(())
    }
}

/// The key ranges of an arm, ascending and disjoint. A NULL operand matches nothing.
fn ranges(arm: &IndexArm, ctx: &ExecContext) -> Result<Vec<ByteRange>> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::with_capacity(24)];
    for (part, key) in arm.parts.iter().zip(&arm.matches) {
        match key {
            KeyMatch::Equal(value) => {
                let value = value.eval_row(ctx, &[])?;
                if value.is_null() {
                    return Ok(vec![]);
                }
                prefixes.iter_mut().for_each(|p| part.encode(&value, p));
            }
            KeyMatch::IsNull => prefixes.iter_mut().for_each(|p| part.encode(&Datum::Null, p)),
            KeyMatch::AnyOf(list) => {
                let Datum::Array(list) = list.eval_row(ctx, &[])? else { return Ok(vec![]) };
                let mut next = Vec::with_capacity(prefixes.len() * list.elements.len());
                for prefix in &prefixes {
                    for value in list.elements.iter().filter(|v| !v.is_null()) {
                        let mut bytes = prefix.clone();
                        part.encode(value, &mut bytes);
                        next.push(bytes);
                    }
                }
                next.sort_unstable();
                next.dedup();
                prefixes = next;
            }
        }
    }
    let Some(range) = &arm.range else {
        return Ok(prefixes.into_iter().map(|p| ByteRange { lower: p.clone(), upper: p, upper_inclusive: true }).collect());
    };
    let parts = &arm.parts[arm.matches.len()..];
    let mut out = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        out.extend(bounded(parts, range, prefix, ctx)?);
    }
    Ok(out)
}

/// Ranges in order, those that overlap as one.
fn disjoint(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    ranges.sort_unstable_by(|a, b| a.lower.cmp(&b.lower));
    let mut out: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let Some(last) = out.last_mut() else {
            out.push(range);
            continue;
        };
        match (last.end(), range.end()) {
            (Some(end), _) if end <= range.lower => out.push(range),
            (Some(end), more) if more.as_ref().is_none_or(|more| *more > end) => {
                (last.upper, last.upper_inclusive) = (range.upper, range.upper_inclusive);
            }
            _ => {}
        }
    }
    out
}

/// The range of one prefix.
fn bounded(parts: &[KeyPart], range: &KeyRange, prefix: Vec<u8>, ctx: &ExecContext) -> Result<Option<ByteRange>> {
    let is_descending = parts[0].descending();
    let mut all = prefix.clone();
    all.push(KeyPart::not_null_marker().0);
    let everything = ByteRange { lower: all.clone(), upper: all, upper_inclusive: true };
    match range {
        KeyRange::NotNull => Ok(Some(everything)),
        KeyRange::Prefix { pattern, case_regex } => {
            let Datum::Text(text) = pattern.eval_row(ctx, &[])? else { return Ok(None) };
            let fixed = if *case_regex { pattern::regex_prefix(&text) } else { pattern::like_prefix(&text) };
            if fixed.is_empty() || is_descending {
                return Ok(Some(everything));
            }
            let mut lower = everything.lower;
            lower.extend_from_slice(fixed.as_bytes());
            Ok(Some(ByteRange { upper: lower.clone(), lower, upper_inclusive: true }))
        }
        KeyRange::Between { lower, upper } => {
            let (low, high) = if is_descending { (upper, lower) } else { (lower, upper) };
            let mut range = everything;
            if let Some(low) = low {
                let Some((lower, inclusive)) = encoded(parts, low, &prefix, ctx)? else { return Ok(None) };
                range.lower = lower;
                if !inclusive && !successor(&mut range.lower) {
                    return Ok(None);
                }
            }
            if let Some(high) = high {
                let Some((upper, inclusive)) = encoded(parts, high, &prefix, ctx)? else { return Ok(None) };
                (range.upper, range.upper_inclusive) = (upper, inclusive);
            }
            Ok(Some(range))
        }
    }
}

/// The bytes of a bound behind a prefix, and whether it is inclusive; `None` when nothing is within it. A NULL among later values decides
/// nothing: then the values before it are the bound.
fn encoded(parts: &[KeyPart], bound: &KeyBound, prefix: &[u8], ctx: &ExecContext) -> Result<Option<(Vec<u8>, bool)>> {
    let mut bytes = prefix.to_vec();
    for (at, (value, part)) in bound.values.iter().zip(parts).enumerate() {
        let value = value.eval_row(ctx, &[])?;
        if value.is_null() {
            return Ok((at > 0).then_some((bytes, true)));
        }
        part.encode(&value, &mut bytes);
    }
    Ok(Some((bytes, bound.inclusive)))
}

/// Turns bytes into the least bytes above everything that starts with them; false when there are none.
fn successor(bytes: &mut Vec<u8>) -> bool {
    while let Some(last) = bytes.last_mut() {
        if *last < 255 {
            *last += 1;
            return true;
        }
        bytes.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lower: &[u8], upper: &[u8], upper_inclusive: bool) -> ByteRange {
        ByteRange { lower: lower.to_vec(), upper: upper.to_vec(), upper_inclusive }
    }

    #[test]
    fn ranges_that_overlap_are_joined() {
        let joined = disjoint(vec![
            range(b"k", b"m", false),
            range(b"b", b"d", true),
            range(b"a", b"c", false),
            range(b"dz", b"e", false),
            range(b"m", b"m", true),
            range(b"x", b"y", false),
            range(b"w", b"\xff", true),
        ]);
        // Keys that begin with d are in [b, d], so that [dz, e) adds nothing.
        let expected = [range(b"a", b"d", true), range(b"k", b"m", false), range(b"m", b"m", true), range(b"w", b"\xff", true)];
        assert_eq!(joined, expected);
        let (empty, within) = (range(b"z", b"a", false), range(b"c", b"b", false));
        assert_eq!(disjoint(vec![empty.clone(), range(b"a", b"d", false), within]), [range(b"a", b"d", false), empty]);
    }
}
