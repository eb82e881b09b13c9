//! Flipped bits in the file: the store returns the right value, or marks it as unreadable.

use std::collections::BTreeMap;

use plimsoll_apiserver::store::{Error, RangeRequest, RedbStore, Store, Txn, catches_panics};

use crate::block_on;
use crate::disk::Disk;
use crate::faults::open;

const OBJECTS: usize = 60;

/// How many single bits are flipped in turn.
const FLIPS: u64 = 300;

fn key(number: usize) -> String {
    format!("/registry/secrets/default/secret-{number:03}")
}

fn value(number: usize) -> String {
    format!(
        "{{\"data\":\"the value of secret-{number:03}, {}\"}}",
        "x".repeat(400)
    )
}

/// A closed store in which every object was written twice.
async fn filled() -> Vec<u8> {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    for number in 0..OBJECTS {
        let old = Txn::create(key(number), value(number));
        store.txn(old).await.unwrap();
    }
    for number in 0..OBJECTS {
        let new = Txn::new().put(key(number), value(number));
        store.txn(new).await.unwrap();
    }
    let last = store.current_revision().await.unwrap();
    store.compact(last).await.unwrap();
    // Removes rows that compaction has left.
    store.txn(Txn::create("/last", "")).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    disk.content()
}

/// The position of a text in the file.
fn place(content: &[u8], text: &str) -> usize {
    let found = content
        .windows(text.len())
        .rposition(|part| part == text.as_bytes());
    found.unwrap()
}

pub(crate) fn one_value() {
    block_on(async {
        let content = filled().await;
        let disk = Disk::with(content.clone());
        disk.flip(place(&content, "the value of secret-007"), 3);
        let store = open(&disk).unwrap();
        only_unreadable(&store, 7, "the checksum of the value does not match").await;
    });
}

pub(crate) fn one_key() {
    block_on(async {
        let content = filled().await;
        let disk = Disk::with(content.clone());
        disk.flip(place(&content, &key(7)) + 20, 0);
        let store = open(&disk).unwrap();
        let problem = "the checksum of the row's header does not match";
        only_unreadable(&store, 7, problem).await;
    });
}

/// One object is unreadable, and can be replaced and deleted; all others are as they were.
async fn only_unreadable(store: &RedbStore, number: usize, problem: &str) {
    let found = store.get(key(number).as_bytes(), None).await.unwrap();
    let entry = found.entry.unwrap();
    assert_eq!(entry.unreadable.as_deref(), Some(problem));
    assert!(entry.value.is_empty(), "{entry:?}");
    let page = store
        .range(RangeRequest::prefix("/registry/"))
        .await
        .unwrap();
    assert_eq!(page.entries.len(), OBJECTS);
    for (at, entry) in page.entries.iter().enumerate() {
        assert_eq!(entry.key, key(at));
        match at == number {
            true => assert_eq!(entry.unreadable.as_deref(), Some(problem)),
            false => assert_eq!(entry.value, value(at)),
        }
    }
    let txn = Txn::update(key(number), entry.mod_revision, "new");
    store.txn(txn).await.unwrap();
    let found = store.get(key(number).as_bytes(), None).await.unwrap();
    assert_eq!(found.entry.unwrap().value, "new");
}

pub(crate) fn anywhere() {
    quiet();
    let content = block_on(filled());
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut refused, mut marked, mut missing) = (0, 0, 0);
    for _ in 0..FLIPS {
        let disk = Disk::with(content.clone());
        let (at, bit) = (rng.usize(..content.len()), rng.u8(..8));
        disk.flip(at, bit);
        block_on(async {
            let store = match open(&disk) {
                Ok(store) => store,
                Err(error) => {
                    assert!(is_damage(&error), "bit {bit} of byte {at}: {error:?}");
                    refused += 1;
                    return;
                }
            };
            let (unreadable, absent) = right_or_marked(&store).await;
            marked += unreadable;
            missing += absent;
            // Whatever the result, the process keeps running.
            for number in 0..OBJECTS {
                let _ = store.txn(Txn::new().put(key(number), "new")).await;
            }
            let _ = store.close().await;
        });
    }
    println!(
        "bits flipped: {FLIPS}, wrong values: 0, files refused: {refused}, objects marked: \
         {marked}, objects of lost pages: {missing}"
    );
}

/// Counts objects that are marked and objects that are missing; others must be right.
async fn right_or_marked(store: &RedbStore) -> (usize, usize) {
    let request = RangeRequest::prefix("/registry/");
    let page = match store.range(request).await {
        Ok(page) => page,
        Err(error) => {
            assert!(is_damage(&error), "{error:?}");
            return (0, OBJECTS);
        }
    };
    let truth: BTreeMap<String, String> = (0..OBJECTS).map(|n| (key(n), value(n))).collect();
    let (mut marked, mut right) = (0, 0);
    for entry in page.entries {
        let name = String::from_utf8_lossy(&entry.key).into_owned();
        match entry.unreadable {
            Some(_) => marked += 1,
            None => {
                assert_eq!(
                    truth.get(&name).map(String::as_bytes),
                    Some(&entry.value[..])
                );
                right += 1;
            }
        }
    }
    (marked, OBJECTS.saturating_sub(marked + right))
}

fn is_damage(error: &Error) -> bool {
    matches!(
        error,
        Error::NotAStore { .. }
            | Error::Corrupt { .. }
            | Error::Damaged { .. }
            | Error::Open { .. }
            | Error::Read { .. }
            | Error::Unavailable { .. }
    )
}

/// Panics that the store catches are not printed.
fn quiet() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !catches_panics() {
            report(panic);
        }
    }));
}

pub(crate) fn while_open() {
    quiet();
    let content = block_on(filled());
    let mut rng = fastrand::Rng::with_seed(8);
    let mut refused = 0;
    for _ in 0..FLIPS / 3 {
        let disk = Disk::with(content.clone());
        block_on(async {
            let store = open(&disk).unwrap();
            // Pages are kilobytes: sixteen bits hit some that are in use.
            let flips: Vec<(usize, u8)> = (0..16)
                .map(|_| (rng.usize(4096..content.len()), rng.u8(..8)))
                .collect();
            flips.iter().for_each(|(at, bit)| disk.flip(*at, *bit));
            let mut acknowledged = Vec::new();
            for number in 0..OBJECTS {
                let name = format!("/registry/pods/{number}");
                match store.txn(Txn::create(name.clone(), value(number))).await {
                    Ok(_) => acknowledged.push((name, value(number))),
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("a disk in memory"), "{text}");
                        refused += 1;
                    }
                }
                match store.get(key(number).as_bytes(), None).await {
                    Ok(found) => {
                        let entry = found.entry;
                        let is_right = entry.is_none_or(|entry| {
                            entry.unreadable.is_some() || entry.value == value(number)
                        });
                        assert!(is_right, "a wrong value of {number}");
                    }
                    Err(error) => assert!(is_damage(&error), "{error:?}"),
                }
            }
            // Acknowledged data is there as long as the store can be read, or is marked.
            for (name, value) in acknowledged {
                match store.get(name.as_bytes(), None).await {
                    Ok(found) => {
                        let entry = found.entry.unwrap();
                        assert!(entry.unreadable.is_some() || entry.value == value);
                    }
                    Err(error) => assert!(is_damage(&error), "{error:?}"),
                }
            }
            let _ = store.close().await;
        });
    }
    println!(
        "stores damaged while open: {}, writes refused: {refused}",
        FLIPS / 3
    );
}
