//! Claims of stateful sets, and the objects that they go with.

use super::*;
use crate::workloads::stateful_set::{claim, identity};

fn with_claims(policy: Value, replicas: i32) -> StatefulSet {
    let template = json!({
        "metadata": {"name": "data", "labels": {"tier": "x"}},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    });
    set(json!({
        "replicas": replicas, "volumeClaimTemplates": [template],
        "persistentVolumeClaimRetentionPolicy": policy,
    }))
}

fn actions(plan: &Plan) -> Vec<Value> {
    let actions = plan.stages.iter().flatten().flat_map(|step| &step.actions);
    let shown = actions.map(|action| match action {
        Action::CreateClaim(claim) => json!({"create": claim}),
        Action::UpdateClaim(claim) => json!({"update": claim.metadata.owner_references}),
        Action::CreatePod(pod) => json!({"pod": pod.spec.as_ref().unwrap().volumes}),
        Action::UpdatePod(_) => json!("update pod"),
        Action::DeletePod => json!("delete pod"),
        Action::Record(note) => json!(note.reason),
        Action::Fail(reason) => json!({"fail": reason}),
    });
    shown.collect()
}

/// The claim of `web-0` or another as the controller makes it.
fn stored_claim(set: &StatefulSet, ordinal: i32) -> PersistentVolumeClaim {
    let mut claims = claim::new_claims(set, &pod(ordinal, "new", "Running", true), ordinal);
    claims.remove(0)
}

fn claims_of(claims: impl IntoIterator<Item = PersistentVolumeClaim>) -> Claims {
    let named = claims
        .into_iter()
        .map(|claim| (claim.metadata.name.clone().unwrap(), Arc::new(claim)));
    named.collect()
}

#[test]
fn claims_are_made_before_their_pod() {
    let set = with_claims(json!({"whenDeleted": "Delete", "whenScaled": "Delete"}), 1);
    let plan = planned(&set, &[]);
    let actions = actions(&plan);
    let claim = &actions[0]["create"];
    assert_eq!(claim["metadata"]["name"], "data-web-0");
    assert_eq!(
        claim["metadata"]["labels"],
        json!({"app": "web", "tier": "x"})
    );
    let owners = claim["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["uid"]), (1, &json!("set-uid")));
    assert_eq!(
        actions[1],
        json!({"pod": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]})
    );
    let retained = with_claims(json!({"whenDeleted": "Retain", "whenScaled": "Retain"}), 1);
    let plan = planned(&retained, &[]);
    assert_eq!(
        self::actions(&plan)[0]["create"]["metadata"].get("ownerReferences"),
        None
    );
}

#[test]
fn a_claim_that_is_being_deleted_is_waited_for() {
    let set = with_claims(json!({}), 1);
    let mut claim = stored_claim(&set, 0);
    claim.metadata.deletion_timestamp = Some(Timestamp::from_rfc3339(NOW).unwrap().to_api());
    let plan = planned_with(&set, &[], &claims_of([claim]));
    assert_eq!(
        actions(&plan)[0],
        json!({"fail": "pvc data-web-0 is being deleted"})
    );
}

#[test]
fn claims_get_the_owner_of_the_policy() {
    let policies = [
        ("Retain", "Retain"),
        ("Delete", "Retain"),
        ("Retain", "Delete"),
        ("Delete", "Delete"),
    ];
    // The owners of the claims of web-0, which stays, and of web-1, which goes.
    let expected: [[&[&str]; 2]; 4] = [
        [&[], &[]],
        [&["set-uid"], &["set-uid"]],
        [&[], &["pod-1"]],
        [&["set-uid"], &["pod-1"]],
    ];
    for (index, (when_deleted, when_scaled)) in policies.into_iter().enumerate() {
        let policy = json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
        let set = with_claims(policy, 1);
        for (ordinal, wanted) in [(0, expected[index][0]), (1, expected[index][1])] {
            let pod = pod(ordinal, "new", "Running", true);
            for (before, _) in policies {
                let former = with_claims(json!({"whenDeleted": before}), 2);
                let mut claim = stored_claim(&former, ordinal);
                claim::set_owners(&mut claim, &set, &pod);
                let owners = claim.metadata.owner_references.clone().unwrap_or_default();
                let uids: Vec<&str> = owners.iter().map(|owner| owner.uid.as_str()).collect();
                assert_eq!(uids, wanted, "{when_deleted} {when_scaled} {ordinal}");
                assert!(claim::are_owners_current(&claim, &set, &pod));
            }
        }
    }
}

#[test]
fn claims_change_owner_when_their_pod_is_scaled_away() {
    let before = with_claims(json!({"whenScaled": "Delete"}), 2);
    let claims = claims_of([stored_claim(&before, 0), stored_claim(&before, 1)]);
    let mut pods = serving(&[0, 1], "new");
    for pod in &mut pods {
        let ordinal = ordinal_of("web", pod.metadata.name.as_deref().unwrap()).unwrap();
        identity::set_storage(&before, pod, ordinal);
    }
    assert_eq!(
        actions(&planned_with(&before, &pods, &claims)),
        Vec::<Value>::new()
    );
    let after = with_claims(json!({"whenScaled": "Delete"}), 1);
    let plan = planned_with(&after, &pods, &claims);
    assert_eq!(steps(&plan), "=web-1 -web-1");
    assert_eq!(actions(&plan)[0]["update"][0]["uid"], "pod-1");
    // A pod of that name is not made before the claim is gone.
    let mut stale = stored_claim(&before, 1);
    claim::set_owners(&mut stale, &after, &pods[1]);
    let claims = claims_of([stored_claim(&before, 0), stale]);
    let plan = planned_with(&before, &pods[..1], &claims);
    assert_eq!(actions(&plan), Vec::<Value>::new());
}

#[test]
fn a_claim_with_another_controller_is_left_to_it() {
    let set = with_claims(json!({"whenDeleted": "Delete"}), 1);
    let other =
        json!({"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "o", "controller": true});
    let mut claim = stored_claim(&set, 0);
    let owners = claim.metadata.owner_references.get_or_insert_default();
    owners.push(serde_json::from_value(other).unwrap());
    let mut pod = pod(0, "new", "Running", true);
    identity::set_storage(&set, &mut pod, 0);
    let plan = planned_with(&set, &[pod], &claims_of([claim]));
    let actions = actions(&plan);
    assert_eq!(actions[0], "ConflictingController");
    assert_eq!(actions[1]["update"].as_array().unwrap().len(), 1);
    assert_eq!(actions[1]["update"][0]["uid"], "o");
}
