//! The rounds: what happens to the node, in an order drawn at random.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use fastrand::Rng;
use plimsoll_testkit::cgroup::processes;
use plimsoll_testkit::images::{Image, Layer, Tree};
use plimsoll_testkit::inventory::Inventory;
use plimsoll_testkit::waiting::{until, until_within};
use serde_json::{Value, json};

use crate::agent_usage::AgentUsage;
use crate::cluster::{Cluster, Runtime, configured};
use crate::ledger::Ledger;
use crate::manifest::status;
use crate::rules;
use crate::workload::{self, CONFIG_MAP, Company, OTHER_IMAGE, Role};

/// What the played machine has; its lines are at 260 and 200 MiB.
const CAPACITY: &str = "cpu=4,memory=700Mi";

/// More pods at once would be slow and find nothing more.
const MOST_PODS: usize = 10;

/// How long what is left of deleted pods may take to go.
const SETTLING: Duration = Duration::from_secs(30);

/// An agent whose descriptors are the same for so long is at rest.
const REST: Duration = Duration::from_secs(2);

/// How long after something has happened both sides of it have been seen.
const PATIENCE_OF_JUDGES: Duration = Duration::from_secs(5);

/// What an hour of it would be, and what three minutes have to hold instead.
const ENOUGH_PODS: usize = 150;
const ENOUGH_EVICTIONS: usize = 30;
const ENOUGH_RESTARTS: usize = 8;

/// For how long the API server remembers what was changed, and a bit.
const REMEMBERED: Duration = Duration::from_secs(320);

/// How pods are deleted.
const DELETIONS: [&str; 3] = [
    "--wait=false",
    "--now --wait=false",
    "--force --grace-period=0 --wait=false",
];

/// A pod that should be there.
struct Actor {
    name: String,
    role: Role,
}

/// A container that runs: its id and its processes.
type Running = (Value, BTreeSet<u32>);

/// A node, its pods, and the watchers.
pub(crate) struct Soak {
    // Dropped first: it uses the cluster.
    ledger: Ledger,
    cluster: Cluster,
    random: Rng,
    actors: Vec<Actor>,
    begun: Instant,
    restarted: Instant,
    pods: usize,
    /// When the pods were made that the agent may remember.
    remembered: VecDeque<Instant>,
    restarts: usize,
    /// Whether the agent is ended at all: one that grows is seen only in the long run.
    may_restart: bool,
    /// What was there before the first pod.
    empty: Inventory,
    /// What the agent took when it had seen everything once.
    warm: AgentUsage,
}

impl Soak {
    /// Makes the node, which is empty.
    pub(crate) fn start(seed: u64) -> Soak {
        let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
            let settings = json!({
                "evictionHard": { "memory.available": "200Mi" },
                "evictionSoft": { "memory.available": "260Mi" },
                "evictionSoftGracePeriod": { "memory.available": "2s" },
                "evictionMaxPodGracePeriod": 1,
                "evictionPressureTransitionPeriod": "1s",
            });
            let mut arguments = configured(folder, &settings);
            arguments.extend(["--capacity", CAPACITY].map(str::to_owned));
            arguments
        });
        let more = Tree::new().file("more", 0o644, b"one more layer");
        let mut other = Image::busybox();
        other.layers.push(Layer::gzip(more.into_tar()));
        cluster.import(&other, OTHER_IMAGE);
        cluster.create(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": CONFIG_MAP }, "data": { "word": "soak" },
        }));
        let now = Instant::now();
        Soak {
            ledger: Ledger::keep(cluster.data_dir().join("admin.kubeconfig")),
            random: Rng::with_seed(seed),
            actors: Vec::new(),
            begun: now,
            restarted: now,
            pods: 0,
            remembered: VecDeque::new(),
            restarts: 0,
            may_restart: false,
            empty: Inventory::default(),
            warm: AgentUsage::default(),
            cluster,
        }
    }

    /// Has everything once, so that what is made only once is there.
    pub(crate) fn warm_up(&mut self) {
        self.empty = self.inventory();
        self.begin(&[Role::Calm, Role::Keeper, Role::Finisher, Role::Crasher]);
        self.look_in();
        self.hogs(1);
        self.clear();
        self.settle();
        self.warm = self.usage_at_rest();
        self.say("warm");
        self.may_restart = true;
    }

    /// Some come, something happens, some go.
    pub(crate) fn round(&mut self) {
        let room = MOST_PODS.saturating_sub(self.actors.len());
        let count = self.random.usize(2..=5).min(room);
        let roles: Vec<Role> = (0..count).map(|_| Role::any(&mut self.random)).collect();
        self.begin(&roles);
        match self.random.u8(0..6) {
            0 => self.hogs(1),
            1..=2 => self.hogs(2),
            3 if self.may_restart => self.unwatched_hog(),
            3 => self.hogs(1),
            4 if self.may_restart => self.restart(),
            _ => self.look_in(),
        }
        let count = self.random.usize(1..=5);
        self.delete_some(count);
        self.judge();
    }

    /// Whether as much has happened as in an hour.
    pub(crate) fn has_seen_enough(&self) -> bool {
        let evictions = self.ledger.seen().evictions();
        self.pods >= ENOUGH_PODS
            && evictions >= ENOUGH_EVICTIONS
            && self.restarts >= ENOUGH_RESTARTS
    }

    /// Everything goes; nothing may be left. From one of these to the next but one, the agent stays.
    pub(crate) fn quiet(&mut self) {
        self.clear();
        self.settle();
        self.judge();
        self.say("quiet");
        self.may_restart = !self.may_restart;
    }

    /// The last word.
    pub(crate) fn end(self) {
        let evictions = self.ledger.seen().evictions();
        assert!(evictions > 0, "no pod was evicted: the soak proves nothing");
    }

    fn name(&mut self, role: Role) -> String {
        self.pods += 1;
        self.remembered.push_back(Instant::now());
        format!("{role}-{}", self.pods)
    }

    /// Starts pods and waits until they are what they are there for. At times the agent is gone
    /// while they start.
    fn begin(&mut self, roles: &[Role]) {
        if roles.is_empty() {
            return;
        }
        let mut manifests = Vec::new();
        for role in roles {
            let name = self.name(*role);
            manifests.push(workload::manifest(&name, *role, &mut self.random));
            self.actors.push(Actor { name, role: *role });
        }
        self.cluster.create_all(manifests);
        if self.may_restart && self.random.u8(0..4) == 0 {
            self.restart();
        }
        let from = self.actors.len() - roles.len();
        for actor in &self.actors[from..] {
            self.until_begun(actor);
        }
        let seen = |actor: &Actor| {
            let pod = self.cluster.get(&format!("pod {}", actor.name));
            !rules::is_refused(&pod)
        };
        let (stay, refused): (Vec<Actor>, Vec<Actor>) =
            std::mem::take(&mut self.actors).into_iter().partition(seen);
        self.actors = stay;
        self.delete(refused.into_iter().map(|actor| actor.name), DELETIONS[0]);
    }

    fn until_begun(&self, actor: &Actor) {
        let wanted = format!("begun as a {}", actor.role);
        let pod = self
            .cluster
            .until_object(&format!("pod {}", actor.name), &wanted, |pod| {
                let phase = pod["status"]["phase"].as_str().unwrap_or_default();
                let main = &pod["status"]["containerStatuses"][0];
                rules::is_refused(pod)
                    || match actor.role {
                        Role::Calm | Role::Stubborn | Role::Keeper => main["ready"] == true,
                        Role::Finisher => phase == "Succeeded",
                        Role::Failure | Role::Glutton | Role::Hog => phase == "Failed",
                        Role::Crasher => {
                            main["restartCount"].as_i64().is_some_and(|count| count > 0)
                        }
                    }
            });
        if actor.role == Role::Glutton && !rules::is_refused(&pod) {
            assert!(rules::is_oom_killed(&pod), "{pod:#}");
        }
        self.ledger.seen().take(&pod);
    }

    /// Runs the node dry, with so many hogs at once.
    fn hogs(&mut self, count: usize) {
        let company = match count {
            1 => Company::Agent,
            _ => Company::Hogs,
        };
        let mut manifests = Vec::new();
        let mut names = Vec::new();
        for _ in 0..count {
            let name = self.name(Role::Hog);
            manifests.push(workload::hog_manifest(&name, company, &mut self.random));
            names.push(name);
        }
        self.cluster.create_all(manifests);
        for name in &names {
            self.until_evicted(name, false);
        }
        self.delete(names, DELETIONS[0]);
    }

    /// The agent is ended while a hog takes memory.
    fn unwatched_hog(&mut self) {
        let name = self.name(Role::Hog);
        let manifest = workload::hog_manifest(&name, Company::None, &mut self.random);
        self.cluster.create(&manifest);
        let object = format!("pod {name}");
        self.cluster.until_object(&object, "on its way", |pod| {
            let main = &pod["status"]["containerStatuses"][0];
            !main["state"]["running"].is_null() || pod["status"]["phase"] == "Failed"
        });
        self.restart();
        self.until_evicted(&name, true);
        self.delete([name], DELETIONS[0]);
    }

    /// Waits for the end of a hog. One that was not watched may have been killed by the kernel, or
    /// have ended before its reason was visible.
    fn until_evicted(&self, name: &str, is_excused: bool) {
        let pod = self.cluster.until_phase(name, "Failed");
        self.ledger.seen().take(&pod);
        let is_evicted = rules::is_evicted(&pod);
        let is_fine = is_evicted || is_excused || rules::is_refused(&pod);
        assert!(is_fine, "not evicted: {pod:#}");
        let how = match (is_evicted, rules::is_oom_killed(&pod)) {
            (true, _) => "evicted",
            (_, true) => "killed by the kernel while the agent was away",
            _ if rules::is_refused(&pod) => "refused",
            _ => "ended while the agent was away",
        };
        eprintln!("{:>5}s {name} {how}", self.begun.elapsed().as_secs());
    }

    /// Ends the agent, with or without warning, and starts it again: all containers are the same.
    fn restart(&mut self) {
        let before = self.running();
        match self.random.bool() {
            true => self.cluster.kill(),
            false => self.cluster.interrupt(),
        }
        self.cluster.start_again();
        self.restarts += 1;
        self.restarted = Instant::now();
        self.remembered.clear();
        for (name, (id, processes)) in before {
            let object = format!("pod {name}");
            let pod = self.cluster.until_object(&object, "known", |pod| {
                let is_over = pod["status"]["phase"] == "Failed";
                is_over || status(pod, "main")["ready"] == true
            });
            self.ledger.seen().take(&pod);
            assert_ne!(pod["status"]["phase"], "Failed", "{pod:#}");
            assert_eq!(status(&pod, "main")["containerID"], id, "{pod:#}");
            let now = self.processes(&pod);
            let are_same = processes.is_empty() || !now.is_disjoint(&processes);
            assert!(are_same, "{name} ran as {processes:?} and runs as {now:?}");
        }
    }

    /// The containers that have to outlive an agent.
    fn running(&self) -> BTreeMap<String, Running> {
        let stay = self.actors.iter().filter(|actor| actor.role.stays());
        let pods = stay.map(|actor| self.cluster.get(&format!("pod {}", actor.name)));
        let begun = pods.filter(|pod| pod["status"]["containerStatuses"][0]["ready"] == true);
        begun
            .map(|pod| {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                let id = status(&pod, "main")["containerID"].clone();
                (name.to_owned(), (id, self.processes(&pod)))
            })
            .collect()
    }

    /// The processes of a pod's container.
    fn processes(&self, pod: &Value) -> BTreeSet<u32> {
        let tier = match pod["status"]["qosClass"].as_str() {
            Some("Burstable") => "/burstable",
            Some("BestEffort") => "/besteffort",
            _ => "",
        };
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let id = crate::manifest::container_id(pod, "main");
        let root = self.cluster.cgroup_root();
        let path = format!("{root}/kubepods{tier}/pod{uid}/{id}");
        processes(&path).into_iter().collect()
    }

    /// Reads a log and runs a command.
    fn look_in(&mut self) {
        let stay = self.actors.iter().filter(|actor| actor.role.stays());
        let names: Vec<String> = stay.map(|actor| actor.name.clone()).collect();
        if let Some(name) = self.random.choice(&names) {
            self.cluster.shows(&format!("logs {name}"), "begun\n");
            let said = self.cluster.kubectl(&format!("exec {name} -- echo hello"));
            assert_eq!(said, "hello\n", "{name}");
        }
    }

    /// Deletes so many pods, or all there are.
    fn delete_some(&mut self, count: usize) {
        self.random.shuffle(&mut self.actors);
        let stay = self.actors.len().saturating_sub(count);
        let gone: Vec<Actor> = self.actors.drain(stay..).collect();
        let how = DELETIONS[self.random.usize(..DELETIONS.len())];
        self.delete(gone.into_iter().map(|actor| actor.name), how);
    }

    /// Deletes pods, all with one command.
    fn delete(&self, names: impl IntoIterator<Item = String>, how: &str) {
        let names: Vec<String> = names.into_iter().collect();
        if !names.is_empty() {
            let names = names.join(" ");
            self.cluster.kubectl(&format!("delete pod {names} {how}"));
        }
    }

    /// Deletes all pods.
    fn clear(&mut self) {
        while !self.actors.is_empty() {
            self.delete_some(3);
        }
        until("all pods are gone", || {
            let left = self.cluster.kubectl("get pods -o name");
            if left.is_empty() { Ok(()) } else { Err(left) }
        });
    }

    /// What the node has of its pods.
    fn inventory(&self) -> Inventory {
        Inventory::of_pods(&self.cluster.place(), self.cluster.up.id())
    }

    /// Waits until nothing is left of any pod, and the agent takes no more than it did.
    fn settle(&mut self) {
        until_within(SETTLING, "nothing is left of deleted pods", || {
            let left = self.inventory().beyond(&self.empty);
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{left:#?}"))
            }
        });
        if self.warm == AgentUsage::default() {
            return;
        }
        self.remembered.retain(|made| made.elapsed() < REMEMBERED);
        let remembered = self.remembered.len();
        until_within(SETTLING, "the agent takes no more than it did", || {
            let now = AgentUsage::of(self.cluster.up.id());
            match now.is_like(&self.warm, remembered) {
                true => Ok(()),
                false => Err(now.beyond(&self.warm)),
            }
        });
    }

    /// What the agent takes once it has let go of what it needs for a moment only.
    fn usage_at_rest(&self) -> AgentUsage {
        let mut last = (AgentUsage::of(self.cluster.up.id()), Instant::now());
        until_within(SETTLING, "the agent's descriptors come to rest", || {
            let now = AgentUsage::of(self.cluster.up.id());
            if !now.is_at_rest(&last.0) {
                last = (now.clone(), Instant::now());
            }
            match last.1.elapsed() >= REST {
                true => Ok(now),
                false => Err(now.to_string()),
            }
        })
    }

    /// No rule is broken. The watchers may be a moment late: a pod may be known to be evicted before
    /// the record of that is.
    fn judge(&self) {
        until_within(PATIENCE_OF_JUDGES, "all rules hold", || {
            let broken = self.ledger.seen().broken();
            if broken.is_empty() {
                Ok(())
            } else {
                Err(broken.join("\n"))
            }
        });
    }

    fn say(&self, what: &str) {
        let usage = AgentUsage::of(self.cluster.up.id());
        let evictions = self.ledger.seen().evictions();
        let (at, age) = (
            self.begun.elapsed().as_secs(),
            self.restarted.elapsed().as_secs(),
        );
        eprintln!(
            "{at:>5}s {what}: {} pods, {evictions} evicted, {} restarts; agent of {age} s that remembers {} pods: {usage}",
            self.pods,
            self.restarts,
            self.remembered.len(),
        );
        for more in usage.more_descriptors(&self.warm) {
            eprintln!("       {more}");
        }
    }
}
