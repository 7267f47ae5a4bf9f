//! Checks of input, and of names.

use std::sync::Arc;

use melba_fmgr::io::soft_text_in;
use melba_fmgr::{CallInfo, ScalarFn, registry};
use melba_types::limits::Ticker;
use melba_types::{Datum, Record, Result, err, oids};

use crate::array::functions::one_dimensional;
use crate::regs::type_named;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_input_is_valid", |c, a| Ok(Datum::Bool(check_input(c, a)?.is_none()))),
    ("pg_input_error_info", error_info),
    ("parse_ident", |_, a| parse_ident(a[0].as_str(), a[1].as_bool())),
    ("any_value_transfn", |_, a| Ok(a[0].clone())),
];

/// The error of a text as input of the named type.
fn check_input(call: &CallInfo<'_>, a: &[Datum]) -> Result<Option<melba_types::DbError>> {
    let (text, name) = (a[0].as_str(), a[1].as_str());
    let catalog = call.session.catalog();
    let ty = type_named(call.session, name)?;
    let typmod = match name.split_once('(').and_then(|(_, rest)| rest.split_once(')')) {
        None => -1,
        Some((modifiers, _)) => {
            let modifiers = modifiers.split(',').map(|m| Datum::text(m.trim())).collect();
            let reader = catalog.type_(ty).and_then(|t| registry::scalar(&t.typmod_in));
            let reader = reader.ok_or_else(|| err!(SYNTAX_ERROR, "type modifier is not allowed for type \"{name}\""))?;
            reader(call, &[one_dimensional(oids::CSTRING, modifiers)])?.as_i32()
        }
    };
    Ok(soft_text_in(call.session, ty, typmod, text)?.err())
}

/// Message, detail, hint and SQLSTATE; all NULL for valid input.
fn error_info(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let text = |t: Option<&str>| t.map_or(Datum::Null, Datum::text);
    let fields = match check_input(call, a)? {
        None => vec![Datum::Null; 4],
        Some(e) => {
            let f = e.fields();
            vec![Datum::text(&*f.message), text(f.detail.as_deref()), text(f.hint.as_deref()), Datum::text(f.sqlstate.as_str())]
        }
    };
    let names = ["message", "detail", "hint", "sql_error_code"].map(Arc::from);
    Ok(Datum::Record(Arc::new(Record {
        type_oid: oids::RECORD,
        field_types: vec![oids::TEXT; 4].into(),
        field_names: Some(Arc::new(names)),
        fields,
    })))
}

/// The parts of a qualified name, unquoted ones in lower case.
fn parse_ident(text: &str, strict: bool) -> Result<Datum> {
    let invalid = || err!(INVALID_PARAMETER_VALUE, "string is not a valid identifier: \"{text}\"");
    let is_start = |c: char| c == '_' || c.is_ascii_alphabetic() || !c.is_ascii();
    let is_part = |c: char| is_start(c) || c == '$' || c.is_ascii_digit();
    let trim = |s: &'_ str| s.len() - s.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).len();
    let mut parts = Vec::new();
    let mut rest = &text[trim(text)..];
    let mut after_dot = false;
    let mut ticker = Ticker::new();
    loop {
        ticker.step()?;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut tail = quoted;
            loop {
                ticker.step()?;
                let end = tail.find('"').ok_or_else(|| invalid().detail("String has unclosed double quotes."))?;
                part.push_str(&tail[..end]);
                tail = &tail[end + 1..];
                match tail.strip_prefix('"') {
                    Some(more) => {
                        part.push('"');
                        tail = more;
                    }
                    None => break,
                }
            }
            if part.is_empty() {
                return Err(invalid().detail("Quoted identifier must not be empty."));
            }
            parts.push(Datum::text(part));
            rest = tail;
        } else if rest.starts_with(is_start) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            parts.push(Datum::text(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        } else if rest.starts_with('.') {
            return Err(invalid().detail("No valid identifier before \".\"."));
        } else if after_dot {
            return Err(invalid().detail("No valid identifier after \".\"."));
        } else {
            return Err(invalid());
        }
        rest = &rest[trim(rest)..];
        match rest.strip_prefix('.') {
            Some(tail) => {
                after_dot = true;
                rest = &tail[trim(tail)..];
            }
            None if rest.is_empty() || !strict => break,
            None => return Err(invalid()),
        }
    }
    Ok(one_dimensional(oids::TEXT, parts))
}

#[cfg(test)]
mod tests {
    use melba_fmgr::io::text_of;

    use super::*;

    #[test]
    fn type_functions_know_their_type_from_the_call() {
        let session = crate::testing::session();
        let types = [oids::INT4];
        let send = registry::scalar("int4send").expect("registered");
        let bytes = send(&session.call(&types, oids::BYTEA), &[Datum::Int4(258)]).expect("send");
        assert_eq!(bytes.as_bytes(), [0, 0, 1, 2]);
        let input = registry::scalar("float8in").expect("registered");
        assert_eq!(input(&session.call(&[oids::CSTRING], oids::FLOAT8), &[Datum::text("1.5")]).expect("input").as_f64(), 1.5);
    }

    /// PostgreSQL 18's output.
    #[test]
    fn modifiers_that_are_none_are_shown_as_nothing() {
        let session = crate::testing::session();
        let call = session.call(&[oids::INT4], oids::CSTRING);
        let shown = |function: &str, typmod| {
            registry::scalar(function).expect("registered")(&call, &[Datum::Int4(typmod)]).expect("shows").as_str().to_owned()
        };
        for typmod in [i32::MIN, i32::MIN + 1, i32::MIN + 4, -5, -1] {
            for function in ["numeric", "varchar", "bpchar", "bit", "varbit", "interval"] {
                assert_eq!(shown(&format!("{function}typmodout"), typmod), "", "{function} {typmod}");
            }
            assert_eq!(shown("timestamptypmodout", typmod), " without time zone");
        }
        assert_eq!((shown("numerictypmodout", 3), shown("numerictypmodout", i32::MAX)), (String::new(), "(32767,-5)".to_owned()));
        assert_eq!(shown("varchartypmodout", i32::MAX), "(2147483643)");
    }

    #[test]
    fn input_is_checked_without_raising() {
        let session = crate::testing::session();
        let call = session.call(&[oids::TEXT, oids::TEXT], oids::BOOL);
        let check = |text: &str, ty: &str| {
            let e = check_input(&call, &[Datum::text(text), Datum::text(ty)]).expect("a type");
            e.map(|e| e.message().to_string())
        };
        assert_eq!(check("1", "integer"), None);
        assert_eq!(check("x", "int4").as_deref(), Some("invalid input syntax for type integer: \"x\""));
        assert_eq!(check("abcd", "varchar(3)").as_deref(), Some("value too long for type character varying(3)"));
        assert!(check_input(&call, &[Datum::text("1"), Datum::text("no_such_type")]).is_err());
    }

    #[test]
    fn identifiers_are_taken_apart() {
        let session = crate::testing::session();
        let shown = |text: &str, strict| parse_ident(text, strict).and_then(|v| text_of(&session, oids::TEXT_ARRAY, &v));
        assert_eq!(shown(" Foo . \"Bar\"\"x\".b$1 ", true).expect("valid"), "{foo,\"Bar\\\"x\",b$1}");
        assert_eq!(shown("a.b(c)", false).expect("not strict"), "{a,b}");
        for (text, detail) in [
            ("a.", "No valid identifier after \".\"."),
            (".a", "No valid identifier before \".\"."),
            ("\"a", "String has unclosed double quotes."),
        ] {
            assert_eq!(shown(text, true).expect_err(text).fields().detail.as_deref(), Some(detail));
        }
    }
}
