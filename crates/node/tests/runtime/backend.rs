//! The runtimes that the contract is run on.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use serde_json::json;

use plimsoll_core::cgroup::conversion::{kubelet_weight_from_shares, runtime_weight_from_shares};
use plimsoll_node::runtime::Runtime;
use plimsoll_node::runtime::cri::{Cri, Options};
use plimsoll_testkit::containerd::Containerd;
use plimsoll_testkit::images::Image;

use crate::scene::{Running, Scene};

/// Busybox under a name with a host.
pub(crate) const BUSYBOX: &str = "plimsoll.test/busybox:1";
/// An image whose configuration says something; see [`opinionated_image`].
pub(crate) const OPINIONATED: &str = "docker.io/library/opinionated:1";

/// No case needs longer, unless something hangs.
const CASE_LIMIT: Duration = Duration::from_secs(120);

/// A kind of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// containerd over its socket.
    Cri,
}

impl Backend {
    pub(crate) const ALL: [Backend; 1] = [Backend::Cri];
}

impl fmt::Display for Backend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Backend::Cri => "cri",
        })
    }
}

/// A runtime that can be had anew, as an agent finds it after its own restart or the runtime's.
#[async_trait(?Send)]
pub(crate) trait Service: Send + Sync {
    /// The runtime as it is at the moment.
    fn runtime(&self) -> Arc<dyn Runtime>;
    /// Ends it without warning; containers go on.
    async fn take_down(&self);
    /// Brings it back.
    async fn bring_up(&self);
    /// What it may make of a container's cpu shares where cgroups are v2.
    fn cpu_weights(&self, shares: u64) -> Vec<u64>;
}

/// The runtimes, each started by the first case that needs it.
pub(crate) struct Suite {
    tokio: tokio::runtime::Runtime,
    cri: Mutex<Option<Arc<dyn Service>>>,
    /// Cases that take a runtime down run alone.
    calm: RwLock<()>,
}

impl Suite {
    pub(crate) fn new() -> Self {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        Self {
            tokio: tokio.unwrap(),
            cri: Mutex::new(None),
            calm: RwLock::new(()),
        }
    }

    /// Runs a case beside others.
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
        let slot = match backend {
            Backend::Cri => &self.cri,
        };
        // One that did not start is tried again, so that each case tells why.
        let mut slot = slot.lock().unwrap_or_else(|broken| broken.into_inner());
        let service = slot.get_or_insert_with(|| match backend {
            Backend::Cri => self.tokio.block_on(CriService::start()),
        });
        Arc::clone(service)
    }

    /// Ends all runtimes and what they started.
    pub(crate) fn end(&self) {
        let _inside = self.tokio.enter();
        let slot = self.cri.lock();
        drop(slot.unwrap_or_else(|broken| broken.into_inner()).take());
    }
}

struct CriService {
    containerd: Mutex<Containerd>,
    client: Mutex<Arc<Cri>>,
}

impl CriService {
    async fn start() -> Arc<dyn Service> {
        let containerd = Containerd::start();
        containerd.import(&Image::busybox(), BUSYBOX);
        containerd.import(&opinionated_image(), OPINIONATED);
        let client = connect(&containerd).await;
        Arc::new(Self {
            containerd: Mutex::new(containerd),
            client: Mutex::new(client),
        })
    }
}

#[async_trait(?Send)]
impl Service for CriService {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&*self.client.lock().unwrap()) as Arc<dyn Runtime>
    }

    async fn take_down(&self) {
        self.containerd.lock().unwrap().kill();
    }

    async fn bring_up(&self) {
        self.containerd.lock().unwrap().start_again();
        let old = Arc::clone(&*self.client.lock().unwrap());
        // The agent's connection comes back by itself.
        answered(&old).await;
    }

    fn cpu_weights(&self, shares: u64) -> Vec<u64> {
        // runc up to 1.2 counts as kubelets do for pods.
        vec![
            kubelet_weight_from_shares(shares),
            runtime_weight_from_shares(shares),
        ]
    }
}

async fn connect(containerd: &Containerd) -> Arc<Cri> {
    let client = Cri::new(&Options::at(containerd.endpoint())).unwrap();
    answered(&client).await;
    Arc::new(client)
}

/// containerd listens before its CRI part is ready.
async fn answered(client: &Cri) {
    crate::scene::until("the runtime answers", async || {
        client.version().await.ok().map(drop)
    })
    .await;
}

/// Busybox that says who it is, with words of its own for all that a container may leave open.
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
