//! Default confinement of pods, and requests that a node rejects instead of ignoring them.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::cgroup::read;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime, configured};
use crate::manifest::{WAIT, container, pod};

/// A configuration under which the disk of the test machine causes no eviction.
fn calmly_configured(folder: &Path, mut settings: Value) -> Vec<String> {
    settings["evictionHard"] = json!({ "memory.available": "100Mi" });
    configured(folder, &settings)
}

/// The seccomp mode of a container's process: 2 with a filter.
const FILTER: &str = "echo $(grep Seccomp: /proc/self/status)";

/// A pod that prints its seccomp mode and waits.
fn shows_filter(name: &str) -> Value {
    pod(name, &[container("main", &format!("{FILTER}; {WAIT}"))])
}

/// The output of a pod, once there is any.
fn printed(cluster: &Cluster, name: &str) -> String {
    until(&format!("{name} prints its filter"), || {
        let reported = cluster.kubectl(&format!("logs {name}"));
        match reported.is_empty() {
            true => Err("nothing".to_owned()),
            false => Ok(reported.trim().to_owned()),
        }
    })
}

/// The process limit of a running pod in the kernel.
fn max_pids(cluster: &Cluster, pod: &Value) -> String {
    let uid = pod["metadata"]["uid"].as_str().expect("pods have uids");
    let cgroup = format!("{}/kubepods/besteffort/pod{uid}", cluster.cgroup_root());
    read("pids", &cgroup, "pids.max").trim().to_owned()
}

#[test]
#[ignore = "tier: root"]
fn pods_have_a_filter_and_a_number_of_processes_by_default() {
    let cluster = Cluster::start(Runtime::Embedded);
    let running = cluster.run(&shows_filter("filtered"));
    assert_eq!(printed(&cluster, "filtered"), "Seccomp: 2");
    assert_eq!(max_pids(&cluster, &running), "4096");
}

#[test]
#[ignore = "tier: root"]
fn a_cluster_may_leave_its_pods_unconfined() {
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let mut arguments = calmly_configured(folder, json!({ "podPidsLimit": 77 }));
        arguments.push("--seccomp-default=false".to_owned());
        arguments
    });
    let running = cluster.run(&shows_filter("unfiltered"));
    assert_eq!(printed(&cluster, "unfiltered"), "Seccomp: 0");
    assert_eq!(max_pids(&cluster, &running), "77");
}

#[test]
#[ignore = "tier: root"]
fn unenforceable_settings_are_rejected_with_a_reason() {
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let settings = json!({ "allowedUnsafeSysctls": ["net.core.somaxconn", "kernel.msg*"] });
        calmly_configured(folder, settings)
    });
    let with = |name: &str, security: Value| {
        let mut pod = shows_filter(name);
        pod["spec"]["securityContext"] = security;
        pod
    };
    let sysctl = |name: &str, value: &str| json!({ "sysctls": [{ "name": name, "value": value }] });
    for (name, security, reason, message) in [
        (
            "labelled",
            json!({ "seLinuxOptions": { "level": "s0:c1,c2" } }),
            "SELinux",
            "Cannot enforce SELinux: ",
        ),
        (
            "profiled",
            json!({ "appArmorProfile": { "type": "RuntimeDefault" } }),
            "AppArmor",
            "Cannot enforce AppArmor: ",
        ),
        (
            "tuned",
            sysctl("net.core.rmem_default", "4096"),
            "SysctlForbidden",
            "forbidden sysctl: \"net.core.rmem_default\" not allowlisted",
        ),
    ] {
        cluster.create(&with(name, security));
        let failed = cluster.until_phase(name, "Failed");
        assert_eq!(failed["status"]["reason"], reason, "{failed:#}");
        let reported = failed["status"]["message"].as_str().unwrap_or_default();
        assert!(reported.contains(message), "{reported}");
        cluster.until_object("events default", "about it", |events| {
            let all = events["items"].as_array();
            all.into_iter()
                .flatten()
                .any(|event| event["involvedObject"]["name"] == name && event["reason"] == reason)
        });
    }
    for (name, security) in [
        (
            "unconfined",
            json!({ "seLinuxOptions": { "type": "spc_t" } }),
        ),
        ("allowed", sysctl("net.core.somaxconn", "77")),
        ("allowed-by-pattern", sysctl("kernel.msgmax", "8193")),
    ] {
        cluster.run(&with(name, security));
    }
    for (name, file, value) in [
        ("allowed", "net/core/somaxconn", "77"),
        ("allowed-by-pattern", "kernel/msgmax", "8193"),
    ] {
        let reported = cluster.kubectl(&format!("exec {name} -- cat /proc/sys/{file}"));
        assert_eq!(reported.trim(), value, "{name}");
    }
}

/// A log of the machine.
fn some_log() -> String {
    let entries = std::fs::read_dir("/var/log").expect("machines have logs");
    let mut files = entries.flatten().filter(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_file())
    });
    let file = files.next().expect("machines have logs");
    file.file_name().to_string_lossy().into_owned()
}

#[test]
#[ignore = "tier: root"]
fn the_kubelets_pages_are_there_as_configured() {
    let file = some_log();
    let anonymous = json!({ "anonymous": { "enabled": true } });
    for (settings, logs, system_logs, stranger) in [
        (json!({}), Ok("Seccomp: 2"), Ok(""), "You must be logged in"),
        (
            json!({ "enableSystemLogHandler": false, "authentication": anonymous }),
            Ok("Seccomp: 2"),
            Err("MethodNotAllowed"),
            // An anonymous caller without permission.
            "Forbidden",
        ),
        (
            json!({ "enableDebuggingHandlers": false }),
            Err(""),
            Err("MethodNotAllowed"),
            "You must be logged in",
        ),
    ] {
        let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
            calmly_configured(folder, settings.clone())
        });
        cluster.run(&shows_filter("speaks"));
        if logs.is_ok() {
            printed(&cluster, "speaks");
        }
        for (arguments, expected) in [
            ("logs speaks".to_owned(), logs),
            (
                format!("get --raw /api/v1/nodes/{NODE}/proxy/logs/{file}"),
                system_logs,
            ),
        ] {
            let answer = cluster.try_kubectl(&arguments);
            match expected {
                Ok(text) => assert!(
                    answer.is_fine() && answer.stdout.contains(text),
                    "{arguments}: {answer:?}"
                ),
                Err(why) => {
                    let reported = format!("{}{}", answer.stdout, answer.stderr);
                    assert!(
                        !answer.is_fine() && reported.contains(why),
                        "{arguments}: {answer:?}"
                    );
                }
            }
        }
        let node = cluster.get(&format!("node {NODE}"));
        let port = &node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"];
        let address = format!("https://127.0.0.1:{port}");
        let mut command = Command::new("kubectl");
        command.args(["--kubeconfig=/dev/null", "--insecure-skip-tls-verify"]);
        // A value that is not a credential, or kubectl would ask for one.
        command.args(["--username=stranger", "--password=none"]);
        command.args(["--server", &address, "get", "--raw", "/pods"]);
        let output = command
            .stdin(Stdio::null())
            .output()
            .expect("kubectl starts");
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(reported.contains(stranger), "{settings}: {reported}");
    }
}
