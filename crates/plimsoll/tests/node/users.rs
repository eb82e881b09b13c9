//! Pods with user namespaces (`hostUsers: false`).

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Runtime};
use crate::manifest::{WAIT, container, container_id, pod};

/// A pod with a user namespace.
fn mapped(name: &str, script: &str) -> Value {
    let mut pod = pod(name, &[container("main", script)]);
    pod["spec"]["hostUsers"] = json!(false);
    pod
}

fn uid_of(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().expect("pods have uids")
}

/// The agent's record of a pod.
fn noted(cluster: &Cluster, uid: &str) -> PathBuf {
    let pods = cluster.data_dir().join("kubelet/pods");
    pods.join(uid).join("userns")
}

/// The id on the node of root in a pod, from the kernel and from the agent's record.
fn first_id(cluster: &Cluster, pod: &Value) -> u32 {
    let name = pod["metadata"]["name"].as_str().expect("pods have names");
    let map = cluster.kubectl(&format!("exec {name} -- cat /proc/self/uid_map"));
    let numbers: Vec<u32> = map.split_whitespace().flat_map(str::parse).collect();
    let [0, first, 65_536] = numbers[..] else {
        panic!("{map}");
    };
    let text = std::fs::read(noted(cluster, uid_of(pod))).unwrap();
    let note: Value = serde_json::from_slice(&text).unwrap();
    let mapping = json!([{ "hostId": first, "containerId": 0, "length": 65_536 }]);
    assert_eq!(
        note,
        json!({ "uidMappings": mapping, "gidMappings": mapping })
    );
    first
}

/// The users that the processes of a container have on the node.
fn owners_of(cluster: &Cluster, pod: &Value) -> BTreeSet<u32> {
    let id = container_id(pod, "main");
    let started = cluster.data_dir().join("runtime/containers").join(id);
    let started = std::fs::read(started.join("started.json")).unwrap();
    let started: Value = serde_json::from_slice(&started).unwrap();
    let status = format!("/proc/{}/status", started["process"]["pid"]);
    let status = std::fs::read_to_string(status).unwrap();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.unwrap()
        .split_whitespace()
        .flat_map(str::parse)
        .collect()
}

fn owner(path: &Path) -> u32 {
    path.metadata().unwrap().uid()
}

#[test]
#[ignore = "tier: root"]
fn pod_with_a_user_namespace_works_like_other_pods() {
    let cluster = Cluster::start(Runtime::Embedded);
    let host = cluster.folder().join("host");
    std::fs::create_dir(&host).unwrap();
    std::fs::write(host.join("secret"), "of root").unwrap();
    let closed = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(host.join("secret"), closed).unwrap();
    cluster.kubectl("create configmap colours --from-literal=sky=blue");
    cluster.kubectl("create secret generic keys --from-literal=door=1234");
    let script = format!("echo to the log; echo bye > /dev/termination-log; {WAIT}");
    let mut wanted = mapped("mapped", &script);
    let volumes = json!([
        { "name": "disk", "emptyDir": {} },
        { "name": "memory", "emptyDir": { "medium": "Memory" } },
        { "name": "colours", "configMap": { "name": "colours" } },
        { "name": "keys", "secret": { "secretName": "keys", "defaultMode": 0o400 } },
        { "name": "host", "hostPath": { "path": host } },
        { "name": "about", "downwardAPI": { "items": [
            { "path": "name", "fieldRef": { "fieldPath": "metadata.name" } },
        ] } },
    ]);
    let mounts: Vec<Value> = ["disk", "memory", "colours", "keys", "host", "about"]
        .iter()
        .map(|name| json!({ "name": name, "mountPath": format!("/volumes/{name}") }))
        .chain([json!({ "name": "colours", "mountPath": "/one", "subPath": "sky" })])
        .collect();
    wanted["spec"]["volumes"] = volumes;
    wanted["spec"]["securityContext"] = json!({ "fsGroup": 1234 });
    let main = &mut wanted["spec"]["containers"][0];
    main["volumeMounts"] = json!(mounts);
    main["readinessProbe"] = json!({ "exec": { "command": ["test", "-w", "/volumes/disk"] } });
    let running = cluster.run(&wanted);
    let first = first_id(&cluster, &running);
    assert!(first >= 65_536, "{first}");
    assert_eq!(owners_of(&cluster, &running), BTreeSet::from([first]));

    let says = |script: &str, expected: &str| {
        let output = cluster.kubectl(&format!("exec mapped -- sh -c '{script}'"));
        assert_eq!(output, expected, "{script}");
    };
    says(
        "id -u; stat -c %u / /bin /etc/hosts /etc/resolv.conf | sort -u",
        "0\n0\n",
    );
    says(
        "cat /volumes/colours/sky /one /volumes/keys/door /volumes/about/name",
        "blueblue1234mapped",
    );
    says(
        "stat -c %g /volumes/disk /volumes/memory | sort -u",
        "1234\n",
    );
    says(
        "cd /volumes; for v in disk memory host; do echo x > $v/mine; done; echo x > /file; stat -c %u */mine | sort -u",
        "0\n",
    );
    says(
        "test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token",
        "token\n",
    );
    says(
        "echo x > /dev/shm/note; echo x > /dev/null; grep -c mapped /etc/hosts",
        "1\n",
    );
    // On disk, files that root in the pod writes to a volume belong to root.
    assert_eq!(owner(&host.join("mine")), 0);
    assert_eq!(cluster.kubectl("logs mapped"), "to the log\n");

    let other = cluster.run(&mapped("other", WAIT));
    assert_ne!(first_id(&cluster, &other), first);
    let of_node = cluster.run(&pod("of-node", &[container("main", WAIT)]));
    assert_eq!(owners_of(&cluster, &of_node), BTreeSet::from([0]));
    assert!(!noted(&cluster, uid_of(&of_node)).exists());
}

#[test]
#[ignore = "tier: root"]
fn id_ranges_survive_the_agent_and_are_released() {
    let mut cluster = Cluster::start(Runtime::Embedded);
    let one = cluster.run(&mapped("one", WAIT));
    let two = cluster.run(&mapped("two", WAIT));
    let (first, second) = (first_id(&cluster, &one), first_id(&cluster, &two));
    cluster.kill();
    cluster.start_again();
    let three = cluster.run(&mapped("three", WAIT));
    let third = first_id(&cluster, &three);
    assert_eq!(BTreeSet::from([first, second, third]).len(), 3);
    assert_eq!(first_id(&cluster, &one), first, "commands still run");
    cluster.kubectl("delete pod one --wait=false");
    cluster.is_gone("pod one");
    until("the ids are given back", || {
        match noted(&cluster, uid_of(&one)).exists() {
            false => Ok(()),
            true => Err("noted still".to_owned()),
        }
    });
    let four = cluster.run(&mapped("four", WAIT));
    assert_eq!(first_id(&cluster, &four), first);
}

#[test]
#[ignore = "tier: root"]
fn pod_is_refused_without_user_namespace_support() {
    let cluster = Cluster::start(Runtime::Embedded);
    let mut wanted = mapped("kernel", WAIT);
    wanted["spec"]["volumes"] = json!([{ "name": "sys", "hostPath": { "path": "/sys/kernel" } }]);
    wanted["spec"]["containers"][0]["volumeMounts"] =
        json!([{ "name": "sys", "mountPath": "/kernel" }]);
    cluster.create(&wanted);
    let problem = "mount /sys/kernel at /kernel in the pod's user namespace: sysfs has no idmapped";
    cluster.until_object("pod kernel", "refused", |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        let ends = ["state", "lastState"].map(|state| &status[state]["terminated"]["message"]);
        ends.iter()
            .any(|message| message.as_str().is_some_and(|text| text.contains(problem)))
    });
}

/// containerd has user namespaces since 2.0.
#[test]
#[ignore = "tier: root"]
fn a_runtime_without_user_namespaces_runs_no_pod_as_root_of_the_node() {
    let cluster = Cluster::start(Runtime::Containerd);
    cluster.create(&mapped("mapped", WAIT));
    let problem = "Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not \
                   support user namespaces";
    cluster.until_object("events default", "refused", |events| {
        let all = events["items"].as_array();
        all.into_iter()
            .flatten()
            .any(|event| event["reason"] == "FailedCreatePodSandBox" && event["message"] == problem)
    });
    let pod = cluster.get("pod mapped");
    assert_eq!(pod["status"]["phase"], "Pending");
}
