//! Cost of one step of the eviction engine with 500 pods. `cargo bench -p plimsoll-core`.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use plimsoll_core::config::Profile;
use plimsoll_core::eviction::usage::PodUsage;
use plimsoll_core::eviction::{ActivePod, Candidate, Engine, Input};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::testing::{eviction_settings, memory_observation, memory_usage, pod};

const PODS: i64 = 500;
const MIB: i64 = 1 << 20;

/// Pods of four priorities and mixed requests, with limits on their disk.
fn pods() -> Vec<(Candidate, PodUsage)> {
    let one = |i: i64| {
        let spread = i * 7919 % PODS;
        let priority = i32::try_from(spread % 4).expect("a remainder of four fits");
        let builder = pod(&format!("pod-{i}"))
            .memory(&format!("{}Mi", 32 + spread % 100))
            .limit("ephemeral-storage", "1Gi")
            .priority(priority)
            .created_at(spread);
        (
            builder.candidate(Profile::Kubernetes136),
            memory_usage((16 + spread % 150) * MIB),
        )
    };
    (0..PODS).map(one).collect()
}

fn step(c: &mut Criterion) {
    let pods = pods();
    let active: Vec<ActivePod<'_>> = pods
        .iter()
        .map(|(candidate, usage)| ActivePod {
            candidate,
            usage: Some(usage),
        })
        .collect();
    let profile = Profile::Kubernetes136;
    let settings = eviction_settings(profile, profile.default_eviction_hard(), &[]);
    let engine = Engine::new(settings);
    let now = Timestamp::from_secs(1_000);
    for (name, mib) in [("at rest", 4000), ("that ranks and evicts", 50)] {
        let observation = memory_observation(mib * MIB, 8192 * MIB, now);
        c.bench_function(&format!("eviction step with 500 pods {name}"), |b| {
            b.iter_batched_ref(
                || engine.clone(),
                |engine| {
                    let input = Input::Observed {
                        observation: &observation,
                        pods: &active,
                    };
                    engine.step(now, black_box(input))
                },
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, step);
criterion_main!(benches);
