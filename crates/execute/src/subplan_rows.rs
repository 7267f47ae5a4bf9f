//! The rows of a sub-plan that is compared with by IN, ANY or ALL.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_engine::Held;
use melba_expression::key::KeyPart;
use melba_spill::{Place, Store};
use melba_types::{BATCH_ROWS, Batch, Datum, Result};
use parking_lot::Mutex;

use super::key_overhead::KEY_OVERHEAD_BYTES;
use melba_expression::Evaluation;

/// Columns of which some are null, or left out of a key: a bit each.
type ColumnSet = u64;

/// Sets of partial keys that are made. Of many columns with nulls here and there, each pair of sets could want its own, and all together
/// far more memory than the rows.
const PARTIAL_MAX: usize = 64;

/// All rows of a sub-plan, for comparisons with each.
pub(crate) struct SubPlanRows {
    rows: Mutex<Store>,
    /// When the sub-plan can be probed by hash.
    keys: Option<Mutex<ProbeKeys>>,
}

/// The rows' keys of equality. They stay in memory: any of them may be looked up.
struct ProbeKeys {
    parts: Arc<[KeyPart]>,
    held: Held,
    /// ProbeKeys of rows without nulls.
    whole: HashSet<Vec<u8>>,
    /// The sets of columns that are null in some row, the empty one as well.
    nulls: Vec<ColumnSet>,
    /// ProbeKeys without the columns of the second set, of rows whose nulls are the first. Made when they are first looked up.
    partial: HashMap<(ColumnSet, ColumnSet), HashSet<Vec<u8>>>,
}

impl SubPlanRows {
    /// `parts` are empty when the sub-plan cannot be probed by hash.
    pub fn new(ctx: &Evaluation, parts: Arc<[KeyPart]>) -> SubPlanRows {
        let is_probed = !parts.is_empty() && parts.len() <= ColumnSet::BITS as usize;
        let held = ctx.resources().held();
        let keys = ProbeKeys { parts, held, whole: HashSet::new(), nulls: Vec::new(), partial: HashMap::new() };
        SubPlanRows { rows: Mutex::new(Store::new(ctx.resources())), keys: is_probed.then(|| Mutex::new(keys)) }
    }

    /// Adds rows.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if let Some(keys) = &mut self.keys {
            keys.get_mut().add(&batch)?;
        }
        self.rows.get_mut().push(batch)
    }

    /// Rows from a place on.
    pub fn read(&self, place: &mut Place) -> Result<Option<Batch>> {
        self.rows.lock().read(place, BATCH_ROWS)
    }

    /// Number of rows.
    pub fn count(&self) -> u64 {
        self.rows.lock().rows()
    }

    /// IN by hash: found, not found, or (`Some(None)`) unknown; `None` when hashing cannot decide.
    ///
    /// A row that differs in no column where neither side is null leaves the answer unknown. Such rows are looked up by the other
    /// columns, for each set of columns that are null in some row.
    pub fn contains(&self, ctx: &Evaluation, values: &[Datum]) -> Result<Option<Option<bool>>> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let mut keys = keys.lock();
        let nulls = values.iter().enumerate().filter(|(_, value)| value.is_null()).fold(0, |all, (i, _)| all | 1 << i);
        if nulls == 0 && keys.whole.contains(&keys.key(values, 0)) {
            return Ok(Some(Some(true)));
        }
        for at in 0..keys.nulls.len() {
            let of_rows = keys.nulls[at];
            let left_out: ColumnSet = of_rows | nulls;
            if left_out == 0 {
                continue;
            }
            match self.has_partial(ctx, &mut keys, (of_rows, left_out), values)? {
                Some(false) => {}
                Some(true) => return Ok(Some(None)),
                None => return Ok(None),
            }
        }
        Ok(Some(Some(false)))
    }

    /// Whether a row whose nulls are the first of the sets equals the values in the columns outside of the second; `None`: there are
    /// too many sets.
    fn has_partial(
        &self,
        ctx: &Evaluation,
        keys: &mut ProbeKeys,
        sets: (ColumnSet, ColumnSet),
        values: &[Datum],
    ) -> Result<Option<bool>> {
        if sets.1.count_ones() as usize == keys.parts.len() {
            return Ok(Some(true));
        }
        if !keys.partial.contains_key(&sets) {
            if keys.partial.len() == PARTIAL_MAX {
                return Ok(None);
            }
            let mut place = 0;
            let mut found = HashSet::new();
            while let Some(batch) = self.read(&mut place)? {
                ctx.check_interrupt()?;
                keys.add_partial(&batch, sets, &mut found)?;
            }
            keys.partial.insert(sets, found);
        }
        Ok(Some(keys.partial[&sets].contains(&keys.key(values, sets.1))))
    }
}

impl ProbeKeys {
    /// The key of values without the columns of a set.
    fn key(&self, values: &[Datum], left_out: ColumnSet) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        for (i, (part, value)) in self.parts.iter().zip(values).enumerate() {
            if left_out & 1 << i == 0 {
                part.encode(value, &mut key);
            }
        }
        key
    }

    /// The key of a row without the columns of a set.
    fn key_at(&self, batch: &Batch, row: usize, left_out: ColumnSet) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        for (i, (part, column)) in self.parts.iter().zip(&batch.columns).enumerate() {
            if left_out & 1 << i == 0 {
                part.encode_at(column, row, &mut key);
            }
        }
        key
    }

    fn nulls_at(&self, batch: &Batch, row: usize) -> ColumnSet {
        let columns = batch.columns[..self.parts.len()].iter().enumerate();
        columns.filter(|(_, column)| column.is_null(row)).fold(0, |all, (i, _)| all | 1 << i)
    }

    fn add(&mut self, batch: &Batch) -> Result<()> {
        let mut bytes = 0;
        for row in 0..batch.rows {
            let nulls = self.nulls_at(batch, row);
            if !self.nulls.contains(&nulls) {
                self.nulls.push(nulls);
            }
            if nulls == 0 {
                let key = self.key_at(batch, row, 0);
                bytes += key.len() + KEY_OVERHEAD_BYTES;
                self.whole.insert(key);
            }
        }
        Ok(self.held.grow(bytes)?)
    }

    fn add_partial(
        &mut self,
        batch: &Batch,
        (of_rows, left_out): (ColumnSet, ColumnSet),
        found: &mut HashSet<Vec<u8>>,
    ) -> Result<()> {
        let mut bytes = 0;
        for row in (0..batch.rows).filter(|row| self.nulls_at(batch, *row) == of_rows) {
            let key = self.key_at(batch, row, left_out);
            let length = key.len();
            if found.insert(key) {
                bytes += length + KEY_OVERHEAD_BYTES;
            }
        }
        Ok(self.held.grow(bytes)?)
    }
}
