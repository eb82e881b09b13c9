//! The audit log.

use std::path::{Path, PathBuf};

use plimsoll_apiserver::server::audit::Options;
use plimsoll_apiserver::server::audit::log::{Mode, Rotation};
use plimsoll_apiserver::server::audit::policy::Policy;
use plimsoll_apiserver::store::RedbOptions;
use serde_json::{Value, json};

use super::cluster::{Cluster, eventually};
use super::objects::{CONFIG_MAPS, PODS, SECRETS, config_map, pod, secret};

/// A server with this audit policy.
async fn audited(path: &Path, policy: Option<&str>, mode: Mode) -> Cluster {
    let options = Options {
        policy: policy.map(|text| Policy::from_yaml(text).unwrap()),
        mode,
        ..Options::new(path)
    };
    let adapt = move |all: &mut plimsoll_apiserver::server::Options| all.audit = Some(options);
    Cluster::start_with(adapt, RedbOptions::default()).await
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

fn log_in(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("audit.log")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_audited() {
    let folder = tempfile::tempdir().unwrap();
    let path = log_in(&folder);
    let cluster = audited(&path, None, Mode::Batch).await;
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
    // The first request was the readiness check.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_event_has_user_impersonation_source_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = log_in(&folder);
    // Blocking: after the response, the event is written.
    let cluster = audited(&path, None, Mode::Blocking).await;
    let admin = cluster.admin().with("user-agent", "tester/1.0");
    let as_bob = admin.with("impersonate-user", "bob");
    let as_bob = as_bob.with("x-forwarded-for", "192.0.2.7");
    let message = as_bob.get(SECRETS).await.refused(403, "Forbidden");
    let event = lines(&path).pop().unwrap();
    assert_eq!(event["user"]["username"], "admin");
    assert_eq!(event["impersonatedUser"]["username"], "bob");
    assert_eq!(event["sourceIPs"], json!(["192.0.2.7", "127.0.0.1"]));
    assert_eq!(event["userAgent"], "tester/1.0");
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    assert_eq!(event["responseStatus"]["message"], message);
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
    assert_eq!(event["responseStatus"]["code"], 403);

    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    cluster
        .user("alice", &[])
        .post(reviews, &review)
        .await
        .expect(201);
    let event = lines(&path).pop().unwrap();
    assert!(event["impersonatedUser"].is_null(), "{event}");
    let annotations = &event["annotations"];
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
    assert_eq!(
        annotations["authorization.k8s.io/reason"],
        "RBAC: allowed by ClusterRoleBinding \"system:basic-user\" of ClusterRole \
         \"system:basic-user\" to Group \"system:authenticated\""
    );
    // The caller cannot be authenticated.
    cluster
        .bearer("wrong")
        .get(SECRETS)
        .await
        .refused(401, "Unauthorized");
    let event = lines(&path).pop().unwrap();
    assert_eq!(
        (&event["user"], &event["responseStatus"]["code"]),
        (&json!({}), &json!(401))
    );
    let metrics = admin.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    for line in [
        "apiserver_audit_event_total 4",
        "apiserver_audit_level_total{level=\"Metadata\"} 5",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(
        !metrics.contains("apiserver_audit_error_total{"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_policy_selects_requests_and_levels() {
    const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, nonResourceURLs: ['*']}
- {level: Metadata, resources: [{group: '', resources: [secrets]}]}
- {level: Request, resources: [{group: '', resources: [pods]}], omitStages: [RequestReceived]}
- {level: RequestResponse, resources: [{group: '', resources: [configmaps]}],
   omitManagedFields: true}
";
    let folder = tempfile::tempdir().unwrap();
    let path = log_in(&folder);
    let cluster = audited(&path, Some(POLICY), Mode::Blocking).await;
    let admin = cluster.admin();
    admin.get("/version").await.expect(200);
    admin.get("/api/v1/nodes").await.expect(200);
    assert_eq!(lines(&path), Vec::<Value>::new());

    let mut hidden = secret("s");
    hidden["stringData"] = json!({"password": "hunter2"});
    admin.post(SECRETS, &hidden).await.expect(201);
    let stages = |events: &[Value]| -> Vec<String> {
        let stages = events
            .iter()
            .map(|event| event["stage"].as_str().unwrap().to_owned());
        stages.collect()
    };
    let events = lines(&path);
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("hunter2"));

    admin.post(PODS, &pod("p")).await.expect(201);
    let events = lines(&path);
    assert_eq!(stages(&events[2..]), ["ResponseComplete"]);
    assert_eq!(events[2]["requestObject"]["spec"], pod("p")["spec"]);
    assert!(events[2]["responseObject"].is_null());

    let apply = format!("{CONFIG_MAPS}/c?fieldManager=me");
    let yaml = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}";
    let media_type = "application/apply-patch+yaml";
    let made = admin
        .send(http::Method::PATCH, &apply, media_type, yaml)
        .await;
    let made = made.expect(201);
    assert!(made["metadata"]["managedFields"].is_array());
    let event = lines(&path).pop().unwrap();
    assert_eq!(event["requestObject"]["data"], json!({"a": "b"}));
    assert_eq!(
        event["responseObject"]["metadata"]["uid"],
        made["metadata"]["uid"]
    );
    assert!(event["responseObject"]["metadata"]["managedFields"].is_null());

    // A watch has an event at its beginning and one at its end.
    let before = lines(&path).len();
    let mut watch = admin.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    watch.next().await.unwrap();
    let begun = lines(&path).split_off(before);
    assert_eq!(stages(&begun), ["RequestReceived", "ResponseStarted"]);
    drop((watch, admin));
    let over = eventually("the watch is over", async || {
        let events = lines(&path).split_off(before);
        (events.len() == 3).then_some(events)
    })
    .await;
    assert_eq!(stages(&over[2..]), ["ResponseComplete"]);
    assert_eq!(over[2]["auditID"], over[0]["auditID"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_audit_writes_are_counted_or_reject_requests() {
    for (mode, code) in [(Mode::Blocking, 200), (Mode::BlockingStrict, 500)] {
        // Every write fails because the disk is full.
        let options = Options {
            mode,
            rotation: Rotation {
                max_mebibytes: 0,
                ..Rotation::default()
            },
            ..Options::new("/dev/full")
        };
        let folder = std::sync::Arc::new(tempfile::tempdir().unwrap());
        let file = folder.path().join("store.redb");
        let store = plimsoll_apiserver::store::RedbStore::open(&file, &RedbOptions::default());
        let mut all = plimsoll_apiserver::server::Options::new(folder.path().join("pki"));
        all.audit = Some(options);
        let store = std::sync::Arc::new(store.unwrap());
        let server = plimsoll_apiserver::server::Server::open(store, all)
            .await
            .unwrap();
        let user = plimsoll_apiserver::auth::identity::User::new("a", &["system:masters"]);
        let admin = super::caller::Caller::new(server.client(user));
        let before = admin.get("/version").await;
        assert_eq!(before.code, code, "{mode:?}");
        if code == 200 {
            let metrics = admin.get("/metrics").await;
            let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
            let line = "apiserver_audit_error_total{plugin=\"log\"} 1";
            assert!(metrics.contains(line), "{metrics}");
        }
        admin.post(CONFIG_MAPS, &config_map("c")).await;
        let made = admin.get(&format!("{CONFIG_MAPS}/c")).await;
        assert_eq!(made.code, code);
        server.stop();
    }
}
