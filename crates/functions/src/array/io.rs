//! Input and output of arrays.

use std::sync::Arc;

use melba_fmgr::io::{binary_in, binary_out, check_domain, text_in, text_out};
use melba_fmgr::type_io::{append_quoted, data_behind, in_part, insufficient_data, is_other_type, is_space};
use melba_fmgr::{TypeContext, TypeIo, lookup};
use melba_types::array::{DIMENSIONS_MAX, ELEMENTS_MAX, element_count};
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, err, limits, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[(oids::ANYARRAY, TypeIo { input, output, receive, send })];

fn input(context: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let element_type = element_type(context)?;
    let mut parser = Parser {
        text,
        rest: text.as_bytes(),
        delimiter: lookup::array_delimiter(context.session, element_type),
        lengths: Vec::new(),
        dimensions_given: false,
        frozen: false,
        elements: Vec::new(),
    };
    let lower_bounds = parser.dimensions()?;
    let mut convert = |text: Option<&str>| match text {
        Some(text) => text_in(context.session, element_type, context.typmod, text),
        None if lookup::domain(context.session, element_type).is_some() => {
            check_domain(context.session, element_type, Datum::Null)
        }
        None => Ok(Datum::Null),
    };
    parser.contents(&mut convert)?;
    let elements = parser.elements;
    let dims = if elements.is_empty() {
        Vec::new()
    } else {
        let lower_bound = |i: usize| lower_bounds.get(i).copied().unwrap_or(1);
        parser
            .lengths
            .iter()
            .enumerate()
            .map(|(i, l)| ArrayDim { length: l.unwrap_or(0) as i32, lower_bound: lower_bound(i) })
            .collect()
    };
    Ok(Datum::Array(Arc::new(Array { element_type, dims, elements })))
}

fn element_type(context: &TypeContext<'_>) -> Result<Oid> {
    match context.type_oid {
        oids::OIDVECTOR => Ok(oids::OID),
        oids::INT2VECTOR => Ok(oids::INT2),
        ty => lookup::array_element(context.session, ty)
            .ok_or_else(|| err!(DATATYPE_MISMATCH, "type {} is not an array type", lookup::type_name(context.session, ty))),
    }
}

/// Reads an array literal: optional `[l:u]...=` and nested braces.
struct Parser<'a> {
    text: &'a str,
    rest: &'a [u8],
    delimiter: u8,
    /// Length of each dimension, once its first sub-array has ended (or as given).
    lengths: Vec<Option<usize>>,
    dimensions_given: bool,
    /// The number of dimensions is known.
    frozen: bool,
    elements: Vec<Datum>,
}

enum Token {
    Open,
    Close,
    Delimiter,
    Element(String),
    Null,
}

impl Parser<'_> {
    fn malformed(&self, detail: impl Into<String>) -> DbError {
        err!(INVALID_TEXT_REPRESENTATION, "malformed array literal: \"{}\"", self.text).detail(detail)
    }

    fn unexpected(&self, c: u8) -> DbError {
        self.malformed(format!("Unexpected \"{}\" character.", c as char))
    }

    fn ended(&self) -> DbError {
        self.malformed("Unexpected end of input.")
    }

    fn mismatch(&self) -> DbError {
        self.malformed(if self.dimensions_given {
            "Specified array dimensions do not match array contents."
        } else {
            "Multidimensional arrays must have sub-arrays with matching dimensions."
        })
    }

    fn skip_space(&mut self) {
        while let [c, rest @ ..] = self.rest
            && is_space(*c)
        {
            self.rest = rest;
        }
    }

    fn eat(&mut self, c: u8) -> bool {
        let found = self.rest.first() == Some(&c);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// A bound; `None` when there is no number.
    fn bound(&mut self) -> Result<Option<i32>> {
        let sign = usize::from(matches!(self.rest.first(), Some(b'-' | b'+')));
        let digits = self.rest[sign..].iter().take_while(|c| c.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(None);
        }
        let (number, rest) = self.rest.split_at(sign + digits);
        self.rest = rest;
        let number = std::str::from_utf8(number).unwrap_or("");
        let value = number.parse().map_err(|_| err!(PROGRAM_LIMIT_EXCEEDED, "array bound is out of integer range"))?;
        Ok(Some(value))
    }

    /// The dimensions before the braces; returns their lower bounds.
    fn dimensions(&mut self) -> Result<Vec<i32>> {
        let mut lower_bounds = Vec::new();
        loop {
            self.skip_space();
            if !self.eat(b'[') {
                break;
            }
            if lower_bounds.len() >= DIMENSIONS_MAX {
                return Err(too_many_dimensions());
            }
            let first = self.bound()?;
            let first = first.ok_or_else(|| self.malformed("\"[\" must introduce explicitly-specified array dimensions."))?;
            let (lower, upper) = if self.eat(b':') {
                let upper = self.bound()?;
                (first, upper.ok_or_else(|| self.malformed("Missing array dimension value."))?)
            } else {
                (1, first)
            };
            if !self.eat(b']') {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            if upper < lower {
                return Err(err!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound"));
            }
            if upper == i32::MAX {
                return Err(err!(PROGRAM_LIMIT_EXCEEDED, "array upper bound is too large: {upper}"));
            }
            let length = i64::from(upper) - i64::from(lower) + 1;
            if length > i64::from(i32::MAX) {
                return Err(err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({ELEMENTS_MAX})"));
            }
            lower_bounds.push(lower);
            self.lengths.push(Some(length as usize));
        }
        self.dimensions_given = !lower_bounds.is_empty();
        self.frozen = self.dimensions_given;
        if self.dimensions_given {
            if !self.eat(b'=') {
                return Err(self.malformed("Missing \"=\" after array dimensions."));
            }
            self.skip_space();
        }
        if self.rest.first() != Some(&b'{') {
            return Err(self.malformed(if self.dimensions_given {
                "Array contents must start with \"{\"."
            } else {
                "Array value must start with \"{\" or dimension information."
            }));
        }
        Ok(lower_bounds)
    }

    fn contents(&mut self, convert: &mut dyn FnMut(Option<&str>) -> Result<Datum>) -> Result<()> {
        // Elements seen in each open brace.
        let mut open: Vec<usize> = Vec::new();
        let mut delimiter_due = false;
        loop {
            limits::tick()?;
            let token = self.token()?;
            match token {
                Token::Open => {
                    if delimiter_due {
                        return Err(self.unexpected(b'{'));
                    }
                    if open.len() >= DIMENSIONS_MAX {
                        return Err(too_many_dimensions());
                    }
                    open.push(0);
                    if open.len() > self.lengths.len() {
                        if self.frozen {
                            return Err(self.mismatch());
                        }
                        self.lengths.push(None);
                    }
                }
                Token::Close => {
                    let count = open.pop().ok_or_else(|| self.unexpected(b'}'))?;
                    if count > 0 && !delimiter_due {
                        return Err(self.unexpected(b'}'));
                    }
                    match self.lengths[open.len()] {
                        None => self.lengths[open.len()] = Some(count),
                        Some(length) if length != count => return Err(self.mismatch()),
                        Some(_) => {}
                    }
                    delimiter_due = true;
                    match open.last_mut() {
                        Some(outer) => *outer += 1,
                        None => break,
                    }
                }
                Token::Delimiter => {
                    if !delimiter_due {
                        return Err(self.unexpected(self.delimiter));
                    }
                    delimiter_due = false;
                }
                Token::Element(_) | Token::Null => {
                    if delimiter_due {
                        return Err(self.malformed("Unexpected array element."));
                    }
                    if self.elements.len() >= ELEMENTS_MAX {
                        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({ELEMENTS_MAX})"));
                    }
                    self.elements.push(match &token {
                        Token::Element(text) => convert(Some(text))?,
                        _ => convert(None)?,
                    });
                    self.frozen = true;
                    if open.len() != self.lengths.len() {
                        return Err(self.mismatch());
                    }
                    if let Some(count) = open.last_mut() {
                        *count += 1;
                    }
                    delimiter_due = true;
                }
            }
        }
        self.skip_space();
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed("Junk after closing right brace.")) }
    }

    fn token(&mut self) -> Result<Token> {
        self.skip_space();
        match self.rest.first() {
            None => Err(self.ended()),
            Some(b'{') => {
                self.rest = &self.rest[1..];
                Ok(Token::Open)
            }
            Some(b'}') => {
                self.rest = &self.rest[1..];
                Ok(Token::Close)
            }
            Some(b'"') => self.quoted(),
            Some(c) if *c == self.delimiter => {
                self.rest = &self.rest[1..];
                Ok(Token::Delimiter)
            }
            Some(_) => self.bare(),
        }
    }

    fn quoted(&mut self) -> Result<Token> {
        let mut value = Vec::new();
        let mut i = 1;
        loop {
            match self.rest.get(i) {
                None => return Err(self.ended()),
                Some(b'\\') => {
                    value.push(*self.rest.get(i + 1).ok_or_else(|| self.ended())?);
                    i += 2;
                }
                Some(b'"') => break,
                Some(c) => {
                    value.push(*c);
                    i += 1;
                }
            }
        }
        self.rest = &self.rest[i + 1..];
        self.skip_space();
        match self.rest.first() {
            None => Err(self.ended()),
            Some(c) if *c == self.delimiter || matches!(c, b'{' | b'}') => Ok(Token::Element(self.string(value)?)),
            Some(_) => Err(self.malformed("Incorrectly quoted array element.")),
        }
    }

    fn bare(&mut self) -> Result<Token> {
        let mut value = Vec::new();
        // Length without trailing space.
        let mut kept = 0;
        let mut escaped = false;
        let mut i = 0;
        loop {
            match self.rest.get(i) {
                None => return Err(self.ended()),
                Some(b'{') => return Err(self.unexpected(b'{')),
                Some(b'"') => return Err(self.malformed("Incorrectly quoted array element.")),
                Some(b'\\') => {
                    value.push(*self.rest.get(i + 1).ok_or_else(|| self.ended())?);
                    kept = value.len();
                    escaped = true;
                    i += 2;
                }
                Some(c) if *c == self.delimiter || *c == b'}' => break,
                Some(c) => {
                    value.push(*c);
                    if !is_space(*c) {
                        kept = value.len();
                    }
                    i += 1;
                }
            }
        }
        self.rest = &self.rest[i..];
        value.truncate(kept);
        if !escaped && value.eq_ignore_ascii_case(b"null") { Ok(Token::Null) } else { Ok(Token::Element(self.string(value)?)) }
    }

    /// Only ASCII bytes were taken out, so the rest is still UTF-8.
    fn string(&self, bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes).map_err(|_| self.malformed("Invalid character."))
    }
}

pub fn too_many_dimensions() -> DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})")
}

fn output(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let array = value.as_array();
    if array.elements.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    if array.dims.iter().any(|d| d.lower_bound != 1) {
        for d in &array.dims {
            let upper = i64::from(d.lower_bound) + i64::from(d.length) - 1;
            out.extend_from_slice(format!("[{}:{upper}]", d.lower_bound).as_bytes());
        }
        out.push(b'=');
    }
    let delimiter = lookup::array_delimiter(context.session, array.element_type);
    write_level(context, array, delimiter, 0, &mut array.elements.iter(), out)
}

fn write_level(
    context: &TypeContext<'_>,
    array: &Array,
    delimiter: u8,
    level: usize,
    elements: &mut std::slice::Iter<'_, Datum>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for i in 0..array.dims[level].length {
        limits::tick()?;
        if i > 0 {
            out.push(delimiter);
        }
        if level + 1 < array.dims.len() {
            write_level(context, array, delimiter, level + 1, elements, out)?;
            continue;
        }
        match elements.next() {
            None | Some(Datum::Null) => out.extend_from_slice(b"NULL"),
            Some(value) => {
                let start = out.len();
                text_out(context.session, array.element_type, value, out)?;
                limits::check_length(2 * out.len() - start)?;
                quote_element(out, start, delimiter)?;
            }
        }
    }
    out.push(b'}');
    Ok(())
}

/// Quotes the element that `out` holds from `start`, when it needs quotes.
fn quote_element(out: &mut Vec<u8>, start: usize, delimiter: u8) -> Result<()> {
    let text = &out[start..];
    let special = |c: &u8| matches!(c, b'{' | b'}' | b'"' | b'\\') || *c == delimiter || is_space(*c);
    if !text.is_empty() && !text.iter().any(special) && !text.eq_ignore_ascii_case(b"null") {
        return Ok(());
    }
    let text = out.split_off(start);
    append_quoted(&text, Some(b'\\'), out)
}

/// Binary: dimensions, has-nulls flag, element type, (length, lower bound) a dimension, (length, value) an element.
pub fn receive(context: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let mut rest = bytes;
    let mut next = || -> Result<i32> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
        rest = tail;
        Ok(i32::from_be_bytes(*head))
    };
    let dimensions = next()?;
    if dimensions < 0 {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid number of dimensions: {dimensions}"));
    }
    if dimensions as usize > DIMENSIONS_MAX {
        let message = format!("number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "{message}"));
    }
    let flags = next()?;
    if flags != 0 && flags != 1 {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid array flags"));
    }
    let sent_type = Oid(next()? as u32);
    let element_type = element_type(context)?;
    if is_other_type(sent_type, element_type) {
        let name = |ty| lookup::type_name(context.session, ty);
        return Err(err!(
            DATATYPE_MISMATCH,
            "binary data has array element type {} ({}) instead of expected {} ({})",
            sent_type,
            name(sent_type),
            element_type,
            name(element_type)
        ));
    }
    let mut dims = Vec::with_capacity(dimensions as usize);
    for _ in 0..dimensions {
        dims.push(ArrayDim { length: next()?, lower_bound: next()? });
    }
    let count = element_count(&dims)?;
    let mut elements = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        limits::tick()?;
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
        let length = i32::from_be_bytes(*head);
        rest = tail;
        if length == -1 {
            elements.push(check_domain(context.session, element_type, Datum::Null)?);
            continue;
        }
        let (value, tail) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or_else(|| err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message"))?;
        rest = tail;
        let value = binary_in(context.session, element_type, context.typmod, value);
        elements.push(value.map_err(|e| in_part(e, || format!("array element {}", elements.len() + 1)))?);
    }
    if !rest.is_empty() {
        return Err(data_behind());
    }
    if elements.is_empty() {
        dims.clear();
    }
    Ok(Datum::Array(Arc::new(Array { element_type, dims, elements })))
}

/// See `receive`.
pub fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let array = value.as_array();
    let has_nulls = array.elements.iter().any(Datum::is_null);
    out.extend_from_slice(&(array.dims.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_nulls).to_be_bytes());
    out.extend_from_slice(&array.element_type.0.to_be_bytes());
    for d in &array.dims {
        out.extend_from_slice(&d.length.to_be_bytes());
        out.extend_from_slice(&d.lower_bound.to_be_bytes());
    }
    for element in &array.elements {
        limits::tick()?;
        if element.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        binary_out(context.session, array.element_type, element, out)?;
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_fmgr::io::text_of;

    fn read(text: &str) -> Result<Datum> {
        text_in(&crate::testing::session(), oids::TEXT_ARRAY, -1, text)
    }

    #[test]
    fn arrays_print_as_they_were_read() {
        let session = crate::testing::session();
        for text in ["{}", "{a,NULL,\"null\",\"\",\"a b\",\"\\\"\\\\\"}", "{{1,2},{3,4}}", "[0:1]={a,b}", "[2:2][-1:0]={{a,b}}"] {
            let value = read(text).expect(text);
            assert_eq!(text_of(&session, oids::TEXT_ARRAY, &value).expect("output"), text);
            let mut bytes = Vec::new();
            binary_out(&session, oids::TEXT_ARRAY, &value, &mut bytes).expect("send");
            let again = binary_in(&session, oids::TEXT_ARRAY, -1, &bytes).expect("receive");
            assert_eq!(text_of(&session, oids::TEXT_ARRAY, &again).expect("output"), text);
        }
        assert_eq!(text_of(&session, oids::TEXT_ARRAY, &read(" { a , \\ b } ").expect("spaces")).expect("output"), "{a,\" b\"}");
    }

    #[test]
    fn malformed_arrays_give_the_reason() {
        for (text, detail) in [
            ("1,2", "Array value must start with \"{\" or dimension information."),
            ("{1,2", "Unexpected end of input."),
            ("{{1},{2,3}}", "Multidimensional arrays must have sub-arrays with matching dimensions."),
            ("{1}x", "Junk after closing right brace."),
            ("{1,,2}", "Unexpected \",\" character."),
            ("{\"1\"x}", "Incorrectly quoted array element."),
            ("[1:3]={1,2}", "Specified array dimensions do not match array contents."),
            ("[1:]={1}", "Missing array dimension value."),
        ] {
            let e = read(text).expect_err(text);
            assert_eq!(e.fields().detail.as_deref(), Some(detail), "{text}");
        }
    }
}
