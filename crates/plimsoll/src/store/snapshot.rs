//! `plimsoll store snapshot`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use futures::AsyncBufReadExt;
use plimsoll_apiserver::cache::ROOT;
use plimsoll_apiserver::store::{RedbOptions, RedbStore, SnapshotEncoder, Store};

use super::{Format, status, stopped};
use crate::cluster::{self, Cluster};
use crate::exit::Exit;
use crate::failure::Advise;
use crate::print;

/// The path of the server's snapshot endpoint.
const PATH: &str = "/plimsoll/store/snapshot";

/// Arguments of `plimsoll store snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Save a snapshot of a running cluster
  plimsoll store snapshot backup.snapshot

  # Save a snapshot of a stopped server; snapshots do not include keys and certificates
  plimsoll store snapshot backup.snapshot --data-dir /var/lib/plimsoll
  cp -a /var/lib/plimsoll/pki backup-pki")]
pub(crate) struct Arguments {
    /// File to write; replaced only when the snapshot is complete.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    cluster: Cluster,

    /// Data directory of a stopped server to read instead of a running cluster.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    data_dir: Option<PathBuf>,

    /// Output format; `json` has the full hash and sizes in bytes.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Some(directory) = &arguments.data_dir else {
        return cluster::ask(&arguments.cluster, async {
            let mut file = Unfinished::create(&arguments.file)?;
            of_cluster(&arguments.cluster, &mut file).await?;
            finish(arguments, file)
        });
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let (path, _lock) = stopped(directory).map_err(|error| {
            error.hint("omit --data-dir to take a snapshot of a running server")
        })?;
        let mut file = Unfinished::create(&arguments.file)?;
        of_file(&path, &mut file).await?;
        finish(arguments, file)
    })?;
    Ok(Exit::Success.into())
}

async fn of_cluster(cluster: &Cluster, file: &mut Unfinished) -> Result<()> {
    let client = cluster.client().await?;
    let request = http::Request::get(PATH).body(Vec::new());
    let request = request.context("cannot create the request for a snapshot")?;
    let stream = client.request_stream(request).await;
    let mut stream = std::pin::pin!(stream.context("cannot get a snapshot")?);
    loop {
        let piece = stream
            .fill_buf()
            .await
            .context("the snapshot is incomplete")?;
        if piece.is_empty() {
            return Ok(());
        }
        file.write(piece)?;
        let count = piece.len();
        stream.consume_unpin(count);
    }
}

async fn of_file(path: &Path, file: &mut Unfinished) -> Result<()> {
    let options = RedbOptions {
        reserve_bytes: 0,
        ..RedbOptions::default()
    };
    let store = RedbStore::open(path, &options).context("cannot open the store")?;
    let snapshot = store.snapshot(ROOT.into()).await;
    let mut snapshot = snapshot.context("cannot read the store")?;
    let (mut encoder, begin) = SnapshotEncoder::begin(snapshot.revision);
    file.write(&begin)?;
    while let Some(entries) = snapshot
        .next_chunk()
        .await
        .context("cannot read the store")?
    {
        file.write(&encoder.encode(&entries))?;
    }
    file.write(&encoder.finish())?;
    drop(snapshot);
    store.close().await.context("cannot close the store")
}

/// Moves the file to its path if it is complete, and prints its status.
fn finish(arguments: &Arguments, file: Unfinished) -> Result<()> {
    let summary = status::check(&file.path).context("the snapshot is incomplete")?;
    file.put_into_place(&arguments.file)?;
    print::write(&status::shown(&summary, arguments.output))?;
    match summary.unreadable {
        0 => Ok(()),
        count => Err(anyhow!(
            "{count} keys cannot be read and are missing from the snapshot; all others are in it"
        )
        .hint("to list them, stop the server and run: plimsoll store verify")),
    }
}

/// A temporary file, removed unless it is moved to its path.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Unfinished {
    fn create(target: &Path) -> Result<Unfinished> {
        let mut path = target.as_os_str().to_owned();
        path.push(".unfinished");
        let path = PathBuf::from(path);
        // It contains Secrets.
        let file = (OpenOptions::new().write(true).create(true))
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Unfinished { path, file })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn put_into_place(&self, target: &Path) -> Result<()> {
        let place = || {
            self.file.sync_all()?;
            fs::rename(&self.path, target)?;
            let folder = target
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        place().with_context(|| format!("cannot write {}", target.display()))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Fails after the file was moved.
        let _ = fs::remove_file(&self.path);
    }
}
