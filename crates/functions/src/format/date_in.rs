//! to_date and to_timestamp: reads text by a template.

use melba_fmgr::Session;
use melba_fmgr::type_io::is_space;
use melba_types::datetime::calendar::{Civil, date_of_julian, days_of_month, iso_year_start, julian_of_date};
use melba_types::datetime::keywords::{MONTHS, WEEKDAYS};
use melba_types::datetime::parse::{Abbreviation, dynamic_offset, zone_abbreviation};
use melba_types::datetime::{DateTimeError, EPOCH_JULIAN, MICROS_PER_SECOND, calendar, is_valid_date, is_valid_timestamp};
use melba_types::limits::Ticker;
use melba_types::timezone::Zone;
use melba_types::{Datum, DbError, Result, err};

use super::date_out::ROMAN_MONTHS;
use super::template::{DateKey, DatePart, FormatNode, TemplatePattern, date_template, is_separator};
use crate::datetime::{round_timestamp, session_zone, timestamp_out_of_range};

pub fn to_date(session: &dyn Session, text: &str, template: &str) -> Result<Datum> {
    let DateTimeFields { civil, .. } = parse_date_time(&session_zone(session), text, template)?;
    let out_of_range = || err!(DATETIME_FIELD_OVERFLOW, "date out of range: \"{text}\"");
    if !calendar::is_valid_julian(civil.year, civil.month) {
        return Err(out_of_range());
    }
    let date = civil.julian().checked_sub(EPOCH_JULIAN).filter(|date| is_valid_date(*date));
    date.map(Datum::Int4).ok_or_else(out_of_range)
}

pub fn to_timestamp(session: &dyn Session, text: &str, template: &str) -> Result<Datum> {
    let zone = session_zone(session);
    let DateTimeFields { civil, offset, precision } = parse_date_time(&zone, text, template)?;
    let local = civil.timestamp().ok_or_else(timestamp_out_of_range)?;
    let offset = offset.unwrap_or_else(|| zone.offset_of_local(civil.local_seconds()));
    let instant = local.checked_sub(i64::from(offset) * MICROS_PER_SECOND).filter(|t| is_valid_timestamp(*t));
    let instant = instant.map(|instant| precision.map_or(instant, |digits| round_timestamp(instant, i32::from(digits))));
    instant.map(Datum::Int8).ok_or_else(timestamp_out_of_range)
}

/// The parsed fields: a date and time, and the zone's offset (seconds east) if the text had one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DateTimeFields {
    pub civil: Civil,
    pub offset: Option<i32>,
    /// Digits of a second in the template.
    pub precision: Option<u8>,
}

/// Reads `text` by `template`.
fn parse_date_time(session_zone: &Zone, text: &str, template: &str) -> Result<DateTimeFields> {
    let nodes = date_template(template)?;
    let mut reader = DateReader::new(text, session_zone);
    reader.read(&nodes)?;
    reader.values.resolve(text)
}

/// The fields read by a template of SQL/JSON, and the kinds of its patterns.
pub struct Standard {
    pub fields: DateTimeFields,
    pub dated: bool,
    pub timed: bool,
    pub zoned: bool,
}

/// Whether a template reads a time zone.
pub fn template_has_zone(template: &str) -> Result<bool> {
    Ok(has_part(&date_template(template)?, DatePart::Zone))
}

/// Reads `text` by `template` as the SQL standard requires: every character of both must fit.
pub fn parse_standard(session_zone: &Zone, text: &str, template: &str) -> Result<Standard> {
    let nodes = date_template(template)?;
    let mut quoted = false;
    for c in template.chars() {
        quoted ^= c == '"';
        if !quoted && c != '"' && !c.is_alphanumeric() && !"-./,':; ".contains(c) {
            return Err(err!(INVALID_DATETIME_FORMAT, "invalid datetime format separator: \"{c}\""));
        }
    }
    let mut reader = DateReader { exact: true, standard: true, ..DateReader::new(text, session_zone) };
    reader.read(&nodes)?;
    let fields = reader.values.resolve(text)?;
    let has = |part| has_part(&nodes, part);
    Ok(Standard { fields, dated: has(DatePart::Date), timed: has(DatePart::Time), zoned: has(DatePart::Zone) })
}

fn has_part(nodes: &[FormatNode<DateKey>], part: DatePart) -> bool {
    nodes.iter().any(|node| matches!(node, FormatNode::Key(p) if p.key.part() == Some(part)))
}

/// Raw values as read; 0: not given.
#[derive(Default)]
struct DateValues {
    iso: Option<bool>,
    hour: i32,
    pm: i32,
    twelve_hours: bool,
    minute: i32,
    second: i32,
    seconds_of_day: i32,
    millis: i32,
    micros: i32,
    /// Digits of a second by FF1 to FF6.
    precision: Option<u8>,
    weekday: i32,
    day: i32,
    day_of_year: i32,
    month: i32,
    year: i32,
    year_digits: u8,
    before_christ: i32,
    week: i32,
    week_of_month: i32,
    century: i32,
    julian: i32,
    zone_sign: i32,
    zone_hour: i32,
    zone_minute: i32,
    zone: Option<ZoneRead>,
}

enum ZoneRead {
    Fixed(i32),
    Dynamic(Zone, String),
}

struct DateReader<'a> {
    text: &'a str,
    at: usize,
    /// FX: no skipping of spaces.
    exact: bool,
    /// Every character must be the template's.
    standard: bool,
    /// Characters skipped beyond those of the template.
    extra_skip: i32,
    session_zone: &'a Zone,
    values: DateValues,
}

/// Sets a value that must not contradict an earlier one.
fn set(slot: &mut i32, value: i32, name: &str) -> Result<()> {
    if *slot != 0 && *slot != value {
        return Err(err!(INVALID_DATETIME_FORMAT, "conflicting values for \"{name}\" field in formatting string")
            .detail("This value contradicts a previous setting for the same field type."));
    }
    *slot = value;
    Ok(())
}

/// Years of one to three digits: the nearest to 2020.
fn full_year(year: i32) -> i32 {
    year + match year {
        ..70 => 2000,
        70..100 => 1900,
        100..520 => 2000,
        520..1000 => 1000,
        _ => 0,
    }
}

impl<'a> DateReader<'a> {
    fn new(text: &'a str, session_zone: &'a Zone) -> DateReader<'a> {
        DateReader { text, at: 0, exact: false, standard: false, extra_skip: 0, session_zone, values: DateValues::default() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_char(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    fn skip_spaces(&mut self) {
        while self.rest().bytes().next().is_some_and(is_space) {
            self.at += 1;
            self.extra_skip += 1;
        }
    }

    fn read(&mut self, nodes: &[FormatNode<DateKey>]) -> Result<()> {
        let mut unread = nodes.len();
        let mut ticker = Ticker::new();
        for (i, node) in nodes.iter().enumerate() {
            ticker.step()?;
            if self.rest().is_empty() {
                unread = i;
                break;
            }
            let is_fx = matches!(node, FormatNode::Key(p) if p.key == DateKey::Exact);
            if !self.exact && !is_fx && (matches!(node, FormatNode::Key(_)) || i == 0) {
                self.skip_spaces();
            }
            match node {
                FormatNode::Separator(c) | FormatNode::Space(c) | FormatNode::Text(c) if self.standard => {
                    self.same_char(*c, node)?
                }
                FormatNode::Separator(_) | FormatNode::Space(_) if self.exact => self.skip_char(),
                FormatNode::Separator(_) | FormatNode::Space(_) => {
                    self.extra_skip -= 1;
                    let next = self.rest().chars().next();
                    if next.is_some_and(|c| is_separator(c) || (c.is_ascii() && is_space(c as u8))) {
                        self.at += 1;
                        self.extra_skip += 1;
                    }
                }
                FormatNode::Text(_) if !self.exact && self.extra_skip > 0 => self.extra_skip -= 1,
                FormatNode::Text(_) => self.skip_char(),
                FormatNode::Key(pattern) => {
                    self.set_mode(pattern.key)?;
                    self.field(pattern, next_is_separator(pattern, nodes.get(i + 1)))?;
                    if !self.exact {
                        self.extra_skip = 0;
                        self.skip_spaces();
                    }
                }
            }
        }
        if self.standard && unread < nodes.len() {
            return Err(err!(INVALID_DATETIME_FORMAT, "input string is too short for datetime format"));
        }
        if self.standard && !self.rest().bytes().all(is_space) {
            return Err(err!(INVALID_DATETIME_FORMAT, "trailing characters remain in input string after datetime format"));
        }
        Ok(())
    }

    fn same_char(&mut self, c: char, node: &FormatNode<DateKey>) -> Result<()> {
        if self.rest().starts_with(c) {
            self.skip_char();
            return Ok(());
        }
        let what = if matches!(node, FormatNode::Text(_)) { "character" } else { "separator" };
        Err(err!(INVALID_DATETIME_FORMAT, "unmatched format {what} \"{c}\""))
    }

    /// Gregorian and ISO week patterns do not mix.
    fn set_mode(&mut self, key: DateKey) -> Result<()> {
        let iso = match key {
            DateKey::IsoDayOfYear | DateKey::IsoDayOfWeek | DateKey::IsoWeek | DateKey::IsoYear(_) => true,
            DateKey::DayOfYear
            | DateKey::DayOfMonth
            | DateKey::DayOfWeek
            | DateKey::MonthNumber
            | DateKey::Month
            | DateKey::ShortMonth
            | DateKey::RomanMonth
            | DateKey::WeekOfYear
            | DateKey::WeekOfMonth
            | DateKey::YearComma
            | DateKey::Year(_) => false,
            _ => return Ok(()),
        };
        if self.values.iso.is_some_and(|before| before != iso) {
            return Err(err!(INVALID_DATETIME_FORMAT, "invalid combination of date conventions")
                .hint("Do not mix Gregorian and ISO week date conventions in a formatting template."));
        }
        self.values.iso = Some(iso);
        Ok(())
    }

    fn field(&mut self, p: &TemplatePattern<DateKey>, free: bool) -> Result<()> {
        let name = p.name.as_str();
        let width = name.len();
        match p.key {
            DateKey::Exact => self.exact = true,
            DateKey::MeridiemDots => {
                let value = self.word(&["a.m.", "p.m."], name)?;
                set(&mut self.values.pm, value, name)?;
                self.values.twelve_hours = true;
            }
            DateKey::Meridiem => {
                let value = self.word(&["am", "pm"], name)?;
                set(&mut self.values.pm, value, name)?;
                self.values.twelve_hours = true;
            }
            DateKey::EraDots => {
                let value = self.word(&["a.d.", "b.c."], name)?;
                set(&mut self.values.before_christ, value, name)?;
            }
            DateKey::Era => {
                let value = self.word(&["ad", "bc"], name)?;
                set(&mut self.values.before_christ, value, name)?;
            }
            DateKey::Hour12 | DateKey::Hour24 => {
                let (value, _) = self.integer(p, 2, free)?;
                set(&mut self.values.hour, value, name)?;
                self.values.twelve_hours |= p.key == DateKey::Hour12;
            }
            DateKey::Minute => {
                let (value, _) = self.integer(p, width, free)?;
                set(&mut self.values.minute, value, name)?;
            }
            DateKey::Second => {
                let (value, _) = self.integer(p, width, free)?;
                set(&mut self.values.second, value, name)?;
            }
            DateKey::SecondsOfDay => {
                let (value, _) = self.integer(p, width, free)?;
                set(&mut self.values.seconds_of_day, value, name)?;
            }
            DateKey::Millisecond => {
                let (value, used) = self.integer(p, 3, free)?;
                set(&mut self.values.millis, value, name)?;
                self.values.millis = value.wrapping_mul(10i32.pow(3 - used.clamp(1, 3) as u32));
            }
            DateKey::Microsecond | DateKey::Fraction(_) => {
                let digits = if let DateKey::Fraction(digits) = p.key { usize::from(digits) } else { 6 };
                let (value, used) = self.integer(p, digits, free)?;
                set(&mut self.values.micros, value, name)?;
                self.values.micros = value.wrapping_mul(10i32.pow(6 - used.clamp(1, 6) as u32));
                if let DateKey::Fraction(digits) = p.key {
                    self.values.precision = Some(digits);
                }
            }
            DateKey::Zone | DateKey::Offset | DateKey::ZoneHour | DateKey::ZoneMinute => return self.zone(p, free),
            _ => return self.date_field(p, free),
        }
        self.skip_ordinal(p);
        Ok(())
    }

    fn date_field(&mut self, p: &TemplatePattern<DateKey>, free: bool) -> Result<()> {
        let name = p.name.as_str();
        let width = name.len();
        match p.key {
            DateKey::Month => {
                let value = self.word(&MONTHS, name)?;
                return set(&mut self.values.month, value + 1, name);
            }
            DateKey::ShortMonth => {
                let value = self.word(&MONTHS.map(|m| &m[..3]), name)?;
                return set(&mut self.values.month, value + 1, name);
            }
            DateKey::RomanMonth => {
                // The longest first, so that none hides behind its prefix.
                let mut longest_first: Vec<(usize, &str)> = ROMAN_MONTHS.iter().copied().enumerate().collect();
                longest_first.reverse();
                let names: Vec<&str> = longest_first.iter().map(|(_, name)| *name).collect();
                let value = self.word(&names, name)?;
                return set(&mut self.values.month, 12 - value, name);
            }
            DateKey::Day => {
                let value = self.word(&WEEKDAYS, name)?;
                set(&mut self.values.weekday, value, name)?;
                self.values.weekday += 1;
                return Ok(());
            }
            DateKey::ShortDay => {
                let value = self.word(&WEEKDAYS.map(|d| &d[..3]), name)?;
                set(&mut self.values.weekday, value, name)?;
                self.values.weekday += 1;
                return Ok(());
            }
            DateKey::YearComma => return self.year_with_comma(p),
            _ => {}
        }
        let digits = match p.key {
            DateKey::IsoDayOfYear => 3,
            DateKey::IsoDayOfWeek => 1,
            _ => width,
        };
        let (value, used) = self.integer(p, digits, free)?;
        let values = &mut self.values;
        match p.key {
            DateKey::MonthNumber => set(&mut values.month, value, name)?,
            DateKey::DayOfYear | DateKey::IsoDayOfYear => set(&mut values.day_of_year, value, name)?,
            DateKey::DayOfMonth => set(&mut values.day, value, name)?,
            DateKey::DayOfWeek => set(&mut values.weekday, value, name)?,
            DateKey::IsoDayOfWeek => {
                set(&mut values.weekday, value, name)?;
                // Sunday first, as elsewhere.
                values.weekday = if value + 1 > 7 { 1 } else { value + 1 };
            }
            DateKey::WeekOfYear | DateKey::IsoWeek => set(&mut values.week, value, name)?,
            DateKey::WeekOfMonth => set(&mut values.week_of_month, value, name)?,
            DateKey::Century => set(&mut values.century, value, name)?,
            DateKey::Julian => set(&mut values.julian, value, name)?,
            DateKey::Year(digits) | DateKey::IsoYear(digits) => {
                set(&mut values.year, value, name)?;
                if digits < 4 && used < 4 {
                    values.year = full_year(value);
                }
                values.year_digits = digits;
            }
            // A quarter is read and ignored.
            _ => {}
        }
        self.skip_ordinal(p);
        Ok(())
    }

    fn skip_ordinal(&mut self, p: &TemplatePattern<DateKey>) {
        if p.ordinal.is_some() {
            self.skip_char();
            self.skip_char();
        }
    }

    fn year_with_comma(&mut self, p: &TemplatePattern<DateKey>) -> Result<()> {
        let rest = self.rest();
        let parse = || -> Option<(i64, i64, usize)> {
            let (thousands, tail) = rest.split_once(',')?;
            let digits = tail.bytes().take(3).take_while(u8::is_ascii_digit).count();
            Some((thousands.trim_start().parse().ok()?, tail[..digits].parse().ok()?, thousands.len() + 1 + digits))
        };
        let (thousands, years, used) =
            parse().ok_or_else(|| err!(INVALID_DATETIME_FORMAT, "invalid value \"{rest}\" for \"Y,YYY\""))?;
        let year = i32::try_from(thousands * 1000 + years)
            .map_err(|_| err!(DATETIME_FIELD_OVERFLOW, "value for \"Y,YYY\" in source string is out of range"))?;
        set(&mut self.values.year, year, &p.name)?;
        self.values.year_digits = 4;
        self.at += used;
        self.skip_ordinal(p);
        Ok(())
    }

    /// Finds the first entry that the text starts with, in any case, not the longest.
    fn word(&mut self, words: &[&str], name: &str) -> Result<i32> {
        let rest = self.rest();
        let matches = |word: &&str| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        match words.iter().position(matches) {
            Some(at) => {
                self.at += words[at].len();
                Ok(at as i32)
            }
            None => {
                let end = rest.bytes().position(is_space).unwrap_or(rest.len());
                Err(err!(INVALID_DATETIME_FORMAT, "invalid value \"{}\" for \"{name}\"", &rest[..end])
                    .detail("The given value did not match any of the allowed values for this field."))
            }
        }
    }

    /// An integer of exactly `width` characters, or of any length when it is `free`; and how many characters it took.
    fn integer(&mut self, p: &TemplatePattern<DateKey>, width: usize, free: bool) -> Result<(i32, usize)> {
        let name = p.name.as_str();
        let start = self.at;
        while self.rest().bytes().next().is_some_and(is_space) {
            self.at += 1;
        }
        let rest = self.rest();
        let copy: &str = rest.char_indices().nth(width).map_or(rest, |(end, _)| &rest[..end]);
        let source = if p.fill || free { rest } else { copy };
        if !(p.fill || free) && rest.len() < width {
            return Err(err!(INVALID_DATETIME_FORMAT, "source string too short for \"{name}\" formatting field")
                .detail(format!("Field requires {width} characters, but only {} remain.", rest.len()))
                .hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        let (value, used) = leading(source);
        if !(p.fill || free) && used > 0 && used < width {
            return Err(err!(INVALID_DATETIME_FORMAT, "invalid value \"{copy}\" for \"{name}\"")
                .detail(format!("Field requires {width} characters, but only {used} could be parsed."))
                .hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        self.at += used;
        if used == 0 {
            return Err(
                err!(INVALID_DATETIME_FORMAT, "invalid value \"{copy}\" for \"{name}\"").detail("Value must be an integer.")
            );
        }
        let value = value.and_then(|v| i32::try_from(v).ok()).ok_or_else(|| {
            err!(DATETIME_FIELD_OVERFLOW, "value for \"{name}\" in source string is out of range")
                .detail("Value must be in the range -2147483648 to 2147483647.")
        })?;
        Ok((value, self.at - start))
    }

    fn zone(&mut self, p: &TemplatePattern<DateKey>, free: bool) -> Result<()> {
        let name = p.name.as_str();
        if p.key == DateKey::ZoneMinute {
            if self.values.zone_sign == 0 {
                self.values.zone_sign = 1;
            }
            let (value, _) = self.integer(p, 2, free)?;
            return set(&mut self.values.zone_minute, value, name);
        }
        if p.key == DateKey::Zone {
            let rest = self.rest();
            let letters = rest.bytes().take(10).take_while(u8::is_ascii_alphabetic).count();
            for length in (1..=letters).rev() {
                let lower = rest[..length].to_ascii_lowercase();
                if let Some(meaning) = zone_abbreviation(&lower, self.session_zone) {
                    self.at += length;
                    self.values.zone_sign = 0;
                    self.values.zone = Some(match meaning {
                        Abbreviation::Fixed(offset, _) => ZoneRead::Fixed(offset),
                        Abbreviation::Dynamic(zone) => ZoneRead::Dynamic(zone, lower),
                    });
                    return Ok(());
                }
            }
            if letters > 0 {
                return Err(err!(INVALID_DATETIME_FORMAT, "invalid value \"{rest}\" for \"{name}\"")
                    .detail("Time zone abbreviation is not recognized."));
            }
        }
        let rest = self.rest();
        self.values.zone_sign = match rest.bytes().next() {
            Some(b'+' | b' ') => 1,
            Some(b'-') => -1,
            // A minus sign may have been skipped as a separator.
            _ if self.extra_skip > 0 && self.text[..self.at].ends_with('-') => -1,
            _ => 1,
        };
        if rest.starts_with(['+', '-', ' ']) {
            self.at += 1;
        }
        let (hour, _) = self.integer(p, 2, free)?;
        set(&mut self.values.zone_hour, hour, name)?;
        if p.key != DateKey::ZoneHour && self.rest().starts_with(':') {
            self.at += 1;
            let (minute, _) = self.integer(p, 2, free)?;
            set(&mut self.values.zone_minute, minute, name)?;
        }
        Ok(())
    }
}

/// The result of C's strtol: the value (`None`: too large) and the characters used.
fn leading(text: &str) -> (Option<i64>, usize) {
    let bytes = text.as_bytes();
    let spaces = bytes.iter().take_while(|c| is_space(**c)).count();
    let sign = usize::from(matches!(bytes.get(spaces), Some(b'+' | b'-')));
    let digits = bytes[spaces + sign..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return (Some(0), 0);
    }
    let end = spaces + sign + digits;
    (text[spaces..end].parse().ok(), end)
}

/// Whether the template's next element cannot be a digit of the field.
fn next_is_separator(pattern: &TemplatePattern<DateKey>, next: Option<&FormatNode<DateKey>>) -> bool {
    if pattern.ordinal.is_some() {
        return true;
    }
    match next {
        None => true,
        Some(FormatNode::Key(p)) => !p.key.is_digits(),
        Some(FormatNode::Separator(c) | FormatNode::Space(c) | FormatNode::Text(c)) => !c.is_ascii_digit(),
    }
}

fn overflow(text: &str) -> DbError {
    DateTimeError::FieldOverflow.into_error(text, "timestamp")
}

impl DateValues {
    /// Puts the values together.
    fn resolve(mut self, text: &str) -> Result<DateTimeFields> {
        let mut civil = Civil { month: 1, day: 1, ..Civil::default() };
        self.clock(&mut civil)?;
        let mut dated = self.resolve_year(&mut civil, text)?;
        let iso = self.iso == Some(true);
        if self.julian != 0 {
            (civil.year, civil.month, civil.day) = date_of_julian(self.julian);
            dated = true;
        }
        if self.week != 0 && iso {
            let monday = i64::from(iso_year_start(civil.year)) + (i64::from(self.week) - 1) * 7;
            let days = match self.weekday {
                0 => 0,
                1 => 6,
                weekday => weekday - 2,
            };
            let julian = i32::try_from(monday + i64::from(days)).map_err(|_| overflow(text))?;
            (civil.year, civil.month, civil.day) = date_of_julian(julian);
            dated = true;
        } else if self.week != 0 {
            let day = self.week.checked_sub(1).and_then(|w| w.checked_mul(7)).and_then(|d| d.checked_add(1));
            self.day_of_year = day.ok_or_else(|| overflow(text))?;
        }
        if self.week_of_month != 0 {
            let day = self.week_of_month.checked_sub(1).and_then(|w| w.checked_mul(7)).and_then(|d| d.checked_add(1));
            self.day = day.ok_or_else(|| overflow(text))?;
        }
        if self.day != 0 {
            (civil.day, dated) = (self.day, true);
        }
        if self.month != 0 {
            (civil.month, dated) = (self.month, true);
        }
        if self.day_of_year != 0 && (civil.month <= 1 || civil.day <= 1) {
            self.resolve_day_of_year(&mut civil, iso)?;
            dated = true;
        }
        let micros = self.millis.checked_mul(1000).and_then(|m| m.checked_add(self.micros));
        civil.micros = micros.ok_or_else(|| overflow(text))?;
        let date_is_valid =
            (1..=12).contains(&civil.month) && civil.day >= 1 && civil.day <= days_of_month(civil.year, civil.month);
        let time_is_valid = (0..24).contains(&civil.hour)
            && (0..60).contains(&civil.minute)
            && (0..60).contains(&civil.second)
            && (0..1_000_000).contains(&civil.micros);
        if (dated && !date_is_valid) || !time_is_valid {
            return Err(overflow(text));
        }
        let offset = self.offset(&civil, text)?;
        Ok(DateTimeFields { civil, offset, precision: self.precision })
    }

    fn clock(&self, civil: &mut Civil) -> Result<()> {
        if self.seconds_of_day != 0 {
            civil.hour = self.seconds_of_day / 3600;
            civil.minute = self.seconds_of_day / 60 % 60;
            civil.second = self.seconds_of_day % 60;
        }
        for (slot, value) in [(&mut civil.second, self.second), (&mut civil.minute, self.minute), (&mut civil.hour, self.hour)] {
            if value != 0 {
                *slot = value;
            }
        }
        if self.twelve_hours {
            if !(1..=12).contains(&civil.hour) {
                return Err(err!(INVALID_DATETIME_FORMAT, "hour \"{}\" is invalid for the 12-hour clock", civil.hour)
                    .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            civil.hour = civil.hour % 12 + if self.pm != 0 { 12 } else { 0 };
        }
        Ok(())
    }

    /// Sets the year from year, century and era; whether there was any.
    fn resolve_year(&self, civil: &mut Civil, text: &str) -> Result<bool> {
        let bc = self.before_christ != 0;
        let century = i64::from(if bc { -self.century } else { self.century });
        let year = if self.year != 0 && self.century != 0 && self.year_digits <= 2 {
            match i64::from(self.year % 100) {
                0 => century * 100 + i64::from(century < 0),
                year if century >= 0 => year + (century - 1) * 100,
                year => (century + 1) * 100 - year + 1,
            }
        } else if self.year != 0 {
            let year = i64::from(if bc { -self.year } else { self.year });
            year + i64::from(year < 0)
        } else if self.century != 0 {
            if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 }
        } else {
            return Ok(false);
        };
        civil.year = i32::try_from(year).map_err(|_| overflow(text))?;
        // Only a month or day, once known, can be out of range: the defaults are not.
        Ok(false)
    }

    fn resolve_day_of_year(&self, civil: &mut Civil, iso: bool) -> Result<()> {
        if civil.year == 0 && self.before_christ == 0 {
            return Err(err!(INVALID_DATETIME_FORMAT, "cannot calculate day of year without year information"));
        }
        if iso {
            let julian = iso_year_start(civil.year).saturating_add(self.day_of_year - 1);
            (civil.year, civil.month, civil.day) = date_of_julian(julian);
            return Ok(());
        }
        let mut month = 1;
        let mut day = self.day_of_year;
        while month <= 12 && day > days_of_month(civil.year, month) {
            day -= days_of_month(civil.year, month);
            month += 1;
        }
        if civil.month <= 1 {
            civil.month = month;
        }
        if civil.day <= 1 {
            civil.day = day;
        }
        debug_assert!(julian_of_date(civil.year, 1, 1) <= julian_of_date(civil.year, 12, 31));
        Ok(())
    }

    fn offset(&self, civil: &Civil, text: &str) -> Result<Option<i32>> {
        if self.zone_sign != 0 {
            if !(0..=15).contains(&self.zone_hour) || !(0..60).contains(&self.zone_minute) {
                return Err(DateTimeError::OffsetOverflow.into_error(text, "timestamp"));
            }
            return Ok(Some(self.zone_sign * (self.zone_hour * 60 + self.zone_minute) * 60));
        }
        Ok(self.zone.as_ref().map(|zone| match zone {
            ZoneRead::Fixed(offset) => *offset,
            ZoneRead::Dynamic(zone, abbreviation) => dynamic_offset(civil.local_seconds(), abbreviation, zone),
        }))
    }
}
