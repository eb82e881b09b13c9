//! How the controllers of a process are run: each in a task of its own, which is started again if it
//! fails, so that an object that one of them cannot bear does not stop the others.

use std::sync::Arc;

use futures::FutureExt;
use plimsoll_client::informer::Informers;
use plimsoll_client::supervision::{Supervisor, Weight};
use tokio_util::sync::CancellationToken;

/// The parts shared by all controllers of a process.
#[derive(Clone, Copy, Debug)]
pub struct Loops<'a> {
    /// Starts a controller again that fails.
    pub supervisor: &'a Supervisor,
    /// Their informers.
    pub informers: &'a Arc<Informers>,
    /// Ends all of them.
    pub stop: &'a CancellationToken,
}

impl Loops<'_> {
    /// Has a controller run under that name.
    pub(crate) fn keep<Settings, Run, Task>(&self, name: &'static str, settings: Settings, run: Run)
    where
        Settings: Clone + Send + 'static,
        Run: Fn(Arc<Informers>, Settings, CancellationToken) -> Task + Send + 'static,
        Task: Future<Output = ()> + Send + 'static,
    {
        let (informers, stop) = (Arc::clone(self.informers), self.stop.clone());
        self.supervisor.keep(name, Weight::Vital, move || {
            run(Arc::clone(&informers), settings.clone(), stop.clone()).map(Ok)
        });
    }
}
