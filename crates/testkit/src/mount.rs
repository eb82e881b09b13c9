//! Mounts that tests leave behind.

use std::fs;
use std::path::Path;

use rustix::mount::UnmountFlags;

/// Takes away all mounts below a folder, so that it can be removed.
pub fn unmount_below(folder: &Path) {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let places = table.lines().filter_map(|line| line.split(' ').nth(4));
    let ours: Vec<&str> = places
        .filter(|place| Path::new(place).starts_with(folder))
        .collect();
    for place in ours.into_iter().rev() {
        let _ = rustix::mount::unmount(place, UnmountFlags::DETACH);
    }
}
