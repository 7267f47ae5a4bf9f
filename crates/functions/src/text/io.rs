//! Input, output and length coercion of the text types.

use std::borrow::Cow;

pub use melba_encoding::utf8;
use melba_fmgr::type_io::{TypeContext, TypeIo, fixed, received, send_text};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Result, err, limits, oids};

/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 63;
/// Header that type modifiers of varchar, bpchar and numeric count in.
pub const TYPMOD_HEADER: i32 = 4;

/// Text unchanged.
pub const PLAIN: TypeIo =
    TypeIo { input: |_, s| Ok(Datum::text(s)), output: write, receive: |c, b| Ok(Datum::text(&*received(c, b)?)), send };

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::TEXT, PLAIN),
    (oids::UNKNOWN, PLAIN),
    (oids::CSTRING, PLAIN),
    (oids::REFCURSOR, PLAIN),
    (oids::PG_NODE_TREE, PLAIN),
    (
        oids::VARCHAR,
        TypeIo {
            input: |c, s| Ok(Datum::text(&*varchar(s, c.typmod, false)?)),
            output: write,
            receive: |c, b| Ok(Datum::text(&*varchar(&received(c, b)?, c.typmod, false)?)),
            send,
        },
    ),
    (
        oids::BPCHAR,
        TypeIo {
            input: |c, s| Ok(Datum::text(&*bpchar(s, c.typmod, false)?)),
            output: write,
            receive: |c, b| Ok(Datum::text(&*bpchar(&received(c, b)?, c.typmod, false)?)),
            send,
        },
    ),
    (
        oids::NAME,
        TypeIo {
            input: |_, s| Ok(Datum::text(truncate_name(s))),
            output: write,
            receive: |c, b| {
                let s = received(c, b)?;
                if s.len() > NAME_BYTES_MAX {
                    return Err(err!(NAME_TOO_LONG, "identifier too long").detail("Identifier must be less than 64 characters."));
                }
                Ok(Datum::text(&*s))
            },
            send,
        },
    ),
    (
        oids::CHAR,
        TypeIo {
            input: |_, s| Ok(Datum::Char(char_in(s))),
            output: |_, v, out| {
                write_char(v.as_char(), out);
                Ok(())
            },
            receive: |_, b| Ok(Datum::Char(fixed::<1>(b)?[0])),
            send: |_, v, out| {
                out.push(v.as_char());
                Ok(())
            },
        },
    ),
    (
        oids::VOID,
        TypeIo {
            input: |_, _| Ok(Datum::Null),
            output: |_, _, _| Ok(()),
            receive: |_, _| Ok(Datum::Null),
            send: |_, _, _| Ok(()),
        },
    ),
];

fn write(_: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value.as_str().as_bytes());
    Ok(())
}

fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    send_text(context, value.as_str(), out)
}

/// The byte offset of character number `chars`, or `None` when there are not more than that.
fn char_offset(s: &str, chars: usize) -> Option<usize> {
    if s.len() <= chars { None } else { s.char_indices().nth(chars).map(|(at, _)| at) }
}

/// Applies varchar(n). Only blanks may be cut off, unless the cast is explicit.
pub fn varchar(s: &str, typmod: i32, explicit: bool) -> Result<Cow<'_, str>> {
    if typmod < TYPMOD_HEADER {
        return Ok(Cow::Borrowed(s));
    }
    let limit = (typmod - TYPMOD_HEADER) as usize;
    let Some(at) = char_offset(s, limit) else { return Ok(Cow::Borrowed(s)) };
    if !explicit && s[at..].bytes().any(|c| c != b' ') {
        return Err(err!(STRING_DATA_RIGHT_TRUNCATION, "value too long for type character varying({limit})"));
    }
    Ok(Cow::Borrowed(&s[..at]))
}

/// Applies char(n): pads with blanks, or cuts as `varchar` does.
pub fn bpchar(s: &str, typmod: i32, explicit: bool) -> Result<Cow<'_, str>> {
    if typmod < TYPMOD_HEADER {
        return Ok(Cow::Borrowed(s));
    }
    let limit = (typmod - TYPMOD_HEADER) as usize;
    if let Some(at) = char_offset(s, limit) {
        if !explicit && s[at..].bytes().any(|c| c != b' ') {
            return Err(err!(STRING_DATA_RIGHT_TRUNCATION, "value too long for type character({limit})"));
        }
        return Ok(Cow::Borrowed(&s[..at]));
    }
    let missing = limit - s.chars().count();
    // Not by a format's width, which ends at 65535.
    if missing == 0 {
        return Ok(Cow::Borrowed(s));
    }
    limits::check_request(s.len() + missing)?;
    Ok(Cow::Owned([s, &" ".repeat(missing)].concat()))
}

/// Cuts at 63 bytes, between characters.
pub fn truncate_name(s: &str) -> &str {
    let mut end = s.len().min(NAME_BYTES_MAX);
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    &s[..end]
}

/// "char" input: the first byte, or one written `\ooo`.
pub fn char_in(s: &str) -> u8 {
    match s.as_bytes() {
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'),
        [first, ..] => *first,
        [] => 0,
    }
}

/// Appends a "char": nothing for 0, `\ooo` for a byte that is no ASCII.
pub fn write_char(c: u8, out: &mut Vec<u8>) {
    if c >= 0x80 {
        out.extend_from_slice(format!("\\{c:03o}").as_bytes());
    } else if c != 0 {
        out.push(c);
    }
}

/// `char` as a string, see `write_char`.
pub fn char_text(c: u8) -> String {
    let mut out = Vec::with_capacity(4);
    write_char(c, &mut out);
    out.iter().map(|&c| c as char).collect()
}

/// Length modifier of varchar and char: arguments of the type in SQL.
fn typmod_in(a: &[Datum], type_name: &str) -> Result<Datum> {
    let modifiers = &a[0].as_array().elements;
    let [Datum::Text(length)] = &modifiers[..] else {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier"));
    };
    let length = melba_fmgr::integer::int4_in(length)?;
    if length < 1 {
        return Err(err!(INVALID_PARAMETER_VALUE, "length for type {type_name} must be at least 1"));
    }
    if length > 10_485_760 {
        return Err(err!(INVALID_PARAMETER_VALUE, "length for type {type_name} cannot exceed 10485760"));
    }
    Ok(Datum::Int4(length + TYPMOD_HEADER))
}

fn typmod_out(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let typmod = a[0].as_i32();
    Ok(Datum::text(if typmod > TYPMOD_HEADER { format!("({})", typmod - TYPMOD_HEADER) } else { String::new() }))
}

/// The bytes of a bpchar without its trailing blanks.
pub fn unpadded(s: &str) -> &str {
    s.trim_end_matches(' ')
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("varchar", |_, a| Ok(Datum::text(&*varchar(a[0].as_str(), a[1].as_i32(), a[2].as_bool())?))),
    ("bpchar", |_, a| Ok(Datum::text(&*bpchar(a[0].as_str(), a[1].as_i32(), a[2].as_bool())?))),
    ("varchartypmodin", |_, a| typmod_in(a, "varchar")),
    ("bpchartypmodin", |_, a| typmod_in(a, "char")),
    ("varchartypmodout", typmod_out),
    ("bpchartypmodout", typmod_out),
    ("bpchar_name", |_, a| Ok(Datum::text(unpadded(truncate_name(a[0].as_str()))))),
    ("name_bpchar", |_, a| Ok(a[0].clone())),
    ("name_text", |_, a| Ok(a[0].clone())),
    ("text_name", |_, a| Ok(Datum::text(truncate_name(a[0].as_str())))),
    // bpchar to text.
    ("rtrim1", |_, a| Ok(Datum::text(unpadded(a[0].as_str())))),
    ("char_text", |_, a| Ok(Datum::text(char_text(a[0].as_char())))),
    ("char_bpchar", |_, a| Ok(Datum::text(char_text(a[0].as_char())))),
    ("text_char", |_, a| Ok(Datum::Char(char_in(a[0].as_str())))),
    ("chartoi4", |_, a| Ok(Datum::Int4(i32::from(a[0].as_char() as i8)))),
    ("i4tochar", |_, a| {
        let v = i8::try_from(a[0].as_i32()).map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range"))?;
        Ok(Datum::Char(v as u8))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_characters_and_only_blanks_are_lost() {
        assert_eq!(varchar("añb  ", 3 + 4, false).expect("blanks"), "añb");
        assert_eq!(varchar("añbc", 3 + 4, true).expect("explicit"), "añb");
        assert_eq!(varchar("abcd", 3 + 4, false).expect_err("long").message(), "value too long for type character varying(3)");
        assert_eq!(bpchar("ñ", 3 + 4, false).expect("pads"), "ñ  ");
        assert_eq!(truncate_name(&"ñ".repeat(40)).len(), 62);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(utf8(b"a\0b").expect_err("nul").message(), "invalid byte sequence for encoding \"UTF8\": 0x00");
        assert_eq!(
            utf8(b"a\xe2\x28\xa1").expect_err("bad").message(),
            "invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1"
        );
    }
}
