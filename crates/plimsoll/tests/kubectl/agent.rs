//! Commands that need a node: `logs`, `exec`, `top`, `debug`, and their errors without one.

use std::io::Write;
use std::process::Stdio;

use crate::node::Agent;
use crate::session::{with_every_kubectl, with_kubectl_from};

#[test]
#[ignore = "tier: tools"]
fn a_pod_without_a_node_has_no_logs_and_runs_nothing() {
    with_every_kubectl(|s| {
        s.ok("run p --image=x");
        s.run("logs p").says("");
        s.run("logs nope").fails_with("pods \"nope\" not found");
        s.run("exec p -- ls")
            .fails_with("pod p does not have a host assigned");
        s.run("port-forward p 0:80").fails(
            "error: unable to forward port because pod is not running. Current status=Pending",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn logs_are_proxied_to_the_node() {
    with_every_kubectl(|s| {
        let Some(agent) = Agent::start(s) else { return };
        s.run("logs p -c a --tail=5 --timestamps --since=60s")
            .mentions(&[
                "/containerLogs/NS/p/a?",
                "tailLines=5",
                "timestamps=true",
                "sinceSeconds=60",
            ]);
        s.run("logs p -c b --previous")
            .mentions(&["/containerLogs/NS/p/b?previous=true"]);
        s.run("logs p -c nope")
            .fails_with("container nope is not valid for pod p");
        s.run("get --raw '/api/v1/namespaces/$NS/pods/p/log'")
            .fails_with("a container name must be specified for pod p, choose one of: [a b]");
        s.ok(&format!("delete node {}", agent.name));
    });
}

/// WebSockets are kubectl's way since 1.31; what came before speaks SPDY, which this node does not.
#[test]
#[ignore = "tier: tools"]
fn commands_run_on_the_node() {
    with_kubectl_from(31, |s| {
        let Some(agent) = Agent::start(s) else { return };
        s.run("exec p -c a -- echo hi")
            .mentions(&["command=echo&command=hi", "output=1"]);
        let failed = s.run("exec p -c a -- false");
        assert_eq!(failed.code, 7, "{failed:#?}");
        assert_eq!(failed.stderr.trim(), "command terminated with exit code 7");
        let input = s.run_with("exec -i p -c a -- cat", |command| {
            let (read, mut write) = std::io::pipe().unwrap();
            write.write_all(b"some text\n").unwrap();
            command.stdin(Stdio::from(read));
        });
        input.mentions(&["input=1", "some text"]);
        s.ok(&format!("delete node {}", agent.name));
    });
}

/// Older ones use SPDY, and get the error in the response.
#[test]
#[ignore = "tier: tools"]
fn unresponsive_node_is_reported() {
    with_kubectl_from(31, |s| {
        let Some(agent) = Agent::start(s) else { return };
        let name = agent.name.clone();
        drop(agent);
        let refused = s.run("exec p -c a -- ls");
        refused.fails_with("Internal error occurred: error sending request: Post");
        refused.fails_with("connect: connection refused");
        let refused = s.run("logs p -c a");
        refused.fails_with("Error from server: Get");
        refused.fails_with("connect: connection refused");
        s.ok(&format!("delete node {name}"));
    });
}

#[test]
#[ignore = "tier: tools"]
fn top_reports_usage_from_the_node() {
    with_every_kubectl(|s| {
        let Some(agent) = Agent::start(s) else { return };
        s.run(&format!("top node {}", agent.name))
            .mentions(&["agent-NS  250m  6%  64Mi  0%"]);
        s.run("top pod p --containers")
            .mentions(&["p  a  125m  32Mi"]);
        s.run("top pods").mentions(&["p  125m  32Mi"]);
        s.run(&format!(
            "get --raw /api/v1/nodes/{}/proxy/healthz",
            agent.name
        ))
        .says("ok");
        s.ok(&format!("delete node {}", agent.name));
    });
}

/// Ephemeral containers by patch are of 1.23.
#[test]
#[ignore = "tier: tools"]
fn debug_adds_a_container() {
    with_kubectl_from(23, |s| {
        s.ok("run p --image=x");
        s.run("debug p --image=busybox -c dbg -- sleep 1")
            .mentions(&[]);
        s.run("get pod p -o jsonpath='{.spec.ephemeralContainers[*].name} {.spec.ephemeralContainers[0].command}'")
            .says("dbg [\"sleep\",\"1\"]");
        s.run("debug p --image=busybox --copy-to=copy -c dbg")
            .mentions(&[]);
        s.run("get pod copy -o jsonpath='{.spec.containers[*].name}'")
            .says("p dbg");
    });
}
