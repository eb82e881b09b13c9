//! `/etc/hosts` of a pod.
//!
//! Matches v1.36 managedHostsFileContent in pkg/kubelet/kubelet_pods.go.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::HostAlias;

use super::hostname::PodName;

/// Where the file is in containers.
pub const CONTAINER_PATH: &str = "/etc/hosts";

/// What the file has ahead of the pod's own entries.
const HEADER: &str = "# Kubernetes-managed hosts file.\n\
    127.0.0.1\tlocalhost\n\
    ::1\tlocalhost ip6-localhost ip6-loopback\n\
    fe00::0\tip6-localnet\n\
    fe00::0\tip6-mcastprefix\n\
    fe00::1\tip6-allnodes\n\
    fe00::2\tip6-allrouters\n";
const HOST_NETWORK_HEADER: &str = "# Kubernetes-managed hosts file (host network).\n";

/// The file of a pod with addresses of its own.
pub fn render(ips: &[String], name: &PodName, aliases: &[HostAlias]) -> String {
    let mut text = HEADER.to_owned();
    let names = match name.domain.as_str() {
        "" => name.host.clone(),
        domain => format!("{host}.{domain}\t{host}", host = name.host),
    };
    for ip in ips {
        push_line(&mut text, ip, &names);
    }
    push_aliases(&mut text, aliases);
    text
}

/// The file of a pod on the node's network: the node's own, and the pod's aliases.
pub fn render_host_network(node_file: &str, aliases: &[HostAlias]) -> String {
    let mut text = format!("{HOST_NETWORK_HEADER}{node_file}");
    push_aliases(&mut text, aliases);
    text
}

fn push_aliases(text: &mut String, aliases: &[HostAlias]) {
    if aliases.is_empty() {
        return;
    }
    text.push_str("\n# Entries added by HostAliases.\n");
    for alias in aliases {
        let names = alias.hostnames.as_deref().unwrap_or_default();
        push_line(text, &alias.ip, &names.join("\t"));
    }
}

fn push_line(text: &mut String, ip: &str, names: &str) {
    let written = writeln!(text, "{ip}\t{names}");
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(ip: &str, names: &[&str]) -> HostAlias {
        HostAlias {
            ip: ip.to_owned(),
            hostnames: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        }
    }

    fn name(host: &str, domain: &str) -> PodName {
        PodName {
            host: host.to_owned(),
            domain: domain.to_owned(),
        }
    }

    #[test]
    fn every_address_of_the_pod_is_listed_with_its_names() {
        let ips = ["10.1.0.2".to_owned(), "fd00::2".to_owned()];
        assert_eq!(
            render(&ips, &name("web", ""), &[]),
            format!("{HEADER}10.1.0.2\tweb\nfd00::2\tweb\n")
        );
        let aliases = [alias("1.2.3.4", &["foo", "bar"])];
        assert_eq!(
            render(&ips[..1], &name("web", "s.ns.svc.x"), &aliases),
            format!(
                "{HEADER}10.1.0.2\tweb.s.ns.svc.x\tweb\n\
                 \n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n"
            )
        );
    }

    #[test]
    fn pods_on_the_nodes_network_see_its_file() {
        assert_eq!(
            render_host_network("127.0.0.1\tlocalhost\n", &[alias("::1", &["a"])]),
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1\tlocalhost\n\
             \n# Entries added by HostAliases.\n::1\ta\n"
        );
    }
}
