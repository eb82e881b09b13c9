//! Which time of a schedule is due, and when to look again.

use std::time::Duration;

use k8s_openapi::api::batch::v1::CronJob;
use plimsoll_core::cron::Schedule;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::{after, until};

/// More missed times than that are remarked on.
const MANY: i64 = 100;

/// Clocks of machines differ a little: a look just before the time would find nothing due.
const MARGIN: Duration = Duration::from_millis(100);

/// A schedule without distinct times, as that of the 31st of February.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct NoInterval;

/// How many times have passed without a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    None,
    Few,
    Many,
}

/// The time that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recent {
    /// When the search for it began.
    pub(super) earliest: Timestamp,
    /// The latest time of the schedule that has come.
    pub(super) at: Option<Timestamp>,
    /// How many times have come since the last start.
    pub(super) missed: Missed,
}

/// Whether times beyond `startingDeadlineSeconds` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    Kept,
    Ignored,
}

/// The latest time that has come since the last start. The number of those missed is an estimate
/// by the first two of them, so that years without a controller cost nothing.
pub(super) fn recent(
    cron_job: &CronJob,
    last_start: Option<Timestamp>,
    schedule: &Schedule,
    deadline: Deadline,
    now: Timestamp,
) -> Result<Recent, NoInterval> {
    let created = cron_job.metadata.creation_timestamp.as_ref();
    let created = created.map_or(now, Timestamp::from_api);
    let mut earliest = last_start.unwrap_or(created);
    let seconds = cron_job.spec.starting_deadline_seconds;
    if let (Deadline::Kept, Some(seconds)) = (deadline, seconds) {
        earliest = earliest.max(after(now, seconds.saturating_neg()));
    }
    let found = |at, missed| Recent {
        earliest,
        at,
        missed,
    };
    let first = schedule.next(earliest).ok_or(NoInterval)?;
    if now < first {
        return Ok(found(None, Missed::None));
    }
    let second = schedule.next(first).ok_or(NoInterval)?;
    if now < second {
        return Ok(found(Some(first), Missed::None));
    }
    let interval = seconds_between(first, second);
    if interval < 1 {
        return Err(NoInterval);
    }
    let missed = seconds_between(first, now) / interval + 1;
    // One interval earlier, since not all of a schedule need be equal.
    let from = after(first, (missed - 2).saturating_mul(interval));
    let times = std::iter::successors(schedule.next(from), |time| schedule.next(*time));
    let latest = times.take_while(|time| *time <= now).last();
    let missed = if missed > MANY {
        Missed::Many
    } else {
        Missed::Few
    };
    Ok(found(latest, missed))
}

/// How long until the next time of the schedule.
pub(super) fn until_next(
    cron_job: &CronJob,
    last_start: Option<Timestamp>,
    schedule: &Schedule,
    now: Timestamp,
) -> Option<Duration> {
    let from = match recent(cron_job, last_start, schedule, Deadline::Ignored, now) {
        Ok(Recent { at: Some(at), .. }) => at,
        Ok(Recent {
            earliest,
            missed: Missed::None,
            ..
        }) => earliest,
        Ok(_) | Err(NoInterval) => now,
    };
    let next = schedule.next(from)?;
    Some(until(now, next.saturating_add(MARGIN)))
}

fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    i64::try_from(until(from, to).as_secs()).unwrap_or(i64::MAX)
}
