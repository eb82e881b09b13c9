//! The log of requests.

use plimsoll_apiserver::store::RedbOptions;
use serde_json::Value;

use super::cluster::{Cluster, eventually};
use super::objects::{CONFIG_MAPS, config_map};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_noted_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let log = path.clone();
    let cluster = Cluster::start_with(
        move |options| options.audit_log = Some(log),
        RedbOptions::default(),
    )
    .await;
    let admin = cluster.admin();
    let made = admin.post(CONFIG_MAPS, &config_map("c")).await;
    let id = made.header("audit-id").to_owned();
    let chosen = admin.with("audit-id", "my-own").get(CONFIG_MAPS).await;
    assert_eq!(chosen.header("audit-id"), "my-own");
    cluster
        .bearer("")
        .get(CONFIG_MAPS)
        .await
        .refused(403, "Forbidden");
    cluster.bearer("").get("/healthz").await;
    let mut lines: Vec<Value> = eventually("five lines", async || {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Option<Vec<Value>> = text
            .lines()
            .map(|line| serde_json::from_str(line).ok())
            .collect();
        lines.filter(|lines| lines.len() == 5)
    })
    .await;
    // The first request was the look at whether the server is ready.
    assert_eq!(lines.remove(0)["requestURI"], "/readyz");
    assert_eq!(lines[0]["auditID"], id.as_str());
    assert_eq!(lines[0]["kind"], "Event");
    assert_eq!(lines[0]["apiVersion"], "audit.k8s.io/v1");
    assert_eq!(lines[0]["level"], "Metadata");
    assert_eq!(lines[0]["stage"], "ResponseComplete");
    assert_eq!(lines[0]["verb"], "create");
    assert_eq!(lines[0]["requestURI"], CONFIG_MAPS);
    assert_eq!(lines[0]["user"]["username"], "admin");
    assert_eq!(lines[0]["objectRef"]["resource"], "configmaps");
    assert_eq!(lines[0]["objectRef"]["namespace"], "default");
    assert_eq!(lines[0]["responseStatus"]["code"], 201);
    assert_eq!(lines[1]["auditID"], "my-own");
    assert_eq!(lines[2]["responseStatus"]["code"], 403);
    assert_eq!(lines[2]["user"]["username"], "system:anonymous");
    assert_eq!(lines[3]["requestURI"], "/healthz");
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}
