//! containerd over its socket.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use plimsoll_core::cgroup::conversion::{kubelet_weight_from_shares, runtime_weight_from_shares};
use plimsoll_runtime::Runtime;
use plimsoll_runtime::cri::{Cri, Options};
use plimsoll_testkit::containerd::Containerd;
use plimsoll_testkit::images::Image;

use super::{BUSYBOX, OPINIONATED, Service, opinionated_image};
use crate::scene::until;

struct CriService {
    containerd: Mutex<Containerd>,
    client: Arc<Cri>,
}

pub(super) async fn start() -> Arc<dyn Service> {
    let containerd = Containerd::start();
    import_images(&containerd);
    let client = Cri::new(&Options::at(containerd.endpoint())).unwrap();
    answered(&client).await;
    Arc::new(CriService {
        containerd: Mutex::new(containerd),
        client: Arc::new(client),
    })
}

fn import_images(containerd: &Containerd) {
    containerd.import(&Image::busybox(), BUSYBOX);
    containerd.import(&opinionated_image(), OPINIONATED);
}

#[async_trait(?Send)]
impl Service for CriService {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.client) as Arc<dyn Runtime>
    }

    async fn take_down(&self) {
        self.containerd.lock().unwrap().kill();
    }

    async fn bring_up(&self) {
        self.containerd.lock().unwrap().start_again();
        // The agent's connection reconnects by itself.
        answered(&self.client).await;
    }

    fn restock(&self) {
        let containerd = self.containerd.lock().unwrap();
        containerd.import_pause();
        import_images(&containerd);
    }

    fn cpu_weights(&self, shares: u64) -> Vec<u64> {
        // runc up to 1.2 converts shares as kubelets do for pods.
        vec![
            kubelet_weight_from_shares(shares),
            runtime_weight_from_shares(shares),
        ]
    }
}

/// containerd listens before its CRI part is ready.
async fn answered(client: &Cri) {
    let look = async || client.version().await.ok();
    until("the runtime answers", look).await;
}
