//! The node as the API shows it, and how other machines join.

use std::process::Command;
use std::time::SystemTime;

use plimsoll_apiserver::auth::authority::Authority;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_node::identity::kubeconfig::{Kept, write_private};
use plimsoll_node::identity::request::KeyedCertificate;
use plimsoll_testkit::cgroup::{Tree, is_unified, read};
use plimsoll_testkit::images::busybox_archive;
use plimsoll_testkit::process::Process;
use plimsoll_testkit::waiting::until;
use serde_json::json;

use crate::cluster::{Bridge, Cluster, IMAGE, NODE, PLIMSOLL, Runtime, calm, down, node_arguments};
use crate::manifest::{WAIT, container, pod};

const CONFIGURATION: &str = "
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 17
kubeReserved: { cpu: 100m, memory: 128Mi }
systemReserved: { cpu: 50m, memory: 64Mi }
evictionHard: { memory.available: 100Mi }
";

#[test]
#[ignore = "tier: root"]
fn reservations_are_taken_from_the_node() {
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let file = folder.join("kubelet.yaml");
        std::fs::write(&file, CONFIGURATION).expect("the folder is ours");
        let file = file.display().to_string();
        ["--config", &file, "--capacity", "cpu=2,memory=4Gi"]
            .map(str::to_owned)
            .to_vec()
    });
    let node = cluster.get(&format!("node {NODE}"));
    let status = &node["status"];
    assert_eq!(status["capacity"]["cpu"], "2");
    assert_eq!(status["capacity"]["memory"], "4Gi");
    assert_eq!(status["capacity"]["pods"], "17");
    // 2 - 0.1 - 0.05 cores; 4Gi - 128Mi - 64Mi - 100Mi.
    assert_eq!(status["allocatable"]["cpu"], "1850m");
    assert_eq!(status["allocatable"]["memory"], "3804Mi");
    assert_eq!(status["allocatable"]["pods"], "17");
    let kubepods = format!("{}/kubepods", cluster.cgroup_root());
    let file = match is_unified() {
        true => "memory.max",
        false => "memory.limit_in_bytes",
    };
    // The eviction threshold does not reduce the limit.
    let limit: u64 = (4096 - 128 - 64) << 20;
    assert_eq!(read("memory", &kubepods, file), limit.to_string());
    if !is_unified() {
        assert_eq!(read("cpu", &kubepods, "cpu.shares"), "1894");
    }
    let info = &status["nodeInfo"];
    assert_eq!(info["operatingSystem"], "linux");
    assert!(
        info["kubeletVersion"]
            .as_str()
            .unwrap()
            .starts_with("v1.36.")
    );
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], NODE);
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/os"], "linux");
    let lease = format!("get lease {NODE} -n kube-node-lease -o jsonpath={{.spec.holderIdentity}}");
    cluster.shows(&lease, NODE);
}

#[test]
#[ignore = "tier: root"]
fn another_machine_joins_with_a_token() {
    let cluster = Cluster::start(Runtime::Embedded);
    let plimsoll = |arguments: &[&str]| {
        let mut command = Command::new(PLIMSOLL);
        let output = command.args(arguments).output().expect("plimsoll starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let kubeconfig = cluster.data_dir().join("admin.kubeconfig");
    let kubeconfig = kubeconfig.display().to_string();
    let invitation = plimsoll(&["token", "create", "--kubeconfig", &kubeconfig]);
    let mut words = invitation.split_whitespace().map(str::to_owned);
    assert_eq!(words.next().as_deref(), Some("plimsoll"));
    let mut arguments: Vec<String> = words.collect();

    let data = cluster.folder().join("second");
    let data = data.display().to_string();
    let archive = busybox_archive(cluster.folder(), IMAGE);
    plimsoll(&[
        "image",
        "import",
        "--data-dir",
        &data,
        &archive.display().to_string(),
    ]);
    let (cgroups, network) = (Tree::new(), Bridge::new());
    arguments.extend(["--data-dir".to_owned(), data]);
    arguments.extend(node_arguments("n2", cgroups.path(), &network));
    arguments.extend(calm(cluster.folder()));
    let log = cluster.folder().join("node.log");
    let mut second = Process::start(PLIMSOLL, &log, &arguments);
    second.says("node n2 is registered");
    let ready = "get node n2 -o jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    cluster.shows(ready, "True");
    let mut there = pod("there", &[container("main", WAIT)]);
    there["spec"]["nodeName"] = json!("n2");
    cluster.run(&there);
    assert_eq!(cluster.kubectl("exec there -- hostname"), "there\n");
    let mut here = pod("here", &[container("main", WAIT)]);
    here["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": NODE });
    cluster.run(&here);

    // From now on the node needs no token.
    let status = second.interrupt();
    assert!(status.success(), "{status}");
    // The node also renews an expiring certificate.
    let path = cluster.folder().join("second/node.kubeconfig");
    let mut kept = Kept::read(&path).unwrap();
    kept.client = old_certificate(&cluster, "n2");
    write_private(&path, &kept.render()).unwrap();
    let without: Vec<String> = without_invitation(&arguments);
    let mut second = Process::start(PLIMSOLL, &log, &without);
    second.says("node n2 is registered");
    until("its certificate is exchanged", || {
        let now = Kept::read(&path).unwrap().client.certificate_pem;
        let is_new = now != kept.client.certificate_pem;
        if is_new { Ok(()) } else { Err(now) }
    });
    let pod = cluster.until_running(&json!("there"));
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    cluster.kubectl("delete pod there --wait=false");
    cluster.is_gone("pod there");
    let taken_away = down(&cluster.folder().join("second"), &["--purge"]);
    assert!(taken_away.status.success(), "{taken_away:?}");
}

/// Credentials that a node of the cluster received nearly a year ago.
fn old_certificate(cluster: &Cluster, node: &str) -> KeyedCertificate {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(now.unwrap().as_secs()).unwrap();
    let authority = Authority::open(&cluster.data_dir().join("pki"), Timestamp::from_secs(now));
    let then = Timestamp::from_secs(now - 350 * 24 * 60 * 60);
    let issued = authority.unwrap().kubelet(node, then).unwrap();
    KeyedCertificate {
        certificate_pem: issued.certificate_pem,
        key_pem: issued.key_pem,
    }
}

fn without_invitation(arguments: &[String]) -> Vec<String> {
    let from = arguments.iter().position(|word| word == "--data-dir");
    let rest = &arguments[from.expect("it was given")..];
    [&["node".to_owned()], rest].concat()
}
