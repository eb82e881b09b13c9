//! The health protocol of gRPC, as much of it as a probe speaks.

use std::time::Duration;

use tonic::Code;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use super::action::Found;
use crate::pods::plan::go_duration;

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct HealthCheckResponse {
    #[prost(enumeration = "ServingStatus", tag = "1")]
    status: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum ServingStatus {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}

impl ServingStatus {
    fn as_wire_name(self) -> &'static str {
        match self {
            ServingStatus::Unknown => "UNKNOWN",
            ServingStatus::Serving => "SERVING",
            ServingStatus::NotServing => "NOT_SERVING",
            ServingStatus::ServiceUnknown => "SERVICE_UNKNOWN",
        }
    }
}

/// Asks a service for its health.
pub(super) async fn ask(host: &str, port: u16, service: &str, timeout: Duration) -> Found {
    let address = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let within = tokio::time::timeout(timeout, check(&address, service)).await;
    match within {
        Ok(Ok(Ok(status))) => match ServingStatus::try_from(status) {
            Ok(ServingStatus::Serving) => Found::Success("service healthy".to_owned()),
            Ok(status) => Found::Failure(format!(
                "service unhealthy (responded with {:?})",
                status.as_wire_name()
            )),
            Err(_) => Found::Failure(format!(
                "service unhealthy (responded with {:?})",
                status.to_string()
            )),
        },
        Ok(Ok(Err(error))) if error.code() == Code::Unimplemented => Found::Failure(format!(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
            error.message()
        )),
        Ok(Ok(Err(error))) if error.code() == Code::DeadlineExceeded => Found::Failure(format!(
            "timeout: health rpc did not complete within {}",
            go_duration(timeout)
        )),
        Ok(Ok(Err(error))) => Found::Failure(format!(
            "error: health rpc probe failed: rpc error: code = {:?} desc = {}",
            error.code(),
            error.message()
        )),
        Ok(Err(error)) => Found::Failure(format!(
            "error: failed to connect service at {address:?}: {error}"
        )),
        Err(_) => Found::Failure(format!(
            "timeout: failed to connect service {address:?} within {}: context deadline exceeded",
            go_duration(timeout)
        )),
    }
}

/// The outer error is that no connection was made, the inner one that the call failed.
async fn check(
    address: &str,
    service: &str,
) -> Result<Result<i32, tonic::Status>, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    let channel = endpoint.user_agent("kube-probe/1.36")?.connect().await?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let request = tonic::Request::new(HealthCheckRequest {
        service: service.to_owned(),
    });
    let path = http::uri::PathAndQuery::from_static("/grpc.health.v1.Health/Check");
    let codec: ProstCodec<HealthCheckRequest, HealthCheckResponse> = ProstCodec::default();
    let answer = client.unary(request, path, codec).await;
    Ok(answer.map(|answer| answer.into_inner().status))
}
