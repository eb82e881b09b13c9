//! A client that lists and then watches has the exact state, despite concurrent writers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::caller::{Caller, Lines};
use super::cluster::{Cluster, soon};
use super::objects::{SECRETS, colored, version};

const NAMES: u32 = 8;
const COLORS: [&str; 3] = ["red", "green", "blue"];
const WRITERS: u64 = 4;
const CHANGES: usize = 60;
const WATCHERS: u64 = 12;

/// The state that a client believes in: versions by name.
type State = BTreeMap<String, u64>;

const SELECTIONS: [&str; 5] = [
    "",
    "&labelSelector=color%3Dred",
    "&labelSelector=color%20in%20(red,blue)",
    "&labelSelector=color%21%3Dred",
    "&fieldSelector=metadata.name%3Ds3",
];

fn state_of(list: &Value) -> State {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| (name_of(item), version(item))).collect()
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Creates, updates and deletes at random; losing a race is fine.
async fn write(caller: Caller, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..CHANGES {
        let name = format!("s{}", rng.u32(0..NAMES));
        let path = format!("{SECRETS}/{name}");
        let color = COLORS[rng.usize(0..COLORS.len())];
        let answer = match rng.u32(0..4) {
            0 => caller.delete(&path).await,
            1 => caller.post(SECRETS, &colored(&name, color)).await,
            _ => {
                let paint = json!({"metadata": {"labels": {"color": color}}});
                caller.patch(&path, "merge", &paint).await
            }
        };
        assert!(
            matches!(answer.code, 200 | 201 | 404 | 409),
            "{:?}",
            answer.json()
        );
    }
}

/// One watcher's state, checked against the guarantees of a watch.
struct Believer {
    state: State,
    seen: u64,
    is_initial: bool,
}

impl Believer {
    fn take(&mut self, line: &Value) {
        let object = &line["object"];
        let sort = line["type"].as_str().unwrap();
        if sort == "BOOKMARK" {
            let end = &object["metadata"]["annotations"]["k8s.io/initial-events-end"];
            assert!(version(object) >= self.seen, "{line}");
            self.seen = version(object);
            self.is_initial &= end != "true";
            return;
        }
        let (name, at) = (name_of(object), version(object));
        // The objects at the start are in the order of their names.
        assert!(
            self.is_initial || at > self.seen,
            "after {}: {line}",
            self.seen
        );
        let known = self.state.contains_key(&name);
        match sort {
            "ADDED" => assert!(!known, "{line}"),
            "MODIFIED" => assert!(known, "{line}"),
            "DELETED" => assert!(known && !self.is_initial, "{line}"),
            _ => panic!("{line}"),
        }
        match sort {
            "DELETED" => self.state.remove(&name),
            _ => self.state.insert(name, at),
        };
        if !self.is_initial {
            self.seen = at;
        }
    }
}

async fn has_ended(end: &mut tokio::sync::watch::Receiver<bool>) {
    end.wait_for(|end| *end).await.unwrap();
}

/// Lists now, starts the watch after a while, and follows until the end is reached.
async fn believe(caller: Caller, seed: u64, mut end: tokio::sync::watch::Receiver<bool>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let selection = SELECTIONS[rng.usize(0..SELECTIONS.len())];
    tokio::time::sleep(std::time::Duration::from_millis(rng.u64(0..300))).await;
    let (mut believer, mut lines): (Believer, Lines) = if rng.bool() {
        let list = caller.get(&format!("{SECRETS}?x{selection}")).await;
        let list = list.expect(200);
        let seen = version(&list);
        let state = state_of(&list);
        tokio::time::sleep(std::time::Duration::from_millis(rng.u64(0..300))).await;
        let query = format!("?watch=true&resourceVersion={seen}{selection}");
        let lines = caller.watch(&format!("{SECRETS}{query}")).await;
        let is_initial = false;
        (
            Believer {
                state,
                seen,
                is_initial,
            },
            lines,
        )
    } else {
        let query = format!(
            "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
             &resourceVersionMatch=NotOlderThan{selection}"
        );
        let lines = caller.watch(&format!("{SECRETS}{query}")).await;
        let (state, seen, is_initial) = (State::new(), 0, true);
        (
            Believer {
                state,
                seen,
                is_initial,
            },
            lines,
        )
    };
    let mut expected = None;
    let reached = async {
        while expected.as_ref() != Some(&believer.state) || believer.is_initial {
            tokio::select! {
                line = lines.next() => believer.take(&line.expect("the watch continues")),
                () = has_ended(&mut end), if expected.is_none() => {
                    let list = caller.get(&format!("{SECRETS}?x{selection}")).await;
                    expected = Some(state_of(&list.expect(200)));
                }
            }
        }
    };
    let what = format!("seed {seed}: the state of a watcher with {selection:?}");
    soon(&what, reached).await;
}

pub(crate) async fn check(writer: &Caller, reader: &Caller, seed: u64) {
    let (ended, end) = tokio::sync::watch::channel(false);
    let watchers = (0..WATCHERS).map(|n| {
        let watching = believe(reader.clone(), seed * 1000 + n, end.clone());
        tokio::spawn(watching)
    });
    let watchers: Vec<_> = watchers.collect();
    let writers = (0..WRITERS).map(|n| tokio::spawn(write(writer.clone(), seed * 7 + n)));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    ended.send(true).unwrap();
    for watcher in watchers {
        watcher.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_converge_to_the_listed_state() {
    let cluster = Cluster::start().await;
    let (socket, local) = (cluster.admin(), cluster.local_admin());
    check(&local, &socket, fastrand::u64(0..1_000_000)).await;
    check(&socket, &local, fastrand::u64(0..1_000_000)).await;
}
