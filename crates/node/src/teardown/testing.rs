//! Footprints for tests.

use std::path::Path;

use super::footprint::{Footprint, Runtime};

/// Of an agent with that bridge that keeps everything in the directory.
pub(crate) fn footprint(data_dir: &Path, bridge: &str) -> Footprint {
    Footprint {
        runtime: Runtime::Embedded {
            bridge: bridge.to_owned(),
            pod_cidr: "10.88.0.0/16".to_owned(),
            cni_conf_dir: "/etc/cni/net.d".into(),
            cni_bin_dir: "/opt/cni/bin".into(),
        },
        uses_systemd_cgroups: false,
        cgroup_root: "/no-such-cgroup".to_owned(),
        agent_cgroup: String::new(),
        root: data_dir.join("kubelet"),
        pod_logs: data_dir.join("log/pods"),
        container_logs: data_dir.join("log/containers"),
    }
}
