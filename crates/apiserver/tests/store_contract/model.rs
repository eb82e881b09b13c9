//! Random operations on a store and on a model that is too simple to be wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_apiserver::store::{
    Change, Compare, Entry, Error, Outcome, RangeRequest, Store, Txn, Update, Watch, WatchRequest,
    Write,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::watches;

/// Sequences of operations, one after the other on the same store.
const SEQUENCES: usize = 20;

/// Few keys, so that operations collide.
const KEYS: [&str; 5] = ["/a/1", "/a/2", "/a/20", "/b/1", "/b"];

const PREFIXES: [&str; 4] = ["", "/a/", "/a/2", "/b"];

/// The state of all keys after each revision, and what changed.
struct Model {
    states: BTreeMap<u64, BTreeMap<Bytes, Entry>>,
    changes: Vec<Change>,
    compacted: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            states: BTreeMap::from([(1, BTreeMap::new())]),
            changes: Vec::new(),
            compacted: 0,
        }
    }
}

impl Model {
    fn current(&self) -> (u64, &BTreeMap<Bytes, Entry>) {
        let (revision, state) = self
            .states
            .last_key_value()
            .expect("the first is never removed");
        (*revision, state)
    }

    fn txn(&mut self, txn: Txn) -> Outcome {
        let (revision, state) = self.current();
        let fails = |compare: &&Compare| {
            state.get(&compare.key).map(|entry| entry.mod_revision) != compare.mod_revision
        };
        if let Some(Compare { key, .. }) = txn.compares.iter().find(fails) {
            return Outcome::Conflict {
                key: key.clone(),
                current: state.get(key).cloned(),
            };
        }
        let mut state = state.clone();
        let next = revision + 1;
        let mut changes = Vec::new();
        for write in txn.writes {
            let previous = state.remove(write.key());
            let entry = match write {
                Write::Delete { .. } if previous.is_none() => continue,
                Write::Delete { .. } => None,
                Write::Put {
                    ref key, ref value, ..
                } => Some(Entry {
                    key: key.clone(),
                    value: value.clone(),
                    create_revision: previous
                        .as_ref()
                        .map_or(next, |entry| entry.create_revision),
                    mod_revision: next,
                    unreadable: None,
                }),
            };
            let key = write.key().clone();
            state.extend(entry.clone().map(|entry| (key.clone(), entry)));
            changes.push(Change {
                key,
                revision: next,
                entry,
                previous,
            });
        }
        if changes.is_empty() {
            return Outcome::Committed { revision };
        }
        self.changes.extend(changes);
        self.states.insert(next, state);
        Outcome::Committed { revision: next }
    }

    fn range(&self, request: &RangeRequest) -> Option<(Vec<Entry>, u64)> {
        let at = request.at.unwrap_or(self.current().0);
        if at < self.compacted || at > self.current().0 {
            return None;
        }
        let start = request.start.clone().unwrap_or_default();
        let in_range =
            |entry: &&Entry| entry.key >= start && entry.key.starts_with(&request.prefix);
        let mut entries: Vec<Entry> = self.states[&at]
            .values()
            .filter(in_range)
            .cloned()
            .collect();
        let count = entries.len();
        entries.truncate(request.limit.unwrap_or(usize::MAX));
        let remaining = u64::try_from(count - entries.len()).unwrap();
        Some((entries, remaining))
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Txn(Vec<(usize, Option<u64>)>, Vec<(usize, Option<u8>)>),
    /// Prefix, start, limit, and how far back.
    Range(usize, Option<usize>, Option<usize>, Option<u64>),
    Watch(usize, u64, bool),
    Compact(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..KEYS.len();
    // A comparison with the true revision, sometimes off by a few.
    let compare = (key.clone(), prop::option::weighted(0.2, 0u64..3));
    let write = (key.clone(), prop::option::weighted(0.7, any::<u8>()));
    let writes = prop::collection::btree_map(write.0, write.1, 0..4);
    let writes = writes.prop_map(|writes| writes.into_iter().collect::<Vec<_>>());
    let compares = prop::collection::vec(compare, 0..2);
    let range = (
        0..PREFIXES.len(),
        prop::option::of(key),
        prop::option::of(0usize..4),
        prop::option::of(0u64..8),
    );
    prop_oneof![
        6 => (compares, writes).prop_map(|(compares, writes)| Operation::Txn(compares, writes)),
        3 => range.prop_map(|(prefix, start, limit, back)| Operation::Range(prefix, start, limit, back)),
        1 => (0..PREFIXES.len(), 0u64..8, any::<bool>())
            .prop_map(|(prefix, back, previous)| Operation::Watch(prefix, back, previous)),
        1 => (0u64..20).prop_map(Operation::Compact),
    ]
}

/// A watch with its expected changes.
struct Watched {
    watch: Watch,
    request: WatchRequest,
}

pub(crate) async fn random_operations_agree_with_the_model(store: Arc<dyn Store>) {
    let mut model = Model::default();
    let mut runner = TestRunner::default();
    for _ in 0..SEQUENCES {
        let operations = operations().new_tree(&mut runner).unwrap().current();
        run(&store, &mut model, &operations).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As above, each time on a fresh store, so that a failure shrinks to few operations.
    #[test]
    fn redb_agrees_with_the_model(operations in operations()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let backend = crate::backend::redb();
            run(&backend.store(), &mut Model::default(), &operations).await;
        });
    }
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 1..60)
}

async fn run(store: &Arc<dyn Store>, model: &mut Model, operations: &[Operation]) {
    let mut watches = Vec::new();
    for operation in operations {
        apply(store, model, &mut watches, operation).await;
    }
    for watched in watches {
        check_watch(model, watched, operations).await;
    }
    assert_eq!(store.current_revision().await.unwrap(), model.current().0);
}

async fn apply(
    store: &Arc<dyn Store>,
    model: &mut Model,
    watches: &mut Vec<Watched>,
    operation: &Operation,
) {
    let current = model.current().0;
    match operation {
        Operation::Txn(compares, writes) => {
            let txn = transaction(model, compares, writes);
            let got = store.txn(txn.clone()).await.unwrap();
            assert_eq!(got, model.txn(txn.clone()), "{txn:?}");
        }
        Operation::Range(prefix, start, limit, back) => {
            let request = RangeRequest {
                prefix: PREFIXES[*prefix].into(),
                start: start.map(|start| KEYS[start].into()),
                limit: *limit,
                at: back.map(|back| current.saturating_sub(back).max(1)),
            };
            match (store.range(request.clone()).await, model.range(&request)) {
                (Ok(page), Some(want)) => {
                    assert_eq!((page.entries, page.remaining), want, "{request:?}");
                }
                (Err(Error::Compacted { .. }), None) => {}
                (got, want) => panic!("{request:?}: {got:?}, {want:?} was expected"),
            }
        }
        Operation::Watch(prefix, back, with_previous) => {
            let request = WatchRequest {
                prefix: PREFIXES[*prefix].into(),
                after: current.saturating_sub(*back).max(1),
                with_previous: *with_previous,
            };
            match store.watch(request.clone()).await {
                Ok(watch) => watches.push(Watched { watch, request }),
                Err(Error::Compacted { requested }) => assert!(requested < model.compacted),
                Err(error) => panic!("{request:?}: {error:?}"),
            }
        }
        Operation::Compact(back) => {
            let revision = current.saturating_sub(*back).max(1);
            store.compact(revision).await.unwrap();
            model.compacted = model.compacted.max(revision);
        }
    }
}

fn transaction(
    model: &Model,
    compares: &[(usize, Option<u64>)],
    writes: &[(usize, Option<u8>)],
) -> Txn {
    let (_, state) = model.current();
    let mut txn = Txn::new();
    for (key, spoil) in compares {
        let key = KEYS[*key];
        let truth = state.get(key.as_bytes()).map(|entry| entry.mod_revision);
        let compared = match spoil {
            None => truth,
            Some(0) => None,
            Some(by) => Some(truth.unwrap_or(1) + by),
        };
        txn = match compared {
            None => txn.if_absent(key),
            Some(revision) => txn.if_at(key, revision),
        };
    }
    for (key, value) in writes {
        let key = KEYS[*key];
        txn = match value {
            Some(value) => txn.put(key, vec![*value]),
            None => txn.delete(key),
        };
    }
    txn
}

/// A watch delivers exactly the changes of its prefix, or ends because its past was compacted.
async fn check_watch(model: &Model, mut watched: Watched, operations: &[Operation]) {
    let request = &watched.request;
    let wanted = |change: &&Change| {
        change.revision > request.after && change.key.starts_with(&request.prefix)
    };
    let mut want = model
        .changes
        .iter()
        .filter(wanted)
        .cloned()
        .collect::<Vec<_>>();
    if !request.with_previous {
        want.iter_mut().for_each(|change| change.previous = None);
    }
    watched.watch.request_progress(model.current().0);
    let mut got = Vec::new();
    loop {
        match watches::next(&mut watched.watch).await {
            Ok(Update::Change(change)) => got.push(change),
            Ok(Update::Progress(_)) => break,
            Err(Error::Compacted { .. }) if request.after < model.compacted => {
                assert!(want.starts_with(&got), "{request:?} after {operations:?}");
                return;
            }
            Err(error) => panic!("{request:?}: {error:?}"),
        }
    }
    assert_eq!(got, want, "{request:?} after {operations:?}");
}
