//! Where walks over directories are accounted.

use std::sync::Arc;

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_runtime::cgroup::Cgroups;
use plimsoll_runtime::walk::Walker;

use super::host::chain;
use super::options::{Options, walks_cgroup};

/// What walks may take, with the kernel's memory for what they look at: enough for two steps of the
/// largest measurement (20,000 files of somewhat more than 1 KiB each), so that it is freed rarely.
const MEMORY: u64 = 64 << 20;

/// Has walks done by a process in a cgroup of its own, beside the agent's and not below it: the
/// kernel's memory for what they look at is then neither the agent's nor a pod's.
pub(super) fn walker(options: &Options) -> Walker {
    if options.walker.is_empty() {
        return Walker::here();
    }
    let (system_root, driver) = (options.system_root.clone(), options.cgroup_driver());
    let cgroup_root = options.config.cgroup_root.value.clone();
    let account = move |pid: u32| {
        let confined = Cgroups::detect(&system_root, driver, &cgroup_root)
            .map_err(|error| error.to_string())
            .and_then(|cgroups| {
                let cgroup = walks_cgroup(&cgroups.path(cgroups.root()));
                let cgroup = CgroupPath::parse(&cgroup).map_err(|error| error.to_string())?;
                let confined = cgroups.confine(&cgroup, pid, MEMORY);
                confined.map_err(|error| chain(&error))
            });
        if let Err(error) = confined {
            tracing::warn!(
                error,
                "disk walker has no memory limit of its own; its memory counts as the agent's"
            );
        }
    };
    Walker::apart(options.walker.clone(), Arc::new(account))
}
