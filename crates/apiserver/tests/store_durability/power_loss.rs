//! The power fails at any operation, and any part of the unflushed data is lost.

use std::sync::Arc;

use plimsoll_apiserver::store::{Error, RedbStore, Store};

use crate::block_on;
use crate::disk::Disk;
use crate::faults::open;
use crate::ledger::{Acknowledged, Ledger};

const WRITERS: usize = 4;

/// One disk through many power losses.
pub(crate) fn survived(runs: u64) {
    let disk = Disk::default();
    let mut checked = 0;
    let mut known = vec![Vec::new(); WRITERS];
    for seed in 0..runs {
        checked += block_on(run(&disk, &mut known, seed));
    }
    println!("power losses: {runs}, acknowledged writes checked: {checked}, lost: 0");
}

async fn run(disk: &Disk, known: &mut [Vec<Acknowledged>], seed: u64) -> usize {
    let mut rng = fastrand::Rng::with_seed(seed);
    disk.cut_power_after(rng.u64(1..2000));
    // The power may fail while the store recovers from the last time.
    let mut checked = 0;
    if let Ok(store) = open(disk) {
        let store = Arc::new(store);
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            writers.push(tokio::spawn(write(
                Arc::clone(&store),
                disk.clone(),
                writer,
            )));
        }
        for (writer, known) in writers.into_iter().zip(known.iter_mut()) {
            let acknowledged = writer.await.unwrap();
            checked += acknowledged.len();
            known.extend(acknowledged);
        }
    }
    disk.restart(&mut rng);
    let store = open(disk).unwrap();
    for (writer, known) in known.iter_mut().enumerate() {
        let mut ledger = Ledger::resume(&store, &name(writer)).await.unwrap();
        ledger.check(&store, known).await;
        known.sort_by_key(|step| step.number);
        assert!(
            known.is_sorted_by(|a, b| a.revision < b.revision),
            "a revision is used twice"
        );
    }
    store.close().await.unwrap();
    checked
}

fn name(writer: usize) -> String {
    format!("w{writer}")
}

/// Writes until the power fails.
async fn write(store: Arc<RedbStore>, disk: Disk, writer: usize) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let written = async {
        let mut ledger = Ledger::resume(&*store, &name(writer)).await?;
        loop {
            acknowledged.push(ledger.step(&*store).await?);
            if writer == 0 && ledger.number.is_multiple_of(10) {
                store.compact(store.current_revision().await?).await?;
            }
        }
    };
    let result: Result<(), Error> = written.await;
    assert!(!disk.has_power(), "{result:?} without reason");
    acknowledged
}
