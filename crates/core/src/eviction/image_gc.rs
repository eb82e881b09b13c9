//! Which images go, and when.
//!
//! [`ImageGc`] remembers when images were first seen and last used. [`ImageGc::sweep`] plans a
//! periodic run, [`ImageGc::sweep_unused`] the one that eviction requests; a [`Sweep`] hands out
//! one image at a time and takes the outcome. Matches v1.36
//! pkg/kubelet/images/image_gc_manager.go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::config::NodeConfig;
use crate::object::timestamp::Timestamp;
use crate::resources::Bytes;
use crate::threshold::Duration;

/// The event reason when too little could be freed.
pub const FREE_DISK_SPACE_FAILED: &str = "FreeDiskSpaceFailed";
/// The event reason when the image file system reports no size.
pub const INVALID_DISK_CAPACITY: &str = "InvalidDiskCapacity";

/// When images are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Disk usage in percent from which images are deleted.
    pub high_threshold_percent: i32,
    /// Disk usage in percent down to which they are.
    pub low_threshold_percent: i32,
    /// How long an image is kept after it was first seen.
    pub min_age: Duration,
    /// How long an unused image is kept at most; zero means forever.
    pub max_age: Duration,
}

impl Policy {
    /// The policy of a configured node.
    pub fn new(config: &NodeConfig) -> Policy {
        Policy {
            high_threshold_percent: *config.image_gc_high_threshold_percent,
            low_threshold_percent: *config.image_gc_low_threshold_percent,
            min_age: *config.image_minimum_gc_age,
            max_age: *config.image_maximum_gc_age,
        }
    }
}

/// An image as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentImage {
    /// Its id.
    pub id: String,
    /// Its size.
    pub size: Bytes,
    /// Whether the runtime pins it.
    pub is_pinned: bool,
}

/// The disk that holds the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFs {
    /// Size.
    pub capacity: Bytes,
    /// Free; taken as the size if it is more.
    pub available: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    first_detected: Timestamp,
    /// The least time for an image that was never seen in use.
    last_used: Timestamp,
    size: Bytes,
    is_pinned: bool,
}

/// What is known of the node's images.
#[derive(Clone, Debug)]
pub struct ImageGc {
    policy: Policy,
    began: Timestamp,
    known: BTreeMap<String, Known>,
    in_use: BTreeSet<String>,
}

/// Why an image is deleted; the `reason` label of `kubelet_image_garbage_collected_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was unused for longer than the maximum age.
    Age,
    /// The disk is full.
    Space,
}

impl Reason {
    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Age => "age",
            Reason::Space => "space",
        }
    }
}

/// An image to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its id.
    pub id: String,
    /// What it will free.
    pub size: Bytes,
    /// Why.
    pub reason: Reason,
}

/// A run under way: call [`Sweep::next`], delete, [`Sweep::report`], until there is none.
#[derive(Clone, Debug)]
pub struct Sweep {
    queue: VecDeque<Deletion>,
    target: Bytes,
    freed: Bytes,
    /// How many images were deleted for space.
    deleted: usize,
    failures: usize,
    usage_percent: i64,
    capacity: Bytes,
}

impl ImageGc {
    /// A collector that begins to watch at `began`; before the maximum age has passed since
    /// then, age alone deletes nothing.
    pub fn new(policy: Policy, began: Timestamp) -> ImageGc {
        ImageGc {
            policy,
            began,
            known: BTreeMap::new(),
            in_use: BTreeSet::new(),
        }
    }

    /// Takes in the images there are, and the ids of those that any container, running or dead,
    /// or any image volume uses.
    pub fn detect(&mut self, now: Timestamp, images: &[PresentImage], in_use: BTreeSet<String>) {
        let mut known = BTreeMap::new();
        for image in images {
            let never = Timestamp::from_nanos(i64::MIN);
            let before = self.known.get(&image.id);
            let entry = Known {
                first_detected: before.map_or(now, |known| known.first_detected),
                last_used: if in_use.contains(&image.id) {
                    now
                } else {
                    before.map_or(never, |known| known.last_used)
                },
                size: image.size,
                is_pinned: image.is_pinned,
            };
            known.insert(image.id.clone(), entry);
        }
        self.known = known;
        self.in_use = in_use;
    }

    /// A periodic run: images unused for too long, then, if the disk is fuller than the high
    /// threshold, as many as it takes to get down to the low one:
    ///   usage% = 100 - available*100/capacity, target = capacity*(100-low)/100 - available
    /// `None` where the disk reports no size, which is an error of its own.
    pub fn sweep(&self, now: Timestamp, disk: ImageFs) -> Option<Sweep> {
        let capacity = disk.capacity.0;
        if capacity == 0 {
            return None;
        }
        let available = disk.available.0.min(capacity);
        let wide = i128::from(available) * 100 / i128::from(capacity);
        let usage_percent = 100 - i64::try_from(wide).unwrap_or_default();
        let low = i128::from(100 - self.policy.low_threshold_percent);
        let target = i128::from(capacity) * low / 100 - i128::from(available);
        let (old, rest) = self.split_by_age(now);
        let mut queue = VecDeque::from(old);
        let is_full = usage_percent >= i64::from(self.policy.high_threshold_percent);
        if is_full {
            queue.extend(
                rest.into_iter()
                    .filter_map(|(id, known)| self.for_space(now, id, known)),
            );
        }
        let target = if is_full { target } else { 0 };
        Some(Sweep {
            queue,
            target: Bytes(i64::try_from(target).unwrap_or(i64::MAX)),
            freed: Bytes::ZERO,
            deleted: 0,
            failures: 0,
            usage_percent,
            capacity: disk.capacity,
        })
    }

    /// Every unused image that is old enough: what eviction requests.
    pub fn sweep_unused(&self, now: Timestamp) -> Sweep {
        let unused = self.in_eviction_order().into_iter();
        Sweep {
            queue: unused
                .filter_map(|(id, known)| self.for_space(now, id, known))
                .collect(),
            target: Bytes(i64::MAX),
            freed: Bytes::ZERO,
            deleted: 0,
            failures: 0,
            usage_percent: 0,
            capacity: Bytes::ZERO,
        }
    }

    /// Least recently used first, then first seen first, then by id.
    fn in_eviction_order(&self) -> Vec<(&String, &Known)> {
        let mut images: Vec<(&String, &Known)> = self
            .known
            .iter()
            .filter(|(id, known)| !self.in_use.contains(*id) && !known.is_pinned)
            .collect();
        images.sort_by_key(|(_, known)| (known.last_used, known.first_detected));
        images
    }

    fn split_by_age(&self, now: Timestamp) -> (Vec<Deletion>, Vec<(&String, &Known)>) {
        let max_age = self.policy.max_age;
        let is_age_known = max_age != Duration::ZERO && now - self.began > max_age;
        let (old, rest): (Vec<_>, Vec<_>) = self
            .in_eviction_order()
            .into_iter()
            .partition(|(_, known)| is_age_known && now - known.last_used > max_age);
        let delete = |(id, known): (&String, &Known)| deletion(id, known, Reason::Age);
        (old.into_iter().map(delete).collect(), rest)
    }

    /// An image that was just pulled is about to be used.
    fn for_space(&self, now: Timestamp, id: &str, known: &Known) -> Option<Deletion> {
        let is_old_enough = now - known.first_detected >= self.policy.min_age;
        (known.last_used < now && is_old_enough).then(|| deletion(id, known, Reason::Space))
    }
}

fn deletion(id: &str, known: &Known, reason: Reason) -> Deletion {
    Deletion {
        id: id.to_owned(),
        size: known.size,
        reason,
    }
}

impl Sweep {
    /// The next image to delete; images for space only until enough is freed.
    #[expect(
        clippy::should_implement_trait,
        reason = "the next one depends on the report"
    )]
    pub fn next(&mut self) -> Option<Deletion> {
        let next = self.queue.front()?;
        if next.reason == Reason::Space && self.is_enough() {
            self.queue.clear();
        }
        self.queue.pop_front()
    }

    /// What became of the last one. What age frees does not count towards the target.
    pub fn report(&mut self, deleted: &Deletion, succeeded: bool) {
        if !succeeded {
            self.failures += 1;
        } else if deleted.reason == Reason::Space {
            self.freed += deleted.size;
            self.deleted += 1;
        }
    }

    /// What was freed for space.
    pub fn freed(&self) -> Bytes {
        self.freed
    }

    /// How many deletions failed.
    pub fn failures(&self) -> usize {
        self.failures
    }

    fn is_enough(&self) -> bool {
        // Upstream looks at the sum after each deletion, so that it makes one in any case.
        self.deleted > 0 && self.freed >= self.target
    }

    /// The message of the event `FreeDiskSpaceFailed`, once the run is over and fell short.
    pub fn shortfall(&self) -> Option<String> {
        let is_periodic = self.capacity != Bytes::ZERO;
        if !is_periodic || self.failures > 0 || self.freed >= self.target {
            return None;
        }
        let (percent, size) = (self.usage_percent, readable(self.capacity));
        let freed = self.freed.0;
        Some(format!(
            "Insufficient free disk space on the node's image filesystem ({percent}% of {size} \
             used). Failed to free sufficient space by deleting unused images (freed {freed} \
             bytes). Investigate disk usage, as it could be used by active images, logs, volumes, \
             or other data."
        ))
    }
}

/// One digit behind the point, as the event has it.
fn readable(size: Bytes) -> String {
    const UNITS: [(&str, i64); 4] = [
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ];
    match UNITS.iter().find(|(_, unit)| size.0 >= *unit) {
        #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
        Some((name, unit)) => format!("{:.1} {name}", size.0 as f64 / *unit as f64),
        None => format!("{} B", size.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;

    const GIB: i64 = 1 << 30;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_secs(minutes * 60)
    }

    fn policy() -> Policy {
        Policy::new(&NodeConfig::defaults(Profile::Kubernetes136))
    }

    fn images(names: &[&str]) -> Vec<PresentImage> {
        let image = |name: &&str| PresentImage {
            id: (*name).to_owned(),
            size: Bytes(3 * GIB),
            is_pinned: *name == "pause",
        };
        names.iter().map(image).collect()
    }

    fn used(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// `a` was used until minute 1, `b` until minute 2, `c` is in use, `pause` is pinned, `new`
    /// came in minute 9.
    fn collector(policy: Policy) -> ImageGc {
        let mut gc = ImageGc::new(policy, at(0));
        let old = images(&["a", "b", "c", "pause"]);
        gc.detect(at(1), &old, used(&["a", "b", "c"]));
        gc.detect(at(2), &old, used(&["b", "c"]));
        gc.detect(
            at(9),
            &images(&["a", "b", "c", "new", "pause"]),
            used(&["c"]),
        );
        gc
    }

    fn run(mut sweep: Sweep) -> (Vec<String>, Sweep) {
        let mut deleted = Vec::new();
        while let Some(deletion) = sweep.next() {
            sweep.report(&deletion, true);
            deleted.push(deletion.id);
        }
        (deleted, sweep)
    }

    fn full(percent: i64) -> ImageFs {
        ImageFs {
            capacity: Bytes(100 * GIB),
            available: Bytes((100 - percent) * GIB),
        }
    }

    #[test]
    fn images_are_deleted_from_85_to_80_percent_oldest_use_first() {
        let gc = collector(policy());
        assert_eq!(run(gc.sweep(at(10), full(84)).unwrap()).0, [""; 0]);
        let (deleted, sweep) = run(gc.sweep(at(10), full(86)).unwrap());
        assert_eq!(deleted, ["a", "b"], "6 GiB are to be freed, 3 at a time");
        assert_eq!(sweep.shortfall(), None);
    }

    #[test]
    fn images_in_use_pinned_or_just_pulled_are_kept() {
        let gc = collector(policy());
        assert_eq!(run(gc.sweep_unused(at(10))).0, ["a", "b"]);
        assert_eq!(
            run(gc.sweep_unused(at(11))).0,
            ["new", "a", "b"],
            "never used counts as oldest"
        );
    }

    #[test]
    fn run_that_frees_too_little_reports_a_shortfall() {
        let (_, sweep) = run(collector(policy()).sweep(at(10), full(95)).unwrap());
        assert_eq!(
            sweep.shortfall().unwrap(),
            "Insufficient free disk space on the node's image filesystem (95% of 100.0 GiB used). \
             Failed to free sufficient space by deleting unused images (freed 6442450944 bytes). \
             Investigate disk usage, as it could be used by active images, logs, volumes, or other \
             data."
        );
    }

    #[test]
    fn images_above_max_age_are_deleted_even_with_free_disk() {
        let policy = Policy {
            max_age: Duration::from_secs(480),
            ..policy()
        };
        let gc = collector(policy);
        assert_eq!(run(gc.sweep(at(8), full(1)).unwrap()).0, [""; 0]);
        let (deleted, sweep) = run(gc.sweep(at(10), full(1)).unwrap());
        assert_eq!(
            deleted,
            ["new", "a"],
            "an image never seen in use has no last use"
        );
        assert_eq!(sweep.freed(), Bytes::ZERO);
    }

    #[test]
    fn a_disk_without_size_cannot_be_swept() {
        let disk = ImageFs {
            capacity: Bytes(0),
            available: Bytes(0),
        };
        assert!(collector(policy()).sweep(at(10), disk).is_none());
    }
}
