//! Paths of files within volumes.

use super::path::Path;
use super::problems::Problems;

/// A path that does not leave its directory.
pub(super) fn check_local_descending(target: &str, path: &Path<'_>, problems: &mut Problems) {
    if target.starts_with('/') {
        problems.invalid(path, target, "must be a relative path");
    }
    check_no_backsteps(target, path, problems);
}

pub(super) fn check_no_backsteps(target: &str, path: &Path<'_>, problems: &mut Problems) {
    if has_backsteps(target) {
        problems.invalid(path, target, "must not contain '..'");
    }
}

pub(super) fn has_backsteps(target: &str) -> bool {
    target.split('/').any(|step| step == "..")
}

/// A descending path that does not begin with two dots, which are reserved for the kubelet.
pub(super) fn check_local_non_reserved(target: &str, path: &Path<'_>, problems: &mut Problems) {
    check_local_descending(target, path, problems);
    if target.starts_with("..") && !target.starts_with("../") {
        problems.invalid(path, target, "must not start with '..'");
    }
}
