//! Volumes, environment variables, user, group and network inside containers.

use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, on_both_runtimes};
use crate::manifest::{WAIT, container, pod};

on_both_runtimes!(
    settings_reach_containers,
    containers_of_a_pod_share_volumes_and_network,
    container_runs_with_its_security_context,
    a_pod_may_use_the_network_of_its_node,
    pods_reach_each_other,
);

fn settings_reach_containers(cluster: &mut Cluster) {
    cluster.kubectl("create configmap colours --from-literal=sky=blue --from-literal=grass=green");
    cluster.kubectl("create secret generic keys --from-literal=door=1234");
    let mut main = container("main", WAIT);
    main["env"] = json!([
        { "name": "SKY", "valueFrom": { "configMapKeyRef": { "name": "colours", "key": "sky" } } },
        { "name": "DOOR", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "door" } } },
        { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
        { "name": "IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } },
        { "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
        { "name": "MEMORY", "valueFrom": { "resourceFieldRef": { "resource": "limits.memory" } } },
        { "name": "TOLD", "value": "$(POD) is under a $(SKY) sky, not $$(SKY)" },
    ]);
    main["envFrom"] = json!([{ "prefix": "ALL_", "configMapRef": { "name": "colours" } }]);
    main["resources"] = json!({ "limits": { "memory": "64Mi" } });
    main["volumeMounts"] = json!([
        { "name": "colours", "mountPath": "/colours" },
        { "name": "keys", "mountPath": "/keys", "readOnly": true },
        { "name": "about", "mountPath": "/about" },
        { "name": "colours", "mountPath": "/one/sky", "subPath": "sky" },
    ]);
    let mut p = pod("p", &[main]);
    p["spec"]["volumes"] = json!([
        { "name": "colours", "configMap": { "name": "colours" } },
        { "name": "keys", "secret": { "secretName": "keys", "defaultMode": 0o400 } },
        { "name": "about", "downwardAPI": { "items": [
            { "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } },
        ] } },
    ]);
    let p = cluster.run(&p);
    let says = |script: &str, expected: &str| {
        let said = cluster.kubectl(&format!("exec p -- sh -c '{script}'"));
        assert_eq!(said, expected, "{script}");
    };
    says(
        "echo $SKY $DOOR $POD $NODE $MEMORY",
        &format!("blue 1234 p {NODE} 67108864\n"),
    );
    says("echo $TOLD", "p is under a blue sky, not $(SKY)\n");
    says("echo $ALL_sky $ALL_grass", "blue green\n");
    let ip = p["status"]["podIP"].as_str().expect("an address");
    says("echo $IP", &format!("{ip}\n"));
    says("cat /colours/sky /keys/door /one/sky", "blue1234blue");
    says("cat /about/labels", "app=\"p\"");
    says("stat -L -c %a /keys/door", "400\n");
    let token = "/var/run/secrets/kubernetes.io/serviceaccount";
    says(&format!("cat {token}/namespace"), "default");
    says(
        &format!("head -n 1 {token}/ca.crt"),
        "-----BEGIN CERTIFICATE-----\n",
    );
    let token = cluster.kubectl(&format!("exec p -- cat {token}/token"));
    assert_eq!(token.split('.').count(), 3, "{token}");
    let user = cluster.kubectl(&format!(
        "auth whoami --token={token} -o jsonpath={{.status.userInfo.username}}"
    ));
    let is_known = user == "system:serviceaccount:default:default" || user == "kubernetes-admin";
    assert!(is_known, "{user}");

    // Changes are visible inside without a restart.
    cluster.kubectl("patch configmap colours -p {\"data\":{\"sky\":\"red\"}}");
    plimsoll_testkit::waiting::until_within(
        std::time::Duration::from_secs(150),
        "the new value is there",
        || match cluster.kubectl("exec p -- cat /colours/sky").as_str() {
            "red" => Ok(()),
            other => Err(other.to_owned()),
        },
    );

    let mut missing = container("main", WAIT);
    missing["env"] = json!([
        { "name": "X", "valueFrom": { "configMapKeyRef": { "name": "nope", "key": "x" } } },
    ]);
    cluster.create(&pod("missing", &[missing]));
    cluster.until_object("pod missing", "has a reason", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CreateContainerConfigError"
            && waiting["message"] == "configmap \"nope\" not found"
    });
}

fn containers_of_a_pod_share_volumes_and_network(cluster: &mut Cluster) {
    let mounts = json!([
        { "name": "disk", "mountPath": "/disk" },
        { "name": "memory", "mountPath": "/memory" },
    ]);
    let with_mounts = |name: &str, script: &str| {
        let mut one = container(name, script);
        one["volumeMounts"] = mounts.clone();
        one
    };
    let writer = with_mounts(
        "writer",
        &format!("echo hello > /disk/a; httpd -p 8080 -h /disk; {WAIT}"),
    );
    let reader = with_mounts("reader", WAIT);
    let mut p = pod("p", &[writer, reader]);
    p["spec"]["volumes"] = json!([
        { "name": "disk", "emptyDir": {} },
        { "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": "8Mi" } },
    ]);
    p["spec"]["shareProcessNamespace"] = json!(true);
    p["spec"]["hostname"] = json!("harbour");
    cluster.run(&p);
    let in_reader =
        |script: &str| cluster.kubectl(&format!("exec p -c reader -- sh -c '{script}'"));
    assert_eq!(in_reader("cat /disk/a"), "hello\n");
    assert_eq!(in_reader("wget -q -O - http://127.0.0.1:8080/a"), "hello\n");
    assert_eq!(in_reader("hostname"), "harbour\n");
    assert_eq!(in_reader("grep -c \" /memory tmpfs \" /proc/mounts"), "1\n");
    let size = in_reader("df -k /memory | tail -n 1");
    let size = size.split_whitespace().nth(1);
    assert_eq!(size, Some("8192"));
    assert!(
        in_reader("ps").contains("httpd"),
        "processes are not shared"
    );
}

fn container_runs_with_its_security_context(cluster: &mut Cluster) {
    let mut main = container("main", WAIT);
    main["securityContext"] = json!({
        "runAsUser": 1000, "runAsGroup": 3000, "readOnlyRootFilesystem": true,
        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
    });
    main["workingDir"] = json!("/data");
    main["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    let mut p = pod("p", &[main]);
    p["spec"]["securityContext"] = json!({
        "fsGroup": 2000, "supplementalGroups": [4000], "seccompProfile": { "type": "RuntimeDefault" },
    });
    p["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": {} }]);
    cluster.run(&p);
    let says = |script: &str| cluster.kubectl(&format!("exec p -- sh -c '{script}'"));
    assert_eq!(says("id -u; id -g; pwd"), "1000\n3000\n/data\n");
    let groups = says("id -G");
    for group in ["2000", "3000", "4000"] {
        assert!(
            groups.split_whitespace().any(|one| one == group),
            "{groups}"
        );
    }
    assert_eq!(says("touch file; stat -c %g file"), "2000\n");
    assert_eq!(
        says("touch /etc/x 2>&1 || true"),
        "touch: /etc/x: Read-only file system\n"
    );
    assert_eq!(
        says("grep -E ^CapEff /proc/self/status"),
        "CapEff:\t0000000000000000\n"
    );
    assert_eq!(
        says("grep -E ^NoNewPrivs /proc/self/status"),
        "NoNewPrivs:\t1\n"
    );
    assert_eq!(
        says("grep -E ^Seccomp: /proc/self/status /proc/1/status"),
        "/proc/self/status:Seccomp:\t2\n/proc/1/status:Seccomp:\t2\n"
    );

    let mut root = container("main", WAIT);
    root["securityContext"] = json!({ "runAsNonRoot": true });
    cluster.create(&pod("root", &[root]));
    cluster.mentions(
        "get pod root -o jsonpath={.status.containerStatuses[0].state.waiting}",
        "container has runAsNonRoot and image will run as root",
    );

    let mut filtered = container("main", WAIT);
    filtered["securityContext"] =
        json!({ "seccompProfile": { "type": "Localhost", "localhostProfile": "missing.json" } });
    cluster.create(&pod("filtered", &[filtered]));
    let path = cluster.data_dir().join("kubelet/seccomp/missing.json");
    cluster.mentions(
        "get pod filtered -o jsonpath={.status.containerStatuses[0].state.waiting}",
        &format!("cannot load seccomp profile \\\"{}", path.display()),
    );
}

fn a_pod_may_use_the_network_of_its_node(cluster: &mut Cluster) {
    let mut p = pod("p", &[container("main", WAIT)]);
    p["spec"]["hostNetwork"] = json!(true);
    let p = cluster.run(&p);
    let node = cluster.get(&format!("node {NODE}"));
    assert_eq!(p["status"]["podIP"], p["status"]["hostIP"]);
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let internal = addresses.iter().find(|one| one["type"] == "InternalIP");
    assert_eq!(p["status"]["podIP"], internal.unwrap()["address"]);
    let inside = cluster.kubectl("exec p -- readlink /proc/self/ns/net");
    let outside = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(inside.trim(), outside.display().to_string());
}

fn pods_reach_each_other(cluster: &mut Cluster) {
    let serve = "mkdir /www; echo welcome > /www/index.html; exec httpd -f -p 8080 -h /www";
    let web = cluster.run(&pod("web", &[container("main", serve)]));
    cluster.run(&pod("client", &[container("main", WAIT)]));
    let address = |pod: &Value| pod["status"]["podIP"].as_str().unwrap().to_owned();
    let answer = cluster.kubectl(&format!(
        "exec client -- wget -q -O - http://{}:8080/",
        address(&web)
    ));
    assert_eq!(answer, "welcome\n");
    let hosts = cluster.kubectl("exec web -- cat /etc/hosts");
    assert!(
        hosts.contains(&format!("{}\tweb", address(&web))),
        "{hosts}"
    );
}
