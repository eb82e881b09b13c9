//! Changes from etcd: one watch of everything feeds all watchers of this process.
//!
//! Every revision changes at least one key, so a watch of the whole keyspace sees every revision
//! and always knows its current revision. Therefore a watcher of a quiet prefix gets progress
//! notifications, which etcd before 3.5 does not support.
//!
//! etcd lets a watch begin at the very revision that was compacted, and then leaves out deletes of
//! that revision. So after past changes have arrived, the watch checks whether the revision before
//! them can still be read; if not, something may be missing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use plimsoll_client::supervision::{Supervisor, Weight};

use super::super::error::TaskFailed;
use super::super::hub::Hub;
use super::super::watch::History;
use super::super::{Change, Entry, Error, Revision};
use super::client::{Changes, Client, unsigned};
use super::wire::{Event, KeyValue, WatchResponse};

/// The name of the watch in health checks and errors.
const WATCH: &str = "etcd-watch";

/// The interval between two attempts to reconnect to etcd.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Publishes all changes for as long as the store is open.
pub(super) fn follow(supervisor: &Supervisor, client: &Client, hub: &Hub) {
    let (client, hub) = (client.clone(), hub.clone());
    let stop = supervisor.stopping().clone();
    let mut has_failed = false;
    supervisor.keep(WATCH, Weight::Vital, move || {
        if std::mem::replace(&mut has_failed, true) {
            // Some watchers may have got a change that others did not.
            let failed = Error::Unavailable {
                store: client.name().to_owned(),
                source: Arc::new(TaskFailed(WATCH)),
            };
            hub.interrupt(&failed, 0);
        }
        let (client, hub, stop) = (client.clone(), hub.clone(), stop.clone());
        async move {
            let seen = hub.published();
            stop.run_until_cancelled(feed(client, hub, seen)).await;
            Ok(())
        }
    });
}

/// Publishes all changes after `seen`.
async fn feed(client: Client, hub: Hub, mut seen: Revision) {
    loop {
        let error = publish(&client, &hub, &mut seen).await;
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            seen,
            "etcd watch failed, reconnecting"
        );
        if let Error::Compacted { .. } = error {
            // Changes were missed. Watchers have to list again.
            match client.current_revision().await {
                Ok(current) => {
                    hub.interrupt(&error, current);
                    seen = current;
                }
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "failed to get current revision from etcd"
                ),
            }
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// Publishes until an error.
async fn publish(client: &Client, hub: &Hub, seen: &mut Revision) -> Error {
    let mut stream = match client.watch_everything(*seen + 1).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    let mut changes = Vec::new();
    let mut unchecked = true;
    loop {
        let response = match stream.next().await {
            Ok(response) => response,
            Err(error) => return error,
        };
        if unchecked && !response.events.is_empty() {
            if let Err(error) = client.check_readable(*seen).await {
                return error;
            }
            unchecked = false;
        }
        changes.extend(response.events.into_iter().filter_map(change));
        // A revision must not be published in two parts.
        if response.fragment {
            continue;
        }
        if let Some(last) = changes.last() {
            *seen = last.revision;
            hub.publish(*seen, &changes, |at| Ok(changes[at].previous.clone()));
            changes.clear();
        }
    }
}

/// Changes between two revisions, from a watch of their own.
#[derive(Debug)]
pub(super) struct PastChanges {
    pub(super) client: Client,
    pub(super) prefix: Bytes,
    pub(super) with_previous: bool,
    /// The last revision that was read.
    pub(super) seen: Revision,
    /// The last revision that is not delivered live.
    pub(super) through: Revision,
    pub(super) stream: Option<Changes>,
    /// Changes that have arrived and may be incomplete.
    pub(super) unchecked: Option<WatchResponse>,
}

impl PastChanges {
    /// The incoming changes; the stream is opened when it is first needed.
    async fn receive(&mut self) -> Result<WatchResponse, Error> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = self.client.watch_everything(self.seen + 1).await?;
                self.stream.insert(stream)
            }
        };
        stream.next().await
    }
}

#[async_trait]
impl History for PastChanges {
    async fn next_chunk(&mut self) -> Result<Option<Vec<Change>>, Error> {
        // An empty etcd is at revision 1 without having changed anything.
        if self.seen >= self.through || self.through <= 1 {
            return Ok(None);
        }
        if self.unchecked.is_none() {
            self.unchecked = Some(self.receive().await?);
        }
        self.client.check_readable(self.seen).await?;
        let response = self.unchecked.take().unwrap_or_default();
        let changes: Vec<Change> = response.events.into_iter().filter_map(change).collect();
        if let Some(last) = changes.last() {
            // The rest of the last revision may come in the next fragment.
            self.seen = last.revision - u64::from(response.fragment);
        }
        let wanted = |change: &Change| {
            change.revision <= self.through && change.key.starts_with(&self.prefix)
        };
        let without_previous = |mut change: Change| {
            if !self.with_previous {
                change.previous = None;
            }
            change
        };
        let changes = changes.into_iter().filter(wanted).map(without_previous);
        Ok(Some(changes.collect()))
    }
}

/// An event as a change. etcd sends a key with every event.
fn change(event: Event) -> Option<Change> {
    let is_delete = event.is_delete();
    let kv = event.kv?;
    Some(Change {
        key: kv.key.clone(),
        revision: unsigned(kv.mod_revision),
        entry: (!is_delete).then(|| entry(kv)),
        previous: event.prev_kv.map(entry),
    })
}

pub(super) fn entry(kv: KeyValue) -> Entry {
    Entry {
        key: kv.key,
        value: kv.value,
        create_revision: unsigned(kv.create_revision),
        mod_revision: unsigned(kv.mod_revision),
        unreadable: None,
    }
}
