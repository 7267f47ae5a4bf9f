//! PostgreSQL's types as Parquet's.
//!
//! ```text
//! boolean                    BOOLEAN
//! smallint, integer, bigint  INT32 (16 bits), INT32, INT64
//! oid                        INT32 (32 bits, unsigned)
//! real, double precision     FLOAT, DOUBLE
//! numeric(p,s)               DECIMAL(p,s) in INT32, INT64 or FIXED_LEN_BYTE_ARRAY, by p up to 38
//! numeric, longer numeric    STRING
//! text, varchar, char, name  STRING
//! bytea                      BYTE_ARRAY
//! date, time                 DATE, TIME in microseconds, not adjusted to UTC
//! timestamp, timestamptz     TIMESTAMP in microseconds, not adjusted and adjusted to UTC
//! uuid                       UUID
//! json, jsonb                JSON
//! arrays                     LIST in three levels, a LIST of LISTs by the number of dimensions
//! all others                 STRING, as the type's output function writes it; intervals in the style postgres
//! ```
//!
//! Parquet's INTERVAL has neither microseconds nor signs, and a DECIMAL has a scale, which a bare numeric has not: both would lose
//! something. Infinite dates and timestamps are the greatest and the least number that has a negative: other writers have the same.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::schema::types::{Type as SchemaType, TypePtr};

use melba_fmgr::{Session, lookup};
use melba_types::{Kind, Oid, Result, oids};

/// Precision up to which others read decimals.
const PRECISION_MAX: i32 = 38;
const PRECISION_OF_INT32: i32 = 9;
const PRECISION_OF_INT64: i32 = 18;
/// Added to a list's field id: tables have fewer columns.
const ELEMENT_IDS: i32 = 100_000;

/// How values of a type that is no array are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Decimal {
        precision: i32,
        scale: u16,
    },
    Date,
    Time,
    Timestamp {
        utc: bool,
    },
    /// The bytes of a text.
    Text,
    Json,
    Bytes,
    Uuid,
    Interval,
    /// The text form of a type.
    Output(Oid),
    /// The same for json types.
    JsonOutput(Oid),
}

/// How a column is written: its elements, if it is an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub form: Form,
    pub is_array: bool,
}

impl Shape {
    pub fn of(session: &dyn Session, ty: Oid, typmod: i32) -> Shape {
        let (base, typmod) = session.catalog().base_type_and_typmod(ty, typmod);
        // oidvector and int2vector have other subscripts and stay texts.
        match lookup::array_element(session, base) {
            Some(element) if !matches!(base, oids::INT2VECTOR | oids::OIDVECTOR) => {
                Shape { form: Form::of(session, element, typmod), is_array: true }
            }
            _ => Shape { form: Form::of(session, base, typmod), is_array: false },
        }
    }
}

impl Form {
    fn of(session: &dyn Session, ty: Oid, typmod: i32) -> Form {
        let (ty, typmod) = session.catalog().base_type_and_typmod(ty, typmod);
        match ty {
            oids::BOOL => Form::Bool,
            oids::INT2 => Form::Int2,
            oids::INT4 => Form::Int4,
            oids::INT8 => Form::Int8,
            oids::OID => Form::Oid,
            oids::FLOAT4 => Form::Float4,
            oids::FLOAT8 => Form::Float8,
            oids::NUMERIC => decimal(typmod).unwrap_or(Form::Output(ty)),
            oids::DATE => Form::Date,
            oids::TIME => Form::Time,
            oids::TIMESTAMP => Form::Timestamp { utc: false },
            oids::TIMESTAMPTZ => Form::Timestamp { utc: true },
            oids::JSON => Form::Json,
            oids::JSONB => Form::JsonOutput(ty),
            oids::BYTEA => Form::Bytes,
            oids::UUID => Form::Uuid,
            oids::INTERVAL => Form::Interval,
            _ if lookup::kind(session, ty) == Some(Kind::Text) => Form::Text,
            _ => Form::Output(ty),
        }
    }

    pub fn physical(self) -> PhysicalType {
        match self {
            Form::Bool => PhysicalType::BOOLEAN,
            Form::Int2 | Form::Int4 | Form::Oid | Form::Date => PhysicalType::INT32,
            Form::Decimal { precision: ..=PRECISION_OF_INT32, .. } => PhysicalType::INT32,
            Form::Decimal { precision: ..=PRECISION_OF_INT64, .. } => PhysicalType::INT64,
            Form::Decimal { .. } | Form::Uuid => PhysicalType::FIXED_LEN_BYTE_ARRAY,
            Form::Int8 | Form::Time | Form::Timestamp { .. } => PhysicalType::INT64,
            Form::Float4 => PhysicalType::FLOAT,
            Form::Float8 => PhysicalType::DOUBLE,
            _ => PhysicalType::BYTE_ARRAY,
        }
    }

    /// Bytes of a value of fixed length.
    pub fn fixed_bytes(self) -> i32 {
        match self {
            Form::Uuid => 16,
            Form::Decimal { precision, .. } => decimal_bytes(precision),
            _ => 0,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        Some(match self {
            Form::Int2 => LogicalType::integer(16, true),
            Form::Oid => LogicalType::integer(32, false),
            Form::Decimal { precision, scale } => LogicalType::decimal(i32::from(scale), precision),
            Form::Date => LogicalType::Date,
            Form::Time => LogicalType::time(false, TimeUnit::MICROS),
            Form::Timestamp { utc } => LogicalType::timestamp(utc, TimeUnit::MICROS),
            Form::Json | Form::JsonOutput(_) => LogicalType::Json,
            Form::Uuid => LogicalType::Uuid,
            Form::Text | Form::Interval | Form::Output(_) => LogicalType::String,
            Form::Bool | Form::Int4 | Form::Int8 | Form::Float4 | Form::Float8 | Form::Bytes => return None,
        })
    }

    fn schema(self, name: &str, id: Option<i32>) -> parquet::errors::Result<SchemaType> {
        // Iceberg's int has no other widths.
        let logical = self.logical().filter(|_| id.is_none() || self != Form::Int2);
        let mut builder = SchemaType::primitive_type_builder(name, self.physical())
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .with_length(self.fixed_bytes())
            .with_id(id);
        if let Form::Decimal { precision, scale } = self {
            builder = builder.with_precision(precision).with_scale(i32::from(scale));
        }
        builder.build()
    }
}

/// A numeric of a type modifier as a decimal; `None` without one, and for one that others do not read.
fn decimal(typmod: i32) -> Option<Form> {
    let packed = typmod.checked_sub(4).filter(|packed| *packed >= 0)?;
    let (precision, scale) = (packed >> 16 & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024);
    // A negative scale stands for zeros before the point, a scale beyond the precision for zeros behind it.
    let precision = (precision - scale.min(0)).max(scale);
    let scale = u16::try_from(scale.max(0)).ok()?;
    (precision <= PRECISION_MAX).then_some(Form::Decimal { precision, scale })
}

/// Bytes of the least signed number that holds as many decimal digits.
fn decimal_bytes(precision: i32) -> i32 {
    let bits = (f64::from(precision) * std::f64::consts::LOG2_10).ceil() as i32 + 1;
    (bits + 7) / 8
}

impl Shape {
    /// For a table of Iceberg, whose types are fewer.
    pub fn of_iceberg(session: &dyn Session, ty: Oid, typmod: i32) -> Shape {
        let shape = Shape::of(session, ty, typmod);
        let form = match shape.form {
            Form::Oid => Form::Output(oids::OID),
            Form::Json => Form::Text,
            Form::JsonOutput(ty) => Form::Output(ty),
            form => form,
        };
        Shape { form, ..shape }
    }
}

/// The type of a column of an Iceberg table, and whether the column is a list of it.
pub fn iceberg_type(session: &dyn Session, ty: Oid, typmod: i32) -> (String, bool) {
    let shape = Shape::of_iceberg(session, ty, typmod);
    let name = match shape.form {
        Form::Bool => "boolean",
        Form::Int2 | Form::Int4 => "int",
        Form::Int8 => "long",
        Form::Float4 => "float",
        Form::Float8 => "double",
        Form::Decimal { precision, scale } => return (format!("decimal({precision}, {scale})"), shape.is_array),
        Form::Date => "date",
        Form::Time => "time",
        Form::Timestamp { utc: false } => "timestamp",
        Form::Timestamp { utc: true } => "timestamptz",
        Form::Uuid => "uuid",
        Form::Bytes => "binary",
        _ => "string",
    };
    (name.to_owned(), shape.is_array)
}

/// The field id of a list's elements, by that of the list.
pub fn element_id(id: i32) -> i32 {
    id + ELEMENT_IDS
}

/// The schema of a column; `depth` lists in one another for an array. `id`: the field id that Iceberg finds it by.
pub(crate) fn schema(name: &str, form: Form, depth: usize, id: Option<i32>) -> Result<TypePtr> {
    build(name, form, depth, id)
        .map(Arc::new)
        .map_err(|e| melba_types::DbError::internal(format!("schema of column \"{name}\": {e}")))
}

fn build(name: &str, form: Form, depth: usize, id: Option<i32>) -> parquet::errors::Result<SchemaType> {
    if depth == 0 {
        return form.schema(name, id);
    }
    let element = Arc::new(build("element", form, depth - 1, id.map(element_id))?);
    let list = SchemaType::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![element]).build()?;
    SchemaType::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_id(id)
        .with_fields(vec![Arc::new(list)])
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_bytes_for_all_their_digits() {
        for precision in 19..=38u32 {
            let bytes = decimal_bytes(precision as i32) as u32;
            let greatest = 10i128.pow(precision) - 1;
            assert!(bytes == 16 || greatest < 1i128 << (8 * bytes - 1), "{precision} digits in {bytes} bytes");
            assert!(greatest >= 1i128 << (8 * (bytes - 1) - 1), "{precision} digits in fewer than {bytes} bytes");
        }
    }

    #[test]
    fn scales_beyond_the_digits_become_digits() {
        let typmod = |precision, scale| melba_types::numeric::convert::typmod(precision, scale);
        assert_eq!(decimal(typmod(10, 2)), Some(Form::Decimal { precision: 10, scale: 2 }));
        assert_eq!(decimal(typmod(3, 5)), Some(Form::Decimal { precision: 5, scale: 5 }));
        assert_eq!(decimal(typmod(3, -2)), Some(Form::Decimal { precision: 5, scale: 0 }));
        assert_eq!((decimal(typmod(39, 0)), decimal(-1)), (None, None));
    }
}
