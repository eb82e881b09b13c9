//! Checks of host resources: namespaces, ports, addresses.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LifecycleHandler, Probe};

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Names, containers, plural, quoted_list};

/// hostNetwork, hostPID, hostIPC.
pub(super) fn namespaces(subject: &Subject<'_>) -> Option<CheckFailure> {
    let spec = subject.spec;
    let shared = [
        (spec.host_network, "hostNetwork=true"),
        (spec.host_pid, "hostPID=true"),
        (spec.host_ipc, "hostIPC=true"),
    ];
    let shared = shared
        .into_iter()
        .filter(|(is_set, _)| *is_set == Some(true));
    let shared: Vec<&str> = shared.map(|(_, text)| text).collect();
    (!shared.is_empty()).then(|| CheckFailure {
        reason: "host namespaces",
        detail: shared.join(", "),
    })
}

/// hostPort, in any container.
pub(super) fn ports(subject: &Subject<'_>) -> Option<CheckFailure> {
    let mut bad = Vec::new();
    // Sorted as texts, as upstream has them.
    let mut taken = BTreeSet::new();
    for container in subject.containers() {
        let host_ports = container.ports.iter().filter_map(|port| port.host_port);
        let host_ports: Vec<i32> = host_ports.filter(|port| *port != 0).collect();
        if !host_ports.is_empty() {
            bad.push(container.name);
            taken.extend(host_ports.iter().map(i32::to_string));
        }
    }
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "hostPort",
        detail: format!(
            "{} {} {} {}",
            containers(&bad),
            plural(bad.len(), "uses", "use"),
            plural(taken.len(), "hostPort", "hostPorts"),
            taken.into_iter().collect::<Vec<_>>().join(", "),
        ),
    })
}

/// A host in a probe or a lifecycle handler: the node would connect to any address in the pod's
/// spec.
pub(super) fn addresses(subject: &Subject<'_>) -> Option<CheckFailure> {
    let mut bad = Names::new();
    let mut hosts = Names::new();
    for container in subject.containers() {
        let probes = container
            .probes
            .into_iter()
            .flatten()
            .flat_map(hosts_of_probe);
        let hooks = container.lifecycle.into_iter();
        let hooks = hooks.flat_map(|hooks| [&hooks.post_start, &hooks.pre_stop]);
        let hooks = hooks.flatten().flat_map(hosts_of_hook);
        for host in probes.chain(hooks) {
            bad.insert(container.name);
            hosts.insert(host);
        }
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "probe or lifecycle host",
        detail: format!(
            "{} {} {} {}",
            containers(&bad),
            plural(bad.len(), "uses", "use"),
            plural(
                hosts.len(),
                "probe or lifecycle host",
                "probe or lifecycle hosts"
            ),
            quoted_list(&hosts),
        ),
    })
}

fn hosts_of_probe(probe: &Probe) -> impl Iterator<Item = &str> {
    let http = probe.http_get.as_ref().and_then(|get| get.host.as_deref());
    let tcp = probe.tcp_socket.as_ref();
    let tcp = tcp.and_then(|socket| socket.host.as_deref());
    [http, tcp]
        .into_iter()
        .flatten()
        .filter(|host| !host.is_empty())
}

fn hosts_of_hook(hook: &LifecycleHandler) -> impl Iterator<Item = &str> {
    let http = hook.http_get.as_ref().and_then(|get| get.host.as_deref());
    let tcp = hook.tcp_socket.as_ref();
    let tcp = tcp.and_then(|socket| socket.host.as_deref());
    [http, tcp]
        .into_iter()
        .flatten()
        .filter(|host| !host.is_empty())
}
