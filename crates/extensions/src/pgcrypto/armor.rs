//! ASCII armor (RFC 4880, section 6): base64 with a checksum, between two lines, after headers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use melba_fmgr::{ScalarFn, SetFn};
use melba_types::{Datum, DbError, Result, bail, err};

use super::{bytea, octets};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_armor", |_, a| armor(octets(&a[0]), a.get(1).zip(a.get(2))).map(Datum::text)),
    ("pg_dearmor", |_, a| dearmor(a[0].as_str()).map(bytea)),
];

pub const SETS: &[(&str, SetFn)] = &[("pgp_armor_headers", |_, a| {
    let rows: Vec<Vec<Datum>> =
        parts(a[0].as_str())?.headers.iter().map(|(k, v)| vec![Datum::text(*k), Datum::text(*v)]).collect();
    Ok(Box::new(rows.into_iter().map(Ok)))
})];

const BEGIN: &str = "-----BEGIN PGP MESSAGE-----";
const END: &str = "-----END PGP MESSAGE-----";
const LINE_CHARS: usize = 76;

fn checksum(data: &[u8]) -> [u8; 4] {
    let mut crc: u32 = 0x00b7_04ce;
    for byte in data {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc = if crc & 0x0080_0000 == 0 { crc << 1 } else { crc << 1 ^ 0x0186_4cfb };
        }
    }
    (crc & 0x00ff_ffff).to_be_bytes()
}

fn armor(data: &[u8], headers: Option<(&Datum, &Datum)>) -> Result<String> {
    let mut out = format!("{BEGIN}\n");
    if let Some((keys, values)) = headers {
        let (keys, values) = (keys.as_array(), values.as_array());
        if keys.dims.len() > 1 || values.dims.len() > 1 {
            bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
        }
        if keys.elements.len() != values.elements.len() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "mismatched array dimensions");
        }
        for (key, value) in keys.elements.iter().zip(&values.elements) {
            let (key, value) = (header(key, "key")?, header(value, "value")?);
            if key.contains(": ") {
                bail!(INVALID_PARAMETER_VALUE, "header key must not contain \": \"");
            }
            out.push_str(&format!("{key}: {value}\n"));
        }
    }
    out.push('\n');
    let encoded = STANDARD.encode(data);
    for line in encoded.as_bytes().chunks(LINE_CHARS) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("={}\n{END}\n", STANDARD.encode(&checksum(data)[1..])));
    Ok(out)
}

fn header<'a>(part: &'a Datum, what: &str) -> Result<&'a str> {
    if part.is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for header {what}");
    }
    let text = part.as_str();
    if !text.is_ascii() {
        bail!(INVALID_PARAMETER_VALUE, "header {what} must not contain non-ASCII characters");
    }
    if text.contains('\n') {
        bail!(INVALID_PARAMETER_VALUE, "header {what} must not contain newlines");
    }
    Ok(text)
}

struct ArmorParts<'a> {
    headers: Vec<(&'a str, &'a str)>,
    /// Base64 and the checksum behind a `=` that begins a line (after blanks).
    body: Vec<&'a str>,
}

fn corrupt() -> DbError {
    err!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "Corrupt ascii-armor")
}

/// The lines between the first that begins an armor and the next that ends it.
fn parts(text: &str) -> Result<ArmorParts<'_>> {
    let mut lines = text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l));
    lines.find(|l| is_mark(l, "-----BEGIN ")).ok_or_else(corrupt)?;
    let mut headers = Vec::new();
    loop {
        let line = lines.next().ok_or_else(corrupt)?;
        if line.is_empty() {
            break;
        }
        headers.push(line.split_once(": ").ok_or_else(corrupt)?);
    }
    let mut body = Vec::new();
    loop {
        let line = lines.next().ok_or_else(corrupt)?;
        if is_mark(line, "-----END ") {
            return Ok(ArmorParts { headers, body });
        }
        body.push(line);
    }
}

fn is_mark(line: &str, begin: &str) -> bool {
    line.strip_prefix(begin).is_some_and(|rest| rest.trim_end().ends_with("-----"))
}

fn dearmor(text: &str) -> Result<Vec<u8>> {
    let body = parts(text)?.body;
    let at = body.iter().position(|l| l.trim_start().starts_with('=')).ok_or_else(corrupt)?;
    let decoded = |text: String| STANDARD.decode(text).map_err(|_| corrupt());
    let data = decoded(body[..at].concat().split_ascii_whitespace().collect())?;
    let given = decoded(body[at].trim()[1..].to_owned())?;
    if given != checksum(&data)[1..] {
        return Err(corrupt());
    }
    Ok(data)
}
