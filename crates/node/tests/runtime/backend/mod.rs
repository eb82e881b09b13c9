//! The runtimes that the contract is run on.

mod cri;
mod embedded;

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use serde_json::json;

use plimsoll_runtime::Runtime;
use plimsoll_testkit::images::Image;

use crate::scene::{Running, Scene};

pub(crate) use embedded::HELPER_WORD;

/// Busybox under a name with a host.
pub(crate) const BUSYBOX: &str = "plimsoll.test/busybox:1";
/// An image with a configuration of its own; see [`opinionated_image`].
pub(crate) const OPINIONATED: &str = "docker.io/library/opinionated:1";

/// The timeout of a case.
const CASE_LIMIT: Duration = Duration::from_secs(120);

/// A kind of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// containerd over its socket.
    Cri,
    /// The embedded runtime.
    Embedded,
}

impl Backend {
    pub(crate) const ALL: [Backend; 2] = [Backend::Cri, Backend::Embedded];
}

impl fmt::Display for Backend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Backend::Cri => "cri",
            Backend::Embedded => "embedded",
        })
    }
}

/// A runtime that can be reopened, as after a restart of the agent or of the runtime.
#[async_trait(?Send)]
pub(crate) trait Service: Send + Sync {
    /// The runtime as it is at the moment.
    fn runtime(&self) -> Arc<dyn Runtime>;
    /// Kills it; containers keep running.
    async fn take_down(&self);
    /// Starts it again.
    async fn bring_up(&self);
    /// Imports again the images that cases need.
    fn restock(&self);
    /// The cpu weights to which it may convert cpu shares on cgroup v2.
    fn cpu_weights(&self, shares: u64) -> Vec<u64>;
}

/// The runtimes, each started by the first case that needs it.
pub(crate) struct Suite {
    tokio: tokio::runtime::Runtime,
    services: [Mutex<Option<Arc<dyn Service>>>; Backend::ALL.len()],
    /// Cases that stop a runtime run alone.
    calm: RwLock<()>,
}

impl Suite {
    pub(crate) fn new() -> Self {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        Self {
            tokio: tokio.unwrap(),
            services: Backend::ALL.map(|_| Mutex::new(None)),
            calm: RwLock::new(()),
        }
    }

    /// Runs a case in parallel with others.
    pub(crate) fn run(&self, backend: Backend, case: for<'a> fn(&'a Scene) -> Running<'a>) {
        let _calm = self
            .calm
            .read()
            .unwrap_or_else(|broken| broken.into_inner());
        self.play(backend, case);
    }

    /// Runs a case while no other runs.
    pub(crate) fn run_alone(&self, backend: Backend, case: for<'a> fn(&'a Scene) -> Running<'a>) {
        let _calm = self
            .calm
            .write()
            .unwrap_or_else(|broken| broken.into_inner());
        self.play(backend, case);
    }

    fn play(&self, backend: Backend, case: for<'a> fn(&'a Scene) -> Running<'a>) {
        let service = self.service(backend);
        self.tokio.block_on(async {
            let scene = Scene::new(service);
            let limited = tokio::time::timeout(CASE_LIMIT, case(&scene));
            let outcome = AssertUnwindSafe(limited).catch_unwind().await;
            let cleared = AssertUnwindSafe(scene.clear()).catch_unwind().await;
            match outcome.and_then(|ended| cleared.map(|()| ended)) {
                Ok(ended) => ended.unwrap_or_else(|_| panic!("no end within {CASE_LIMIT:?}")),
                Err(panic) => resume_unwind(panic),
            }
        });
    }

    fn service(&self, backend: Backend) -> Arc<dyn Service> {
        let at = Backend::ALL.iter().position(|known| *known == backend);
        // A runtime that did not start is tried again, so that each case shows the error.
        let slot = self.services[at.unwrap()].lock();
        let mut slot = slot.unwrap_or_else(|broken| broken.into_inner());
        let service = slot.get_or_insert_with(|| {
            self.tokio.block_on(async {
                match backend {
                    Backend::Cri => cri::start().await,
                    Backend::Embedded => embedded::start().await,
                }
            })
        });
        Arc::clone(service)
    }

    /// Stops all runtimes and what they started.
    pub(crate) fn end(&self) {
        let _inside = self.tokio.enter();
        for slot in &self.services {
            drop(
                slot.lock()
                    .unwrap_or_else(|broken| broken.into_inner())
                    .take(),
            );
        }
    }
}

/// Busybox with a configuration for every setting that a container may omit.
fn opinionated_image() -> Image {
    let mut image = Image::busybox();
    image.config = json!({
        "Entrypoint": ["echo", "entrypoint"],
        "Cmd": ["cmd"],
        "Env": ["PATH=/bin", "COLOR=green", "SHAPE=round"],
        "WorkingDir": "/var",
        "User": "nobody",
        "StopSignal": "SIGUSR1",
    });
    image
}
