//! boolean: input and output, comparisons, casts.

use melba_fmgr::{ScalarFn, TypeIo, comparison_table, type_io};
use melba_types::{Datum, DbError, Oid, Result, boolean, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::BOOL,
    TypeIo {
        input: |_, s| bool_in(s).map(Datum::Bool),
        output: |_, v, out| {
            out.push(if v.as_bool() { b't' } else { b'f' });
            Ok(())
        },
        receive: |_, b| Ok(Datum::Bool(type_io::fixed::<1>(b)?[0] != 0)),
        send: |_, v, out| {
            out.push(u8::from(v.as_bool()));
            Ok(())
        },
    },
)];

/// A boolean as text, with blanks around it allowed.
pub fn parse(text: &str) -> Option<bool> {
    boolean::parse(type_io::trim(text))
}

fn bool_in(text: &str) -> Result<bool, DbError> {
    parse(text).ok_or_else(|| type_io::invalid_text("boolean", text))
}

fn compare(a: &Datum, b: &Datum) -> std::cmp::Ordering {
    a.as_bool().cmp(&b.as_bool())
}

comparison_table! {
    /// Comparisons of booleans: false is less than true.
    COMPARISONS: compare => "booleq", "boolne", "boollt", "boolle", "boolgt", "boolge", "btboolcmp";
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("int4_bool", |_, a| Ok(Datum::Bool(a[0].as_i32() != 0))),
    ("bool_int4", |_, a| Ok(Datum::Int4(a[0].as_bool().into()))),
    ("booltext", |_, a| Ok(Datum::text(if a[0].as_bool() { "true" } else { "false" }))),
    ("booland_statefunc", |_, a| Ok(Datum::Bool(a[0].as_bool() && a[1].as_bool()))),
    ("boolor_statefunc", |_, a| Ok(Datum::Bool(a[0].as_bool() || a[1].as_bool()))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_unique_prefixes() {
        for (text, value) in
            [("t", Some(true)), (" TRU ", Some(true)), ("of", Some(false)), ("o", None), ("", None), ("10", None)]
        {
            assert_eq!(parse(text), value, "{text}");
        }
    }
}
