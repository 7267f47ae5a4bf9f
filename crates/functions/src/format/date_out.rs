//! to_char of timestamps and intervals.

use melba_types::datetime::calendar::{Civil, iso_week, iso_year, iso_year_start, julian_of_date, weekday_of_julian};
use melba_types::datetime::keywords::{MONTHS, WEEKDAYS};
use melba_types::datetime::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, is_finite_timestamp, unix_seconds};
use melba_types::limits::ticked;
use melba_types::timezone::Zone;
use melba_types::{Datum, Interval, Result, err};

use super::template::{Case, DateKey, FormatNode, TemplatePattern, date_template, ordinal_suffix};
use crate::datetime::timestamp_out_of_range;

pub const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The values to print.
struct Fields {
    year: i32,
    month: i32,
    day: i32,
    hour: i64,
    minute: i32,
    second: i32,
    micros: i32,
    weekday: i32,
    day_of_year: i32,
    offset: i32,
    /// Abbreviation of the zone, when there is one.
    zone: Option<String>,
    is_interval: bool,
}

/// to_char(timestamp or timestamptz, template); NULL for infinities and empty templates.
pub fn timestamp(timestamp: i64, zone: Option<&Zone>, template: &str) -> Result<Datum> {
    if template.is_empty() || !is_finite_timestamp(timestamp) {
        return Ok(Datum::Null);
    }
    let info = zone.map(|zone| zone.at(unix_seconds(timestamp)));
    let offset = info.as_ref().map_or(0, |info| info.offset);
    let local = timestamp.checked_add(i64::from(offset) * MICROS_PER_SECOND);
    let civil = local.and_then(Civil::of_timestamp).ok_or_else(timestamp_out_of_range)?;
    let Civil { year, month, day, hour, minute, second, micros } = civil;
    let fields = Fields {
        year,
        month,
        day,
        hour: i64::from(hour),
        minute,
        second,
        micros,
        weekday: weekday_of_julian(civil.julian()),
        day_of_year: civil.julian() - julian_of_date(year, 1, 1) + 1,
        offset,
        zone: info.map(|info| info.abbreviation),
        is_interval: false,
    };
    fields.write(template).map(Datum::text)
}

/// to_char(interval, template); NULL for infinities and empty templates.
pub fn interval(interval: Interval, template: &str) -> Result<Datum> {
    if template.is_empty() || !interval.is_finite() {
        return Ok(Datum::Null);
    }
    let Interval { months, days, micros } = interval;
    let (year, month) = (months / 12, months % 12);
    let fields = Fields {
        year,
        month,
        day: days,
        hour: micros / MICROS_PER_HOUR,
        minute: (micros / MICROS_PER_MINUTE % 60) as i32,
        second: (micros / MICROS_PER_SECOND % 60) as i32,
        micros: (micros % MICROS_PER_SECOND) as i32,
        weekday: 0,
        day_of_year: months.wrapping_mul(30).wrapping_add(days),
        offset: 0,
        zone: None,
        is_interval: true,
    };
    fields.write(template).map(Datum::text)
}

/// A number with leading zeros up to `width` characters, sign included.
fn padded(value: i64, width: usize) -> String {
    format!("{value:0width$}")
}

impl Fields {
    fn write(&self, template: &str) -> Result<String> {
        let mut out = String::new();
        for node in ticked(date_template(template)?) {
            match node? {
                FormatNode::Separator(c) | FormatNode::Space(c) | FormatNode::Text(c) => out.push(c),
                FormatNode::Key(pattern) => self.pattern(&pattern, &mut out)?,
            }
        }
        Ok(out)
    }

    fn pattern(&self, pattern: &TemplatePattern<DateKey>, out: &mut String) -> Result<()> {
        if let Some(number) = self.number(pattern)? {
            out.push_str(&number);
            if let Some(case) = pattern.ordinal {
                out.push_str(ordinal_suffix(&number, case));
            }
            return Ok(());
        }
        self.name(pattern, out)
    }

    fn not_for_intervals(&self) -> Result<()> {
        if self.is_interval {
            return Err(err!(INVALID_DATETIME_FORMAT, "invalid format specification for an interval value")
                .hint("Intervals are not tied to specific calendar dates."));
        }
        Ok(())
    }

    /// The year as shown: no year 0, except of intervals.
    fn shown_year(&self, year: i32) -> i64 {
        let year = i64::from(year);
        if self.is_interval || year > 0 { year } else { -(year - 1) }
    }

    /// Patterns that print a number.
    fn number(&self, pattern: &TemplatePattern<DateKey>) -> Result<Option<String>> {
        let width = |positive: usize, negative: bool| match pattern.fill {
            true => 0,
            false => positive + usize::from(negative),
        };
        let signed = |value: i64, digits: usize| padded(value, width(digits, value < 0));
        let plain = |value: i32, digits: usize| padded(i64::from(value), width(digits, false));
        Ok(Some(match pattern.key {
            DateKey::Hour12 => {
                let hour = if self.hour % 12 == 0 { 12 } else { self.hour % 12 };
                padded(hour, width(2, self.hour < 0))
            }
            DateKey::Hour24 => signed(self.hour, 2),
            DateKey::Minute => signed(i64::from(self.minute), 2),
            DateKey::Second => signed(i64::from(self.second), 2),
            DateKey::Fraction(digits) => {
                let scale = 10i32.pow(6 - u32::from(digits));
                padded(i64::from(self.micros / scale), usize::from(digits))
            }
            DateKey::Millisecond => padded(i64::from(self.micros / 1000), 3),
            DateKey::Microsecond => padded(i64::from(self.micros), 6),
            DateKey::SecondsOfDay => (self.hour * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)).to_string(),
            DateKey::MonthNumber => signed(i64::from(self.month), 2),
            DateKey::DayOfYear => plain(self.day_of_year, 3),
            DateKey::IsoDayOfYear => {
                let year = iso_year(self.year, self.month, self.day);
                plain(julian_of_date(self.year, self.month, self.day) - iso_year_start(year) + 1, 3)
            }
            DateKey::DayOfMonth => plain(self.day, 2),
            DateKey::DayOfWeek => {
                self.not_for_intervals()?;
                (self.weekday + 1).to_string()
            }
            DateKey::IsoDayOfWeek => {
                self.not_for_intervals()?;
                (if self.weekday == 0 { 7 } else { self.weekday }).to_string()
            }
            DateKey::WeekOfYear => plain((self.day_of_year - 1) / 7 + 1, 2),
            DateKey::IsoWeek => plain(iso_week(self.year, self.month, self.day), 2),
            DateKey::Quarter if self.month == 0 => return Ok(None),
            DateKey::Quarter => ((self.month - 1) / 3 + 1).to_string(),
            DateKey::Century => {
                let century = match self.year {
                    year if self.is_interval => year / 100,
                    year @ 1.. => (year - 1) / 100 + 1,
                    year => year / 100 - 1,
                };
                if (-99..=99).contains(&century) { signed(i64::from(century), 2) } else { century.to_string() }
            }
            DateKey::YearComma => {
                let year = self.shown_year(self.year);
                format!("{},{:03}", year / 1000, year - year / 1000 * 1000)
            }
            DateKey::Year(digits) => self.year_digits(self.year, digits, pattern.fill),
            DateKey::IsoYear(digits) => self.year_digits(iso_year(self.year, self.month, self.day), digits, pattern.fill),
            DateKey::WeekOfMonth => ((self.day - 1) / 7 + 1).to_string(),
            DateKey::Julian => julian_of_date(self.year, self.month, self.day).to_string(),
            _ => return Ok(None),
        }))
    }

    fn year_digits(&self, year: i32, digits: u8, fill: bool) -> String {
        let negative = self.shown_year(self.year) < 0;
        let width = match digits {
            1 => 1,
            _ if fill => 0,
            _ => usize::from(digits) + usize::from(negative),
        };
        let year = self.shown_year(year);
        padded(if digits == 4 { year } else { year % 10i64.pow(u32::from(digits)) }, width)
    }

    /// Patterns that print a word.
    fn name(&self, pattern: &TemplatePattern<DateKey>, out: &mut String) -> Result<()> {
        let pm = self.hour.rem_euclid(24) >= 12 && self.hour % 24 >= 12;
        let cased = |word: &str| match pattern.case {
            Case::Upper => word.to_uppercase(),
            Case::Lower => word.to_lowercase(),
            Case::Title => word.to_string(),
        };
        let unpadded = pattern.fill || pattern.translated;
        let month = || MONTHS[(self.month - 1).clamp(0, 11) as usize];
        match pattern.key {
            DateKey::Meridiem => out.push_str(&cased(if pm { "PM" } else { "AM" })),
            DateKey::MeridiemDots => out.push_str(&cased(if pm { "P.M." } else { "A.M." })),
            DateKey::RomanMonth => return self.roman_month(pattern, out),
            DateKey::Quarter | DateKey::Exact => {}
            _ => self.not_for_intervals()?,
        }
        match pattern.key {
            DateKey::Era => out.push_str(&cased(if self.year <= 0 { "BC" } else { "AD" })),
            DateKey::EraDots => out.push_str(&cased(if self.year <= 0 { "B.C." } else { "A.D." })),
            DateKey::Month if unpadded => out.push_str(&cased(month())),
            DateKey::Month => out.push_str(&format!("{:<9}", cased(month()))),
            DateKey::ShortMonth => out.push_str(&cased(&month()[..3])),
            DateKey::Day if unpadded => out.push_str(&cased(WEEKDAYS[self.weekday as usize])),
            DateKey::Day => out.push_str(&format!("{:<9}", cased(WEEKDAYS[self.weekday as usize]))),
            DateKey::ShortDay => out.push_str(&cased(&WEEKDAYS[self.weekday as usize][..3])),
            DateKey::Zone => {
                if let Some(zone) = &self.zone {
                    out.push_str(&if pattern.case == Case::Lower { zone.to_lowercase() } else { zone.clone() });
                }
            }
            DateKey::ZoneHour => {
                let sign = if self.offset >= 0 { '+' } else { '-' };
                out.push_str(&format!("{sign}{:02}", self.offset.abs() / 3600));
            }
            DateKey::ZoneMinute => out.push_str(&format!("{:02}", self.offset.abs() % 3600 / 60)),
            DateKey::Offset => {
                let sign = if self.offset >= 0 { '+' } else { '-' };
                out.push(sign);
                out.push_str(&padded(i64::from(self.offset.abs() / 3600), if pattern.fill { 0 } else { 2 }));
                if self.offset % 3600 != 0 {
                    out.push_str(&format!(":{:02}", self.offset.abs() % 3600 / 60));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn roman_month(&self, pattern: &TemplatePattern<DateKey>, out: &mut String) -> Result<()> {
        if self.month == 0 && self.year == 0 {
            return Ok(());
        }
        // Whole years count as December, or as January when negative.
        let month = match self.month {
            0 if self.year >= 0 => 12,
            0 => 1,
            1.. => self.month,
            negative => 13 + negative,
        };
        let roman = ROMAN_MONTHS[(month - 1).clamp(0, 11) as usize];
        let roman = if pattern.case == Case::Lower { roman.to_lowercase() } else { roman.to_string() };
        if pattern.fill {
            out.push_str(&roman);
        } else {
            out.push_str(&format!("{roman:<4}"));
        }
        Ok(())
    }
}
