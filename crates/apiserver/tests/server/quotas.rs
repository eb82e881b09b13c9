//! Quotas are never exceeded, even by concurrent writers.

use serde_json::{Value, json};

use super::caller::Caller;
use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, PODS, config_map, names, pod};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

async fn with_quota(caller: &Caller, name: &str, hard: Value) {
    let quota = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard},
    });
    let mut made = caller.post(QUOTAS, &quota).await.expect(201);
    // The first update of the quota controller.
    let used = hard
        .as_object()
        .unwrap()
        .keys()
        .map(|key| (key.clone(), json!("0")));
    let used: serde_json::Map<String, Value> = used.collect();
    made["status"] = json!({"hard": hard, "used": used});
    let path = format!("{QUOTAS}/{name}/status");
    caller.put(&path, &made).await.expect(200);
}

fn demanding(name: &str, cpu: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

pub(crate) async fn check_concurrent(one: &Caller, other: &Caller) {
    // Two quotas, so that a pod is charged to both or to none.
    with_quota(one, "pods", json!({"pods": "20"})).await;
    with_quota(one, "cpu", json!({"requests.cpu": "1500m"})).await;
    let creators = (0..50).map(|n| {
        let caller = if n % 2 == 0 { one } else { other };
        let caller = caller.clone();
        tokio::spawn(async move {
            let pod = demanding(&format!("p{n}"), "100m");
            caller.post(PODS, &pod).await
        })
    });
    let mut created = 0;
    for creator in creators.collect::<Vec<_>>() {
        let answer = creator.await.unwrap();
        if answer.code == 201 {
            created += 1;
        } else {
            let message = answer.refused(403, "Forbidden");
            assert!(message.contains("exceeded quota: cpu"), "{message}");
        }
    }
    assert_eq!(created, 15);
    assert_eq!(names(&one.get(PODS).await.expect(200)).len(), 15);
    let quotas = one.get(QUOTAS).await.expect(200);
    assert_eq!(
        quotas["items"][0]["status"]["used"]["requests.cpu"],
        "1500m"
    );
    assert_eq!(quotas["items"][1]["status"]["used"]["pods"], "15");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_concurrent_creators_never_exceed_a_quota() {
    let cluster = Cluster::start().await;
    check_concurrent(&cluster.admin(), &cluster.local_admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_counts_objects_but_not_dry_runs() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    with_quota(&admin, "few", json!({"count/configmaps": "1"})).await;
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    admin.post(&dry, &config_map("a")).await.expect(201);
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let refused = admin.post(CONFIG_MAPS, &config_map("b")).await;
    let message = refused.refused(403, "Forbidden");
    assert_eq!(
        message,
        "configmaps \"b\" is forbidden: exceeded quota: few, requested: count/configmaps=1, used: \
         count/configmaps=1, limited: count/configmaps=1"
    );
    // An existing object cannot be charged again.
    let taken = admin.post(CONFIG_MAPS, &config_map("a")).await;
    assert!(matches!(taken.code, 403 | 409));
    let used = admin.get(&format!("{QUOTAS}/few")).await.expect(200);
    assert_eq!(used["status"]["used"]["count/configmaps"], "1");
}
