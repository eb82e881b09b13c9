//! What engines do once or several times, for a program that counts instructions.
//!
//! `scripts/bench engine` runs each case under callgrind with no repetition and with many: the
//! difference is what the repetitions cost, the same on every run and however busy the machine is.
//! Without arguments the cases are listed; a case and a number do it that often.

#![expect(clippy::unwrap_used, reason = "the objects are written below")]
#![expect(clippy::print_stdout, reason = "the list is read")]

#[path = "shared/cluster.rs"]
mod cluster;
#[path = "shared/eviction.rs"]
mod eviction;

use std::hint::black_box;

use plimsoll_core::eviction::{Engine, Input};
use plimsoll_core::object::pod::{Overhead, PodView};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::scheduling::decision::Decision;
use plimsoll_core::testing::memory_observation;

const NODES: usize = 500;

type Case = (&'static str, fn(usize));

const CASES: [Case; 7] = [
    ("quantity, parse and print 1536Mi", quantity),
    ("pod view with requests, limits and QoS class", pod_view),
    ("schedule a plain pod, 500 nodes", |times| {
        schedule("basic", times)
    }),
    ("schedule a pod with node affinity, 500 nodes", |times| {
        schedule("node affinity", times)
    }),
    ("schedule a pod with spread, 500 nodes", |times| {
        schedule("spread (zone + host)", times)
    }),
    ("eviction step, 500 pods, nothing short", |times| {
        evict(4000, times)
    }),
    ("eviction step, 500 pods, one evicted", |times| {
        evict(50, times)
    }),
];

fn quantity(times: usize) {
    for _ in 0..times {
        let parsed = black_box("1536Mi").parse::<Quantity>();
        black_box(parsed.unwrap().to_string());
    }
}

fn pod_view(times: usize) {
    let api = plimsoll_core::testing::pod("web")
        .cpu("250m")
        .limit("memory", "128Mi")
        .container("proxy")
        .memory("32Mi")
        .build();
    for _ in 0..times {
        let view = PodView::from_api(black_box(&api)).unwrap();
        let requests = view.requests(Overhead::Included);
        black_box((requests, view.limits(Overhead::Included), view.qos_class()));
    }
}

/// Decides and carries out. The first pod of a shape looks at every node; it is not counted.
fn schedule(kind: &str, times: usize) {
    let mut engine = cluster::cluster(NODES);
    let (_, spec) = cluster::scenarios()
        .into_iter()
        .find(|(name, _)| *name == kind)
        .unwrap();
    let incoming = |serial: usize| cluster::pod(format!("incoming-{serial}"), "incoming", &spec);
    // The pods are made in any case.
    let pods: Vec<_> = (0..=MOST).map(incoming).collect();
    for pod in &pods[..=times] {
        let decision = engine.schedule(0, pod);
        let Ok(Decision::Place(placement)) = decision else {
            panic!("there is no room");
        };
        let name = engine
            .cluster()
            .node(placement.slot)
            .unwrap()
            .view
            .name
            .clone();
        engine.change(|cluster| cluster.assume_pod(pod.clone(), &name));
    }
}

fn evict(available_mib: i64, times: usize) {
    let pods = eviction::pods();
    let active = eviction::active(&pods);
    let engine = eviction::engine();
    let now = Timestamp::from_secs(1_000);
    let observation = memory_observation(available_mib << 20, 8192 << 20, now);
    let mut engines: Vec<Engine> = (0..MOST).map(|_| engine.clone()).collect();
    for engine in &mut engines[..times] {
        let input = Input::Observed {
            observation: &observation,
            pods: &active,
        };
        black_box(engine.step(now, black_box(input)));
    }
}

/// Repetitions at most.
const MOST: usize = 200;

fn main() {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let [case, times] = words.as_slice() else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return;
    };
    let (_, run) = CASES.iter().find(|(name, _)| name == case).unwrap();
    run(times.parse::<usize>().unwrap().min(MOST));
}
