//! The types of a file's columns, as any writer may have them.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::schema::types::Type as SchemaType;

use melba_catalog::Catalog;
use melba_types::numeric::convert::typmod;
use melba_types::{Oid, oids};

use crate::levels::Nesting;

/// Digits of a numeric that has a precision.
const PRECISION_MAX: i32 = 1000;

/// Parts of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeResolution {
    Millis,
    Micros,
    Nanos,
}

/// The type of a value that is no list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileType {
    Bool,
    /// Of 8 to 64 bits.
    Integer {
        bits: u8,
        signed: bool,
    },
    Decimal {
        precision: i32,
        scale: i32,
    },
    Float16,
    Float4,
    Float8,
    Date,
    Time(TimeResolution),
    Timestamp {
        unit: TimeResolution,
        utc: bool,
    },
    /// Nanoseconds of a day and a Julian day: timestamps of old writers.
    Int96,
    /// Months, days and milliseconds.
    Interval,
    Uuid,
    Text,
    Json,
    Bytes,
    /// Of a column without any value.
    Unknown,
}

impl FileType {
    /// PostgreSQL's type that holds every value: the one next to it, with a type modifier.
    pub fn natural(self) -> (Oid, i32) {
        let ty = match self {
            FileType::Bool => oids::BOOL,
            FileType::Integer { bits: ..=16, signed: true } | FileType::Integer { bits: 8, signed: false } => oids::INT2,
            FileType::Integer { bits: ..=32, signed: true } | FileType::Integer { bits: 16, signed: false } => oids::INT4,
            FileType::Integer { signed: true, .. } | FileType::Integer { bits: 32, .. } => oids::INT8,
            FileType::Integer { .. } => return (oids::NUMERIC, typmod(20, 0)),
            FileType::Decimal { precision, scale } => return (oids::NUMERIC, typmod(precision, scale)),
            FileType::Float16 | FileType::Float4 => oids::FLOAT4,
            FileType::Float8 => oids::FLOAT8,
            FileType::Date => oids::DATE,
            FileType::Time(_) => oids::TIME,
            FileType::Timestamp { utc: true, .. } => oids::TIMESTAMPTZ,
            FileType::Timestamp { .. } | FileType::Int96 => oids::TIMESTAMP,
            FileType::Interval => oids::INTERVAL,
            FileType::Uuid => oids::UUID,
            FileType::Text | FileType::Unknown => oids::TEXT,
            FileType::Json => oids::JSON,
            FileType::Bytes => oids::BYTEA,
        };
        (ty, -1)
    }

    /// Of a column's leaf; `None` for one that the decoder does not know.
    fn of(leaf: &SchemaType) -> Option<FileType> {
        let info = leaf.get_basic_info();
        let physical = leaf.get_physical_type();
        if let Some(logical) = info.logical_type_ref() {
            return FileType::of_logical(logical, physical);
        }
        Some(match (info.converted_type(), physical) {
            (ConvertedType::NONE, _) => return Some(FileType::plain(physical)),
            (ConvertedType::UTF8 | ConvertedType::ENUM, _) => FileType::Text,
            (ConvertedType::JSON, _) => FileType::Json,
            (ConvertedType::BSON, _) => FileType::Bytes,
            (ConvertedType::DATE, _) => FileType::Date,
            (ConvertedType::TIME_MILLIS, _) => FileType::Time(TimeResolution::Millis),
            (ConvertedType::TIME_MICROS, _) => FileType::Time(TimeResolution::Micros),
            (ConvertedType::TIMESTAMP_MILLIS, _) => FileType::Timestamp { unit: TimeResolution::Millis, utc: true },
            (ConvertedType::TIMESTAMP_MICROS, _) => FileType::Timestamp { unit: TimeResolution::Micros, utc: true },
            (ConvertedType::DECIMAL, _) if leaf.get_precision() > PRECISION_MAX => return None,
            (ConvertedType::DECIMAL, _) => FileType::Decimal { precision: leaf.get_precision(), scale: leaf.get_scale() },
            (ConvertedType::INTERVAL, _) => FileType::Interval,
            (ConvertedType::INT_8, _) => FileType::Integer { bits: 8, signed: true },
            (ConvertedType::INT_16, _) => FileType::Integer { bits: 16, signed: true },
            (ConvertedType::INT_32, _) => FileType::Integer { bits: 32, signed: true },
            (ConvertedType::INT_64, _) => FileType::Integer { bits: 64, signed: true },
            (ConvertedType::UINT_8, _) => FileType::Integer { bits: 8, signed: false },
            (ConvertedType::UINT_16, _) => FileType::Integer { bits: 16, signed: false },
            (ConvertedType::UINT_32, _) => FileType::Integer { bits: 32, signed: false },
            (ConvertedType::UINT_64, _) => FileType::Integer { bits: 64, signed: false },
            _ => return None,
        })
    }

    fn of_logical(logical: &LogicalType, physical: PhysicalType) -> Option<FileType> {
        Some(match logical {
            LogicalType::String | LogicalType::Enum => FileType::Text,
            LogicalType::Json => FileType::Json,
            LogicalType::Bson => FileType::Bytes,
            LogicalType::Uuid => FileType::Uuid,
            LogicalType::Date => FileType::Date,
            LogicalType::Float16 => FileType::Float16,
            LogicalType::Decimal(d) if d.precision > PRECISION_MAX => return None,
            LogicalType::Decimal(d) => FileType::Decimal { precision: d.precision, scale: d.scale },
            LogicalType::Integer(i) => FileType::Integer { bits: i.bit_width.unsigned_abs(), signed: i.is_signed },
            LogicalType::Time(t) => FileType::Time(unit(&t.unit)),
            LogicalType::Timestamp(t) => FileType::Timestamp { unit: unit(&t.unit), utc: t.is_adjusted_to_u_t_c },
            LogicalType::Unknown if physical == PhysicalType::INT32 => FileType::Unknown,
            _ => return None,
        })
    }

    fn plain(physical: PhysicalType) -> FileType {
        match physical {
            PhysicalType::BOOLEAN => FileType::Bool,
            PhysicalType::INT32 => FileType::Integer { bits: 32, signed: true },
            PhysicalType::INT64 => FileType::Integer { bits: 64, signed: true },
            PhysicalType::INT96 => FileType::Int96,
            PhysicalType::FLOAT => FileType::Float4,
            PhysicalType::DOUBLE => FileType::Float8,
            PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY => FileType::Bytes,
        }
    }
}

fn unit(unit: &TimeUnit) -> TimeResolution {
    match unit {
        TimeUnit::MILLIS => TimeResolution::Millis,
        TimeUnit::MICROS => TimeResolution::Micros,
        TimeUnit::NANOS => TimeResolution::Nanos,
    }
}

/// What a top-level field of a file is.
pub(crate) enum FileField {
    /// Values, or lists of them.
    Column { ty: FileType, nesting: Option<Nesting> },
    /// Something that no column of ours is, in words.
    Other(&'static str),
}

impl FileField {
    pub fn of(root: &SchemaType) -> FileField {
        let (mut present, mut filled) = (Vec::new(), Vec::new());
        let (mut node, mut level) = (root, 0);
        loop {
            let info = node.get_basic_info();
            let repeated = info.has_repetition() && info.repetition() == Repetition::REPEATED;
            if repeated {
                // Without a list around it: the oldest form of a list.
                present.push(level);
                level += 1;
                filled.push(level);
            } else if info.has_repetition() && info.repetition() == Repetition::OPTIONAL {
                level += 1;
            }
            if node.is_primitive() {
                break;
            }
            let is_list = info.logical_type_ref() == Some(&LogicalType::List) || info.converted_type() == ConvertedType::LIST;
            let [inner] = node.get_fields() else {
                return FileField::Other(if is_list { "a list of structs" } else { "a struct" });
            };
            match (
                is_list,
                inner.get_basic_info().has_repetition() && inner.get_basic_info().repetition() == Repetition::REPEATED,
            ) {
                (true, true) => {}
                // The group in the middle of the three levels; other groups are structs.
                _ if repeated && is_middle(node) => {}
                _ => return FileField::Other(if is_map(node) { "a map" } else { "a struct" }),
            }
            node = inner;
        }
        let Some(ty) = FileType::of(node) else { return FileField::Other("of an unknown type") };
        FileField::Column { ty, nesting: (!filled.is_empty()).then_some(Nesting { present, filled, value: level }) }
    }
}

/// Whether a repeated group with one field is the middle of a list rather than a struct, by its name.
fn is_middle(node: &SchemaType) -> bool {
    matches!(node.name(), "list" | "bag" | "element" | "item" | "array_element")
}

fn is_map(node: &SchemaType) -> bool {
    let info = node.get_basic_info();
    info.logical_type_ref() == Some(&LogicalType::Map)
        || matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
}

/// The name of a file's type in messages: that of the type next to it.
pub(crate) fn type_name(ty: FileType, is_list: bool, catalog: &Catalog) -> String {
    let (oid, modifier) = ty.natural();
    let name = catalog.format_type(oid, Some(modifier), &[melba_catalog::classes::PG_CATALOG]);
    if is_list { format!("{name}[]") } else { name }
}
