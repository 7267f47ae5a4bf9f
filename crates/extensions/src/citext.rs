//! citext: case-insensitive text. Held as text; ordered and hashed in lower case (`types::case`).

use std::cmp::Ordering;

use melba_fmgr::{CallInfo, ScalarFn, SetFn, TypeIo, registry};
use melba_types::case::lower;
use melba_types::{Datum, DbError, Oid, Result, oids};

use melba_functions::text::case::upper;
use melba_functions::text::io::PLAIN;

pub const TYPES: &[(Oid, TypeIo)] = &[(oids::CITEXT, PLAIN)];

fn compare(a: &[Datum]) -> Ordering {
    lower(a[0].as_str()).cmp(&lower(a[1].as_str()))
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("citext_eq", |_, a| Ok(Datum::Bool(compare(a).is_eq()))),
    ("citext_ne", |_, a| Ok(Datum::Bool(compare(a).is_ne()))),
    ("citext_lt", |_, a| Ok(Datum::Bool(compare(a).is_lt()))),
    ("citext_le", |_, a| Ok(Datum::Bool(compare(a).is_le()))),
    ("citext_gt", |_, a| Ok(Datum::Bool(compare(a).is_gt()))),
    ("citext_ge", |_, a| Ok(Datum::Bool(compare(a).is_ge()))),
    ("citext_cmp", |_, a| Ok(Datum::Int4(compare(a) as i32))),
    ("citext_pattern_lt", |_, a| Ok(Datum::Bool(compare(a).is_lt()))),
    ("citext_pattern_le", |_, a| Ok(Datum::Bool(compare(a).is_le()))),
    ("citext_pattern_gt", |_, a| Ok(Datum::Bool(compare(a).is_gt()))),
    ("citext_pattern_ge", |_, a| Ok(Datum::Bool(compare(a).is_ge()))),
    ("citext_pattern_cmp", |_, a| Ok(Datum::Int4(compare(a) as i32))),
    ("citext_smaller", |_, a| Ok(a[usize::from(compare(a).is_gt())].clone())),
    ("citext_larger", |_, a| Ok(a[usize::from(compare(a).is_lt())].clone())),
    ("citext_hash", |c, a| text_function("hashtext", c, &[folded(&a[0])])),
    ("citext_hash_extended", |c, a| text_function("hashtextextended", c, &[folded(&a[0]), a[1].clone()])),
    ("citext_regexp_match", |c, a| text_function("regexp_match", c, &with_flags(a))),
    ("citext_regexp_split_to_array", |c, a| text_function("regexp_split_to_array", c, &with_flags(a))),
    ("citext_regexp_replace", |c, a| {
        let flags = flags(a.get(3));
        text_function("textregexreplace", c, &[a[0].clone(), a[1].clone(), a[2].clone(), flags])
    }),
    ("citext_strpos", |c, a| text_function("textpos", c, &[folded(&a[0]), folded(&a[1])])),
    ("citext_replace", |c, a| {
        let arguments = [a[0].clone(), literal(&a[1]), a[2].clone(), Datum::text("gi")];
        text_function("textregexreplace", c, &arguments)
    }),
    ("citext_split_part", |c, a| {
        let parts = text_function("regexp_split_to_array", c, &[a[0].clone(), literal(&a[1]), Datum::text("i")])?;
        let at = usize::try_from(a[2].as_i32()).ok().and_then(|n| n.checked_sub(1));
        Ok(at.and_then(|at| parts.as_array().elements.get(at).cloned()).unwrap_or(Datum::Null))
    }),
    ("citext_translate", |c, a| {
        let of_lower = text_function("translate", c, &[a[0].clone(), folded(&a[1]), a[2].clone()])?;
        text_function("translate", c, &[of_lower, Datum::text(upper(a[1].as_str())), a[2].clone()])
    }),
];

pub const SETS: &[(&str, SetFn)] = &[
    ("citext_regexp_matches", |c, a| text_set("regexp_matches", c, &with_flags(a))),
    ("citext_regexp_split_to_table", |c, a| text_set("regexp_split_to_table", c, &with_flags(a))),
];

fn folded(value: &Datum) -> Datum {
    Datum::text(lower(value.as_str()))
}

/// Flags of a regular expression: case does not count unless they say that it does.
fn flags(given: Option<&Datum>) -> Datum {
    match given.map(Datum::as_str) {
        Some(flags) if flags.contains('c') => Datum::text(flags),
        Some(flags) => Datum::text(format!("{flags}i")),
        None => Datum::text("i"),
    }
}

fn with_flags(a: &[Datum]) -> [Datum; 3] {
    [a[0].clone(), a[1].clone(), flags(a.get(2))]
}

/// A regular expression that matches a text literally.
fn literal(text: &Datum) -> Datum {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let escaped = text.as_str().chars().flat_map(|c| (!is_word(c)).then_some('\\').into_iter().chain([c]));
    Datum::text(escaped.collect::<String>())
}

fn missing(name: &str) -> DbError {
    DbError::internal(format!("function {name} is not there"))
}

fn text_function(name: &str, call: &CallInfo<'_>, arguments: &[Datum]) -> Result<Datum> {
    registry::scalar(name).ok_or_else(|| missing(name))?(call, arguments)
}

fn text_set(name: &str, call: &CallInfo<'_>, arguments: &[Datum]) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    registry::set_returning(name).ok_or_else(|| missing(name))?(call, arguments)
}
