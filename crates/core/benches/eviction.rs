//! Cost of one step of the eviction engine with 500 pods. `cargo bench -p plimsoll-core`.

#[path = "shared/eviction.rs"]
mod eviction;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use plimsoll_core::eviction::Input;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::testing::memory_observation;

const MIB: i64 = 1 << 20;

fn step(c: &mut Criterion) {
    let pods = eviction::pods();
    let active = eviction::active(&pods);
    let engine = eviction::engine();
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
