//! Asking containers whether they are well.
//!
//! One task per pod that has probes; each probe of it is a `tracker::Tracker`, which says when to
//! ask and what the answers amount to. Matches v1.36 pkg/kubelet/prober, except that the first
//! question comes when it is due, not at the next tick after.
//!
//! Reading order: `tracker` (pure), `action` (one question), `grpc`, `prober` (the task).

mod action;
mod grpc;
mod prober;
mod tracker;

use k8s_openapi::api::core::v1::{Container, Probe};

pub(crate) use prober::run;

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Whether the container has started; until then the others wait.
    Startup,
    /// Whether it can take requests.
    Readiness,
    /// Whether it has to be replaced.
    Liveness,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Startup, Kind::Readiness, Kind::Liveness];

    /// As messages to users have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Startup => "Startup",
            Kind::Readiness => "Readiness",
            Kind::Liveness => "Liveness",
        }
    }

    /// The container's probe of this kind.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Kind::Startup => container.startup_probe.as_ref(),
            Kind::Readiness => container.readiness_probe.as_ref(),
            Kind::Liveness => container.liveness_probe.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests;
