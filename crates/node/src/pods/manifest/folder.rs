//! Watching a folder of manifests.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use super::{MAX_BYTES, parse};
use crate::pods::Pods;
use crate::pods::set::Source;

/// How often the folder is read even if nothing is heard of it (`fileCheckFrequency`).
pub const PERIOD: Duration = Duration::from_secs(20);
/// Changes that come together are read together.
const SETTLE: Duration = Duration::from_millis(50);

/// Has `pods` know what stands in the folder, or in the single file, until told to stop.
pub async fn watch(
    path: &Path,
    node_name: &str,
    period: Duration,
    pods: &Pods,
    stop: CancellationToken,
) {
    loop {
        let watcher = Watcher::new(path);
        match read(path, node_name).await {
            Ok(found) => pods.replace(Source::Files, found),
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot read manifests"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(period) => {}
            () = changed(watcher) => tokio::time::sleep(SETTLE).await,
        }
    }
}

/// The pods in a folder or file. What cannot be read as a pod is left out and logged; a folder that
/// is not there is empty.
async fn read(path: &Path, node_name: &str) -> io::Result<Vec<Pod>> {
    let metadata = match tokio::fs::metadata(path).await {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    if metadata.is_dir() {
        let mut entries = tokio::fs::read_dir(path).await?;
        while let Some(entry) = entries.next_entry().await? {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !is_hidden {
                files.push(entry.path());
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut pods = Vec::new();
    for file in files {
        let name = file.display().to_string();
        match read_file(&file, &name, node_name).await {
            Ok(pod) => pods.push(pod),
            Err(error) => tracing::warn!(path = name, error, "cannot process a manifest"),
        }
    }
    Ok(pods)
}

async fn read_file(file: &Path, name: &str, node_name: &str) -> Result<Pod, String> {
    let metadata = tokio::fs::metadata(file).await;
    let metadata = metadata.map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let text = tokio::fs::read_to_string(file).await;
    let text = text.map_err(|error| error.to_string())?;
    parse(&text, name, node_name).map_err(|error| error.to_string())
}

/// Hears of files that were written, moved or removed. Those still being written are left alone.
#[derive(Debug)]
struct Watcher(AsyncFd<OwnedFd>);

impl Watcher {
    /// `None` if nothing can be heard, as of a folder that is not there.
    fn new(path: &Path) -> Option<Watcher> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let events = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF;
        inotify::add_watch(&inotify, path, events).ok()?;
        register(inotify).ok().map(Watcher)
    }
}

#[expect(
    unsafe_code,
    reason = "tokio has no safe way to wait for any descriptor"
)]
fn register(inotify: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, and owned by what is returned for as long as that lives.
    let registered = unsafe { AsyncFd::register_with_interest(inotify, Interest::READABLE) };
    registered.map_err(Into::into)
}

/// Waits for a change, for ever if nothing can be heard.
async fn changed(watcher: Option<Watcher>) {
    let Some(Watcher(inotify)) = watcher else {
        return std::future::pending().await;
    };
    loop {
        let Ok(mut ready) = inotify.readable().await else {
            return std::future::pending().await;
        };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify.get_ref(), &mut buffer);
        match reader.next() {
            Ok(_) => return,
            Err(rustix::io::Errno::WOULDBLOCK) => ready.clear_ready(),
            Err(_) => return std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::anatomy;

    fn manifest(name: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: a}}]}}}}"
        )
    }

    #[tokio::test]
    async fn files_that_are_no_pods_do_not_hide_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::write(path.join("b.yaml"), manifest("b")).unwrap();
        std::fs::write(path.join("a.json"), manifest("a")).unwrap();
        std::fs::write(path.join("broken.yaml"), "{").unwrap();
        std::fs::write(path.join(".hidden.yaml"), manifest("h")).unwrap();
        std::fs::create_dir(path.join("folder")).unwrap();
        let pods = read(path, "n").await.unwrap();
        let names: Vec<&str> = pods.iter().map(anatomy::name).collect();
        assert_eq!(names, ["a-n", "b-n"]);
        let one = read(&path.join("b.yaml"), "n").await.unwrap();
        assert_eq!(one.len(), 1);
        assert!(read(&path.join("none"), "n").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_written_file_is_heard_of() {
        let folder = tempfile::tempdir().unwrap();
        let watcher = Watcher::new(folder.path());
        std::fs::write(folder.path().join("a.yaml"), "x").unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(10), changed(watcher));
        heard.await.unwrap();
    }
}
