//! The sandbox of a pod.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_sandbox*.go.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, ContainerPort, Pod, PodSpec};
use plimsoll_core::cgroup::CgroupName;
use plimsoll_core::object::pod::PodView;
use plimsoll_runtime::wire::security_profile::ProfileType;
use plimsoll_runtime::wire::{
    DnsConfig, Int64Value, LinuxPodSandboxConfig, LinuxSandboxSecurityContext, PodSandboxConfig,
    PodSandboxMetadata, PortMapping, Protocol, SecurityProfile, UserNamespace,
};

use super::security::{self, namespace_options};
use super::{NodeContext, SpecError, dns, hostname, labels, pod_log_directory, resources};
use crate::pod_fields::{containers, identity};

/// A sandbox to be made.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// For the runtime.
    pub config: PodSandboxConfig,
    /// For events on the pod.
    pub warnings: Vec<Warning>,
}

/// A warning for the user of the pod, though the pod can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The reason of the event.
    pub reason: &'static str,
    /// Its text.
    pub message: String,
}

/// The sandbox of a pod. `resolver` is what the node's resolv.conf says, `None` where `resolvConf`
/// is set to be empty; `user_namespace` is the node's or the pod's own.
pub fn sandbox_config(
    node: &NodeContext,
    pod: &Pod,
    attempt: u32,
    resolver: Option<&DnsConfig>,
    user_namespace: &UserNamespace,
) -> Result<Sandbox, SpecError> {
    let (namespace, name, uid) = identity(pod);
    let spec = pod.spec.as_ref();
    let mut warnings = Vec::new();
    let is_host_network = spec.and_then(|spec| spec.host_network) == Some(true);
    let host_name = if is_host_network {
        String::new()
    } else {
        let name = hostname::pod_name(pod, &node.cluster_domain)?;
        hostname::kernel_host_name(pod, &name)?
    };
    let log_directory = pod_log_directory(&node.pod_logs_dir, pod);
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let config = PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: name.to_owned(),
            uid: uid.to_owned(),
            namespace: namespace.to_owned(),
            attempt,
        }),
        hostname: host_name,
        log_directory: log_directory.to_string_lossy().into_owned(),
        dns_config: Some(dns::pod_dns(node, pod, resolver, &mut warnings)),
        port_mappings: containers.flat_map(port_mappings).collect(),
        labels: labels::sandbox_labels(pod),
        annotations: pod.metadata.annotations.clone().unwrap_or_default(),
        linux: Some(linux_config(node, pod, user_namespace)?),
    };
    Ok(Sandbox { config, warnings })
}

fn linux_config(
    node: &NodeContext,
    pod: &Pod,
    user_namespace: &UserNamespace,
) -> Result<LinuxPodSandboxConfig, SpecError> {
    let view = PodView::from_api(pod).map_err(SpecError::Quantities)?;
    let cgroup = CgroupName::pod(&node.kubepods, view.qos_class(), &view.uid)?;
    let spec = pod.spec.as_ref();
    let context = spec.and_then(|spec| spec.security_context.as_ref());
    let sysctls = context
        .into_iter()
        .flat_map(|context| context.sysctls.iter().flatten());
    let sysctls = sysctls.map(|sysctl| (sysctl.name.clone(), sysctl.value.clone()));
    let options = context.and_then(|context| context.se_linux_options.as_ref());
    let security = LinuxSandboxSecurityContext {
        namespace_options: Some(namespace_options(spec, user_namespace)),
        selinux_options: options.map(security::se_linux),
        run_as_user: context.and_then(|context| context.run_as_user).map(int64),
        run_as_group: context.and_then(|context| context.run_as_group).map(int64),
        supplemental_groups: security::supplemental_groups(context),
        supplemental_groups_policy: security::supplemental_groups_policy(context)?,
        privileged: spec.is_some_and(has_privileged_container),
        // Whatever the containers request, the sandbox itself needs little.
        seccomp: Some(SecurityProfile {
            profile_type: ProfileType::RuntimeDefault.into(),
            localhost_ref: String::new(),
        }),
        ..LinuxSandboxSecurityContext::default()
    };
    Ok(LinuxPodSandboxConfig {
        cgroup_parent: cgroup.to_path(node.cgroup_driver).to_string(),
        security_context: Some(security),
        sysctls: sysctls.collect(),
        overhead: Some(resources::overhead_resources(
            &view,
            &node.container_settings,
        )),
        resources: Some(resources::sandbox_resources(
            &view,
            &node.container_settings,
        )),
    })
}

fn int64(value: i64) -> Int64Value {
    Int64Value { value }
}

fn has_privileged_container(spec: &PodSpec) -> bool {
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|container| container.security_context.as_ref());
    let contexts = containers(spec).map(|container| container.security_context.as_ref());
    let mut contexts = contexts.chain(ephemeral).flatten();
    contexts.any(|context| context.privileged == Some(true))
}

/// The ports of a container, each name or unnamed combination once.
fn port_mappings(container: &Container) -> Vec<PortMapping> {
    let mut seen = BTreeSet::new();
    let ports = container.ports.iter().flatten();
    ports
        .filter(|port| seen.insert(port_key(port)))
        .map(|port| PortMapping {
            protocol: protocol(port).into(),
            container_port: port.container_port,
            host_port: port.host_port.unwrap_or_default(),
            host_ip: port.host_ip.clone().unwrap_or_default(),
        })
        .collect()
}

fn protocol(port: &ContainerPort) -> Protocol {
    match port.protocol.as_deref() {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}

fn port_key(port: &ContainerPort) -> String {
    if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let host_ip = port.host_ip.as_deref().unwrap_or_default();
    let family = match host_ip.parse() {
        _ if host_ip.is_empty() => "any",
        Ok(IpAddr::V6(_)) => "v6",
        _ => "v4",
    };
    format!(
        "{family}-{}-{host_ip}:{}:{}",
        port.protocol.as_deref().unwrap_or_default(),
        port.container_port,
        port.host_port.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pods::spec::testing::{node, of_node, own_users, pod_with};
    use plimsoll_runtime::wire::NamespaceMode;

    fn sandbox(spec: serde_json::Value) -> PodSandboxConfig {
        let node = node("/var/lib/kubelet");
        sandbox_config(&node, &pod_with(spec), 2, None, &of_node())
            .unwrap()
            .config
    }

    #[test]
    fn sandbox_config_has_metadata_log_directory_and_cgroup_parent() {
        let got = sandbox(json!({}));
        let metadata = got.metadata.unwrap();
        assert_eq!(
            (
                metadata.name.as_str(),
                metadata.namespace.as_str(),
                metadata.uid.as_str()
            ),
            ("pod", "ns", "uid-1")
        );
        assert_eq!(metadata.attempt, 2);
        assert_eq!(got.hostname, "pod");
        assert_eq!(got.log_directory, "/var/log/pods/ns_pod_uid-1");
        let linux = got.linux.unwrap();
        assert_eq!(linux.cgroup_parent, "/kubepods/besteffort/poduid-1");
        let security = linux.security_context.unwrap();
        assert_eq!(security.seccomp.unwrap().profile_type, 0);
        assert!(!security.privileged);
    }

    #[test]
    fn a_pod_on_the_nodes_network_has_the_nodes_name() {
        let got = sandbox(json!({"hostNetwork": true, "hostname": "h"}));
        assert_eq!(got.hostname, "");
    }

    #[test]
    fn namespaces_are_the_pods_unless_shared_with_the_node() {
        use NamespaceMode::{Container, Node, Pod};
        for (spec, network, pid, ipc) in [
            (json!({}), Pod, Container, Pod),
            (json!({"shareProcessNamespace": true}), Pod, Pod, Pod),
            (
                json!({"hostNetwork": true, "hostPID": true, "hostIPC": true}),
                Node,
                Node,
                Node,
            ),
            (
                json!({"hostPID": true, "shareProcessNamespace": true}),
                Pod,
                Node,
                Pod,
            ),
        ] {
            let context = sandbox(spec).linux.unwrap().security_context.unwrap();
            let got = context.namespace_options.unwrap();
            let want = [network, pid, ipc].map(i32::from);
            assert_eq!([got.network, got.pid, got.ipc], want);
        }
    }

    #[test]
    fn sandbox_has_the_pods_user_namespace() {
        let pod = pod_with(json!({"hostUsers": false}));
        let sandbox = sandbox_config(&node("/k"), &pod, 0, None, &own_users()).unwrap();
        let security = sandbox.config.linux.unwrap().security_context.unwrap();
        let options = security.namespace_options.unwrap();
        assert_eq!(options.userns_options, Some(own_users()));
    }

    #[test]
    fn sandbox_has_the_pods_user_groups_and_sysctls() {
        let got = sandbox(json!({
            "securityContext": {
                "runAsUser": 7, "runAsGroup": 8, "fsGroup": 9, "supplementalGroups": [10, 11],
                "supplementalGroupsPolicy": "Strict",
                "sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}],
                "seLinuxOptions": {"level": "s0"},
            },
            "containers": [{"name": "c", "securityContext": {"privileged": true}}],
        }));
        let linux = got.linux.unwrap();
        assert_eq!(linux.sysctls["net.ipv4.ip_forward"], "1");
        let security = linux.security_context.unwrap();
        assert_eq!(security.run_as_user, Some(int64(7)));
        assert_eq!(security.run_as_group, Some(int64(8)));
        assert_eq!(security.supplemental_groups, [9, 10, 11]);
        assert_eq!(security.supplemental_groups_policy, 1);
        assert_eq!(security.selinux_options.unwrap().level, "s0");
        assert!(security.privileged);
    }

    #[test]
    fn ports_that_are_named_twice_in_a_container_are_mapped_once() {
        let got = sandbox(json!({"containers": [
            {"name": "a", "ports": [
                {"name": "web", "containerPort": 80, "hostPort": 8080},
                {"name": "web", "containerPort": 81},
                {"containerPort": 53, "protocol": "UDP", "hostIP": "127.0.0.1"},
                {"containerPort": 53, "protocol": "UDP", "hostIP": "127.0.0.1"},
                {"containerPort": 53, "protocol": "UDP", "hostIP": "::1"},
            ]},
            {"name": "b", "ports": [{"name": "web", "containerPort": 82, "protocol": "SCTP"}]},
        ]}));
        let ports: Vec<_> = got
            .port_mappings
            .iter()
            .map(|port| {
                (
                    port.container_port,
                    port.host_port,
                    port.protocol,
                    port.host_ip.as_str(),
                )
            })
            .collect();
        assert_eq!(
            ports,
            [
                (80, 8080, 0, ""),
                (53, 0, 1, "127.0.0.1"),
                (53, 0, 1, "::1"),
                (82, 0, 2, "")
            ]
        );
    }
}
