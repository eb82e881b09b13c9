//! Failed tasks of a server are restarted.

use super::cluster::{Cluster, eventually};
use super::objects::namespace;

const NAMESPACES: &str = "/api/v1/namespaces";

const TASKS: [&str; 6] = [
    "certificatesigningrequest-signing-controller",
    "namespace-defaults-controller",
    "node-client-certificate",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "storage-alarms",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_task_is_restarted_and_named_by_health() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let supervisor = cluster.server.supervisor();
    eventually("all tasks run", async || {
        (supervisor.names() == TASKS).then_some(())
    })
    .await;
    admin.post(NAMESPACES, &namespace("n")).await.expect(201);
    for task in TASKS {
        let page = format!("/livez/{task}");
        assert_eq!(admin.get(&page).await.code, 200, "{task}");
        assert!(supervisor.end(task), "{task} does not run");
        eventually(task, async || {
            (supervisor.restarts(task) == 1).then_some(())
        })
        .await;
        assert_eq!(admin.get(&page).await.code, 500, "{task}");
        let all = admin.get("/readyz?verbose").await;
        let text = String::from_utf8(all.body.to_vec()).unwrap();
        let line = format!("[-]{task} failed: reason withheld\n");
        assert!(all.code == 500 && text.contains(&line), "{text}");
    }
    // They work: the default objects of every namespace are recreated.
    for path in [
        format!("{NAMESPACES}/n/serviceaccounts/default"),
        format!("{NAMESPACES}/n/configmaps/kube-root-ca.crt"),
    ] {
        let first = admin.get(&path).await.expect(200);
        admin.delete(&path).await.expect(200);
        eventually(&path, async || {
            let answer = admin.get(&path).await;
            let is_back =
                answer.code == 200 && answer.json()["metadata"]["uid"] != first["metadata"]["uid"];
            is_back.then_some(())
        })
        .await;
    }
    eventually("the server is well again", async || {
        (admin.get("/livez").await.code == 200).then_some(())
    })
    .await;
}
