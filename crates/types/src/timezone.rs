//! Time zones: the bundled IANA database, POSIX strings and fixed offsets, with PostgreSQL's rules for local times that a
//! transition skips or repeats.
//!
//! Seconds here are since 1970-01-01; "local seconds" are wall-clock time counted as if it were UTC. Offsets are seconds
//! east of Greenwich.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// Seconds in 400 Gregorian years: rules repeat with that period.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// The instants for which the zone rules can be read directly (jiff's year range, with room for an offset).
const SECONDS_MIN: i64 = -377_705_000_000;
const SECONDS_MAX: i64 = 253_402_000_000;
/// Abbreviations are collected from transitions up to 2037-12-31.
const ABBREVIATIONS_UNTIL: i64 = 2_145_830_400;

/// A time zone. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Zone(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    rules: Rules,
    spans: OnceLock<Vec<Span>>,
}

#[derive(Debug)]
enum Rules {
    Fixed(i32, String),
    Tz(TimeZone),
}

/// The rules of a zone at some instant.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalInfo {
    pub offset: i32,
    pub dst: bool,
    pub abbreviation: String,
}

/// A stretch of time with one offset, from `start` on.
#[derive(Debug)]
struct Span {
    start: i64,
    info: LocalInfo,
}

/// The meaning of an abbreviation within a zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ZoneAbbreviation {
    /// Always this offset and daylight-saving flag.
    Fixed(i32, bool),
    /// Different offsets at different times.
    Varying,
}

impl Zone {
    pub fn utc() -> Zone {
        static UTC: OnceLock<Zone> = OnceLock::new();
        UTC.get_or_init(|| Zone::new("UTC".into(), Rules::Fixed(0, "UTC".into()))).clone()
    }

    /// A zone with one offset for all time, named as PostgreSQL names it: `<+05:30>-05:30`.
    pub fn fixed(offset: i32) -> Zone {
        let digits = |seconds: i32| {
            let (h, m, s) = (seconds.abs() / 3600, seconds.abs() / 60 % 60, seconds.abs() % 60);
            match (m, s) {
                (0, 0) => format!("{h:02}"),
                (_, 0) => format!("{h:02}:{m:02}"),
                _ => format!("{h:02}:{m:02}:{s:02}"),
            }
        };
        let (east, west) = if offset >= 0 { ('+', '-') } else { ('-', '+') };
        let abbreviation = format!("{east}{}", digits(offset));
        let name = format!("<{abbreviation}>{west}{}", digits(offset));
        Zone::new(name, Rules::Fixed(offset, abbreviation))
    }

    fn new(name: String, rules: Rules) -> Zone {
        Zone(Arc::new(Inner { name, rules, spans: OnceLock::new() }))
    }

    /// The zone of an IANA name (in any case) or POSIX string; `None` when there is none.
    pub fn lookup(name: &str) -> Option<Zone> {
        thread_local! {
            static CACHE: RefCell<HashMap<Box<str>, Option<Zone>>> = RefCell::new(HashMap::new());
        }
        CACHE.with_borrow_mut(|cache| {
            if let Some(zone) = cache.get(name) {
                return zone.clone();
            }
            // Names come from clients: the cache must not grow without bound.
            if cache.len() > 1000 {
                cache.clear();
            }
            let zone = find(name);
            cache.insert(name.into(), zone.clone());
            zone
        })
    }

    /// The names of all zones of the zone database.
    pub fn names() -> Vec<String> {
        jiff::tz::db().available().map(|name| name.to_string()).collect()
    }

    /// The abbreviations (upper case) that the zone has used, each once, the earliest first.
    pub fn abbreviations(&self) -> Vec<&str> {
        let mut out: Vec<&str> = Vec::new();
        for span in self.spans() {
            if !out.contains(&&*span.info.abbreviation) {
                out.push(&span.info.abbreviation);
            }
        }
        out
    }

    /// The name as the zone database spells it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The rules at an instant.
    pub fn at(&self, seconds: i64) -> LocalInfo {
        match &self.0.rules {
            Rules::Fixed(offset, abbreviation) => LocalInfo { offset: *offset, dst: false, abbreviation: abbreviation.clone() },
            Rules::Tz(tz) => {
                let info = tz.to_offset_info(instant(seconds));
                LocalInfo {
                    offset: info.offset().seconds(),
                    dst: info.dst().is_dst(),
                    abbreviation: info.abbreviation().to_string(),
                }
            }
        }
    }

    /// The offset at an instant.
    pub fn offset_at(&self, seconds: i64) -> i32 {
        match &self.0.rules {
            Rules::Fixed(offset, _) => *offset,
            Rules::Tz(tz) => tz.to_offset(instant(seconds)).seconds(),
        }
    }

    /// The offset that applies to a wall-clock time. A time that a transition skips takes the offset before the
    /// transition, one that it repeats the offset after it.
    pub fn offset_of_local(&self, local_seconds: i64) -> i32 {
        let tz = match &self.0.rules {
            Rules::Fixed(offset, _) => return *offset,
            Rules::Tz(tz) => tz,
        };
        use jiff::tz::AmbiguousOffset::{Fold, Gap, Unambiguous};
        let local = Offset::UTC.to_datetime(instant(local_seconds));
        match tz.to_ambiguous_timestamp(local).offset() {
            Unambiguous { offset } => offset.seconds(),
            Gap { before, .. } => before.seconds(),
            Fold { after, .. } => after.seconds(),
        }
    }

    /// The offset, if the zone never had another.
    pub fn constant_offset(&self) -> Option<i32> {
        match &self.0.rules {
            Rules::Fixed(offset, _) => Some(*offset),
            Rules::Tz(_) => {
                let spans = self.spans();
                let first = spans.first()?.info.offset;
                spans.iter().all(|span| span.info.offset == first).then_some(first)
            }
        }
    }

    /// The meaning of an abbreviation (upper case) in this zone; `None` when the zone never used it.
    pub fn abbreviation(&self, upper: &str) -> Option<ZoneAbbreviation> {
        let mut uses = self.spans().iter().map(|span| &span.info).filter(|info| info.abbreviation == upper);
        let first = uses.next()?;
        if uses.all(|info| info.offset == first.offset && info.dst == first.dst) {
            Some(ZoneAbbreviation::Fixed(first.offset, first.dst))
        } else {
            Some(ZoneAbbreviation::Varying)
        }
    }

    /// The offset an abbreviation (upper case) had at an instant: its latest use up to then, else its first.
    pub fn abbreviation_offset_at(&self, upper: &str, seconds: i64) -> Option<(i32, bool)> {
        let mut found = None;
        for span in self.spans().iter().filter(|span| span.info.abbreviation == upper) {
            if span.start > seconds && found.is_some() {
                break;
            }
            found = Some((span.info.offset, span.info.dst));
        }
        found
    }

    fn spans(&self) -> &[Span] {
        self.0.spans.get_or_init(|| {
            let mut spans = vec![Span { start: i64::MIN, info: self.at(SECONDS_MIN) }];
            if let Rules::Tz(tz) = &self.0.rules {
                let ended = |t: &jiff::tz::TimeZoneTransition<'_>| t.timestamp().as_second() > ABBREVIATIONS_UNTIL;
                spans.extend(tz.following(Timestamp::MIN).take_while(|t| !ended(t)).map(|t| Span {
                    start: t.timestamp().as_second(),
                    info: LocalInfo {
                        offset: t.offset().seconds(),
                        dst: t.dst().is_dst(),
                        abbreviation: t.abbreviation().to_string(),
                    },
                }));
            }
            spans
        })
    }
}

/// The instant, moved by whole 400-year cycles into the range that the rules can be asked for.
fn instant(seconds: i64) -> Timestamp {
    let seconds = if seconds > SECONDS_MAX {
        let cycles = (seconds - SECONDS_MAX).div_euclid(CYCLE_SECONDS) + 1;
        seconds - cycles * CYCLE_SECONDS
    } else {
        seconds.max(SECONDS_MIN)
    };
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn find(name: &str) -> Option<Zone> {
    if name.eq_ignore_ascii_case("gmt") {
        return Some(Zone::new("GMT".into(), Rules::Fixed(0, "GMT".into())));
    }
    if let Ok(tz) = TimeZone::get(name) {
        let canonical = tz.iana_name().unwrap_or(name).to_string();
        return Some(Zone::new(canonical, Rules::Tz(tz)));
    }
    posix(name).map(|rules| Zone::new(name.to_string(), rules))
}

/// A POSIX zone string; daylight saving without a rule follows the United States.
fn posix(name: &str) -> Option<Rules> {
    let upper = name.to_ascii_uppercase();
    let bytes = upper.as_bytes();
    let (abbreviation, rest) = if bytes.first() == Some(&b'<') {
        let end = upper.find('>')?;
        (&upper[1..end], &upper[end + 1..])
    } else {
        let end = bytes.iter().position(|c| !c.is_ascii_alphabetic()).unwrap_or(bytes.len());
        (&upper[..end], &upper[end..])
    };
    let (offset, rest) = posix_offset(rest)?;
    if rest.is_empty() {
        return Some(Rules::Fixed(-offset, abbreviation.to_string()));
    }
    TimeZone::posix(&upper).or_else(|_| TimeZone::posix(&format!("{upper},M3.2.0,M11.1.0"))).ok().map(Rules::Tz)
}

/// `[+-]hh[:mm[:ss]]` at the start: seconds as written (west positive), and the rest.
fn posix_offset(text: &str) -> Option<(i32, &str)> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut total = 0;
    for (unit, max) in [(3600, 167), (60, 59), (1, 59)] {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value: i32 = rest[..digits].parse().ok()?;
        if value > max {
            return None;
        }
        total += value * unit;
        rest = &rest[digits..];
        match rest.strip_prefix(':') {
            Some(more) if unit > 1 => rest = more,
            _ => break,
        }
    }
    Some((sign * total, rest))
}

/// The local seconds of a wall-clock time, for callers that have jiff's civil types.
#[cfg(test)]
fn local(year: i16, month: i8, day: i8, hour: i8) -> i64 {
    let at = jiff::civil::date(year, month, day).at(hour, 30, 0, 0);
    Offset::UTC.to_timestamp(at).map(|t| t.as_second()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_take_the_offset_before_and_overlaps_the_offset_after() {
        let berlin = Zone::lookup("europe/berlin").expect("bundled");
        assert_eq!(berlin.name(), "Europe/Berlin");
        assert_eq!(berlin.offset_of_local(local(2024, 3, 31, 2)), 3600);
        assert_eq!(berlin.offset_of_local(local(2024, 10, 27, 2)), 3600);
        assert_eq!(berlin.offset_of_local(local(2024, 7, 1, 2)), 7200);
    }

    #[test]
    fn rules_go_on_after_year_9999() {
        let berlin = Zone::lookup("Europe/Berlin").expect("bundled");
        // 20000-07-01 and 20000-01-01.
        assert_eq!(berlin.offset_at(568_971_820_800 + 182 * 86_400), 7200);
        assert_eq!(berlin.offset_at(568_971_820_800), 3600);
    }

    #[test]
    fn posix_strings_count_westwards() {
        assert_eq!(Zone::lookup("UTC+3").expect("posix").offset_at(0), -10800);
        assert_eq!(Zone::lookup("<+05>-05:30").expect("posix").offset_at(0), 19800);
        assert!(Zone::lookup("Nowhere/Land").is_none());
        assert_eq!(Zone::fixed(-12600).name(), "<-03:30>+03:30");
    }

    #[test]
    fn abbreviations_are_fixed_or_varying() {
        let moscow = Zone::lookup("Europe/Moscow").expect("bundled");
        assert_eq!(moscow.abbreviation("MSK"), Some(ZoneAbbreviation::Varying));
        let new_york = Zone::lookup("America/New_York").expect("bundled");
        assert_eq!(new_york.abbreviation("EDT"), Some(ZoneAbbreviation::Fixed(-14400, true)));
        assert_eq!(new_york.abbreviation("MSK"), None);
    }
}
