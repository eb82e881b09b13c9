//! Hooks of a container: after its start and before its end.
//!
//! Matches v1.36 pkg/kubelet/lifecycle/handlers.go.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ExecAction, LifecycleHandler, Pod};
use plimsoll_runtime::Runtime;

use super::fetch::{self, FetchError, Purpose};
use super::note::{Note, reason};
use crate::pod_fields;

/// Where a hook runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// The container.
    pub(crate) container: &'a Container,
    /// Its runtime id.
    pub(crate) id: &'a str,
    /// The pod's address.
    pub(crate) pod_ip: Option<&'a str>,
}

impl Hook<'_> {
    /// Runs a hook to its end; fails with what stands in the status. Events go to `record`.
    pub(crate) async fn run(
        self,
        handler: &LifecycleHandler,
        runtime: &dyn Runtime,
        record: &(dyn Fn(Note) + Sync),
    ) -> Result<(), String> {
        let (kind, what, result) = if let Some(exec) = &handler.exec {
            let command = exec.command.as_deref().unwrap_or_default();
            let what = format!("[{}]", command.join(" "));
            ("Exec", what, self.exec(exec, runtime).await)
        } else if let Some(action) = &handler.http_get {
            let what = action.path.clone().unwrap_or_default();
            ("HTTP", what, self.http_get(action, record).await)
        } else if let Some(sleep) = &handler.sleep {
            let secs = u64::try_from(sleep.seconds).unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(secs)).await;
            return Ok(());
        } else {
            return Err("Cannot run handler: invalid handler".to_owned());
        };
        result.map_err(|error| {
            format!(
                "{kind} lifecycle hook ({what}) for Container {:?} in Pod {:?} failed - error: {error}",
                self.container.name,
                pod_fields::display_pod(self.pod),
            )
        })
    }

    async fn exec(self, exec: &ExecAction, runtime: &dyn Runtime) -> Result<(), String> {
        let command = exec.command.as_deref().unwrap_or_default();
        let answer = runtime.exec_sync(self.id, command, Duration::ZERO).await;
        let answer = answer.map_err(|error| format!("{}, message: \"\"", error.chain()))?;
        if answer.exit_code == 0 {
            return Ok(());
        }
        let mut output = answer.stdout;
        output.extend_from_slice(&answer.stderr);
        Err(format!(
            "command '{}' exited with {}: {}, message: {:?}",
            command.join(" "),
            answer.exit_code,
            String::from_utf8_lossy(&answer.stderr),
            String::from_utf8_lossy(&output),
        ))
    }

    /// Any answer will do. After a plain answer to a TLS request, it is sent again in plain.
    async fn http_get(
        self,
        action: &k8s_openapi::api::core::v1::HTTPGetAction,
        record: &(dyn Fn(Note) + Sync),
    ) -> Result<(), String> {
        let has_own_host = action.host.as_deref().is_some_and(|host| !host.is_empty());
        let pod_ip = match self.pod_ip {
            Some(pod_ip) => pod_ip,
            None if has_own_host => "",
            None => return Err("failed to find networking container".to_owned()),
        };
        let purpose = Purpose::Lifecycle;
        match fetch::get(action, self.container, pod_ip, purpose).await {
            Ok(_) => Ok(()),
            Err(error @ FetchError::PlainAnswer { .. }) => {
                let again = fetch::get_plain(action, self.container, pod_ip, purpose).await;
                again.map_err(|_| error.to_string())?;
                let target = fetch::Target::of(action, self.container, pod_ip)?;
                let message = format!(
                    "request to HTTPS lifecycle hook {} got HTTP response, retry with HTTP succeeded",
                    target.address()
                );
                record(Note::warning(reason::LIFECYCLE_HTTP_FALLBACK, message));
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
