//! The cost of a write between the socket and the store.
//!
//!     cargo bench -p plimsoll-apiserver --bench write
//!
//! Each includes field management and encoding the stored JSON.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use plimsoll_apiserver::kinds;
use plimsoll_apiserver::machinery::admission::{BuiltIn, Cluster};
use plimsoll_apiserver::machinery::write::{
    Accepted, Body, BodyFormat, FieldValidation, Identity, Part, PatchType, Request, Rules, create,
    patch, update,
};
use plimsoll_apiserver::status::Status;
use serde_json::{Value, json};

const IDENTITY: Identity<'static> = Identity {
    uid: "00000000-0000-4000-8000-000000000000",
    name_suffix: "bcdfg",
};

fn request(kind: &str, part: Part, name: &'static str) -> Request<'static> {
    let kind = kinds::by_kind("v1", kind).expect("a core kind");
    Request {
        kind,
        part,
        namespace: if kind.is_namespaced() { "load" } else { "" },
        name,
        manager: "loadgen",
        now: "2026-01-01T00:00:00Z",
        validation: FieldValidation::Warn,
        rules: Rules::default(),
    }
}

fn body(text: &str) -> Body<'_> {
    Body {
        bytes: text.as_bytes(),
        format: BodyFormat::Json,
    }
}

/// The bytes that would be stored.
fn stored(accepted: Result<Accepted, Status>) -> Vec<u8> {
    serde_json::to_vec(&accepted.expect("a good object").object).expect("JSON")
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p-000001", "labels": {"app": "p", "group": "g1"}},
        "spec": {
            "containers": [{
                "name": "c", "image": "pause",
                "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
            }],
            "terminationGracePeriodSeconds": 0,
        },
    })
}

fn create_pod(cluster: &Cluster, text: &str) -> Vec<u8> {
    let request = request("Pod", Part::Main, "");
    stored(create(
        &request,
        body(text),
        IDENTITY,
        &mut admission(&request, cluster),
    ))
}

fn admission<'a>(request: &Request<'_>, cluster: &'a Cluster) -> BuiltIn<'a> {
    BuiltIn {
        kind: request.kind,
        part: request.part,
        cluster,
    }
}

/// A stored object with its version.
fn versioned(bytes: &[u8]) -> Value {
    let mut object: Value = serde_json::from_slice(bytes).expect("JSON");
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

fn writes(criterion: &mut Criterion) {
    let cluster = Cluster::default();
    let pod = pod().to_string();
    criterion.bench_function("create a pod", |bencher| {
        bencher.iter(|| create_pod(&cluster, black_box(&pod)));
    });

    let old = versioned(&create_pod(&cluster, &pod));
    let mut new = old.clone();
    new["metadata"]["labels"]["more"] = json!("yes");
    let new = new.to_string();
    criterion.bench_function("update a pod's labels", |bencher| {
        let request = request("Pod", Part::Main, "p-000001");
        let admission = &mut admission(&request, &cluster);
        bencher.iter(|| stored(update(&request, body(black_box(&new)), &old, admission)));
    });

    let text = json!({"metadata": {"name": "node-000001", "labels": {
        "kubernetes.io/hostname": "node-000001", "topology.kubernetes.io/zone": "zone-1"}}});
    let post = request("Node", Part::Main, "");
    let node = create(
        &post,
        body(&text.to_string()),
        IDENTITY,
        &mut admission(&post, &cluster),
    );
    let node = versioned(&stored(node));
    let resources = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
    let status = json!({"status": {
        "capacity": resources, "allocatable": resources,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    let status = status.to_string();
    criterion.bench_function("merge patch a node's status", |bencher| {
        let request = request("Node", Part::Status, "node-000001");
        let admission = &mut admission(&request, &cluster);
        bencher.iter(|| {
            stored(patch(
                &request,
                PatchType::Merge,
                false,
                body(black_box(&status)),
                Some(&node),
                IDENTITY,
                admission,
            ))
        });
    });
}

criterion_group!(benches, writes);
criterion_main!(benches);
