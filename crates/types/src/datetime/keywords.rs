//! The words of date, time and interval text, and the unit names of EXTRACT and date_trunc.
//!
//! Words are compared by their first ten characters, as PostgreSQL does ("microseconds" is found as "microsecon").

/// Characters of a word that count.
const LENGTH: usize = 10;

/// A word in a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateKeyword {
    Infinity,
    NegativeInfinity,
    Epoch,
    Now,
    Today,
    Tomorrow,
    Yesterday,
    /// "allballs": midnight UTC.
    Midnight,
    AnnoDomini,
    BeforeChrist,
    Am,
    Pm,
    Month(i32),
    Weekday,
    /// "dst": adds an hour to the zone before it.
    DaylightSaving,
    /// The next field is a Julian day.
    Julian,
    /// "t": the next field is a time.
    IsoTime,
    /// Units that no date has.
    OtherUnit,
    /// "at", "on".
    Ignored,
}

/// Looks up a lower-case word of a date or time.
pub fn date_keyword(word: &str) -> Option<DateKeyword> {
    use DateKeyword::*;
    let word = word.get(..LENGTH).unwrap_or(word);
    Some(match word {
        "infinity" | "+infinity" => Infinity,
        "-infinity" => NegativeInfinity,
        "epoch" => Epoch,
        "now" => Now,
        "today" => Today,
        "tomorrow" => Tomorrow,
        "yesterday" => Yesterday,
        "allballs" => Midnight,
        "ad" => AnnoDomini,
        "bc" => BeforeChrist,
        "am" => Am,
        "pm" => Pm,
        "jan" | "january" => Month(1),
        "feb" | "february" => Month(2),
        "mar" | "march" => Month(3),
        "apr" | "april" => Month(4),
        "may" => Month(5),
        "jun" | "june" => Month(6),
        "jul" | "july" => Month(7),
        "aug" | "august" => Month(8),
        "sep" | "sept" | "september" => Month(9),
        "oct" | "october" => Month(10),
        "nov" | "november" => Month(11),
        "dec" | "december" => Month(12),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds" | "wednesday" | "thu" | "thur"
        | "thurs" | "thursday" | "fri" | "friday" | "sat" | "saturday" => Weekday,
        "dst" => DaylightSaving,
        "j" | "jd" | "julian" => Julian,
        "t" => IsoTime,
        "d" | "dow" | "doy" | "h" | "isodow" | "isoyear" | "m" | "mm" | "s" | "y" => OtherUnit,
        "at" | "on" => Ignored,
        _ => return None,
    })
}

/// A unit of time, as intervals, EXTRACT and date_trunc name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
    Dow,
    IsoDow,
    Doy,
    IsoYear,
    Julian,
    Epoch,
    /// Words that PostgreSQL knows as units but accepts nowhere, except where a date keyword is allowed.
    Reserved(DateKeyword),
}

/// A word in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalKeyword {
    Unit(Unit),
    Ago,
    Ignored,
}

/// Looks up a lower-case word of an interval.
pub fn interval_keyword(word: &str) -> Option<IntervalKeyword> {
    use Unit::*;
    let word = word.get(..LENGTH).unwrap_or(word);
    Some(IntervalKeyword::Unit(match word {
        "@" => return Some(IntervalKeyword::Ignored),
        "ago" => return Some(IntervalKeyword::Ago),
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Microsecond,
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Hour,
        "d" | "day" | "days" => Day,
        "w" | "week" | "weeks" => Week,
        "mon" | "mons" | "month" | "months" => Month,
        "qtr" | "quarter" => Quarter,
        "y" | "yr" | "yrs" | "year" | "years" => Year,
        "dec" | "decs" | "decade" | "decades" => Decade,
        "c" | "cent" | "century" | "centuries" => Century,
        "mil" | "mils" | "millennia" | "millennium" => Millennium,
        "timezone" => Timezone,
        "timezone_h" => TimezoneHour,
        "timezone_m" => TimezoneMinute,
        _ => return None,
    }))
}

/// The unit named in EXTRACT, date_part or date_trunc, in any case; `None` when there is none of that name.
pub fn unit(name: &str) -> Option<Unit> {
    let lower = name.to_ascii_lowercase();
    if let Some(IntervalKeyword::Unit(unit)) = interval_keyword(&lower) {
        return Some(unit);
    }
    let short = lower.get(..LENGTH).unwrap_or(&lower);
    Some(match short {
        "dow" => Unit::Dow,
        "isodow" => Unit::IsoDow,
        "doy" => Unit::Doy,
        "isoyear" => Unit::IsoYear,
        "j" | "jd" | "julian" => Unit::Julian,
        "epoch" => Unit::Epoch,
        _ => match date_keyword(&lower)? {
            keyword @ (DateKeyword::Infinity
            | DateKeyword::NegativeInfinity
            | DateKeyword::Now
            | DateKeyword::Today
            | DateKeyword::Tomorrow
            | DateKeyword::Yesterday
            | DateKeyword::Midnight) => Unit::Reserved(keyword),
            _ => return None,
        },
    })
}

pub const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

pub const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
