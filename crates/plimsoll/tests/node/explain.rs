//! Why a pod was evicted, as recorded by its node.

use std::process::Command;

use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, PLIMSOLL, Runtime};
use crate::manifest::{container, pod, sized};

/// Runs `plimsoll <arguments>` against the cluster on a screen of so many columns.
fn plimsoll(cluster: &Cluster, columns: u32, arguments: &str) -> String {
    let output = Command::new(PLIMSOLL)
        .args(arguments.split_whitespace())
        .env("KUBECONFIG", cluster.data_dir().join("admin.kubeconfig"))
        .env("COLUMNS", columns.to_string())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("plimsoll starts");
    assert!(output.status.success(), "{arguments}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    show(columns, arguments, &text);
    text
}

/// Prints the output, for manual runs.
#[expect(clippy::print_stderr, reason = "shown with --nocapture")]
fn show(columns: u32, arguments: &str, text: &str) {
    eprintln!("--- {columns} columns: plimsoll {arguments}\n{text}");
}

/// The first part that is missing in the output. Line breaks depend on figures that vary.
fn missing<'a>(text: &str, parts: &[&'a str]) -> Option<&'a str> {
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = on_one_line(text);
    let mut parts = parts.iter().copied();
    parts.find(|part| !shown.contains(&on_one_line(part)))
}

fn has_all(text: &str, parts: &[&str]) {
    if let Some(part) = missing(text, parts) {
        panic!("{part:?} is missing in:\n{text}");
    }
}

/// A machine simulated by a cgroup, with this much memory and these eviction thresholds.
fn small_machine(memory: &str, lines: &str) -> Cluster {
    Cluster::start_with(Runtime::Embedded, |folder| {
        let file = folder.join("small.yaml");
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        std::fs::write(&file, format!("{head}{lines}")).expect("the folder is ours");
        let capacity = format!("memory={memory}");
        let file = file.display().to_string();
        ["--capacity", &capacity, "--config", &file]
            .map(str::to_owned)
            .to_vec()
    })
}

/// Keeps 150Mi free.
const HARD: &str = "evictionHard: { memory.available: 150Mi }\nsystemReserved: { cpu: 100m }\n";

#[test]
#[ignore = "tier: root"]
fn evicted_pod_is_explained_also_after_deletion() {
    let cluster = small_machine("400Mi", HARD);
    cluster.run(&pod(
        "calm",
        &[sized("main", &json!({ "requests": { "memory": "50Mi" } }))],
    ));
    has_all(
        &plimsoll(&cluster, 80, "explain pod calm"),
        &["is Running on node n1", "It was the only node that fitted."],
    );
    let big = sized(
        "main",
        &json!({ "requests": { "cpu": "6", "memory": "300Mi" } }),
    );
    cluster.create(&pod("big", &[big]));
    cluster.mentions("describe pod big", "FailedScheduling");
    has_all(
        &plimsoll(&cluster, 80, "explain pod big"),
        &[
            "is pending: no node fits",
            "Insufficient cpu, Insufficient memory",
        ],
    );
    cluster.kubectl("delete pod big");
    // Holds 280 MiB from its first read on.
    let hog = container(
        "main",
        "exec dd if=/dev/zero of=/dev/null bs=280M count=1000000",
    );
    cluster.create(&pod("hog", &[hog]));
    let hog = cluster.until_phase("hog", "Failed");
    assert_eq!(hog["status"]["reason"], "Evicted", "{hog:#}");
    let printed = [
        "POD default/hog was evicted from node n1",
        "memory.available was ",
        "below the hard threshold of 150 Mi.",
        "It used more than it requests, and default/calm, the next, did not.",
        ">1   default/hog",
        "All its processes were killed at once.",
    ];
    let shown = plimsoll(&cluster, 80, "explain pod hog");
    has_all(&shown, &printed);
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    plimsoll(&cluster, 140, "explain pod hog");

    let replayed = plimsoll(&cluster, 100, &format!("replay --node {NODE} --last 1"));
    let parts = [
        "evict default/hog",
        ": killed",
        "1 decision replayed: the same.",
    ];
    has_all(&replayed, &parts);

    let path = format!("get --raw /api/v1/nodes/{NODE}/proxy/plimsoll/decisions");
    let list: Value = serde_json::from_str(&cluster.kubectl(&path)).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items[0]["decision"]["evictions"][0]["pod"], "default/hog");
    let none = cluster.kubectl(&format!("{path}?pod=default/calm"));
    let none: Value = serde_json::from_str(&none).unwrap();
    assert_eq!(none["items"], json!([]));

    let line = plimsoll(&cluster, 80, "loadline");
    has_all(
        &line,
        &[
            "NODE n1",
            " of 400 Mi in use",
            "hard threshold at 150 Mi left: ",
            "hard eviction 150 Mi",
        ],
    );
    plimsoll(&cluster, 140, "loadline -o wide");
    let node = plimsoll(&cluster, 80, &format!("explain node {NODE}"));
    has_all(
        &node,
        &[
            "MemoryPressure",
            "NEXT TO BE EVICTED FOR memory.available",
            "evicted default/hog",
        ],
    );

    cluster.kubectl("delete pod hog");
    cluster.is_gone("pod hog");
    has_all(&plimsoll(&cluster, 80, "explain pod hog"), &printed);
    // The record survives a restart of the agent.
    let mut cluster = cluster;
    cluster.interrupt();
    cluster.start_again();
    until("the record is found again", || {
        let shown = plimsoll(&cluster, 80, "explain pod hog");
        match missing(&shown, &printed) {
            None => Ok(()),
            Some(part) => Err(format!("no {part:?} in:\n{shown}")),
        }
    });
}

#[test]
#[ignore = "tier: root"]
fn message_of_oom_killed_container_names_the_limit() {
    let cluster = small_machine("400Mi", HARD);
    let mut leaky = container("main", "exec dd if=/dev/zero of=/dev/null bs=64M count=1");
    leaky["resources"] = json!({ "limits": { "memory": "16Mi" } });
    let mut leaky = pod("leaky", &[leaky]);
    leaky["spec"]["restartPolicy"] = json!("Never");
    cluster.create(&leaky);
    cluster.until_phase("leaky", "Failed");
    let shown = plimsoll(&cluster, 80, "explain pod leaky");
    has_all(
        &shown,
        &[
            "POD default/leaky has a container that was OOMKilled: main",
            "It wanted more than its limit of 16 Mi",
        ],
    );
}

#[test]
#[ignore = "tier: root"]
fn forecast_predicts_threshold() {
    let lines = "evictionHard: { memory.available: 100Mi }\n\
                 evictionSoft: { memory.available: 300Mi }\n\
                 evictionSoftGracePeriod: { memory.available: 1m30s }\n\
                 kubeReserved: { cpu: 100m, memory: 100Mi }\n\
                 systemReserved: { memory: 50Mi }\n";
    let cluster = small_machine("1Gi", lines);
    let sizes = json!({ "requests": { "cpu": "500m", "memory": "200Mi" },
                        "limits": { "cpu": "1", "memory": "400Mi" } });
    cluster.run(&pod("web", &[sized("main", &sizes)]));
    // Allocates 5 MiB more every second.
    let script = "i=0; while true; do dd if=/dev/zero of=/mem/$i bs=1M count=5 2>/dev/null; \
                  i=$((i+1)); sleep 1; done";
    let mut grows = container("main", script);
    grows["resources"] = json!({ "requests": { "memory": "100Mi" } });
    grows["volumeMounts"] = json!([{ "name": "memory", "mountPath": "/mem" }]);
    let mut grows = pod("grows", &[grows]);
    grows["spec"]["volumes"] = json!([{ "name": "memory", "emptyDir": { "medium": "Memory" } }]);
    cluster.run(&grows);
    let soft = until(
        "the soft threshold comes nearer as fast as memory goes",
        || {
            let shown = plimsoll(&cluster, 80, "loadline n1 -o json");
            let list: Value = serde_json::from_str(&shown).map_err(|error| error.to_string())?;
            let soft = list["items"][0]["resources"][1]["thresholds"][0].clone();
            let change = soft["changePerSecond"].as_f64().unwrap_or_default() / 1_048_576.0;
            let is_measured = (-10.0..-1.0).contains(&change);
            if is_measured { Ok(soft) } else { Err(shown) }
        },
    );
    assert_eq!(soft["signal"], "memory.available", "{soft}");
    assert_eq!(
        (&soft["isHard"], &soft["line"]),
        (&json!(false), &json!(300 << 20))
    );
    assert!(soft["reachedInSeconds"].as_f64().is_some_and(|s| s > 0.0));
    // Pods together reach their limit before the machine is short of memory, as soon as only they
    // take any: what the node's start took is in the first rates.
    let shown = until("the limit of all pods is reached first", || {
        let shown = plimsoll(&cluster, 80, "loadline");
        let hard = "hard threshold at 100 Mi left (allocatableMemory.available): ";
        match shown.contains(hard) {
            true => Ok(shown),
            false => Err(shown),
        }
    });
    has_all(
        &shown,
        &[
            "soft threshold at 300 Mi left",
            " away, in ",
            "allocatable 774 Mi = 1 Gi - kube 100 Mi - system 50 Mi - hard eviction",
            "requested 300 Mi (38%)",
        ],
    );
    plimsoll(&cluster, 140, "loadline -o wide");
    has_all(
        &plimsoll(&cluster, 80, "explain node n1"),
        &["NEXT TO BE EVICTED FOR memory.available"],
    );
}

#[test]
#[ignore = "tier: root"]
fn the_order_of_eviction_is_the_agents_own() {
    let cluster = small_machine("1Gi", HARD);
    let sizes = json!({ "requests": { "memory": "20Mi" } });
    let mut never = sized("main", &sizes);
    never["image"] = json!("registry.invalid/none:1");
    cluster.create(&pod("never", &[never]));
    // Holds 60 MiB from its first read on, more than it requests.
    let mut hog = container(
        "main",
        "exec dd if=/dev/zero of=/dev/null bs=60M count=1000000",
    );
    hog["resources"] = sizes;
    cluster.run(&pod("hog", &[hog]));
    until("the agent has measured the pod that uses most", || {
        let shown = plimsoll(&cluster, 80, "explain node n1 -o json");
        let report: Value = serde_json::from_str(&shown).map_err(|error| error.to_string())?;
        let next = &report["next"][0];
        let names = [0, 1].map(|place| next["ranking"][place]["pod"].clone());
        let is_agents = next["isAgents"] == true;
        let is_right = names == [json!("default/hog"), json!("default/never")];
        if is_agents && is_right {
            Ok(())
        } else {
            Err(shown)
        }
    });
}

#[test]
#[ignore = "tier: root"]
fn explain_leads_with_the_cause_of_a_failed_pod() {
    let cluster = small_machine("1Gi", HARD);
    let crashes = container("main", "echo no database; sleep 1; exit 3");
    cluster.create(&pod("crashes", &[crashes]));
    let mut absent = container("main", "");
    absent["command"] = json!(["/no/such/program"]);
    cluster.create(&pod("absent", &[absent]));
    let mut sick = container(
        "main",
        "trap exit TERM; while true; do sleep 1 & wait; done",
    );
    sick["livenessProbe"] = json!({
        "exec": { "command": ["sh", "-c", "echo sick; exit 1"] },
        "periodSeconds": 1, "failureThreshold": 2,
    });
    cluster.create(&pod("sick", &[sick]));
    let mut pulls = container("main", "true");
    pulls["image"] = json!("registry.invalid/none:1");
    cluster.create(&pod("pulls", &[pulls]));
    let cases: [(&str, &[&str]); 4] = [
        (
            "pod/crashes",
            &[
                "container main ends with exit code 3 (restarted",
                "LAST LINES OF THE LOG OF main no database",
            ],
        ),
        (
            "pod/absent",
            &["container main cannot be started", "/no/such/program"],
        ),
        (
            "po/sick",
            &[
                "container main fails its liveness probe",
                "Liveness probe failed: sick",
                "#failure=2",
            ],
        ),
        (
            "pod/pulls",
            &[
                "the image registry.invalid/none:1 of container main cannot be pulled",
                "WHAT WOULD HELP correct the name or tag of the image",
            ],
        ),
    ];
    for (name, message) in cases {
        until(&format!("{name} shows its cause"), || {
            let shown = plimsoll(&cluster, 80, &format!("explain {name}"));
            match missing(&shown, message) {
                None => Ok(()),
                Some(part) => Err(format!("no {part:?} in:\n{shown}")),
            }
        });
    }
}
