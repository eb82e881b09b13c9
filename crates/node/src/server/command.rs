//! `/exec`, `/attach` and `/run`: processes in containers.
//!
//! Matches v1.36 pkg/kubelet/server/server.go and pkg/kubelet/kubelet_pods.go.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_runtime::wire::{
    AttachRequest, ContainerFilter, ContainerState, ContainerStateValue, ExecRequest,
};
use plimsoll_runtime::{self as runtime, Session};

use super::answer::{Refusal, refuse};
use super::body::Body;
use super::node::Node;
use super::query::Query;
use super::route::ContainerOf;
use super::stream::session::Kind;
use super::stream::{Agreement, Spoken, agree, translate};
use super::{Server, answer};

/// Labels by which the runtime finds what belongs to a pod.
pub(super) const POD_UID: &str = "io.kubernetes.pod.uid";
const CONTAINER_NAME: &str = "io.kubernetes.container.name";

/// Which streams of a process are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

impl Wanted {
    /// A terminal has one output only.
    fn read(query: &Query) -> Option<Wanted> {
        let flag = |name| query.first(name) == Some("1");
        let tty = flag("tty");
        let wanted = Wanted {
            stdin: flag("input"),
            stdout: flag("output"),
            stderr: flag("error") && !tty,
            tty,
        };
        (wanted.stdin || wanted.stdout || wanted.stderr).then_some(wanted)
    }
}

impl Server {
    /// Runs a command in a container.
    pub(super) async fn exec(
        &self,
        request: Request<Incoming>,
        of: &ContainerOf,
        query: &Query,
    ) -> Result<Response<Body>, Refusal> {
        let (pod, wanted) = self.checked(of, query)?;
        let id = running_container(&*self.node, &pod, of).await;
        let container_id = id.map_err(|error| runtime_error(&error))?.ok_or_else(|| {
            let text = format!("container not found ({:?})", of.container);
            refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
        })?;
        let agreement = agree(request.headers(), Spoken::Command)?;
        let command: Vec<String> = query.all("command").map(str::to_owned).collect();
        let exec = ExecRequest {
            container_id,
            cmd: command.clone(),
            tty: wanted.tty,
            stdin: wanted.stdin,
            stdout: wanted.stdout,
            stderr: wanted.stderr,
        };
        let session = self.node.runtime().exec(&exec).await;
        let kind = Kind::Exec(command);
        self.begin(request, agreement, session, wanted, kind).await
    }

    /// Joins the first process of a container.
    pub(super) async fn attach(
        &self,
        request: Request<Incoming>,
        of: &ContainerOf,
        query: &Query,
    ) -> Result<Response<Body>, Refusal> {
        let (pod, wanted) = self.checked(of, query)?;
        let id = running_container(&*self.node, &pod, of).await;
        let id = id.map_err(|error| runtime_error(&error))?;
        // Whether there is a terminal was decided when the container was made.
        let (Some(container_id), Some(tty)) = (id, has_terminal(&pod, &of.container)) else {
            let (container, pod) = (&of.container, &of.pod);
            let text = format!(
                "container {container} not found in pod {}_{}",
                pod.name, pod.namespace
            );
            return Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, text));
        };
        let agreement = agree(request.headers(), Spoken::Command)?;
        let wanted = Wanted {
            stderr: wanted.stderr && !tty,
            tty,
            ..wanted
        };
        let attach = AttachRequest {
            container_id,
            stdin: wanted.stdin,
            tty,
            stdout: wanted.stdout,
            stderr: wanted.stderr,
        };
        let session = self.node.runtime().attach(&attach).await;
        self.begin(request, agreement, session, wanted, Kind::Attach)
            .await
    }

    /// Checks the request before the runtime is called.
    fn checked(&self, of: &ContainerOf, query: &Query) -> Result<(Arc<Pod>, Wanted), Refusal> {
        let wanted = Wanted::read(query).ok_or_else(|| {
            let text = "you must specify at least 1 of stdin, stdout, stderr";
            refuse(StatusCode::BAD_REQUEST, text)
        })?;
        let pod = self.node.pod(&of.pod.namespace, &of.pod.name);
        Ok((pod.ok_or_else(no_such_pod)?, wanted))
    }

    async fn begin(
        &self,
        request: Request<Incoming>,
        agreement: Agreement,
        session: Result<Session, runtime::Error>,
        wanted: Wanted,
        kind: Kind,
    ) -> Result<Response<Body>, Refusal> {
        match session {
            Ok(Session::Here(process)) => {
                self.upgrade(request, agreement, Ok(process), wanted, kind)
            }
            Ok(Session::Elsewhere(url)) if agreement.is_beyond_runtimes() => {
                let process = translate(&url, wanted).await?;
                self.upgrade(request, agreement, Ok(process), wanted, kind)
            }
            Ok(Session::Elsewhere(url)) => self.pass_on(request, &url).await,
            // The command was tried: the error goes into the client's error stream.
            Err(error @ runtime::Error::Failed { .. }) => {
                self.upgrade(request, agreement, Err(error), wanted, kind)
            }
            Err(error) => Err(runtime_error(&error)),
        }
    }
}

/// `/run`: a command without streams, and its output.
pub(super) async fn run(
    node: &dyn Node,
    of: &ContainerOf,
    query: &Query,
) -> Result<Response<Body>, Refusal> {
    let pod = node.pod(&of.pod.namespace, &of.pod.name);
    let pod = pod.ok_or_else(no_such_pod)?;
    let failed = |text: String| refuse(StatusCode::INTERNAL_SERVER_ERROR, text);
    let id = running_container(node, &pod, of).await;
    let id = id.map_err(|error| failed(error.chain()))?;
    let id = id.ok_or_else(|| failed(format!("container not found ({:?})", of.container)))?;
    let line = query.first("cmd").unwrap_or_default();
    let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let runtime = node.runtime();
    let ran = runtime.exec_sync(&id, &command, Duration::ZERO).await;
    let ran = ran.map_err(|error| failed(error.chain()))?;
    if ran.exit_code != 0 {
        let (code, errors) = (ran.exit_code, String::from_utf8_lossy(&ran.stderr));
        return Err(failed(format!(
            "command '{line}' exited with {code}: {errors}"
        )));
    }
    Ok(answer::json([ran.stdout, ran.stderr].concat()))
}

pub(super) fn no_such_pod() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "pod does not exist")
}

/// Matches v1.36 cri-streaming/pkg/streaming/errors.go.
pub(super) fn runtime_error(error: &runtime::Error) -> Refusal {
    let code = if error.is_not_found() {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    refuse(code, error.chain())
}

/// The container that is running now under that name.
async fn running_container(
    node: &dyn Node,
    pod: &Pod,
    of: &ContainerOf,
) -> Result<Option<String>, runtime::Error> {
    let uid = match &of.pod.uid {
        Some(uid) => node.translate_uid(uid),
        None => pod.metadata.uid.clone().unwrap_or_default(),
    };
    let filter = ContainerFilter {
        state: Some(ContainerStateValue {
            state: ContainerState::ContainerRunning.into(),
        }),
        label_selector: [
            (POD_UID.to_owned(), uid),
            (CONTAINER_NAME.to_owned(), of.container.clone()),
        ]
        .into(),
        ..ContainerFilter::default()
    };
    let found = node.runtime().list_containers(&filter).await?;
    Ok(found.into_iter().next().map(|container| container.id))
}

/// Whether a container has a terminal; `None` if there is no such container.
fn has_terminal(pod: &Pod, container: &str) -> Option<bool> {
    let spec = pod.spec.as_ref()?;
    let regular = spec.containers.iter().map(|c| (&c.name, c.tty));
    let init = spec.init_containers.iter().flatten();
    let init = init.map(|c| (&c.name, c.tty));
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|c| (&c.name, c.tty));
    let mut all = regular.chain(init).chain(ephemeral);
    let (_, tty) = all.find(|(name, _)| *name == container)?;
    Some(tty.unwrap_or(false))
}
