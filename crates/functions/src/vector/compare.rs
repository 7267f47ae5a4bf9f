//! Comparisons of numbers, dates and timestamps.

use melba_fmgr::VectorFn;
use melba_types::float::{compare_f32, compare_f64};
use melba_types::{Column, ColumnData, Kind};

use super::{fallback, validity, values, zip};
use crate::datetime::widened;

/// One comparison: operands of two variants, made comparable by `$wide`, and the test.
macro_rules! comparison {
    ($name:expr, $left:ident, $right:ident, |$a:ident, $b:ident| $test:expr) => {
        ($name, |call, operands, rows| match (values!(&operands[0], $left), values!(&operands[1], $right)) {
            (Some(left), Some(right)) => {
                let data = ColumnData::Bool(zip(left, right, rows, |$a, $b| $test));
                Ok(Column { data, validity: validity(operands, rows) })
            }
            _ => fallback(call, $name, operands, rows, Kind::Bool),
        })
    };
}

/// The six comparisons of integers, by the names in the order =, <>, <, <=, >, >=.
macro_rules! integers {
    ($left:ident $right:ident $wide:ty: $eq:expr, $ne:expr, $lt:expr, $le:expr, $gt:expr, $ge:expr) => {
        [
            comparison!($eq, $left, $right, |a, b| <$wide>::from(a) == <$wide>::from(b)),
            comparison!($ne, $left, $right, |a, b| <$wide>::from(a) != <$wide>::from(b)),
            comparison!($lt, $left, $right, |a, b| <$wide>::from(a) < <$wide>::from(b)),
            comparison!($le, $left, $right, |a, b| <$wide>::from(a) <= <$wide>::from(b)),
            comparison!($gt, $left, $right, |a, b| <$wide>::from(a) > <$wide>::from(b)),
            comparison!($ge, $left, $right, |a, b| <$wide>::from(a) >= <$wide>::from(b)),
        ]
    };
}

macro_rules! integers_by_prefix {
    ($left:ident $right:ident $wide:ty: $p:literal) => {
        integers!($left $right $wide: concat!($p, "eq"), concat!($p, "ne"), concat!($p, "lt"), concat!($p, "le"), concat!($p, "gt"), concat!($p, "ge"))
    };
}

/// The six comparisons of a date and a timestamp, where `$left` and `$right` make timestamps of the operands.
macro_rules! dates {
    ($left_variant:ident $left:path, $right_variant:ident $right:path: $l:literal $r:literal) => {
        [
            comparison!(concat!($l, "_eq_", $r), $left_variant, $right_variant, |a, b| $left(a) == $right(b)),
            comparison!(concat!($l, "_ne_", $r), $left_variant, $right_variant, |a, b| $left(a) != $right(b)),
            comparison!(concat!($l, "_lt_", $r), $left_variant, $right_variant, |a, b| $left(a) < $right(b)),
            comparison!(concat!($l, "_le_", $r), $left_variant, $right_variant, |a, b| $left(a) <= $right(b)),
            comparison!(concat!($l, "_gt_", $r), $left_variant, $right_variant, |a, b| $left(a) > $right(b)),
            comparison!(concat!($l, "_ge_", $r), $left_variant, $right_variant, |a, b| $left(a) >= $right(b)),
        ]
    };
}

macro_rules! floats {
    ($left:ident $right:ident $wide:ty, $compare:ident: $p:literal) => {
        [
            comparison!(concat!($p, "eq"), $left, $right, |a, b| $compare(<$wide>::from(a), <$wide>::from(b)).is_eq()),
            comparison!(concat!($p, "ne"), $left, $right, |a, b| $compare(<$wide>::from(a), <$wide>::from(b)).is_ne()),
            comparison!(concat!($p, "lt"), $left, $right, |a, b| $compare(<$wide>::from(a), <$wide>::from(b)).is_lt()),
            comparison!(concat!($p, "le"), $left, $right, |a, b| $compare(<$wide>::from(a), <$wide>::from(b)).is_le()),
            comparison!(concat!($p, "gt"), $left, $right, |a, b| $compare(<$wide>::from(a), <$wide>::from(b)).is_gt()),
            comparison!(concat!($p, "ge"), $left, $right, |a, b| $compare(<$wide>::from(a), <$wide>::from(b)).is_ge()),
        ]
    };
}

const GROUPS: [[(&str, VectorFn); 6]; 21] = [
    integers_by_prefix!(Int2 Int2 i16: "int2"),
    integers_by_prefix!(Int4 Int4 i32: "int4"),
    integers_by_prefix!(Int8 Int8 i64: "int8"),
    integers_by_prefix!(Int2 Int4 i32: "int24"),
    integers_by_prefix!(Int4 Int2 i32: "int42"),
    integers_by_prefix!(Int2 Int8 i64: "int28"),
    integers_by_prefix!(Int8 Int2 i64: "int82"),
    integers_by_prefix!(Int4 Int8 i64: "int48"),
    integers_by_prefix!(Int8 Int4 i64: "int84"),
    integers_by_prefix!(Oid Oid u32: "oid"),
    integers_by_prefix!(Bool Bool u8: "bool"),
    integers_by_prefix!(Int4 Int4 i32: "date_"),
    integers_by_prefix!(Int8 Int8 i64: "timestamp_"),
    integers_by_prefix!(Int8 Int8 i64: "time_"),
    integers_by_prefix!(Int8 Int8 i64: "cash_"),
    dates!(Int4 widened, Int8 i64::from: "date" "timestamp"),
    dates!(Int8 i64::from, Int4 widened: "timestamp" "date"),
    floats!(Float4 Float4 f32, compare_f32: "float4"),
    floats!(Float8 Float8 f64, compare_f64: "float8"),
    floats!(Float4 Float8 f64, compare_f64: "float48"),
    floats!(Float8 Float4 f64, compare_f64: "float84"),
];

pub const VECTORS: &[(&str, VectorFn)] = GROUPS.as_flattened();
