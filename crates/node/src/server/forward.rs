//! `/portForward`: ports of a pod.
//!
//! Matches v1.36 pkg/kubelet/server/server.go and pkg/kubelet/kubelet_pods.go.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use plimsoll_runtime::Ports;
use plimsoll_runtime::wire::{PodSandboxFilter, PodSandboxState, PodSandboxStateValue};

use super::Server;
use super::answer::{Refusal, refuse};
use super::body::Body;
use super::command::{POD_UID, no_such_pod, runtime_error};
use super::route::PodNamed;
use super::stream::{Spoken, Target, agree, require_upgrade};

impl Server {
    /// Forwards ports of a pod.
    pub(super) async fn port_forward(
        &self,
        request: Request<Incoming>,
        named: &PodNamed,
    ) -> Result<Response<Body>, Refusal> {
        let pod = self.node.pod(&named.namespace, &named.name);
        let pod = pod.ok_or_else(no_such_pod)?;
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let Some(asked) = &named.uid
            && self.node.translate_uid(asked) != uid
        {
            return Err(refuse(StatusCode::NOT_FOUND, "pod not found"));
        }
        let filter = PodSandboxFilter {
            state: Some(PodSandboxStateValue {
                state: PodSandboxState::SandboxReady.into(),
            }),
            label_selector: [(POD_UID.to_owned(), uid.clone())].into(),
            ..PodSandboxFilter::default()
        };
        let runtime = self.node.runtime();
        let found = runtime.list_pod_sandboxes(&filter).await;
        let found = found.map_err(|error| runtime_error(&error))?;
        let Some(sandbox) = found.into_iter().next() else {
            let text = format!("pod not found (\"{}_{}\")", named.name, named.namespace);
            return Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, text));
        };
        require_upgrade(request.headers())?;
        let ports = runtime.port_forward(&sandbox.id).await;
        match ports.map_err(|error| runtime_error(&error))? {
            Ports::Elsewhere(url) => self.pass_on(request, &url).await,
            Ports::Here(dial) => {
                let agreement = agree(request.headers(), Spoken::PortForward)?;
                let name = named.name.clone();
                self.forward_ports(request, &agreement, dial, Target { name, uid })
            }
        }
    }
}
