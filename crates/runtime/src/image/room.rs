//! The limit of the disk space that an image may take.
//!
//! Layers are untrusted and compress well: some kilobytes may unpack to all that a disk holds,
//! faster than anything could be evicted for it.

use std::fmt;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// How much one image may unpack to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxImageSize {
    /// Half of the disk that holds images.
    #[default]
    HalfOfDisk,
    /// So many bytes.
    Bytes(u64),
}

/// What stays free for everything else on the disk: a hundredth of it, up to this.
const MOST_KEPT_FREE: u64 = 256 << 20;

/// How many bytes may be unpacked, and the rule that sets the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// So many bytes.
    pub bytes: u64,
    /// Of the image as a whole, or of the disk.
    pub rule: Rule,
}

/// What bounds an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A size that was given.
    Given,
    /// The size of the disk.
    HalfOfDisk,
    /// What the disk has left.
    Free,
}

/// A disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// All of it.
    pub capacity: u64,
    /// Not in use.
    pub available: u64,
}

impl Disk {
    /// The one that a path is on.
    pub fn of(path: &Path) -> io::Result<Disk> {
        let stat = statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Disk {
            capacity: bytes(stat.f_blocks),
            available: bytes(stat.f_bavail),
        })
    }
}

impl Room {
    /// What is left for an image that has taken so many bytes already.
    pub fn left(max: MaxImageSize, disk: Disk, taken: u64) -> Room {
        let (size, rule) = match max {
            MaxImageSize::HalfOfDisk => (disk.capacity / 2, Rule::HalfOfDisk),
            MaxImageSize::Bytes(bytes) => (bytes, Rule::Given),
        };
        let image = Room {
            bytes: size.saturating_sub(taken),
            rule,
        };
        let kept_free = (disk.capacity / 100).min(MOST_KEPT_FREE);
        let disk = Room {
            bytes: disk.available.saturating_sub(kept_free),
            rule: Rule::Free,
        };
        if disk.bytes < image.bytes {
            disk
        } else {
            image
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Rule::Given => "which is the maximum size of an image (--max-image-size)",
            Rule::HalfOfDisk => {
                "which is half of the disk that holds images (--max-image-size allows more)"
            }
            Rule::Free => "which is what the disk that holds images has left",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_size_is_bounded_by_its_limit_and_by_free_space() {
        let disk = |available| Disk {
            capacity: 1000,
            available,
        };
        for (max, available, taken, bytes, rule) in [
            (MaxImageSize::HalfOfDisk, 900, 0, 500, Rule::HalfOfDisk),
            (MaxImageSize::HalfOfDisk, 900, 200, 300, Rule::HalfOfDisk),
            (MaxImageSize::HalfOfDisk, 900, 600, 0, Rule::HalfOfDisk),
            (MaxImageSize::HalfOfDisk, 110, 0, 100, Rule::Free),
            (MaxImageSize::HalfOfDisk, 5, 0, 0, Rule::Free),
            (MaxImageSize::Bytes(700), 900, 0, 700, Rule::Given),
            (MaxImageSize::Bytes(5000), 900, 0, 890, Rule::Free),
        ] {
            let room = Room::left(max, disk(available), taken);
            assert_eq!(room, Room { bytes, rule }, "{max:?} {available} {taken}");
        }
        let large = Disk {
            capacity: 1 << 40,
            available: 1 << 30,
        };
        let room = Room::left(MaxImageSize::HalfOfDisk, large, 0);
        assert_eq!(room.bytes, (1 << 30) - MOST_KEPT_FREE);
    }
}
