//! A snapshot of etcd: pages of one revision.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;

use super::super::entry::prefix_end;
use super::super::snapshot::Rows;
use super::super::{Error, Revision, Snapshot, SnapshotEntry};
use super::client::{Client, signed};
use super::watch::entry;
use super::wire::{RangeRequest, WHOLE_KEYSPACE};

/// Keys of a page.
const PAGE: i64 = 500;

#[derive(Debug)]
struct Pages {
    client: Client,
    revision: Revision,
    /// Where the next page starts; `None` after the last.
    next: Option<Bytes>,
    end: Bytes,
    /// When leases end, in milliseconds since 1970.
    leases: HashMap<i64, u64>,
}

/// Reads the keys with the prefix as they are now.
pub(super) async fn begin(client: &Client, prefix: Bytes) -> Result<Snapshot, Error> {
    let revision = client.current_revision().await?;
    let pages = Pages {
        client: client.clone(),
        revision,
        end: prefix_end(&prefix).unwrap_or(WHOLE_KEYSPACE),
        next: Some(match prefix.is_empty() {
            true => WHOLE_KEYSPACE,
            false => prefix,
        }),
        leases: HashMap::new(),
    };
    Ok(Snapshot::new(revision, pages))
}

#[async_trait]
impl Rows for Pages {
    async fn next_chunk(&mut self) -> Result<Option<Vec<SnapshotEntry>>, Error> {
        let Some(first) = self.next.take() else {
            return Ok(None);
        };
        let request = RangeRequest {
            key: first,
            range_end: self.end.clone(),
            limit: PAGE,
            revision: signed(self.revision),
            count_only: false,
        };
        let response = self.client.range(request).await?;
        let has_more = response.count > i64::try_from(response.kvs.len()).unwrap_or(i64::MAX);
        if let Some(last) = response.kvs.last().filter(|_| has_more) {
            let mut next = last.key.to_vec();
            next.push(0);
            self.next = Some(next.into());
        }
        let mut entries = Vec::with_capacity(response.kvs.len());
        for kv in response.kvs {
            let expires_at = match kv.lease {
                0 => 0,
                lease => self.end_of(lease).await?,
            };
            entries.push(SnapshotEntry {
                entry: entry(kv),
                expires_at,
            });
        }
        Ok(Some(entries))
    }
}

impl Pages {
    async fn end_of(&mut self, lease: i64) -> Result<u64, Error> {
        if let Some(end) = self.leases.get(&lease) {
            return Ok(*end);
        }
        let lasts = Duration::from_secs(self.client.lease_lasts(lease).await?);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let end = now.unwrap_or_default().saturating_add(lasts);
        // Zero would mean that the key does not expire.
        let end = u64::try_from(end.as_millis()).unwrap_or(u64::MAX).max(1);
        self.leases.insert(lease, end);
        Ok(end)
    }
}
