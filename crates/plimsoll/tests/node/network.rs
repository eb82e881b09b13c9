//! Connectivity of pods without a network plugin.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_testkit::waiting::until;
use serde_json::json;

use crate::cluster::{Cluster, Runtime};
use crate::manifest::{WAIT, container, pod};

/// The timeout of one attempt.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
#[ignore = "tier: root"]
fn ports_of_the_machine_lead_to_pods() {
    let mut cluster = Cluster::start(Runtime::Embedded);
    // Below the ephemeral ports of the kernel, so that no process gets it by chance.
    let mut ports = (20_000..30_000).skip(std::process::id() as usize % 9_000);
    let port = ports
        .find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok())
        .expect("some port is free");
    let serve = "mkdir /www; echo welcome > /www/index.html; exec httpd -f -p 8080 -h /www";
    let mut web = container("main", serve);
    web["ports"] = json!([{ "containerPort": 8080, "hostPort": port }]);
    cluster.run(&pod("web", &[web]));
    let ask = || -> Result<String, String> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE);
        let mut stream = stream.map_err(|e| e.to_string())?;
        let limited = stream.set_read_timeout(Some(PATIENCE));
        limited.map_err(|e| e.to_string())?;
        let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
        asked.map_err(|e| e.to_string())?;
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        read.map(|_| answer).map_err(|e| e.to_string())
    };
    let answers = || {
        let answer = until("the port leads to the pod", ask);
        assert!(answer.ends_with("welcome\n"), "{answer}");
    };
    answers();
    // Other pods can connect too.
    cluster.run(&pod("other", &[container("main", WAIT)]));
    let gateway = cluster.kubectl("exec other -- sh -c 'ip route | grep default'");
    let gateway = gateway.split_whitespace().nth(2).expect("default via …");
    let fetched = format!("exec other -- wget -q -O - http://{gateway}:{port}/");
    assert_eq!(cluster.kubectl(&fetched), "welcome\n");
    // The network works without the agent, and the next agent adopts it.
    cluster.kill();
    answers();
    cluster.start_again();
    answers();
    cluster.kubectl("delete pod web --wait=false");
    cluster.is_gone("pod web");
    until("the port leads nowhere", || match ask() {
        Err(_) => Ok(()),
        Ok(answer) => Err(answer),
    });
}

/// A network behind the machine without a route to pods.
struct Outside {
    name: String,
    listener: Child,
}

const OUTSIDE: &str = "198.51.100.2";

impl Outside {
    fn new() -> Outside {
        let name = format!("plo{}", std::process::id());
        let near = format!("{name}n");
        let ip = |arguments: &str| {
            let output = Command::new("ip").args(arguments.split(' ')).output();
            let output = output.expect("ip runs");
            assert!(output.status.success(), "ip {arguments}: {output:?}");
        };
        ip(&format!("netns add {name}"));
        ip(&format!(
            "link add {near} type veth peer name eth0 netns {name}"
        ));
        ip(&format!("addr add 198.51.100.1/30 dev {near}"));
        ip(&format!("link set {near} up"));
        ip(&format!("-n {name} addr add {OUTSIDE}/30 dev eth0"));
        ip(&format!("-n {name} link set eth0 up"));
        let listener = Command::new("ip")
            .args(["netns", "exec", &name, "busybox", "nc", "-ll", "-p", "9000"])
            .args(["-e", "echo", "hello"])
            .stdin(Stdio::null())
            .spawn();
        let listener = listener.expect("ip runs");
        Outside { name, listener }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.listener.kill();
        let _ = self.listener.wait();
        let mut command = Command::new("ip");
        let _ = command
            .args(["link", "delete", &format!("{}n", self.name)])
            .output();
        let mut command = Command::new("ip");
        let _ = command.args(["netns", "delete", &self.name]).output();
    }
}

#[test]
#[ignore = "tier: root"]
fn pod_traffic_leaves_with_the_nodes_address() {
    let cluster = Cluster::start(Runtime::Embedded);
    let outside = Outside::new();
    cluster.run(&pod("p", &[container("main", WAIT)]));
    let asked = format!("exec p -- nc -w 5 {OUTSIDE} 9000");
    cluster.shows(&asked, "hello\n");
    drop(outside);
}
