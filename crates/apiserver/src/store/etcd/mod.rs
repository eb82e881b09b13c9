//! The store over a real etcd, v3 protocol, 3.4 or later. Several servers may share one etcd.
//!
//! - [`wire`]: the messages. [`client`]: the calls.
//! - [`watch`]: one watch of everything, fanned out to all watchers.
//! - [`snapshot`]: everything at one revision.
//! - [`latest`]: how consistent reads share a query. [`lease`]: expiry. [`compaction`]: compaction.

mod client;
mod compaction;
mod latest;
mod lease;
mod snapshot;
mod watch;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use plimsoll_client::supervision::Supervisor;
use tokio_util::sync::CancellationToken;

use super::entry::prefix_end;
use super::hub::Hub;
use super::{
    Error, Found, Outcome, Page, RangeRequest, Revision, Snapshot, Store, Txn, Watch, WatchRequest,
    Write,
};
use client::{Client, signed, unsigned};
use latest::Latest;
use lease::Leases;
use watch::{PastChanges, entry};
use wire::{Compare, Operation, RequestOp, TxnRequest, TxnResponse};

/// How to connect to etcd.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// `http://` or `https://` addresses of members of one cluster.
    pub endpoints: Vec<String>,
    /// Certificates, for `https://`.
    pub tls: Option<EtcdTls>,
    /// Younger history stays readable; `None` leaves compaction to another process.
    pub keep_history_for: Option<Duration>,
    /// Changes buffered for a slow watcher.
    pub watch_buffer: usize,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            tls: None,
            keep_history_for: Some(Duration::from_secs(5 * 60)),
            watch_buffer: 10_000,
        }
    }
}

/// Certificates in PEM form.
#[derive(Clone)]
pub struct EtcdTls {
    /// The CA of etcd's certificate.
    pub ca_pem: String,
    /// This client's certificate and key.
    pub client_pem: Option<(String, String)>,
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not be logged.
        f.debug_struct("EtcdTls").finish_non_exhaustive()
    }
}

/// A store in an etcd cluster.
#[derive(Debug)]
pub struct EtcdStore {
    client: Client,
    hub: Hub,
    latest: Latest,
    leases: Leases,
    supervisor: Supervisor,
    closed: AtomicBool,
}

impl EtcdStore {
    /// Connects, and follows all changes from now on.
    pub async fn connect(options: &EtcdOptions) -> Result<Self, Error> {
        let client = Client::new(options)?;
        let current = client.current_revision().await?;
        let hub = Hub::new(current, options.watch_buffer);
        let supervisor = Supervisor::new(CancellationToken::new(), Arc::default());
        watch::follow(&supervisor, &client, &hub);
        if let Some(keep_for) = options.keep_history_for {
            compaction::follow(&supervisor, &client, keep_for);
        }
        Ok(Self {
            client,
            hub,
            latest: Latest::default(),
            leases: Leases::default(),
            supervisor,
            closed: AtomicBool::new(false),
        })
    }

    /// The tasks that run as long as the store is open.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    fn client(&self) -> Result<&Client, Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(&self.client)
    }

    async fn operation(&self, client: &Client, write: Write) -> Result<RequestOp, Error> {
        let operation = match write {
            Write::Delete { key } => Operation::Delete(wire::DeleteRangeRequest { key }),
            Write::Put { key, value, ttl } => {
                let lease = match ttl {
                    Some(ttl) => self.leases.lease(client, ttl).await?,
                    None => 0,
                };
                Operation::Put(wire::PutRequest { key, value, lease })
            }
        };
        Ok(operation.into())
    }

    fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        self.supervisor.stopping().cancel();
        self.hub.close();
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.stop();
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Found, Error> {
        let request = wire::RangeRequest {
            key: Bytes::copy_from_slice(key),
            revision: signed(at.unwrap_or(0)),
            ..wire::RangeRequest::default()
        };
        let mut response = self.client()?.range(request).await?;
        Ok(Found {
            revision: at.unwrap_or(header_revision(response.header)),
            entry: response.kvs.pop().map(entry),
        })
    }

    async fn range(&self, request: RangeRequest) -> Result<Page, Error> {
        let end = prefix_end(&request.prefix).unwrap_or(wire::WHOLE_KEYSPACE);
        let first = request.first_key();
        // An empty key means "one key" to etcd; the smallest key is a zero byte.
        let first = if first.is_empty() {
            &wire::WHOLE_KEYSPACE
        } else {
            first
        };
        let limit = request.limit.unwrap_or(0);
        let query = wire::RangeRequest {
            key: Bytes::copy_from_slice(first),
            range_end: end,
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            revision: signed(request.at.unwrap_or(0)),
            // Zero means "all" to etcd.
            count_only: request.limit == Some(0),
        };
        let response = self.client()?.range(query).await?;
        let entries: Vec<_> = response.kvs.into_iter().map(entry).collect();
        let returned = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        Ok(Page {
            revision: request.at.unwrap_or(header_revision(response.header)),
            remaining: unsigned(response.count).saturating_sub(returned),
            entries,
        })
    }

    async fn txn(&self, txn: Txn) -> Result<Outcome, Error> {
        txn.check()?;
        let client = self.client()?;
        let mut request = TxnRequest::default();
        for compare in &txn.compares {
            // A key that does not exist compares as modified at zero.
            let expected = signed(compare.mod_revision.unwrap_or(0));
            let read = wire::RangeRequest {
                key: compare.key.clone(),
                ..wire::RangeRequest::default()
            };
            (request.compare).push(Compare::last_put_at(compare.key.clone(), expected));
            request.failure.push(Operation::Range(read).into());
        }
        for write in txn.writes {
            request.success.push(self.operation(client, write).await?);
        }
        let compares = request.compare.clone();
        Ok(outcome(client.txn(request).await?, compares))
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, Error> {
        let WatchRequest {
            prefix,
            after,
            with_previous,
        } = request;
        let client = self.client()?;
        let (subscription, live_after) = self.hub.subscribe(prefix.clone(), with_previous)?;
        if after >= live_after {
            return Ok(Watch::new(after, None, subscription));
        }
        client.check_readable(after).await?;
        let history = PastChanges {
            client: client.clone(),
            prefix,
            with_previous,
            seen: after,
            through: live_after,
            stream: None,
            unchecked: None,
        };
        Ok(Watch::new(after, Some(Box::new(history)), subscription))
    }

    fn has_one_writer(&self) -> bool {
        false
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        match self.client()?.compact(signed(revision)).await {
            Err(Error::Compacted { .. }) => Ok(()),
            result => result,
        }
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        let client = self.client()?;
        self.latest
            .get(async || client.current_revision().await)
            .await
    }

    async fn ready(&self) -> Result<(), Error> {
        self.client()?.check_space().await
    }

    fn checks(&self) -> Vec<(&'static str, bool)> {
        self.supervisor.checks()
    }

    async fn snapshot(&self, prefix: Bytes) -> Result<Snapshot, Error> {
        snapshot::begin(self.client()?, prefix).await
    }

    async fn close(&self) -> Result<(), Error> {
        self.stop();
        Ok(())
    }
}

fn header_revision(header: Option<wire::ResponseHeader>) -> Revision {
    header.map_or(0, |header| unsigned(header.revision))
}

fn outcome(response: TxnResponse, compares: Vec<Compare>) -> Outcome {
    if response.succeeded {
        let revision = header_revision(response.header);
        return Outcome::Committed { revision };
    }
    // Each comparison has its key read in the same order.
    let ranges = response
        .responses
        .into_iter()
        .map(|response| response.range);
    let current = ranges.map(|range| range.and_then(|range| range.kvs.into_iter().next()));
    let mut failed = compares
        .into_iter()
        .zip(current)
        .filter(|(compare, current)| {
            compare.mod_revision != Some(current.as_ref().map_or(0, |kv| kv.mod_revision))
        });
    let (compare, current) = failed.next().expect("etcd says that a comparison failed");
    Outcome::Conflict {
        key: compare.key,
        current: current.map(entry),
    }
}
