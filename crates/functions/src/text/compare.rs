//! Comparisons of the text types by the collation of the call.

use std::cmp::Ordering;

use melba_fmgr::{CallInfo, ScalarFn, comparison_table};
use melba_types::collate::Collate;
use melba_types::{Datum, Result};

use super::collation;
use super::io::unpadded;

fn compared(call: &CallInfo<'_>, a: &str, b: &str) -> Result<Ordering> {
    let collator = collation::collator(call, "string comparison")?;
    Ok(collator.map_or_else(|| a.as_bytes().cmp(b.as_bytes()), |collator| collator.compare(a, b)))
}

fn text(call: &CallInfo<'_>, a: &[Datum]) -> Result<Ordering> {
    compared(call, a[0].as_str(), a[1].as_str())
}

fn bpchar(call: &CallInfo<'_>, a: &[Datum]) -> Result<Ordering> {
    compared(call, unpadded(a[0].as_str()), unpadded(a[1].as_str()))
}

/// By bytes, whatever the collation.
fn pattern(a: &[Datum]) -> Ordering {
    a[0].as_str().as_bytes().cmp(a[1].as_str().as_bytes())
}

fn bpchar_pattern(a: &[Datum]) -> Ordering {
    unpadded(a[0].as_str()).as_bytes().cmp(unpadded(a[1].as_str()).as_bytes())
}

fn char(a: &Datum, b: &Datum) -> Ordering {
    a.as_char().cmp(&b.as_char())
}

macro_rules! collated_table {
    ($($compare:expr => $eq:expr, $ne:expr, $lt:expr, $le:expr, $gt:expr, $ge:expr, $cmp:expr;)+) => {
        /// Comparisons of the text types.
        pub const COLLATED: &[(&str, ScalarFn)] = &[$(
            ($eq, |c, a| Ok(Datum::Bool($compare(c, a)?.is_eq()))),
            ($ne, |c, a| Ok(Datum::Bool($compare(c, a)?.is_ne()))),
            ($lt, |c, a| Ok(Datum::Bool($compare(c, a)?.is_lt()))),
            ($le, |c, a| Ok(Datum::Bool($compare(c, a)?.is_le()))),
            ($gt, |c, a| Ok(Datum::Bool($compare(c, a)?.is_gt()))),
            ($ge, |c, a| Ok(Datum::Bool($compare(c, a)?.is_ge()))),
            ($cmp, |c, a| Ok(Datum::Int4($compare(c, a)? as i32))),
        )+];
    };
}

collated_table! {
    text => "texteq", "textne", "text_lt", "text_le", "text_gt", "text_ge", "bttextcmp";
    text => "nameeq", "namene", "namelt", "namele", "namegt", "namege", "btnamecmp";
    text => "nameeqtext", "namenetext", "namelttext", "nameletext", "namegttext", "namegetext", "btnametextcmp";
    text => "texteqname", "textnename", "textltname", "textlename", "textgtname", "textgename", "bttextnamecmp";
    bpchar => "bpchareq", "bpcharne", "bpcharlt", "bpcharle", "bpchargt", "bpcharge", "bpcharcmp";
}

comparison_table! {
    /// Comparisons of one byte.
    COMPARISONS:
    char => "chareq", "charne", "charlt", "charle", "chargt", "charge", "btcharcmp";
}

fn larger(a: &[Datum], order: Ordering) -> Datum {
    a[usize::from(order.is_le())].clone()
}

fn smaller(a: &[Datum], order: Ordering) -> Datum {
    a[usize::from(order.is_ge())].clone()
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("text_larger", |c, a| Ok(larger(a, text(c, a)?))),
    ("text_smaller", |c, a| Ok(smaller(a, text(c, a)?))),
    // Unlike those of other types, these return the first of equal values.
    ("bpchar_larger", |c, a| Ok(a[usize::from(bpchar(c, a)?.is_lt())].clone())),
    ("bpchar_smaller", |c, a| Ok(a[usize::from(bpchar(c, a)?.is_gt())].clone())),
    ("text_pattern_lt", |_, a| Ok(Datum::Bool(pattern(a).is_lt()))),
    ("text_pattern_le", |_, a| Ok(Datum::Bool(pattern(a).is_le()))),
    ("text_pattern_gt", |_, a| Ok(Datum::Bool(pattern(a).is_gt()))),
    ("text_pattern_ge", |_, a| Ok(Datum::Bool(pattern(a).is_ge()))),
    ("bttext_pattern_cmp", |_, a| Ok(Datum::Int4(pattern(a) as i32))),
    ("bpchar_pattern_lt", |_, a| Ok(Datum::Bool(bpchar_pattern(a).is_lt()))),
    ("bpchar_pattern_le", |_, a| Ok(Datum::Bool(bpchar_pattern(a).is_le()))),
    ("bpchar_pattern_gt", |_, a| Ok(Datum::Bool(bpchar_pattern(a).is_gt()))),
    ("bpchar_pattern_ge", |_, a| Ok(Datum::Bool(bpchar_pattern(a).is_ge()))),
    ("btbpchar_pattern_cmp", |_, a| Ok(Datum::Int4(bpchar_pattern(a) as i32))),
];
