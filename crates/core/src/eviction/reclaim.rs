//! What the node can free before it evicts a pod.

use crate::threshold::{DiskLayout, Signal, StarvedResource};

/// Something the node can throw away without hurting a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReclaim {
    /// Remove all dead containers, those of ended pods included.
    ContainerGc,
    /// Remove all unused images.
    ImageGc,
}

impl NodeReclaim {
    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeReclaim::ContainerGc => "containerGC",
            NodeReclaim::ImageGc => "imageGC",
        }
    }

    /// What helps against a shortage, in order. Nothing helps against one of memory or process
    /// ids, nor on a nodefs that holds neither containers nor images. Matches v1.36
    /// `buildSignalToNodeReclaimFuncs` of pkg/kubelet/eviction/helpers.go.
    pub fn for_signal(signal: Signal, layout: DiskLayout) -> &'static [NodeReclaim] {
        const CONTAINERS: NodeReclaim = NodeReclaim::ContainerGc;
        const IMAGES: NodeReclaim = NodeReclaim::ImageGc;
        let is_disk = matches!(
            signal.resource(),
            StarvedResource::EphemeralStorage | StarvedResource::Inodes
        );
        if !is_disk {
            return &[];
        }
        let is_node_fs = matches!(signal, Signal::NodeFsAvailable | Signal::NodeFsInodesFree);
        let is_image_fs = matches!(signal, Signal::ImageFsAvailable | Signal::ImageFsInodesFree);
        match layout {
            DiskLayout::Single | DiskLayout::DedicatedContainerFs => &[CONTAINERS, IMAGES],
            DiskLayout::DedicatedImageFs if is_node_fs => &[],
            DiskLayout::DedicatedImageFs => &[CONTAINERS, IMAGES],
            DiskLayout::SplitImageFs if is_image_fs => &[IMAGES],
            DiskLayout::SplitImageFs => &[CONTAINERS],
        }
    }
}
