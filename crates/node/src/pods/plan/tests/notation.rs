//! Containers are named by what they are: `a…` regular, `i…` init, `s…` sidecar, `e…` ephemeral;
//! `p` in a name stands for a startup and a liveness probe. What the runtime has of them:
//! `name:running`, `name:exited=3`, with `~` for a changed definition, `+up` and `+alive` for
//! probes that succeeded, `-up` and `-alive` for those that failed.

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::{Value, json};

use crate::pod_fields;
use crate::pods::observed::{self, Sandbox, State};
use crate::pods::plan::{Health, Plan, Results, Start, Verdict};
use crate::pods::spec::labels::container_hash;

pub(super) fn pod(policy: &str, containers: &str) -> Pod {
    let list = |prefixes: &[char]| -> Vec<Value> {
        let names = containers.split_whitespace();
        let own = names.filter(|name| name.starts_with(prefixes));
        own.map(|name| {
            let mut container = json!({"name": name, "image": "busybox"});
            if name.starts_with('s') {
                container["restartPolicy"] = json!("Always");
            }
            if name.contains('p') {
                container["startupProbe"] = json!({});
                container["livenessProbe"] = json!({});
            }
            container
        })
        .collect()
    };
    serde_json::from_value(json!({
        "metadata": {"name": "foo", "namespace": "ns", "uid": "u"},
        "spec": {
            "restartPolicy": policy,
            "initContainers": list(&['i', 's']),
            "containers": list(&['a']),
            "ephemeralContainers": list(&['e']),
        },
    }))
    .unwrap()
}

pub(super) fn sandboxes(text: &str) -> Vec<Sandbox> {
    let (state, attempt) = text.split_once('@').unwrap_or((text, "0"));
    if state == "none" {
        return Vec::new();
    }
    let ips = match state {
        "no-ip" => Vec::new(),
        _ => vec!["10.0.0.1".to_owned()],
    };
    vec![Sandbox {
        id: "sandbox".to_owned(),
        attempt: attempt.parse().unwrap(),
        is_ready: state != "dead",
        has_network: true,
        uses_host_network: state == "host",
        ips,
        ..Sandbox::default()
    }]
}

pub(super) fn seen(pod: &Pod, text: &str, health: &mut Results) -> observed::Container {
    let (name, rest) = text.split_once(':').unwrap();
    let end = rest.find(['+', '-', '~', '=']).unwrap_or(rest.len());
    let (state, marks) = rest.split_at(end);
    let container = pod_fields::part(pod, name).unwrap().container.into_owned();
    let exit_code = marks
        .strip_prefix('=')
        .map(|code| code.split('~').next().unwrap().parse().unwrap());
    let mut own = Health::default();
    for (mark, startup, liveness) in [
        ("+up", Some(Verdict::Success), None),
        ("-up", Some(Verdict::Failure), None),
        ("+alive", None, Some(Verdict::Success)),
        ("-alive", None, Some(Verdict::Failure)),
    ] {
        if marks.contains(mark) {
            own.startup = own.startup.or(startup);
            own.liveness = own.liveness.or(liveness);
        }
    }
    health.insert(format!("id-{name}"), own);
    observed::Container {
        id: format!("id-{name}"),
        name: name.to_owned(),
        state: match state {
            "created" => State::Created,
            "running" => State::Running,
            "exited" => State::Exited,
            _ => State::Unknown,
        },
        hash: container_hash(&container) + u64::from(marks.contains('~')),
        exit_code: exit_code.unwrap_or_default(),
        finished_at: Some(Timestamp::from_secs(1)),
        ..observed::Container::default()
    }
}

/// The plan in words: `new@1`, `end`, `kill a b`, `start c d`; empty for nothing.
pub(super) fn words(pod: &Pod, plan: &Plan) -> String {
    let mut words = Vec::new();
    if plan.sandbox.is_new {
        words.push(format!("new@{}", plan.sandbox.attempt));
    } else if plan.kills_pod {
        words.push("end".to_owned());
    }
    let mut list = |verb: &str, names: Vec<String>| {
        if !names.is_empty() {
            words.push(format!("{verb} {}", names.join(" ")));
        }
    };
    list("kill", plan.kill.iter().map(|k| k.name.clone()).collect());
    list("reset", plan.reset.iter().map(|r| r.name.clone()).collect());
    let name_of = |start: &Start| {
        let mut parts = pod_fields::parts(pod);
        let part = parts.find(|p| p.kind == start.kind && p.index == start.index);
        part.unwrap().container.name.clone()
    };
    list("start", plan.start.iter().map(name_of).collect());
    words.join(", ")
}
