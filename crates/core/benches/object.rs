//! Cost of the numbers and of one pod view. `cargo bench -p plimsoll-core`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use plimsoll_core::object::pod::{Overhead, PodView};
use plimsoll_core::quantity::Quantity;
use plimsoll_core::testing::pod;

fn quantity(c: &mut Criterion) {
    for text in ["100m", "1536Mi", "1.5Gi", "123456789123456789012"] {
        c.bench_function(&format!("quantity parse+print {text}"), |b| {
            b.iter(|| black_box(text).parse::<Quantity>().map(|q| q.to_string()));
        });
    }
}

/// Two app containers and requests and limits of cpu and memory on each.
fn pod_view(c: &mut Criterion) {
    let api = pod("web")
        .cpu("250m")
        .memory("64Mi")
        .limit("cpu", "1")
        .limit("memory", "128Mi")
        .container("proxy")
        .cpu("100m")
        .memory("32Mi")
        .limit("cpu", "500m")
        .limit("memory", "64Mi")
        .build();
    c.bench_function("pod view of a typical pod", |b| {
        b.iter(|| PodView::from_api(black_box(&api)));
    });
    c.bench_function("pod view, requests, limits and QoS class", |b| {
        b.iter(|| {
            let view = PodView::from_api(black_box(&api)).expect("well formed");
            let requests = view.requests(Overhead::Included);
            (requests, view.limits(Overhead::Included), view.qos_class())
        });
    });
}

criterion_group!(benches, quantity, pod_view);
criterion_main!(benches);
