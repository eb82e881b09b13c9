use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::object::selector::FieldSelector;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::auth::Objects;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::authorize::Authorizer;
use crate::auth::identity::{NODES, User};
use crate::auth::rbac::node_rules;

fn kubelet() -> User {
    User::new("system:node:n1", &[NODES, "system:authenticated"])
}

/// A pod that needs one of everything.
fn pod(node: &str) -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"},
        "spec": {
            "nodeName": node,
            "serviceAccountName": "account",
            "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "env-from"}},
                {"configMapRef": {"name": "env-from-map"}}]}],
            "containers": [{"env": [
                {"valueFrom": {"secretKeyRef": {"name": "env"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "env-map"}}},
            ]}],
            "ephemeralContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "late"}}}]}],
            "volumes": [
                {"name": "a", "secret": {"secretName": "mounted"}},
                {"name": "b", "configMap": {"name": "mounted-map"}},
                {"name": "c", "projected": {"sources": [
                    {"secret": {"name": "projected"}}, {"configMap": {"name": "projected-map"}},
                    {"serviceAccountToken": {"audience": "vault"}},
                ]}},
                {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "f", "csi": {"driver": "drv", "nodePublishSecretRef": {"name": "csi"}}},
            ],
            "resourceClaims": [
                {"name": "one", "resourceClaimName": "gpu"},
                {"name": "two", "resourceClaimTemplateName": "t"},
                {"name": "three", "resourceClaimTemplateName": "t"},
            ],
        },
        "status": {"resourceClaimStatuses": [{"name": "two", "resourceClaimName": "made"}]},
    })
}

fn graph() -> NodeGraph {
    let mut graph = NodeGraph::default();
    graph.observe_pod("ns", "p", Some(&pod("n1")));
    graph.observe_volume(
        "pv",
        Some(&json!({"spec": {
            "claimRef": {"namespace": "ns", "name": "claim"},
            "csi": {"nodeStageSecretRef": {"namespace": "kube-system", "name": "stage"},
                "controllerPublishSecretRef": {"namespace": "kube-system", "name": "control"}},
        }})),
    );
    graph.observe_volume(
        "pv2",
        Some(
            &json!({"spec": {"claimRef": {"namespace": "ns", "name": "p-e"},
            "rbd": {"secretRef": {"name": "rbd"}}}}),
        ),
    );
    graph.observe_attachment("va", Some(&json!({"spec": {"nodeName": "n1"}})));
    graph.observe_slice("slice", Some(&json!({"spec": {"nodeName": "n1"}})));
    graph
}

/// `verb group/resource/subresource namespace/name selector`, with dashes for what is absent.
fn ask(graph: &NodeGraph, user: &User, request: &str) -> Result<(), String> {
    let words: Vec<&str> = request.split(' ').collect();
    let dash = |text: &'_ str| {
        if text == "-" {
            String::new()
        } else {
            text.to_owned()
        }
    };
    let kind: Vec<String> = words[1].split('/').map(dash).collect();
    let (namespace, name) = words[2].split_once('/').unwrap();
    let (namespace, name) = (dash(namespace), dash(name));
    let selector: FieldSelector = words.get(3).unwrap_or(&"").parse().unwrap();
    let resource = Resource {
        group: &kind[0],
        resource: &kind[1],
        subresource: kind.get(2).map_or("", String::as_str),
        namespace: &namespace,
        name: &name,
        field_selector: selector.requirements(),
    };
    authorize(
        graph,
        &node_rules(),
        user,
        &Attributes::resource(words[0], resource),
    )
}

#[test]
fn kubelet_reads_objects_that_its_pods_need() {
    let graph = graph();
    let allowed = [
        "get -/secrets ns/pull",
        "get -/secrets ns/env-from",
        "list -/secrets ns/env",
        "watch -/secrets ns/mounted",
        "get -/secrets ns/projected",
        "get -/secrets ns/late",
        "get -/secrets ns/csi",
        "get -/secrets kube-system/stage",
        "get -/secrets ns/rbd",
        "get -/configmaps ns/env-from-map",
        "get -/configmaps ns/env-map",
        "watch -/configmaps ns/mounted-map",
        "get -/configmaps ns/projected-map",
        "get -/persistentvolumeclaims ns/claim",
        "get -/persistentvolumeclaims ns/p-e",
        "patch -/persistentvolumeclaims/status ns/claim",
        "get -/persistentvolumes -/pv",
        "get resource.k8s.io/resourceclaims ns/gpu",
        "get resource.k8s.io/resourceclaims ns/made",
        "get storage.k8s.io/volumeattachments -/va",
        "get -/serviceaccounts ns/account",
        "create -/serviceaccounts/token ns/account",
        "get -/pods ns/p",
        "watch -/pods ns/p",
        "list -/pods -/- spec.nodeName=n1",
        "list -/pods -/- spec.nodeName=n1,status.phase!=Failed",
        "create -/pods ns/-",
        "delete -/pods ns/p",
        "patch -/pods/status ns/p",
        "create -/pods/eviction ns/p",
        "get -/nodes -/n1",
        "watch -/nodes -/n1",
        "create -/nodes -/-",
        "patch -/nodes/status -/n1",
        "create coordination.k8s.io/leases kube-node-lease/-",
        "update coordination.k8s.io/leases kube-node-lease/n1",
        "create storage.k8s.io/csinodes -/-",
        "patch storage.k8s.io/csinodes -/n1",
        "create resource.k8s.io/resourceslices -/-",
        "get resource.k8s.io/resourceslices -/slice",
        "deletecollection resource.k8s.io/resourceslices -/- spec.nodeName=n1",
        "list -/services -/-",
        "watch node.k8s.io/runtimeclasses -/-",
        "create -/events ns/-",
        "create authentication.k8s.io/tokenreviews -/-",
    ];
    for request in allowed {
        assert_eq!(ask(&graph, &kubelet(), request), Ok(()), "{request}");
    }
    assert!(ask(&graph, &User::new("system:node:n2", &[NODES]), allowed[0]).is_err());
}

#[test]
fn denial_has_the_node_authorizers_reason() {
    let unrelated = "no relationship found between node 'n1' and this object";
    let one_only = "can only get individual resources of this type";
    let cases = [
        ("get -/secrets ns/other", unrelated),
        ("get -/secrets other/pull", unrelated),
        ("get -/secrets kube-system/control", unrelated),
        ("list -/secrets ns/-", "No Object name found"),
        (
            "list -/secrets -/-",
            "can only read namespaced object of this type",
        ),
        (
            "update -/secrets ns/pull",
            "can only read resources of this type",
        ),
        ("get -/configmaps/x ns/env-map", "cannot read subresource"),
        ("list -/persistentvolumeclaims ns/-", one_only),
        (
            "get -/persistentvolumeclaims/x ns/claim",
            "cannot get subresource",
        ),
        (
            "get -/persistentvolumeclaims/status ns/claim",
            "can only get/update/patch this type",
        ),
        ("list -/persistentvolumes -/-", one_only),
        ("get -/persistentvolumes -/other", unrelated),
        ("get storage.k8s.io/volumeattachments -/other", unrelated),
        ("get -/serviceaccounts ns/other", unrelated),
        (
            "list -/serviceaccounts ns/-",
            "can only create tokens for individual service accounts",
        ),
        (
            "create -/serviceaccounts ns/account",
            "can only create token subresource of serviceaccount",
        ),
        ("create -/serviceaccounts/token ns/other", unrelated),
        ("get -/pods ns/other", unrelated),
        (
            "list -/pods -/-",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (
            "list -/pods -/- spec.nodeName=n2",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (
            "list -/pods -/- spec.nodeName!=n1",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        ("update -/pods ns/p", ""),
        ("get -/pods/log ns/p", ""),
        (
            "list -/nodes -/-",
            "node 'n1' cannot read all nodes, only its own Node object",
        ),
        (
            "get -/nodes -/n2",
            "node 'n1' cannot read 'n2', only its own Node object",
        ),
        ("delete -/nodes -/n1", ""),
        (
            "get coordination.k8s.io/leases kube-system/n1",
            "can only access leases in the \"kube-node-lease\" system namespace",
        ),
        (
            "get coordination.k8s.io/leases kube-node-lease/n2",
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "list coordination.k8s.io/leases kube-node-lease/-",
            "can only get, create, update, patch, or delete a node lease",
        ),
        (
            "get storage.k8s.io/csinodes -/n2",
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            "list storage.k8s.io/csinodes -/-",
            "can only get, create, update, patch, or delete a CSINode",
        ),
        (
            "get storage.k8s.io/csinodes/x -/n1",
            "cannot authorize CSINode subresources",
        ),
        (
            "list resource.k8s.io/resourceslices -/-",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("get resource.k8s.io/resourceslices -/other", unrelated),
        (
            "approve resource.k8s.io/resourceslices -/x",
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, \
             update, patch, delete, deletecollection",
        ),
        (
            "get resource.k8s.io/resourceslices/x -/slice",
            "cannot authorize ResourceSlice subresources",
        ),
        ("list apps/deployments ns/-", ""),
        ("create certificates.k8s.io/podcertificaterequests ns/-", ""),
    ];
    let graph = graph();
    for (request, expected) in cases {
        assert_eq!(
            ask(&graph, &kubelet(), request),
            Err(expected.to_owned()),
            "{request}"
        );
    }
    let nameless = User::new("system:node:", &[NODES]);
    assert_eq!(
        ask(&graph, &nameless, "get -/nodes -/n1"),
        Err("unknown node for user \"system:node:\"".to_owned())
    );
    assert_eq!(
        ask(&graph, &User::new("alice", &[NODES]), "get -/nodes -/n1"),
        Err(String::new())
    );
}

#[test]
fn access_is_revoked_when_a_pod_is_deleted_or_moved() {
    let mut graph = graph();
    let second = |node: &str| {
        json!({"metadata": {"name": "q"}, "spec": {"nodeName": node,
            "imagePullSecrets": [{"name": "pull"}]}})
    };
    graph.observe_pod("ns", "q", Some(&second("n1")));
    graph.observe_pod("ns", "p", None);
    assert_eq!(ask(&graph, &kubelet(), "get -/secrets ns/pull"), Ok(()));
    assert!(ask(&graph, &kubelet(), "get -/secrets ns/mounted").is_err());
    assert!(ask(&graph, &kubelet(), "get -/secrets kube-system/stage").is_err());
    graph.observe_pod("ns", "q", Some(&second("n2")));
    assert!(ask(&graph, &kubelet(), "get -/secrets ns/pull").is_err());
    graph.observe_pod("ns", "q", Some(&second("")));
    let other = User::new("system:node:n2", &[NODES]);
    assert!(ask(&graph, &other, "get -/secrets ns/pull").is_err());

    graph.observe_pod("ns", "p", Some(&pod("n1")));
    assert_eq!(
        ask(&graph, &kubelet(), "get -/secrets kube-system/stage"),
        Ok(())
    );
    graph.observe_volume("pv", None);
    assert!(ask(&graph, &kubelet(), "get -/secrets kube-system/stage").is_err());
    let mut mirror = pod("n1");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    graph.observe_pod("ns", "p", Some(&mirror));
    assert!(ask(&graph, &kubelet(), "get -/secrets ns/mounted").is_err());
    assert_eq!(ask(&graph, &kubelet(), "get -/pods ns/p"), Ok(()));
}

/// Objects by resource, namespace and name.
struct World(HashMap<(&'static str, &'static str, &'static str), Value>);

impl Objects for World {
    fn object(&self, _: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.0.get(&(resource, namespace, name)).cloned()
    }
}

fn world() -> World {
    let mut elsewhere = pod("n2");
    elsewhere["metadata"]["uid"] = json!("other-uid");
    let driver = json!({"spec": {"tokenRequests": [{"audience": "from-driver"}]}});
    World(HashMap::from([
        (("pods", "ns", "p"), pod("n1")),
        (("pods", "ns", "elsewhere"), elsewhere),
        (
            ("nodes", "", "n1"),
            json!({"metadata": {"uid": "node-uid"}}),
        ),
        (("csidrivers", "", "drv"), driver),
        (
            ("persistentvolumeclaims", "ns", "claim"),
            json!({"spec": {"volumeName": "pv"}}),
        ),
        (
            ("persistentvolumeclaims", "ns", "p-e"),
            json!({"spec": {"volumeName": "pv"}}),
        ),
        (("persistentvolumes", "", "pv"), json!({"spec": {}})),
    ]))
}

/// `CREATE group/resource/subresource namespace/name`, with dashes for what is absent.
fn admit(request: &str, object: &Value, old: &Value) -> String {
    admit_as(&kubelet(), request, object, old)
}

fn admit_as(user: &User, request: &str, object: &Value, old: &Value) -> String {
    let words: Vec<&str> = request.split(' ').collect();
    let dash = |text: &str| {
        if text == "-" {
            String::new()
        } else {
            text.to_owned()
        }
    };
    let kind: Vec<String> = words[1].split('/').map(dash).collect();
    let (namespace, name) = words[2].split_once('/').unwrap();
    let write = Write {
        operation: match words[0] {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            _ => Operation::Delete,
        },
        group: &kind[0],
        resource: &kind[1],
        subresource: kind.get(2).map_or("", String::as_str),
        namespace: &dash(namespace),
        name: &dash(name),
        object,
        old,
    };
    let outcome = restrict(user, &write, &world(), &Authorizer::default());
    outcome
        .err()
        .map(|denial| denial.to_string())
        .unwrap_or_default()
}

fn mirror() -> Value {
    json!({
        "metadata": {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1",
                "uid": "node-uid", "controller": true}]},
        "spec": {"nodeName": "n1", "volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    })
}

#[test]
fn kubelet_creates_only_mirror_pods_without_api_references() {
    const CREATE: &str = "CREATE -/pods ns/m";
    assert_eq!(admit(CREATE, &mirror(), &Value::Null), "");
    let itself = "node \"n1\" can only create pods with an owner reference set to itself";
    let cases: [(&str, Value, &str); 17] = [
        (
            "/metadata/annotations",
            json!({}),
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only \
             create mirror pods",
        ),
        (
            "/spec/nodeName",
            json!("n2"),
            "node \"n1\" can only create pods with spec.nodeName set to itself",
        ),
        ("/metadata/ownerReferences", json!([]), itself),
        (
            "/metadata/ownerReferences",
            json!([{}, {}]),
            "node \"n1\" can only create pods with a single owner reference set to itself",
        ),
        ("/metadata/ownerReferences/0/name", json!("n2"), itself),
        (
            "/metadata/ownerReferences/0/controller",
            json!(false),
            "node \"n1\" can only create pods with a controller owner reference set to itself",
        ),
        (
            "/metadata/ownerReferences/0/blockOwnerDeletion",
            json!(true),
            "node \"n1\" must not set blockOwnerDeletion on an owner reference",
        ),
        (
            "/metadata/ownerReferences/0/uid",
            json!("x"),
            "node n1 UID mismatch: expected x got node-uid",
        ),
        (
            "/spec/serviceAccountName",
            json!("a"),
            "node \"n1\" can not create pods that reference serviceaccounts",
        ),
        (
            "/spec/imagePullSecrets",
            json!([{"name": "s"}]),
            "node \"n1\" can not create pods that reference secrets",
        ),
        (
            "/spec/volumes",
            json!([{"name": "v", "configMap": {"name": "c"}}]),
            "node \"n1\" can not create pods that reference configmaps",
        ),
        (
            "/spec/volumes",
            json!([{"name": "v", "configMap": {}}]),
            "node \"n1\" can not create pods that reference configmaps (via configmap volumes)",
        ),
        (
            "/spec/volumes",
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            "node \"n1\" can not create pods that reference persistentvolumeclaims",
        ),
        (
            "/spec/volumes",
            json!([{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]),
            "node \"n1\" can not create pods that reference serviceaccounts (via projected volumes)",
        ),
        (
            "/spec/volumes",
            json!([{"name": "v", "projected": {"sources": [{"downwardAPI": {}}]}}]),
            "",
        ),
        (
            "/spec/volumes",
            json!([{"name": "v"}]),
            "error checking mirror pod for API references: unknown volume type for volume  \"v\"",
        ),
        (
            "/spec/resourceClaims",
            json!([{"name": "c"}]),
            "node \"n1\" can not create pods that reference resourceclaims",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut pod = mirror();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[field] = value;
        assert_eq!(admit(CREATE, &pod, &Value::Null), expected, "{pointer}");
    }
}

#[test]
fn kubelet_deletes_evicts_and_updates_only_its_own_pods() {
    let none = &Value::Null;
    assert_eq!(admit("DELETE -/pods ns/p", none, none), "");
    assert_eq!(
        admit("DELETE -/pods ns/elsewhere", none, none),
        "node \"n1\" can only delete pods with spec.nodeName set to itself"
    );
    assert_eq!(
        admit("DELETE -/pods ns/gone", none, none),
        "pods \"gone\" not found"
    );
    assert_eq!(
        admit("UPDATE -/pods ns/p", none, none),
        "unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods"
    );
    assert_eq!(
        admit("UPDATE -/pods/resize ns/p", none, none),
        "unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed"
    );
    assert_eq!(admit("CREATE -/pods/eviction ns/p", &json!({}), none), "");
    let named = json!({"metadata": {"name": "elsewhere"}});
    assert_eq!(
        admit("CREATE -/pods/eviction ns/-", &named, none),
        "node n1 can only evict pods with spec.nodeName set to itself"
    );
    assert_eq!(
        admit("CREATE -/pods/eviction ns/-", &json!({}), none),
        "could not determine pod from request data"
    );

    const STATUS: &str = "UPDATE -/pods/status ns/p";
    let mut changed = pod("n1");
    changed["status"]["phase"] = json!("Running");
    changed["metadata"]["labels"] = json!({});
    assert_eq!(admit(STATUS, &changed, &pod("n1")), "");
    assert_eq!(
        admit(STATUS, &changed, &pod("n2")),
        "node \"n1\" can only update pod status for pods with spec.nodeName set to itself"
    );
    changed["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(
        admit(STATUS, &changed, &pod("n1")),
        "node \"n1\" cannot update labels through pod status"
    );
    let mut claims = pod("n1");
    claims["status"]["resourceClaimStatuses"] = json!([]);
    assert_eq!(
        admit(STATUS, &claims, &pod("n1")),
        "node \"n1\" cannot update resource claim statues"
    );
    assert_eq!(
        admit("CREATE -/pods/status ns/p", none, none),
        "unexpected operation \"CREATE\""
    );
}

#[test]
fn kubelet_updates_only_allowed_fields_of_its_own_node() {
    let node = |labels: Value| json!({"metadata": {"name": "n1", "labels": labels}, "spec": {}});
    let plain = node(json!({}));
    let fine = node(
        json!({"kubernetes.io/hostname": "a", "x": "y", "acme.io/z": "1",
        "topology.kubernetes.io/zone": "z", "foo.kubelet.kubernetes.io/a": "b",
        "node.kubernetes.io/a": "b"}),
    );
    assert_eq!(admit("CREATE -/nodes -/n1", &fine, &Value::Null), "");
    assert_eq!(admit("UPDATE -/nodes -/n1", &fine, &plain), "");
    assert_eq!(
        admit("UPDATE -/nodes/status -/n2", &plain, &plain),
        "node \"n1\" is not allowed to modify node \"n2\""
    );
    let wrong = node(
        json!({"foo.k8s.io/a": "b", "node-restriction.kubernetes.io/x": "y",
        "a.node-restriction.kubernetes.io/x": "y", "kubernetes.io/foo": "b", "notk8s.io/a": "b"}),
    );
    let listed = "a.node-restriction.kubernetes.io/x, foo.k8s.io/a, kubernetes.io/foo, \
                  node-restriction.kubernetes.io/x";
    assert_eq!(
        admit("CREATE -/nodes -/n1", &wrong, &Value::Null),
        format!("node \"n1\" is not allowed to set the following labels: {listed}")
    );
    assert_eq!(
        admit("UPDATE -/nodes -/n1", &plain, &wrong),
        format!("is not allowed to modify labels: {listed}")
    );
    assert_eq!(admit("UPDATE -/nodes -/n1", &wrong, &wrong), "");

    let with = |pointer: &str, value: Value| {
        let mut node = plain.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        node.pointer_mut(parent).unwrap()[field] = value;
        admit("UPDATE -/nodes -/n1", &node, &plain)
    };
    assert_eq!(
        with("/spec/taints", json!([{"key": "a"}])),
        "node \"n1\" is not allowed to modify taints"
    );
    assert_eq!(
        with("/metadata/ownerReferences", json!([{}])),
        "node \"n1\" is not allowed to modify ownerReferences"
    );
    assert_eq!(
        with("/spec/configSource", json!({"configMap": {}})),
        "node \"n1\" is not allowed to update configSource to a new non-nil configSource"
    );
    assert_eq!(with("/spec/taints", json!([])), "");
}

#[test]
fn kubelet_requests_tokens_only_for_its_pods() {
    const CREATE: &str = "CREATE -/serviceaccounts/token ns/account";
    let request = |name: &str, uid: &str, audiences: &[&str]| {
        json!({"spec": {"audiences": audiences, "boundObjectRef": {"apiVersion": "v1",
            "kind": "Pod", "name": name, "uid": uid}}})
    };
    let ask = |object: Value| admit(CREATE, &object, &Value::Null);
    assert_eq!(ask(json!({})), "node requested token not bound to a pod");
    assert_eq!(
        ask(request("p", "", &[])),
        "node requested token with a pod binding without a uid"
    );
    assert_eq!(ask(request("gone", "x", &[])), "pods \"gone\" not found");
    assert_eq!(
        ask(request("p", "x", &[])),
        "the UID in the bound object reference (x) does not match the UID in record. The object \
         might have been deleted and then recreated"
    );
    assert_eq!(
        ask(request("elsewhere", "other-uid", &[])),
        "node requested token bound to a pod scheduled on a different node"
    );
    assert_eq!(ask(request("p", "pod-uid", &["vault"])), "");
    assert_eq!(ask(request("p", "pod-uid", &["from-driver"])), "");
    assert_eq!(
        ask(request("p", "pod-uid", &["a", "b"])),
        "node may only request 0 or 1 audiences"
    );
    assert_eq!(
        ask(request("p", "pod-uid", &["other"])),
        "audience \"other\" not found in pod spec volume, system:node:n1 is not authorized to \
         request tokens for this audience"
    );
}

#[test]
fn kubelet_accesses_only_its_own_leases_slices_claims_and_csrs() {
    let none = &Value::Null;
    let named = |name: &str| json!({"metadata": {"name": name}, "spec": {"nodeName": name}});
    let lease = "can only access node lease with the same name as the requesting node";
    assert_eq!(
        admit(
            "CREATE coordination.k8s.io/leases kube-node-lease/-",
            &named("n1"),
            none
        ),
        ""
    );
    assert_eq!(
        admit(
            "CREATE coordination.k8s.io/leases kube-node-lease/-",
            &named("n2"),
            none
        ),
        lease
    );
    assert_eq!(
        admit(
            "UPDATE coordination.k8s.io/leases kube-node-lease/n2",
            none,
            none
        ),
        lease
    );
    assert_eq!(
        admit("UPDATE coordination.k8s.io/leases ns/n1", none, none),
        "can only access leases in the \"kube-node-lease\" system namespace"
    );
    assert_eq!(
        admit("CREATE storage.k8s.io/csinodes -/-", &named("n2"), none),
        "can only access CSINode with the same name as the requesting node"
    );
    assert_eq!(
        admit(
            "CREATE resource.k8s.io/resourceslices -/-",
            &named("n2"),
            none
        ),
        "can only create ResourceSlice with the same NodeName as the requesting node"
    );
    assert_eq!(
        admit(
            "DELETE resource.k8s.io/resourceslices -/x",
            none,
            &named("n2")
        ),
        "can only delete ResourceSlice with the same NodeName as the requesting node"
    );
    assert_eq!(
        admit("UPDATE -/persistentvolumeclaims ns/c", none, none),
        "may only update PVC status"
    );
    let claim = |status: Value, label: &str| {
        json!({"metadata": {"labels": {"a": label}},
        "status": status})
    };
    let before = claim(json!({"phase": "Bound"}), "x");
    let after = claim(
        json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}),
        "x",
    );
    assert_eq!(
        admit(
            "UPDATE -/persistentvolumeclaims/status ns/c",
            &after,
            &before
        ),
        ""
    );
    let relabelled = claim(json!({"phase": "Bound"}), "y");
    assert_eq!(
        admit(
            "UPDATE -/persistentvolumeclaims/status ns/c",
            &relabelled,
            &before
        ),
        "node \"n1\" is not allowed to update fields other than status.quantity and \
         status.conditions"
    );

    let request = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let request = params
            .serialize_request(&KeyPair::generate().unwrap())
            .unwrap();
        let request = STANDARD.encode(request.pem().unwrap());
        json!({"spec": {"signerName": "kubernetes.io/kubelet-serving", "request": request}})
    };
    const CSR: &str = "CREATE certificates.k8s.io/certificatesigningrequests -/-";
    assert_eq!(admit(CSR, &request("system:node:n1"), none), "");
    assert_eq!(
        admit(CSR, &request("system:node:n2"), none),
        "can only create a node CSR with CN=system:node:n1"
    );
}

#[test]
fn node_restriction_applies_to_kubelets_only() {
    let none = &Value::Null;
    let alice = User::new("alice", &[]);
    assert_eq!(
        admit_as(&alice, "DELETE -/pods ns/elsewhere", none, none),
        ""
    );
    let nameless = User::new("system:node:", &[NODES]);
    assert_eq!(
        admit_as(&nameless, "DELETE -/pods ns/p", none, none),
        "could not determine node from user \"system:node:\""
    );
}
