//! kubectl with running containers: logs, exec, cp, port-forward.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use plimsoll_testkit::waiting::until;
use serde_json::json;

use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{WAIT, container, container_id, pod, sized};

on_both_runtimes!(
    logs_are_shown,
    commands_run_in_containers,
    containers_are_attached_to,
    files_are_copied,
    ports_are_forwarded,
    pods_are_reached_by_proxy,
);

/// A kubectl that is ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn logs_are_shown(cluster: &mut Cluster) {
    let script = "echo one; echo two; echo three; test -e /keep/again && exec tail -f /dev/null; touch /keep/again; exit 3";
    let mut main = container("main", script);
    main["volumeMounts"] = json!([{ "name": "keep", "mountPath": "/keep" }]);
    // The two streams of a container use two pipes, which are read in any order. A separate
    // container shows that stderr is logged.
    let error = container("error", &format!("echo wrong >&2; {WAIT}"));
    let mut twice = pod("twice", &[main, error]);
    twice["spec"]["volumes"] = json!([{ "name": "keep", "emptyDir": {} }]);
    cluster.create(&twice);
    cluster.until_object("pod twice", "restarted", |pod| {
        // In the order of names.
        let status = &pod["status"]["containerStatuses"][1];
        status["restartCount"] == 1 && status["ready"] == true
    });
    cluster.shows("logs twice -c main", "one\ntwo\nthree\n");
    cluster.shows("logs twice -c main --previous", "one\ntwo\nthree\n");
    cluster.shows("logs twice -c main --tail=1", "three\n");
    cluster.shows("logs twice -c main --limit-bytes=5", "one\nt");
    cluster.shows("logs twice -c error", "wrong\n");
    let stamped = cluster.kubectl("logs twice -c main --timestamps --tail=1");
    let (stamp, line) = stamped.split_once(' ').expect("a time and a line");
    assert!(stamp.starts_with("20") && line == "three\n", "{stamped}");
    // Log collectors find a link to each.
    let id = container_id(&cluster.get("pod twice"), "main").to_owned();
    let link = format!("log/containers/twice_default_main-{id}.log");
    let log = std::fs::read_to_string(cluster.data_dir().join(link)).unwrap();
    assert!(log.contains("stdout F three"), "{log}");
    let problem = cluster.try_kubectl("logs twice -c nope").stderr;
    assert!(
        problem.contains("container nope is not valid for pod twice"),
        "{problem}"
    );

    // In a pod of its own: between two pipes there is no order.
    let loud = container("main", "echo loud >&2; exec tail -f /dev/null");
    cluster.run(&pod("loud", &[loud]));
    cluster.shows("logs loud", "loud\n");

    let talking = container(
        "main",
        "i=0; while true; do echo line $i; i=$((i+1)); sleep 0.2; done",
    );
    cluster.run(&pod("talking", &[talking]));
    let mut following = Running(cluster.start_kubectl("logs -f talking"));
    let mut lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    for number in 0..5 {
        let line = lines.next().expect("it goes on").expect("text");
        assert_eq!(line, format!("line {number}"));
    }
    // The end of the pod is the end of its log.
    cluster.kubectl("delete pod talking --grace-period=1 --wait=false");
    let status = until("kubectl logs -f ends", || match following.0.try_wait() {
        Ok(Some(status)) => Ok(status),
        _ => {
            let _ = lines.next();
            Err("it follows".to_owned())
        }
    });
    assert!(status.success(), "{status}");
}

fn commands_run_in_containers(cluster: &mut Cluster) {
    cluster.run(&pod("p", &[sized("main", &json!({}))]));
    assert_eq!(cluster.kubectl("exec p -- echo hello"), "hello\n");
    let failed = cluster.try_kubectl("exec p -- sh -c 'echo out; echo err >&2; exit 42'");
    assert_eq!(failed.code, Some(42), "{failed:?}");
    assert_eq!(failed.stdout, "out\n");
    assert_eq!(failed.stderr, "err\ncommand terminated with exit code 42\n");
    let shouted = cluster.kubectl_with("exec -i p -- tr a-z A-Z", "some text\nand more\n");
    assert_eq!(shouted, "SOME TEXT\nAND MORE\n");
    let many = "0123456789abcdef\n".repeat(64 * 1024);
    assert_eq!(cluster.kubectl_with("exec -i p -- cat", &many), many);
    let missing = cluster.try_kubectl("exec p -- /does/not/exist");
    assert!(!missing.is_fine(), "{missing:?}");
    assert!(missing.stderr.contains("/does/not/exist"), "{missing:?}");
    let where_it_runs = cluster.kubectl("exec p -- hostname");
    assert_eq!(where_it_runs, "p\n");
    // kubectl needs a terminal for -t; `script` provides it.
    let printed = terminal(cluster, "exec -it p -- sh -c \"tty; stty size; exit 5\"");
    assert!(printed.contains("/dev/pts/"), "{printed}");
    assert!(
        printed.contains("command terminated with exit code 5"),
        "{printed}"
    );
}

/// The output of kubectl on a terminal.
fn terminal(cluster: &Cluster, arguments: &str) -> String {
    let mut command = std::process::Command::new("script");
    command.args([
        "-q",
        "-e",
        "-c",
        &format!("kubectl {arguments}"),
        "/dev/null",
    ]);
    command.env("KUBECONFIG", cluster.data_dir().join("admin.kubeconfig"));
    command.stdin(std::process::Stdio::null());
    let output = command.output().expect("script runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn containers_are_attached_to(cluster: &mut Cluster) {
    let mut main = container(
        "main",
        "echo ready; while read line; do echo got $line; done; echo over",
    );
    main["stdin"] = json!(true);
    main["stdinOnce"] = json!(true);
    let mut reader = pod("reader", &[main]);
    reader["spec"]["restartPolicy"] = json!("Never");
    cluster.run(&reader);
    cluster.shows("logs reader", "ready\n");
    let mut attached = Running(cluster.start_kubectl("attach -i reader"));
    let mut input = attached.0.stdin.take().unwrap();
    let mut lines = BufReader::new(attached.0.stdout.take().unwrap()).lines();
    writeln!(input, "first").unwrap();
    let mut next = || lines.next().expect("it goes on").expect("text");
    let first = next();
    assert_eq!(first, "got first");
    writeln!(input, "second").unwrap();
    assert_eq!(next(), "got second");
    drop(input);
    // A client that detaches closes the input (stdinOnce).
    cluster.until_phase("reader", "Succeeded");
    cluster.shows("logs reader", "ready\ngot first\ngot second\nover\n");
}

fn files_are_copied(cluster: &mut Cluster) {
    cluster.run(&pod(
        "p",
        &[container("main", &format!("mkdir /data; {WAIT}"))],
    ));
    let here = cluster.folder().join("here");
    let back = cluster.folder().join("back");
    std::fs::create_dir(&here).unwrap();
    std::fs::write(here.join("a"), "one").unwrap();
    std::fs::write(here.join("b"), vec![7; 300_000]).unwrap();
    cluster.kubectl(&format!("cp {} p:/data/there", here.display()));
    assert_eq!(cluster.kubectl("exec p -- cat /data/there/a"), "one");
    cluster.kubectl(&format!("cp p:/data/there {}", back.display()));
    assert_eq!(std::fs::read(back.join("b")).unwrap(), vec![7; 300_000]);
}

fn ports_are_forwarded(cluster: &mut Cluster) {
    let serve = "mkdir /www; echo welcome > /www/index.html; exec httpd -f -p 8080 -h /www";
    cluster.run(&pod("web", &[container("main", serve)]));
    let mut forwarding = Running(cluster.start_kubectl("port-forward web :8080"));
    let mut lines = BufReader::new(forwarding.0.stdout.take().unwrap()).lines();
    let printed = lines.next().expect("it prints the port").expect("text");
    let port = printed.strip_prefix("Forwarding from 127.0.0.1:");
    let port = port
        .and_then(|rest| rest.split(' ').next())
        .expect(&printed);
    let port: u16 = port.parse().expect(&printed);
    for _ in 0..3 {
        let answer = until("the pod answers", || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|e| e.to_string())?;
            let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
            asked.map_err(|e| e.to_string())?;
            let mut answer = String::new();
            let read = stream.read_to_string(&mut answer);
            read.map_err(|e| e.to_string())?;
            if answer.is_empty() {
                Err("nothing".to_owned())
            } else {
                Ok(answer)
            }
        });
        assert!(answer.ends_with("welcome\n"), "{answer}");
    }
}

fn pods_are_reached_by_proxy(cluster: &mut Cluster) {
    let script = "mkdir /www; echo hello > /www/index.html; exec httpd -f -p 8080 -h /www";
    let mut web = container("main", script);
    web["ports"] = json!([{ "containerPort": 8080 }]);
    cluster.run(&pod("web", &[web]));
    let raw = |name: &str, path: &str| {
        format!("get --raw /api/v1/namespaces/default/pods/{name}/proxy{path}")
    };
    cluster.shows(&raw("web", "/"), "hello\n");
    cluster.shows(&raw("http:web:8080", "/index.html"), "hello\n");
    let refused = cluster.try_kubectl(&raw("web:8081", "/"));
    let problem = "error trying to reach service: dial tcp";
    assert!(refused.stderr.contains(problem), "{refused:?}");
    let missing = cluster.try_kubectl(&raw("none", "/"));
    let problem = "pods \"none\" not found";
    assert!(missing.stderr.contains(problem), "{missing:?}");
}
