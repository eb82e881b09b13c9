//! Compacts etcd, together with other servers on the same etcd.

use std::time::Duration;

use bytes::Bytes;
use plimsoll_client::supervision::{Supervisor, Weight};

use super::super::{Error, Revision};
use super::client::{Client, signed, unsigned};
use super::wire::{Compare, Operation, PutRequest, RangeRequest, TxnRequest};

/// The key by which servers agree on the one that compacts; upstream's name
/// (staging/src/k8s.io/apiserver/pkg/storage/etcd3/compact.go).
pub(super) const AGREEMENT_KEY: Bytes = Bytes::from_static(b"compact_rev_key");

/// Compacts in turns of `keep_for` for as long as the store is open.
pub(super) fn follow(supervisor: &Supervisor, client: &Client, keep_for: Duration) {
    let (client, stop) = (client.clone(), supervisor.stopping().clone());
    supervisor.keep("etcd-compaction", Weight::Vital, move || {
        let (client, stop) = (client.clone(), stop.clone());
        async move {
            stop.run_until_cancelled(run(client, keep_for)).await;
            Ok(())
        }
    });
}

/// Compacts to where the turn before began. The first server to write the key in a turn does it;
/// others see that it has been written.
async fn run(client: Client, keep_for: Duration) {
    let mut turn = Turn::default();
    loop {
        tokio::time::sleep(keep_for).await;
        match take_turn(&client, &turn).await {
            Ok(next) => turn = next,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "failed to compact etcd"
                );
            }
        }
    }
}

/// The state at the end of the last interval.
#[derive(Debug, Default)]
struct Turn {
    /// When the agreement key was written last.
    agreed_at: Revision,
    /// The revision then.
    revision: Revision,
}

async fn take_turn(client: &Client, turn: &Turn) -> Result<Turn, Error> {
    let put = PutRequest {
        key: AGREEMENT_KEY,
        value: turn.revision.to_string().into(),
        lease: 0,
    };
    let read = RangeRequest {
        key: AGREEMENT_KEY,
        ..RangeRequest::default()
    };
    let request = TxnRequest {
        compare: vec![Compare::last_put_at(AGREEMENT_KEY, signed(turn.agreed_at))],
        success: vec![Operation::Put(put).into()],
        failure: vec![Operation::Range(read).into()],
    };
    let response = client.txn(request).await?;
    let revision = response
        .header
        .map_or(0, |header| unsigned(header.revision));
    if response.succeeded {
        if turn.revision > 0 {
            client.compact(signed(turn.revision)).await?;
        }
        return Ok(Turn {
            agreed_at: revision,
            revision,
        });
    }
    let ranges = response
        .responses
        .into_iter()
        .filter_map(|response| response.range);
    let agreed = ranges.flat_map(|range| range.kvs).next();
    Ok(Turn {
        agreed_at: agreed.map_or(0, |kv| unsigned(kv.mod_revision)),
        revision,
    })
}
