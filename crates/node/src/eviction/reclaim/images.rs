//! Unused images.
//!
//! Matches v1.36 pkg/kubelet/images/image_gc_manager.go.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_core::eviction::image_gc::{
    FREE_DISK_SPACE_FAILED, INVALID_DISK_CAPACITY, ImageFs, ImageGc, Policy, PresentImage, Sweep,
};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::wire::{self, ContainerFilter, ImageSpec};
use plimsoll_runtime::{Error, Runtime};

/// How often images are collected.
pub const PERIOD: Duration = Duration::from_secs(300);

/// Knows since when images are there and when they were last used.
#[derive(Debug)]
pub struct Images {
    gc: ImageGc,
}

/// A warning about the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The event's reason.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
}

impl Images {
    /// Begins to watch.
    pub fn new(policy: Policy, now: Timestamp) -> Images {
        Images {
            gc: ImageGc::new(policy, now),
        }
    }

    /// Takes in what there is and what is used.
    pub async fn detect(&mut self, runtime: &dyn Runtime, now: Timestamp) -> Result<(), Error> {
        let images = runtime.list_images().await?;
        let containers = runtime.list_containers(&ContainerFilter::default()).await?;
        let in_use = containers
            .iter()
            .flat_map(names_of)
            .filter_map(|name| images.iter().find(|image| is_named(image, name)))
            .map(|image| image.id.clone())
            .collect::<BTreeSet<_>>();
        let present: Vec<PresentImage> = images
            .iter()
            .map(|image| PresentImage {
                id: image.id.clone(),
                size: Bytes(i64::try_from(image.size).unwrap_or(i64::MAX)),
                is_pinned: image.pinned,
            })
            .collect();
        self.gc.detect(now, &present, in_use);
        Ok(())
    }

    /// A periodic run: what is too old, then what it takes to get below the low threshold.
    pub async fn collect(
        &mut self,
        runtime: &dyn Runtime,
        now: Timestamp,
    ) -> Result<Option<Warning>, Error> {
        self.detect(runtime, now).await?;
        let disk = image_fs(runtime).await?;
        let Some(mut sweep) = disk.and_then(|disk| self.gc.sweep(now, disk)) else {
            return Ok(Some(Warning {
                reason: INVALID_DISK_CAPACITY,
                message: "invalid capacity 0 on image filesystem".to_owned(),
            }));
        };
        carry_out(&mut sweep, runtime).await;
        Ok(sweep.shortfall().map(|message| Warning {
            reason: FREE_DISK_SPACE_FAILED,
            message,
        }))
    }

    /// Every unused image, for eviction; answers how many bytes that freed.
    pub async fn collect_unused(
        &mut self,
        runtime: &dyn Runtime,
        now: Timestamp,
    ) -> Result<Bytes, Error> {
        self.detect(runtime, now).await?;
        let mut sweep = self.gc.sweep_unused(now);
        carry_out(&mut sweep, runtime).await;
        Ok(sweep.freed())
    }
}

async fn carry_out(sweep: &mut Sweep, runtime: &dyn Runtime) {
    while let Some(deletion) = sweep.next() {
        let image = ImageSpec {
            image: deletion.id.clone(),
            ..ImageSpec::default()
        };
        let removed = runtime.remove_image(&image).await;
        if let Err(error) = &removed {
            tracing::warn!(
                image = deletion.id,
                error = error.chain(),
                "failed to remove image"
            );
        }
        sweep.report(&deletion, removed.is_ok());
    }
}

/// Under which names a container may speak of its image.
fn names_of(container: &wire::Container) -> impl Iterator<Item = &str> {
    let spec = container.image.as_ref().map(|image| image.image.as_str());
    let names = [container.image_id.as_str(), container.image_ref.as_str()];
    names
        .into_iter()
        .chain(spec)
        .filter(|name| !name.is_empty())
}

fn is_named(image: &wire::Image, name: &str) -> bool {
    let names = image.repo_tags.iter().chain(&image.repo_digests);
    image.id == name || names.into_iter().any(|known| known == name)
}

/// The disk that the images are on; `None` if the runtime does not say.
async fn image_fs(runtime: &dyn Runtime) -> Result<Option<ImageFs>, Error> {
    let info = runtime.image_fs_info().await?;
    let found = info.image_filesystems.into_iter().next();
    let Some(place) = found.and_then(|fs| fs.fs_id) else {
        return Ok(None);
    };
    let Ok(disk) = rustix::fs::statvfs(&*place.mountpoint) else {
        return Ok(None);
    };
    let bytes = |blocks: u64| {
        Bytes(i64::try_from(blocks.saturating_mul(disk.f_frsize)).unwrap_or(i64::MAX))
    };
    Ok(Some(ImageFs {
        capacity: bytes(disk.f_blocks),
        available: bytes(disk.f_bavail),
    }))
}
