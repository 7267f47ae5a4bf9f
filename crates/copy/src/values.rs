//! Values of input columns. Those of the usual types of bulk loads are read here when they are written in the plainest way; the type's own
//! input function has all others, and the errors.

use std::ops::Range;
use std::sync::Arc;

use melba_encoding::utf8;
use melba_fmgr::{Session, io};
use melba_types::datetime::calendar::days_of_month;
use melba_types::datetime::{
    EPOCH_JULIAN, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, julian_of_date,
};
use melba_types::numeric::SMALL_SCALE_MAX;
use melba_types::numeric::convert::precision_and_scale;
use melba_types::{ByteStrings, Column, ColumnData, Datum, Mantissas, Numeric, Oid, Result, oids};

/// A column that the input has.
pub struct InputColumn {
    /// Position in the table.
    pub at: usize,
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
}

impl InputColumn {
    /// The length that values of char(n) are filled up to.
    pub fn padded_to(&self) -> Option<usize> {
        (self.ty == oids::BPCHAR && self.typmod > TYPMOD_HEADER).then(|| (self.typmod - TYPMOD_HEADER) as usize)
    }
}

/// Decimal digits that fit a word, whatever they are.
const WORD_DIGITS: usize = 18;
/// What the typmod of a string is more than its length.
const TYPMOD_HEADER: i32 = 4;

/// Appends fields, parts of the input, to their column, up to the first that the type does not take; how many.
pub(super) fn push_fields(
    session: &dyn Session,
    source: &InputColumn,
    rows: usize,
    input: &[u8],
    part: impl Fn(usize) -> Option<Range<usize>>,
    column: &mut Column,
) -> usize {
    let field = |row| part(row).map(|part| &input[part]);
    // As long as no value is null, nothing is checked twice.
    let mut row = match (&mut column.data, source.ty) {
        _ if column.validity.is_some() => 0,
        (ColumnData::Text(values), oids::TEXT | oids::VARCHAR) => {
            let longest = match source.ty == oids::TEXT || source.typmod < TYPMOD_HEADER {
                true => usize::MAX,
                false => (source.typmod - TYPMOD_HEADER) as usize,
            };
            // No string has more characters than bytes.
            values.push_parts(input, (0..rows).map_while(&part).take_while(|part| part.len() <= longest))
        }
        (ColumnData::Text(values), oids::BPCHAR) if let Some(length) = source.padded_to() => {
            push_padded(values, length, (0..rows).map_while(field))
        }
        (ColumnData::Int2(values), oids::INT2) => {
            push_words(values, (0..rows).map_while(field), |bytes| integer(bytes, 4).map(|v| v as i16))
        }
        (ColumnData::Int4(values), oids::INT4) => {
            push_words(values, (0..rows).map_while(field), |bytes| integer(bytes, 9).map(|v| v as i32))
        }
        (ColumnData::Int8(values), oids::INT8) => {
            push_words(values, (0..rows).map_while(field), |bytes| integer(bytes, WORD_DIGITS))
        }
        (ColumnData::Int4(values), oids::DATE) => push_words(values, (0..rows).map_while(field), date),
        (ColumnData::Int8(values), oids::TIMESTAMP) if source.typmod < 0 => {
            push_words(values, (0..rows).map_while(field), timestamp)
        }
        (ColumnData::Numeric(values), oids::NUMERIC) => push_decimals(values, source.typmod, (0..rows).map_while(field)),
        _ => 0,
    };
    while row < rows {
        match field(row) {
            None => column.push_null(),
            Some(bytes) if push_value(session, source, bytes, column).is_err() => break,
            Some(_) => {}
        }
        row += 1;
    }
    row
}

/// Appends a value, which is UTF-8, to its column.
#[inline]
pub fn push_value(session: &dyn Session, source: &InputColumn, bytes: &[u8], column: &mut Column) -> Result<()> {
    let value = match source.ty {
        oids::TEXT => {
            if column.push_encoded(melba_types::Kind::Text, bytes) {
                return Ok(());
            }
            None
        }
        oids::INT4 => integer(bytes, 9).map(|v| Datum::Int4(v as i32)),
        oids::INT8 => integer(bytes, WORD_DIGITS).map(Datum::Int8),
        oids::DATE => date(bytes).map(Datum::Int4),
        oids::TIMESTAMP if source.typmod < 0 => timestamp(bytes).map(Datum::Int8),
        oids::NUMERIC => {
            decimal(bytes, source.typmod).map(|(mantissa, scale)| Datum::Numeric(Numeric::from_parts(mantissa.into(), scale)))
        }
        _ => None,
    };
    match value {
        Some(value) => column.push(value),
        None => column.push(io::text_in(session, source.ty, source.typmod, utf8(bytes)?)?),
    }
    Ok(())
}

/// Appends values up to the first that `parse` does not take; how many.
fn push_words<'a, T>(values: &mut Vec<T>, fields: impl Iterator<Item = &'a [u8]>, parse: impl Fn(&[u8]) -> Option<T>) -> usize {
    let before = values.len();
    values.extend(fields.map_while(parse));
    values.len() - before
}

/// The same of numerics that have one scale.
fn push_decimals<'a>(values: &mut Mantissas, typmod: i32, fields: impl Iterator<Item = &'a [u8]>) -> usize {
    let before = values.values.len();
    for bytes in fields {
        match decimal(bytes, typmod) {
            Some((mantissa, scale)) if values.values.is_empty() || scale == values.scale => {
                values.scale = scale;
                values.values.push(mantissa);
            }
            _ => break,
        }
    }
    values.values.len() - before
}

/// The same of strings that are filled up with blanks to some number of characters.
fn push_padded<'a>(values: &mut ByteStrings, length: usize, fields: impl Iterator<Item = &'a [u8]>) -> usize {
    let before = values.len();
    for bytes in fields.take_while(|bytes| bytes.len() <= length && bytes.is_ascii()) {
        values.bytes.extend_from_slice(bytes);
        values.bytes.resize(values.bytes.len() + length - bytes.len(), b' ');
        values.ends.push(values.bytes.len() as u32);
    }
    values.len() - before
}

/// A number of decimal digits and nothing else.
#[inline]
fn digits(bytes: &[u8]) -> Option<i64> {
    let mut value = 0;
    for c in bytes {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

/// A sign, and what is behind it.
#[inline]
fn signed(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    }
}

/// A decimal integer of at most `digits_max` digits and nothing else.
#[inline]
fn integer(bytes: &[u8], digits_max: usize) -> Option<i64> {
    let (is_negative, rest) = signed(bytes);
    if rest.is_empty() || rest.len() > digits_max {
        return None;
    }
    let value = digits(rest)?;
    Some(if is_negative { -value } else { value })
}

/// A decimal number with digits on both sides of its point, if it has one, which neither has to be rounded nor is too large: its mantissa
/// and scale as a numeric of this typmod.
fn decimal(bytes: &[u8], typmod: i32) -> Option<(i64, u16)> {
    let (is_negative, rest) = signed(bytes);
    if rest.len() > WORD_DIGITS {
        return None;
    }
    let (whole, fraction) = match memchr::memchr(b'.', rest) {
        Some(at) if at + 1 < rest.len() => (&rest[..at], &rest[at + 1..]),
        Some(_) => return None,
        None => (rest, &b""[..]),
    };
    if whole.is_empty() {
        return None;
    }
    let (digits_max, scale) = match precision_and_scale(typmod) {
        Some((precision, scale)) => (usize::try_from(precision - scale).ok()?, u16::try_from(scale).ok()?),
        None => (WORD_DIGITS, fraction.len() as u16),
    };
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    if whole.len() > digits_max || whole.len() + usize::from(scale) > WORD_DIGITS || scale > SMALL_SCALE_MAX {
        return None;
    }
    let power = 10_i64.pow((fraction.len() + missing) as u32);
    let mantissa = digits(whole)? * power + digits(fraction)? * 10_i64.pow(missing as u32);
    Some((if is_negative { -mantissa } else { mantissa }, scale))
}

/// A date as YYYY-MM-DD, which every DateStyle reads in the same way: days since 2000-01-01.
fn date(bytes: &[u8]) -> Option<i32> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *bytes else { return None };
    let year = digits(&[y0, y1, y2, y3])? as i32;
    let (month, day) = (digits(&[m0, m1])? as i32, digits(&[d0, d1])? as i32);
    let is_date = year > 0 && (1..=12).contains(&month) && day > 0 && day <= days_of_month(year, month);
    is_date.then(|| julian_of_date(year, month, day) - EPOCH_JULIAN)
}

/// YYYY-MM-DD HH:MM:SS, with at most six digits of a second's fraction: microseconds since 2000-01-01.
fn timestamp(bytes: &[u8]) -> Option<i64> {
    let (day, rest) = bytes.split_at_checked(10)?;
    let (time, fraction) = rest.split_at_checked(9)?;
    let [b' ', h0, h1, b':', m0, m1, b':', s0, s1] = *time else { return None };
    let (hour, minute, second) = (digits(&[h0, h1])?, digits(&[m0, m1])?, digits(&[s0, s1])?);
    let micros = match fraction {
        [] => 0,
        [b'.', fraction @ ..] if (1..=6).contains(&fraction.len()) => digits(fraction)? * 10_i64.pow(6 - fraction.len() as u32),
        _ => return None,
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let time = hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND + micros;
    Some(i64::from(date(day)?) * MICROS_PER_DAY + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_digits_only() {
        assert_eq!((integer(b"-120", 4), integer(b"0", 4)), (Some(-120), Some(0)));
        for text in ["", "-", "+1", "1 ", "12345", "1x", "--1"] {
            assert_eq!(integer(text.as_bytes(), 4), None, "{text}");
        }
    }

    #[test]
    fn decimals_have_the_scale_of_their_type() {
        let money = melba_types::numeric::convert::typmod(6, 2);
        let read = |text: &str, typmod| decimal(text.as_bytes(), typmod);
        assert_eq!(read("12.5", money), Some((1250, 2)));
        assert_eq!(read("-0.05", money), Some((-5, 2)));
        assert_eq!(read("9999", money), Some((999_900, 2)));
        // To be rounded, too large, or in another form.
        for text in ["1.005", "10000", "", ".5", "5.", "-", "NaN", "1e3", "1_0", " 1", "1.2.3", "0xff"] {
            assert_eq!(read(text, money), None, "{text}");
        }
        assert_eq!((read("1.50", -1), read("7", -1)), (Some((150, 2)), Some((7, 0))));
        assert_eq!(read("12345678901234567890", -1), None);
        assert_eq!(read("123456789012345678", -1), Some((123_456_789_012_345_678, 0)));
    }

    #[test]
    fn dates_and_timestamps_are_of_the_calendar() {
        assert_eq!((date(b"2000-01-01"), date(b"1999-12-31"), date(b"2024-02-29")), (Some(0), Some(-1), Some(8825)));
        for text in [
            "2023-02-29",
            "0000-01-01",
            "2000-13-01",
            "2000-00-10",
            "2000-01-00",
            "2000-1-01",
            "01-01-2000",
            "2000-01-01 ",
            "infinity",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
        assert_eq!(timestamp(b"2000-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(timestamp(b"1999-12-31 23:59:59"), Some(-1_000_000));
        for text in [
            "2000-01-01",
            "2000-01-01T00:00:00",
            "2000-01-01 24:00:00",
            "2000-01-01 00:00:60",
            "2000-01-01 00:00:00+01",
            "2000-01-01 00:00:00.1234567",
        ] {
            assert_eq!(timestamp(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn only_columns_of_a_length_are_filled_up() {
        let column = |ty, typmod| InputColumn { at: 0, name: "c".into(), ty, typmod }.padded_to();
        assert_eq!((column(oids::BPCHAR, 7), column(oids::BPCHAR, -1), column(oids::VARCHAR, 7)), (Some(3), None, None));
    }

    #[test]
    fn strings_are_filled_up() {
        let mut values = ByteStrings::default();
        assert_eq!(push_padded(&mut values, 3, [&b"ab"[..], b"abc", "\u{e9}".as_bytes(), b"x"].into_iter()), 2);
        assert_eq!((values.get(0), values.get(1)), (&b"ab "[..], &b"abc"[..]));
    }
}
