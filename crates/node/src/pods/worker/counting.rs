//! What the metrics of the agent count of one pod.

use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::shared_state::State;
use super::{Record, Worker};
use crate::pod_fields::{self, Kind};
use crate::pods::observed::{self, Observed};
use crate::pods::probe;
use crate::stats::metrics::{ContainerType, PodStart, Probed};

/// How upstream calls a container of this kind.
pub(super) fn container_type(kind: Kind) -> ContainerType {
    match kind {
        Kind::Init | Kind::Sidecar => ContainerType::InitContainer,
        Kind::App => ContainerType::Container,
        Kind::Ephemeral => ContainerType::EphemeralContainer,
    }
}

impl Worker {
    /// Counts the containers that have ended since the runtime was last asked.
    pub(super) fn count_ends(&self, before: &Observed) {
        let pod = self.record.pod();
        let state = self.record.state();
        for ended in newly_ended(before, &state.observed) {
            let Some(part) = pod_fields::part(&pod, &ended.name) else {
                continue;
            };
            let (kind, code) = (container_type(part.kind), ended.exit_code);
            let metrics = &self.shared().metrics;
            metrics.container_terminated(kind, code, &ended.reason);
        }
    }

    /// Forgets the series of a pod that is over.
    pub(super) fn forget_probes(&self) {
        let pod = self.record.pod();
        for part in pod_fields::parts(&pod) {
            for kind in probe::Kind::ALL {
                let container = &part.container.name;
                let probed = probed(&pod, container, kind);
                self.shared().metrics.forget_probes(probed);
            }
        }
    }
}

impl Record {
    /// Counts how long the pod took to run.
    pub(super) fn count_start(&self, state: &State) {
        let now = self.shared().clock.now();
        let since_seen = self.seen.elapsed();
        let created = state.pod.metadata.creation_timestamp.as_ref();
        let created = created.map(|time| now.saturating_since(Timestamp::from_api(time)));
        self.shared().metrics.pod_started(&PodStart {
            since_seen,
            // A static pod is created when its file is read.
            since_created: created.unwrap_or(since_seen),
            pulling_and_initializing: state.pulling + initializing(state),
        });
    }
}

/// The labels of a probe.
pub(crate) fn probed<'a>(
    pod: &'a k8s_openapi::api::core::v1::Pod,
    container: &'a str,
    kind: probe::Kind,
) -> Probed<'a> {
    Probed {
        probe_type: kind.as_str(),
        container,
        pod: pod_fields::name(pod),
        namespace: pod_fields::namespace(pod),
        pod_uid: pod_fields::uid(pod),
    }
}

/// How long the init containers ran, which run one after the other.
fn initializing(state: &State) -> Duration {
    let init = pod_fields::parts(&state.pod).filter(|part| part.kind == Kind::Init);
    let runs = init.filter_map(|part| {
        let seen = state.observed.latest(&part.container.name)?;
        Some(seen.finished_at?.saturating_since(seen.started_at?))
    });
    runs.sum()
}

fn newly_ended<'a>(
    before: &'a Observed,
    after: &'a Observed,
) -> impl Iterator<Item = &'a observed::Container> {
    let has_ended = |container: &&observed::Container| container.state == observed::State::Exited;
    after
        .containers
        .iter()
        .filter(has_ended)
        .filter(move |ended| {
            let mut known = before.containers.iter().filter(has_ended);
            !known.any(|known| known.id == ended.id)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_ends_once() {
        let container = |id: &str, state| observed::Container {
            id: id.to_owned(),
            state,
            ..observed::Container::default()
        };
        let running = container("1", observed::State::Running);
        let ended = container("1", observed::State::Exited);
        // It ran and ended between two looks.
        let brief = container("2", observed::State::Exited);
        let of = |containers: &[&observed::Container]| {
            let containers = containers.iter().map(|&own| own.clone());
            Observed::new(Vec::new(), containers.collect())
        };
        let count = |before: &Observed, after: &Observed| newly_ended(before, after).count();
        assert_eq!(count(&of(&[&running]), &of(&[&ended])), 1);
        assert_eq!(count(&of(&[&ended]), &of(&[&ended])), 0);
        assert_eq!(count(&of(&[&ended]), &of(&[&ended, &brief])), 1);
        assert_eq!(count(&of(&[&ended]), &of(&[])), 0);
    }
}
