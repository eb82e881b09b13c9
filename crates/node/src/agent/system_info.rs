//! Which machine, kernel and distribution this is.

use std::path::Path;

use k8s_openapi::api::core::v1::NodeSystemInfo;

/// The release whose kubelet this agent stands in for; the part after `+` names this agent.
pub const KUBELET_VERSION: &str = concat!("v1.36.4+plimsoll-", env!("CARGO_PKG_VERSION"));

/// `GOARCH` of this build.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// What `status.nodeInfo` says. Files that are missing leave their field empty, as upstream.
pub(super) fn read_system_info(runtime_version: String) -> NodeSystemInfo {
    let machine_id = first_line(&["/etc/machine-id", "/var/lib/dbus/machine-id"]);
    let system_uuid = first_line(&[
        "/sys/class/dmi/id/product_uuid",
        "/proc/device-tree/vm,uuid",
        "/etc/machine-id",
    ]);
    let uname = rustix::system::uname();
    NodeSystemInfo {
        machine_id,
        system_uuid,
        boot_id: first_line(&["/proc/sys/kernel/random/boot_id"]),
        kernel_version: uname.release().to_string_lossy().into_owned(),
        os_image: read_os_image(),
        container_runtime_version: runtime_version,
        kubelet_version: KUBELET_VERSION.to_owned(),
        // Deprecated upstream and empty there too.
        kube_proxy_version: String::new(),
        operating_system: std::env::consts::OS.to_owned(),
        architecture: architecture().to_owned(),
        ..NodeSystemInfo::default()
    }
}

fn first_line(paths: &[&str]) -> String {
    let read = |path: &&str| std::fs::read_to_string(path).ok();
    let text = paths.iter().find_map(read).unwrap_or_default();
    text.trim_matches(['\n', '\0', ' ']).to_owned()
}

fn read_os_image() -> String {
    let candidates = ["/etc/os-release", "/usr/lib/os-release"];
    let text = (candidates.iter().map(Path::new)).find_map(|p| std::fs::read_to_string(p).ok());
    parse_pretty_name(&text.unwrap_or_default()).unwrap_or_else(|| "Unknown".to_owned())
}

fn parse_pretty_name(os_release: &str) -> Option<String> {
    let value = (os_release.lines()).find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_image_is_the_pretty_name_of_os_release() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n";
        assert_eq!(
            parse_pretty_name(text).as_deref(),
            Some("Debian GNU/Linux 12 (bookworm)")
        );
        assert_eq!(parse_pretty_name("NAME=x\n"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_boot() {
        let info = read_system_info("plimsoll://0.1.0".to_owned());
        assert!(!info.kernel_version.is_empty());
        assert_eq!(info.boot_id.len(), 36);
        assert!(info.kubelet_version.starts_with("v1.36."));
    }
}
