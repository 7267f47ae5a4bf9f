//! The printed form of names and types: quoting, format_type.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use hashbrown::HashMap;
use melba_types::{Oid, oids};

use crate::seed::seed;

/// How far a keyword may be used as a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeywordClass {
    Unreserved,
    /// May be a column or table name, not a function or type name.
    ColumnName,
    /// May be a function or type name.
    TypeOrFunction,
    Reserved,
}

static KEYWORDS: LazyLock<HashMap<&'static str, KeywordClass>> = LazyLock::new(|| {
    let class = |letter| match letter {
        b'C' => KeywordClass::ColumnName,
        b'T' => KeywordClass::TypeOrFunction,
        b'R' => KeywordClass::Reserved,
        _ => KeywordClass::Unreserved,
    };
    seed!("keywords").rows().map(|r| (r.str("word"), class(r.char("catcode")))).collect()
});

/// All keywords: the word, the letter of its class, and whether it may be a column's label without AS.
pub fn keywords() -> impl Iterator<Item = (&'static str, char, bool)> {
    let seed = seed!("keywords");
    let rows: Vec<_> = seed.rows().map(|r| (r.str("word"), r.char("catcode") as char, r.str("barelabel") == "t")).collect();
    rows.into_iter()
}

/// The class of a lower-case word, `None` when it is no keyword.
pub fn keyword_class(word: &str) -> Option<KeywordClass> {
    KEYWORDS.get(word).copied()
}

/// An identifier as SQL needs it: quoted unless it is lower-case, plain and no reserved word (PostgreSQL's quote_identifier).
pub fn quote_ident(name: &str) -> Cow<'_, str> {
    let first = |c: u8| c.is_ascii_lowercase() || c == b'_';
    let plain = |c: u8| first(c) || c.is_ascii_digit();
    let safe = name.bytes().next().is_some_and(first) && name.bytes().all(plain);
    if safe && keyword_class(name).is_none_or(|c| c == KeywordClass::Unreserved) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// A string literal as PostgreSQL's quote_literal writes it: with E'' when it has a backslash.
pub fn quote_literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

/// The names SQL has for built-in types.
pub(crate) fn standard_name(ty: Oid, given: Option<i32>, modifier: Option<i32>) -> Option<String> {
    let with = |name: &str, out: &str| match modifier {
        Some(m) => format!("{name}{}", format_type_modifier(out, m)),
        None => name.to_owned(),
    };
    Some(match ty {
        // Without a length, `bit` and `character` would be read back as bit(1) and character(1).
        oids::BIT | oids::BPCHAR if given.is_some() && modifier.is_none() => return None,
        oids::BIT => with("bit", "bittypmodout"),
        oids::BPCHAR => with("character", "bpchartypmodout"),
        oids::BOOL => "boolean".into(),
        oids::FLOAT4 => "real".into(),
        oids::FLOAT8 => "double precision".into(),
        oids::INT2 => "smallint".into(),
        oids::INT4 => "integer".into(),
        oids::INT8 => "bigint".into(),
        oids::JSON => "json".into(),
        oids::NUMERIC => with("numeric", "numerictypmodout"),
        oids::INTERVAL => with("interval", "intervaltypmodout"),
        oids::TIME => with("time", "timetypmodout") + " without time zone",
        oids::TIMETZ => with("time", "timetztypmodout").replace(" with time zone", "") + " with time zone",
        oids::TIMESTAMP => with("timestamp", "timestamptypmodout") + " without time zone",
        oids::TIMESTAMPTZ => with("timestamp", "timestamptztypmodout") + " with time zone",
        oids::VARBIT => with("bit varying", "varbittypmodout"),
        oids::VARCHAR => with("character varying", "varchartypmodout"),
        _ => return None,
    })
}

/// A type modifier as its type's typmod output function writes it, `(10,2)`; types without one: `(n)`.
pub fn format_type_modifier(typmod_out: &str, typmod: i32) -> String {
    match typmod_out {
        "bpchartypmodout" | "varchartypmodout" => {
            if typmod > 4 {
                format!("({})", typmod - 4)
            } else {
                String::new()
            }
        }
        "numerictypmodout" => match typmod.checked_sub(4).filter(|packed| *packed >= 0) {
            // The scale is 11 bits, signed.
            Some(packed) => format!("({},{})", packed >> 16 & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024),
            None => String::new(),
        },
        "intervaltypmodout" => interval_modifier(typmod),
        _ => format!("({typmod})"),
    }
}

fn interval_modifier(typmod: i32) -> String {
    const FULL_RANGE: i32 = 0x7fff;
    const FULL_PRECISION: i32 = 0xffff;
    // Bits of the fields: year 2, month 1, day 3, hour 10, minute 11, second 12.
    const FIELDS: [(&str, i32); 6] =
        [("year", 1 << 2), ("month", 1 << 1), ("day", 1 << 3), ("hour", 1 << 10), ("minute", 1 << 11), ("second", 1 << 12)];
    let range = typmod >> 16 & FULL_RANGE;
    let precision = typmod & FULL_PRECISION;
    let mut out = String::new();
    if range != FULL_RANGE {
        let first = FIELDS.iter().find(|(_, bit)| range & bit != 0);
        let last = FIELDS.iter().rev().find(|(_, bit)| range & bit != 0);
        if let (Some((first, _)), Some((last, _))) = (first, last) {
            out = format!(" {first}");
            if first != last {
                let _ = write!(out, " to {last}");
            }
        }
    }
    if precision != FULL_PRECISION {
        let _ = write!(out, "({precision})");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::PG_CATALOG;
    use crate::snapshot::Catalog;

    #[test]
    fn types_are_named_as_postgresql_names_them() {
        let c = Catalog::default();
        let name = |ty, typmod| c.format_type(ty, typmod, &[PG_CATALOG]);
        assert_eq!(name(oids::BPCHAR, None), "character");
        assert_eq!(name(oids::BPCHAR, Some(-1)), "bpchar");
        assert_eq!(name(oids::BPCHAR, Some(14)), "character(10)");
        assert_eq!(name(oids::BIT, Some(-1)), "\"bit\"");
        assert_eq!(name(oids::VARCHAR_ARRAY, Some(24)), "character varying(20)[]");
        assert_eq!(name(oids::NUMERIC, Some((10 << 16 | 2) + 4)), "numeric(10,2)");
        assert_eq!(name(oids::NUMERIC, Some((3 << 16 | (-2 & 0x7ff)) + 4)), "numeric(3,-2)");
        // An invalid modifier is shown as none.
        assert_eq!(format_type_modifier("numerictypmodout", 3), "");
        assert_eq!(format_type_modifier("numerictypmodout", i32::MIN), "");
        assert_eq!(name(oids::TIMETZ, Some(3)), "time(3) with time zone");
        assert_eq!(name(oids::INTERVAL, Some((4 | 2) << 16 | 0xffff)), "interval year to month");
        assert_eq!(name(oids::CHAR, None), "\"char\"");
        assert_eq!(name(oids::OIDVECTOR, None), "oidvector");
        assert_eq!(c.format_type(oids::TEXT, None, &[]), "pg_catalog.text");
        assert_eq!(name(Oid(999_999), None), "???");
    }

    #[test]
    fn identifiers_are_quoted_when_they_must_be() {
        let quoted: Vec<_> = ["a1", "A", "1a", "", "select", "abort", "between", "a\"b"].map(quote_ident).into();
        assert_eq!(quoted, ["a1", "\"A\"", "\"1a\"", "\"\"", "\"select\"", "abort", "\"between\"", "\"a\"\"b\""]);
    }
}
