//! Files of earlier formats are migrated, and files of later ones rejected.
//!
//! The fixture was written by the code of revision 04f6c91: the objects of a small cluster, with
//! updates, a transaction of two keys, deletes and compacted history. `objects.tsv` has what that
//! code read from it: the revision, then a line for each key.

use std::io::Read;

use flate2::read::GzDecoder;
use plimsoll_apiserver::store::{RangeRequest, RedbOptions, RedbStore, Store, Txn};
use redb::{Database, ReadableDatabase, TableDefinition, TableHandle};

use crate::block_on;
use crate::disk::Disk;
use crate::faults::open;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

fn fixture() -> Vec<u8> {
    unpacked(include_bytes!("../data/store-format-1/store.redb.gz"))
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut content).unwrap();
    content
}

/// Everything in the store, in the format of the fixture.
async fn everything(store: &RedbStore) -> String {
    let page = store.range(RangeRequest::prefix("")).await.unwrap();
    let mut text = format!("{}\n", page.revision);
    for entry in page.entries {
        assert_eq!(entry.unreadable, None);
        let (key, value) = (&entry.key[..], &entry.value[..]);
        let text_of = |bytes| std::str::from_utf8(bytes).unwrap();
        let (create, last) = (entry.create_revision, entry.mod_revision);
        text += &format!("{create}\t{last}\t{}\t{}\n", text_of(key), text_of(value));
    }
    text
}

fn expected() -> String {
    let objects = unpacked(include_bytes!("../data/store-format-1/objects.tsv.gz"));
    String::from_utf8(objects).unwrap()
}

pub(crate) fn opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    std::fs::write(&path, fixture()).unwrap();
    for _ in 0..2 {
        block_on(async {
            let store = RedbStore::open(&path, &RedbOptions::default()).unwrap();
            assert_eq!(everything(&store).await, expected());
            store.close().await.unwrap();
        });
    }
    let database = Database::open(&path).unwrap();
    let txn = database.begin_read().unwrap();
    let tables = txn.list_tables().unwrap();
    let tables: Vec<String> = tables.map(|table| table.name().to_owned()).collect();
    assert_eq!(tables, ["meta", "rows"]);
    let meta = txn.open_table(META).unwrap();
    assert_eq!(meta.get("format").unwrap().unwrap().value(), 2);
}

pub(crate) fn cut_off() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut operations = 0;
    loop {
        operations += 3;
        let disk = Disk::with(fixture());
        disk.cut_power_after(operations);
        let opened = open(&disk);
        let is_done = disk.has_power();
        drop(opened);
        disk.restart(&mut rng);
        block_on(async {
            let store = open(&disk).unwrap();
            assert_eq!(everything(&store).await, expected());
            store.txn(Txn::create("/new", "")).await.unwrap();
            store.close().await.unwrap();
        });
        if is_done {
            break;
        }
    }
    println!("migrations cut off after 3, 6, ... {operations} operations: objects lost: 0");
    assert!(operations > 30);
}

pub(crate) fn newer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    drop(RedbStore::open(&path, &RedbOptions::default()).unwrap());
    let database = Database::open(&path).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(META).unwrap().insert("format", 99).unwrap();
    txn.commit().unwrap();
    drop(database);
    let error = RedbStore::open(&path, &RedbOptions::default()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.contains("the file has format 99, this program reads formats 1 to 2"),
        "{source}"
    );
    let database = Database::open(&path).unwrap();
    let txn = database.begin_read().unwrap();
    let meta = txn.open_table(META).unwrap();
    assert_eq!(meta.get("format").unwrap().unwrap().value(), 99);
}
