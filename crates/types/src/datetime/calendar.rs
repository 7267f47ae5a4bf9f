//! The proleptic Gregorian calendar. Year 0 is 1 BC.

use super::{EPOCH_JULIAN, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// A broken-down date and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Civil {
    pub year: i32,
    /// 1 to 12.
    pub month: i32,
    /// 1 to 31.
    pub day: i32,
    /// 24 is allowed in times.
    pub hour: i32,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

/// Julian day number of a date.
pub fn julian_of_date(year: i32, month: i32, day: i32) -> i32 {
    // Years counted from March, so that leap days come last.
    let y = i64::from(year) - i64::from(month <= 2);
    let m = (i64::from(month) + 9) % 12;
    let days = y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (m * 153 + 2) / 5 + i64::from(day);
    (days + 1_721_119) as i32
}

/// The date of a Julian day number: year, month, day.
pub fn date_of_julian(julian: i32) -> (i32, i32, i32) {
    let days = i64::from(julian) - 1_721_120;
    let era = days.div_euclid(146_097);
    let in_era = days.rem_euclid(146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let day_of_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as i32, day as i32)
}

/// 0 is Sunday.
pub fn weekday_of_julian(julian: i32) -> i32 {
    (julian + 1).rem_euclid(7)
}

pub fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month (1 to 12).
pub fn days_of_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Whether the date has a Julian day number that fits 31 bits.
pub fn is_valid_julian(year: i32, month: i32) -> bool {
    (year > -4713 || (year == -4713 && month >= 11)) && (year < 5_874_898 || (year == 5_874_898 && month < 6))
}

/// ISO 8601 week number.
pub fn iso_week(year: i32, month: i32, day: i32) -> i32 {
    let today = julian_of_date(year, month, day);
    (today - iso_year_start(iso_year(year, month, day))) / 7 + 1
}

/// The year that the ISO 8601 week of a date belongs to.
pub fn iso_year(year: i32, month: i32, day: i32) -> i32 {
    let today = julian_of_date(year, month, day);
    if today < iso_year_start(year) {
        year - 1
    } else if today >= iso_year_start(year + 1) {
        year + 1
    } else {
        year
    }
}

/// Julian day of the Monday of week 1.
pub fn iso_year_start(year: i32) -> i32 {
    let january_4 = julian_of_date(year, 1, 4);
    january_4 - (weekday_of_julian(january_4) + 6) % 7
}

impl Civil {
    /// Of a timestamp without time zone; `None` when the day has no Julian number.
    pub fn of_timestamp(timestamp: i64) -> Option<Civil> {
        let days = timestamp.div_euclid(MICROS_PER_DAY) + i64::from(EPOCH_JULIAN);
        // The first day begins earlier west of Greenwich.
        let days = i32::try_from(days).ok().filter(|d| *d >= -1)?;
        let (year, month, day) = date_of_julian(days);
        Some(Civil { year, month, day, ..Civil::of_time(timestamp.rem_euclid(MICROS_PER_DAY)) })
    }

    /// Of a date.
    pub fn of_date(date: i32) -> Civil {
        let (year, month, day) = date_of_julian(date + EPOCH_JULIAN);
        Civil { year, month, day, ..Civil::default() }
    }

    /// Of microseconds since midnight, with no date.
    pub fn of_time(time: i64) -> Civil {
        Civil {
            hour: (time / MICROS_PER_HOUR) as i32,
            minute: (time / MICROS_PER_MINUTE % 60) as i32,
            second: (time / MICROS_PER_SECOND % 60) as i32,
            micros: (time % MICROS_PER_SECOND) as i32,
            ..Civil::default()
        }
    }

    /// Microseconds since midnight.
    pub fn time(&self) -> i64 {
        ((i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second)) * MICROS_PER_SECOND
            + i64::from(self.micros)
    }

    pub fn julian(&self) -> i32 {
        julian_of_date(self.year, self.month, self.day)
    }

    /// The timestamp without time zone; `None` when it is out of range.
    pub fn timestamp(&self) -> Option<i64> {
        if !is_valid_julian(self.year, self.month) {
            return None;
        }
        let days = i64::from(self.julian()) - i64::from(EPOCH_JULIAN);
        days.checked_mul(MICROS_PER_DAY)?.checked_add(self.time()).filter(|t| super::is_valid_timestamp(*t))
    }

    /// Wall-clock seconds counted from 1970 as if in UTC.
    pub fn local_seconds(&self) -> i64 {
        (i64::from(self.julian()) - 2_440_588) * 86_400 + self.time().div_euclid(MICROS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn julian_days_round_trip_and_match_known_dates() {
        assert_eq!(julian_of_date(2000, 1, 1), EPOCH_JULIAN);
        assert_eq!(julian_of_date(1970, 1, 1), 2_440_588);
        assert_eq!(julian_of_date(-4713, 11, 24), 0);
        for julian in (0..2_147_483_000).step_by(997_331) {
            let (y, m, d) = date_of_julian(julian);
            assert_eq!(julian_of_date(y, m, d), julian);
        }
    }

    #[test]
    fn iso_weeks_belong_to_the_year_of_their_thursday() {
        assert_eq!((iso_year(2005, 1, 1), iso_week(2005, 1, 1)), (2004, 53));
        assert_eq!((iso_year(2008, 12, 29), iso_week(2008, 12, 29)), (2009, 1));
    }
}
