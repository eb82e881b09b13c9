//! Watch: 1,000 watchers of one kind while its objects change. With a connection each they need
//! `ulimit -n 4096`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::sync::watch;

use crate::figure::{Better, print};
use crate::link::{Cluster, request};
use crate::stage::Stage;
use crate::times::Times;

const WATCHERS: usize = 1000;
const OBJECTS: usize = 200;
const WRITERS: usize = 4;
const CHANGES_PER_SECOND: u32 = 200;
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(10);

/// How long a watcher may be behind at the end.
const CATCH_UP: Duration = Duration::from_secs(1);

/// One watcher in so many reads when the change was requested; all count their events.
const TIMED_EVERY: usize = 10;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// How watchers share connections.
enum Sharing {
    /// HTTP/1.1, one each.
    None,
    /// HTTP/2, so many in all.
    Connections(usize),
}

/// What all tasks share.
struct Run {
    begun: Instant,
    changed: AtomicU64,
    delivered: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    WarmUp,
    Measured,
    CatchUp,
    End,
}

/// Watchers that share connections, as those of controllers do.
pub(crate) async fn run() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.server()?;
    let cluster = Arc::new(Cluster::of(&stage.kubeconfig()).await?);
    measure(&cluster, Sharing::Connections(8), "watch, 8 connections").await;
    Ok(())
}

/// Watchers with a connection each, as agents have.
pub(crate) async fn run_own() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.server()?;
    let cluster = Arc::new(Cluster::of(&stage.kubeconfig()).await?);
    measure(&cluster, Sharing::None, "watch, own connections").await;
    Ok(())
}

async fn measure(cluster: &Arc<Cluster>, sharing: Sharing, name: &str) {
    make_objects(cluster).await;
    let run = Arc::new(Run {
        begun: Instant::now(),
        changed: AtomicU64::new(0),
        delivered: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let (stage, stages) = watch::channel(Phase::WarmUp);
    let responses = open(cluster, &sharing).await.into_iter().enumerate();
    let watching = responses.map(|(number, response)| {
        let is_timed = number % TIMED_EVERY == 0;
        tokio::spawn(read(response, Arc::clone(&run), stages.clone(), is_timed))
    });
    let watching: Vec<_> = watching.collect();
    let writing = (0..WRITERS).map(|number| {
        let (cluster, run, stages) = (Arc::clone(cluster), Arc::clone(&run), stages.clone());
        tokio::spawn(write(cluster, run, stages, number))
    });
    let writing: Vec<_> = writing.collect();
    tokio::time::sleep(WARM_UP).await;
    stage.send_replace(Phase::Measured);
    let before = run.counts();
    let begun = Instant::now();
    tokio::time::sleep(MEASURED).await;
    let seconds = begun.elapsed().as_secs_f64();
    let after = run.counts();
    stage.send_replace(Phase::CatchUp);
    for writer in writing {
        writer.await.expect("a writer");
    }
    tokio::time::sleep(CATCH_UP).await;
    let [changed, delivered, _] = run.counts();
    stage.send_replace(Phase::End);
    let mut times = Times::default();
    for watcher in watching {
        times.extend(watcher.await.expect("a watcher"));
    }
    #[expect(clippy::cast_precision_loss, reason = "rates for people")]
    let rates: Vec<f64> = before
        .iter()
        .zip(after)
        .map(|(before, after)| (after - before) as f64 / seconds)
        .collect();
    let figure = |what: &str| format!("{name}: {what}");
    print(&figure("deliveries"), rates[1], "/s", Better::Higher);
    times.print(&figure("request to watcher"));
    let owed = (changed * WATCHERS as u64).saturating_sub(delivered);
    assert_eq!(
        owed, 0,
        "deliveries are missing a second after the last change"
    );
}

impl Run {
    fn counts(&self) -> [u64; 3] {
        [&self.changed, &self.delivered, &self.bytes].map(|count| count.load(Ordering::Relaxed))
    }
}

async fn make_objects(cluster: &Cluster) {
    let mut maker = cluster.own().await;
    for number in 0..OBJECTS {
        let lease = format!(
            "{{\"metadata\":{{\"name\":\"l{number}\"}},\"spec\":{{\"leaseDurationSeconds\":40}}}}"
        );
        let made = request("POST", LEASES, "application/json", lease);
        let made = maker.send(made).await;
        assert_eq!(made.status(), 201);
        made.into_body().collect().await.expect("a body");
    }
}

/// All watches, started.
async fn open(cluster: &Cluster, sharing: &Sharing) -> Vec<Response<Incoming>> {
    let watch = || -> Request<Full<Bytes>> {
        let path = format!(
            "{LEASES}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        );
        request("GET", &path, "application/json", String::new())
    };
    let mut responses = Vec::with_capacity(WATCHERS);
    match sharing {
        Sharing::None => {
            for _ in 0..WATCHERS {
                responses.push(cluster.own().await.send(watch()).await);
            }
        }
        Sharing::Connections(count) => {
            for _ in 0..*count {
                let mut link = cluster.shared().await;
                for _ in 0..WATCHERS / count {
                    responses.push(link.send(watch()).await);
                }
            }
        }
    }
    assert!(responses.iter().all(|response| response.status() == 200));
    responses
}

/// Counts what arrives until the end.
async fn read(
    response: Response<Incoming>,
    run: Arc<Run>,
    mut stages: watch::Receiver<Phase>,
    is_timed: bool,
) -> Times {
    let mut body = response.into_body();
    let mut times = Times::default();
    let mut line = Vec::new();
    let mut end = stages.clone();
    let end = end.wait_for(|stage| *stage == Phase::End);
    let mut end = std::pin::pin!(end);
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            _ = &mut end => return times,
        };
        let frame = frame.expect("the watch continues").expect("a frame");
        let data = frame.into_data().unwrap_or_default();
        let lines = data.iter().filter(|byte| **byte == b'\n').count();
        run.delivered.fetch_add(lines as u64, Ordering::Relaxed);
        run.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        if is_timed {
            let is_measured = *stages.borrow_and_update() == Phase::Measured;
            for piece in data.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                if line.ends_with(b"\n") {
                    let asked = Duration::from_nanos(stamp(&line));
                    if is_measured {
                        times.push(run.begun.elapsed().saturating_sub(asked));
                    }
                    line.clear();
                }
            }
        }
    }
}

/// When the change was requested: nanoseconds since the start, in `holderIdentity`.
fn stamp(line: &[u8]) -> u64 {
    const FIELD: &str = "\"holderIdentity\":\"";
    let line = std::str::from_utf8(line).expect("text");
    let (_, rest) = line.split_once(FIELD).expect("a stamp");
    let (digits, _) = rest.split_once('"').expect("a closed text");
    digits.parse().expect("a number")
}

/// Changes objects at its part of the rate.
async fn write(
    cluster: Arc<Cluster>,
    run: Arc<Run>,
    stages: watch::Receiver<Phase>,
    number: usize,
) {
    let mut link = cluster.own().await;
    let period = Duration::from_secs(1) * u32::try_from(WRITERS).expect("few") / CHANGES_PER_SECOND;
    let mut ticks = tokio::time::interval(period);
    let mut at = number;
    while matches!(*stages.borrow(), Phase::WarmUp | Phase::Measured) {
        ticks.tick().await;
        at = (at + WRITERS) % OBJECTS;
        let path = format!("{LEASES}/l{at}");
        let stamp = run.begun.elapsed().as_nanos();
        let body = format!("{{\"spec\":{{\"holderIdentity\":\"{stamp}\"}}}}");
        let change = request("PATCH", &path, "application/merge-patch+json", body);
        let answer = link.send(change).await;
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.expect("a body");
        run.changed.fetch_add(1, Ordering::Relaxed);
    }
}
