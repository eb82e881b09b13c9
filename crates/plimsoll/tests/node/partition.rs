//! The network between a node and its server is slow, or drops one direction or both. Pods keep
//! running, once each; the node becomes unreachable after its grace period and not before; its
//! decisions during the partition are reported afterwards.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll_testkit::cgroup::Tree;
use plimsoll_testkit::claim::Number;
use plimsoll_testkit::images::busybox_archive;
use plimsoll_testkit::inventory::Inventory;
use plimsoll_testkit::kubectl::{Answer, Kubectl};
use plimsoll_testkit::mount::unmount_below;
use plimsoll_testkit::process::Process;
use plimsoll_testkit::proxy::{Link, Proxy};
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::cluster::{
    Bridge, IMAGE, NODE, PLIMSOLL, configured, data_dir, down, node_arguments, place,
};
use crate::manifest::{WAIT, container, pod};

/// The grace period of the node's heartbeats.
const GRACE: Duration = Duration::from_secs(20);

/// The interval between renewals of its Lease: a quarter of the Lease's duration.
const RENEWED_EVERY: Duration = Duration::from_secs(2);

/// The tolerance of timers on a busy machine.
const NOTICED_WITHIN: Duration = Duration::from_secs(8);

/// The timeout of kubectl for a node that does not answer: the server waits 30 s for a connection.
const SAID_WITHIN: Duration = Duration::from_secs(60);

/// The processes of a cluster, with a network between the server and its node.
struct World {
    node: Process,
    _control: [Process; 3],
    /// From the node to the server.
    up: Proxy,
    /// From the server to the node, for logs and commands.
    down: Proxy,
    kubectl: Kubectl,
    api: Api,
    cgroups: Tree,
    network: Bridge,
    before: Inventory,
    _number: Number,
    folder: TempDir,
}

impl World {
    fn start() -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let text = |path: PathBuf| path.display().to_string();
        let control = path("control");
        let start = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
            let log = path(&format!("{}.log", arguments[0]));
            Process::start(PLIMSOLL, &log, &arguments)
        };
        let data = text(control.clone());
        let mut server = start(&["server", "--data-dir", &data, "--listen", "127.0.0.1:0"]);
        server.says("export KUBECONFIG=");
        let kubeconfig = control.join("admin.kubeconfig");
        let file = text(kubeconfig.clone());
        let alone = ["--kubeconfig", &file, "--leader-elect", "false"];
        let grace = format!("--node-monitor-grace-period={}s", GRACE.as_secs());
        let flags = [&grace, "--node-monitor-period=500ms"];
        let controllers = start(&[&["controllers"], &alone[..], &flags].concat());
        let scheduler = start(&[&["scheduler"], &alone[..]].concat());

        let invitation = plimsoll(&["token", "create", "--kubeconfig", &file]);
        let words = invitation.split_whitespace().skip(1).map(str::to_owned);
        let mut arguments: Vec<String> = words.collect();
        let url = arguments
            .iter_mut()
            .find(|word| word.starts_with("https://"));
        let url = url.expect("an invitation names the server");
        let address: SocketAddr = url["https://".len()..].parse().expect("an address");
        let up = Proxy::start(address).expect("a network");
        *url = format!("https://{}", up.address());

        // The node listens at one address and reports the other, that of the simulated network.
        let number = Number::claim();
        let at = |host| SocketAddr::from(([127, 77, number.value(), host], 10250));
        let down = Proxy::start_at(at(2), at(1)).expect("a network");
        let (cgroups, network) = (Tree::new(), Bridge::new());
        let data = data_dir(folder.path());
        let archive = text(busybox_archive(folder.path(), IMAGE));
        plimsoll(&[
            "image",
            "import",
            "--data-dir",
            &text(data.clone()),
            &archive,
        ]);
        arguments.extend(["--data-dir".to_owned(), text(data)]);
        let mut own = node_arguments(NODE, cgroups.path(), &network);
        let listen = own.iter_mut().find(|word| *word == "127.0.0.1:0");
        *listen.expect("it listens") = at(1).to_string();
        arguments.extend(own);
        arguments.extend(["--node-ip".to_owned(), at(2).ip().to_string()]);
        let settings = json!({
            "evictionHard": { "memory.available": "100Mi" },
            "nodeLeaseDurationSeconds": RENEWED_EVERY.as_secs() * 4,
            "nodeStatusUpdateFrequency": "10s",
            "volumeStatsAggPeriod": "1s",
        });
        arguments.extend(configured(folder.path(), &settings));
        let before = Inventory::of_machine(&place(folder.path(), &cgroups, &network));
        let node = Process::start(PLIMSOLL, &path("node.log"), &arguments);
        let mut world = World {
            node,
            _control: [server, controllers, scheduler],
            up,
            down,
            kubectl: Kubectl::new(&kubeconfig, "default"),
            api: Api::new(&kubeconfig),
            cgroups,
            network,
            before,
            _number: number,
            folder,
        };
        world.node.says("node n1 is registered");
        world.until_ready();
        until("the service account", || {
            world.api.get("serviceaccount default")
        });
        world
    }

    /// The node's Ready condition, `True`, `False` or `Unknown`, and its last heartbeat.
    fn ready(&self) -> (String, Value) {
        let node = self.api.get(&format!("node {NODE}"));
        let node = node.expect("the server is there");
        let conditions = node["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|one| one["type"] == "Ready");
        ready.map_or_else(Default::default, |one| {
            let status = one["status"].as_str().unwrap_or_default();
            (status.to_owned(), one["lastHeartbeatTime"].clone())
        })
    }

    /// Waits until the node is ready and has no taints.
    fn until_ready(&self) {
        until("the node is ready", || {
            let node = self.api.get(&format!("node {NODE}"))?;
            match self.ready().0 == "True" && node["spec"]["taints"].is_null() {
                true => Ok(()),
                false => Err(format!("{node:#}")),
            }
        });
    }

    /// Waits until the node is not ready for lack of heartbeats; returns the time since the last one.
    /// If only responses are lost, renewals of its Lease still arrive on existing connections.
    fn until_given_up(&self) -> Duration {
        let lease = format!(
            "get lease {NODE} -n kube-node-lease -o jsonpath={{.metadata.resourceVersion}}"
        );
        let mut heard = (Default::default(), Instant::now());
        until("the node is given up", || {
            let (ready, heartbeat) = self.ready();
            let signs = (self.kubectl.kubectl(&lease), heartbeat);
            if signs != heard.0 {
                heard = (signs, Instant::now());
            }
            match ready.as_str() {
                "Unknown" => Ok(()),
                other => Err(other.to_owned()),
            }
        });
        heard.1.elapsed()
    }

    /// Asserts that it stays so for a while.
    fn is_ready_for(&self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            assert_eq!(self.ready().0, "True", "after {:?}", begun.elapsed());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The traffic to the server and to the node, whichever of them has connected.
    fn set_links(&self, to_server: Link, to_node: Link) {
        self.up.set_links(to_server, to_node);
        self.down.set_links(to_node, to_server);
    }

    fn create(&self, manifest: &Value) {
        self.kubectl
            .kubectl_with("create -f -", &manifest.to_string());
    }

    fn until_running(&self, name: &str) -> Value {
        until(&format!("{name} runs"), || {
            let pod = self.api.get(&format!("pod {name}"))?;
            match pod["status"]["containerStatuses"][0]["ready"] == true {
                true => Ok(pod),
                false => Err(format!("{pod:#}")),
            }
        })
    }

    /// All pods, by what makes them the ones that they are.
    fn pods(&self) -> Vec<(String, String, String, u64)> {
        let pods = self.api.get("pods default").expect("the server is there");
        let pods = pods["items"].as_array().into_iter().flatten();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = pods.map(|pod| {
            let status = &pod["status"]["containerStatuses"][0];
            let restarts = status["restartCount"].as_u64().unwrap_or_default();
            (
                word(&pod["metadata"]["name"]),
                word(&pod["metadata"]["uid"]),
                word(&status["containerID"]),
                restarts,
            )
        });
        pods.collect()
    }

    /// Sends a request to a node that does not answer; returns kubectl's error.
    fn cannot(&self, arguments: &str) -> Answer {
        let begun = Instant::now();
        let answer = self.kubectl.try_kubectl(arguments);
        let took = begun.elapsed();
        assert!(!answer.is_fine(), "kubectl {arguments}: {answer:?}");
        assert!(took < SAID_WITHIN, "kubectl {arguments}: {took:?}");
        answer
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.up.set_link(Link::Fine);
        self.node.kill();
        let data = data_dir(self.folder.path());
        let output = down(&data, &["--grace-period", "0s"]);
        let place = place(self.folder.path(), &self.cgroups, &self.network);
        unmount_below(self.folder.path());
        if std::thread::panicking() {
            return;
        }
        let left = Inventory::of_node(&place).beyond(&self.before);
        assert!(left.is_empty(), "{left:#?}\nby {output:?}");
    }
}

fn plimsoll(arguments: &[&str]) -> String {
    let mut command = Command::new(PLIMSOLL);
    let output = command.args(arguments).output().expect("plimsoll starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Pods of a controller, which would replace them, and one pod without a controller.
fn workload(world: &World) -> Vec<(String, String, String, u64)> {
    let template = pod("web", &[container("main", WAIT)]);
    world.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": template["metadata"], "spec": template["spec"] },
        },
    }));
    world.create(&pod(
        "bare",
        &[container("main", &format!("echo begun; {WAIT}"))],
    ));
    world.until_running("bare");
    world
        .kubectl
        .kubectl("rollout status deployment web --timeout=60s");
    world.pods()
}

#[test]
#[ignore = "tier: root"]
fn slow_network_affects_neither_node_readiness_nor_pods() {
    let world = World::start();
    let before = workload(&world);
    for (delay, jitter) in [(200, 100), (1000, 100)] {
        let slow = Link::Slow(Duration::from_millis(delay), Duration::from_millis(jitter));
        world.set_links(slow, slow);
        world.is_ready_for(GRACE + RENEWED_EVERY);
        assert_eq!(world.kubectl.kubectl("logs bare"), "begun\n");
        assert_eq!(world.kubectl.kubectl("exec bare -- hostname"), "bare\n");
        let late = format!("late-{delay}");
        world.create(&pod(&late, &[container("main", WAIT)]));
        world.until_running(&late);
        world
            .kubectl
            .kubectl(&format!("delete pod {late} --timeout=60s"));
        assert_eq!(world.pods(), before);
        assert_eq!(world.ready().0, "True");
    }
}

#[test]
#[ignore = "tier: root"]
fn one_way_partition_makes_the_node_not_ready_and_nothing_else() {
    let world = World::start();
    let before = workload(&world);
    let directions = [(Link::Cut, Link::Fine), (Link::Fine, Link::Cut)];
    for (to_server, to_node) in directions {
        world.set_links(to_server, to_node);
        let took = world.until_given_up();
        let earliest = GRACE - RENEWED_EVERY - Duration::from_secs(1);
        assert!(took > earliest, "given up after {took:?}");
        assert!(took < GRACE + NOTICED_WITHIN, "given up after {took:?}");
        for asked in ["logs bare", "exec bare -- true"] {
            let answer = world.cannot(asked);
            let said = &answer.stderr;
            assert!(said.contains("127.77."), "{asked}: {said}");
            assert!(said.contains("timeout"), "{asked}: {said}");
        }
        assert_eq!(world.pods(), before, "none is replaced");
        world.set_links(Link::Fine, Link::Fine);
        world.until_ready();
        until("the pods are ready again", || {
            let all = world.kubectl.kubectl("get pods --no-headers");
            match all.lines().all(|line| line.contains(" 1/1 ")) {
                true => Ok(()),
                false => Err(all),
            }
        });
        assert_eq!(world.pods(), before, "none was started again");
        assert_eq!(world.kubectl.kubectl("logs bare"), "begun\n");
    }
}

#[test]
#[ignore = "tier: root"]
fn dead_connections_are_closed() {
    let world = World::start();
    let before = workload(&world);
    world.up.forget_connections();
    world.is_ready_for(GRACE + NOTICED_WITHIN);
    assert_eq!(world.pods(), before);
    // Watches are closed, too.
    world.create(&pod("late", &[container("main", WAIT)]));
    world.until_running("late");
    assert_eq!(world.kubectl.kubectl("logs bare"), "begun\n");
}

#[test]
#[ignore = "tier: root"]
fn eviction_during_a_server_outage_is_reported_afterwards() {
    let world = World::start();
    let go = world.folder.path().join("go");
    std::fs::create_dir(&go).unwrap();
    let script = format!(
        "while [ ! -e /go/now ]; do sleep 0.1; done; dd if=/dev/zero of=/scratch/f bs=1M count=5; {WAIT}"
    );
    let mut hungry = pod("hungry", &[container("main", &script)]);
    let main = &mut hungry["spec"]["containers"][0];
    main["volumeMounts"] = json!([
        { "name": "scratch", "mountPath": "/scratch" }, { "name": "go", "mountPath": "/go" },
    ]);
    hungry["spec"]["volumes"] = json!([
        { "name": "scratch", "emptyDir": { "sizeLimit": "2Mi" } },
        { "name": "go", "hostPath": { "path": go.display().to_string() } },
    ]);
    world.create(&hungry);
    world.create(&pod("neighbour", &[container("main", WAIT)]));
    let uid = world.until_running("hungry")["metadata"]["uid"].clone();
    world.until_running("neighbour");
    let before = world.pods();
    let own = format!(
        "{}/kubepods/besteffort/pod{}",
        world.cgroups.path(),
        uid.as_str().expect("pods have uids")
    );
    let cgroup = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
    let cgroup = cgroup.map(|root| PathBuf::from(format!("{root}{own}")));
    let is_there = || cgroup.iter().any(|directory| directory.is_dir());
    assert!(is_there(), "{own}");
    world.set_links(Link::Cut, Link::Cut);
    std::fs::write(go.join("now"), "").unwrap();
    until("its processes have ended", || match is_there() {
        true => Err(own.clone()),
        false => Ok(()),
    });
    // The server does not know of it.
    assert_eq!(world.pods(), before);
    world.set_links(Link::Fine, Link::Fine);
    let evicted = until("the eviction is reported", || {
        let pod = world.api.get("pod hungry")?;
        match pod["status"]["reason"] == "Evicted" {
            true => Ok(pod),
            false => Err(format!("{pod:#}")),
        }
    });
    assert_eq!(evicted["status"]["phase"], "Failed");
    assert_eq!(evicted["metadata"]["uid"], uid);
    let events = until("an event reports it", || {
        let events = world.api.get("events default")?;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let evictions: Vec<Value> = events
            .into_iter()
            .filter(|event| event["reason"] == "Evicted")
            .collect();
        match evictions.is_empty() {
            true => Err("no event".to_owned()),
            false => Ok(evictions),
        }
    });
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0]["involvedObject"]["name"], "hungry");
    world.until_ready();
    let neighbour = |pods: Vec<(String, String, String, u64)>| {
        let mut pods = pods.into_iter();
        pods.find(|(name, ..)| name == "neighbour")
    };
    assert_eq!(neighbour(world.pods()), neighbour(before));
}
