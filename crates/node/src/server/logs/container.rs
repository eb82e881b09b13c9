//! Which container's log it is.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

/// Why there is no log, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoLog {
    #[error("container {container:?} in pod {pod:?} is not available")]
    NotAvailable { container: String, pod: String },
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious { container: String, pod: String },
    #[error("container {container:?} in pod {pod:?} is terminated")]
    Terminated { container: String, pod: String },
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    Waiting {
        container: String,
        pod: String,
        reason: String,
    },
    #[error("container {container:?} in pod {pod:?} is waiting to start - no logs yet")]
    NoState { container: String, pod: String },
}

/// Whether the pod has a container of that name, of whatever kind.
pub(super) fn has_container(pod: &Pod, container: &str) -> bool {
    let Some(spec) = &pod.spec else {
        return false;
    };
    let regular = spec.containers.iter().map(|c| &c.name);
    let init = spec.init_containers.iter().flatten().map(|c| &c.name);
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|c| &c.name);
    let mut names = regular.chain(init).chain(ephemeral);
    names.any(|name| name == container)
}

/// The id of the container whose log is meant, as the status has it (`containerd://…`).
pub(super) fn log_of(pod: &Pod, container: &str, previous: bool) -> Result<String, NoLog> {
    let name = || container.to_owned();
    let pod_name = || pod.metadata.name.clone().unwrap_or_default();
    let Some(status) = status_of(pod, container) else {
        return Err(NoLog::NotAvailable {
            container: name(),
            pod: pod_name(),
        });
    };
    let state = status.state.clone().unwrap_or_default();
    let last = status.last_state.as_ref();
    let last = last.and_then(|last| last.terminated.as_ref());
    let terminated = || NoLog::Terminated {
        container: name(),
        pod: pod_name(),
    };
    if previous {
        return id_of(last).ok_or_else(|| NoLog::NoPrevious {
            container: name(),
            pod: pod_name(),
        });
    }
    if state.running.is_some() {
        return Ok(status.container_id.clone().unwrap_or_default());
    }
    if let Some(ended) = &state.terminated {
        // A container that never started has no id; the one before it may have had.
        let id = id_of(Some(ended)).or_else(|| id_of(last));
        return id.ok_or_else(terminated);
    }
    if last.is_some() {
        return id_of(last).ok_or_else(terminated);
    }
    Err(match state.waiting {
        Some(waiting) => NoLog::Waiting {
            container: name(),
            pod: pod_name(),
            reason: match waiting.reason.unwrap_or_default().as_str() {
                "ErrImagePull" => "image can't be pulled".to_owned(),
                "ImagePullBackOff" => "trying and failing to pull image".to_owned(),
                reason => reason.to_owned(),
            },
        },
        None => NoLog::NoState {
            container: name(),
            pod: pod_name(),
        },
    })
}

fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let lists = [
        &status.container_statuses,
        &status.init_container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let mut all = lists.into_iter().flatten().flatten();
    all.find(|status| status.name == container)
}

fn id_of(ended: Option<&ContainerStateTerminated>) -> Option<String> {
    let id = ended.and_then(|ended| ended.container_id.clone());
    id.filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        let pod = json!({
            "metadata": {"name": "web"},
            "spec": {
                "containers": [{"name": "app"}],
                "initContainers": [{"name": "init"}],
                "ephemeralContainers": [{"name": "debug"}],
            },
            "status": {"containerStatuses": [status]},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn app(state: Value, last: Value) -> Pod {
        pod(json!({
            "name": "app", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": "x://now", "state": state, "lastState": last,
        }))
    }

    fn text(pod: &Pod, previous: bool) -> String {
        log_of(pod, "app", previous).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_log_is_that_of_the_newest_container_that_ran() {
        let ended = |id: &str| json!({"terminated": {"exitCode": 1, "containerID": id}});
        let none = json!({});
        let running = json!({"running": {}});
        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        let cases = [
            (running.clone(), none.clone(), false, "x://now"),
            (running.clone(), ended("x://old"), true, "x://old"),
            (
                running,
                none.clone(),
                true,
                r#"previous terminated container "app" in pod "web" not found"#,
            ),
            (ended("x://end"), none.clone(), false, "x://end"),
            (ended(""), ended("x://old"), false, "x://old"),
            (
                ended(""),
                none.clone(),
                false,
                r#"container "app" in pod "web" is terminated"#,
            ),
            (
                waiting("CrashLoopBackOff"),
                ended("x://old"),
                false,
                "x://old",
            ),
            (
                waiting("ContainerCreating"),
                none.clone(),
                false,
                r#"container "app" in pod "web" is waiting to start: ContainerCreating"#,
            ),
            (
                waiting("ErrImagePull"),
                none.clone(),
                false,
                r#"container "app" in pod "web" is waiting to start: image can't be pulled"#,
            ),
            (
                waiting("ImagePullBackOff"),
                none.clone(),
                false,
                "container \"app\" in pod \"web\" is waiting to start: \
                 trying and failing to pull image",
            ),
            (
                none.clone(),
                none,
                false,
                r#"container "app" in pod "web" is waiting to start - no logs yet"#,
            ),
        ];
        for (state, last, previous, expected) in cases {
            let pod = app(state.clone(), last.clone());
            assert_eq!(text(&pod, previous), expected, "{state} after {last}");
        }
    }

    #[test]
    fn containers_of_every_kind_have_logs() {
        let pod = app(json!({}), json!({}));
        for name in ["app", "init", "debug"] {
            assert!(has_container(&pod, name), "{name}");
        }
        assert!(!has_container(&pod, "other"));
        let missing = log_of(&pod, "init", false).unwrap_err().to_string();
        assert_eq!(missing, r#"container "init" in pod "web" is not available"#);
    }
}
