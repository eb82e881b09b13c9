//! Three members of an etcd cluster, each with a network namespace and a disk of its own, so that each
//! can be killed, cut off and slowed down while the others keep running.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};

use plimsoll_testkit::claim::Number;
use plimsoll_testkit::waiting::until;

use super::slow_disk::SlowDisk;

pub(crate) const MEMBERS: usize = 3;

/// Enough for what a run writes.
const DISK_MIB: u64 = 512;

/// In milliseconds. A tenth of etcd's defaults would elect leaders for want of a processor alone.
const HEARTBEAT: &str = "100";
const ELECTION: &str = "1000";

pub(crate) struct Members {
    network: Network,
    members: Vec<Member>,
}

struct Member {
    disk: SlowDisk,
    process: Option<Child>,
}

impl Members {
    pub(crate) fn start(folder: &Path) -> Members {
        let network = Network::make();
        let members = (0..MEMBERS).map(|member| Member {
            disk: SlowDisk::make(&folder.join(format!("disk-{member}")), DISK_MIB),
            process: None,
        });
        let mut members = Members {
            members: members.collect(),
            network,
        };
        for member in 0..MEMBERS {
            members.launch(member);
        }
        let cluster = members.endpoints();
        until("etcd has a leader", || {
            let mut health = Command::new("etcdctl");
            health.env("ETCDCTL_API", "3");
            health.args(["--endpoints", &cluster, "endpoint", "health"]);
            match health.output() {
                Ok(output) if output.status.success() => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        members
    }

    /// `HOST:PORT,…`, as the server's `--store` takes it.
    pub(crate) fn endpoints(&self) -> String {
        let endpoint = |member| format!("{}:2379", self.network.address(member));
        let all: Vec<String> = (0..MEMBERS).map(endpoint).collect();
        all.join(",")
    }

    /// Kills a member without warning.
    pub(crate) fn kill(&mut self, member: usize) {
        if let Some(mut process) = self.members[member].process.take() {
            // Fails only if it has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub(crate) fn launch(&mut self, member: usize) {
        let disk = self.members[member].disk.folder().to_owned();
        let peer = |member| format!("http://{}:2380", self.network.address(member));
        let cluster = (0..MEMBERS).map(|other| format!("m{other}={}", peer(other)));
        let cluster: Vec<String> = cluster.collect();
        let client = format!("http://{}:2379", self.network.address(member));
        let log = disk.with_extension("log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.network.namespace(member), "etcd"])
            .args(["--name", &format!("m{member}")])
            .arg("--data-dir")
            .arg(disk.join("data"))
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer(member)])
            .args(["--initial-advertise-peer-urls", &peer(member)])
            .args(["--initial-cluster", &cluster.join(",")])
            .args(["--heartbeat-interval", HEARTBEAT])
            .args(["--election-timeout", ELECTION])
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let process = command.spawn();
        self.members[member].process = Some(process.expect("ip and etcd are installed"));
    }

    /// Nothing reaches the member, and nothing that it sends arrives.
    pub(crate) fn cut_off(&self, member: usize, is_cut: bool) {
        let state = if is_cut { "down" } else { "up" };
        ip(&format!("link set {} {state}", self.network.card(member)));
    }

    /// The member and the others do not reach each other; the server reaches all.
    pub(crate) fn separate(&self, member: usize, is_separate: bool) {
        let action = if is_separate { "add" } else { "del" };
        let own = self.network.namespace(member);
        for other in (0..MEMBERS).filter(|other| *other != member) {
            let address = self.network.address(other);
            ip(&format!("-n {own} route {action} blackhole {address}/32"));
        }
    }

    pub(crate) fn disk(&self, member: usize) -> &SlowDisk {
        &self.members[member].disk
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in 0..MEMBERS {
            // A process that waits for its disk does not end.
            self.members[member].disk.freeze(false);
            self.kill(member);
        }
    }
}

/// A bridge with a namespace for each member.
struct Network {
    number: Number,
}

impl Network {
    fn make() -> Network {
        let network = Network {
            number: Number::claim(),
        };
        let number = network.number.value();
        network.remove();
        let bridge = network.bridge();
        ip(&format!("link add {bridge} type bridge"));
        ip(&format!("addr add 10.124.{number}.1/24 dev {bridge}"));
        ip(&format!("link set {bridge} up"));
        for member in 0..MEMBERS {
            let (own, card) = (network.namespace(member), network.card(member));
            let address = network.address(member);
            ip(&format!("netns add {own}"));
            ip(&format!(
                "link add {card} type veth peer name eth0 netns {own}"
            ));
            ip(&format!("link set {card} master {bridge} up"));
            ip(&format!("-n {own} addr add {address}/24 dev eth0"));
            ip(&format!("-n {own} link set eth0 up"));
            ip(&format!("-n {own} link set lo up"));
        }
        network
    }

    fn bridge(&self) -> String {
        format!("pfault{}", self.number.value())
    }

    fn namespace(&self, member: usize) -> String {
        format!("pfault{}-{member}", self.number.value())
    }

    fn card(&self, member: usize) -> String {
        format!("pfault{}h{member}", self.number.value())
    }

    fn address(&self, member: usize) -> String {
        format!("10.124.{}.{}", self.number.value(), 11 + member)
    }

    /// Removes also what a run left behind that was killed.
    fn remove(&self) {
        let quietly = |arguments: &str| {
            // Fails where there is nothing to remove.
            let _ = Command::new("ip").args(arguments.split(' ')).output();
        };
        for member in 0..MEMBERS {
            quietly(&format!("link del {}", self.card(member)));
            quietly(&format!("netns del {}", self.namespace(member)));
        }
        quietly(&format!("link del {}", self.bridge()));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.expect("ip is installed");
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}
