//! The loop that all workload controllers run: their caches fill, changes put keys into a queue,
//! and workers take them out.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::informer::{Key, Subscription};
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;

/// A controller of a kind of object.
pub(super) trait ControlLoop: Send + Sync + 'static {
    /// The name of its queue in metrics.
    const QUEUE: &'static str;
    /// Why a pass failed.
    type Error: Display + Send;

    /// Waits until the caches that it reads are filled.
    fn synced(&self) -> impl Future<Output = ()> + Send;

    /// Has changes add the keys of the objects that they concern, for as long as the subscriptions
    /// live.
    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription>;

    /// Brings one object up to date; returns when to look at it again in any case.
    fn sync(&self, key: &Key)
    -> impl Future<Output = Result<Option<Duration>, Self::Error>> + Send;

    /// What it does beside that until it is stopped, such as work on a second queue; nothing unless
    /// implemented.
    fn run_beside(self: &Arc<Self>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Runs a controller until `stop`, on `workers` objects at a time.
pub(super) async fn run<C: ControlLoop>(controller: C, workers: usize, stop: &CancellationToken) {
    let controller = Arc::new(controller);
    let working = async {
        controller.synced().await;
        let queue = WorkQueue::new(C::QUEUE);
        let _subscriptions = controller.watch(&queue);
        let worker = Arc::clone(&controller);
        let work = queue.work(workers, move |key: Key| {
            let controller = Arc::clone(&worker);
            async move { controller.sync(&key).await }
        });
        tokio::join!(work, controller.run_beside());
    };
    stop.run_until_cancelled(working).await;
}
