//! Starting, joining and stopping `plimsoll up` and `plimsoll node`, without pods.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use plimsoll_testkit::cgroup::Tree;
use rustix::process::Signal;

use crate::daemon::Daemon;
use crate::plimsoll;

/// Arguments of a node with its data below `folder`, beside other nodes of this machine.
fn node(cgroups: &Tree, folder: &Path, name: &str) -> Vec<String> {
    let data = folder.join(name).display().to_string();
    let bridge = format!("pl{name}{}", std::process::id() % 100_000);
    let mut arguments = vec![
        "--data-dir",
        &data,
        "--node-name",
        name,
        "--bridge",
        &bridge,
    ];
    arguments.extend(["--kubelet-listen", "127.0.0.1:0", "--healthz-listen", "off"]);
    arguments.extend(["--keep-kernel-settings", "--cgroup-root", cgroups.path()]);
    arguments.into_iter().map(str::to_owned).collect()
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
#[ignore = "tier: root"]
fn a_cluster_is_started_joined_and_stopped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cgroups = (Tree::new(), Tree::new());
    let first = node(&cgroups.0, folder.path(), "n1");
    let second = node(&cgroups.1, folder.path(), "n2");
    let up = [&["up", "--listen", "127.0.0.1:0"], &words(&first)[..]].concat();
    let cluster = Daemon::start(&up, &folder.path().join("up.log"));
    cluster.wait_for("admin.kubeconfig");
    let data = folder.path().join("n1").display().to_string();
    let mode = std::fs::metadata(&data).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);

    let again = plimsoll(&up, "");
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let pid = cluster.pid();
    let expected =
        format!("error: the data directory {data} is in use by plimsoll up (pid {pid})\nhint: ");
    assert!(again.stderr.starts_with(&expected), "{}", again.stderr);

    let kubeconfig = format!("{data}/admin.kubeconfig");
    let token = plimsoll(&["token", "create", "--kubeconfig", &kubeconfig], "").stdout;
    let join: Vec<&str> = token.split_whitespace().skip(1).collect();
    let join = [&join[..], &words(&second)].concat();
    let agent = Daemon::start(&join, &folder.path().join("node.log"));
    agent.wait_for("node n2 is registered");
    let again = plimsoll(&[&["node"], &words(&second)[..]].concat(), "");
    let expected = format!("is in use by plimsoll node (pid {})\nhint: ", agent.pid());
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains(&expected), "{}", again.stderr);
    let (code, log) = agent.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("received SIGTERM, stopping"), "{log}");
    assert!(!log.contains("bypassed"), "{log}");

    let (code, log) = cluster.stop(Signal::INT);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("received SIGINT, stopping\n"), "{log}");
    let end = format!(
        "the cluster has stopped; containers keep running\n\
         \"plimsoll up\" adopts them, \"plimsoll down --data-dir {data}\" stops them\n"
    );
    assert!(log.ends_with(&end), "{log}");
}

#[test]
#[ignore = "tier: root"]
fn names_the_process_that_has_a_port_of_the_node() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cgroups = Tree::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let holder = format!("(pid {}) listens there", std::process::id());
    for flag in ["--kubelet-listen", "--healthz-listen", "--listen"] {
        let mut arguments = vec!["up", "--listen", "127.0.0.1:0"];
        let node = node(&cgroups, folder.path(), "n1");
        arguments.extend(words(&node));
        match arguments.iter().position(|word| *word == flag) {
            Some(at) => arguments[at + 1] = &address,
            None => arguments.extend([flag, &address]),
        }
        let run = plimsoll(&arguments, "");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        for part in [address.as_str(), &holder, &format!("with {flag}")] {
            assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        }
    }
}
