//! A child process writes under load and is killed without warning.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_apiserver::store::{RedbOptions, RedbStore, Store};

use crate::block_on;
use crate::ledger::{Acknowledged, Ledger};

/// Tells the child process its role, and names the file.
const CHILD_FILE: &str = "PLIMSOLL_CRASH_CHILD_FILE";

const WRITERS: usize = 8;

fn name(writer: usize) -> String {
    format!("w{writer}")
}

/// One file through many kills.
pub(crate) fn killed(runs: u64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.redb");
    let mut rng = fastrand::Rng::new();
    let mut known: BTreeMap<usize, Vec<Acknowledged>> = BTreeMap::new();
    let mut last_revision = 1;
    let mut checked = 0;
    for run in 0..runs {
        for (writer, step) in run_and_kill(&file, &mut rng) {
            assert!(
                step.revision > last_revision,
                "run {run}: revision {} is used twice",
                step.revision
            );
            known.entry(writer).or_default().push(step);
            checked += 1;
        }
        last_revision = block_on(check(&file, &known, last_revision));
    }
    println!("kills: {runs}, acknowledged writes checked: {checked}, lost: 0");
    assert!(checked > 0 || runs == 0);
}

/// The step that the child had acknowledged when it was killed.
fn run_and_kill(file: &Path, rng: &mut fastrand::Rng) -> Vec<(usize, Acknowledged)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(CHILD_FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        // The last line may be truncated; it was not acknowledged then.
        let lines = output.lines().map_while(Result::ok);
        lines.filter_map(|line| parse(&line)).collect()
    });
    // Some are killed while they open the file, most while they write.
    std::thread::sleep(Duration::from_micros(rng.u64(0..200_000)));
    kill(&mut child);
    reader.join().unwrap()
}

/// `kill -9`, if the child is still alive, as it should be.
fn kill(child: &mut Child) {
    assert!(
        child.try_wait().unwrap().is_none(),
        "the child ended by itself"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Opens the file of the child; returns its revision.
async fn check(file: &Path, known: &BTreeMap<usize, Vec<Acknowledged>>, last: u64) -> u64 {
    let store = RedbStore::open(file, &RedbOptions::default()).unwrap();
    for writer in 0..WRITERS {
        let mut ledger = Ledger::resume(&store, &name(writer)).await.unwrap();
        let acknowledged = known.get(&writer).map_or(&[][..], Vec::as_slice);
        ledger.check(&store, acknowledged).await;
    }
    let revision = store.current_revision().await.unwrap();
    let acknowledged = known.values().flatten().map(|step| step.revision).max();
    assert!(revision >= last.max(acknowledged.unwrap_or(1)));
    revision
}

/// `writer number revision .`
fn parse(line: &str) -> Option<(usize, Acknowledged)> {
    let mut words = line.strip_suffix(" .")?.split(' ');
    let writer = words.next()?.parse().ok()?;
    let number = words.next()?.parse().ok()?;
    let revision = words.next()?.parse().ok()?;
    Some((writer, Acknowledged { number, revision }))
}

pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD_FILE).is_some()
}

/// Writes and prints acknowledgements until it is killed.
pub(crate) fn run_child() -> ExitCode {
    let file = std::env::var_os(CHILD_FILE).unwrap();
    block_on(async {
        let store = Arc::new(RedbStore::open(Path::new(&file), &RedbOptions::default()).unwrap());
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            writers.push(tokio::spawn(write(Arc::clone(&store), writer)));
        }
        for writer in writers {
            writer.await.unwrap();
        }
    });
    ExitCode::FAILURE
}

async fn write(store: Arc<RedbStore>, writer: usize) {
    let mut ledger = Ledger::resume(&*store, &name(writer)).await.unwrap();
    loop {
        let Acknowledged { number, revision } = ledger.step(&*store).await.unwrap();
        println!("{writer} {number} {revision} .");
        if writer == 0 && number.is_multiple_of(20) {
            store.compact(revision).await.unwrap();
        }
    }
}
