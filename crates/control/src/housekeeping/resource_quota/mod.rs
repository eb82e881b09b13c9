//! Counts what namespaces use of their quotas, and writes it to the quotas' status.
//!
//! The API server charges what comes in to the status; this loop gives back what is gone, counts
//! everything when a quota is new or changed, and once every five minutes in any case. Matches
//! v1.36 pkg/controller/resourcequota and pkg/quota/v1.
//!
//! Reading order: `counting` (what counts for what), `status` (what is written), this file (the
//! loop), `sources` (the objects that are counted).

mod counting;
mod sources;
mod status;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::PostParams;
use kube::{Api, Client};
use plimsoll_core::object::parse_resource_list;
use plimsoll_core::object::resource_quota::QuotaView;
use plimsoll_core::problem::Problem;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use plimsoll_client::clock::Clock;
use plimsoll_client::informer::{Change, Informer, Informers, Key};

use sources::Sources;

/// How many quotas are counted at the same time.
const WORKERS: usize = 5;
/// How often the server's kinds are discovered.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);

/// The settings of the loop.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often everything is counted even if nothing seems to have changed.
    pub resync_period: Duration,
    /// The clock.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            resync_period: Duration::from_secs(300),
            clock: Clock::system(),
        }
    }
}

/// Why a quota could not be brought up to date.
#[derive(Debug, Error)]
enum Error {
    #[error("malformed quota: {}", joined(.0))]
    Malformed(Vec<Problem>),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

fn joined(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let quotas: Arc<Informer<ResourceQuota>> = informers.of();
    let queue = WorkQueue::new("resourcequota_primary");
    let changes = Arc::clone(&queue);
    let _changes = quotas.on_change(move |change| match change {
        Change::Added(_) => changes.add(change.key()),
        // Usage that others write is theirs; limits are to be copied to the status.
        Change::Updated { before, after } if before.spec != after.spec => {
            changes.add(change.key());
        }
        _ => {}
    });
    let sources = Sources::new(Arc::clone(&informers), Arc::clone(&quotas), &queue);
    let (client, clock) = (informers.client().clone(), options.clock);
    let work = async {
        quotas.synced().await;
        sources.synced().await;
        tokio::join!(
            sources.run_discovery(DISCOVERY_PERIOD),
            resync(&quotas, &queue, options.resync_period),
            Arc::clone(&queue).work(WORKERS, {
                let (quotas, sources) = (Arc::clone(&quotas), Arc::clone(&sources));
                move |key: Key| {
                    let (quotas, sources) = (Arc::clone(&quotas), Arc::clone(&sources));
                    let (client, clock) = (client.clone(), clock.clone());
                    async move { count(&client, &clock, &quotas, &sources, &key).await }
                }
            }),
        );
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn resync(quotas: &Informer<ResourceQuota>, queue: &WorkQueue<Key>, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        for quota in quotas.list() {
            queue.add(Key::of(&quota.metadata));
        }
    }
}

/// Counts what a quota counts and writes its status, if that changes it.
async fn count(
    client: &Client,
    clock: &Clock,
    quotas: &Informer<ResourceQuota>,
    sources: &Arc<Sources>,
    key: &Key,
) -> Result<Option<Duration>, Error> {
    let Some(quota) = quotas.get(key) else {
        return Ok(None);
    };
    let limits = limits(&quota).map_err(Error::Malformed)?;
    let usage = sources.usage(&key.namespace, &limits, clock.now()).await;
    let status = status::changed(&quota, &limits.hard, &usage).map_err(Error::Malformed)?;
    let Some(status) = status else {
        return Ok(None);
    };
    let mut written = ResourceQuota::clone(&quota);
    written.status = Some(status);
    let api: Api<ResourceQuota> = Api::namespaced(client.clone(), &key.namespace);
    let params = PostParams::default();
    match api.replace_status(&key.name, &params, &written).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        result => Ok(result.map(|_| None)?),
    }
}

/// The quota with the limits of its spec, rather than those of the last count.
fn limits(quota: &ResourceQuota) -> Result<QuotaView, Vec<Problem>> {
    let mut view = QuotaView::from_api(quota)?;
    let mut problems = Vec::new();
    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    view.hard = parse_resource_list("spec.hard", hard, &mut problems);
    match problems.is_empty() {
        true => Ok(view),
        false => Err(problems),
    }
}

#[cfg(test)]
mod tests;
