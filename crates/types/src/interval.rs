//! Intervals: reading, printing, comparing and computing with months, days and microseconds.
//!
//! The infinities are intervals whose three fields are all the largest, or all the smallest, value.

use std::cmp::Ordering;

use crate::datetime::keywords::{DateKeyword, IntervalKeyword, Unit, date_keyword, interval_keyword};
use crate::datetime::scan::{DateTimeField, Shape, fraction, leading_int, leading_integer, parse_clock, scan};
use crate::datetime::{
    DateTimeError, IntervalStyle, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, round_micros,
};
use crate::{DbError, Interval, Result, err};

/// Longest interval text, separators included.
const LENGTH_MAX: usize = 256;
const DAYS_PER_MONTH: i32 = 30;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// The bits of a type modifier's field range (INTERVAL YEAR TO MONTH and the like).
pub mod range {
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    pub const FULL: i32 = 0x7fff;
}

mod print;

pub use print::write;

pub fn out_of_range() -> DbError {
    err!(DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// Makes the signs of days and time equal.
fn borrow_day(days: &mut i32, micros: &mut i64) {
    if *days > 0 && *micros < 0 {
        *micros += MICROS_PER_DAY;
        *days -= 1;
    } else if *days < 0 && *micros > 0 {
        *micros -= MICROS_PER_DAY;
        *days += 1;
    }
}

/// Makes the signs of months and days equal; that of no days is the time's.
fn borrow_month(months: &mut i32, days: &mut i32, micros: i64) {
    if *months > 0 && (*days < 0 || (*days == 0 && micros < 0)) {
        *days += DAYS_PER_MONTH;
        *months -= 1;
    } else if *months < 0 && (*days > 0 || (*days == 0 && micros > 0)) {
        *days -= DAYS_PER_MONTH;
        *months += 1;
    }
}

impl Interval {
    pub const ZERO: Interval = Interval { months: 0, days: 0, micros: 0 };
    pub const INFINITY: Interval = Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX };
    pub const NEGATIVE_INFINITY: Interval = Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN };

    pub fn is_finite(&self) -> bool {
        *self != Interval::INFINITY && *self != Interval::NEGATIVE_INFINITY
    }

    /// The interval as microseconds, with months of 30 days and days of 24 hours, as for comparison.
    pub fn span(&self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    pub fn compare(&self, other: &Interval) -> Ordering {
        self.span().cmp(&other.span())
    }

    fn finite(self) -> Result<Interval> {
        if self.is_finite() { Ok(self) } else { Err(out_of_range()) }
    }

    pub fn checked_neg(&self) -> Result<Interval> {
        match *self {
            Interval::INFINITY => Ok(Interval::NEGATIVE_INFINITY),
            Interval::NEGATIVE_INFINITY => Ok(Interval::INFINITY),
            Interval { months, days, micros } => {
                let negate =
                    || Some(Interval { months: months.checked_neg()?, days: days.checked_neg()?, micros: micros.checked_neg()? });
                negate().ok_or_else(out_of_range)?.finite()
            }
        }
    }

    pub fn checked_add(&self, other: &Interval) -> Result<Interval> {
        match (self.is_finite(), other.is_finite()) {
            (true, true) => {}
            (false, false) if self != other => return Err(out_of_range()),
            (false, _) => return Ok(*self),
            (true, false) => return Ok(*other),
        }
        let add = || {
            Some(Interval {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                micros: self.micros.checked_add(other.micros)?,
            })
        };
        add().ok_or_else(out_of_range)?.finite()
    }

    pub fn checked_sub(&self, other: &Interval) -> Result<Interval> {
        match (self.is_finite(), other.is_finite()) {
            (true, true) => {}
            (false, false) if self == other => return Err(out_of_range()),
            (false, _) => return Ok(*self),
            (true, false) => return other.checked_neg(),
        }
        let sub = || {
            Some(Interval {
                months: self.months.checked_sub(other.months)?,
                days: self.days.checked_sub(other.days)?,
                micros: self.micros.checked_sub(other.micros)?,
            })
        };
        sub().ok_or_else(out_of_range)?.finite()
    }

    pub fn multiply(&self, factor: f64) -> Result<Interval> {
        if factor.is_nan() {
            return Err(out_of_range());
        }
        if !self.is_finite() {
            return match factor {
                0.0 => Err(out_of_range()),
                _ if factor < 0.0 => self.checked_neg(),
                _ => Ok(*self),
            };
        }
        if factor.is_infinite() {
            return match (self.span() as f64) * factor {
                product if product.is_nan() => Err(out_of_range()),
                product if product > 0.0 => Ok(Interval::INFINITY),
                _ => Ok(Interval::NEGATIVE_INFINITY),
            };
        }
        self.scale(|value| value * factor)
    }

    pub fn divide(&self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(err!(DIVISION_BY_ZERO, "division by zero"));
        }
        if divisor.is_nan() {
            return Err(out_of_range());
        }
        if !self.is_finite() {
            return match divisor {
                _ if divisor.is_infinite() => Err(out_of_range()),
                _ if divisor < 0.0 => self.checked_neg(),
                _ => Ok(*self),
            };
        }
        self.scale(|value| value / divisor)
    }

    /// Scales each field; fractions of months and days cascade down.
    fn scale(&self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        let whole = |value: f64| -> Result<i32> {
            if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { Ok(value as i32) } else { Err(out_of_range()) }
        };
        let round = |value: f64| (value * 1e6).round_ties_even() / 1e6;
        let months = whole(scale(f64::from(self.months)))?;
        let mut days = whole(scale(f64::from(self.days)))?;
        let month_days = round((scale(f64::from(self.months)) - f64::from(months)) * f64::from(DAYS_PER_MONTH));
        let mut seconds =
            round((scale(f64::from(self.days)) - f64::from(days) + month_days - month_days.trunc()) * SECONDS_PER_DAY);
        if seconds.abs() >= SECONDS_PER_DAY {
            let carried = (seconds / SECONDS_PER_DAY) as i32;
            days = days.checked_add(carried).ok_or_else(out_of_range)?;
            seconds -= f64::from(carried) * SECONDS_PER_DAY;
        }
        days = days.checked_add(month_days as i32).ok_or_else(out_of_range)?;
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros) {
            return Err(out_of_range());
        }
        Interval { months, days, micros: micros as i64 }.finite()
    }

    /// Whole 24 hours become days.
    pub fn justify_hours(&self) -> Result<Interval> {
        if !self.is_finite() {
            return Ok(*self);
        }
        let Interval { months, mut days, mut micros } = *self;
        days = days.checked_add((micros / MICROS_PER_DAY) as i32).ok_or_else(out_of_range)?;
        micros %= MICROS_PER_DAY;
        borrow_day(&mut days, &mut micros);
        Ok(Interval { months, days, micros })
    }

    /// Whole 30 days become months.
    pub fn justify_days(&self) -> Result<Interval> {
        if !self.is_finite() {
            return Ok(*self);
        }
        let Interval { mut months, mut days, micros } = *self;
        months = months.checked_add(days / DAYS_PER_MONTH).ok_or_else(out_of_range)?;
        days %= DAYS_PER_MONTH;
        borrow_month(&mut months, &mut days, 0);
        Ok(Interval { months, days, micros })
    }

    /// Both, and all fields of one sign.
    pub fn justify(&self) -> Result<Interval> {
        if !self.is_finite() {
            return Ok(*self);
        }
        let Interval { mut months, mut days, mut micros } = *self;
        // Days first where they have the sign of the time, so that the sum does not overflow needlessly.
        if (days > 0 && micros > 0) || (days < 0 && micros < 0) {
            months = months.checked_add(days / DAYS_PER_MONTH).ok_or_else(out_of_range)?;
            days %= DAYS_PER_MONTH;
        }
        days = days.checked_add((micros / MICROS_PER_DAY) as i32).ok_or_else(out_of_range)?;
        micros %= MICROS_PER_DAY;
        months = months.checked_add(days / DAYS_PER_MONTH).ok_or_else(out_of_range)?;
        days %= DAYS_PER_MONTH;
        borrow_month(&mut months, &mut days, micros);
        borrow_day(&mut days, &mut micros);
        Ok(Interval { months, days, micros })
    }

    /// Drops the fields outside a type modifier's range and rounds to its precision.
    pub fn with_typmod(self, typmod: i32) -> Result<Interval> {
        if typmod < 0 || !self.is_finite() {
            return Ok(self);
        }
        let (fields, precision) = (typmod >> 16 & 0x7fff, typmod & 0xffff);
        let Interval { mut months, mut days, mut micros } = self;
        let lowest = fields & fields.wrapping_neg();
        if fields & range::SECOND == 0 {
            micros = match fields {
                _ if fields & range::MINUTE != 0 => micros / MICROS_PER_MINUTE * MICROS_PER_MINUTE,
                _ if fields & range::HOUR != 0 => micros / MICROS_PER_HOUR * MICROS_PER_HOUR,
                _ => 0,
            };
        }
        if lowest <= range::YEAR && fields & range::DAY == 0 {
            days = 0;
            if fields & range::MONTH == 0 {
                months = months / 12 * 12;
            }
        }
        if precision != 0xffff {
            micros = match round_micros(micros, precision) {
                rounded if (rounded < 0) == (micros < 0) || rounded == 0 => rounded,
                _ => return Err(out_of_range()),
            };
        }
        Ok(Interval { months, days, micros })
    }
}

/// Reads an interval. `typmod` decides the unit of a plain number, and trims the result.
pub fn parse(text: &str, typmod: i32, style: IntervalStyle) -> Result<Interval> {
    let fields = if typmod >= 0 { typmod >> 16 & 0x7fff } else { range::FULL };
    let parsed = scan(text, LENGTH_MAX).and_then(|words| parse_fields(&words, fields, style));
    let parsed = match parsed {
        Err(DateTimeError::BadFormat) => parse_iso(text),
        other => other,
    };
    match parsed {
        Ok(Some(sum)) => sum.finish()?.with_typmod(typmod),
        Ok(None) => Ok(if text.contains('-') { Interval::NEGATIVE_INFINITY } else { Interval::INFINITY }),
        Err(DateTimeError::FieldOverflow) => Err(DateTimeError::IntervalOverflow.into_error(text, "interval")),
        Err(e) => Err(e.into_error(text, "interval")),
    }
}

/// An interval while it is read.
#[derive(Default)]
struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

impl Sum {
    fn finish(self) -> Result<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        let months = i32::try_from(months).map_err(|_| out_of_range())?;
        Interval { months, days: self.days, micros: self.micros }.finite()
    }

    fn negate(&mut self) -> Option<()> {
        self.years = self.years.checked_neg()?;
        self.months = self.months.checked_neg()?;
        self.days = self.days.checked_neg()?;
        self.micros = self.micros.checked_neg()?;
        Some(())
    }

    fn add_micros(&mut self, value: i64, fraction: f64, scale: i64) -> Option<()> {
        self.micros = self.micros.checked_add(value.checked_mul(scale)?)?;
        self.add_fraction_micros(fraction, scale)
    }

    fn add_fraction_micros(&mut self, fraction: f64, scale: i64) -> Option<()> {
        let scaled = fraction * scale as f64;
        let mut whole = scaled as i64;
        let rest = scaled - whole as f64;
        if rest > 0.5 {
            whole += 1;
        } else if rest < -0.5 {
            whole -= 1;
        }
        self.micros = self.micros.checked_add(whole)?;
        Some(())
    }

    fn add_days(&mut self, value: i64, scale: i32) -> Option<()> {
        let days = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.days = self.days.checked_add(days)?;
        Some(())
    }

    fn add_fraction_days(&mut self, fraction: f64, scale: i32) -> Option<()> {
        let scaled = fraction * f64::from(scale);
        let whole = scaled as i32;
        self.days = self.days.checked_add(whole)?;
        self.add_fraction_micros(scaled - f64::from(whole), MICROS_PER_DAY)
    }

    fn add_months(&mut self, value: i64, fraction: f64) -> Option<()> {
        self.months = self.months.checked_add(i32::try_from(value).ok()?)?;
        self.add_fraction_days(fraction, DAYS_PER_MONTH)
    }

    fn add_years(&mut self, value: i64, fraction: f64, scale: i32) -> Option<()> {
        let years = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.years = self.years.checked_add(years)?;
        let months = (fraction * f64::from(scale) * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months)?;
        Some(())
    }

    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<(), DateTimeError> {
        let added = match unit {
            Unit::Microsecond => self.add_micros(value, fraction, 1),
            Unit::Millisecond => self.add_micros(value, fraction, 1000),
            Unit::Second => self.add_micros(value, fraction, MICROS_PER_SECOND),
            Unit::Minute => self.add_micros(value, fraction, MICROS_PER_MINUTE),
            Unit::Hour => self.add_micros(value, fraction, MICROS_PER_HOUR),
            Unit::Day => self.add_days(value, 1).and_then(|()| self.add_fraction_micros(fraction, MICROS_PER_DAY)),
            Unit::Week => self.add_days(value, 7).and_then(|()| self.add_fraction_days(fraction, 7)),
            Unit::Month => self.add_months(value, fraction),
            Unit::Year => self.add_years(value, fraction, 1),
            Unit::Decade => self.add_years(value, fraction, 10),
            Unit::Century => self.add_years(value, fraction, 100),
            Unit::Millennium => self.add_years(value, fraction, 1000),
            _ => return Err(DateTimeError::BadFormat),
        };
        added.ok_or(DateTimeError::FieldOverflow)
    }
}

// Which units have been given; each may come once.
const SEEN_MICROSECOND: u32 = 1;
const SEEN_MILLISECOND: u32 = 2;
const SEEN_SECOND: u32 = 4;
const SEEN_MINUTE: u32 = 8;
const SEEN_HOUR: u32 = 16;
const SEEN_TIME: u32 = 31;
const SEEN_DATE: u32 = 32 + 64 + 128;

fn seen_bit(unit: Unit, fraction: f64) -> u32 {
    match unit {
        Unit::Microsecond => SEEN_MICROSECOND,
        Unit::Millisecond => SEEN_MILLISECOND,
        Unit::Second if fraction != 0.0 => SEEN_SECOND | SEEN_MILLISECOND | SEEN_MICROSECOND,
        Unit::Second => SEEN_SECOND,
        Unit::Minute => SEEN_MINUTE,
        Unit::Hour => SEEN_HOUR,
        Unit::Day => 32,
        Unit::Month => 64,
        Unit::Year => 128,
        Unit::Week => 256,
        Unit::Decade => 512,
        Unit::Century => 1024,
        _ => 2048,
    }
}

/// The unit of the last number when it has none, by the type's field range.
fn unit_of_range(fields: i32) -> Unit {
    let highest_bit_only = |mask: i32| fields & mask != 0;
    match fields {
        range::FULL => Unit::Second,
        _ if highest_bit_only(range::SECOND) => Unit::Second,
        _ if highest_bit_only(range::MINUTE) => Unit::Minute,
        _ if highest_bit_only(range::HOUR) => Unit::Hour,
        _ if highest_bit_only(range::DAY) => Unit::Day,
        _ if highest_bit_only(range::MONTH) => Unit::Month,
        _ if highest_bit_only(range::YEAR) => Unit::Year,
        _ => Unit::Second,
    }
}

fn signed_by_minus(text: &str) -> bool {
    text.starts_with('-')
}

/// The sum of the fields; `None` for an infinity.
fn parse_fields(words: &[DateTimeField], fields: i32, style: IntervalStyle) -> Result<Option<Sum>, DateTimeError> {
    let mut sum = Sum::default();
    let mut seen = 0u32;
    let mut unit: Option<Unit> = None;
    let mut unit_pending = false;
    let mut ago = false;
    let mut infinite = false;
    // The standard's leading minus is for all fields, unless another has a sign.
    let all_negative = style == IntervalStyle::SqlStandard
        && words.first().is_some_and(|w| signed_by_minus(&w.text))
        && !words[1..].iter().any(|w| w.text.starts_with(['-', '+']));
    // Backwards, so that a unit comes before its number.
    for (i, word) in words.iter().enumerate().rev() {
        let is_last = i == words.len() - 1;
        let found = match word.shape {
            Shape::Word | Shape::SignedWord => {
                if unit_pending {
                    return Err(DateTimeError::BadFormat);
                }
                match interval_keyword(&word.text) {
                    Some(IntervalKeyword::Ignored) => continue,
                    Some(IntervalKeyword::Ago) if is_last => {
                        ago = true;
                        0
                    }
                    Some(IntervalKeyword::Unit(named)) => {
                        unit = Some(named);
                        unit_pending = true;
                        0
                    }
                    Some(IntervalKeyword::Ago) => return Err(DateTimeError::BadFormat),
                    None => match date_keyword(&word.text) {
                        Some(DateKeyword::Ignored) => continue,
                        Some(DateKeyword::Infinity | DateKeyword::NegativeInfinity) if is_last => {
                            infinite = true;
                            SEEN_DATE | SEEN_TIME
                        }
                        _ => return Err(DateTimeError::BadFormat),
                    },
                }
            }
            Shape::Time => {
                add_clock(&mut sum, &word.text, fields, all_negative)?;
                unit = Some(Unit::Day);
                unit_pending = false;
                SEEN_TIME
            }
            Shape::Signed if word.text.contains(':') && add_clock(&mut sum, &word.text, fields, all_negative).is_ok() => {
                unit = Some(Unit::Day);
                unit_pending = false;
                SEEN_TIME
            }
            Shape::Signed | Shape::Date | Shape::Number => {
                let (number_unit, value, fraction) =
                    number(&word.text, unit.unwrap_or_else(|| unit_of_range(fields)), all_negative)?;
                sum.add(number_unit, value, fraction)?;
                // A number before hours is days.
                unit = Some(if number_unit == Unit::Hour { Unit::Day } else { number_unit });
                unit_pending = false;
                seen_bit(number_unit, fraction)
            }
        };
        if seen & found != 0 {
            return Err(DateTimeError::BadFormat);
        }
        seen |= found;
    }
    if seen == 0 || unit_pending {
        return Err(DateTimeError::BadFormat);
    }
    if ago {
        sum.negate().ok_or(DateTimeError::FieldOverflow)?;
    }
    Ok(if infinite { None } else { Some(sum) })
}

/// Sets the time of day from `[+-]hh:mm[:ss[.ffffff]]`.
fn add_clock(sum: &mut Sum, text: &str, fields: i32, all_negative: bool) -> Result<(), DateTimeError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let clock = parse_clock(unsigned, fields == range::MINUTE | range::SECOND)?;
    let micros = || {
        let hours = clock.hour.checked_mul(MICROS_PER_HOUR)?;
        let minutes = i64::from(clock.minute) * MICROS_PER_MINUTE;
        let seconds = i64::from(clock.second) * MICROS_PER_SECOND + i64::from(clock.micros);
        hours.checked_add(minutes)?.checked_add(seconds)
    };
    let micros = micros().ok_or(DateTimeError::FieldOverflow)?;
    sum.micros = if signed_by_minus(text) || all_negative { -micros } else { micros };
    Ok(())
}

/// A number, or the standard's `years-months`: its unit, whole part and fraction.
fn number(text: &str, unit: Unit, all_negative: bool) -> Result<(Unit, i64, f64), DateTimeError> {
    let (value, rest) = leading_integer(text);
    let mut value = value.ok_or(DateTimeError::FieldOverflow)?;
    let negative = signed_by_minus(text);
    let mut unit = unit;
    let mut part = 0.0;
    if let Some(months) = rest.strip_prefix('-') {
        let (months, rest) = leading_int(months);
        let months = months.filter(|m| (0..12).contains(m)).ok_or(DateTimeError::FieldOverflow)?;
        if !rest.is_empty() {
            return Err(DateTimeError::BadFormat);
        }
        unit = Unit::Month;
        let months = i64::from(if negative { -months } else { months });
        value = value.checked_mul(12).and_then(|v| v.checked_add(months)).ok_or(DateTimeError::FieldOverflow)?;
    } else if rest.starts_with('.') {
        part = fraction(rest)?;
        if negative {
            part = -part;
        }
    } else if !rest.is_empty() {
        return Err(DateTimeError::BadFormat);
    }
    if all_negative {
        value = -value.abs();
        part = -part.abs();
    }
    Ok((unit, value, part))
}

/// ISO 8601 durations: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
fn parse_iso(text: &str) -> Result<Option<Sum>, DateTimeError> {
    let Some(mut rest) = text.strip_prefix('P').filter(|rest| !rest.is_empty()) else {
        return Err(DateTimeError::BadFormat);
    };
    let mut sum = Sum::default();
    let mut in_date = true;
    let mut have_field = false;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (in_date, have_field, rest) = (false, false, after);
            continue;
        }
        let digits = rest.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count();
        let (value, part, after) = iso_number(rest)?;
        let designator = after.chars().next().unwrap_or('\0');
        rest = after.get(designator.len_utf8()..).unwrap_or("");
        let unit = match (in_date, designator) {
            (true, 'Y') => Unit::Year,
            (true, 'M') => Unit::Month,
            (true, 'W') => Unit::Week,
            (true, 'D') => Unit::Day,
            (false, 'H') => Unit::Hour,
            (false, 'M') => Unit::Minute,
            (false, 'S') => Unit::Second,
            (true, 'T' | '\0') if digits == 8 && !have_field => {
                sum.add(Unit::Year, value / 10_000, 0.0)?;
                sum.add(Unit::Month, value / 100 % 100, 0.0)?;
                sum.add(Unit::Day, value % 100, part)?;
                in_date = false;
                continue;
            }
            (false, '\0') if digits == 6 && !have_field => {
                sum.add(Unit::Hour, value / 10_000, 0.0)?;
                sum.add(Unit::Minute, value / 100 % 100, 0.0)?;
                sum.add(Unit::Second, value % 100, 0.0)?;
                sum.add(Unit::Microsecond, 0, part)?;
                continue;
            }
            (true, 'T' | '\0' | '-') if !have_field => {
                sum.add(Unit::Year, value, part)?;
                if designator == '-' {
                    rest = iso_alternative(&mut sum, rest, '-', [Unit::Month, Unit::Day])?;
                    if !rest.is_empty() {
                        rest = rest.strip_prefix('T').ok_or(DateTimeError::BadFormat)?;
                    }
                }
                in_date = false;
                continue;
            }
            (false, '\0' | ':') if !have_field => {
                sum.add(Unit::Hour, value, part)?;
                if designator == ':' {
                    rest = iso_alternative(&mut sum, rest, ':', [Unit::Minute, Unit::Second])?;
                }
                if !rest.is_empty() {
                    return Err(DateTimeError::BadFormat);
                }
                continue;
            }
            _ => return Err(DateTimeError::BadFormat),
        };
        sum.add(unit, value, part)?;
        have_field = true;
    }
    Ok(Some(sum))
}

/// The second field, and after the delimiter the third, of the alternative format.
fn iso_alternative<'a>(sum: &mut Sum, text: &'a str, delimiter: char, units: [Unit; 2]) -> Result<&'a str, DateTimeError> {
    let (value, part, rest) = iso_number(text)?;
    sum.add(units[0], value, part)?;
    let Some(text) = rest.strip_prefix(delimiter) else { return Ok(rest) };
    let (value, part, rest) = iso_number(text)?;
    sum.add(units[1], value, part)?;
    Ok(rest)
}

/// A decimal number at the start of the text: whole part, fraction, the rest.
fn iso_number(text: &str) -> Result<(i64, f64, &str), DateTimeError> {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|c| c.is_ascii_digit() || matches!(c, b'-' | b'.')) {
        return Err(DateTimeError::BadFormat);
    }
    let mut end = usize::from(bytes[0] == b'-');
    let digits = |from: usize| bytes[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    end += digits(end);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let value: f64 = text[..end].parse().map_err(|_| DateTimeError::BadFormat)?;
    if !(-1e15..=1e15).contains(&value) {
        return Err(DateTimeError::FieldOverflow);
    }
    Ok((value.trunc() as i64, value - value.trunc(), &text[end..]))
}

#[cfg(test)]
mod tests;
