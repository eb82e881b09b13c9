//! Hostile containers: their attacks are refused or bounded, they end within their grace period, and
//! other pods are not affected. Prints a table of the attempts, by runtime and version of cgroups.

mod attempts;
mod program;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_testkit::images::{Image, Layer, Tree};
use plimsoll_testkit::vm::slowness;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Runtime};
use crate::manifest::{pod, status};
use attempts::{Attempt, Expected, MAX_PIDS, PRELUDE, Places, SECRET, USER_NAMESPACE};

/// Busybox and programs that make one system call.
const IMAGE: &str = "plimsoll.test/hostile:1";

/// The timeout for the removal of all pods with a grace period of 2 s, which terminate together.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// Keeps a pod's script running, so that the pod must be terminated.
const LAST: &str = "echo done; while :; do sleep 1; done";

/// Names one runtime, where not both are tried: `embedded` or `containerd`.
pub(crate) const RUNTIME_VARIABLE: &str = "PLIMSOLL_HOSTILE_RUNTIME";

#[test]
#[ignore = "tier: root"]
fn hostile_containers_are_refused_or_bounded() {
    let version = if v1("pids").is_dir() { "v1" } else { "v2" };
    let chosen = std::env::var(RUNTIME_VARIABLE).unwrap_or_default();
    let mut columns = Vec::new();
    for runtime in [Runtime::Embedded, Runtime::Containerd] {
        let name = format!("{runtime:?}").to_lowercase();
        if chosen.is_empty() || chosen == name {
            let title = format!("{name}/{version}");
            columns.push((play(runtime, &title), title));
        }
    }
    assert!(
        !columns.is_empty(),
        "{RUNTIME_VARIABLE}: no runtime {chosen:?}"
    );
    let mut table = "attempt".to_owned();
    for (_, title) in &columns {
        table.push_str(&format!(" | {title}"));
    }
    for (row, (name, _)) in columns[0].0.iter().enumerate() {
        table.push_str(&format!("\n{name}"));
        for (results, _) in &columns {
            table.push_str(&format!(" | {}", in_words(&results[row].1)));
        }
    }
    show(&table);
    let mut all = columns.iter().flat_map(|(results, _)| results);
    assert!(all.all(|(_, result)| result.is_ok()), "{table}");
}

/// Prints even where the test passes, and to the log of a virtual machine.
fn show(text: &str) {
    writeln!(std::io::stdout(), "{text}").expect("the log takes it");
}

fn in_words(ended: &Ended) -> &str {
    ended.as_ref().unwrap_or_else(|problem| problem)
}

/// The result of an attempt, or the error.
type Ended = Result<String, String>;

/// All attempts on one node, at once. Shows each result as soon as it is known.
fn play(runtime: Runtime, title: &str) -> Vec<(&'static str, Ended)> {
    let cluster = Cluster::start_with(runtime, |_| vec![format!("--pod-max-pids={MAX_PIDS}")]);
    cluster.import(&image(), IMAGE);
    let logs = cluster.data_dir().join("log/pods");
    let secret = format!("1970-01-01T00:00:00Z stdout F {SECRET}\n");
    std::fs::write(cluster.data_dir().join("log/secret"), secret).unwrap();
    let places = Places {
        logs: logs.display().to_string(),
    };
    let before = cluster.run(&neighbour());
    let all = attempts::all();
    cluster.create_all(
        all.iter()
            .map(|attempt| manifest(attempt, &places))
            .collect(),
    );
    let mut results: Vec<(&str, Ended)> = Vec::new();
    let mut note = |name: &'static str, ended: Ended| {
        show(&format!("{title}: {name}: {}", in_words(&ended)));
        results.push((name, ended));
    };
    for attempt in &all {
        // containerd before 2.0 has no user namespaces; the pod must not run in the node's.
        let ended = match (runtime, attempt.name) {
            (Runtime::Containerd, USER_NAMESPACE) => is_not_started(&cluster, attempt),
            (Runtime::Embedded, USER_NAMESPACE) if lacks_mapped_mounts(&cluster, attempt) => {
                Ok("not started".to_owned())
            }
            _ => outcome(&cluster, attempt),
        };
        note(attempt.name, ended);
    }
    note("neighbour", neighbour_is_well(&cluster, &before));
    let begun = Instant::now();
    let names: Vec<String> = all.iter().map(pod_name).collect();
    cluster.kubectl(&format!("delete pod --wait=false {}", names.join(" ")));
    for name in &names {
        cluster.is_gone(&format!("pod {name}"));
    }
    let took = begun.elapsed();
    let deleted = match took < GONE_WITHIN * slowness() {
        true => Ok("all gone".to_owned()),
        false => Err(format!("gone after {took:?}")),
    };
    note("deleted", deleted);
    note("neighbour afterwards", neighbour_is_well(&cluster, &before));
    results
}

fn image() -> Image {
    let mut image = Image::busybox();
    let mut tree = Tree::new();
    for (name, mode, program) in attempts::programs() {
        tree = tree.file(&format!("bin/{name}"), mode, &program);
    }
    image.layers.push(Layer::gzip(tree.into_tar()));
    image
}

fn pod_name(attempt: &Attempt) -> String {
    let name = attempt.name.to_lowercase();
    let is_plain = |c: char| c.is_ascii_lowercase();
    name.split(|c| !is_plain(c))
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

fn manifest(attempt: &Attempt, places: &Places) -> Value {
    let script = format!("{PRELUDE}\n{}\n{LAST}", attempt.script);
    let main = json!({
        "name": "main", "image": IMAGE, "command": ["sh", "-c", script],
        "resources": {
            "requests": { "cpu": "10m", "memory": "4Mi" },
            "limits": { "cpu": "200m", "memory": "128Mi", "ephemeral-storage": "8Mi" },
        },
    });
    let mut pod = pod(&pod_name(attempt), &[main]);
    (attempt.change)(&mut pod, places);
    pod
}

/// A pod that counts, and uses all of its requested memory.
fn neighbour() -> Value {
    let script = "x=$(head -c 8000000 /dev/zero | tr '\\0' x); while :; do n=$((n + 1)); \
                  echo $n ${#x} > /tmp/next; mv /tmp/next /tmp/beat; sleep 0.2; done";
    let resources = json!({ "cpu": "100m", "memory": "48Mi" });
    let main = json!({
        "name": "main", "image": IMAGE, "command": ["sh", "-c", script, "neighbour-secret"],
        "env": [{ "name": "SECRET", "value": "neighbour-secret" }],
        "resources": { "requests": resources, "limits": resources },
    });
    pod("neighbour", &[main])
}

/// Whether the other pod continues to count, with all its memory, without a restart.
fn neighbour_is_well(cluster: &Cluster, before: &Value) -> Ended {
    let beat = || -> Result<u64, String> {
        let reported = cluster.try_kubectl("exec neighbour -- cat /tmp/beat");
        let mut words = reported.stdout.split_whitespace();
        match (words.next().map(str::parse), words.next()) {
            (Some(Ok(count)), Some("8000000")) => Ok(count),
            _ => Err(format!("{reported:?}")),
        }
    };
    let first = until("the neighbour counts", beat);
    until("the other pod continues", || match beat() {
        Ok(count) if count >= first + 5 => Ok(()),
        other => Err(format!("{other:?} after {first}")),
    });
    let now = cluster.get("pod neighbour");
    let id = |pod: &Value| status(pod, "main")["containerID"].clone();
    match id(&now) == id(before) {
        true => Ok("undisturbed".to_owned()),
        false => Err(format!("{:#}", now["status"])),
    }
}

/// Waits for the result of an attempt.
fn outcome(cluster: &Cluster, attempt: &Attempt) -> Ended {
    let name = pod_name(attempt);
    let ended = match attempt.expected {
        Expected::Refused => refused(cluster, &name),
        Expected::Bounded(most) => bounded(cluster, &name, most),
        Expected::Processes => processes(cluster, &name),
        Expected::Evicted => has(cluster, &name, "evicted", |pod| {
            pod["status"]["reason"] == "Evicted"
        }),
        Expected::OomKilled => has(cluster, &name, "killed within its limit", |pod| {
            let status = &pod["status"]["containerStatuses"][0];
            let ends = ["state", "lastState"].map(|state| &status[state]["terminated"]["reason"]);
            ends.contains(&&json!("OOMKilled"))
        }),
        Expected::Runs => runs(cluster, &name),
    };
    // Whatever else it has to show, nothing that it tried may have worked.
    let reported = logs(cluster, &name);
    match reported.contains("succeeded") || reported.contains(SECRET) {
        true => Err(reported),
        false => ended,
    }
}

fn logs(cluster: &Cluster, name: &str) -> String {
    // Of those that write without end, what counts is at the end.
    let arguments = format!("logs {name} --all-containers --tail=50");
    cluster.try_kubectl(&arguments).stdout
}

/// Waits until a pod's script has finished; returns its output.
fn is_done(cluster: &Cluster, name: &str) -> String {
    until(&format!("{name} is done"), || {
        let reported = logs(cluster, name);
        match reported.lines().any(|line| line == "done") {
            true => Ok(reported),
            false => Err(reported),
        }
    })
}

/// Whether the kernel cannot map a pod's files to its users, as before Linux 6.3 where they are in
/// memory. Waits until that is known.
fn lacks_mapped_mounts(cluster: &Cluster, attempt: &Attempt) -> bool {
    let name = pod_name(attempt);
    let lacks = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"];
        status
            .to_string()
            .contains("has no idmapped mounts on this kernel")
    };
    let pod = cluster.until_object(&format!("pod {name}"), "started or refused", |pod| {
        lacks(pod) || pod["status"]["containerStatuses"][0]["state"]["running"].is_object()
    });
    lacks(&pod)
}

/// A pod whose settings the runtime does not support.
fn is_not_started(cluster: &Cluster, attempt: &Attempt) -> Ended {
    let name = pod_name(attempt);
    cluster.until_object("events default", "refused", |events| {
        let all = events["items"].as_array();
        all.into_iter().flatten().any(|event| {
            event["involvedObject"]["name"] == *name && event["reason"] == "FailedCreatePodSandBox"
        })
    });
    match cluster.get(&format!("pod {name}"))["status"]["phase"] == "Pending" {
        true => Ok("not started".to_owned()),
        false => Err(logs(cluster, &name)),
    }
}

fn refused(cluster: &Cluster, name: &str) -> Ended {
    let reported = is_done(cluster, name);
    let count = reported
        .lines()
        .filter(|line| line.starts_with("refused: "));
    match count.count() {
        0 => Err(reported),
        count => Ok(format!("refused ({count})")),
    }
}

fn bounded(cluster: &Cluster, name: &str, most: u64) -> Ended {
    let reported = is_done(cluster, name);
    let bound = reported
        .lines()
        .find_map(|line| line.strip_prefix("bound "));
    match bound.map(str::parse::<u64>) {
        Some(Ok(bound)) if (1..=most).contains(&bound) => Ok(format!("bounded ({bound} MiB)")),
        _ => Err(reported),
    }
}

fn has(cluster: &Cluster, name: &str, words: &str, is_so: impl Fn(&Value) -> bool) -> Ended {
    cluster.until_object(&format!("pod {name}"), words, is_so);
    Ok(words.to_owned())
}

fn processes(cluster: &Cluster, name: &str) -> Ended {
    let cgroup = cgroup_of(cluster, name, "pids");
    let count = until("the bomb has gone off", || {
        let text = std::fs::read_to_string(cgroup.join("pids.current")).unwrap_or_default();
        let count: u64 = text.trim().parse().unwrap_or_default();
        match count >= MAX_PIDS / 2 {
            true => Ok(count),
            false => Err(text),
        }
    });
    match count <= MAX_PIDS {
        true => Ok(format!("bounded (up to {MAX_PIDS} processes)")),
        false => Err(format!("{count} processes")),
    }
}

/// A pod that runs until it is deleted; two of them are frozen first.
fn runs(cluster: &Cluster, name: &str) -> Ended {
    if name == "deaf" {
        return has(cluster, name, "running", |pod| {
            pod["status"]["phase"] == "Running"
        });
    }
    if name == "subpath-race" {
        return has(cluster, name, "tried", |pod| {
            let all = pod["status"]["containerStatuses"].as_array();
            let has_ended = |one: &&Value| {
                !one["state"]["terminated"].is_null() || !one["lastState"]["terminated"].is_null()
            };
            all.is_some_and(|all| all.iter().any(|one| has_ended(&one)))
        });
    }
    is_done(cluster, name);
    match name {
        "frozen" => freeze(&cgroup_of(cluster, name, "freezer")),
        "frozen-inside" => {
            let container = cluster.get(&format!("pod {name}"));
            let id = crate::manifest::container_id(&container, "main");
            let cgroup = find(&cgroup_of(cluster, name, "freezer"), &|name| {
                name.contains(id)
            });
            let cgroup = cgroup.expect("a container has a cgroup");
            let own = cgroup.join("own");
            std::fs::create_dir(&own).unwrap();
            let all = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap();
            for pid in all.lines() {
                // A recently created one may have been removed.
                let _ = std::fs::write(own.join("cgroup.procs"), pid);
            }
            freeze(&own);
        }
        "log-link-race" => {
            for _ in 0..20 {
                let reported = cluster.try_kubectl(&format!("logs {name}"));
                if format!("{reported:?}").contains(SECRET) {
                    return Err(format!("{reported:?}"));
                }
            }
        }
        other => panic!("{other} has nothing to show"),
    }
    Ok("held".to_owned())
}

/// Freezes a cgroup.
fn freeze(cgroup: &Path) {
    for (file, frozen) in [("freezer.state", "FROZEN"), ("cgroup.freeze", "1")] {
        if cgroup.join(file).exists() {
            return std::fs::write(cgroup.join(file), frozen).unwrap();
        }
    }
    panic!("{} cannot be frozen", cgroup.display());
}

/// Where cgroup v1 has a controller.
fn v1(controller: &str) -> PathBuf {
    Path::new("/sys/fs/cgroup").join(controller)
}

/// The cgroup of a pod in the tree of a controller.
fn cgroup_of(cluster: &Cluster, name: &str, controller: &str) -> PathBuf {
    let tree = match v1(controller) {
        tree if tree.is_dir() => tree,
        _ => PathBuf::from("/sys/fs/cgroup"),
    };
    let uid = cluster.get(&format!("pod {name}"))["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("pods have uids").to_owned();
    let root = tree.join(cluster.cgroup_root().trim_start_matches('/'));
    let found = find(&root, &|name| name.ends_with(&uid));
    found.unwrap_or_else(|| panic!("{} has no cgroup of {name}", root.display()))
}

/// A directory below another whose name is right.
fn find(directory: &Path, is_right: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    let mut below = entries.flatten().map(|entry| entry.path());
    below.find_map(|path| {
        if !path.is_dir() {
            return None;
        }
        let name = path.file_name()?.to_string_lossy();
        match is_right(&name) {
            true => Some(path.clone()),
            false => find(&path, is_right),
        }
    })
}
