use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn reference(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name})
}

fn metadata(name: &str, owners: Value) -> ObjectMeta {
    let metadata = json!({
        "namespace": "a",
        "name": name,
        "uid": name,
        "ownerReferences": owners,
    });
    serde_json::from_value(metadata).unwrap()
}

fn identity(name: &str) -> Identity {
    Identity::of("v1", "ConfigMap", &metadata(name, json!([])))
}

fn apply(graph: &mut Graph, metadata: &ObjectMeta) -> Vec<Todo> {
    graph.apply(Identity::of("v1", "ConfigMap", metadata), metadata)
}

#[test]
fn unseen_owner_is_looked_up_once() {
    let mut graph = Graph::default();
    let owned = |name| metadata(name, json!([reference("owner")]));
    let asked = [Todo::Delete(identity("owner"))];
    assert_eq!(apply(&mut graph, &owned("x")), asked);
    assert_eq!(apply(&mut graph, &owned("y")), []);
    assert!(graph.node("owner").unwrap().is_virtual);
    assert_eq!(apply(&mut graph, &metadata("owner", json!([]))), []);
    assert!(!graph.node("owner").unwrap().is_virtual);
    let both = ["x", "y"].map(|name| Todo::Delete(identity(name)));
    assert_eq!(graph.delete(&identity("owner")), both);
    assert!(graph.absent.contains(&identity("owner")));
}

#[test]
fn missing_owner_queues_its_dependents() {
    let mut graph = Graph::default();
    apply(&mut graph, &metadata("x", json!([reference("owner")])));
    let todos = graph.delete_absent(&identity("owner"));
    assert_eq!(todos, [Todo::Delete(identity("x"))]);
    assert!(graph.node("owner").is_none());
}

#[test]
fn names_that_others_give_the_same_uid_are_tried_in_turn() {
    let mut graph = Graph::default();
    let renamed = |name: &str| {
        let mut other = reference("owner");
        other["name"] = name.into();
        other
    };
    apply(&mut graph, &metadata("x", json!([reference("owner")])));
    let doubtful = apply(&mut graph, &metadata("y", json!([renamed("other")])));
    assert_eq!(doubtful, [Todo::Delete(identity("y"))]);
    let other = Identity {
        name: "other".to_owned(),
        ..identity("owner")
    };
    assert_eq!(
        graph.delete_absent(&identity("owner")),
        [
            Todo::Delete(identity("x")),
            Todo::DeleteLater(other.clone())
        ]
    );
    assert_eq!(graph.node("owner").unwrap().identity, other);
    // Seen at last: the one with the wrong name is checked again.
    let mut seen = metadata("owner", json!([]));
    seen.name = Some("other".to_owned());
    assert_eq!(apply(&mut graph, &seen), []);
    assert_eq!(
        graph.delete_absent(&identity("owner")),
        [Todo::Delete(identity("x"))]
    );
    assert!(
        graph.node("owner").is_some(),
        "it exists under the other name"
    );
}

#[test]
fn unblocked_reference_queues_the_owner() {
    let mut graph = Graph::default();
    apply(&mut graph, &metadata("owner", json!([])));
    let mut blocking = reference("owner");
    blocking["blockOwnerDeletion"] = true.into();
    apply(&mut graph, &metadata("x", json!([blocking])));
    assert_eq!(graph.blocking_dependents("owner").len(), 1);
    let todos = apply(&mut graph, &metadata("x", json!([reference("owner")])));
    assert_eq!(todos, [Todo::Delete(identity("owner"))]);
    assert!(graph.blocking_dependents("owner").is_empty());
    assert_eq!(graph.dependents("owner").len(), 1);
    apply(&mut graph, &metadata("x", json!([])));
    assert!(graph.dependents("owner").is_empty());
}

#[test]
fn deletions_that_wait_are_followed_once() {
    let mut graph = Graph::default();
    apply(&mut graph, &metadata("owner", json!([])));
    apply(&mut graph, &metadata("x", json!([reference("owner")])));
    let deleted = |finalizer: &str| {
        let mut metadata = metadata("owner", json!([]));
        let time = plimsoll_core::object::timestamp::Timestamp::from_secs(0);
        metadata.deletion_timestamp = Some(time.to_api());
        metadata.finalizers = Some(vec![finalizer.to_owned()]);
        metadata
    };
    let orphaning = [Todo::Orphan(identity("owner"))];
    assert_eq!(apply(&mut graph, &deleted(ORPHAN)), orphaning);
    assert_eq!(apply(&mut graph, &deleted(ORPHAN)), []);
    let deleting = ["x", "owner"].map(|name| Todo::Delete(identity(name)));
    assert_eq!(apply(&mut graph, &deleted(FOREGROUND)), deleting);
    assert_eq!(apply(&mut graph, &deleted(FOREGROUND)), []);
    // The last dependent queues the owner.
    assert_eq!(
        graph.delete(&identity("x")),
        [Todo::Delete(identity("owner"))]
    );
}

#[derive(Clone, Debug)]
enum Step {
    Apply(u8, Vec<u8>),
    Delete(u8),
    DeleteAbsent(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..6_u8, prop::collection::vec(0..6_u8, 0..3)).prop_map(|(n, o)| Step::Apply(n, o)),
        1 => (0..6_u8).prop_map(Step::Delete),
        1 => (0..6_u8).prop_map(Step::DeleteAbsent),
    ]
}

proptest! {
    #[test]
    fn dependents_exist_and_refer_to_their_owner(steps in prop::collection::vec(step(), 0..60)) {
        let mut graph = Graph::default();
        for step in steps {
            match step {
                Step::Apply(name, owners) => {
                    let owners: Vec<Value> =
                        owners.iter().map(|owner| reference(&owner.to_string())).collect();
                    apply(&mut graph, &metadata(&name.to_string(), json!(owners)));
                }
                Step::Delete(name) => drop(graph.delete(&identity(&name.to_string()))),
                Step::DeleteAbsent(name) => {
                    drop(graph.delete_absent(&identity(&name.to_string())));
                }
            }
            for node in graph.nodes.values() {
                for dependent in &node.dependents {
                    let dependent = graph.nodes.get(dependent);
                    let mut owners = dependent.into_iter().flat_map(|node| &node.owners);
                    let refers = owners.any(|owner| owner.uid == node.identity.uid);
                    prop_assert!(refers);
                }
            }
        }
    }
}
