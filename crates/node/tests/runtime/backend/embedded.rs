//! The embedded runtime, with its image store in the same directory.

use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tempfile::TempDir;

use plimsoll_core::cgroup::Driver;
use plimsoll_core::cgroup::conversion::runtime_weight_from_shares;
use plimsoll_runtime::Runtime;
use plimsoll_runtime::embedded::{Embedded, NetworkOptions, Options};
use plimsoll_runtime::image::import::{self, Source};
use plimsoll_runtime::image::{ImageService, Registries, Store};
use plimsoll_testkit::claim::Number;
use plimsoll_testkit::images::Image;
use plimsoll_testkit::mount::unmount_below;

use super::{BUSYBOX, OPINIONATED, Service, opinionated_image};

/// Runs this program as the runtime's helper.
pub(crate) const HELPER_WORD: &str = "runtime-helper";

struct EmbeddedService {
    runtime: Mutex<Option<Arc<Embedded>>>,
    addresses: Number,
    folder: TempDir,
}

pub(super) async fn start() -> Arc<dyn Service> {
    let folder = tempfile::tempdir().unwrap();
    let service = EmbeddedService {
        runtime: Mutex::new(None),
        addresses: Number::claim(),
        folder,
    };
    service.restock();
    service.bring_up().await;
    Arc::new(service)
}

impl EmbeddedService {
    /// The runtime, if it runs.
    fn current(&self) -> MutexGuard<'_, Option<Arc<Embedded>>> {
        // A failed case must not fail others.
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> Store {
        Store::open(&self.folder.path().join("images")).unwrap()
    }
}

#[async_trait(?Send)]
impl Service for EmbeddedService {
    fn runtime(&self) -> Arc<dyn Runtime> {
        let current = self.current();
        Arc::clone(current.as_ref().unwrap()) as Arc<dyn Runtime>
    }

    async fn take_down(&self) {
        drop(self.current().take());
    }

    async fn bring_up(&self) {
        let own = std::env::current_exe().unwrap();
        let options = Options {
            root: self.folder.path().join("runtime"),
            helper: vec![own.into(), HELPER_WORD.into()],
            images: Arc::new(ImageService::new(self.store(), Registries::default())),
            cgroup_driver: Driver::Cgroupfs,
            network: NetworkOptions {
                cni_conf_dir: self.folder.path().join("net.d"),
                cni_bin_dirs: Vec::new(),
                bridge: bridge(),
                pod_cidr: Some(format!("10.91.{}.0/24", self.addresses.value())),
                forwarding: None,
            },
        };
        let runtime = Embedded::new(options).await;
        let runtime = runtime.unwrap_or_else(|error| panic!("{}", error.chain()));
        *self.current() = Some(Arc::new(runtime));
    }

    fn restock(&self) {
        let store = self.store();
        for (image, name) in [
            (Image::busybox(), BUSYBOX),
            (opinionated_image(), OPINIONATED),
        ] {
            let archive = self.folder.path().join("import.tar");
            std::fs::write(&archive, image.docker_archive(&[name])).unwrap();
            let options = import::Options::default();
            store.import(&Source::Path(archive), &options).unwrap();
        }
    }

    fn cpu_weights(&self, shares: u64) -> Vec<u64> {
        vec![runtime_weight_from_shares(shares)]
    }
}

impl Drop for EmbeddedService {
    fn drop(&mut self) {
        drop(self.current().take());
        unmount_below(self.folder.path());
        // Bridges stay as long as the node, which ends with the suite.
        let _ = plimsoll_runtime::embedded::stop_translating(&bridge());
        let _ = Command::new("ip")
            .args(["link", "delete", &bridge()])
            .output();
    }
}

/// A bridge that no other test has.
fn bridge() -> String {
    format!("plim{}", std::process::id())
}
