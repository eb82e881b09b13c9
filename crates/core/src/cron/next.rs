//! The first time after another that a schedule names.
//!
//! The search goes through the fields from the month down to the minute, as upstream's, whose
//! answers at the beginning and end of daylight saving time depend on its steps: a time that the
//! clock skips is left out, a time that it shows twice comes twice.

use super::fields::{ANY, Fields};
use super::zone::Zone;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// What the clock of a zone shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// From Sunday.
    weekday: i64,
}

/// A second after 1970, in a zone.
#[derive(Clone, Copy)]
struct Moment<'a> {
    second: i64,
    zone: &'a Zone,
}

/// The first second after `after` at which the clock of the zone matches.
pub(super) fn next(fields: &Fields, zone: &Zone, after: i64) -> Option<i64> {
    let mut search = Search {
        at: Moment {
            second: after.checked_add(1)?,
            zone,
        },
        has_moved: false,
    };
    let last_year = search.at.clock().year + 5;
    while search.at.clock().year <= last_year {
        if search.find(fields) {
            return Some(search.at.second);
        }
    }
    None
}

struct Search<'a> {
    at: Moment<'a>,
    /// Whether a field was stepped, and all below it set to their beginning.
    has_moved: bool,
}

impl<'a> Search<'a> {
    /// Steps each field until it matches; `false` if one went past its end, so that those above it
    /// are to be looked at again.
    fn find(&mut self, fields: &Fields) -> bool {
        while !has(fields.month, self.at.clock().month) {
            self.begin(|clock| (clock.year, clock.month, 1, 0));
            self.at = self.at.plus_days(1, 0);
            if self.at.clock().month == 1 {
                return false;
            }
        }
        while !matches_day(fields, self.at.clock()) {
            self.begin(|clock| (clock.year, clock.month, clock.day, 0));
            self.at = self.at.plus_days(0, 1);
            // Where the clock skips midnight.
            let hour = self.at.clock().hour;
            if hour > 12 {
                self.at = self.at.plus((24 - hour) * HOUR);
            } else {
                self.at = self.at.plus(-hour * HOUR);
            }
            if self.at.clock().day == 1 {
                return false;
            }
        }
        while !has(fields.hour, self.at.clock().hour) {
            self.begin(|clock| (clock.year, clock.month, clock.day, clock.hour));
            self.at = self.at.plus(HOUR);
            if self.at.clock().hour == 0 {
                return false;
            }
        }
        while !has(fields.minute, self.at.clock().minute) {
            if !self.has_moved {
                self.has_moved = true;
                self.at = self.at.plus(-self.at.second.rem_euclid(MINUTE));
            }
            self.at = self.at.plus(MINUTE);
            if self.at.clock().minute == 0 {
                return false;
            }
        }
        let into_minute = self.at.clock().second;
        if into_minute != 0 {
            self.has_moved = true;
            self.at = self.at.plus(MINUTE - into_minute);
            return false;
        }
        true
    }

    /// With the first step, the fields below the one that is stepped begin anew.
    fn begin(&mut self, start: impl Fn(Clock) -> (i64, i64, i64, i64)) {
        if !self.has_moved {
            self.has_moved = true;
            let (year, month, day, hour) = start(self.at.clock());
            self.at = self.at.date(year, month, day, hour * HOUR);
        }
    }
}

fn has(bits: u64, value: i64) -> bool {
    u32::try_from(value).is_ok_and(|value| bits & 1_u64.checked_shl(value).unwrap_or(0) != 0)
}

/// If both days are restricted, one that matches is enough.
fn matches_day(fields: &Fields, clock: Clock) -> bool {
    let by_month = has(fields.day_of_month, clock.day);
    let by_week = has(fields.day_of_week, clock.weekday);
    match (fields.day_of_month | fields.day_of_week) & ANY {
        0 => by_month || by_week,
        _ => by_month && by_week,
    }
}

impl<'a> Moment<'a> {
    fn plus(self, seconds: i64) -> Moment<'a> {
        Moment {
            second: self.second.saturating_add(seconds),
            ..self
        }
    }

    fn clock(self) -> Clock {
        let local = self.second.saturating_add(self.zone.offset_at(self.second));
        let (days, of_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = civil_of(days);
        Clock {
            year,
            month,
            day,
            hour: of_day / HOUR,
            minute: of_day % HOUR / MINUTE,
            second: of_day % MINUTE,
            // The first of January 1970 was a Thursday.
            weekday: (days + 4).rem_euclid(7),
        }
    }

    /// The moment at which the clock shows that date and time of the day. If there is none, or two,
    /// it is the one that Go's `time.Date` chooses.
    fn date(self, year: i64, month: i64, day: i64, of_day: i64) -> Moment<'a> {
        let local = days_of(year, month, day) * DAY + of_day;
        let guess = local - self.zone.offset_at(local);
        let second = match guess == local {
            true => local,
            false => local - self.zone.offset_at(guess),
        };
        Moment { second, ..self }
    }

    /// The same time of the day so many months and days later.
    fn plus_days(self, months: i64, days: i64) -> Moment<'a> {
        let clock = self.clock();
        let of_day = clock.hour * HOUR + clock.minute * MINUTE + clock.second;
        self.date(clock.year, clock.month + months, clock.day + days, of_day)
    }
}

/// Days after 1970 of a date; months and days may be beyond their ends.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that a leap day is the last of its year.
    let months = year * 12 + month - 3;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let of_year = (153 * month + 2) / 5;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + of_year + day - 1 - 719_468
}

/// Year, month and day of the day so many days after 1970.
fn civil_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carried) = match month {
        0..=9 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    (era * 400 + year + carried, month, day)
}
