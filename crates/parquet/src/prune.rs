//! Row groups that statistics rule out.

use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use melba_types::Datum;

use crate::decode::{self, Raw};
use crate::file_type::FileType;

/// Values of a column of the file that a condition lets pass, both ends included.
#[derive(Clone, Debug)]
pub struct ColumnLimits {
    /// Place among the scan's columns.
    pub column: usize,
    pub least: Option<Datum>,
    pub greatest: Option<Datum>,
}

/// Whether some row of a group may have a value within the limits.
pub(crate) fn may_match(group: &RowGroupMetaData, leaf: usize, ty: FileType, limits: &ColumnLimits) -> bool {
    let Some(statistics) = group.column(leaf).statistics() else { return true };
    // Old writers compared bytes as signed ones.
    if statistics.is_min_max_deprecated() && !matches!(ty, FileType::Integer { signed: true, .. } | FileType::Date) {
        return true;
    }
    let Some((least, greatest)) = ends(statistics, ty) else { return true };
    let is_below = |a: &Datum, b: &Datum| compare(a, b).is_some_and(|order| order.is_lt());
    // NaN is greater than what the statistics say of floats.
    let has_nan = matches!(ty, FileType::Float4 | FileType::Float8 | FileType::Float16);
    let too_small = !has_nan && limits.least.as_ref().is_some_and(|limit| is_below(&greatest, limit));
    let too_large = limits.greatest.as_ref().is_some_and(|limit| is_below(limit, &least));
    !too_small && !too_large
}

/// The least and the greatest value, as the type next to the file's has them.
fn ends(statistics: &Statistics, ty: FileType) -> Option<(Datum, Datum)> {
    let raw = match statistics {
        Statistics::Int32(s) => Raw::Int32(vec![*s.min_opt()?, *s.max_opt()?]),
        Statistics::Int64(s) => Raw::Int64(vec![*s.min_opt()?, *s.max_opt()?]),
        Statistics::Float(s) => Raw::Float(vec![*s.min_opt()?, *s.max_opt()?]),
        Statistics::Double(s) => Raw::Double(vec![*s.min_opt()?, *s.max_opt()?]),
        Statistics::ByteArray(s) if matches!(ty, FileType::Text) => {
            // Shortened ends need be no texts.
            let text = |bytes: &ByteArray| bytes.as_utf8().ok().map(|text| Datum::Text(text.into()));
            return Some((text(s.min_opt()?)?, text(s.max_opt()?)?));
        }
        Statistics::FixedLenByteArray(s) if matches!(ty, FileType::Decimal { .. }) => {
            let ends: [&FixedLenByteArray; 2] = [s.min_opt()?, s.max_opt()?];
            Raw::Fixed(ends.into_iter().cloned().collect())
        }
        _ => return None,
    };
    let column = decode::natural(ty, raw).ok()?;
    Some((column.get(0), column.get(1)))
}

/// The order of two values of one kind, or of integers; `None` for others.
fn compare(a: &Datum, b: &Datum) -> Option<std::cmp::Ordering> {
    let integer = |value: &Datum| match value {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    };
    match (a, b) {
        (Datum::Numeric(a), Datum::Numeric(b)) => Some(a.cmp(b)),
        (Datum::Text(a), Datum::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Datum::Float4(a), Datum::Float4(b)) => a.partial_cmp(b),
        (Datum::Float8(a), Datum::Float8(b)) => a.partial_cmp(b),
        _ => Some(integer(a)?.cmp(&integer(b)?)),
    }
}
