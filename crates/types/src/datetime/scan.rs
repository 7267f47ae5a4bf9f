//! Splits date, time and interval text into fields, by the shape of each field alone.

use super::keywords;
use super::parse::DateTimeError;

/// More fields than any date, time or interval has.
const FIELDS_MAX: usize = 25;

/// The shape of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Digits, perhaps with a decimal point.
    Number,
    /// Digits or text with two delimiters; also zone names with punctuation.
    Date,
    /// Digits and colons.
    Time,
    Word,
    /// A sign, then letters.
    SignedWord,
    /// A sign, then digits: a zone offset or a signed number.
    Signed,
}

#[derive(Clone, Debug)]
pub(crate) struct DateTimeField {
    pub shape: Shape,
    /// Letters in lower case.
    pub text: String,
}

pub(crate) fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t'..=b'\r')
}

/// The fields of `text`; `length_max` bounds their total length.
pub(crate) fn scan(text: &str, length_max: usize) -> Result<Vec<DateTimeField>, DateTimeError> {
    let mut scanner = Scanner { rest: text.as_bytes(), text: String::new(), length_max };
    let mut fields = Vec::new();
    let mut total = 0;
    while let Some(&c) = scanner.rest.first() {
        if is_space(c) || (c.is_ascii_punctuation() && !matches!(c, b'.' | b'+' | b'-')) {
            scanner.rest = &scanner.rest[1..];
            continue;
        }
        if fields.len() >= FIELDS_MAX {
            return Err(DateTimeError::BadFormat);
        }
        let shape = scanner.field(c)?;
        let text = std::mem::take(&mut scanner.text);
        total += text.len() + 1;
        if total > length_max {
            return Err(DateTimeError::BadFormat);
        }
        fields.push(DateTimeField { shape, text });
    }
    Ok(fields)
}

struct Scanner<'a> {
    rest: &'a [u8],
    text: String,
    /// A field that is longer is read no further.
    length_max: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn take(&mut self) {
        self.text.push(self.peek().to_ascii_lowercase() as char);
        self.rest = &self.rest[1..];
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) {
        while !self.rest.is_empty() && self.text.len() <= self.length_max && accept(self.peek()) {
            self.take();
        }
    }

    fn field(&mut self, first: u8) -> Result<Shape, DateTimeError> {
        match first {
            b'0'..=b'9' => Ok(self.number()),
            b'.' => {
                self.take();
                self.take_while(|c| c.is_ascii_digit());
                Ok(Shape::Number)
            }
            b'+' | b'-' => self.signed(),
            _ if first.is_ascii_alphabetic() => Ok(self.word()),
            _ => Err(DateTimeError::BadFormat),
        }
    }

    fn number(&mut self) -> Shape {
        self.take_while(|c| c.is_ascii_digit());
        match self.peek() {
            b':' => {
                self.take_while(|c| c.is_ascii_digit() || c == b':' || c == b'.');
                Shape::Time
            }
            delimiter @ (b'-' | b'/' | b'.') => {
                self.take();
                if !self.peek().is_ascii_digit() {
                    // A month may be spelled out.
                    self.take_while(|c| c.is_ascii_alphanumeric() || c == delimiter);
                    return Shape::Date;
                }
                self.take_while(|c| c.is_ascii_digit());
                if self.peek() == delimiter {
                    self.take_while(|c| c.is_ascii_digit() || c == delimiter);
                    return Shape::Date;
                }
                if delimiter == b'.' { Shape::Number } else { Shape::Date }
            }
            _ => Shape::Number,
        }
    }

    fn word(&mut self) -> Shape {
        self.take_while(|c| c.is_ascii_alphabetic());
        // A date with a leading month, or a zone name; but "j2451545" or "t040506" are a keyword and a number.
        let goes_on = match self.peek() {
            b'-' | b'/' | b'.' => true,
            b'+' | b'0'..=b'9' => keywords::date_keyword(&self.text).is_none(),
            _ => false,
        };
        if !goes_on {
            return Shape::Word;
        }
        self.take();
        self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'/' | b'_' | b'.' | b':'));
        Shape::Date
    }

    fn signed(&mut self) -> Result<Shape, DateTimeError> {
        self.take();
        while is_space(self.peek()) {
            self.rest = &self.rest[1..];
        }
        let c = self.peek();
        if c.is_ascii_digit() {
            self.take_while(|c| c.is_ascii_digit() || matches!(c, b':' | b'.' | b'-'));
            Ok(Shape::Signed)
        } else if c.is_ascii_alphabetic() {
            self.take_while(|c| c.is_ascii_alphabetic());
            Ok(Shape::SignedWord)
        } else {
            Err(DateTimeError::BadFormat)
        }
    }
}

/// A decimal integer at the start of `text` (white space and a sign allowed) and the rest. No digits: 0 and all of `text`.
/// `None`: too large for 64 bits.
pub(crate) fn leading_integer(text: &str) -> (Option<i64>, &str) {
    let bytes = text.as_bytes();
    let mut at = bytes.iter().take_while(|c| is_space(**c)).count();
    let negative = bytes.get(at) == Some(&b'-');
    if matches!(bytes.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let digits = bytes[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return (Some(0), text);
    }
    let value = bytes[at..at + digits].iter().try_fold(0i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        let tens = value.checked_mul(10)?;
        if negative { tens.checked_sub(digit) } else { tens.checked_add(digit) }
    });
    (value, &text[at + digits..])
}

/// As `leading_integer`, for 32 bits.
pub(crate) fn leading_int(text: &str) -> (Option<i32>, &str) {
    let (value, rest) = leading_integer(text);
    (value.and_then(|v| i32::try_from(v).ok()), rest)
}

/// The value of `.ddd`, a fraction that ends with the text.
pub(crate) fn fraction(text: &str) -> Result<f64, DateTimeError> {
    let digits = text.strip_prefix('.').ok_or(DateTimeError::BadFormat)?;
    if digits.is_empty() {
        return Ok(0.0);
    }
    if !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(DateTimeError::BadFormat);
    }
    format!("0.{digits}").parse().map_err(|_| DateTimeError::BadFormat)
}

/// As `fraction`, of a second, in microseconds.
pub(crate) fn fraction_micros(text: &str) -> Result<i32, DateTimeError> {
    Ok((fraction(text)? * 1_000_000.0).round_ties_even() as i32)
}

/// The parts of `hh:mm[:ss[.ffffff]]`.
pub(crate) struct Clock {
    pub hour: i64,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

/// Reads a time with colons. `minutes_first`: two parts are minutes and seconds.
pub(crate) fn parse_clock(text: &str, minutes_first: bool) -> Result<Clock, DateTimeError> {
    let overflow = DateTimeError::FieldOverflow;
    let (hour, rest) = leading_integer(text);
    let mut hour = hour.ok_or(overflow.clone())?;
    let rest = rest.strip_prefix(':').ok_or(DateTimeError::BadFormat)?;
    let (minute, rest) = leading_int(rest);
    let mut minute = minute.ok_or(overflow.clone())?;
    let mut second = 0;
    let mut micros = 0;
    let mut shift = rest.is_empty() && minutes_first;
    if rest.starts_with('.') {
        micros = fraction_micros(rest)?;
        shift = true;
    } else if let Some(rest) = rest.strip_prefix(':') {
        let (value, rest) = leading_int(rest);
        second = value.ok_or(overflow.clone())?;
        if rest.starts_with('.') {
            micros = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            return Err(DateTimeError::BadFormat);
        }
    } else if !rest.is_empty() {
        return Err(DateTimeError::BadFormat);
    }
    if shift {
        second = minute;
        minute = i32::try_from(hour).map_err(|_| overflow.clone())?;
        hour = 0;
    }
    if hour < 0 || !(0..60).contains(&minute) || !(0..=60).contains(&second) || !(0..=1_000_000).contains(&micros) {
        return Err(overflow);
    }
    Ok(Clock { hour, minute, second, micros })
}
