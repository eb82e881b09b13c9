//! A pod for which nodes had too little left.

use super::super::facts::{DeviceClassFacts, NodeFacts};
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};
use crate::resources::{ResourceName, Resources};

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
            new.uid == pod.uid || new.node_name.is_some() && frees_what_is_wanted(pod, old, new)
        }
        Object::Node(change) => offers_more(pod, change),
        Object::DeviceClass(change) => offers_requested_devices(pod, change),
        _ => true,
    })
}

fn frees_what_is_wanted(pod: &PodFacts, old: &PodFacts, new: &PodFacts) -> bool {
    let (before, after) = (&old.requests.typed, &new.requests.typed);
    grew_where_wanted(&pod.requests.typed, after, before)
}

/// Whether there is more of something that is wanted.
fn grew_where_wanted(wanted: &Resources, before: &Resources, after: &Resources) -> bool {
    let count = |of: &Resources, name: &ResourceName| of.extended.get(name).copied();
    (wanted.cpu.0 != 0 && after.cpu > before.cpu)
        || (wanted.memory.0 != 0 && after.memory > before.memory)
        || (wanted.ephemeral_storage.0 != 0 && after.ephemeral_storage > before.ephemeral_storage)
        || wanted.extended.iter().any(|(name, wanted)| {
            let (before, after) = (count(before, name), count(after, name));
            wanted.0 != 0 && after.unwrap_or_default() > before.unwrap_or_default()
        })
}

/// Whether the pod alone fits the node, and the node is new or has more of what the pod wants.
fn offers_more(pod: &PodFacts, change: &Change<NodeFacts>) -> bool {
    let Some(node) = change.after() else {
        return false;
    };
    let (wanted, after) = (&pod.requests.typed, &node.view.allocatable.typed);
    fits_when_empty(wanted, after)
        && change.before().is_none_or(|old| {
            let before = &old.view.allocatable.typed;
            after.pods > before.pods || grew_where_wanted(wanted, before, after)
        })
}

fn fits_when_empty(wanted: &Resources, allocatable: &Resources) -> bool {
    let extended = |name| allocatable.extended.get(name).copied().unwrap_or_default();
    let fits = |wanted: i64, given: i64| wanted <= 0 || wanted <= given;
    allocatable.pods.0 >= 1
        && fits(wanted.cpu.0, allocatable.cpu.0)
        && fits(wanted.memory.0, allocatable.memory.0)
        && fits(wanted.ephemeral_storage.0, allocatable.ephemeral_storage.0)
        && wanted
            .extended
            .iter()
            .all(|(name, wanted)| wanted.0 == 0 || *wanted <= extended(name))
}

fn offers_requested_devices(pod: &PodFacts, change: &Change<DeviceClassFacts>) -> bool {
    let Some(class) = change.after() else {
        return false;
    };
    let is_requested = |name: &str| pod.requests.list.contains(&ResourceName::new(name));
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
        added, assigned, deleted, node_added, node_update, pod_named, updated,
    };
    use super::*;
    use crate::object::node::NodeView;
    use crate::resources::{Bytes, Count, Millicores};
    use crate::testing::pod;

    const GPU: &str = "example.com/gpu";

    fn wanting() -> PodFacts {
        PodFacts::from_view(&pod("a").cpu("2").request(GPU, "1").view())
    }

    fn node(cpu: i64, pods: i64, gpus: i64) -> impl Fn(&mut NodeView) {
        move |node| {
            let typed = &mut node.allocatable.typed;
            (typed.cpu, typed.pods) = (Millicores(cpu), Count(pods));
            typed.extended.insert(GPU.into(), Count(gpus));
        }
    }

    #[test]
    fn a_deleted_pod_is_worth_an_attempt_if_it_had_a_node() {
        let delete = |pod| Object::Pod(deleted(pod));
        assert_eq!(
            hint(&wanting(), &delete(assigned("b", |_| ()))),
            Hint::Queue
        );
        assert_eq!(hint(&wanting(), &delete(pod_named("b"))), Hint::Skip);
    }

    #[test]
    fn a_scale_down_counts_in_what_the_pod_wants_or_for_itself() {
        let scaled = |name: &str, before: (&str, &str), after: (&str, &str), node: bool| {
            let facts = |(resource, amount): (&str, &str)| {
                let view = pod(name).request(resource, amount).view();
                let mut facts = PodFacts::from_view(&view);
                facts.node_name = node.then(|| "n".into());
                facts
            };
            Object::Pod(updated(facts(before), facts(after)))
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
    fn an_updated_node_must_fit_the_pod_and_have_more_of_what_it_wants() {
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
            node.allocatable.typed.memory = Bytes(1);
        });
        assert_eq!(hint(&wanting(), &memory), Hint::Skip);
    }

    #[test]
    fn a_device_class_counts_if_the_pod_asks_for_its_resource() {
        let class = |name: &str, resource: Option<&str>| DeviceClassFacts {
            name: name.to_owned(),
            extended_resource_name: resource.map(ToOwned::to_owned),
        };
        let new = |class| Object::DeviceClass(added(class));
        assert_eq!(hint(&wanting(), &new(class("x", Some(GPU)))), Hint::Queue);
        assert_eq!(hint(&wanting(), &new(class("x", None))), Hint::Skip);
        let by_class = "deviceclass.resource.kubernetes.io/x";
        let implicit = PodFacts::from_view(&pod("a").request(by_class, "1").view());
        assert_eq!(hint(&implicit, &new(class("x", None))), Hint::Queue);
        let change = |old, new| Object::DeviceClass(updated(class("x", old), class("x", new)));
        assert_eq!(hint(&wanting(), &change(None, Some(GPU))), Hint::Queue);
        assert_eq!(hint(&wanting(), &change(Some(GPU), Some(GPU))), Hint::Skip);
    }
}
