//! concat, format and quoting.

use melba_catalog::quote_ident;
use melba_fmgr::{CallInfo, ScalarFn, lookup};
use melba_types::{Datum, DbError, Oid, Result, err, limits, oids};

use super::case::mapped;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("text_concat", |c, a| Ok(concat(c, a, 0, "")?.unwrap_or(Datum::Null))),
    ("text_concat_ws", |c, a| match &a[0] {
        Datum::Null => Ok(Datum::Null),
        separator => Ok(concat(c, a, 1, separator.as_str())?.unwrap_or(Datum::Null)),
    }),
    ("text_format", format),
    ("text_format_nv", format),
    ("quote_ident", |_, a| identifier(a[0].as_str()).map(Datum::text)),
    ("quote_literal", |_, a| quoted(a[0].as_str())),
    ("quote_nullable", |_, a| match &a[0] {
        Datum::Null => Ok(Datum::text("NULL")),
        v => quoted(v.as_str()),
    }),
    ("quote_literal_1285", |c, a| quoted(&cast_to_text(c, 0, &a[0])?)),
    ("quote_nullable_1290", |c, a| match &a[0] {
        Datum::Null => Ok(Datum::text("NULL")),
        v => quoted(&cast_to_text(c, 0, v)?),
    }),
];

fn quoted(text: &str) -> Result<Datum> {
    literal(text).map(Datum::text)
}

/// As `melba_catalog::quote_ident` writes it, which is for those with few quotes.
fn identifier(name: &str) -> Result<String> {
    if !name.contains('"') {
        return Ok(quote_ident(name).into_owned());
    }
    limits::check_request(2 * name.len())?;
    let body = mapped(name, |piece| piece.replace('"', "\"\""))?;
    Ok(["\"", body.as_str(), "\""].concat())
}

/// As `melba_catalog::quote_literal` writes it, which is for short ones.
fn literal(text: &str) -> Result<String> {
    // At most each character doubles.
    limits::check_request(2 * text.len())?;
    let escapes = text.contains('\\');
    let body = mapped(text, |piece| {
        let doubled = piece.replace('\'', "''");
        if escapes { doubled.replace('\\', "\\\\") } else { doubled }
    })?;
    Ok([if escapes { "E'" } else { "'" }, body.as_str(), "'"].concat())
}

fn argument_type(call: &CallInfo<'_>, at: usize) -> Oid {
    call.arg_types.get(at).copied().unwrap_or(oids::TEXT)
}

fn cast_to_text(call: &CallInfo<'_>, at: usize, v: &Datum) -> Result<String> {
    match v {
        Datum::Bool(v) => Ok(v.to_string()),
        v => melba_fmgr::io::text_of(call.session, argument_type(call, at), v),
    }
}

/// The arguments from `first`, or the elements of the array that a VARIADIC call passes there, with their types. `None`
/// when that array is null.
fn spread<'a>(call: &CallInfo<'_>, args: &'a [Datum], first: usize) -> Option<Vec<(Oid, &'a Datum)>> {
    if !call.variadic {
        return Some((first..args.len()).map(|i| (argument_type(call, i), &args[i])).collect());
    }
    match args.get(first) {
        Some(Datum::Array(array)) => Some(array.elements.iter().map(|e| (array.element_type, e)).collect()),
        _ => None,
    }
}

fn concat(call: &CallInfo<'_>, args: &[Datum], first: usize, separator: &str) -> Result<Option<Datum>> {
    let Some(parts) = spread(call, args, first) else { return Ok(None) };
    let mut out = Vec::new();
    let mut any = false;
    for (ty, part) in parts {
        if part.is_null() {
            continue;
        }
        if any {
            out.extend_from_slice(separator.as_bytes());
        }
        any = true;
        melba_fmgr::io::text_out(call.session, ty, part, &mut out)?;
        limits::check_length(out.len())?;
    }
    Ok(Some(Datum::text(melba_fmgr::io::into_string(out)?)))
}

/// One `%` specifier.
#[derive(Default)]
struct Specifier {
    position: Option<usize>,
    left_aligned: bool,
    width: Option<Width>,
    conversion: char,
}

enum Width {
    Literal(i32),
    /// `*` or `*n$`.
    Argument(Option<usize>),
}

fn unterminated() -> DbError {
    err!(INVALID_PARAMETER_VALUE, "unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")
}

fn parse_number(rest: &mut &str) -> Result<Option<usize>> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Ok(None);
    }
    let number = rest[..digits].parse::<i32>().map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?;
    *rest = &rest[digits..];
    if rest.is_empty() { Err(unterminated()) } else { Ok(Some(number as usize)) }
}

fn position(n: usize) -> Result<usize> {
    if n == 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "format specifies argument 0, but arguments are numbered from 1"));
    }
    Ok(n)
}

/// Reads the rest of a `%`.
fn parse_specifier(rest: &mut &str) -> Result<Specifier> {
    let mut spec = Specifier::default();
    if let Some(n) = parse_number(rest)? {
        if let Some(tail) = rest.strip_prefix('$') {
            *rest = tail;
            spec.position = Some(position(n)?);
        } else {
            spec.width = Some(Width::Literal(n as i32));
        }
    }
    if spec.width.is_none() {
        while let Some(tail) = rest.strip_prefix('-') {
            *rest = tail;
            spec.left_aligned = true;
        }
        if let Some(tail) = rest.strip_prefix('*') {
            *rest = tail;
            spec.width = Some(Width::Argument(match parse_number(rest)? {
                None => None,
                Some(n) => {
                    let message = "width argument position must be ended by \"$\"";
                    *rest = rest.strip_prefix('$').ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "{message}"))?;
                    Some(position(n)?)
                }
            }));
        } else if let Some(n) = parse_number(rest)? {
            spec.width = Some(Width::Literal(n as i32));
        }
    }
    spec.conversion = rest.chars().next().ok_or_else(unterminated)?;
    *rest = &rest[spec.conversion.len_utf8()..];
    Ok(spec)
}

fn format(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Text(pattern)) = args.first() else { return Ok(Datum::Null) };
    let values = if args.len() > 1 { spread(call, args, 1).unwrap_or_default() } else { Vec::new() };
    let mut out = String::new();
    let mut rest: &str = pattern;
    let mut next = 0;
    let argument =
        |at: usize| values.get(at).copied().ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "too few arguments for format()"));
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        if rest.is_empty() {
            return Err(unterminated());
        }
        let mut spec = parse_specifier(&mut rest)?;
        if !matches!(spec.conversion, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{}\"", spec.conversion);
            return Err(err!(INVALID_PARAMETER_VALUE, "{message}").hint("For a single \"%\" use \"%%\"."));
        }
        let mut width = match spec.width {
            None => 0,
            Some(Width::Literal(n)) => n,
            Some(Width::Argument(from)) => {
                let at = from.map_or(next, |n| n - 1);
                next = at + 1;
                width_argument(call, argument(at)?)?
            }
        };
        if width < 0 {
            spec.left_aligned = true;
            width = width.checked_neg().ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?;
        }
        let at = spec.position.map_or(next, |n| n - 1);
        next = at + 1;
        let (ty, value) = argument(at)?;
        let text = converted(call, ty, value, spec.conversion)?;
        let fill = (width as usize).saturating_sub(super::functions::length(&text));
        limits::check_length(out.len() + text.len() + fill)?;
        let blanks = " ".repeat(fill);
        let (before, after) = if spec.left_aligned { ("", &*blanks) } else { (&*blanks, "") };
        out.extend([before, &text, after]);
    }
    out.push_str(rest);
    Ok(Datum::text(out))
}

fn width_argument(call: &CallInfo<'_>, (ty, value): (Oid, &Datum)) -> Result<i32> {
    match value {
        Datum::Null => Ok(0),
        Datum::Int4(v) => Ok(*v),
        Datum::Int2(v) => Ok(i32::from(*v)),
        other => melba_fmgr::integer::int4_in(&melba_fmgr::io::text_of(call.session, ty, other)?),
    }
}

fn converted(call: &CallInfo<'_>, ty: Oid, value: &Datum, conversion: char) -> Result<String> {
    if value.is_null() {
        return match conversion {
            's' => Ok(String::new()),
            'L' => Ok("NULL".into()),
            _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "null values cannot be formatted as an SQL identifier")),
        };
    }
    let text = melba_fmgr::io::text_of(call.session, lookup::base_type(call.session, ty), value)?;
    Ok(match conversion {
        's' => text,
        'I' => quote_ident(&text).into_owned(),
        _ => literal(&text)?,
    })
}
