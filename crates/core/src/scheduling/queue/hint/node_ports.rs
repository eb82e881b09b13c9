//! A pod whose host ports were taken.

use super::{Action, Hint, Object, PodFacts, Registration, Resource};
use crate::scheduling::pod::UsedPorts;

pub(super) const EVENTS: &[Registration] = &[
    (Resource::Pod, Action::DELETE),
    (Resource::Node, Action::ADD),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    match object {
        Object::Pod(change) => Hint::queue_if(
            change
                .before()
                .is_some_and(|deleted| frees_port(deleted, pod)),
        ),
        _ => Hint::Queue,
    }
}

fn frees_port(deleted: &PodFacts, pod: &PodFacts) -> bool {
    let mut used = UsedPorts::default();
    used.add(&deleted.host_ports);
    deleted.is_on_a_node() && used.conflicts_with(&pod.host_ports)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{but, deleted, node_added, placed, pod_with};
    use super::*;
    use crate::object::identity::NodeName;
    use serde_json::{Value, json};

    fn with_port(name: &str, ip: &str, protocol: &str, port: i32) -> PodFacts {
        let port: Value = json!({
            "containerPort": 80, "hostPort": port, "protocol": protocol, "hostIP": ip,
        });
        pod_with(
            name,
            json!({"containers": [{"name": "c", "ports": [port]}]}),
        )
    }

    fn asks(pod: &PodFacts, gone: PodFacts) -> Hint {
        hint(pod, &Object::Pod(deleted(gone)))
    }

    #[test]
    fn ports_conflict_where_protocol_number_and_address_overlap() {
        let conflict = |one: (&str, &str, i32), other: (&str, &str, i32)| {
            let pod = with_port("a", one.0, one.1, one.2);
            let holder = placed(with_port("b", other.0, other.1, other.2));
            asks(&pod, holder) == Hint::Queue
        };
        let any = ("", "", 80);
        assert!(conflict(any, ("10.0.0.1", "TCP", 80)));
        assert!(conflict(("10.0.0.1", "TCP", 80), any));
        assert!(conflict(("10.0.0.1", "", 80), ("10.0.0.1", "TCP", 80)));
        assert!(!conflict(("10.0.0.1", "", 80), ("10.0.0.2", "", 80)));
        assert!(!conflict(any, ("", "UDP", 80)));
        assert!(!conflict(any, ("", "", 81)));
        assert!(!conflict(("", "", 0), ("", "", 0)));
    }

    #[test]
    fn deletion_of_pod_with_the_port_requeues_pod() {
        let pod = with_port("a", "", "", 80);
        let pending = with_port("b", "10.0.0.1", "TCP", 80);
        assert_eq!(asks(&pod, placed(pending.clone())), Hint::Queue);
        assert_eq!(asks(&pod, pending.clone()), Hint::Skip);
        let nominated = but(pending, |pod| {
            pod.nominated_node_name = Some(NodeName::from("n"));
        });
        assert_eq!(asks(&pod, nominated), Hint::Queue);
        let other = placed(with_port("b", "", "", 81));
        assert_eq!(asks(&pod, other), Hint::Skip);
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
    }
}
