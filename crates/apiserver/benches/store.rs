//! Throughput of the embedded store, with every write durable.
//!
//!     cargo bench -p plimsoll-apiserver --bench store
//!
//! The file is in the temporary directory (`TMPDIR`); its disk determines the result. Values have
//! one kibibyte.

#![expect(clippy::print_stdout, reason = "the numbers are the product")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use plimsoll_apiserver::store::{
    Outcome, RangeRequest, RedbOptions, RedbStore, Store, Txn, WatchRequest,
};

const PER_WRITER: usize = 3_000;
const VALUE_BYTES: usize = 1024;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(run());
}

async fn run() {
    for writers in [1, 8, 32, 128] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = open(&folder);
        let count = if writers == 1 {
            1
        } else {
            PER_WRITER * 32 / writers
        };
        let count = count.max(PER_WRITER / 3);
        report(
            &format!("create, {writers} writers"),
            create(&store, writers, count).await,
        );
        if writers == 32 {
            report("update, 32 writers", update(&store, writers, count).await);
            report("get", get(&store, writers, count).await);
            report("range of 500", range(&store).await);
            store.close().await.expect("closes");
            drop(store);
            let start = Instant::now();
            let store = open(&folder);
            println!(
                "{:<24} {:>8.1} ms",
                "open",
                start.elapsed().as_secs_f64() * 1e3
            );
            watched(&store).await;
        }
    }
}

fn open(folder: &tempfile::TempDir) -> Arc<RedbStore> {
    let path = folder.path().join("store.redb");
    Arc::new(RedbStore::open(&path, &RedbOptions::default()).expect("opens"))
}

fn key(writer: usize, number: usize) -> Bytes {
    format!("/registry/pods/default/web-{writer}-{number}").into()
}

async fn create(store: &Arc<RedbStore>, writers: usize, count: usize) -> Sample {
    Sample::of(store, writers, count, |store, writer, number| async move {
        let outcome = store
            .txn(Txn::create(key(writer, number), vec![b'x'; VALUE_BYTES]))
            .await;
        assert!(
            matches!(outcome, Ok(Outcome::Committed { .. })),
            "{outcome:?}"
        );
    })
    .await
}

async fn update(store: &Arc<RedbStore>, writers: usize, count: usize) -> Sample {
    Sample::of(store, writers, count, |store, writer, number| async move {
        let key = key(writer, number);
        let entry = store
            .get(&key, None)
            .await
            .expect("reads")
            .entry
            .expect("exists");
        let txn = Txn::update(key, entry.mod_revision, vec![b'y'; VALUE_BYTES]);
        let outcome = store.txn(txn).await;
        assert!(
            matches!(outcome, Ok(Outcome::Committed { .. })),
            "{outcome:?}"
        );
    })
    .await
}

async fn get(store: &Arc<RedbStore>, writers: usize, count: usize) -> Sample {
    Sample::of(store, writers, count, |store, writer, number| async move {
        let found = store.get(&key(writer, number), None).await.expect("reads");
        assert!(found.entry.is_some());
    })
    .await
}

async fn range(store: &Arc<RedbStore>) -> Sample {
    Sample::of(store, 1, 500, |store, _, number| async move {
        let mut request = RangeRequest::prefix("/registry/pods/");
        request.start = Some(key(number % 32, 0));
        request.limit = Some(500);
        let page = store.range(request).await.expect("reads");
        assert_eq!(page.entries.len(), 500);
    })
    .await
}

/// Creates with a watcher on each of fifty prefixes, and one on everything.
async fn watched(store: &Arc<RedbStore>) {
    let after = store.current_revision().await.expect("a revision");
    let mut watches = Vec::new();
    for kind in 0..50 {
        let prefix = if kind == 0 {
            "/registry/pods/".to_owned()
        } else {
            format!("/registry/k{kind}/")
        };
        let request = WatchRequest {
            prefix: prefix.into(),
            after,
            with_previous: true,
        };
        watches.push(store.watch(request).await.expect("watches"));
    }
    let (writers, count) = (32, PER_WRITER / 3);
    let mut first = watches.remove(0);
    let reader = tokio::spawn(async move {
        for _ in 0..writers * count {
            first.next().await.expect("keeps up");
        }
    });
    let sample = Sample::of(store, writers, count, |store, writer, number| async move {
        let key = key(writer + 1000, number);
        store
            .txn(Txn::create(key, vec![b'x'; VALUE_BYTES]))
            .await
            .expect("commits");
    });
    report("create, 50 watchers", sample.await);
    reader.await.expect("every change arrives");
}

struct Sample {
    elapsed: Duration,
    /// Of all threads.
    cpu: Duration,
    latencies: Vec<Duration>,
}

impl Sample {
    async fn of<F: Future<Output = ()> + Send>(
        store: &Arc<RedbStore>,
        tasks: usize,
        count: usize,
        operation: impl Fn(Arc<RedbStore>, usize, usize) -> F + Copy + Send + 'static,
    ) -> Self {
        let start = Instant::now();
        let cpu = cpu_time();
        let mut running = Vec::new();
        for task in 0..tasks {
            let store = Arc::clone(store);
            running.push(tokio::spawn(async move {
                let mut latencies = Vec::with_capacity(count);
                for number in 0..count {
                    let start = Instant::now();
                    operation(Arc::clone(&store), task, number).await;
                    latencies.push(start.elapsed());
                }
                latencies
            }));
        }
        let mut latencies = Vec::new();
        for task in running {
            latencies.extend(task.await.expect("the task ends well"));
        }
        let elapsed = start.elapsed();
        latencies.sort_unstable();
        Self {
            elapsed,
            cpu: cpu_time().saturating_sub(cpu),
            latencies,
        }
    }
}

/// The CPU time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    // The name, in brackets, may contain anything; user and system time are fields 14 and 15.
    let (_, after_name) = stat.rsplit_once(')').expect("the name is in brackets");
    let fields = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn report(what: &str, sample: Sample) {
    let at = |part: usize| sample.latencies[(sample.latencies.len() - 1) * part / 100];
    let count = u32::try_from(sample.latencies.len()).expect("a small number");
    let per_second = f64::from(count) / sample.elapsed.as_secs_f64();
    let (p50, p99, cpu) = (at(50), at(99), sample.cpu / count);
    println!(
        "{what:<24} {per_second:>8.0} /s   p50 {p50:>8.2?}   p99 {p99:>8.2?}   cpu {cpu:>8.2?} each"
    );
}
