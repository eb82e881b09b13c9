//! `plimsoll store copy`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use plimsoll_apiserver::cache::ROOT;
use plimsoll_apiserver::store::{
    Outcome, RangeRequest, RedbStore, Snapshot, SnapshotEntry, Store, Txn,
};
use tokio::sync::mpsc;

use super::place::{self, Place};
use super::stopped;
use crate::backend::{self, EtcdFiles};
use crate::data_dir::{self, Lock, Part, STORE_FILE};
use crate::exit::Exit;
use crate::failure::{Advise, usage};
use crate::print;

/// Maximum writes and bytes per transaction, below etcd's limits.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 512 * 1024;

/// Number of chunks to read ahead.
const AHEAD: usize = 2;

/// Arguments of `plimsoll store copy`.
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the servers of both stores first. The target must have no objects.

Objects are copied unchanged, including their encryption. A copy to a file keeps revisions, and the store \
continues far above them, so that clients relist. etcd assigns new revisions: restart running clients such as \
nodes and controllers afterwards.

Examples:
  # Move a cluster to etcd
  plimsoll store copy --from redb:/var/lib/plimsoll --to etcd://127.0.0.1:2379
  plimsoll server --store etcd://127.0.0.1:2379

  # Move it back
  plimsoll store copy --from etcd://127.0.0.1:2379 --to redb:/var/lib/plimsoll-new"
)]
pub(crate) struct Arguments {
    /// Store to read: `redb:DIR`, `etcd://HOST:PORT[,…]` or `etcds://HOST:PORT[,…]`.
    #[arg(long, value_name = "STORE", value_parser = place::parse)]
    from: Place,

    /// Store to write, in the same form.
    #[arg(long, value_name = "STORE", value_parser = place::parse)]
    to: Place,

    /// CA certificate to verify etcd with.
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    etcd_ca: Option<PathBuf>,

    /// Client certificate for etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_key")]
    etcd_cert: Option<PathBuf>,

    /// Private key of the client certificate for etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_ca")]
    etcd_key: Option<PathBuf>,
}

/// Numbers of keys.
#[derive(Debug, Default)]
struct Copied {
    keys: u64,
    unreadable: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.from == arguments.to {
        return Err(usage("--from and --to name the same store"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let copied = runtime.block_on(copy(arguments))?;
    print::write(&format!("copied {} keys\n", copied.keys))?;
    match copied.unreadable {
        0 => Ok(Exit::Success.into()),
        count => Err(anyhow!("{count} keys cannot be read and were not copied")
            .hint("list them with: plimsoll store verify")),
    }
}

async fn copy(arguments: &Arguments) -> Result<Copied> {
    let (source, _lock) = open(&arguments.from, arguments).await?;
    let snapshot = source.snapshot(ROOT.into()).await;
    let snapshot = snapshot.context("cannot read the source")?;
    let copied = match &arguments.to {
        Place::Directory(directory) => to_directory(snapshot, directory).await?,
        Place::Etcd(_) => {
            let (target, _lock) = open(&arguments.to, arguments).await?;
            let copied = to_store(snapshot, target.as_ref()).await?;
            target.close().await.context("cannot close the target")?;
            copied
        }
    };
    source.close().await.context("cannot close the source")?;
    Ok(copied)
}

async fn open(place: &Place, arguments: &Arguments) -> Result<(Arc<dyn Store>, Option<Lock>)> {
    match place {
        Place::Directory(directory) => {
            let (_, lock) = stopped(directory)?;
            let limits = backend::Limits::of_a_reader();
            let choice = backend::Choice::Redb;
            let store = backend::open(directory, &choice, None, limits).await?;
            Ok((store, Some(lock)))
        }
        Place::Etcd(members) => {
            let files = match (
                &arguments.etcd_ca,
                &arguments.etcd_cert,
                &arguments.etcd_key,
            ) {
                (Some(ca), Some(certificate), Some(key)) => Some(EtcdFiles {
                    ca,
                    certificate,
                    key,
                }),
                _ => None,
            };
            let choice = backend::Choice::Etcd(members.clone());
            let limits = backend::Limits::of_a_reader();
            let store = backend::open(Path::new("."), &choice, files, limits).await?;
            Ok((store, None))
        }
    }
}

/// Writes a new file in a data directory.
async fn to_directory(mut snapshot: Snapshot, directory: &Path) -> Result<Copied> {
    let directory = data_dir::make(directory)?;
    let _lock = data_dir::lock(&directory, Part::Server)?;
    let target = directory.join(STORE_FILE);
    if target.exists() {
        return Err(anyhow!("{} already exists", target.display()).hint("name another directory"));
    }
    let unfinished = directory.join("store.redb.restoring");
    if unfinished.exists() {
        std::fs::remove_file(&unfinished).context("cannot remove the file of an earlier copy")?;
    }
    let revision = snapshot.revision;
    let (sender, mut chunks) = mpsc::channel::<Result<Vec<SnapshotEntry>, _>>(AHEAD);
    let reading = tokio::spawn(async move {
        let mut unreadable = 0;
        while let Some(chunk) = snapshot.next_chunk().await.transpose() {
            let entries = chunk.iter().flatten();
            unreadable += entries.filter(|e| e.entry.unreadable.is_some()).count() as u64;
            if sender.send(chunk).await.is_err() {
                break;
            }
        }
        unreadable
    });
    let path = unfinished.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let mut entries = std::iter::from_fn(|| chunks.blocking_recv()).flat_map(|chunk| {
            let (entries, error) = match chunk {
                Ok(entries) => (entries, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            entries.into_iter().map(Ok).chain(error)
        });
        RedbStore::create_with(&path, revision, &mut entries)
    });
    let written = writing.await.context("the copy stopped")?;
    let (keys, _) = match written {
        Ok(written) => written,
        Err(error) => {
            let _ = std::fs::remove_file(&unfinished);
            return Err(error).context("cannot write the target");
        }
    };
    let place = || {
        std::fs::rename(&unfinished, &target)?;
        std::fs::File::open(&directory)?.sync_all()
    };
    place().with_context(|| format!("cannot write {}", target.display()))?;
    let unreadable = reading.await.context("the copy stopped")?;
    Ok(Copied { keys, unreadable })
}

/// Creates every key in a store that has none of them.
async fn to_store(mut snapshot: Snapshot, target: &dyn Store) -> Result<Copied> {
    let request = RangeRequest {
        limit: Some(1),
        ..RangeRequest::prefix(ROOT)
    };
    let page = target
        .range(request)
        .await
        .context("cannot read the target")?;
    if !page.entries.is_empty() {
        return Err(anyhow!("the target is not empty").hint(
            "copy to an empty etcd, or delete its objects with: etcdctl del --prefix /registry/",
        ));
    }
    let mut copied = Copied::default();
    let mut batch = (Txn::new(), 0);
    while let Some(entries) = snapshot
        .next_chunk()
        .await
        .context("cannot read the source")?
    {
        for entry in entries {
            if entry.entry.unreadable.is_some() {
                copied.unreadable += 1;
                continue;
            }
            let bytes = entry.entry.key.len() * 2 + entry.entry.value.len();
            if batch.0.writes.len() >= BATCH || batch.1 + bytes > BATCH_BYTES {
                commit(target, std::mem::take(&mut batch).0, &mut copied).await?;
            }
            batch = (with(batch.0, entry), batch.1 + bytes);
        }
    }
    commit(target, batch.0, &mut copied).await?;
    Ok(copied)
}

fn with(txn: Txn, SnapshotEntry { entry, expires_at }: SnapshotEntry) -> Txn {
    let txn = txn.if_absent(entry.key.clone());
    match expires_at {
        0 => txn.put(entry.key, entry.value),
        end => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let lasts = Duration::from_millis(end).saturating_sub(now.unwrap_or_default());
            txn.put_for(lasts.max(Duration::from_secs(1)), entry.key, entry.value)
        }
    }
}

async fn commit(target: &dyn Store, txn: Txn, copied: &mut Copied) -> Result<()> {
    let count = txn.writes.len() as u64;
    if count == 0 {
        return Ok(());
    }
    match target.txn(txn).await.context("cannot write the target")? {
        Outcome::Committed { .. } => copied.keys += count,
        Outcome::Conflict { key, .. } => {
            bail!(
                "another process wrote {} during the copy",
                String::from_utf8_lossy(&key)
            )
        }
    }
    Ok(())
}
