//! Comparisons of the text types: by bytes, which is the C collation.

use std::cmp::Ordering;

use melba_fmgr::{ScalarFn, comparison_table};
use melba_types::Datum;

use super::io::unpadded;

fn text(a: &Datum, b: &Datum) -> Ordering {
    a.as_str().as_bytes().cmp(b.as_str().as_bytes())
}

fn bpchar(a: &Datum, b: &Datum) -> Ordering {
    unpadded(a.as_str()).as_bytes().cmp(unpadded(b.as_str()).as_bytes())
}

fn char(a: &Datum, b: &Datum) -> Ordering {
    a.as_char().cmp(&b.as_char())
}

comparison_table! {
    /// Comparisons of the text types.
    COMPARISONS:
    text => "texteq", "textne", "text_lt", "text_le", "text_gt", "text_ge", "bttextcmp";
    text => "nameeq", "namene", "namelt", "namele", "namegt", "namege", "btnamecmp";
    text => "nameeqtext", "namenetext", "namelttext", "nameletext", "namegttext", "namegetext", "btnametextcmp";
    text => "texteqname", "textnename", "textltname", "textlename", "textgtname", "textgename", "bttextnamecmp";
    bpchar => "bpchareq", "bpcharne", "bpcharlt", "bpcharle", "bpchargt", "bpcharge", "bpcharcmp";
    char => "chareq", "charne", "charlt", "charle", "chargt", "charge", "btcharcmp";
}

fn larger(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Datum {
    a[usize::from(compare(&a[0], &a[1]).is_le())].clone()
}

fn smaller(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Datum {
    a[usize::from(compare(&a[0], &a[1]).is_ge())].clone()
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("text_larger", |_, a| Ok(larger(a, text))),
    ("text_smaller", |_, a| Ok(smaller(a, text))),
    ("bpchar_larger", |_, a| Ok(larger(a, bpchar))),
    ("bpchar_smaller", |_, a| Ok(smaller(a, bpchar))),
    ("text_pattern_lt", |_, a| Ok(Datum::Bool(text(&a[0], &a[1]).is_lt()))),
    ("text_pattern_le", |_, a| Ok(Datum::Bool(text(&a[0], &a[1]).is_le()))),
    ("text_pattern_gt", |_, a| Ok(Datum::Bool(text(&a[0], &a[1]).is_gt()))),
    ("text_pattern_ge", |_, a| Ok(Datum::Bool(text(&a[0], &a[1]).is_ge()))),
    ("bttext_pattern_cmp", |_, a| Ok(Datum::Int4(text(&a[0], &a[1]) as i32))),
    ("bpchar_pattern_lt", |_, a| Ok(Datum::Bool(bpchar(&a[0], &a[1]).is_lt()))),
    ("bpchar_pattern_le", |_, a| Ok(Datum::Bool(bpchar(&a[0], &a[1]).is_le()))),
    ("bpchar_pattern_gt", |_, a| Ok(Datum::Bool(bpchar(&a[0], &a[1]).is_gt()))),
    ("bpchar_pattern_ge", |_, a| Ok(Datum::Bool(bpchar(&a[0], &a[1]).is_ge()))),
    ("btbpchar_pattern_cmp", |_, a| Ok(Datum::Int4(bpchar(&a[0], &a[1]) as i32))),
];
