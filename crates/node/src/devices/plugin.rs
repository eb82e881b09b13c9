//! Calls to a device plugin.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::wire::{
    AllocateRequest, AllocateResponse, ContainerAllocateRequest, ContainerAllocateResponse,
    ContainerPreferredAllocationRequest, DevicePluginOptions, Empty, ListAndWatchResponse,
    PreStartContainerRequest, PreferredAllocationRequest, PreferredAllocationResponse,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// `KubeletPreStartContainerRPCTimeoutInSecs`.
const PRE_START_TIMEOUT: Duration = Duration::from_secs(30);
/// The kubelet waits forever; other pods wait for their devices meanwhile.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to a plugin; clones share it.
#[derive(Clone, Debug)]
pub(super) struct PluginClient(Grpc<Channel>);

impl PluginClient {
    /// Connects to the socket of a plugin.
    pub(super) async fn connect(socket: &Path) -> Result<PluginClient, String> {
        let path: Arc<Path> = socket.into();
        let connect = tower::service_fn(move |_: Uri| {
            let path = Arc::clone(&path);
            async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
        });
        let endpoint = Endpoint::from_static("http://localhost").connect_timeout(CONNECT_TIMEOUT);
        let connecting = endpoint.connect_with_connector(connect);
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let problem = match connected {
            Ok(Ok(channel)) => return Ok(PluginClient(Grpc::new(channel))),
            Ok(Err(error)) => cause(&error),
            Err(_) => "context deadline exceeded".to_owned(),
        };
        Err(format!("failed to dial device plugin: {problem}"))
    }

    pub(super) async fn options(&self) -> Result<DevicePluginOptions, String> {
        self.call(
            "/v1beta1.DevicePlugin/GetDevicePluginOptions",
            Empty {},
            CALL_TIMEOUT,
        )
        .await
    }

    /// All devices, as often as something changes.
    pub(super) async fn devices(&self) -> Result<Streaming<ListAndWatchResponse>, Status> {
        let mut grpc = self.0.clone();
        ready(&mut grpc).await?;
        let path = PathAndQuery::from_static("/v1beta1.DevicePlugin/ListAndWatch");
        let request = Request::new(Empty {});
        let answer = grpc
            .server_streaming(request, path, ProstCodec::default())
            .await?;
        Ok(answer.into_inner())
    }

    /// The devices that the plugin would choose for a container.
    pub(super) async fn preferred(
        &self,
        request: ContainerPreferredAllocationRequest,
    ) -> Result<Vec<String>, String> {
        let request = PreferredAllocationRequest {
            container_requests: vec![request],
        };
        let path = "/v1beta1.DevicePlugin/GetPreferredAllocation";
        let answer: PreferredAllocationResponse = self.call(path, request, CALL_TIMEOUT).await?;
        let first = answer.container_responses.into_iter().next();
        Ok(first
            .map(|response| response.device_ids)
            .unwrap_or_default())
    }

    /// Has devices prepared for a container.
    pub(super) async fn allocate(
        &self,
        devices: Vec<String>,
    ) -> Result<ContainerAllocateResponse, String> {
        let request = AllocateRequest {
            container_requests: vec![ContainerAllocateRequest {
                devices_ids: devices,
            }],
        };
        let path = "/v1beta1.DevicePlugin/Allocate";
        let answer: AllocateResponse = self.call(path, request, CALL_TIMEOUT).await?;
        let first = answer.container_responses.into_iter().next();
        first.ok_or_else(|| "no containers return in allocation response".to_owned())
    }

    /// Has devices prepared for a start of their container.
    pub(super) async fn pre_start(&self, devices: Vec<String>) -> Result<(), String> {
        let request = PreStartContainerRequest {
            devices_ids: devices,
        };
        let path = "/v1beta1.DevicePlugin/PreStartContainer";
        let Empty {} = self.call(path, request, PRE_START_TIMEOUT).await?;
        Ok(())
    }

    async fn call<Q, A>(&self, path: &'static str, message: Q, limit: Duration) -> Result<A, String>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.0.clone();
        let calling = async {
            ready(&mut grpc).await?;
            let (path, request) = (PathAndQuery::from_static(path), Request::new(message));
            let answer = grpc.unary(request, path, ProstCodec::default()).await?;
            Ok(answer.into_inner())
        };
        let answered = tokio::time::timeout(limit, calling).await;
        let timed_out = |_| Err(Status::deadline_exceeded("context deadline exceeded"));
        answered
            .unwrap_or_else(timed_out)
            .map_err(|status: Status| {
                // As Go's gRPC prints it.
                format!(
                    "rpc error: code = {:?} desc = {}",
                    status.code(),
                    status.message()
                )
            })
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(cause(&error)))
}

/// The innermost cause: errors of the transport layers above it add nothing useful.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
