//! Waiting until something happens in a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// Tells of changes in a folder. Without inotify (there are only so many), it tells now and then.
///
/// An inotify descriptor is read like a pipe, and that is how it is waited for.
#[derive(Debug)]
pub(crate) struct Watch(Option<Receiver>);

impl Watch {
    pub(crate) fn new(folder: &Path) -> Watch {
        let watch = open(folder).inspect_err(|error| {
            let folder = folder.display();
            tracing::debug!(%folder, %error, "no inotify, polling instead");
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

fn open(folder: &Path) -> io::Result<Receiver> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let changes = WatchFlags::MODIFY
        | WatchFlags::CREATE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::ATTRIB;
    inotify::add_watch(&watch, folder, changes)?;
    Receiver::from_owned_fd_unchecked(watch)
}
