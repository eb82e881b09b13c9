//! Starting one container.

use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::wire::PodSandboxConfig;
use tokio::time::Instant;

use crate::pod_fields::{self, Part};
use crate::pods::hook::Hook;
use crate::pods::host::ContainerRequest;
use crate::pods::note::{Note, about, reason};
use crate::pods::plan::{self, Amounts, Due, Kill, KillReason};
use crate::pods::status::StartFailure;

use super::counting::container_type;
use super::{Worker, ended};

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It runs.
    Started,
    /// It has to wait until then.
    Waits(Timestamp),
    /// It could not be started; why is remembered.
    Failed,
    /// The pod is to end.
    Interrupted,
}

/// Where a container is started.
struct Place<'a> {
    config: &'a PodSandboxConfig,
    sandbox: &'a str,
    ips: &'a [String],
}

impl Worker {
    /// Starts a container unless it has to wait.
    pub(super) async fn start(
        &mut self,
        pod: &Arc<Pod>,
        part: &Part<'_>,
        config: &PodSandboxConfig,
        sandbox: &str,
        ips: &[String],
    ) -> Outcome {
        let container = part.container.as_ref();
        let now = self.shared().clock.now();
        let due = {
            let state = self.record.state();
            plan::due(pod, container, &state.observed, &state.back_off, now)
        };
        match due {
            Due::Later { wait, message } => {
                let note = format!(
                    "Back-off restarting failed container {} in pod {}",
                    container.name,
                    pod_fields::display_pod(pod)
                );
                self.record_event(pod, container, Note::warning(reason::BACK_OFF, note), None);
                self.remember_failure(container, "CrashLoopBackOff", message);
                return Outcome::Waits(wait.until);
            }
            Due::Now {
                last_end: Some(ended),
            } => {
                let back_off = &mut self.record.state().back_off;
                back_off.remember(&plan::key(container), ended, now);
            }
            Due::Now { last_end: None } => {}
        }
        let place = Place {
            config,
            sandbox,
            ips,
        };
        let images = &self.record.shared.images;
        let begun = Instant::now();
        let image = tokio::select! {
            image = images.ensure(pod, container, config) => image,
            () = ended(self.desired.clone()) => return Outcome::Interrupted,
        };
        self.record.state().pulling += begun.elapsed();
        let image = match image {
            Ok(image) => image,
            Err(failure) => {
                let note = Note::warning(reason::FAILED, format!("Error: {}", failure.reason));
                self.record_event(pod, container, note, None);
                let outcome = match images.waits_until(pod, container) {
                    Some(until) => Outcome::Waits(until),
                    None => Outcome::Failed,
                };
                self.count_start_of(part, Some(failure.reason));
                let mut state = self.record.state();
                state.failures.insert(container.name.clone(), failure);
                return outcome;
            }
        };
        match self.make(pod, part, &place, &image).await {
            Ok(()) => {
                self.count_start_of(part, None);
                self.record.state().failures.remove(&container.name);
                Outcome::Started
            }
            Err(failure) => {
                self.count_start_of(part, Some(failure.reason));
                let mut state = self.record.state();
                state.failures.insert(container.name.clone(), failure);
                Outcome::Failed
            }
        }
    }

    fn count_start_of(&self, part: &Part<'_>, error: Option<&str>) {
        let kind = container_type(part.kind);
        self.shared().metrics.container_started(kind, error);
    }

    /// Makes a container and starts it.
    async fn make(
        &self,
        pod: &Arc<Pod>,
        part: &Part<'_>,
        place: &Place<'_>,
        image: &plimsoll_runtime::wire::ImageSpec,
    ) -> Result<(), StartFailure> {
        let container = part.container.as_ref();
        let runtime = Arc::clone(&self.shared().runtime);
        let fail = |reason: &'static str, message: String, id: Option<&str>| {
            let note = Note::warning(reason::FAILED, format!("Error: {message}"));
            self.record_event(pod, container, note, id);
            StartFailure { reason, message }
        };
        let target = self
            .target(part)
            .map_err(|message| fail("CreateContainerConfigError", message, None))?;
        let restart_count = self.next_count(container, place.config).await;
        let request = ContainerRequest {
            pod,
            container,
            restart_count,
            image,
            pod_ips: place.ips,
            target: target.as_deref(),
            sandbox_config: place.config,
        };
        let config = self.shared().host.container_config(request).await;
        let config =
            config.map_err(|error| fail("CreateContainerConfigError", error.message, None))?;
        let amounts = Amounts::of(pod, container);
        let name = container.name.clone();
        self.record
            .state()
            .actuated
            .containers
            .insert(name, amounts);
        let created = runtime
            .create_container(place.sandbox, &config, place.config)
            .await;
        let id = created.map_err(|error| fail("CreateContainerError", error.chain(), None))?;
        let note = Note::normal(reason::CREATED, "Container created");
        self.record_event(pod, container, note, Some(&id));
        let started = runtime.start_container(&id).await;
        started.map_err(|error| fail("RunContainerError", error.chain(), Some(&id)))?;
        let note = Note::normal(reason::STARTED, "Container started");
        self.record_event(pod, container, note, Some(&id));
        let log = Path::new(&place.config.log_directory).join(&config.log_path);
        self.link_log(pod, container, &id, &log).await;
        self.run_post_start(pod, container, &id, place).await
    }

    /// Creates a link to the log in the directory of log collectors.
    async fn link_log(&self, pod: &Pod, container: &Container, id: &str, log: &Path) {
        let Some(folder) = &self.shared().settings.container_logs_dir else {
            return;
        };
        let link = folder.join(link_name(pod, &container.name, id));
        // A link to nothing would only have to be removed again.
        if tokio::fs::metadata(log).await.is_ok()
            && let Err(error) = tokio::fs::symlink(log, &link).await
        {
            tracing::warn!(link = %link.display(), %error, "failed to create log symlink");
        }
    }

    /// Runs the hook after the start, if there is one. If it fails the container is stopped.
    async fn run_post_start(
        &self,
        pod: &Pod,
        container: &Container,
        id: &str,
        place: &Place<'_>,
    ) -> Result<(), StartFailure> {
        let lifecycle = container.lifecycle.as_ref();
        let Some(handler) = lifecycle.and_then(|hooks| hooks.post_start.as_ref()) else {
            return Ok(());
        };
        let hook = Hook {
            pod,
            container,
            id,
            pod_ip: place.ips.first().map(String::as_str),
        };
        let shared = self.shared();
        let record = |note| shared.host.record(pod, note);
        let result = tokio::select! {
            result = hook.run(handler, &*shared.runtime, &record) => result,
            () = ended(self.desired.clone()) => return Ok(()),
        };
        let Err(message) = result else {
            return Ok(());
        };
        // What the hook said may be secret, so events do not repeat it.
        let note = Note::warning(reason::FAILED_POST_START_HOOK, "PostStartHook failed");
        self.record_event(pod, container, note, Some(id));
        let kill = Kill {
            id: id.to_owned(),
            name: container.name.clone(),
            message: "FailedPostStartHook".to_owned(),
            reason: KillReason::Other,
        };
        if let Err(error) = self.stop_one(pod, &kill).await {
            tracing::warn!(container = container.name, %error, "failed to kill container after postStart hook failed");
        }
        Err(StartFailure {
            reason: "PostStartHookError",
            message,
        })
    }

    /// The container whose processes an ephemeral one shares.
    fn target(&self, part: &Part<'_>) -> Result<Option<String>, String> {
        let Some(target) = part.target else {
            return Ok(None);
        };
        let state = self.record.state();
        match state.observed.latest(target) {
            Some(seen) => Ok(Some(seen.id.clone())),
            None => Err(format!("unable to find target container {target}")),
        }
    }

    /// How often the container will have been started before. If the runtime has forgotten it,
    /// its logs show it.
    async fn next_count(&self, container: &Container, config: &PodSandboxConfig) -> u32 {
        let seen = {
            let state = self.record.state();
            let seen = state.observed.latest(&container.name);
            seen.map(|seen| seen.restart_count)
        };
        match seen {
            Some(count) => count.saturating_add(1),
            None => count_of_logs(&Path::new(&config.log_directory).join(&container.name)).await,
        }
    }

    pub(super) fn record_event(
        &self,
        pod: &Pod,
        container: &Container,
        note: Note,
        id: Option<&str>,
    ) {
        let note = about(note, pod, container, id);
        self.shared().host.record(pod, note);
    }

    fn remember_failure(&self, container: &Container, reason: &'static str, message: String) {
        let failure = StartFailure { reason, message };
        let mut state = self.record.state();
        state.failures.insert(container.name.clone(), failure);
    }
}

/// The name of the link to a log, cut to what file systems take.
pub(crate) fn link_name(pod: &Pod, container: &str, id: &str) -> String {
    const SUFFIX: &str = ".log";
    const MAX_BYTES: usize = 255;
    let (namespace, pod) = (pod_fields::namespace(pod), pod_fields::name(pod));
    let mut name = format!("{pod}_{namespace}_{container}-{id}");
    name.truncate(name.floor_char_boundary(MAX_BYTES - SUFFIX.len()));
    name + SUFFIX
}

/// One more than the highest number of a log in the folder; zero if there is none.
async fn count_of_logs(folder: &Path) -> u32 {
    let mut count = 0;
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else {
        return count;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.split_once(".log"));
        let number = number.filter(|(_, rest)| rest.is_empty() || rest.starts_with('.'));
        if let Some(number) = number.and_then(|(number, _)| number.parse::<u32>().ok()) {
            count = count.max(number.saturating_add(1));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_logs_have_names_that_fit() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web", "namespace": "ns"},
        }))
        .unwrap();
        assert_eq!(link_name(&pod, "a", "123"), "web_ns_a-123.log");
        assert_eq!(link_name(&pod, &"a".repeat(300), "123").len(), 255);
    }

    #[tokio::test]
    async fn restart_count_of_a_forgotten_container_is_read_from_its_logs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(count_of_logs(&folder.path().join("none")).await, 0);
        assert_eq!(count_of_logs(folder.path()).await, 0);
        for name in ["0.log", "3.log.20260101-000000.gz", "x.log", "9.logs"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(count_of_logs(folder.path()).await, 4);
    }
}
