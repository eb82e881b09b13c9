//! The task that asks the containers of one pod.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::Kind;
use super::action::{Asked, Found};
use super::tracker::{Numbers, Target, Tracker};
use crate::pod_fields;
use crate::pods::note::{Note, about, reason};
use crate::pods::observed::State;
use crate::pods::plan::Verdict;
use crate::pods::status::Stage;
use crate::pods::worker::{Record, probed};
use crate::stats::metrics::ProbeResult;

type Key = (String, Kind);

/// An answer.
struct Answer {
    key: Key,
    id: String,
    found: Found,
    /// How long it took.
    duration: Duration,
}

/// Asks until the pod is over. Returns at once if there is nothing to ask.
pub(crate) async fn run(record: Arc<Record>) {
    let mut trackers = trackers(&record);
    if trackers.is_empty() {
        return;
    }
    let mut asking: JoinSet<Answer> = JoinSet::new();
    loop {
        let stage = record.state().stage;
        if stage == Stage::Terminated {
            return;
        }
        if stage == Stage::Terminating {
            // What is being stopped is not replaced, but whether it takes requests still matters.
            trackers.retain(|(_, kind), _| *kind == Kind::Readiness);
        }
        let clock = record.shared().clock.clone();
        let now = clock.steady();
        let mut earliest = None;
        for (key, tracker) in &mut trackers {
            let target = target(&record, &key.0);
            let due = tracker.due(target.as_ref(), now, fastrand::f64());
            match (due, target) {
                (Some(due), Some(target)) if due <= now => {
                    tracker.asking(now);
                    ask(&record, key.clone(), target.id, &mut asking);
                }
                (Some(due), _) => earliest = earliest.into_iter().chain([due]).min(),
                (None, _) => {}
            }
        }
        tokio::select! {
            () = record.reported() => {}
            Some(Ok(answer)) = asking.join_next(), if !asking.is_empty() => {
                if let Some(tracker) = trackers.get_mut(&answer.key) {
                    take(&record, tracker, answer);
                }
            }
            () = async {
                match earliest {
                    Some(earliest) => sleep_until(clock.instant_of_steady(earliest)).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

/// Regular containers and sidecars may have probes.
fn trackers(record: &Record) -> BTreeMap<Key, Tracker> {
    let pod = record.pod();
    pod_fields::parts(&pod)
        .filter(|part| matches!(part.kind, pod_fields::Kind::App | pod_fields::Kind::Sidecar))
        .flat_map(|part| {
            let probes = Kind::ALL.into_iter().filter_map(|kind| {
                let probe = kind.of(&part.container)?;
                let tracker = Tracker::new(kind, Numbers::of(probe));
                Some(((part.container.name.clone(), kind), tracker))
            });
            probes.collect::<Vec<_>>()
        })
        .collect()
}

/// The container of that name, if it runs.
fn target(record: &Record, name: &str) -> Option<Target> {
    let state = record.state();
    let seen = state.observed.latest(name)?;
    if seen.state != State::Running {
        return None;
    }
    let init = state.status.init_container_statuses.iter().flatten();
    let app = state.status.container_statuses.iter().flatten();
    let status = init.chain(app).find(|own| own.name == name)?;
    let id = status.container_id.as_deref().unwrap_or_default();
    let started_at = seen.started_at.unwrap_or(seen.created_at);
    id.ends_with(&seen.id).then(|| Target {
        id: seen.id.clone(),
        started_at: record.shared().clock.steady_of(started_at),
        is_started: status.started == Some(true),
    })
}

fn container(record: &Record, name: &str) -> Option<Container> {
    let pod = record.pod();
    pod_fields::part(&pod, name).map(|part| part.container.into_owned())
}

fn ask(record: &Arc<Record>, key: Key, id: String, asking: &mut JoinSet<Answer>) {
    let Some(container) = container(record, &key.0) else {
        return;
    };
    let pod_ip = record.state().status.pod_ip.clone().unwrap_or_default();
    let asked = Asked {
        container: Arc::new(container),
        id: id.clone(),
        pod_ip,
    };
    let runtime = Arc::clone(&record.shared().runtime);
    asking.spawn(async move {
        let begun = Instant::now();
        let found = match key.1.of(&asked.container) {
            Some(probe) => asked.ask(probe, &*runtime).await,
            None => Found::Success(String::new()),
        };
        Answer {
            key,
            id,
            found,
            duration: begun.elapsed(),
        }
    });
}

/// Records an event for the result, and wakes the worker if the result changes anything.
fn take(record: &Record, tracker: &mut Tracker, answer: Answer) {
    let (name, kind) = &answer.key;
    let probe = kind.as_str();
    let (verdict, note) = match answer.found {
        Found::Success(_) => (Some(Verdict::Success), None),
        Found::Warning(output) => {
            let message = format!("{probe} probe warning: {output}");
            let note = Note::warning(reason::PROBE_WARNING, message);
            (Some(Verdict::Success), Some(note))
        }
        Found::Failure(output) => {
            let message = format!("{probe} probe failed: {output}");
            let note = Note::warning(reason::UNHEALTHY, message);
            (Some(Verdict::Failure), Some(note))
        }
        Found::Error(error) => {
            let message = format!("{probe} probe errored and resulted in unknown state: {error}");
            (None, Some(Note::warning(reason::UNHEALTHY, message)))
        }
    };
    let pod = record.pod();
    let result = match verdict {
        Some(Verdict::Success) => ProbeResult::Successful,
        Some(Verdict::Failure) => ProbeResult::Failed,
        Some(Verdict::Unknown) | None => ProbeResult::Unknown,
    };
    let metrics = &record.shared().metrics;
    metrics.probed(probed(&pod, name, *kind), result, answer.duration);
    if let (Some(note), Some(part)) = (note, pod_fields::part(&pod, name)) {
        let note = about(note, &pod, &part.container, None);
        record.shared().host.record(&pod, note);
    }
    let Some(verdict) = tracker.answered(&answer.id, verdict) else {
        return;
    };
    let is_news = {
        let mut state = record.state();
        let is_there = state.observed.containers.iter().any(|c| c.id == answer.id);
        if !is_there {
            return;
        }
        let health = state.health.entry(answer.id).or_default();
        let place = match kind {
            Kind::Startup => &mut health.startup,
            Kind::Readiness => &mut health.readiness,
            Kind::Liveness => &mut health.liveness,
        };
        place.replace(verdict) != Some(verdict)
    };
    if is_news {
        record.publish();
        // Readiness is only reported; the other kinds may start or stop containers.
        if *kind != Kind::Readiness {
            record.wake();
        }
    }
}
