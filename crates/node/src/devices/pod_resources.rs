//! The pod resources API v1: which container has which devices, for monitoring agents.
//!
//! Matches v1.36 pkg/kubelet/apis/podresources/server_v1.go. There are no CPU and memory managers, so
//! that nothing is exclusive but devices.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::devices::{ContainerKind, Devices, PodDemand};
use tonic::body::Body;

use super::wire::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices,
    ContainerResources, GetPodResourcesRequest, GetPodResourcesResponse, ListPodResourcesRequest,
    ListPodResourcesResponse, NumaNode, PodResources, TopologyInfo,
};
use super::{DeviceManager, grpc};
use crate::pod_fields;

/// The directory of the socket, below the kubelet's root directory.
pub const DIRECTORY: &str = "pod-resources";
/// The name of the socket.
const SOCKET: &str = "kubelet.sock";

/// The pods of the node that hold resources.
type ActivePods = Arc<dyn Fn() -> Vec<Arc<Pod>> + Send + Sync>;

/// Serves in the directory until the future is dropped.
pub async fn serve(
    directory: &Path,
    manager: DeviceManager,
    pods: ActivePods,
) -> io::Result<Infallible> {
    tokio::fs::create_dir_all(directory).await?;
    let answer = move |request| answer(manager.clone(), Arc::clone(&pods), request);
    grpc::serve(&directory.join(SOCKET), answer).await
}

async fn answer(
    manager: DeviceManager,
    pods: ActivePods,
    request: Request<Incoming>,
) -> Response<Body> {
    match request.uri().path() {
        "/v1.PodResourcesLister/List" => {
            let list = move |ListPodResourcesRequest {}| {
                let devices = manager.devices();
                let pod_resources = pods().iter().map(|pod| of_pod(&devices, pod)).collect();
                async { Ok(ListPodResourcesResponse { pod_resources }) }
            };
            grpc::unary(request, list).await
        }
        "/v1.PodResourcesLister/GetAllocatableResources" => {
            let get = move |AllocatableResourcesRequest {}| {
                let devices = manager.devices();
                let healthy = devices.healthy_devices().map(|(resource, device)| {
                    let nodes = &device.numa_nodes;
                    one_device(resource.as_str(), &device.id, nodes)
                });
                let devices = healthy.collect();
                async { Ok(AllocatableResourcesResponse { devices }) }
            };
            grpc::unary(request, get).await
        }
        "/v1.PodResourcesLister/Get" => {
            let get = move |request: GetPodResourcesRequest| {
                let GetPodResourcesRequest { name, namespace } = request;
                let found = pods().into_iter().find(|pod| {
                    let (of, called) = (pod_fields::namespace(pod), pod_fields::name(pod));
                    (of, called) == (namespace.as_str(), name.as_str())
                });
                let found = found.map(|pod| of_pod(&manager.devices(), &pod));
                async move {
                    let missing = || format!("pod {name} in namespace {namespace} not found");
                    let pod_resources = Some(found.ok_or_else(missing)?);
                    Ok(GetPodResourcesResponse { pod_resources })
                }
            };
            grpc::unary(request, get).await
        }
        _ => grpc::unknown_method(),
    }
}

fn of_pod(devices: &Devices, pod: &Pod) -> PodResources {
    let demand = PodDemand::from_api(pod);
    let containers = demand.containers.iter();
    let lasting = containers.filter(|container| container.kind != ContainerKind::Init);
    let containers = lasting.map(|container| {
        let allocations = devices.of_container(&demand.pod, &container.name);
        let of_allocation = allocations.flat_map(|allocation| {
            let devices = allocation.devices.iter();
            devices.map(|(id, nodes)| one_device(allocation.resource.as_str(), id, nodes))
        });
        ContainerResources {
            name: container.name.clone(),
            devices: of_allocation.collect(),
        }
    });
    PodResources {
        name: pod_fields::name(pod).to_owned(),
        namespace: pod_fields::namespace(pod).to_owned(),
        containers: containers.collect(),
    }
}

fn one_device(resource: &str, id: &str, nodes: &[i64]) -> ContainerDevices {
    let topology = (!nodes.is_empty()).then(|| TopologyInfo {
        nodes: nodes.iter().map(|id| NumaNode { id: *id }).collect(),
    });
    ContainerDevices {
        resource_name: resource.to_owned(),
        device_ids: vec![id.to_owned()],
        topology,
    }
}
