//! Writes batches as a file, a row group at a time.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type as SchemaType};

use melba_catalog::TypeKind;
use melba_fmgr::Session;
use melba_types::{Batch, Column, ColumnData, Datum, DbError, Oid, Result, bail, codec, err, limits, oids};

use crate::TYPES_KEY;
use crate::levels::Levels;
use crate::mapping::{self, Form, Shape};
use crate::values::Values;

/// Rows of a row group when nothing else is asked for: what a reader skips by statistics, and what it reads at least.
pub const ROW_GROUP_ROWS: usize = 122_880;
/// Bytes of values in memory after which a row group is written however few rows it has.
const ROW_GROUP_BYTES_MAX: usize = 64 << 20;
/// Values that are looked at to find out whether a dictionary pays.
const SAMPLE_VALUES: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Snappy,
    Zstd,
    Lz4,
    None,
}

/// A column to be written.
#[derive(Clone, Debug)]
pub struct Written {
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
}

/// Is told how many bytes the writer holds.
type Announce = Box<dyn FnMut(usize) -> Result<()> + Send>;

/// A file being written. Nothing but what `finish` has ended is a file.
pub struct FileWriter<W: Write + Send> {
    session: Arc<dyn Session>,
    columns: Vec<Written>,
    shapes: Vec<Shape>,
    compression: Compression,
    row_group_rows: usize,
    announce: Announce,
    /// The row group in the making.
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
    /// Rows of the row groups before.
    written: u64,
    /// `None` until the first row group decides on dictionaries and on the depths of arrays.
    file: Option<SerializedFileWriter<W>>,
    out: Option<W>,
    depths: Vec<usize>,
    levels: Levels,
    /// Of each column, in a file of an Iceberg table.
    field_ids: Option<Vec<i32>>,
}

impl<W: Write + Send> FileWriter<W> {
    pub fn new(session: Arc<dyn Session>, columns: Vec<Written>, out: W, announce: Announce) -> FileWriter<W> {
        FileWriter {
            shapes: columns.iter().map(|c| Shape::of(&*session, c.ty, c.typmod)).collect(),
            session,
            columns,
            compression: Compression::Snappy,
            row_group_rows: ROW_GROUP_ROWS,
            announce,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            written: 0,
            file: None,
            out: Some(out),
            depths: Vec::new(),
            levels: Levels::default(),
            field_ids: None,
        }
    }

    /// Whether every reader finds the columns again, and the values that were written.
    fn check(&self) -> Result<()> {
        if self.columns.is_empty() {
            bail!(FEATURE_NOT_SUPPORTED, "a Parquet file without columns is not supported");
        }
        let mut names = HashSet::new();
        if let Some(twice) = self.columns.iter().find(|column| !names.insert(&column.name)) {
            bail!(DUPLICATE_COLUMN, "column \"{}\" is written twice", twice.name);
        }
        let is = |setting: &str, style: &str| self.session.setting(setting).is_none_or(|now| now.starts_with(style));
        let has_styles = !is("DateStyle", "ISO") || !is("IntervalStyle", "postgres");
        if let Some((column, _)) =
            self.columns.iter().zip(&self.shapes).find(|(_, shape)| has_styles && self.may_hold_dates(shape.form))
        {
            return Err(DbError::unsupported(format!(
                "writing column \"{}\" in another style of dates or intervals",
                column.name
            ))
            .hint("Set DateStyle to ISO and IntervalStyle to postgres."));
        }
        Ok(())
    }

    /// Texts in which another reader's settings would find other dates.
    fn may_hold_dates(&self, form: Form) -> bool {
        let kind = |ty: Oid| self.session.catalog().type_(ty).map(|entry| entry.type_kind);
        match form {
            Form::Output(ty) => {
                ty == oids::RECORD || matches!(kind(ty), Some(TypeKind::Range | TypeKind::Multirange | TypeKind::Composite))
            }
            _ => false,
        }
    }

    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// For a table of Iceberg, which finds columns by their field ids.
    pub fn field_ids(mut self, ids: Vec<i32>) -> Self {
        self.shapes = self.columns.iter().map(|c| Shape::of_iceberg(&*self.session, c.ty, c.typmod)).collect();
        self.field_ids = Some(ids);
        self
    }

    /// Rows of a row group at most.
    pub fn row_group_rows(mut self, rows: usize) -> Self {
        self.row_group_rows = rows.max(1);
        self
    }

    /// Takes rows; writes row groups that are full.
    ///
    /// # Errors
    /// With the row and the column as context for a value that the file's type cannot hold.
    pub fn push(&mut self, mut batch: Batch) -> Result<()> {
        while self.rows + batch.rows > self.row_group_rows {
            let first = self.row_group_rows - self.rows;
            let rest = batch.slice(first..batch.rows, None);
            self.take(batch.slice(0..first, None))?;
            self.write_row_group()?;
            batch = rest;
        }
        self.take(batch)?;
        if self.rows == self.row_group_rows || self.bytes >= ROW_GROUP_BYTES_MAX { self.write_row_group() } else { Ok(()) }
    }

    fn take(&mut self, batch: Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows;
        self.bytes += batch.memory_bytes();
        (self.announce)(self.bytes)?;
        self.batches.push(batch);
        Ok(())
    }

    /// Writes what is left, and the file's end.
    pub fn finish(&mut self) -> Result<()> {
        if self.rows > 0 || self.file.is_none() {
            self.write_row_group()?;
        }
        match self.file.take() {
            Some(file) => file.close().map(|_| ()).map_err(failed),
            None => Ok(()),
        }
    }

    fn write_row_group(&mut self) -> Result<()> {
        let mut batches = std::mem::take(&mut self.batches);
        self.begin(&batches)?;
        let Some(mut file) = self.file.take() else { bail!(INTERNAL_ERROR, "a Parquet file that has not begun") };
        if self.rows > 0 {
            let mut group = file.next_row_group().map_err(failed)?;
            let mut at = 0;
            while let Some(mut writer) = group.next_column().map_err(failed)? {
                limits::check()?;
                let mut row = self.written;
                for batch in &mut batches {
                    let column = std::mem::replace(&mut batch.columns[at], Column::new(ColumnData::Bool(Vec::new())));
                    self.write_column(&mut writer, at, column)
                        .map_err(|(i, e)| e.context(format!("row {}, column {}", row + i as u64 + 1, self.columns[at].name)))?;
                    row += batch.rows as u64;
                }
                writer.close().map_err(failed)?;
                at += 1;
            }
            group.close().map_err(failed)?;
        }
        self.file = Some(file);
        self.written += self.rows as u64;
        (self.rows, self.bytes) = (0, 0);
        (self.announce)(0)
    }

    /// Decides on the schema and begins the file, once.
    fn begin(&mut self, batches: &[Batch]) -> Result<()> {
        let Some(out) = self.out.take() else { return Ok(()) };
        self.check()?;
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("Melba ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(match self.compression {
                Compression::Snappy => Codec::SNAPPY,
                Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
                Compression::Lz4 => Codec::LZ4_RAW,
                Compression::None => Codec::UNCOMPRESSED,
            })
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_enabled(false)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(vec![KeyValue::new(TYPES_KEY.to_owned(), self.types())]));
        let mut fields = Vec::with_capacity(self.columns.len());
        for (at, (column, shape)) in self.columns.iter().zip(&self.shapes).enumerate() {
            let id = self.field_ids.as_ref().and_then(|ids| ids.get(at).copied());
            // The schema of an Iceberg table stands before its rows.
            let depth = match shape.is_array {
                true if id.is_some() => 1,
                true => depth(batches, at),
                false => 0,
            };
            self.depths.push(depth);
            fields.push(mapping::schema(&column.name, shape.form, depth, id)?);
            if depth > 0 || repeats(batches, at) {
                let mut path = vec![column.name.to_string()];
                (0..depth).for_each(|_| path.extend(["list".to_owned(), "element".to_owned()]));
                properties = properties.set_column_dictionary_enabled(ColumnPath::new(path), true);
            }
        }
        let schema = SchemaType::group_type_builder("schema").with_fields(fields).build().map_err(failed)?;
        self.file = Some(SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build())).map_err(failed)?);
        Ok(())
    }

    /// The columns' types, by which they can be made again.
    fn types(&self) -> String {
        let catalog = self.session.catalog();
        let pg_catalog = melba_catalog::classes::PG_CATALOG;
        let described =
            |c: &Written| serde_json::json!({"name": &*c.name, "type": catalog.format_type(c.ty, Some(c.typmod), &[pg_catalog])});
        serde_json::Value::Array(self.columns.iter().map(described).collect()).to_string()
    }

    fn write_column(
        &mut self,
        writer: &mut SerializedColumnWriter<'_>,
        at: usize,
        column: Column,
    ) -> Result<(), (usize, DbError)> {
        let form = self.shapes[at].form;
        self.levels.clear();
        if self.depths[at] > 0 {
            let values = self.elements(at, &column)?;
            return write(writer, values, &self.levels.definition, Some(&self.levels.repetition)).map_err(|e| (0, e));
        }
        self.levels.definition.extend((0..column.len()).map(|row| i16::from(!column.is_null(row))));
        let values = Values::of(&*self.session, form, column)?;
        write(writer, values, &self.levels.definition, None).map_err(|e| (0, e))
    }

    /// The elements of a column of arrays, and their levels.
    fn elements(&mut self, at: usize, column: &Column) -> Result<Values, (usize, DbError)> {
        let form = self.shapes[at].form;
        let mut values = Values::new(form, column.len());
        for row in 0..column.len() {
            match column.get(row) {
                Datum::Array(array) => {
                    self.levels.push_array(&array, self.depths[at]).map_err(|e| (row, e))?;
                    let mut elements = array.elements.iter().filter(|element| !element.is_null());
                    elements.try_for_each(|element| values.push(&*self.session, form, element)).map_err(|e| (row, e))?;
                }
                _ => self.levels.push_null(),
            }
        }
        Ok(values)
    }
}

fn write(writer: &mut SerializedColumnWriter<'_>, values: Values, definition: &[i16], repetition: Option<&[i16]>) -> Result<()> {
    let levels = Some(definition);
    let written = match (writer.untyped(), values) {
        (ColumnWriter::BoolColumnWriter(w), Values::Bool(v)) => w.write_batch(&v, levels, repetition),
        (ColumnWriter::Int32ColumnWriter(w), Values::Int32(v)) => w.write_batch(&v, levels, repetition),
        (ColumnWriter::Int64ColumnWriter(w), Values::Int64(v)) => w.write_batch(&v, levels, repetition),
        (ColumnWriter::FloatColumnWriter(w), Values::Float(v)) => w.write_batch(&v, levels, repetition),
        (ColumnWriter::DoubleColumnWriter(w), Values::Double(v)) => w.write_batch(&v, levels, repetition),
        (ColumnWriter::ByteArrayColumnWriter(w), Values::Bytes(v)) => w.write_batch(&v, levels, repetition),
        (ColumnWriter::FixedLenByteArrayColumnWriter(w), Values::Fixed(v)) => w.write_batch(&v, levels, repetition),
        _ => bail!(INTERNAL_ERROR, "values of another type than their Parquet column's"),
    };
    written.map(|_| ()).map_err(failed)
}

/// Dimensions of the first array that has an element.
fn depth(batches: &[Batch], at: usize) -> usize {
    let arrays = batches.iter().flat_map(|batch| (0..batch.rows).map(move |row| batch.columns[at].get(row)));
    let depths = arrays.filter_map(|value| match value {
        Datum::Array(array) if !array.elements.is_empty() => Some(array.dims.len()),
        _ => None,
    });
    depths.into_iter().next().unwrap_or(1)
}

/// Whether values occur so often that a dictionary of them pays, by a sample.
fn repeats(batches: &[Batch], at: usize) -> bool {
    let rows: usize = batches.iter().map(|batch| batch.rows).sum();
    let step = (rows / SAMPLE_VALUES).max(1);
    let (mut distinct, mut sampled, mut skip) = (HashSet::new(), 0, 0);
    for batch in batches {
        while skip < batch.rows {
            let column = &batch.columns[at];
            if !column.is_null(skip) {
                let mut bytes = Vec::new();
                codec::encode(&column.get(skip), &mut bytes);
                distinct.insert(bytes);
                sampled += 1;
            }
            skip += step;
        }
        skip -= batch.rows;
    }
    distinct.len() * 2 <= sampled
}

fn failed(error: parquet::errors::ParquetError) -> DbError {
    // A cancelled statement, or a store's refusal.
    if let Some(inner) = crate::within(&error) {
        return inner;
    }
    err!(IO_ERROR, "could not write Parquet file: {error}")
}
