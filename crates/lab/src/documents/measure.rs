//! One form of storage, measured: load, single reads, a tenth replaced, a tenth deleted.

use std::time::Duration;

use super::form::{Form, Row};
use super::source::Source;
use crate::Result;
use crate::random::Random;
use crate::statistics::percentile;

/// Raw bytes of rows that are changed together, about, and their number.
const BATCH_BYTES: usize = 16 << 20;
const BATCH_ROWS: usize = 100;
/// One row in this many is replaced, and one deleted.
const CHANGED: u64 = 10;
const DELETED: u64 = 5;

/// The measurements.
#[derive(Debug)]
pub struct Measured {
    pub raw_bytes: u64,
    pub bytes: u64,
    pub insert: Duration,
    pub maintenance: Duration,
    pub read_p50: f64,
    pub read_p99: f64,
    pub update: Duration,
    pub updated_bytes: u64,
    pub delete: Duration,
    pub deleted_bytes: u64,
}

/// Measures a form that has no rows yet. Values read are compared with the values written.
pub fn measure(form: &mut dyn Form, source: &Source, reads: usize) -> Result<Measured> {
    let mut raw_bytes = 0;
    let mut insert = Duration::ZERO;
    for_batches(
        0..source.rows,
        |id| source.row(id),
        |rows| {
            raw_bytes += rows.iter().flat_map(|row| &row.documents).map(|d| d.len() as u64).sum::<u64>();
            insert += form.insert(rows)?;
            Ok(())
        },
    )?;
    let maintenance = form.maintain()?;
    let bytes = form.bytes()?;
    let mut seconds = read_some(form, source, reads)?;
    let mut update = Duration::ZERO;
    for_batches(
        (0..source.rows).step_by(CHANGED as usize),
        |id| source.replacement(id),
        |rows| {
            update += form.update(rows)?;
            Ok(())
        },
    )?;
    update += form.maintain()?;
    let updated_bytes = form.bytes()?;
    let gone: Vec<u64> = (DELETED..source.rows).step_by(CHANGED as usize).collect();
    let mut delete = Duration::ZERO;
    for ids in gone.chunks(BATCH_ROWS) {
        delete += form.delete(ids)?;
    }
    delete += form.maintain()?;
    let deleted_bytes = form.bytes()?;
    check(form, source)?;
    let [read_p50, read_p99] = [0.5, 0.99].map(|share| percentile(&mut seconds, share));
    Ok(Measured { raw_bytes, bytes, insert, maintenance, read_p50, read_p99, update, updated_bytes, delete, deleted_bytes })
}

/// Gathers rows into batches.
fn for_batches(
    ids: impl Iterator<Item = u64>,
    documents: impl Fn(u64) -> Result<Vec<Vec<u8>>>,
    mut each: impl FnMut(&[Row]) -> Result<()>,
) -> Result<()> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for id in ids {
        let row = Row { id, documents: documents(id)? };
        bytes += row.documents.iter().map(Vec::len).sum::<usize>();
        rows.push(row);
        if bytes >= BATCH_BYTES || rows.len() == BATCH_ROWS {
            each(&rows)?;
            (rows, bytes) = (Vec::new(), 0);
        }
    }
    if rows.is_empty() { Ok(()) } else { each(&rows) }
}

/// Reads single rows at random; seconds that each took.
fn read_some(form: &mut dyn Form, source: &Source, reads: usize) -> Result<Vec<f64>> {
    let mut random = Random::new(&[source.rows]);
    let mut seconds = Vec::new();
    for _ in 0..reads.min(form.reads_max()) {
        let id = random.below(source.rows);
        let (documents, took) = form.read(id)?;
        if documents != Some(source.row(id)?) {
            return Err(format!("row {id} is not what was written"));
        }
        seconds.push(took.as_secs_f64());
    }
    Ok(seconds)
}

/// Checks a replaced row, a deleted one, and an unchanged one.
fn check(form: &mut dyn Form, source: &Source) -> Result<()> {
    let expected =
        [(0, Some(source.replacement(0)?)), (1, (source.rows > 1).then(|| source.row(1)).transpose()?), (DELETED, None)];
    for (id, documents) in expected {
        if form.read(id)?.0 != documents {
            return Err(format!("after the changes, row {id} is not what it should be"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::crawl::Shape;
    use crate::documents::files::{Codec, Files};
    use crate::documents::form::timed;

    #[test]
    fn a_form_is_measured() {
        let scratch = tempfile::tempdir().unwrap();
        let source = Source::generated(Shape::Events, 1, 205);
        let mut form = Files::new(scratch.path(), Codec::Zlib);
        let measured = measure(&mut form, &source, 20).unwrap();
        assert!(measured.raw_bytes > 400_000 && measured.bytes >= 205 * 4096, "{measured:?}");
        assert!(measured.updated_bytes >= measured.bytes && measured.deleted_bytes < measured.updated_bytes, "{measured:?}");
        assert!(measured.read_p50 > 0.0 && measured.read_p99 >= measured.read_p50);
    }

    /// Drops its replacements.
    struct Forgetful(Files);

    impl Form for Forgetful {
        fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
            self.0.insert(rows)
        }
        fn update(&mut self, _: &[Row]) -> Result<Duration> {
            timed(|| Ok(())).map(|(_, took)| took)
        }
        fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
            self.0.delete(ids)
        }
        fn maintain(&mut self) -> Result<Duration> {
            self.0.maintain()
        }
        fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
            self.0.read(id)
        }
        fn bytes(&mut self) -> Result<u64> {
            self.0.bytes()
        }
        fn remove(&mut self) -> Result<()> {
            self.0.remove()
        }
    }

    #[test]
    fn a_form_that_answers_wrongly_fails() {
        let scratch = tempfile::tempdir().unwrap();
        let source = Source::generated(Shape::Events, 1, 30);
        let mut form = Forgetful(Files::new(scratch.path(), Codec::Text));
        assert!(measure(&mut form, &source, 5).unwrap_err().contains("row 0"));
    }
}
