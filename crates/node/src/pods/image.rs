//! Making sure that an image is there before a container is made from it.
//!
//! Matches v1.36 pkg/kubelet/images/image_manager.go: the pull policy decides, a failed pull is
//! backed off per pod and image, pulls queue up and their rate is limited.

mod name;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::wire::{ImageSpec, PodSandboxConfig};
use plimsoll_runtime::{Error, Runtime};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::back_off::{BackOff, MAX};
use super::note::{Note, reason};
use super::plan::go_duration;
use super::status::StartFailure;
use super::{Clock, Host, Settings, pod_fields};

/// The images of the node, shared by all workers.
#[derive(Debug)]
pub struct Images {
    runtime: Arc<dyn Runtime>,
    host: Arc<dyn Host>,
    clock: Clock,
    queue: Option<Semaphore>,
    memory: Mutex<Memory>,
}

#[derive(Debug)]
struct Memory {
    back_off: BackOff,
    last_errors: BTreeMap<String, String>,
    bucket: Bucket,
}

/// Limits the rate of pulls, letting through a burst.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn try_take(&mut self, now: Instant) -> bool {
        if self.per_second <= 0.0 {
            return true;
        }
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.burst);
        self.filled = now;
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }
}

/// A failed image, with the reason as statuses have it.
fn failure(reason: &'static str, message: impl Into<String>) -> StartFailure {
    StartFailure {
        reason,
        message: message.into(),
    }
}

impl Images {
    /// The images of a runtime.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        host: Arc<dyn Host>,
        clock: Clock,
        settings: &Settings,
    ) -> Images {
        let burst = f64::from(settings.pull_burst);
        Images {
            runtime,
            host,
            clock,
            queue: settings.parallel_pulls.map(Semaphore::new),
            memory: Mutex::new(Memory {
                back_off: BackOff::new(MAX),
                last_errors: BTreeMap::new(),
                bucket: Bucket {
                    per_second: settings.pull_qps,
                    burst,
                    tokens: burst,
                    filled: Instant::now(),
                },
            }),
        }
    }

    /// Makes sure the container's image is there; answers how the runtime refers to it.
    pub async fn ensure(
        &self,
        pod: &Pod,
        container: &Container,
        sandbox: &PodSandboxConfig,
    ) -> Result<ImageSpec, StartFailure> {
        let asked = container.image.as_deref().unwrap_or_default();
        let record = |note: Note| self.host.record(pod, note.about(pod, container, None));
        let name = name::with_tag(asked).map_err(|error| {
            let message = format!("Failed to apply default image tag {asked:?}: {error}");
            record(Note::warning(reason::INSPECT_FAILED, &message));
            failure("InvalidImageName", message)
        })?;
        let spec = ImageSpec {
            image: name,
            ..ImageSpec::default()
        };
        let policy = container.image_pull_policy.as_deref();
        let policy = policy.unwrap_or_else(|| name::default_policy(asked));
        if policy != "Always" {
            match self.runtime.image_status(&spec).await {
                Ok(Some(image)) => {
                    let message = format!(
                        "Container image {asked:?} already present on machine and can be accessed by the pod"
                    );
                    record(Note::normal(reason::PULLED, message));
                    return Ok(used(image.id, asked));
                }
                Ok(None) if policy == "Never" => {
                    let message = format!(
                        "Container image {asked:?} is not present with pull policy of Never"
                    );
                    record(Note::warning(reason::ERR_IMAGE_NEVER_PULL, &message));
                    return Err(failure("ErrImageNeverPull", message));
                }
                Ok(None) => {}
                Err(error) => {
                    let message = format!("Failed to inspect image {:?}: {}", "", error.chain());
                    record(Note::warning(reason::INSPECT_FAILED, &message));
                    return Err(failure("ImageInspectError", message));
                }
            }
        }
        self.pull(pod, container, &spec, sandbox).await
    }

    async fn pull(
        &self,
        pod: &Pod,
        container: &Container,
        spec: &ImageSpec,
        sandbox: &PodSandboxConfig,
    ) -> Result<ImageSpec, StartFailure> {
        let asked = container.image.as_deref().unwrap_or_default();
        let record = |note: Note| self.host.record(pod, note.about(pod, container, None));
        let key = format!("{}_{asked}", pod_fields::uid(pod));
        if let Some(last_error) = self.waiting(&key) {
            let message = format!("Back-off pulling image {asked:?}");
            record(Note::normal(reason::BACK_OFF, &message));
            let message = match last_error {
                Some(error) => format!("{message}: {error}"),
                None => message,
            };
            return Err(failure("ImagePullBackOff", message));
        }
        record(Note::normal(
            reason::PULLING,
            format!("Pulling image {asked:?}"),
        ));
        let begun = Instant::now();
        let permit = match &self.queue {
            Some(queue) => queue.acquire().await.ok(),
            None => None,
        };
        let pulling = Instant::now();
        let pulled = self.try_pull(pod, spec, sandbox).await;
        let size = match &pulled {
            Ok(_) => self.runtime.image_status(spec).await.ok().flatten(),
            Err(_) => None,
        };
        drop(permit);
        match pulled {
            Ok(image) => {
                let message = format!(
                    "Successfully pulled image {asked:?} in {} ({} including waiting). Image size: {} bytes.",
                    whole_millis(pulling.elapsed()),
                    whole_millis(begun.elapsed()),
                    size.map_or(0, |image| image.size),
                );
                record(Note::normal(reason::PULLED, message));
                self.memory().back_off.forget_old(self.clock.now());
                Ok(used(image, asked))
            }
            Err(error) => {
                let text = error;
                let message = format!("Failed to pull image {asked:?}: {text}");
                record(Note::warning(reason::FAILED, message));
                let failed = pull_failure(asked, &text);
                let now = self.clock.now();
                let mut memory = self.memory();
                memory.back_off.remember(&key, now, now);
                let last_error = format!("{}: {}", failed.reason, failed.message);
                memory.last_errors.insert(key, last_error);
                Err(failed)
            }
        }
    }

    /// Whether the image has to wait, and if so with what error its last pull failed.
    fn waiting(&self, key: &str) -> Option<Option<String>> {
        let now = self.clock.now();
        let mut memory = self.memory();
        let waits = memory.back_off.wait_since_update(key, now).is_some();
        if waits {
            return Some(memory.last_errors.get(key).cloned());
        }
        memory.last_errors.remove(key);
        None
    }

    /// Until when the image of a container has to wait, if it has to.
    pub fn waits_until(&self, pod: &Pod, container: &Container) -> Option<Timestamp> {
        let image = container.image.as_deref().unwrap_or_default();
        let key = format!("{}_{image}", pod_fields::uid(pod));
        let wait = self
            .memory()
            .back_off
            .wait_since_update(&key, self.clock.now());
        wait.map(|wait| wait.until)
    }

    /// Forgets what is remembered for a pod that is gone.
    pub fn forget(&self, uid: &str) {
        let prefix = format!("{uid}_");
        let mut memory = self.memory();
        memory
            .last_errors
            .retain(|key, _| !key.starts_with(&prefix));
        memory.back_off.forget_prefix(&prefix);
    }

    /// Tries all credentials, or none if there are none.
    async fn try_pull(
        &self,
        pod: &Pod,
        spec: &ImageSpec,
        sandbox: &PodSandboxConfig,
    ) -> Result<String, String> {
        if !self.memory().bucket.try_take(Instant::now()) {
            return Err("pull QPS exceeded".to_owned());
        }
        let credentials = self.host.credentials(pod, &spec.image).await;
        let credentials = credentials.map_err(|error| error.message)?;
        if credentials.is_empty() {
            let pulled = self.runtime.pull_image(spec, None, sandbox).await;
            return pulled.map_err(|error| error.chain());
        }
        let mut errors: Vec<String> = Vec::new();
        for auth in &credentials {
            match self.runtime.pull_image(spec, Some(auth), sandbox).await {
                Ok(image) => return Ok(image),
                Err(error) => push_new(&mut errors, &error),
            }
        }
        Err(match errors.as_slice() {
            [only] => only.clone(),
            all => format!("[{}]", all.join(", ")),
        })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push_new(errors: &mut Vec<String>, error: &Error) {
    let text = error.chain();
    if !errors.contains(&text) {
        errors.push(text);
    }
}

fn used(image: String, asked: &str) -> ImageSpec {
    ImageSpec {
        image,
        user_specified_image: asked.to_owned(),
        ..ImageSpec::default()
    }
}

/// Runtimes distinguish two kinds of failure by the beginning of the error.
fn pull_failure(image: &str, error: &str) -> StartFailure {
    let kinds = [
        ("RegistryUnavailable", "the registry is unavailable"),
        (
            "SignatureValidationFailed",
            "the signature validation failed",
        ),
    ];
    for (kind, why) in kinds {
        if let Some(rest) = error.strip_prefix(kind) {
            return failure(
                kind,
                format!("image pull failed for {image} because {why}{rest}"),
            );
        }
    }
    failure("ErrImagePull", error)
}

fn whole_millis(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    go_duration(Duration::from_millis(millis))
}
