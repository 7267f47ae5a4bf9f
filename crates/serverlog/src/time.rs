//! Times as the log prints them.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use melba_types::datetime::Civil;
use melba_types::timezone::Zone;

/// Of the Unix epoch's beginning to that of PostgreSQL's.
const SECONDS_TO_2000: i64 = 946_684_800;

pub(crate) fn unix_seconds(micros_since_2000: i64) -> i64 {
    micros_since_2000.div_euclid(1_000_000) + SECONDS_TO_2000
}

/// A moment in log_timezone.
pub(crate) struct Stamp {
    micros: i64,
    civil: Civil,
    abbreviation: String,
}

impl Stamp {
    /// `micros`: since 2000-01-01 UTC.
    pub fn at(micros: i64, zone: &Zone) -> Stamp {
        let info = zone.at(unix_seconds(micros));
        let local = micros + i64::from(info.offset) * 1_000_000;
        // A clock outside of the calendar is no reason for an error.
        Stamp { micros, civil: Civil::of_timestamp(local).unwrap_or_default(), abbreviation: info.abbreviation }
    }

    fn date_and_time(&self) -> String {
        let c = &self.civil;
        format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", c.year, c.month, c.day, c.hour, c.minute, c.second)
    }

    /// With seconds and the zone, as %t and %s print it.
    pub fn seconds(&self) -> String {
        format!("{} {}", self.date_and_time(), self.abbreviation)
    }

    /// With milliseconds and the zone, as %m prints it.
    pub fn milliseconds(&self) -> String {
        format!("{}.{:03} {}", self.date_and_time(), self.civil.micros / 1000, self.abbreviation)
    }

    /// As RFC 3164 has it, which knows no year.
    pub fn month_day_time(&self) -> String {
        const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let c = &self.civil;
        let month = MONTHS[(c.month as usize).clamp(1, 12) - 1];
        format!("{month} {:>2} {:02}:{:02}:{:02}", c.day, c.hour, c.minute, c.second)
    }

    /// Seconds since the Unix epoch with milliseconds, as %n prints it.
    pub fn epoch(&self) -> String {
        let millis = self.micros.rem_euclid(1_000_000) / 1000;
        format!("{}.{millis:03}", unix_seconds(self.micros))
    }
}

/// A pattern of strftime(), such as log_filename, at a moment. A text without escapes stands for itself.
pub(crate) fn strftime(pattern: &str, micros: i64, zone: &Zone) -> String {
    let seconds = unix_seconds(micros);
    let offset = Offset::from_seconds(zone.offset_at(seconds)).unwrap_or(Offset::UTC);
    let moment = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let local: DateTime = offset.to_datetime(moment);
    let zoned = local.to_zoned(TimeZone::fixed(offset));
    zoned.ok().and_then(|zoned| jiff::fmt::strtime::format(pattern, &zoned).ok()).unwrap_or_else(|| pattern.to_owned())
}

/// The next moment after `micros` at which files of `minutes` each begin, counted by the clock on the wall.
pub(crate) fn next_rotation(micros: i64, minutes: i64, zone: &Zone) -> i64 {
    let offset = i64::from(zone.offset_at(unix_seconds(micros)));
    let (now, interval) = (unix_seconds(micros) + offset, minutes * 60);
    let next = now - now.rem_euclid(interval) + interval - offset;
    (next - SECONDS_TO_2000) * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_log_s_zone() {
        let berlin = Zone::lookup("Europe/Berlin").expect("a zone");
        // 2026-07-01 12:34:56.789 UTC.
        let micros = 836_224_496_789_000;
        let stamp = Stamp::at(micros, &berlin);
        assert_eq!(stamp.milliseconds(), "2026-07-01 14:34:56.789 CEST");
        assert_eq!(stamp.seconds(), "2026-07-01 14:34:56 CEST");
        assert_eq!(stamp.epoch(), "1782909296.789");
        assert_eq!(strftime("postgresql-%Y-%m-%d_%H%M%S.log", micros, &berlin), "postgresql-2026-07-01_143456.log");
        assert_eq!(strftime("melba.%a.log", micros, &berlin), "melba.Wed.log");
        let midnight = next_rotation(micros, 1440, &berlin);
        assert_eq!(Stamp::at(midnight, &berlin).milliseconds(), "2026-07-02 00:00:00.000 CEST");
    }
}
