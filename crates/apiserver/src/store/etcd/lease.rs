//! Leases for keys that expire.
//!
//! One lease serves many keys, as upstream's server does it (matches v1.36
//! staging/src/k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go): a lease lives longer than
//! requested by the time for which it is reused, so no key expires early.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::super::Error;
use super::client::Client;

/// A lease is reused for at most this long.
const MAX_REUSE: Duration = Duration::from_secs(60);

/// ... and for at most this part of its time.
const REUSE_DIVISOR: u32 = 20;

/// Keys on one lease; etcd deletes all of them in one step.
const MAX_KEYS: u32 = 1000;

#[derive(Debug)]
struct Lease {
    id: i64,
    granted: Instant,
    keys: u32,
}

/// The most recent leases, by their time to live in seconds.
#[derive(Debug, Default)]
pub(super) struct Leases {
    current: Mutex<BTreeMap<u64, Lease>>,
}

impl Leases {
    /// A lease that lasts at least `ttl` from now.
    pub(super) async fn lease(&self, client: &Client, ttl: Duration) -> Result<i64, Error> {
        let ttl_secs = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let reuse = MAX_REUSE.min(ttl / REUSE_DIVISOR);
        let mut current = self.current.lock().await;
        if let Some(lease) = current.get_mut(&ttl_secs)
            && lease.granted.elapsed() < reuse
            && lease.keys < MAX_KEYS
        {
            lease.keys += 1;
            return Ok(lease.id);
        }
        let lasts = ttl_secs.saturating_add(reuse.as_secs() + u64::from(reuse.subsec_nanos() > 0));
        let granted = Instant::now();
        let id = client
            .grant_lease(i64::try_from(lasts).unwrap_or(i64::MAX))
            .await?;
        let lease = Lease {
            id,
            granted,
            keys: 1,
        };
        current.insert(ttl_secs, lease);
        Ok(id)
    }
}
