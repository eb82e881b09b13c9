//! `plimsoll server` is killed at random under load: what it acknowledged is there afterwards, no
//! resource version is used twice, and it starts again by itself. In `faults`, more fails than that.
//!
//! `PLIMSOLL_CRASH_RUNS` sets how often it is killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checker;
mod faults;
mod history;
mod ledger;
mod load;
mod members;
mod process;
mod slow_disk;

use std::time::Duration;

use ledger::{Ledger, Versions};
use process::Process;

/// Enough for every change; hundreds on demand.
const DEFAULT_RUNS: usize = 50;

const WRITERS: usize = 6;

/// Of so many runs, one is killed while the server starts.
const KILLED_EARLY: usize = 8;

fn runs() -> usize {
    let runs = std::env::var("PLIMSOLL_CRASH_RUNS");
    runs.map_or(DEFAULT_RUNS, |runs| {
        runs.parse().expect("PLIMSOLL_CRASH_RUNS is a number")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledgers: Vec<Ledger> = (0..WRITERS).map(Ledger::new).collect();
    let mut versions = Versions::default();
    let mut rng = fastrand::Rng::new();
    let runs = runs();
    for run in 0..runs {
        if run % KILLED_EARLY == KILLED_EARLY - 1 {
            let starting = Process::spawn(folder.path());
            tokio::time::sleep(Duration::from_micros(rng.u64(0..300_000))).await;
            starting.kill().await;
        }
        let mut server = Process::spawn(folder.path());
        let client = server.client().await;
        for ledger in &mut ledgers {
            ledger.check(&client, run).await;
        }
        let writing = ledgers.drain(..).map(|ledger| {
            let client = client.clone();
            tokio::spawn(ledger.write_until_it_fails(client))
        });
        let writing: Vec<_> = writing.collect();
        tokio::time::sleep(Duration::from_micros(rng.u64(0..400_000))).await;
        server.kill().await;
        for writer in writing {
            let (ledger, acknowledged) = writer.await.unwrap();
            ledgers.push(ledger);
            versions.take(acknowledged);
        }
        versions.close_run(run);
    }
    let mut server = Process::spawn(folder.path());
    let client = server.client().await;
    for ledger in &mut ledgers {
        ledger.check(&client, runs).await;
    }
    server.kill().await;
    let acknowledged = versions.count();
    println!("kills: {runs}, acknowledged writes checked: {acknowledged}, lost: 0");
    assert!(acknowledged > runs, "hardly anything was written");
}
