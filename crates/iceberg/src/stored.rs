//! Parquet files of a table on its store: written as they come, read as far as the state of the table needs them.

use std::io::{self, Write};
use std::sync::Arc;

use melba_fmgr::Session;
use melba_objects::{Folder, ObjectReader, ObjectWriter};
use melba_parquet::{Compression, FileBytes, FileReader, FileWriter, Wanted, Written};
use melba_types::{Batch, Column, ColumnData, Result, bail, err, oids};
use parking_lot::Mutex;

use crate::schema::ROW_ID_NAME;

/// Rows read at a time.
const BATCH_ROWS: usize = 8192;

/// Columns of position deletes, with their reserved field ids.
const DELETE_COLUMNS: [(&str, i32); 2] = [("file_path", 2_147_483_546), ("pos", 2_147_483_545)];

/// Counts the bytes on their way to an object.
struct Counted {
    object: ObjectWriter,
    bytes: u64,
}

/// Shared with the writer of the format, which does not give it back.
#[derive(Clone)]
struct Target(Arc<Mutex<Option<Counted>>>);

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut target = self.0.lock();
        let counted = target.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        counted.object.write(bytes).map_err(io::Error::other)?;
        counted.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file of a table being written. One that is not finished is none.
pub struct FileOut {
    writer: FileWriter<Target>,
    target: Target,
}

/// Is told how many bytes the writer holds.
pub type Announce = Arc<dyn Fn(usize) -> Result<()> + Send + Sync>;

impl FileOut {
    pub fn create(
        folder: &Folder,
        name: &str,
        session: &Arc<dyn Session>,
        columns: Vec<Written>,
        ids: Vec<i32>,
        announce: &Announce,
    ) -> Result<FileOut> {
        let target = Target(Arc::new(Mutex::new(Some(Counted { object: folder.writer(name)?, bytes: 0 }))));
        let announce = Arc::clone(announce);
        let writer = FileWriter::new(Arc::clone(session), columns, target.clone(), Box::new(move |bytes| announce(bytes)))
            .compression(Compression::Zstd)
            .field_ids(ids);
        Ok(FileOut { writer, target })
    }

    pub fn push(&mut self, batch: Batch) -> Result<()> {
        self.writer.push(batch)
    }

    /// Bytes that are on their way.
    pub fn bytes(&self) -> u64 {
        self.target.0.lock().as_ref().map_or(0, |counted| counted.bytes)
    }

    /// The file's bytes, all of which are there.
    pub fn finish(mut self) -> Result<u64> {
        self.writer.finish()?;
        let Some(Counted { object, bytes }) = self.target.0.lock().take() else {
            bail!(INTERNAL_ERROR, "a file without a target")
        };
        object.finish()?;
        Ok(bytes)
    }
}

/// Writes the positions that are deleted of files: by file, ascending.
///
/// # Errors
/// Those of the store.
pub fn write_deletes(
    folder: &Folder,
    name: &str,
    session: &Arc<dyn Session>,
    deletes: &[(&str, Vec<u64>)],
    announce: &Announce,
) -> Result<u64> {
    let types = [oids::TEXT, oids::INT8];
    let columns = DELETE_COLUMNS.iter().zip(types).map(|((name, _), ty)| Written { name: (*name).into(), ty, typmod: -1 });
    let ids = DELETE_COLUMNS.iter().map(|(_, id)| *id).collect();
    let mut out = FileOut::create(folder, name, session, columns.collect(), ids, announce)?;
    for (path, positions) in deletes {
        for some in positions.chunks(BATCH_ROWS) {
            let mut paths = Column::with_capacity(melba_types::Kind::Text, some.len());
            let path = melba_types::Datum::text(*path);
            some.iter().for_each(|_| paths.push(path.clone()));
            let positions = Column::new(ColumnData::Int8(some.iter().map(|position| *position as i64).collect()));
            out.push(Batch::new(vec![paths, positions], some.len()))?;
        }
    }
    out.finish()
}

/// An object as a file's bytes.
struct Stored(ObjectReader);

impl FileBytes for Stored {
    fn len(&self) -> u64 {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read = self.0.read(offset..offset + out.len() as u64).map_err(io::Error::other)?;
        if read.len() != out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.copy_from_slice(&read);
        Ok(())
    }

    fn read_ahead(&self) -> usize {
        1 << 20
    }
}

/// Reads columns of a file, by their names and types.
fn read(
    folder: &Folder,
    name: &str,
    session: &Arc<dyn Session>,
    columns: &[(&str, melba_types::Oid)],
    mut each: impl FnMut(usize, &[Column]) -> Result<()>,
) -> Result<()> {
    let file = FileReader::open(Arc::new(Stored(folder.reader(name)?)))?;
    let mut wanted = Vec::with_capacity(columns.len());
    for (column, ty) in columns {
        let at = file.columns().iter().position(|c| c.name == *column);
        let at = at.ok_or_else(|| err!(DATA_CORRUPTED, "\"{}\" has no column \"{column}\"", folder.url(name)))?;
        wanted.push(Wanted { at, name: (*column).into(), ty: *ty, typmod: -1 });
    }
    let mut scan = file.scan(Arc::clone(session), &wanted)?;
    while let Some((rows, columns)) = scan.next(BATCH_ROWS)? {
        each(rows, &columns)?;
    }
    Ok(())
}

/// Passes the ids of a data file's rows on, in order.
pub fn read_row_ids(folder: &Folder, name: &str, session: &Arc<dyn Session>, mut each: impl FnMut(u64)) -> Result<()> {
    read(folder, name, session, &[(ROW_ID_NAME, oids::INT8)], |rows, columns| {
        (0..rows).for_each(|row| each(columns[0].get(row).as_i64() as u64));
        Ok(())
    })
}

/// Passes the positions on that a file of deletes has, with the paths of the files.
pub fn read_deletes(folder: &Folder, name: &str, session: &Arc<dyn Session>, mut each: impl FnMut(&str, u64)) -> Result<()> {
    let columns = [(DELETE_COLUMNS[0].0, oids::TEXT), (DELETE_COLUMNS[1].0, oids::INT8)];
    read(folder, name, session, &columns, |rows, columns| {
        (0..rows).for_each(|row| each(columns[0].get(row).as_str(), columns[1].get(row).as_i64() as u64));
        Ok(())
    })
}
