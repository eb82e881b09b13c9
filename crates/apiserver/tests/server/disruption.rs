//! Concurrent evictions respect the budget.

use serde_json::{Value, json};

use super::caller::Caller;
use super::cluster::Cluster;
use super::objects::{PODS, names, placed_pod};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn running_pod(caller: &Caller, name: &str) {
    let mut pod = caller.post(PODS, &placed_pod(name, "n1")).await.expect(201);
    pod["status"] = json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let path = format!("{PODS}/{name}/status");
    caller.put(&path, &pod).await.expect(200);
}

async fn budget(caller: &Caller, allowed: u32) {
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": "web"}}},
    });
    let mut made = caller.post(BUDGETS, &budget).await.expect(201);
    // The update of the disruption controller.
    made["status"] = json!({
        "observedGeneration": 1, "disruptionsAllowed": allowed,
        "currentHealthy": 20, "desiredHealthy": 20 - allowed, "expectedPods": 20,
    });
    caller
        .put(&format!("{BUDGETS}/web/status"), &made)
        .await
        .expect(200);
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

fn is_leaving(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) async fn check_concurrent(one: &Caller, other: &Caller) {
    for number in 0..20 {
        running_pod(one, &format!("p{number:02}")).await;
    }
    budget(one, 5).await;
    let evictions = (0..20).map(|n| {
        let caller = if n % 2 == 0 { one } else { other };
        let caller = caller.clone();
        tokio::spawn(async move {
            let name = format!("p{n:02}");
            let path = format!("{PODS}/{name}/eviction");
            caller.post(&path, &eviction(&name)).await
        })
    });
    let mut evicted = 0;
    for answer in evictions.collect::<Vec<_>>() {
        let answer = answer.await.unwrap();
        if answer.code == 201 {
            evicted += 1;
        } else {
            let message = answer.refused(429, "TooManyRequests");
            assert!(
                message.starts_with("Cannot evict pod as it would violate"),
                "{message}"
            );
        }
    }
    assert_eq!(evicted, 5);
    let pods = one.get(PODS).await.expect(200);
    let leaving = pods["items"].as_array().unwrap().iter();
    let leaving = leaving.filter(|pod| is_leaving(pod)).count();
    assert_eq!((leaving, names(&pods).len()), (5, 20));
    let status = one.get(&format!("{BUDGETS}/web")).await.expect(200);
    assert_eq!(status["status"]["disruptionsAllowed"], 0);
    assert_eq!(
        status["status"]["disruptedPods"].as_object().unwrap().len(),
        5
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_concurrent_evictions_respect_a_budget_of_five() {
    let cluster = Cluster::start().await;
    check_concurrent(&cluster.admin(), &cluster.local_admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dry_run_eviction_does_not_change_the_budget() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    running_pod(&admin, "p").await;
    budget(&admin, 1).await;
    let before = cluster.store.current_revision().await.unwrap();
    let path = format!("{PODS}/p/eviction");
    let dry = admin
        .post(&format!("{path}?dryRun=All"), &eviction("p"))
        .await;
    dry.expect(201);
    assert_eq!(cluster.store.current_revision().await.unwrap(), before);
    admin.post(&path, &eviction("p")).await.expect(201);
    let pod = admin.get(&format!("{PODS}/p")).await.expect(200);
    assert!(is_leaving(&pod));
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "DisruptionTarget"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unhealthy_pods_are_evicted_by_the_policy_of_their_budget() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    budget(&admin, 1).await;
    let cases = [
        // Policy, healthy pods of those needed, whether the pod is ready, the answer.
        (None, (2, 2), false, 201),
        (None, (1, 2), false, 429),
        (None, (0, 0), false, 429),
        (Some("IfHealthyBudget"), (2, 2), false, 201),
        (Some("IfHealthyBudget"), (1, 2), false, 429),
        (Some("AlwaysAllow"), (1, 2), false, 201),
        (Some("AlwaysAllow"), (0, 0), false, 201),
        (Some("AlwaysAllow"), (2, 2), true, 429),
    ];
    for (number, (policy, (healthy, needed), is_ready, code)) in cases.into_iter().enumerate() {
        let name = format!("p{number}");
        running_pod(&admin, &name).await;
        if !is_ready {
            let path = format!("{PODS}/{name}/status");
            let mut pod = admin.get(&format!("{PODS}/{name}")).await.expect(200);
            pod["status"]["conditions"][0]["status"] = json!("False");
            admin.put(&path, &pod).await.expect(200);
        }
        let path = format!("{BUDGETS}/web");
        let mut budget = admin.get(&path).await.expect(200);
        budget["spec"]["unhealthyPodEvictionPolicy"] = json!(policy);
        let mut budget = admin.put(&path, &budget).await.expect(200);
        budget["status"] = json!({
            "observedGeneration": budget["metadata"]["generation"], "disruptionsAllowed": 0,
            "currentHealthy": healthy, "desiredHealthy": needed, "expectedPods": 3,
        });
        admin
            .put(&format!("{path}/status"), &budget)
            .await
            .expect(200);
        let eviction = eviction(&name);
        let answer = admin
            .post(&format!("{PODS}/{name}/eviction"), &eviction)
            .await;
        assert_eq!(
            answer.code, code,
            "{policy:?} {healthy} of {needed}, ready: {is_ready}"
        );
        // A pod that does not count is not charged for.
        let budget = admin.get(&path).await.expect(200);
        assert_eq!(budget["status"]["disruptedPods"], Value::Null);
        let pod = admin.get(&format!("{PODS}/{name}")).await.expect(200);
        assert_eq!(is_leaving(&pod), code == 201);
    }
}
