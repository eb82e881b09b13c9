//! Whether a container may be started now, or has to wait because it failed lately.

use k8s_openapi::api::core::v1::{Container, Pod};
use plimsoll_core::object::timestamp::Timestamp;

use crate::pod_fields;
use crate::pods::back_off::{BackOff, Wait};
use crate::pods::observed::{Observed, State};

/// When a container may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Now. If it has run before, that is its latest end, which the back-off needs.
    Now {
        /// When it ended last.
        last_end: Option<Timestamp>,
    },
    /// Later.
    Later {
        /// How long it waits.
        wait: Wait,
        /// For the status.
        message: String,
    },
}

/// The key of a container in the memory of failures. One that was changed starts afresh.
pub fn key(container: &Container) -> String {
    let image = container.image.as_deref().unwrap_or_default();
    let resources = serde_json::to_string(&container.resources).unwrap_or_default();
    format!("{}/{image}/{resources}", container.name)
}

/// Whether the container may be started now. Its latest end is what counts.
pub fn due(
    pod: &Pod,
    container: &Container,
    observed: &Observed,
    back_off: &BackOff,
    now: Timestamp,
) -> Due {
    let ended = observed
        .containers
        .iter()
        .find(|seen| seen.name == container.name && seen.state == State::Exited);
    let Some(last_end) = ended.map(|seen| seen.finished_at.unwrap_or(seen.created_at)) else {
        return Due::Now { last_end: None };
    };
    match back_off.wait_since(&key(container), last_end, now) {
        None => Due::Now {
            last_end: Some(last_end),
        },
        Some(wait) => {
            let message = format!(
                "back-off {} restarting failed container={} pod={}",
                go_duration(wait.delay),
                container.name,
                pod_fields::display_pod(pod)
            );
            Due::Later { wait, message }
        }
    }
}

/// As Go prints durations: `10s`, `1m20s`, `5m0s`.
pub(crate) fn go_duration(duration: std::time::Duration) -> String {
    let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    plimsoll_core::duration::Duration::from_nanos(nanos).to_string()
}
