//! Schedules of CronJobs: `*/5 * * * *`, `@hourly`, `@every 90m`, in a time zone.
//!
//! Reading order: `zone` (the offset of a place at a time), `fields` (the text of a schedule),
//! `next` (the first time after another), then [`Schedule`].
//!
//! Matches v1.36 vendor/github.com/robfig/cron/v3, `ParseStandard` and `Next`, with the messages of
//! its errors.

mod fields;
mod next;
#[cfg(test)]
mod tests;
mod zone;

use crate::duration::Duration;
use crate::object::timestamp::Timestamp;

use fields::Fields;

pub use zone::{UnknownZone, Zone};

const SECOND: i64 = 1_000_000_000;

/// When a CronJob starts.
#[derive(Clone, Debug)]
pub struct Schedule {
    times: Times,
    zone: Zone,
}

#[derive(Clone, Debug)]
enum Times {
    /// So many seconds after the last start.
    Every(i64),
    /// At times of the clock of the zone.
    At(Fields),
}

impl Schedule {
    /// Reads a schedule. It is in UTC, unless the text itself names a zone (`TZ=Europe/Rome 0 3 * * *`).
    /// The error has upstream's words.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        Schedule::parse_in(text, Zone::utc())
    }

    /// As [`Schedule::parse`], in that zone.
    pub fn parse_in(text: &str, zone: Zone) -> Result<Schedule, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        let named = text
            .strip_prefix("TZ=")
            .or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, rest) = match named.map(|rest| rest.split_once(' ')) {
            None => (zone, text),
            Some(Some((name, rest))) => {
                let zone = Zone::named(name)
                    .map_err(|error| format!("provided bad location {name}: {error}"))?;
                (zone, rest.trim())
            }
            Some(None) => {
                // Upstream fails there, and reports how.
                let found = text.len();
                let reason =
                    format!("runtime error: slice bounds out of range [:-1] with length {found}");
                return Err(format!("invalid schedule format: {reason}"));
            }
        };
        let times = match rest.strip_prefix('@') {
            Some(_) => descriptor(rest)?,
            None => Times::At(Fields::parse(rest)?),
        };
        Ok(Schedule { times, zone })
    }

    /// The first time after that one; `None` if there is none within five years, as for the 31st of
    /// February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let second = after.as_nanos().div_euclid(SECOND);
        let next = match &self.times {
            Times::Every(delay) => Some(second.saturating_add(*delay)),
            Times::At(fields) => next::next(fields, &self.zone, second),
        };
        next.map(Timestamp::from_secs)
    }
}

fn descriptor(text: &str) -> Result<Times, String> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(duration) = text.strip_prefix("@every ") else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let duration: Duration = duration
                .parse()
                .map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            return Ok(Times::Every((duration.as_nanos() / SECOND).max(1)));
        }
    };
    Fields::parse(fields).map(Times::At)
}
