//! A server under load while it is killed, its network is cut, its disk stops and members of its etcd
//! fail: nothing acknowledged is lost, nothing happens twice, and no watch leaves out an event.
//!
//! `PLIMSOLL_FAULTS_SECONDS` sets how long each store is tried, `PLIMSOLL_FAULTS_SEED` which faults
//! come when.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::Client;
use plimsoll_testkit::proxy::{Link, Proxy};

use super::checker;
use super::load::Load;
use super::members::{MEMBERS, Members};
use super::process::Process;
use super::slow_disk::SlowDisk;

/// Enough for some of each fault; twenty minutes and more on demand.
const DEFAULT_SECONDS: u64 = 30;

const WRITERS: usize = 6;
const WATCHERS: usize = 3;

/// Enough for what a run writes.
const DISK_MIB: u64 = 1024;

/// Between two faults, in milliseconds.
const FINE: std::ops::Range<u64> = 300..1500;
/// How long a fault lasts, in milliseconds: below and above what it takes etcd to elect a leader.
const BROKEN: std::ops::Range<u64> = 100..4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KilledServer,
    CutNetwork,
    SlowNetwork,
    FrozenDisk,
    KilledMember,
    CutOffMember,
    SeparateMember,
    FrozenMember,
}

const OF_REDB: [Fault; 4] = [
    Fault::KilledServer,
    Fault::CutNetwork,
    Fault::SlowNetwork,
    Fault::FrozenDisk,
];

const OF_ETCD: [Fault; 7] = [
    Fault::KilledServer,
    Fault::CutNetwork,
    Fault::SlowNetwork,
    Fault::KilledMember,
    Fault::CutOffMember,
    Fault::SeparateMember,
    Fault::FrozenMember,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: root"]
async fn nothing_is_lost_on_redb() {
    try_store("redb", &OF_REDB, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: root"]
async fn nothing_is_lost_on_three_members_of_etcd() {
    let folder = tempfile::tempdir().unwrap();
    let members = Members::start(folder.path());
    try_store("etcd", &OF_ETCD, Some(members)).await;
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}={text}: expected a number")))
}

#[expect(
    clippy::print_stdout,
    reason = "a run that nothing ends needs a summary"
)]
async fn try_store(name: &str, faults: &[Fault], members: Option<Members>) {
    let folder = tempfile::tempdir().unwrap();
    let seconds = number("PLIMSOLL_FAULTS_SECONDS").unwrap_or(DEFAULT_SECONDS);
    let seed = number("PLIMSOLL_FAULTS_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("PLIMSOLL_FAULTS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trial = Trial::start(folder.path(), members).await;
    let load = Load::start(trial.client().await, WRITERS, WATCHERS).await;
    let mut had: BTreeMap<Fault, usize> = BTreeMap::new();
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(random.u64(FINE))).await;
        let fault = faults[random.usize(0..faults.len())];
        *had.entry(fault).or_default() += 1;
        let lasts = Duration::from_millis(random.u64(BROKEN));
        trial.suffer(fault, lasts, random.usize(0..MEMBERS)).await;
    }
    let acknowledged = load.acknowledged();
    let history = load.finish().await;
    let verdict = checker::check(&history);
    println!("{name}, {seconds} s of load, faults: {had:?}");
    println!(
        "writes acknowledged: {}, without an answer: {}, reads: {}, revisions: {}, watchers: {WATCHERS}, \
         lists again: {}, violations: {}",
        verdict.acknowledged,
        verdict.unknown,
        verdict.reads,
        verdict.revisions,
        verdict.relists,
        verdict.violations.len(),
    );
    let first: Vec<&String> = verdict.violations.iter().take(10).collect();
    assert!(first.is_empty(), "seed {seed}: {first:#?}");
    assert!(acknowledged > 100, "hardly anything was written");
}

/// A server behind a network, with what it stores in.
struct Trial {
    data: PathBuf,
    server: Option<Process>,
    proxy: Proxy,
    disk: SlowDisk,
    members: Option<Members>,
}

impl Trial {
    async fn start(folder: &Path, members: Option<Members>) -> Trial {
        let disk = SlowDisk::make(&folder.join("disk"), DISK_MIB);
        let data = disk.folder().join("data");
        let (server, address) = launch(&data, members.as_ref()).await;
        Trial {
            data,
            server: Some(server),
            proxy: Proxy::start(address).unwrap(),
            disk,
            members,
        }
    }

    /// A client whose requests go through the network of this trial.
    async fn client(&mut self) -> Client {
        let server = self.server.as_ref().expect("the server runs");
        let mut config = server.config().await;
        let uri = format!("https://{}", self.proxy.address());
        config.cluster_url = uri.parse().unwrap();
        Client::try_from(config).unwrap()
    }

    /// Has the fault, and mends it.
    async fn suffer(&mut self, fault: Fault, lasts: Duration, member: usize) {
        match fault {
            Fault::KilledServer => self.restart_server().await,
            Fault::CutNetwork => self.link(Link::Cut, lasts).await,
            Fault::SlowNetwork => {
                self.link(Link::Slow(lasts / 20, Duration::ZERO), lasts)
                    .await;
            }
            Fault::FrozenDisk => {
                self.disk.freeze(true);
                tokio::time::sleep(lasts).await;
                self.disk.freeze(false);
            }
            Fault::KilledMember => {
                self.members().kill(member);
                tokio::time::sleep(lasts).await;
                self.members().launch(member);
            }
            Fault::CutOffMember => {
                self.members().cut_off(member, true);
                tokio::time::sleep(lasts).await;
                // A server that starts while a member is away uses the others.
                if lasts.subsec_millis().is_multiple_of(4) {
                    self.restart_server().await;
                }
                self.members().cut_off(member, false);
            }
            Fault::SeparateMember => {
                self.members().separate(member, true);
                tokio::time::sleep(lasts).await;
                self.members().separate(member, false);
            }
            Fault::FrozenMember => {
                self.members().disk(member).freeze(true);
                tokio::time::sleep(lasts).await;
                self.members().disk(member).freeze(false);
            }
        }
    }

    fn members(&mut self) -> &mut Members {
        self.members.as_mut().expect("the store is etcd")
    }

    async fn link(&self, link: Link, lasts: Duration) {
        self.proxy.set_link(link);
        tokio::time::sleep(lasts).await;
        self.proxy.set_link(Link::Fine);
    }

    async fn restart_server(&mut self) {
        let server = self.server.take().expect("the server runs");
        server.kill().await;
        let (server, address) = launch(&self.data, self.members.as_ref()).await;
        self.proxy.set_server(address);
        self.server = Some(server);
    }
}

async fn launch(data: &Path, members: Option<&Members>) -> (Process, SocketAddr) {
    let store = members.map(|members| format!("etcd://{}", members.endpoints()));
    let mut server = Process::spawn_with(data, store.as_deref());
    server.wait_until_it_serves().await;
    let address = server.address().await;
    (server, address)
}
