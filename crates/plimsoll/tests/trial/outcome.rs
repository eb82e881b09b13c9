//! The outcome of a trial, from its recordings.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::plan::{LINE_MIB, Trial};
use crate::sampler::{Recording, Sample};
use crate::waits::Waits;

/// How long before the line is crossed stalls begin to count, in nanoseconds.
const RUN_UP: i64 = 5_000_000_000;

/// Now, in nanoseconds since 1970.
pub(crate) fn unix_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or_default()
    })
}

/// What the agent and the API said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// When the agent decided to evict the hog.
    pub(crate) decided: Option<i64>,
    /// When the API said that the node is under pressure.
    pub(crate) pressure: Option<i64>,
    /// The evicted pods, according to the API.
    pub(crate) evicted: Vec<String>,
    /// How long the Guaranteed pod was kept waiting: when, and how long.
    pub(crate) stalls: Vec<(i64, Duration)>,
}

/// That the Guaranteed pod was late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stall {
    /// When it came to run after all.
    at: i64,
    late: Duration,
    /// What it waited for, by the kernel's account.
    waits: Waits,
}

impl Stall {
    fn new(samples: &[Sample], at: i64, late: Duration) -> Stall {
        let begun = at - i64::try_from(late.as_nanos()).unwrap_or_default();
        let before = samples.iter().rfind(|sample| sample.at <= begun);
        let after = samples.iter().find(|sample| sample.at >= at);
        let waits = before
            .zip(after)
            .map(|(before, after)| after.waits.since(before.waits));
        Stall {
            at,
            late,
            waits: waits.unwrap_or_default(),
        }
    }

    /// How long the node let it wait: all of it but the time in which the kernel held it to its own
    /// cpu limit, since the emulator charges the host's cpu time to the processes of the guest.
    /// To look for memory takes cpu too, so the time for that counts in any case.
    pub(crate) fn by_node(&self) -> Duration {
        let micros = |number: i64| Duration::from_micros(u64::try_from(number).unwrap_or_default());
        let Waits { throttled, memory } = self.waits;
        let for_memory = micros(memory).min(self.late);
        for_memory.max(self.late.saturating_sub(micros(throttled)))
    }
}

/// What came of a trial.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) trial: Trial,
    pub(crate) decided: Option<Duration>,
    pub(crate) dead: Option<Duration>,
    /// From the decision until the API said that the node is under pressure.
    pub(crate) reported: Option<Duration>,
    pub(crate) lowest_mib: i64,
    pub(crate) oom_kills: i64,
    /// The worst that the node did to the Guaranteed pod.
    pub(crate) stall: Stall,
    /// When that was over, in seconds from when the line was crossed.
    pub(crate) stalled_at: Option<f64>,
    /// The longest that the Guaranteed pod was late, its own cpu limit included.
    pub(crate) latest: Duration,
    pub(crate) bystanders_killed: usize,
    pub(crate) evicted: Vec<String>,
    /// The longest that the sampler itself was kept from looking.
    pub(crate) blind: Duration,
}

impl Outcome {
    pub(crate) fn new(trial: Trial, recording: &Recording, reported: &Reported) -> Outcome {
        let samples = &recording.samples;
        let signal = |index: usize| samples[index].left.min(samples[index].left_to_pods) / 1024;
        let seen = (0..samples.len()).find(|index| signal(*index) < LINE_MIB);
        let seen = seen.map(|index| samples[index].at);
        // The decision may come before the next look.
        let crossed = seen.into_iter().chain(reported.decided).min();
        let since = |at: Option<i64>| Some(nanos(at? - crossed?));
        let hog = trial.load.name();
        let dead = recording.deaths.iter().find(|death| death.name == hog);
        let first = samples.first().map_or(0, |sample| sample.oom_kills);
        let last = samples.last().map_or(0, |sample| sample.oom_kills);
        let begun = samples.first().map_or(0, |sample| sample.at);
        // As was done with the kubelet: what the hog takes to start is not what is measured.
        let from = crossed.map_or(begun, |crossed| begun.max(crossed - RUN_UP));
        let late = reported.stalls.iter().filter(|(at, _)| *at > from);
        let stalls = late.map(|(at, late)| Stall::new(samples, *at, *late));
        let stalls: Vec<Stall> = stalls.collect();
        let worst = stalls.iter().max_by_key(|stall| stall.by_node()).copied();
        #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
        let stalled_at = worst
            .zip(crossed)
            .map(|(stall, crossed)| (stall.at - crossed) as f64 / 1e9);
        let gaps = samples.windows(2).map(|pair| pair[1].at - pair[0].at);
        Outcome {
            decided: since(reported.decided),
            dead: since(dead.map(|death| death.at)),
            reported: reported
                .pressure
                .zip(reported.decided)
                .map(|(reported, decided)| nanos(reported - decided)),
            lowest_mib: (0..samples.len()).map(signal).min().unwrap_or(0),
            oom_kills: last - first,
            stall: worst.unwrap_or_default(),
            stalled_at,
            latest: stalls
                .iter()
                .map(|stall| stall.late)
                .max()
                .unwrap_or_default(),
            bystanders_killed: recording.deaths.iter().filter(|d| d.name != hog).count(),
            evicted: reported.evicted.clone(),
            blind: nanos(gaps.max().unwrap_or(0)),
            trial,
        }
    }

    /// Whether the agent evicted the hog, and the kernel killed no process.
    pub(crate) fn is_clean(&self) -> bool {
        self.oom_kills == 0
            && self
                .evicted
                .iter()
                .any(|name| name == self.trial.load.name())
    }
}

fn nanos(number: i64) -> Duration {
    Duration::from_nanos(u64::try_from(number).unwrap_or_default())
}
