//! Reads files: their columns, and rows as columns of the types that the caller wants.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader as _, Length as _};

use melba_fmgr::{Session, io, lookup};
use melba_types::{Column, ColumnData, DbError, Kind, Oid, Result, bail, err, limits};

use crate::decode::{self, Raw, RowError};
use crate::file_type::{FileField, FileType, type_name};
use crate::fit::{self, Target};
use crate::footer;
use crate::levels::{self, Assembly, Levels, Nesting};
use crate::pages::{self, Progress};
use crate::prune::{self, ColumnLimits};
use crate::source::{Chunks, FileBytes};
use crate::{TYPES_KEY, damaged};

const MAGIC: &[u8] = b"PAR1";
/// Bytes of the strings and lists of a batch, about, unless a single row has more.
const BATCH_BYTES_MAX: usize = 32 << 20;
/// The same of each of many columns.
const COLUMN_BYTES_MIN: usize = 256 << 10;
/// What a value of a list takes while an array is put together, about.
const LIST_VALUE_BYTES: usize = 96;
/// Magic, an empty footer, its length, and the magic again.
const FILE_BYTES_MIN: u64 = 12;

/// A column of a file.
pub struct FileColumn {
    pub name: String,
    field: FileField,
    /// Its place among those that hold values.
    leaf: usize,
}

/// A file whose footer was read.
pub struct FileReader {
    chunks: Chunks,
    metadata: Arc<ParquetMetaData>,
    columns: Arc<Vec<FileColumn>>,
}

/// A column that a scan reads, and what it becomes.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Place among the file's columns.
    pub at: usize,
    /// The name in errors: the table's column.
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
}

impl FileReader {
    /// Reads a file's footer.
    ///
    /// # Errors
    /// 22P04 for what is no Parquet file, or a damaged one; 58030 when it cannot be read.
    pub fn open(source: Arc<dyn FileBytes>) -> Result<FileReader> {
        let chunks = Chunks(source);
        if chunks.len() < FILE_BYTES_MIN {
            bail!(BAD_COPY_FILE_FORMAT, "file is not a Parquet file");
        }
        let ends = [0, chunks.len() - MAGIC.len() as u64].map(|at| chunks.get_bytes(at, MAGIC.len()).map_err(damaged));
        let [begin, end] = ends;
        if begin? != MAGIC {
            bail!(BAD_COPY_FILE_FORMAT, "file is not a Parquet file");
        }
        if end? != MAGIC {
            return Err(err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail("The end of the file is missing."));
        }
        let metadata = guarded(|| footer::read(&chunks))?;
        let schema = metadata.file_metadata().schema_descr();
        let leaf = |root: usize| (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == root);
        let fields = schema.root_schema().get_fields().iter().enumerate();
        let column = |(at, field): (usize, &Arc<parquet::schema::types::Type>)| FileColumn {
            name: field.name().to_owned(),
            field: FileField::of(field),
            leaf: leaf(at).unwrap_or(0),
        };
        Ok(FileReader { columns: Arc::new(fields.map(column).collect()), chunks, metadata: Arc::new(metadata) })
    }

    pub fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    /// Rows that the footer promises.
    pub fn rows(&self) -> i64 {
        self.metadata.file_metadata().num_rows()
    }

    /// The PostgreSQL types that the writer noted, by column: texts that a CREATE TABLE takes.
    pub fn noted_types(&self) -> Vec<Option<String>> {
        let noted = self.metadata.file_metadata().key_value_metadata().into_iter().flatten();
        let text = noted.into_iter().find(|pair| pair.key == TYPES_KEY).and_then(|pair| pair.value.as_deref());
        let list: Vec<serde_json::Value> = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let of = |column: &FileColumn| {
            let entry = list.iter().find(|entry| entry["name"].as_str() == Some(&column.name))?;
            entry["type"].as_str().map(str::to_owned)
        };
        self.columns.iter().map(of).collect()
    }

    /// Types for a table that takes the file's columns: those noted that every server has, or those next to the columns'.
    ///
    /// # Errors
    /// 0A000 for structs and maps.
    pub fn type_names(&self) -> Result<Vec<String>> {
        let catalog = melba_catalog::Catalog::default();
        // A user's type is noted with its schema.
        let noted = self.noted_types().into_iter().map(|noted| noted.filter(|name| !name.contains('.')));
        let name = |(at, noted): (usize, Option<String>)| {
            let (ty, nesting) = self.described(at)?;
            Ok(noted.unwrap_or_else(|| type_name(ty, nesting.is_some(), &catalog)))
        };
        noted.enumerate().map(name).collect()
    }

    /// The type next to a column's: of a list, the elements'.
    ///
    /// # Errors
    /// 0A000 for structs and maps.
    pub fn natural(&self, at: usize) -> Result<(Oid, i32, bool)> {
        let (ty, nesting) = self.described(at)?;
        let (oid, typmod) = ty.natural();
        Ok((oid, typmod, nesting.is_some()))
    }

    fn described(&self, at: usize) -> Result<(FileType, Option<&Nesting>)> {
        let column = &self.columns[at];
        match &column.field {
            FileField::Column { ty, nesting } => Ok((*ty, nesting.as_ref())),
            FileField::Other(what) => {
                Err(DbError::unsupported(format!("column \"{}\" of the Parquet file, which is {what},", column.name)))
            }
        }
    }

    /// Whether a column's type can become the wanted one.
    pub fn fits(&self, session: &dyn Session, wanted: &Wanted) -> bool {
        self.described(wanted.at).is_ok_and(|(ty, nesting)| scanned(session, wanted, ty, nesting, 0).is_ok())
    }

    /// Begins to read some columns.
    ///
    /// # Errors
    /// 42804 for a column whose type cannot become the wanted one.
    pub fn scan(&self, session: Arc<dyn Session>, wanted: &[Wanted]) -> Result<Scan> {
        let mut columns = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let (ty, nesting) = self.described(wanted.at)?;
            columns.push(scanned(&*session, wanted, ty, nesting, self.columns[wanted.at].leaf)?);
        }
        Ok(Scan {
            session,
            chunks: self.chunks.clone(),
            metadata: Arc::clone(&self.metadata),
            columns,
            limits: Vec::new(),
            group: 0,
            left: 0,
            before: 0,
        })
    }
}

fn scanned(session: &dyn Session, wanted: &Wanted, file: FileType, nesting: Option<&Nesting>, leaf: usize) -> Result<Scanned> {
    let catalog = session.catalog();
    let (base, typmod) = catalog.base_type_and_typmod(wanted.ty, wanted.typmod);
    let element = lookup::array_element(session, base).filter(|_| nesting.is_some());
    let to = match element {
        Some(element) => catalog.base_type_and_typmod(element, typmod),
        None => (base, typmod),
    };
    let fits = element.is_some() == nesting.is_some() && fit::may(session, file.natural().0, to.0);
    if !fits {
        return Err(err!(
            DATATYPE_MISMATCH,
            "column \"{}\" is of type {} but the file's column is of type {}",
            wanted.name,
            lookup::type_name(session, wanted.ty),
            type_name(file, nesting.is_some(), catalog)
        ));
    }
    let domain = [Some(wanted.ty).filter(|ty| *ty != base), element.filter(|element| *element != to.0)];
    if domain[1].is_some() {
        return Err(DbError::unsupported("reading Parquet into an array of a domain"));
    }
    Ok(Scanned {
        name: Arc::clone(&wanted.name),
        file,
        nesting: nesting.cloned(),
        leaf,
        target: Target { ty: to.0, typmod: to.1 },
        domain: domain[0],
        reader: None,
        ahead: None,
        progress: Arc::default(),
        levels: Levels::default(),
    })
}

/// A column being read.
struct Scanned {
    name: Arc<str>,
    file: FileType,
    nesting: Option<Nesting>,
    leaf: usize,
    target: Target,
    domain: Option<Oid>,
    reader: Option<ColumnReader>,
    /// Rows that were read, and not returned yet.
    ahead: Option<Column>,
    progress: Arc<Progress>,
    levels: Levels,
}

/// Rows being read.
pub struct Scan {
    session: Arc<dyn Session>,
    chunks: Chunks,
    metadata: Arc<ParquetMetaData>,
    columns: Vec<Scanned>,
    limits: Vec<ColumnLimits>,
    /// The next row group.
    group: usize,
    /// Rows left of the present one.
    left: usize,
    /// Rows read.
    before: u64,
}

impl Scan {
    /// Leaves out row groups that cannot have a row within the limits.
    pub fn within(mut self, limits: Vec<ColumnLimits>) -> Scan {
        self.limits = limits;
        self
    }

    /// Bytes that the decoders hold at most, and of rows that were read ahead.
    pub fn memory_bytes(&self) -> usize {
        let bytes = |column: &Scanned| column.progress.memory_bytes() + column.ahead.as_ref().map_or(0, Column::memory_bytes);
        self.columns.iter().map(bytes).sum()
    }

    /// Whether the next row group may have a row within the limits, as far as its statistics tell.
    fn is_wanted(&self) -> bool {
        let group = self.metadata.row_group(self.group);
        self.limits.iter().all(|limits| {
            let column = &self.columns[limits.column];
            column.nesting.is_some() || prune::may_match(group, column.leaf, column.file, limits)
        })
    }

    /// The next rows, `limit` at most: how many, and the wanted columns; `None` at the end.
    ///
    /// # Errors
    /// With the row and the column as context, as far as they are known.
    pub fn next(&mut self, limit: usize) -> Result<Option<(usize, Vec<Column>)>> {
        limits::check()?;
        while self.left == 0 {
            if self.group == self.metadata.num_row_groups() {
                return Ok(None);
            }
            if self.is_wanted() {
                self.open_group()?;
            } else {
                self.before += self.metadata.row_group(self.group).num_rows().unsigned_abs();
                self.group += 1;
            }
        }
        let mut rows = limit.min(self.left);
        let bytes_max = (BATCH_BYTES_MAX / self.columns.len().max(1)).max(COLUMN_BYTES_MIN);
        // A column of long values returns fewer rows; the columns before it have read ahead.
        for column in &mut self.columns {
            limits::check()?;
            let ahead = match column.ahead.take() {
                Some(ahead) => ahead,
                None => {
                    let read = guarded(|| column.read(&*self.session, rows, bytes_max));
                    read.map_err(|(row, e)| in_context(e, self.before + row as u64 + 1, &column.name))?
                }
            };
            rows = rows.min(ahead.len());
            column.ahead = Some(ahead);
        }
        let out = self.columns.iter_mut().filter_map(|column| column.take(rows)).collect();
        self.left -= rows;
        self.before += rows as u64;
        Ok(Some((rows, out)))
    }

    fn open_group(&mut self) -> Result<()> {
        let group = self.metadata.row_group(self.group);
        let rows = usize::try_from(group.num_rows()).ok();
        let rows =
            rows.ok_or_else(|| err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail("A row group has less than no rows."))?;
        for column in &mut self.columns {
            let open = || {
                let chunk = group.column(column.leaf);
                let (start, bytes) = chunk.byte_range();
                if start.checked_add(bytes).is_none_or(|end| end > self.chunks.len()) {
                    bail!(BAD_COPY_FILE_FORMAT, "invalid Parquet file: a column ends beyond the end of the file");
                }
                let pages = pages::open(&self.chunks, chunk, rows, &column.progress).map_err(damaged)?;
                Ok(get_column_reader(chunk.column_descr_ptr(), Box::new(pages)))
            };
            column.ahead = None;
            let reader = guarded(|| open().map_err(|e| (0, e)));
            column.reader = Some(reader.map_err(|(_, e)| e.context(format!("column {}", column.name)))?);
        }
        self.group += 1;
        self.left = rows;
        Ok(())
    }
}

fn in_context(error: DbError, row: u64, name: &str) -> DbError {
    error.context(format!("row {row}, column {name}"))
}

impl Scanned {
    /// The first of the rows that were read.
    fn take(&mut self, rows: usize) -> Option<Column> {
        let ahead = self.ahead.take()?;
        if ahead.len() == rows {
            return Some(ahead);
        }
        self.ahead = Some(ahead.slice(rows..ahead.len()));
        Some(ahead.slice(0..rows))
    }

    /// Reads some rows: as many as wanted, or fewer when they have more than `bytes_max` bytes.
    fn read(&mut self, session: &dyn Session, wanted: usize, bytes_max: usize) -> Result<Column, RowError> {
        let Scanned { reader: Some(reader), levels, progress, .. } = self else {
            return Err((0, DbError::internal("no row group is open")));
        };
        levels.clear();
        let is_list = self.nesting.is_some();
        let (rows, raw, is_end) = raw(reader, wanted, bytes_max, is_list, levels, progress).map_err(|e| (0, damaged(e)))?;
        if is_end {
            return Err((
                0,
                err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail("A column has fewer rows than its row group."),
            ));
        }
        let level = self.nesting.as_ref().map_or(1, |nesting| nesting.value);
        let places = |e: RowError| (self.record(e.0, level), e.1);
        let values = decode::natural(self.file, raw).map_err(places)?;
        let values = fit::fit(session, values, self.file.natural(), self.target).map_err(places)?;
        let column = match &self.nesting {
            Some(nesting) => {
                let mut next = 0;
                let assembly = Assembly { nesting, levels: &self.levels, element_type: self.target.ty };
                let arrays = assembly.arrays(|| {
                    next += 1;
                    values.get(next - 1)
                });
                Column::new(ColumnData::Datum(arrays?))
            }
            None if self.file == FileType::Unknown => {
                let kind = lookup::kind(session, self.target.ty).unwrap_or(Kind::Text);
                let mut nulls = Column::with_capacity(kind, rows);
                (0..rows).for_each(|_| nulls.push_null());
                nulls
            }
            None => spread(values, &self.levels.definition),
        };
        if column.len() != rows {
            return Err((0, err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail("A column has another number of values.")));
        }
        match self.domain {
            None => Ok(column),
            Some(domain) => checked(session, domain, column),
        }
    }

    /// The record that a value belongs to, by its number among those that are not null.
    fn record(&self, value: usize, level: i16) -> usize {
        let levels = &self.levels;
        let Some((at, _)) = levels.definition.iter().enumerate().filter(|(_, l)| **l >= level).nth(value) else { return value };
        if levels.repetition.is_empty() { at } else { levels.repetition[..=at].iter().filter(|l| **l == 0).count().max(1) - 1 }
    }
}

/// Applies a domain's checks.
fn checked(session: &dyn Session, domain: Oid, column: Column) -> Result<Column, RowError> {
    let kind = lookup::kind(session, domain).unwrap_or(Kind::Text);
    let mut out = Column::with_capacity(kind, column.len());
    for row in 0..column.len() {
        out.push(io::check_domain(session, domain, column.get(row)).map_err(|e| (row, e))?);
    }
    Ok(out)
}

/// Puts nulls between values.
fn spread(values: Column, definition: &[i16]) -> Column {
    if definition.iter().all(|level| *level > 0) {
        return values;
    }
    let mut places = 0..values.len() as u32;
    let picks: Vec<Option<u32>> = definition.iter().map(|level| if *level > 0 { places.next() } else { None }).collect();
    values.take_or_null(&picks)
}

/// Reads records of a column: how many, their values, and whether the column ends before all that are wanted.
///
/// In steps, after each of which the bytes are looked at; a step of lists is one record, whose length is not known before.
fn raw(
    reader: &mut ColumnReader,
    wanted: usize,
    bytes_max: usize,
    is_list: bool,
    levels: &mut Levels,
    progress: &Progress,
) -> parquet::errors::Result<(usize, Raw, bool)> {
    fn read<T: DataType>(
        reader: &mut ColumnReaderImpl<T>,
        (wanted, bytes_max, is_list): (usize, usize, bool),
        levels: &mut Levels,
        progress: &Progress,
        length: impl Fn(&T::T) -> usize,
    ) -> parquet::errors::Result<(usize, Vec<T::T>, bool)> {
        let (mut values, mut records, mut bytes) = (Vec::new(), 0, 0);
        let mut ticker = limits::Ticker::new();
        while records < wanted && bytes < bytes_max {
            ticker.step().map_err(pages::wrapped)?;
            progress.begin_step();
            let step = if is_list { 1 } else { progress.step().min(wanted - records) };
            let (levels_before, values_before) = (levels.definition.len(), values.len());
            let (definition, repetition) = (Some(&mut levels.definition), Some(&mut levels.repetition));
            let (more, _, places) = reader.read_records(step, definition, repetition, &mut values)?;
            if more == 0 {
                return Ok((records, values, true));
            }
            records += more;
            progress.read(places);
            bytes += values[values_before..].iter().map(&length).sum::<usize>();
            if is_list {
                let places = levels.definition.len() - levels_before;
                if places > levels::VALUES_MAX {
                    return Err(pages::wrapped(levels::too_long()));
                }
                bytes += places * LIST_VALUE_BYTES;
            }
        }
        Ok((records, values, false))
    }
    macro_rules! read {
        ($reader:expr, $variant:ident, $length:expr) => {{
            let (records, values, is_end) = read($reader, (wanted, bytes_max, is_list), levels, progress, $length)?;
            Ok((records, Raw::$variant(values), is_end))
        }};
    }
    match reader {
        ColumnReader::BoolColumnReader(r) => read!(r, Bool, |_| 0),
        ColumnReader::Int32ColumnReader(r) => read!(r, Int32, |_| 0),
        ColumnReader::Int64ColumnReader(r) => read!(r, Int64, |_| 0),
        ColumnReader::Int96ColumnReader(r) => read!(r, Int96, |_| 0),
        ColumnReader::FloatColumnReader(r) => read!(r, Float, |_| 0),
        ColumnReader::DoubleColumnReader(r) => read!(r, Double, |_| 0),
        ColumnReader::ByteArrayColumnReader(r) => read!(r, Bytes, ByteArray::len),
        ColumnReader::FixedLenByteArrayColumnReader(r) => read!(r, Fixed, |v| v.len()),
    }
}

/// What a closure of the decoder returns; its panic, which wrong bytes may cause, is an error.
fn guarded<T, E: From<Damaged>>(f: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err(Damaged.into()))
}

/// The decoder has met what it did not expect.
struct Damaged;

impl From<Damaged> for DbError {
    fn from(_: Damaged) -> DbError {
        err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail("The decoder has failed.")
    }
}

impl From<Damaged> for RowError {
    fn from(damaged: Damaged) -> RowError {
        (0, damaged.into())
    }
}
