//! A pod whose host ports were taken.

use super::{Action, Hint, Object, PodFacts, Registration, Resource};

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
    let mut wanted = pod.host_ports.iter();
    deleted.is_on_a_node()
        && wanted.any(|port| {
            deleted
                .host_ports
                .iter()
                .any(|used| port.conflicts_with(used))
        })
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::HostPort;
    use super::super::tests::{assigned, deleted, node_added, pod_named};
    use super::*;
    use crate::object::identity::NodeName;

    fn port(ip: &str, protocol: &str, port: i32) -> HostPort {
        HostPort {
            ip: ip.to_owned(),
            protocol: protocol.to_owned(),
            port,
        }
    }

    #[test]
    fn ports_conflict_where_protocol_number_and_address_overlap() {
        let any = port("", "", 80);
        assert!(any.conflicts_with(&port("10.0.0.1", "TCP", 80)));
        assert!(port("10.0.0.1", "TCP", 80).conflicts_with(&any));
        assert!(port("10.0.0.1", "", 80).conflicts_with(&port("10.0.0.1", "TCP", 80)));
        assert!(!port("10.0.0.1", "", 80).conflicts_with(&port("10.0.0.2", "", 80)));
        assert!(!any.conflicts_with(&port("", "UDP", 80)));
        assert!(!any.conflicts_with(&port("", "", 81)));
        assert!(!port("", "", 0).conflicts_with(&port("", "", 0)));
    }

    #[test]
    fn a_deleted_pod_that_held_the_port_is_worth_an_attempt() {
        let mut pod = pod_named("a");
        pod.host_ports.push(port("", "", 80));
        let delete = |pod| Object::Pod(deleted(pod));
        let holder = assigned("b", |pod| pod.host_ports.push(port("10.0.0.1", "TCP", 80)));
        assert_eq!(hint(&pod, &delete(holder.clone())), Hint::Queue);
        let mut pending = holder.clone();
        pending.node_name = None;
        assert_eq!(hint(&pod, &delete(pending.clone())), Hint::Skip);
        pending.nominated_node_name = Some(NodeName::from("n"));
        assert_eq!(hint(&pod, &delete(pending)), Hint::Queue);
        let other = assigned("b", |pod| pod.host_ports.push(port("", "", 81)));
        assert_eq!(hint(&pod, &delete(other)), Hint::Skip);
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
    }
}
