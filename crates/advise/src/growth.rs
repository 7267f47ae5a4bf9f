//! Extrapolates from a sample to the whole table: the table is read again, all of it or some long parts, and the size of its
//! values by lz4 and in dense sections is computed. The measured sizes of the sample are scaled by that.

use crate::Result;
use crate::sample::{Sample, Storage, Window};
use crate::sections::{SectionRules, Sections, Taken};

/// Parts of a table that is not read whole: each is to be longer than a section.
const WINDOWS: u64 = 3;
/// The size of a row beside its section, at most: a pointer to its frames, ordinals, its share of directories.
const BESIDE_BYTES_MAX: f64 = 64.0;

/// The sizes of a column's values, computed the same way for the sample and for the table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    pub sample: Taken,
    pub table: Taken,
    /// The server stores another form than the one that was computed with.
    pub is_other_form: bool,
    pub sample_rows: f64,
    /// How many times as many rows the table has.
    pub rows: f64,
}

impl Growth {
    /// For values compressed alone: the table's bytes for the sample's.
    pub fn alone(&self, bytes: f64) -> f64 {
        bytes * self.table.lz4_bytes / self.sample.lz4_bytes.max(1.0)
    }

    /// For dense values. The server's bytes beside the computed sections are proportional to rows, and few for each; the
    /// remaining difference is proportional to the computed size.
    pub fn dense(&self, bytes: f64) -> f64 {
        let beside_max = if self.is_other_form { 0.0 } else { self.sample_rows * BESIDE_BYTES_MAX };
        let beside = (bytes - self.sample.dense_bytes).clamp(0.0, beside_max);
        (bytes - beside) * self.table.dense_bytes / self.sample.dense_bytes.max(1.0) + beside * self.rows
    }
}

/// Reads a table again, as many bytes as may be: how its candidates grow, in their order; notes how large it is.
pub fn survey(sample: &mut Sample, rules: SectionRules, bytes_max: u64, step: &mut dyn FnMut()) -> Result<Vec<Growth>> {
    let columns = sample.candidates();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let storages: Vec<Storage> = columns.iter().map(|at| sample.columns[*at].storage).collect();
    let new = || -> Vec<Sections> { columns.iter().map(|_| Sections::new(rules)).collect() };
    let take = |sections: &mut [Sections], row: &[Option<Box<[u8]>>]| -> Result<()> {
        let values = columns.iter().map(|at| row[*at].as_deref());
        sections.iter_mut().zip(&storages).zip(values).try_for_each(|((sections, storage), value)| match value {
            Some(value) => sections.take(&storage.content(value)),
            None => Ok(()),
        })
    };
    let mut looked_at = new();
    sample.rows.iter().try_for_each(|row| take(&mut looked_at, row))?;
    let (mut all, mut rows) = (new(), 0u64);
    let windows = windows(sample.bytes_total(), bytes_max);
    for (at, window) in windows.iter().enumerate() {
        if at > 0 {
            all.iter_mut().try_for_each(Sections::leap)?;
        }
        (sample.scan)(window, &mut |row| {
            rows += 1;
            take(&mut all, row)
        })?;
    }
    let is_whole = windows.len() == 1;
    if is_whole {
        sample.rows_total = rows as f64;
    }
    let unread = sample.rows_total / rows.max(1) as f64;
    let (mut scale, mut weight) = (0.0, 0.0);
    let mut growths = Vec::new();
    for at in 0..columns.len() {
        looked_at[at].finish()?;
        if is_whole {
            all[at].finish()?
        } else {
            all[at].leap()?
        }
        let growth = Growth {
            sample: looked_at[at].taken(),
            table: all[at].taken().times(unread),
            is_other_form: storages[at] == Storage::Jsonb,
            sample_rows: sample.rows.len() as f64,
            rows: sample.rows_total / sample.rows.len().max(1) as f64,
        };
        scale += growth.table.lz4_bytes;
        weight += growth.sample.lz4_bytes;
        growths.push(growth);
        step();
    }
    sample.scale = scale / weight.max(1.0);
    Ok(growths)
}

/// The whole table, or parts of it at equal distances, the last one its end.
fn windows(bytes_total: f64, bytes_max: u64) -> Vec<Window> {
    let share = bytes_max as f64 / WINDOWS as f64 / bytes_total.max(1.0);
    if bytes_total <= bytes_max as f64 {
        return vec![0.0..1.0];
    }
    let start = |at: u64| (1.0 - share) * at as f64 / (WINDOWS - 1) as f64;
    (0..WINDOWS).map(|at| start(at)..start(at) + share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dense_grows_as_its_sections_do_and_what_is_beside_them_with_the_rows() {
        let taken = |lz4_bytes, dense_bytes| Taken { lz4_bytes, dense_bytes, ..Taken::default() };
        let (sample, table) = (taken(1e5, 2e4), taken(8e5, 6e4));
        let growth = Growth { sample, table, is_other_form: false, sample_rows: 100.0, rows: 10.0 };
        assert_eq!(growth.alone(1.1e5), 8.8e5);
        assert_eq!(growth.dense(2.1e4), 6e4 + 1e4, "ten bytes a row");
        assert_eq!(growth.dense(2.64e4), 6e4 + 6.4e4, "as many as that may be");
        assert_eq!(growth.dense(4.64e4), 12e4 + 6.4e4, "the rest was computed wrongly");
        assert_eq!(growth.dense(1e4), 3e4);
        assert_eq!(Growth { is_other_form: true, ..growth }.dense(3e4), 9e4);
    }

    #[test]
    fn tables_are_read_whole_or_in_three_parts() {
        assert_eq!(windows(100.0, 100), [0.0..1.0]);
        assert_eq!(windows(1200.0, 300), [0.0..1.0 / 12.0, 11.0 / 24.0..13.0 / 24.0, 11.0 / 12.0..1.0]);
    }
}
