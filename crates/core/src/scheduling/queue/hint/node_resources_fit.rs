//! A pod for which nodes had too little left.

use std::sync::Arc;

use super::super::facts::{DeviceClassFacts, NodeFacts};
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};
use crate::resources::ResourceName;
use crate::scheduling::cluster::NodeState;
use crate::scheduling::plugins::node_resources_fit::rejection;
use crate::scheduling::pod::Request;

/// Prefix under which a device class is an extended resource without further ado.
const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

pub(super) const EVENTS: &[Registration] = &[
    (
        Resource::Pod,
        Action::DELETE.or(Action::UPDATE_POD_SCALE_DOWN),
    ),
    (
        Resource::Node,
        Action::ADD.or(Action::UPDATE_NODE_ALLOCATABLE),
    ),
    (Resource::DeviceClass, Action::ADD.or(Action::UPDATE)),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::Pod(Change::Deleted(deleted)) => deleted.is_on_a_node(),
        Object::Pod(Change::Updated { old, new }) => {
            new.uid == pod.uid || new.node_name.is_some() && frees_requested(pod, old, new)
        }
        Object::Node(change) => offers_more(pod, change),
        Object::DeviceClass(change) => offers_requested_devices(pod, change),
        _ => true,
    })
}

/// Unlike the filter, upstream counts the resources in the status during a resize here, of the
/// pending pod too.
fn frees_requested(pod: &PodFacts, old: &PodFacts, new: &PodFacts) -> bool {
    let (before, after) = (&old.requests.on_node, &new.requests.on_node);
    has_more_of_requested(&pod.requests.on_node, after, before)
}

/// Whether there is more of a requested resource.
fn has_more_of_requested(wanted: &Request, before: &Request, after: &Request) -> bool {
    wanted.any(|name, _| after.get(name) > before.get(name))
}

/// Whether the pod alone fits the node, and the node is new or has more of what the pod requests.
fn offers_more(pod: &PodFacts, change: &Change<NodeFacts>) -> bool {
    let empty = |node: &NodeFacts| NodeState::new(Arc::clone(&node.view));
    change.after().map(empty).is_some_and(|new| {
        fits_when_empty(pod, &new)
            && change.before().map(empty).is_none_or(|old| {
                let wanted = &pod.requests.incoming;
                new.allowed_pods > old.allowed_pods
                    || has_more_of_requested(wanted, &old.allocatable, &new.allocatable)
            })
    })
}

/// Unlike the filter, upstream checks resources here that the profile ignores, too.
fn fits_when_empty(pod: &PodFacts, node: &NodeState) -> bool {
    rejection(pod, node, |_| false).is_none()
}

fn offers_requested_devices(pod: &PodFacts, change: &Change<DeviceClassFacts>) -> bool {
    let Some(class) = change.after() else {
        return false;
    };
    // Both names are of a form that is counted among the scalars.
    let requested = &pod.requests.incoming.scalars;
    let is_requested = |name: &str| requested.contains_key(&ResourceName::new(name));
    let by_extended_name = class
        .extended_resource_name
        .as_deref()
        .is_some_and(is_requested);
    match change.before() {
        // The name of a class does not change, so that only a new one can bring it.
        None => by_extended_name || is_requested(&format!("{DEVICE_CLASS_PREFIX}{}", class.name)),
        Some(old) => {
            let name =
                |class: &DeviceClassFacts| class.extended_resource_name.clone().unwrap_or_default();
            name(old) != name(class) && by_extended_name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        added, assigned, deleted, node_added, node_update, placed, pod_named, updated,
    };
    use super::*;
    use crate::object::node::NodeView;
    use crate::quantity::{Format, Quantity};
    use crate::resources::Count;
    use crate::testing::{PodBuilder, pod};

    const GPU: &str = "example.com/gpu";

    fn facts(pod: PodBuilder) -> PodFacts {
        PodFacts::from_api(&pod.build()).unwrap()
    }

    fn wanting() -> PodFacts {
        facts(pod("a").cpu("2").request(GPU, "1"))
    }

    fn node(cpu: i64, pods: i64, gpus: i64) -> impl Fn(&mut NodeView) {
        move |node| {
            node.allocatable.typed.pods = Count(pods);
            let list = &mut node.allocatable.list;
            list.insert(
                ResourceName::CPU,
                Quantity::from_milli(cpu, Format::DecimalSi),
            );
            list.insert(GPU.into(), Quantity::new(gpus, Format::DecimalSi));
        }
    }

    #[test]
    fn deletion_of_assigned_pod_requeues_pod() {
        let delete = |pod| Object::Pod(deleted(pod));
        assert_eq!(
            hint(&wanting(), &delete(assigned("b", |_| ()))),
            Hint::Queue
        );
        assert_eq!(hint(&wanting(), &delete(pod_named("b"))), Hint::Skip);
    }

    #[test]
    fn scale_down_counts_for_requested_resources_or_own_pod() {
        let scaled = |name: &str, before: (&str, &str), after: (&str, &str), node: bool| {
            let asking = |(resource, amount): (&str, &str)| {
                let pending = facts(pod(name).request(resource, amount));
                if node { placed(pending) } else { pending }
            };
            Object::Pod(updated(asking(before), asking(after)))
        };
        let cpu = scaled("b", ("cpu", "2"), ("cpu", "1"), true);
        assert_eq!(hint(&wanting(), &cpu), Hint::Queue);
        let memory = scaled("b", ("memory", "2Gi"), ("memory", "1Gi"), true);
        assert_eq!(hint(&wanting(), &memory), Hint::Skip);
        let gpu = scaled("b", (GPU, "2"), (GPU, "1"), true);
        assert_eq!(hint(&wanting(), &gpu), Hint::Queue);
        let pending = scaled("b", ("cpu", "2"), ("cpu", "1"), false);
        assert_eq!(hint(&wanting(), &pending), Hint::Skip);
        let own = scaled("a", ("memory", "2Gi"), ("memory", "1Gi"), false);
        assert_eq!(hint(&wanting(), &own), Hint::Queue);
    }

    #[test]
    fn a_new_node_must_fit_the_pod_when_empty() {
        for (cpu, pods, gpus, expected) in [
            (2000, 1, 1, Hint::Queue),
            (1999, 1, 1, Hint::Skip),
            (2000, 0, 1, Hint::Skip),
            (2000, 1, 0, Hint::Skip),
        ] {
            assert_eq!(
                hint(&wanting(), &node_added(node(cpu, pods, gpus))),
                expected
            );
        }
    }

    #[test]
    fn updated_node_must_fit_and_have_more_of_requested_resource() {
        let update = |from: (i64, i64, i64), to: (i64, i64, i64)| {
            node_update(node(from.0, from.1, from.2), node(to.0, to.1, to.2))
        };
        for (from, to, expected) in [
            ((1000, 9, 1), (2000, 9, 1), Hint::Queue),
            ((3000, 9, 1), (2000, 9, 1), Hint::Skip),
            ((2000, 8, 1), (2000, 9, 1), Hint::Queue),
            ((2000, 9, 0), (2000, 9, 1), Hint::Queue),
            ((1000, 9, 1), (1500, 9, 1), Hint::Skip),
        ] {
            assert_eq!(
                hint(&wanting(), &update(from, to)),
                expected,
                "{from:?} {to:?}"
            );
        }
        let memory = node_update(node(2000, 9, 1), |node| {
            let memory = Quantity::new(1, Format::BinarySi);
            node.allocatable.list.insert(ResourceName::MEMORY, memory);
        });
        assert_eq!(hint(&wanting(), &memory), Hint::Skip);
    }

    #[test]
    fn device_class_counts_if_pod_requests_its_resource() {
        let class = |name: &str, resource: Option<&str>| DeviceClassFacts {
            name: name.to_owned(),
            extended_resource_name: resource.map(ToOwned::to_owned),
        };
        let new = |class| Object::DeviceClass(added(class));
        assert_eq!(hint(&wanting(), &new(class("x", Some(GPU)))), Hint::Queue);
        assert_eq!(hint(&wanting(), &new(class("x", None))), Hint::Skip);
        let by_class = "deviceclass.resource.kubernetes.io/x";
        let implicit = facts(pod("a").request(by_class, "1"));
        assert_eq!(hint(&implicit, &new(class("x", None))), Hint::Queue);
        let change = |old, new| Object::DeviceClass(updated(class("x", old), class("x", new)));
        assert_eq!(hint(&wanting(), &change(None, Some(GPU))), Hint::Queue);
        assert_eq!(hint(&wanting(), &change(Some(GPU), Some(GPU))), Hint::Skip);
    }
}
