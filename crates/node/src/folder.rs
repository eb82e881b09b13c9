//! Waiting until something happens in a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// What is worth hearing of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changes {
    /// Everything that happens to its files, half a line included.
    All,
    /// Files that are complete or gone. Those still being written are left alone.
    Finished,
}

impl Changes {
    fn flags(self) -> WatchFlags {
        let gone = WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO | WatchFlags::DELETE;
        match self {
            Changes::All => gone | WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::ATTRIB,
            Changes::Finished => gone | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF,
        }
    }
}

/// Reports changes in a folder, or of a file. Without inotify (instances are limited), it reports periodically.
///
/// An inotify descriptor is read like a pipe, and that is how it is waited for.
#[derive(Debug)]
pub(crate) struct Watch(Option<Receiver>);

impl Watch {
    pub(crate) fn new(folder: &Path, changes: Changes) -> Watch {
        let watch = open(folder, changes).inspect_err(|error| {
            let folder = folder.display();
            tracing::debug!(%folder, %error, "inotify unavailable; polling instead");
        });
        Watch(watch.ok())
    }

    /// Ends when something has changed, or after `longest`.
    pub(crate) async fn changed(&mut self, longest: Duration) {
        let Some(watch) = &self.0 else {
            tokio::time::sleep(longest).await;
            return;
        };
        if let Ok(Ok(())) = tokio::time::timeout(longest, watch.readable()).await {
            // What exactly happened is looked up in the folder, so that a lost event does no harm.
            let mut events = [0; 4096];
            while let Ok(1..) = watch.try_read(&mut events) {}
        }
    }
}

fn open(folder: &Path, changes: Changes) -> io::Result<Receiver> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&watch, folder, changes.flags())?;
    Receiver::from_owned_fd_unchecked(watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn written_file_is_noticed_soon() {
        let folder = tempfile::tempdir().unwrap();
        for changes in [Changes::All, Changes::Finished] {
            let mut watch = Watch::new(folder.path(), changes);
            std::fs::write(folder.path().join("a.yaml"), "x").unwrap();
            let heard = watch.changed(Duration::from_secs(3600));
            let heard = tokio::time::timeout(Duration::from_secs(60), heard).await;
            assert!(heard.is_ok(), "{changes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn missing_folder_is_looked_for_periodically() {
        let mut watch = Watch::new(Path::new("/not/there"), Changes::Finished);
        let begun = tokio::time::Instant::now();
        watch.changed(Duration::from_secs(20)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(20));
    }
}
