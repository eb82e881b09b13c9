//! Who goes first.
//!
//! Kubernetes 1.36, for memory, disk and inodes:
//!   pods without statistics; usage > request; lower priority; larger usage - request
//! and for process ids: lower priority; without statistics; more processes. The older profiles
//! leave the priority out, or look at the QoS class instead of the request. Matches v1.36, v1.9
//! and v1.6 pkg/kubelet/eviction/helpers.go.
//!
//! Two quirks are upstream's: the excess of inodes is counted against the request of *bytes*, and
//! volumes that are not on the node's own disk do not count. Where upstream's order depends on
//! its sort, the newest pod goes first, then the lower uid; pods without a creation time, which
//! no API server hands out, keep the order they were given in.

use std::cmp::{Ordering, Reverse};

use crate::config::EvictionRank;
use crate::quantity::{Format, Quantity};
use crate::threshold::{DiskLayout, Signal, StarvedResource};

use super::candidate::{ActivePod, Candidate};
use super::usage::{FsUsage, PodUsage};

/// A pod in its place, with what put it there.
#[derive(Clone, Debug)]
pub struct Ranked<'a> {
    /// The pod.
    pub pod: ActivePod<'a>,
    /// What it uses of the starved resource; `None` without statistics.
    pub usage: Option<Quantity>,
    /// Whether that is more than it requests.
    pub exceeds_request: bool,
    /// How much more; below zero for pods within their request. Zero without statistics.
    pub excess: Quantity,
}

/// The pods in the order in which they would be evicted for the signal.
pub fn rank<'a>(
    signal: Signal,
    layout: DiskLayout,
    order: EvictionRank,
    pods: impl Iterator<Item = ActivePod<'a>>,
) -> Vec<Ranked<'a>> {
    let measure = Measure::of(signal, layout);
    let mut ranked: Vec<Ranked<'a>> = pods.map(|pod| measure.stand(pod, order)).collect();
    ranked.sort_by(|a, b| compare_fully(a, b, order, signal));
    ranked
}

/// The first of that order, without the cost of the others' places.
pub fn first<'a>(
    signal: Signal,
    layout: DiskLayout,
    order: EvictionRank,
    pods: impl Iterator<Item = ActivePod<'a>>,
) -> Option<Ranked<'a>> {
    let measure = Measure::of(signal, layout);
    let ranked = pods.map(|pod| measure.stand(pod, order));
    ranked.min_by(|a, b| compare_fully(a, b, order, signal))
}

fn compare_fully(a: &Ranked<'_>, b: &Ranked<'_>, order: EvictionRank, signal: Signal) -> Ordering {
    let is_pids = signal.resource() == StarvedResource::Pids;
    compare(a, b, order, is_pids).then_with(|| break_tie(a, b))
}

/// The keys of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Pods without statistics first.
    Statistics,
    /// Pods that use more than they request first.
    AboveRequest,
    /// Low priority first.
    Priority,
    /// Large excess over the request first.
    Excess,
    /// BestEffort first, Guaranteed last.
    QosClass,
}

/// The keys of an order; the first in which two pods differ decides.
pub fn keys(order: EvictionRank, is_pids: bool) -> &'static [Key] {
    match (order, is_pids) {
        (EvictionRank::RequestPriorityExcess, true) => {
            &[Key::Priority, Key::Statistics, Key::Excess]
        }
        (EvictionRank::RequestPriorityExcess, false) => &[
            Key::Statistics,
            Key::AboveRequest,
            Key::Priority,
            Key::Excess,
        ],
        (EvictionRank::RequestExcess, _) => &[Key::Statistics, Key::AboveRequest, Key::Excess],
        (EvictionRank::QosClassExcess, _) => &[Key::QosClass, Key::Statistics, Key::Excess],
    }
}

impl Key {
    fn compare(self, a: &Ranked<'_>, b: &Ranked<'_>) -> Ordering {
        let (first, second) = (a.pod.candidate, b.pod.candidate);
        match self {
            Key::Statistics => a.usage.is_some().cmp(&b.usage.is_some()),
            Key::AboveRequest => b.exceeds_request.cmp(&a.exceeds_request),
            Key::Priority => first.priority.cmp(&second.priority),
            Key::Excess => b.excess.cmp(&a.excess),
            Key::QosClass => first.qos_class.cmp(&second.qos_class),
        }
    }
}

/// By the keys of the ranking alone: pods that upstream cannot tell apart are equal.
pub fn compare(a: &Ranked<'_>, b: &Ranked<'_>, order: EvictionRank, is_pids: bool) -> Ordering {
    let keys = keys(order, is_pids).iter();
    keys.map(|key| key.compare(a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn break_tie(a: &Ranked<'_>, b: &Ranked<'_>) -> Ordering {
    let key = |candidate: &'_ Candidate| Reverse(candidate.created_at);
    let (a, b) = (a.pod.candidate, b.pod.candidate);
    let by_age = key(a).cmp(&key(b));
    by_age.then_with(|| match a.created_at {
        Some(_) => a.uid.cmp(&b.uid),
        None => Ordering::Equal,
    })
}

/// Which numbers of a pod a signal is about.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Memory,
    Disk(DiskParts),
    Inodes(DiskParts),
    Pids,
}

/// Which parts of a pod lie on the disk in question.
#[derive(Clone, Copy, Debug, Default)]
struct DiskParts {
    root_fs: bool,
    logs: bool,
    volumes: bool,
}

impl Measure {
    fn of(signal: Signal, layout: DiskLayout) -> Measure {
        match signal {
            Signal::MemoryAvailable | Signal::AllocatableMemoryAvailable => Measure::Memory,
            Signal::PidAvailable => Measure::Pids,
            Signal::NodeFsAvailable | Signal::ImageFsAvailable | Signal::ContainerFsAvailable => {
                Measure::Disk(DiskParts::of(signal, layout))
            }
            Signal::NodeFsInodesFree
            | Signal::ImageFsInodesFree
            | Signal::ContainerFsInodesFree => Measure::Inodes(DiskParts::of(signal, layout)),
        }
    }

    fn stand<'a>(self, pod: ActivePod<'a>, order: EvictionRank) -> Ranked<'a> {
        let candidate = pod.candidate;
        let Some(usage) = pod.usage.map(|usage| self.usage_of(usage, candidate)) else {
            return Ranked {
                pod,
                usage: None,
                exceeds_request: false,
                excess: Quantity::ZERO,
            };
        };
        let requests = &candidate.requests;
        // Disk could not be requested in 1.6.
        let is_disk_requested = order != EvictionRank::QosClassExcess;
        let (request, deducted) = match self {
            Measure::Memory => (&requests.memory, &requests.memory),
            Measure::Disk(_) if is_disk_requested => (&requests.storage, &requests.storage),
            Measure::Inodes(_) if is_disk_requested => (&requests.inodes, &requests.storage),
            Measure::Disk(_) | Measure::Inodes(_) | Measure::Pids => {
                (&Quantity::ZERO, &Quantity::ZERO)
            }
        };
        let exceeds_request = !matches!(self, Measure::Pids) && usage > *request;
        let mut excess = usage.clone();
        excess.sub(deducted);
        Ranked {
            pod,
            usage: Some(usage),
            exceeds_request,
            excess,
        }
    }

    fn usage_of(self, usage: &PodUsage, candidate: &Candidate) -> Quantity {
        match self {
            Measure::Memory => usage.working_set().to_quantity(),
            Measure::Pids => usage.processes.unwrap_or_default().to_quantity(),
            Measure::Disk(parts) => parts.sum(usage, candidate, Format::BinarySi, |fs| {
                fs.used.unwrap_or_default().0
            }),
            Measure::Inodes(parts) => parts.sum(usage, candidate, Format::DecimalSi, |fs| {
                fs.inodes.unwrap_or_default().0
            }),
        }
    }
}

impl DiskParts {
    /// Matches v1.36 `buildSignalToRankFunc`. On a split layout images are on a disk that holds
    /// nothing of any pod, so that ranking for it sees zeros.
    fn of(signal: Signal, layout: DiskLayout) -> DiskParts {
        let is_image_fs = matches!(signal, Signal::ImageFsAvailable | Signal::ImageFsInodesFree);
        let is_node_fs = matches!(signal, Signal::NodeFsAvailable | Signal::NodeFsInodesFree);
        match layout {
            DiskLayout::Single | DiskLayout::DedicatedContainerFs => DiskParts {
                root_fs: true,
                logs: true,
                volumes: true,
            },
            DiskLayout::DedicatedImageFs => DiskParts {
                root_fs: !is_node_fs,
                logs: is_node_fs,
                volumes: is_node_fs,
            },
            DiskLayout::SplitImageFs => DiskParts {
                root_fs: !is_image_fs,
                logs: !is_image_fs,
                volumes: !is_image_fs,
            },
        }
    }

    fn sum(
        self,
        usage: &PodUsage,
        candidate: &Candidate,
        format: Format,
        of: fn(&FsUsage) -> i64,
    ) -> Quantity {
        let mut sum = Quantity::new(0, format);
        let mut add = |fs: &FsUsage| sum.add(&Quantity::new(of(fs), format));
        for container in &usage.containers {
            if self.root_fs {
                add(&container.root_fs);
            }
            if self.logs {
                add(&container.logs);
            }
        }
        if self.volumes {
            for name in &candidate.local_volumes {
                let volume = usage.volumes.iter().find(|volume| volume.name == *name);
                volume.into_iter().for_each(|volume| add(&volume.fs));
            }
        }
        sum
    }
}
