//! Values of a file as columns of the types next to the file's.

use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};

use melba_types::datetime::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, UNIX_EPOCH_DATE,
    UNIX_EPOCH_MICROS, is_valid_date, is_valid_timestamp,
};
use melba_types::{ByteStrings, Column, ColumnData, Datum, DbError, Interval, Kind, Mantissas, Numeric, bail, err, limits};

use crate::file_type::{FileType, TimeResolution};

/// Julian day of 1970-01-01.
const UNIX_EPOCH_JULIAN: i64 = 2_440_588;
/// Scale up to which words are numerics.
const WORD_DIGITS_MAX: i32 = 18;

/// Values as the decoder reads them, without nulls.
pub(crate) enum Raw {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// The row of a value, and what is wrong with it.
pub(crate) type RowError = (usize, DbError);

type Result<T, E = RowError> = std::result::Result<T, E>;

/// A column of `FileType::natural`, without nulls.
pub(crate) fn natural(ty: FileType, raw: Raw) -> Result<Column> {
    let data = match (ty, raw) {
        (FileType::Bool, Raw::Bool(v)) => ColumnData::Bool(v),
        (FileType::Unknown, Raw::Int32(_)) => ColumnData::Text(ByteStrings::default()),
        (FileType::Integer { bits, signed }, Raw::Int32(v)) => integers(bits, signed, v),
        (FileType::Integer { signed: true, .. }, Raw::Int64(v)) => ColumnData::Int8(v),
        (FileType::Integer { .. }, Raw::Int64(v)) => {
            ColumnData::Datum(v.into_iter().map(|v| Datum::Numeric(Numeric::from(v as u64))).collect())
        }
        (FileType::Decimal { precision, scale }, Raw::Int32(v)) => {
            words(v.into_iter().map(i64::from).collect(), precision, scale)?
        }
        (FileType::Decimal { precision, scale }, Raw::Int64(v)) => words(v, precision, scale)?,
        (FileType::Decimal { precision, scale }, Raw::Bytes(v)) => decimals(v.iter().map(ByteArray::data), precision, scale)?,
        (FileType::Decimal { precision, scale }, Raw::Fixed(v)) => decimals(v.iter().map(|v| v.data()), precision, scale)?,
        (FileType::Float4, Raw::Float(v)) => ColumnData::Float4(v),
        (FileType::Float8, Raw::Double(v)) => ColumnData::Float8(v),
        (FileType::Float16, Raw::Fixed(v)) => {
            ColumnData::Float4(each(v.iter(), |v| half(v.data()).ok_or_else(|| invalid("a float of 16 bits")))?)
        }
        (FileType::Date, Raw::Int32(v)) => ColumnData::Int4(each(v.into_iter(), date)?),
        (FileType::Time(unit), Raw::Int32(v)) => ColumnData::Int8(each(v.into_iter(), |v| time(i64::from(v), unit))?),
        (FileType::Time(unit), Raw::Int64(v)) => ColumnData::Int8(each(v.into_iter(), |v| time(v, unit))?),
        (FileType::Timestamp { unit, .. }, Raw::Int64(v)) => ColumnData::Int8(each(v.into_iter(), |v| timestamp(v, unit))?),
        (FileType::Int96, Raw::Int96(v)) => ColumnData::Int8(each(v.iter(), int96)?),
        (FileType::Interval, Raw::Fixed(v)) => ColumnData::Datum(each(v.iter(), |v| interval(v.data()))?),
        (FileType::Uuid, Raw::Fixed(v)) => {
            let uuid = |v: &FixedLenByteArray| v.data().try_into().map(Datum::Uuid).map_err(|_| invalid("a UUID"));
            ColumnData::Datum(each(v.iter(), uuid)?)
        }
        (FileType::Text | FileType::Json, Raw::Bytes(v)) => {
            let strings = strings(v.iter().map(ByteArray::data))?;
            check_text(&strings)?;
            ColumnData::Text(strings)
        }
        (FileType::Bytes, Raw::Bytes(v)) => ColumnData::Bytes(strings(v.iter().map(ByteArray::data))?),
        (FileType::Bytes, Raw::Fixed(v)) => ColumnData::Bytes(strings(v.iter().map(|v| v.data()))?),
        _ => return Err((0, err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file: values do not have their column's type"))),
    };
    Ok(Column::new(data))
}

fn each<T, U>(values: impl Iterator<Item = T>, map: impl Fn(T) -> Result<U, DbError>) -> Result<Vec<U>> {
    values.enumerate().map(|(row, value)| map(value).map_err(|e| (row, e))).collect()
}

fn invalid(what: &str) -> DbError {
    err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file: a value is not {what}")
}

fn integers(bits: u8, signed: bool, values: Vec<i32>) -> ColumnData {
    match (bits, signed) {
        (8, true) => ColumnData::Int2(values.into_iter().map(|v| i16::from(v as i8)).collect()),
        (16, true) => ColumnData::Int2(values.into_iter().map(|v| v as i16).collect()),
        (8, false) => ColumnData::Int2(values.into_iter().map(|v| i16::from(v as u8)).collect()),
        (16, false) => ColumnData::Int4(values.into_iter().map(|v| i32::from(v as u16)).collect()),
        (32, false) => ColumnData::Int8(values.into_iter().map(|v| i64::from(v as u32)).collect()),
        _ => ColumnData::Int4(values),
    }
}

fn words(values: Vec<i64>, precision: i32, scale: i32) -> Result<ColumnData> {
    let fits = precision <= WORD_DIGITS_MAX;
    let limit = u32::try_from(precision).ok().and_then(|digits| 10_u64.checked_pow(digits));
    if let Some(limit) = limit
        && let Some(row) = values.iter().position(|value| value.unsigned_abs() >= limit)
    {
        return Err((row, too_many_digits(precision)));
    }
    let scale = u16::try_from(scale).unwrap_or(0);
    Ok(match Mantissas::new(Vec::new(), scale) {
        Some(_) if fits => ColumnData::Numeric(Mantissas { values, scale }),
        _ => ColumnData::Datum(values.into_iter().map(|v| Datum::Numeric(Numeric::from_parts(i128::from(v), scale))).collect()),
    })
}

fn too_many_digits(precision: i32) -> DbError {
    err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file: a decimal has more than {precision} digits")
}

/// Whole numbers of any length, highest byte first.
fn decimals<'a>(values: impl Iterator<Item = &'a [u8]>, precision: i32, scale: i32) -> Result<ColumnData> {
    // Two digits have less than a byte; the first byte may be the sign only.
    let bytes_max = usize::try_from(precision).unwrap_or(0) / 2 + 2;
    let scale = u16::try_from(scale).map_err(|_| (0, invalid("a decimal")))?;
    let decimal = |bytes: &[u8]| {
        let bytes = without_sign(bytes);
        if bytes.len() > bytes_max {
            return Err(too_many_digits(precision));
        }
        if bytes.len() <= 16 {
            let negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
            let mut all = [if negative { 0xff } else { 0 }; 16];
            all[16 - bytes.len()..].copy_from_slice(bytes);
            let number = i128::from_be_bytes(all);
            let limit = u32::try_from(precision).ok().and_then(|digits| 10_u128.checked_pow(digits));
            if limit.is_some_and(|limit| number.unsigned_abs() >= limit) {
                return Err(too_many_digits(precision));
            }
            return Ok(Datum::Numeric(Numeric::from_parts(number, scale)));
        }
        let number = num_bigint::BigInt::from_signed_bytes_be(bytes);
        if number.magnitude().to_string().len() > usize::try_from(precision).unwrap_or(0) {
            return Err(too_many_digits(precision));
        }
        Numeric::parse(&format!("{number}e-{scale}")).map(Datum::Numeric)
    };
    let mut column = Column::with_capacity(Kind::Numeric, 0);
    if let Some(empty) = Mantissas::new(Vec::new(), scale) {
        column.data = ColumnData::Numeric(empty);
    }
    for (row, bytes) in values.enumerate() {
        column.push(decimal(bytes).map_err(|e| (row, e))?);
    }
    Ok(column.data)
}

/// A number without bytes that only repeat its sign.
fn without_sign(mut bytes: &[u8]) -> &[u8] {
    while let [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..] = bytes {
        bytes = &bytes[1..];
    }
    bytes
}

fn half(bytes: &[u8]) -> Option<f32> {
    let bits = u16::from_le_bytes(bytes.try_into().ok()?);
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    Some(match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    })
}

fn date(days: i32) -> Result<i32, DbError> {
    match days {
        i32::MAX => Ok(DATE_INFINITY),
        i32::MIN => Ok(DATE_NEGATIVE_INFINITY),
        days if days == -i32::MAX => Ok(DATE_NEGATIVE_INFINITY),
        days => match days.checked_add(UNIX_EPOCH_DATE).filter(|date| is_valid_date(*date)) {
            Some(date) => Ok(date),
            None => Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range")),
        },
    }
}

/// Microseconds of a number of parts of a second; nanoseconds are rounded to the nearest.
fn micros(value: i64, unit: TimeResolution) -> Option<i64> {
    match unit {
        TimeResolution::Millis => value.checked_mul(1000),
        TimeResolution::Micros => Some(value),
        TimeResolution::Nanos => Some(value.div_euclid(1000) + i64::from(value.rem_euclid(1000) >= 500)),
    }
}

fn time(value: i64, unit: TimeResolution) -> Result<i64, DbError> {
    match micros(value, unit).filter(|micros| (0..=MICROS_PER_DAY).contains(micros)) {
        Some(micros) => Ok(micros),
        None => Err(err!(DATETIME_FIELD_OVERFLOW, "time out of range")),
    }
}

fn timestamp(value: i64, unit: TimeResolution) -> Result<i64, DbError> {
    match value {
        i64::MAX => return Ok(TIMESTAMP_INFINITY),
        i64::MIN => return Ok(TIMESTAMP_NEGATIVE_INFINITY),
        value if value == -i64::MAX => return Ok(TIMESTAMP_NEGATIVE_INFINITY),
        _ => {}
    }
    let timestamp = micros(value, unit).and_then(|micros| micros.checked_add(UNIX_EPOCH_MICROS));
    timestamp.filter(|t| is_valid_timestamp(*t)).ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

fn int96(value: &Int96) -> Result<i64, DbError> {
    let [low, high, day] = value.data() else { bail!(BAD_COPY_FILE_FORMAT, "invalid Parquet file") };
    let nanos = (u64::from(*high) << 32 | u64::from(*low)) as i64;
    let micros = micros(nanos, TimeResolution::Nanos);
    let day = (i64::from(*day as i32) - UNIX_EPOCH_JULIAN).checked_mul(MICROS_PER_DAY);
    let timestamp = day.and_then(|day| day.checked_add(micros?)).and_then(|unix| unix.checked_add(UNIX_EPOCH_MICROS));
    timestamp.filter(|t| is_valid_timestamp(*t)).ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

fn interval(bytes: &[u8]) -> Result<Datum, DbError> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (Some(months), Some(days), Some(millis)) = (word(0), word(4), word(8)) else { return Err(invalid("an interval")) };
    // Writers that know negative ones store them so.
    let (months, days) = (months as i32, days as i32);
    Ok(Datum::Interval(Interval { months, days, micros: i64::from(millis) * 1000 }))
}

fn strings<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Result<ByteStrings> {
    let bytes = values.clone().map(<[u8]>::len).sum();
    // Batches are smaller, unless a single row is as long.
    limits::check_request(bytes).map_err(|e| (0, e))?;
    let mut out = ByteStrings::default();
    out.bytes.reserve_exact(bytes);
    values.for_each(|value| out.push(value));
    Ok(out)
}

/// Texts are UTF-8 without zero bytes.
fn check_text(strings: &ByteStrings) -> Result<()> {
    let wrong = |bytes: &[u8]| std::str::from_utf8(bytes).is_err() || bytes.contains(&0);
    // All at once first: hardly any file has a wrong one. The ends must be between characters, too.
    let is_right = std::str::from_utf8(&strings.bytes)
        .is_ok_and(|text| !strings.bytes.contains(&0) && strings.ends.iter().all(|end| text.is_char_boundary(*end as usize)));
    if is_right {
        return Ok(());
    }
    match (0..strings.len()).find(|row| wrong(strings.get(*row))) {
        Some(row) => Err((row, err!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\""))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_floats() {
        let float = |bits: u16| half(&bits.to_le_bytes()).unwrap();
        assert_eq!([0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00].map(float), [1.0, -2.0, 5.960_464_5e-8, 65504.0, f32::NEG_INFINITY]);
        assert!(float(0x7e00).is_nan() && half(&[1]).is_none());
    }

    #[test]
    fn decimals_have_the_digits_of_their_precision() {
        let of = |bytes: &[u8], precision| {
            decimals([bytes].into_iter(), precision, 0).map_err(|(_, e)| e.sqlstate().as_str().to_owned())
        };
        assert!(of(&[0x63], 2).is_ok() && of(&[0x9d], 2).is_ok() && of(&[&[0; 40][..], &[0x63]].concat(), 2).is_ok());
        let refused = Err("22P04".to_owned());
        assert_eq!((of(&[0x64], 2).map(|_| ()), of(&[0x9c], 2).map(|_| ())), (refused.clone(), refused.clone()));
        assert_eq!(of(&[&[1][..], &[0; 1 << 20]].concat(), 38).map(|_| ()), refused);
        assert!(words(vec![99, -99], 2, 0).is_ok() && words(vec![0, 100], 2, 0).is_err_and(|(row, _)| row == 1));
    }

    #[test]
    fn times_of_all_units_are_microseconds() {
        assert_eq!(timestamp(0, TimeResolution::Millis).unwrap(), UNIX_EPOCH_MICROS);
        assert_eq!(timestamp(-1_500, TimeResolution::Nanos).unwrap(), UNIX_EPOCH_MICROS - 1);
        assert_eq!(timestamp(-1_501, TimeResolution::Nanos).unwrap(), UNIX_EPOCH_MICROS - 2);
        assert!(timestamp(i64::MAX - 1, TimeResolution::Millis).is_err() && time(-1, TimeResolution::Micros).is_err());
        let mut value = Int96::new();
        value.set_data(1_000, 0, UNIX_EPOCH_JULIAN as u32 + 1);
        assert_eq!(int96(&value).unwrap(), UNIX_EPOCH_MICROS + MICROS_PER_DAY + 1);
        value.set_data(u32::MAX, u32::MAX, u32::MAX);
        assert!(int96(&value).is_err());
    }
}
