use k8s_openapi::api::core::v1::Node;
use plimsoll_core::devices::{Device, PluginOptions};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::{ResourceName, Resources};
use serde_json::{Value, json};

use super::*;

fn facts() -> Facts {
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "n", "labels": {"disk": "ssd"}},
        "spec": {"taints": [{"key": "gone", "effect": "NoExecute"},
                            {"key": "busy", "effect": "NoSchedule"}]},
        "status": {"allocatable": {
            "cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": "2",
            "example.org/gpu": "1",
        }},
    }))
    .unwrap();
    Facts {
        node: Some(Arc::new(NodeView::from_api(&node).unwrap())),
        pressure: BTreeSet::new(),
        pressure_rule: PressureRule::V1_36,
        comparison: ComparisonOperators::Disabled,
        allowed_unsafe_sysctls: vec!["net.core.*".to_owned()],
        confinement: Confinement::default(),
        has_strict_groups: false,
        is_shutting_down: false,
        devices: Default::default(),
    }
}

fn pod(requests: Value, spec: Value) -> Pod {
    let mut pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec});
    pod["spec"]["containers"] = json!([{"name": "a", "resources": {"requests": requests}}]);
    let tolerations = &mut pod["spec"]["tolerations"];
    if tolerations.is_null() {
        *tolerations = json!([{"operator": "Exists"}]);
    }
    serde_json::from_value(pod).unwrap()
}

fn check(pod: &Pod, others: &[Pod], expected: Option<(&str, &str)>) {
    let verdict = admit(pod, others, &facts()).err();
    let verdict = verdict
        .as_ref()
        .map(|rejection| (rejection.reason.as_str(), rejection.message.as_str()));
    assert_eq!(verdict, expected);
}

#[test]
fn pod_that_does_not_fit_is_refused_with_amounts() {
    let other = pod(json!({"cpu": "1500m"}), json!({}));
    check(
        &pod(json!({"cpu": "500m"}), json!({})),
        std::slice::from_ref(&other),
        None,
    );
    check(
        &pod(json!({"cpu": "501m"}), json!({})),
        std::slice::from_ref(&other),
        Some((
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000",
        )),
    );
    check(
        &pod(json!({"memory": "2Gi", "cpu": "9"}), json!({})),
        &[],
        Some((
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 2000",
        )),
    );
    check(
        &pod(json!({}), json!({})),
        &[other.clone(), other.clone()],
        Some((
            "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
        )),
    );
    check(
        &pod(json!({"example.org/gpu": "2"}), json!({})),
        &[],
        Some((
            "OutOfexample.org/gpu",
            "Node didn't have enough resource: example.org/gpu, requested: 2, used: 0, capacity: 1",
        )),
    );
    check(
        &pod(json!({"example.org/other": "2"}), json!({})),
        &[],
        None,
    );
}

#[test]
fn critical_pod_preempts_others_unless_refused_for_another_reason() {
    let priority = json!({"priority": 2_000_000_000});
    let critical = pod(json!({"cpu": "1"}), priority);
    let mut other = pod(json!({"cpu": "1500m"}), json!({}));
    other.metadata.uid = Some("other".to_owned());
    let others = std::slice::from_ref(&other);
    let verdict = admit(&critical, others, &facts());
    let after = Admission::After {
        victims: vec!["other".to_owned()],
        resource: ResourceName::CPU,
    };
    assert_eq!(verdict, Ok(after));
    let verdict = admit(&critical, &[], &facts());
    assert_eq!(verdict, Ok(Admission::Now));
    let elsewhere = json!({"priority": 2_000_000_000, "nodeName": "m"});
    check(
        &pod(json!({"cpu": "1"}), elsewhere),
        others,
        Some((
            "NodeName",
            "Predicate NodeName failed: node(s) didn't match the requested node name",
        )),
    );
    check(
        &pod(json!({"cpu": "3"}), json!({"priority": 2_000_000_000})),
        others,
        Some((
            "UnexpectedAdmissionError",
            "Unexpected error while attempting to recover from admission failure: preemption: \
             error finding a set of pods to preempt: no set of running pods found to reclaim \
             resources: [(res: cpu, q: 1000), ]",
        )),
    );
}

#[test]
fn pods_for_other_nodes_are_refused() {
    check(
        &pod(json!({}), json!({"nodeSelector": {"disk": "hdd"}})),
        &[],
        Some((
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        )),
    );
    check(
        &pod(json!({}), json!({"nodeName": "m"})),
        &[],
        Some((
            "NodeName",
            "Predicate NodeName failed: node(s) didn't match the requested node name",
        )),
    );
    check(
        &pod(json!({}), json!({"os": {"name": "windows"}})),
        &[],
        Some((
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        )),
    );
}

#[test]
fn only_no_execute_taints_refuse_pods_and_static_pods_stay() {
    let intolerant = pod(json!({}), json!({"tolerations": []}));
    check(
        &intolerant,
        &[],
        Some((
            "TaintToleration",
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
        )),
    );
    let mut from_file = intolerant;
    let source = (pod_fields::CONFIG_SOURCE.to_owned(), "file".to_owned());
    from_file.metadata.annotations = Some([source].into());
    check(&from_file, &[], None);
    let tolerant = json!({"tolerations": [{"key": "gone", "operator": "Exists"}]});
    check(&pod(json!({}), tolerant), &[], None);
}

#[test]
fn sysctls_are_safe_or_allowed() {
    let with = |name: &str, host_network: bool| {
        pod(
            json!({}),
            json!({
                "hostNetwork": host_network,
                "securityContext": {"sysctls": [{"name": name, "value": "1"}]},
            }),
        )
    };
    check(&with("net.ipv4.tcp_syncookies", false), &[], None);
    check(&with("net/core/somaxconn", false), &[], None);
    let forbidden = |message| Some(("SysctlForbidden", message));
    check(
        &with("kernel.msgmax", false),
        &[],
        forbidden("forbidden sysctl: \"kernel.msgmax\" not allowlisted"),
    );
    check(
        &with("net.ipv4.tcp_syncookies", true),
        &[],
        forbidden(
            "forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled",
        ),
    );
}

#[test]
fn pressure_is_checked_first_and_shutdown_last() {
    let mut facts = facts();
    facts.pressure.insert(NodeCondition::MemoryPressure);
    facts.is_shutting_down = true;
    let small = pod(
        json!({}),
        json!({"tolerations": [{"key": "gone", "operator": "Exists"}]}),
    );
    let reason = |pod: &Pod, facts: &Facts| admit(pod, [], facts).unwrap_err().reason;
    assert_eq!(reason(&small, &facts), "Evicted");
    let burstable = pod(json!({"cpu": "1"}), json!({}));
    assert_eq!(reason(&burstable, &facts), "NodeShutdown");
    facts.node = None;
    assert_eq!(reason(&burstable, &facts), "InvalidNodeInfo");
}

#[test]
fn a_profile_that_cannot_be_enforced_is_not_ignored() {
    let confined = json!({"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}});
    check(
        &pod(json!({}), confined),
        &[],
        Some((
            "AppArmor",
            "Cannot enforce AppArmor: AppArmor is not enabled on the host",
        )),
    );
    let free = json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}});
    check(&pod(json!({}), free), &[], None);
}

#[test]
fn a_label_that_cannot_be_enforced_is_not_ignored() {
    let labelled = |options: Value| {
        let spec = json!({"securityContext": {"seLinuxOptions": options}});
        pod(json!({}), spec)
    };
    let refused = "Cannot enforce SELinux: SELinux is not enabled on the host";
    for options in [
        json!({"level": "s0:c1,c2"}),
        json!({"type": "container_t", "user": "system_u"}),
    ] {
        check(&labelled(options), &[], Some(("SELinux", refused)));
    }
    for options in [json!({}), json!({"level": "s0", "type": "spc_t"})] {
        check(&labelled(options), &[], None);
    }
    let mut running = labelled(json!({"level": "s0"}));
    let status = json!({"phase": "Running"});
    running.status = Some(serde_json::from_value(status).unwrap());
    check(&running, &[], None);
}

#[test]
fn pod_is_refused_only_if_the_runtime_cannot_confine_it() {
    let confined = json!({"securityContext": {
        "appArmorProfile": {"type": "RuntimeDefault"},
        "seLinuxOptions": {"level": "s0"},
    }});
    let pod = pod(json!({}), confined);
    let admitted = |app_armor, selinux| {
        let mut facts = facts();
        facts.confinement = Confinement { app_armor, selinux };
        admit(&pod, [], &facts).map_err(|refused| refused.message)
    };
    assert_eq!(
        admitted(Support::NotInRuntime, Support::Full).unwrap_err(),
        "Cannot enforce AppArmor: the container runtime does not support AppArmor"
    );
    assert_eq!(
        admitted(Support::Full, Support::NotInRuntime).unwrap_err(),
        "Cannot enforce SELinux: the container runtime does not support SELinux"
    );
    assert!(admitted(Support::Full, Support::Full).is_ok());
}

/// A node with one device of a plugin, `a`.
fn with_device(mut facts: Facts) -> Facts {
    let gpu = ResourceName::new("example.org/gpu");
    facts.devices.registered(&gpu, PluginOptions::default());
    let device = Device {
        id: "a".to_owned(),
        is_healthy: true,
        numa_nodes: Vec::new(),
    };
    facts.devices.listed(&gpu, vec![device]);
    facts
}

fn with_gpus(count: &str) -> Pod {
    let mut pod = pod(json!({"example.org/gpu": count}), json!({}));
    let container = &mut pod.spec.as_mut().unwrap().containers[0];
    let resources = container.resources.as_mut().unwrap();
    resources.limits = resources.requests.clone();
    pod
}

#[test]
fn a_pod_without_enough_devices_is_refused_before_its_resources_are_counted() {
    let facts = with_device(facts());
    assert_eq!(admit(&with_gpus("1"), &[], &facts), Ok(Admission::Now));
    let refused = admit(&with_gpus("2"), &[], &facts).unwrap_err();
    assert_eq!(refused.reason, "UnexpectedAdmissionError");
    assert_eq!(
        refused.message,
        "Allocate failed due to requested number of devices unavailable for example.org/gpu. \
         Requested: 2, Available: 1, which is unexpected"
    );
}

#[test]
fn a_pod_keeps_its_devices_while_the_node_has_none() {
    let mut facts = with_device(facts());
    let pod = with_gpus("1");
    let demand = PodDemand::from_api(&pod);
    let request = facts.devices.requests(&demand, &demand.containers[0])[0];
    let mut allocation = request.allocation();
    allocation.devices.insert("a".to_owned(), Vec::new());
    // The agent was restarted, and the plugin is not back: the node has no devices.
    facts.devices = Devices::restored(
        [ResourceName::new("example.org/gpu")],
        [allocation],
        Timestamp::default(),
    );
    let mut node = NodeView::clone(facts.node.as_ref().unwrap());
    let gpu = ResourceName::new("example.org/gpu");
    node.allocatable
        .list
        .insert(gpu.clone(), "0".parse().unwrap());
    node.allocatable.typed = Resources::from_list(&node.allocatable.list);
    facts.node = Some(Arc::new(node));
    assert_eq!(admit(&pod, &[], &facts), Ok(Admission::Now));
    let mut other = with_gpus("1");
    other.metadata.uid = Some("other".to_owned());
    let refused = admit(&other, &[], &facts).unwrap_err();
    assert_eq!(
        refused.message,
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices \
         example.org/gpu, which is unexpected"
    );
}
