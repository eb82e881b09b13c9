//! Time zones by their names in the IANA database, which is part of the program.

use jiff::Timestamp as JiffTimestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::object::timestamp::Timestamp;

/// The offset of a place from UTC, over time.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// There is no zone of that name. The words are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0}")]
pub struct UnknownZone(pub String);

impl Zone {
    /// Universal time.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// The zone of that name, such as `Europe/Rome`; its case matters.
    pub fn named(name: &str) -> Result<Zone, UnknownZone> {
        if name.is_empty() || name == "UTC" {
            return Ok(Zone::utc());
        }
        let database = TimeZoneDatabase::bundled();
        let unknown = || UnknownZone(name.to_owned());
        // The database finds names whatever their case.
        if !database.available().any(|known| known.as_str() == name) {
            return Err(unknown());
        }
        database.get(name).map(Zone).map_err(|_| unknown())
    }

    /// How many seconds the zone is ahead of UTC, so many seconds after 1970.
    pub fn offset_at(&self, second: i64) -> i64 {
        let bounds = JiffTimestamp::MIN.as_second()..=JiffTimestamp::MAX.as_second();
        let second = second.clamp(*bounds.start(), *bounds.end());
        let time = JiffTimestamp::from_second(second);
        time.map_or(0, |time| self.0.to_offset(time).seconds().into())
    }

    /// The time by the clock of the zone, with its offset: `2026-03-29T03:00:00+02:00`.
    pub fn rfc3339(&self, time: Timestamp) -> String {
        let second = time.as_nanos().div_euclid(super::SECOND);
        let offset = self.offset_at(second);
        let local = Timestamp::from_secs(second.saturating_add(offset)).to_string();
        let local = local.trim_end_matches('Z');
        match offset {
            0 => format!("{local}Z"),
            _ => {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.unsigned_abs() / 60;
                format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}
