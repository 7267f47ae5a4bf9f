//! Reads dates, times and timestamps as PostgreSQL does: fields in any sensible order, each interpreted by its shape and by the
//! fields before it.

use super::abbreviations::{self, Meaning};
use super::calendar::{Civil, date_of_julian, days_of_month, julian_of_date};
use super::keywords::{DateKeyword, date_keyword};
use super::scan::{DateTimeField, Shape, fraction, fraction_micros, leading_int, parse_clock, scan};
use super::{DateOrder, MICROS_PER_DAY, to_local, unix_seconds};
use crate::timezone::{Zone, ZoneAbbreviation};
use crate::{DbError, err};

/// Longest text, field separators included.
const LENGTH_MAX: usize = 153;
/// Zone offsets are less than 16 hours.
const OFFSET_HOURS_MAX: i32 = 15;

/// The errors of date or time text.
#[derive(Clone, Debug, PartialEq)]
pub enum DateTimeError {
    BadFormat,
    FieldOverflow,
    /// A month or day that another DateStyle might accept.
    MonthDayOverflow,
    IntervalOverflow,
    OffsetOverflow,
    UnknownZone(String),
}

impl DateTimeError {
    /// The error that PostgreSQL raises for `text` as input of `type_name`.
    pub fn into_error(self, text: &str, type_name: &str) -> DbError {
        match self {
            DateTimeError::BadFormat => err!(INVALID_DATETIME_FORMAT, "invalid input syntax for type {type_name}: \"{text}\""),
            DateTimeError::FieldOverflow => field_overflow(text),
            DateTimeError::MonthDayOverflow => field_overflow(text).hint("Perhaps you need a different \"DateStyle\" setting."),
            DateTimeError::IntervalOverflow => {
                err!(INTERVAL_FIELD_OVERFLOW, "interval field value out of range: \"{text}\"")
            }
            DateTimeError::OffsetOverflow => {
                err!(INVALID_TIME_ZONE_DISPLACEMENT_VALUE, "time zone displacement out of range: \"{text}\"")
            }
            DateTimeError::UnknownZone(zone) => err!(INVALID_PARAMETER_VALUE, "time zone \"{zone}\" not recognized"),
        }
    }
}

fn field_overflow(text: &str) -> DbError {
    err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
}

/// The settings on which the meaning of date text depends.
#[derive(Clone)]
pub struct ParseSettings<'a> {
    pub order: DateOrder,
    pub zone: &'a Zone,
    /// Start of the transaction, microseconds since 2000-01-01 UTC.
    pub now: &'a dyn Fn() -> i64,
}

/// A date and time as read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParsedTimestamp {
    /// Wall-clock fields and the zone's offset, seconds east.
    Civil(Civil, i32),
    Epoch,
    Infinity,
    NegativeInfinity,
}

/// Reads text that has a date, and perhaps a time and zone.
pub fn parse_date_time(text: &str, settings: &ParseSettings<'_>) -> Result<ParsedTimestamp, DateTimeError> {
    let fields = scan(text, LENGTH_MAX)?;
    let mut parser = DateTimeParser::new(settings, false);
    for field in &fields {
        parser.date_time_field(field)?;
    }
    parser.finish_date_time()
}

/// Reads text that has a time, and perhaps a zone (and a date that decides the zone's offset).
pub fn parse_time(text: &str, settings: &ParseSettings<'_>) -> Result<(Civil, i32), DateTimeError> {
    let fields = scan(text, LENGTH_MAX)?;
    let mut parser = DateTimeParser::new(settings, true);
    let mut shapes: Vec<Shape> = fields.iter().map(|f| f.shape).collect();
    for (i, field) in fields.iter().enumerate() {
        let last = shapes.last().copied();
        let second = shapes.get(1).copied();
        let date_allowed = i == 0 && fields.len() >= 2;
        let new_shape = parser.time_field(field, date_allowed, last, second)?;
        shapes[i] = new_shape.unwrap_or(field.shape);
    }
    parser.finish_time()
}

/// A numeric zone offset, `+hh[:mm[:ss]]` or `+hhmm`, in seconds east.
pub fn parse_offset(text: &str) -> Result<i32, DateTimeError> {
    let negative = match text.as_bytes().first() {
        Some(b'+') => false,
        Some(b'-') => true,
        _ => return Err(DateTimeError::BadFormat),
    };
    let part = |text: &'_ str| -> Result<(i32, usize), DateTimeError> {
        let (value, rest) = leading_int(text);
        Ok((value.ok_or(DateTimeError::OffsetOverflow)?, text.len() - rest.len()))
    };
    let body = &text[1..];
    let (mut hours, used) = part(body)?;
    let mut rest = &body[used..];
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(more) = rest.strip_prefix(':') {
        let (value, used) = part(more)?;
        minutes = value;
        rest = &more[used..];
        if let Some(more) = rest.strip_prefix(':') {
            let (value, used) = part(more)?;
            seconds = value;
            rest = &more[used..];
        }
    } else if rest.is_empty() && text.len() > 3 {
        minutes = hours % 100;
        hours /= 100;
    }
    let in_range = (0..=OFFSET_HOURS_MAX).contains(&hours) && (0..60).contains(&minutes) && (0..60).contains(&seconds);
    if !in_range {
        return Err(DateTimeError::OffsetOverflow);
    }
    if !rest.is_empty() {
        return Err(DateTimeError::BadFormat);
    }
    let east = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { -east } else { east })
}

/// The meaning of a zone abbreviation in a session.
#[derive(Clone, Debug)]
pub enum Abbreviation {
    /// Seconds east, daylight saving.
    Fixed(i32, bool),
    /// Depends on the time: the zone that decides.
    Dynamic(Zone),
}

/// Looks up a lower-case abbreviation: the session's zone first, then the common table.
pub fn zone_abbreviation(lower: &str, session_zone: &Zone) -> Option<Abbreviation> {
    match session_zone.abbreviation(&lower.to_ascii_uppercase()) {
        Some(ZoneAbbreviation::Fixed(offset, dst)) => return Some(Abbreviation::Fixed(offset, dst)),
        Some(ZoneAbbreviation::Varying) => return Some(Abbreviation::Dynamic(session_zone.clone())),
        None => {}
    }
    match abbreviations::lookup(lower.get(..10).unwrap_or(lower))? {
        Meaning::Fixed(offset, dst) => Some(Abbreviation::Fixed(offset, dst)),
        Meaning::Zone(name) => Zone::lookup(name).map(Abbreviation::Dynamic),
    }
}

/// The offset at a local time that an abbreviation of varying meaning had: the abbreviation's own offset where the zone
/// ever used it, even at a time of year when it did not apply.
pub fn dynamic_offset(local_seconds: i64, abbreviation: &str, zone: &Zone) -> i32 {
    let offset = zone.offset_of_local(local_seconds);
    let at = local_seconds - i64::from(offset);
    zone.abbreviation_offset_at(&abbreviation.to_ascii_uppercase(), at).map_or(offset, |(offset, _)| offset)
}

// Which fields have been seen.
const YEAR: u32 = 1;
const MONTH: u32 = 2;
const DAY: u32 = 4;
const DATE: u32 = YEAR | MONTH | DAY;
const DAY_OF_YEAR: u32 = 8;
const TIME: u32 = 16;
const ZONE: u32 = 32;
const DAYLIGHT: u32 = 64;
const DAYLIGHT_MODIFIER: u32 = 128;
const MERIDIEM: u32 = 256;
const ERA: u32 = 512;
const WEEKDAY: u32 = 1024;

/// A label that names the next field.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    Julian,
    Time,
    Other,
}

/// A zone whose offset is known only when the date is.
enum LateZone {
    Named(Zone),
    Abbreviation(Zone, String),
}

struct DateTimeParser<'a> {
    settings: &'a ParseSettings<'a>,
    /// Only a time is wanted.
    time_only: bool,
    seen: u32,
    civil: Civil,
    day_of_year: i32,
    /// Seconds east, once `seen` has ZONE.
    offset: i32,
    late_zone: Option<LateZone>,
    label: Option<Label>,
    special: Option<ParsedTimestamp>,
    pm: Option<bool>,
    before_christ: bool,
    julian: bool,
    two_digit_year: bool,
    text_month: bool,
}

type Step<T = u32> = Result<T, DateTimeError>;

impl<'a> DateTimeParser<'a> {
    fn new(settings: &'a ParseSettings<'a>, time_only: bool) -> DateTimeParser<'a> {
        DateTimeParser {
            settings,
            time_only,
            seen: 0,
            civil: Civil::default(),
            day_of_year: 0,
            offset: 0,
            late_zone: None,
            label: None,
            special: None,
            pm: None,
            before_christ: false,
            julian: false,
            two_digit_year: false,
            text_month: false,
        }
    }

    /// Adds the parts that a field has set; none may come twice.
    fn mark(&mut self, found: u32) -> Step<()> {
        if self.seen & found != 0 {
            return Err(DateTimeError::BadFormat);
        }
        self.seen |= found;
        Ok(())
    }

    fn now_local(&self) -> Civil {
        let now = (self.settings.now)();
        let local = to_local(now, self.settings.zone).unwrap_or(now);
        Civil::of_timestamp(local).unwrap_or_default()
    }

    fn date_time_field(&mut self, field: &DateTimeField) -> Step<()> {
        let text = field.text.as_str();
        let found = match field.shape {
            Shape::Date if self.label == Some(Label::Julian) => {
                self.label = None;
                let rest = self.julian_day(text)?;
                self.offset = parse_offset(rest)?;
                DATE | TIME | ZONE
            }
            Shape::Date if self.label.is_some() || self.seen & (MONTH | DAY) == (MONTH | DAY) => {
                if self.label.is_some() || text.as_bytes()[0].is_ascii_digit() {
                    if self.label.take().is_some_and(|label| label != Label::Time) || self.seen & TIME != 0 {
                        return Err(DateTimeError::BadFormat);
                    }
                    self.time_with_offset(text, self.seen)?
                } else {
                    self.named_zone(text)?
                }
            }
            Shape::Date => self.date(text)?,
            Shape::Time => {
                if self.label.take().is_some_and(|label| label != Label::Time) {
                    return Err(DateTimeError::BadFormat);
                }
                self.time(text)?;
                if self.time_overflows() {
                    return Err(DateTimeError::FieldOverflow);
                }
                TIME
            }
            Shape::Signed => {
                self.offset = parse_offset(text)?;
                ZONE
            }
            Shape::Number => match self.label.take() {
                Some(label) => self.labelled_number(label, text)?,
                None => self.unlabelled_number(text)?,
            },
            Shape::Word | Shape::SignedWord => self.word(text)?,
        };
        self.mark(found)
    }

    /// Returns the field's new shape when its content has decided it.
    fn time_field(
        &mut self,
        field: &DateTimeField,
        date_allowed: bool,
        last: Option<Shape>,
        second: Option<Shape>,
    ) -> Step<Option<Shape>> {
        let text = field.text.as_str();
        let mut shape = None;
        let found = match field.shape {
            Shape::Date => {
                if date_allowed && (last == Some(Shape::Date) || second == Some(Shape::Time)) {
                    self.date(text)?
                } else if text.as_bytes()[0].is_ascii_digit() {
                    if self.seen & TIME != 0 {
                        return Err(DateTimeError::BadFormat);
                    }
                    shape = Some(Shape::Time);
                    self.time_with_offset(text, self.seen | DATE)?
                } else {
                    shape = Some(Shape::Signed);
                    self.named_zone(text)?
                }
            }
            Shape::Time => {
                if self.label.take().is_some_and(|label| label != Label::Time) {
                    return Err(DateTimeError::BadFormat);
                }
                self.time(text)?;
                TIME
            }
            Shape::Signed => {
                self.offset = parse_offset(text)?;
                ZONE
            }
            Shape::Number => match self.label.take() {
                Some(label) => self.labelled_number(label, text)?,
                None => match text.find('.') {
                    Some(_) if date_allowed && last == Some(Shape::Date) => self.date(text)?,
                    Some(point) if point > 2 => self.number_field(text, self.seen | DATE)?,
                    Some(_) => return Err(DateTimeError::BadFormat),
                    None if text.len() > 4 => self.number_field(text, self.seen | DATE)?,
                    None => self.number(text, self.seen | DATE, false)?,
                },
            },
            Shape::Word | Shape::SignedWord => self.word(text)?,
        };
        self.mark(found)?;
        Ok(shape)
    }

    /// Sets the date of a Julian day; returns the text after its digits.
    fn julian_day<'t>(&mut self, text: &'t str) -> Step<&'t str> {
        let (value, rest) = leading_int(text);
        let day = value.filter(|day| *day >= 0).ok_or(DateTimeError::FieldOverflow)?;
        (self.civil.year, self.civil.month, self.civil.day) = date_of_julian(day);
        self.julian = true;
        Ok(rest)
    }

    /// A run-together time with a zone offset, such as `040506-08`.
    fn time_with_offset(&mut self, text: &str, seen: u32) -> Step {
        let minus = text.find('-').ok_or(DateTimeError::BadFormat)?;
        self.offset = parse_offset(&text[minus..])?;
        Ok(self.number_field(&text[..minus], seen)? | ZONE)
    }

    fn named_zone(&mut self, text: &str) -> Step {
        let zone = Zone::lookup(text).ok_or_else(|| DateTimeError::UnknownZone(text.to_string()))?;
        self.late_zone = Some(LateZone::Named(zone));
        Ok(ZONE)
    }

    fn labelled_number(&mut self, label: Label, text: &str) -> Step {
        let (value, rest) = leading_int(text);
        if value.is_none() {
            return Err(DateTimeError::FieldOverflow);
        }
        if !rest.is_empty() && !rest.starts_with('.') {
            return Err(DateTimeError::BadFormat);
        }
        match label {
            Label::Julian => {
                self.julian_day(text)?;
                if rest.is_empty() {
                    return Ok(DATE);
                }
                let time = (fraction(rest)? * MICROS_PER_DAY as f64) as i64;
                let of_day = Civil::of_time(time);
                let Civil { hour, minute, second, micros, .. } = of_day;
                self.civil = Civil { hour, minute, second, micros, ..self.civil };
                Ok(DATE | TIME)
            }
            Label::Time => match self.number_field(text, self.seen | DATE)? {
                TIME => Ok(TIME),
                _ => Err(DateTimeError::BadFormat),
            },
            Label::Other => Err(DateTimeError::BadFormat),
        }
    }

    fn unlabelled_number(&mut self, text: &str) -> Step {
        match text.find('.') {
            Some(_) if self.seen & DATE == 0 => self.date(text),
            Some(point) if point > 2 => self.number_field(text, self.seen),
            _ if text.len() >= 6 && (self.seen & DATE == 0 || self.seen & TIME == 0) => self.number_field(text, self.seen),
            _ => self.number(text, self.seen, self.text_month),
        }
    }

    fn word(&mut self, text: &str) -> Step {
        if let Some(meaning) = zone_abbreviation(text, self.settings.zone) {
            return Ok(match meaning {
                Abbreviation::Fixed(offset, dst) => {
                    self.offset = offset;
                    if dst { ZONE | DAYLIGHT } else { ZONE }
                }
                Abbreviation::Dynamic(zone) => {
                    self.late_zone = Some(LateZone::Abbreviation(zone, text.to_string()));
                    ZONE
                }
            });
        }
        let Some(keyword) = date_keyword(text) else {
            let zone = Zone::lookup(text).ok_or(DateTimeError::BadFormat)?;
            self.late_zone = Some(LateZone::Named(zone));
            return Ok(ZONE);
        };
        if self.time_only { self.time_keyword(keyword) } else { self.keyword(keyword) }
    }

    fn keyword(&mut self, keyword: DateKeyword) -> Step {
        let (found, special) = match keyword {
            DateKeyword::Epoch => (DATE | TIME | ZONE, Some(ParsedTimestamp::Epoch)),
            DateKeyword::Infinity => (DATE | TIME | ZONE, Some(ParsedTimestamp::Infinity)),
            DateKeyword::NegativeInfinity => (DATE | TIME | ZONE, Some(ParsedTimestamp::NegativeInfinity)),
            DateKeyword::Now => {
                self.civil = self.now_local();
                self.offset = self.settings.zone.offset_at(unix_seconds((self.settings.now)()));
                (DATE | TIME | ZONE, None)
            }
            DateKeyword::Today => (self.relative_day(0), None),
            DateKeyword::Tomorrow => (self.relative_day(1), None),
            DateKeyword::Yesterday => (self.relative_day(-1), None),
            DateKeyword::Month(month) => return Ok(self.month(month)),
            DateKeyword::Weekday => return Ok(WEEKDAY),
            DateKeyword::IsoTime => {
                // A date must have come before.
                if self.seen & DATE != DATE {
                    return Err(DateTimeError::BadFormat);
                }
                return self.set_label(Label::Time);
            }
            other => return self.common_keyword(other),
        };
        self.special = special;
        Ok(found)
    }

    fn time_keyword(&mut self, keyword: DateKeyword) -> Step {
        match keyword {
            DateKeyword::Now => {
                let Civil { hour, minute, second, micros, .. } = self.now_local();
                self.civil = Civil { hour, minute, second, micros, ..self.civil };
                Ok(TIME)
            }
            DateKeyword::IsoTime => self.set_label(Label::Time),
            DateKeyword::Epoch
            | DateKeyword::Infinity
            | DateKeyword::NegativeInfinity
            | DateKeyword::Today
            | DateKeyword::Tomorrow
            | DateKeyword::Yesterday
            | DateKeyword::Month(_)
            | DateKeyword::Weekday => Err(DateTimeError::BadFormat),
            other => self.common_keyword(other),
        }
    }

    fn common_keyword(&mut self, keyword: DateKeyword) -> Step {
        match keyword {
            DateKeyword::Midnight => {
                self.civil = Civil { hour: 0, minute: 0, second: 0, ..self.civil };
                self.offset = 0;
                Ok(TIME | ZONE)
            }
            DateKeyword::AnnoDomini | DateKeyword::BeforeChrist => {
                self.before_christ = keyword == DateKeyword::BeforeChrist;
                Ok(ERA)
            }
            DateKeyword::Am | DateKeyword::Pm => {
                self.pm = Some(keyword == DateKeyword::Pm);
                Ok(MERIDIEM)
            }
            DateKeyword::DaylightSaving => {
                self.offset += 3600;
                Ok(DAYLIGHT_MODIFIER | DAYLIGHT)
            }
            DateKeyword::Julian => self.set_label(Label::Julian),
            DateKeyword::OtherUnit => self.set_label(Label::Other),
            DateKeyword::Ignored => Ok(0),
            _ => Err(DateTimeError::BadFormat),
        }
    }

    fn set_label(&mut self, label: Label) -> Step {
        if self.label.replace(label).is_some() {
            return Err(DateTimeError::BadFormat);
        }
        Ok(0)
    }

    fn relative_day(&mut self, days: i32) -> u32 {
        let today = self.now_local().julian();
        (self.civil.year, self.civil.month, self.civil.day) = date_of_julian(today + days);
        DATE
    }

    fn month(&mut self, month: i32) -> u32 {
        let mut found = MONTH;
        // A number taken for the month was the day.
        if self.seen & MONTH != 0 && !self.text_month && self.seen & DAY == 0 && (1..=31).contains(&self.civil.month) {
            self.civil.day = self.civil.month;
            found = DAY;
        }
        self.text_month = true;
        self.civil.month = month;
        found
    }

    /// A date with delimiters.
    fn date(&mut self, text: &str) -> Step {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() && parts.len() < 25 {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let Some(first) = rest.bytes().next() else { return Err(DateTimeError::BadFormat) };
            let end = rest
                .bytes()
                .position(|c| if first.is_ascii_digit() { !c.is_ascii_digit() } else { !c.is_ascii_alphabetic() })
                .unwrap_or(rest.len());
            parts.push(&rest[..end]);
            // Any delimiter is skipped: a letter right after digits is lost too.
            rest = rest.get(end + 1..).unwrap_or("");
        }
        let mut seen = self.seen;
        let mut found = 0;
        let mut text_month = false;
        for part in parts.iter().filter(|p| p.as_bytes()[0].is_ascii_alphabetic()) {
            match date_keyword(part) {
                Some(DateKeyword::Ignored) => continue,
                Some(DateKeyword::Month(month)) if seen & MONTH == 0 => self.civil.month = month,
                _ => return Err(DateTimeError::BadFormat),
            }
            text_month = true;
            seen |= MONTH;
            found |= MONTH;
        }
        for part in parts.iter().filter(|p| p.as_bytes()[0].is_ascii_digit()) {
            let one = self.number(part, seen, text_month)?;
            if seen & one != 0 {
                return Err(DateTimeError::BadFormat);
            }
            seen |= one;
            found |= one;
        }
        if seen & !(DAY_OF_YEAR | ZONE) & (DATE | TIME | DAYLIGHT | DAYLIGHT_MODIFIER | MERIDIEM | ERA | WEEKDAY) != DATE {
            return Err(DateTimeError::BadFormat);
        }
        Ok(found)
    }

    fn time(&mut self, text: &str) -> Step<()> {
        let parts = parse_clock(text, false)?;
        self.civil.hour = i32::try_from(parts.hour).map_err(|_| DateTimeError::FieldOverflow)?;
        (self.civil.minute, self.civil.second, self.civil.micros) = (parts.minute, parts.second, parts.micros);
        Ok(())
    }

    fn time_overflows(&self) -> bool {
        let Civil { hour, minute, second, micros, .. } = self.civil;
        !(0..=24).contains(&hour)
            || !(0..60).contains(&minute)
            || !(0..=60).contains(&second)
            || !(0..=1_000_000).contains(&micros)
            || self.civil.time() > MICROS_PER_DAY
    }

    /// A plain number, interpreted by the missing parts.
    fn number(&mut self, text: &str, seen: u32, text_month: bool) -> Step {
        let (value, rest) = leading_int(text);
        let value = value.ok_or(DateTimeError::FieldOverflow)?;
        let digits = text.len() - rest.len();
        if digits == 0 {
            return Err(DateTimeError::BadFormat);
        }
        if rest.starts_with('.') {
            if digits > 2 {
                return self.number_field(text, seen | DATE);
            }
            self.civil.micros = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            return Err(DateTimeError::BadFormat);
        }
        let length = text.len();
        if length == 3 && seen & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let year_first = length >= 3 || self.settings.order == DateOrder::Ymd;
        const YEAR_MONTH: u32 = YEAR | MONTH;
        const MONTH_DAY: u32 = MONTH | DAY;
        let found = match seen & DATE {
            0 if year_first => YEAR,
            0 if self.settings.order == DateOrder::Dmy => DAY,
            0 => MONTH,
            YEAR | DAY => MONTH,
            MONTH if text_month && year_first => YEAR,
            MONTH => DAY,
            YEAR_MONTH => {
                if text_month && length >= 3 && self.two_digit_year {
                    // The number taken for a year was the day.
                    self.civil.day = self.civil.year;
                    self.civil.year = value;
                    self.two_digit_year = false;
                    return Ok(DAY);
                }
                DAY
            }
            MONTH_DAY => YEAR,
            DATE => return self.number_field(text, seen),
            _ => return Err(DateTimeError::BadFormat),
        };
        match found {
            YEAR => {
                self.civil.year = value;
                self.two_digit_year = length <= 2;
            }
            MONTH => self.civil.month = value,
            _ => self.civil.day = value,
        }
        Ok(found)
    }

    /// A run-together date (`yymmdd`) or time (`hhmmss`, `hhmm`).
    fn number_field(&mut self, text: &str, seen: u32) -> Step {
        if !text.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
            return Err(DateTimeError::BadFormat);
        }
        let int = |digits: &str| leading_int(digits).0.unwrap_or(-1);
        let digits = match text.find('.') {
            Some(point) => {
                self.civil.micros = fraction_micros(&text[point..])?;
                &text[..point]
            }
            None if seen & DATE != DATE && text.len() >= 6 => {
                let n = text.len();
                self.civil.day = int(&text[n - 2..]);
                self.civil.month = int(&text[n - 4..n - 2]);
                self.civil.year = int(&text[..n - 4]);
                if n == 6 {
                    self.two_digit_year = true;
                }
                return Ok(DATE);
            }
            None => text,
        };
        if seen & TIME == 0 && matches!(digits.len(), 4 | 6) {
            self.civil.second = if digits.len() == 6 { int(&digits[4..]) } else { 0 };
            self.civil.minute = int(&digits[2..4]);
            self.civil.hour = int(&digits[..2]);
            return Ok(TIME);
        }
        Err(DateTimeError::BadFormat)
    }

    /// Makes a calendar date of year, month, day, day of year and era.
    fn validate_date(&mut self) -> Step<()> {
        if self.seen & YEAR != 0 && !self.julian {
            if self.two_digit_year && !self.before_christ {
                match self.civil.year {
                    ..0 => return Err(DateTimeError::FieldOverflow),
                    0..70 => self.civil.year += 2000,
                    70..100 => self.civil.year += 1900,
                    _ => {}
                }
            } else if self.civil.year <= 0 {
                return Err(DateTimeError::FieldOverflow);
            } else if self.before_christ {
                self.civil.year = 1 - self.civil.year;
            }
        }
        if self.seen & DAY_OF_YEAR != 0 {
            let julian = julian_of_date(self.civil.year, 1, 1) + self.day_of_year - 1;
            (self.civil.year, self.civil.month, self.civil.day) = date_of_julian(julian);
        }
        if self.seen & MONTH != 0 && !(1..=12).contains(&self.civil.month) {
            return Err(DateTimeError::MonthDayOverflow);
        }
        if self.seen & DAY != 0 && !(1..=31).contains(&self.civil.day) {
            return Err(DateTimeError::MonthDayOverflow);
        }
        if self.seen & DATE == DATE && self.civil.day > days_of_month(self.civil.year, self.civil.month) {
            return Err(DateTimeError::FieldOverflow);
        }
        Ok(())
    }

    fn apply_meridiem(&mut self) -> Step<()> {
        let Some(pm) = self.pm else { return Ok(()) };
        match self.civil.hour {
            13.. => return Err(DateTimeError::FieldOverflow),
            12 if !pm => self.civil.hour = 0,
            12 => {}
            _ if pm => self.civil.hour += 12,
            _ => {}
        }
        Ok(())
    }

    fn finish_date_time(mut self) -> Result<ParsedTimestamp, DateTimeError> {
        if self.label.is_some() {
            return Err(DateTimeError::BadFormat);
        }
        if let Some(special) = self.special {
            return Ok(special);
        }
        self.validate_date()?;
        self.apply_meridiem()?;
        if self.seen & DATE != DATE {
            return Err(DateTimeError::BadFormat);
        }
        let local = self.civil.local_seconds();
        self.resolve_zone(|_| Ok(local))?;
        Ok(ParsedTimestamp::Civil(self.civil, self.offset))
    }

    fn finish_time(mut self) -> Result<(Civil, i32), DateTimeError> {
        if self.label.is_some() {
            return Err(DateTimeError::BadFormat);
        }
        self.validate_date()?;
        self.apply_meridiem()?;
        if self.time_overflows() {
            return Err(DateTimeError::FieldOverflow);
        }
        if self.seen & TIME == 0 {
            return Err(DateTimeError::BadFormat);
        }
        // A zone needs a date: today, unless the text has one.
        self.resolve_zone(|parser| {
            let civil = match parser.seen & DATE {
                0 if matches!(parser.late_zone, Some(LateZone::Named(_))) => return Err(DateTimeError::BadFormat),
                0 => {
                    let Civil { year, month, day, .. } = parser.now_local();
                    Civil { year, month, day, ..parser.civil }
                }
                DATE => parser.civil,
                _ => return Err(DateTimeError::BadFormat),
            };
            Ok(civil.local_seconds())
        })?;
        Ok((self.civil, self.offset))
    }

    /// Sets `offset` from the zone that the text names, or from the session's.
    fn resolve_zone(&mut self, local: impl Fn(&DateTimeParser<'_>) -> Result<i64, DateTimeError>) -> Step<()> {
        let named = self.late_zone.is_some();
        if self.seen & DAYLIGHT_MODIFIER != 0 && (named || self.seen & ZONE == 0) {
            return Err(DateTimeError::BadFormat);
        }
        self.offset = match &self.late_zone {
            Some(LateZone::Named(zone)) => match zone.constant_offset() {
                Some(offset) if self.time_only => offset,
                _ => zone.offset_of_local(local(self)?),
            },
            Some(LateZone::Abbreviation(zone, abbreviation)) => dynamic_offset(local(self)?, abbreviation, zone),
            None if self.seen & ZONE == 0 => self.settings.zone.offset_of_local(local(self)?),
            None => return Ok(()),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
