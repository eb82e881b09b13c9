//! Where a pod looks names up.
//!
//! Matches v1.36 pkg/kubelet/network/dns. Where upstream leaves the order of options to chance,
//! they are sorted.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodDNSConfig};
use plimsoll_runtime::wire::DnsConfig;

use super::NodeContext;
use super::sandbox::Warning;
use crate::pod_fields::{display_pod, identity};

const MOST_SERVERS: usize = 3;
const MOST_SEARCHES: usize = 32;
/// Characters in all of the search line.
const LONGEST_SEARCH_LINE: usize = 2048;
/// Some resolvers abort on longer ones.
const LONGEST_SEARCH: usize = 253;

/// What a resolv.conf says; `Err` where a line makes no sense.
pub fn parse_resolv_conf(text: &str) -> Result<DnsConfig, &'static str> {
    let mut config = DnsConfig::default();
    let mut options = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                let server = words.next().ok_or("nameserver list is empty")?;
                config.servers.push(server.to_owned());
            }
            // The last such line counts. Names with and without the last dot are the same.
            Some("search") => {
                let names = words.filter(|name| *name != ".");
                let names = names.map(|name| name.strip_suffix('.').unwrap_or(name));
                config.searches = names.map(str::to_owned).collect();
            }
            Some("options") => {
                options.extend(words.map(|option| (option_name(option), option.to_owned())));
            }
            _ => {}
        }
    }
    config.options = options.into_values().collect();
    Ok(config)
}

fn option_name(option: &str) -> &str {
    option.split(':').next().unwrap_or(option)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cluster,
    Host,
    None,
}

/// The resolver of a pod. `host` is the node's own, `None` where it is configured to have none.
pub fn pod_dns(
    node: &NodeContext,
    pod: &Pod,
    host: Option<&DnsConfig>,
    warnings: &mut Vec<Warning>,
) -> DnsConfig {
    let spec = pod.spec.as_ref();
    let is_host_network = spec.and_then(|spec| spec.host_network).unwrap_or_default();
    let policy = spec.and_then(|spec| spec.dns_policy.as_deref());
    let mut kind = match policy {
        Some("None") => Kind::None,
        Some("Default") => Kind::Host,
        Some("ClusterFirst") | None if is_host_network => Kind::Host,
        // Unknown policies fall back to this one too.
        _ => Kind::Cluster,
    };
    if kind == Kind::Cluster && node.cluster_dns.is_empty() {
        warnings.push(Warning {
            reason: "MissingClusterDNS",
            message: format!(
                "pod: {:?}. kubelet does not have ClusterDNS IP configured and cannot create Pod \
                 using \"ClusterFirst\" policy. Falling back to \"Default\" policy.",
                display_pod(pod)
            ),
        });
        kind = Kind::Host;
    }
    let mut config = match kind {
        Kind::None => DnsConfig::default(),
        Kind::Cluster => cluster_dns(node, pod, host),
        Kind::Host => host.cloned().unwrap_or_else(|| without_resolver(node)),
    };
    if let Some(own) = spec.and_then(|spec| spec.dns_config.as_ref()) {
        append(&mut config, own);
    }
    fit(&mut config, warnings);
    config
}

fn cluster_dns(node: &NodeContext, pod: &Pod, host: Option<&DnsConfig>) -> DnsConfig {
    let (namespace, _, _) = identity(pod);
    let domain = &node.cluster_domain;
    let mut searches = Vec::new();
    if !domain.is_empty() {
        searches.push(format!("{namespace}.svc.{domain}"));
        searches.push(format!("svc.{domain}"));
        searches.push(domain.clone());
    }
    searches.extend(host.into_iter().flat_map(|host| host.searches.clone()));
    DnsConfig {
        servers: node.cluster_dns.iter().map(ToString::to_string).collect(),
        searches: if domain.is_empty() {
            searches
        } else {
            without_duplicates(searches)
        },
        options: vec!["ndots:5".to_owned()],
    }
}

/// Without any resolver the machine itself is used, as resolvers do that have no server configured.
fn without_resolver(node: &NodeContext) -> DnsConfig {
    let loopback = |ip: &std::net::IpAddr| if ip.is_ipv6() { "::1" } else { "127.0.0.1" };
    let mut servers: Vec<String> = node.ips.iter().map(|ip| loopback(ip).to_owned()).collect();
    if servers.is_empty() {
        servers.push("127.0.0.1".to_owned());
    }
    DnsConfig {
        servers,
        searches: vec![".".to_owned()],
        options: Vec::new(),
    }
}

/// Adds the pod's own settings; its options win.
fn append(config: &mut DnsConfig, own: &PodDNSConfig) {
    let with = |mut list: Vec<String>, more: &Option<Vec<String>>| {
        list.extend(more.iter().flatten().cloned());
        without_duplicates(list)
    };
    config.servers = with(std::mem::take(&mut config.servers), &own.nameservers);
    config.searches = with(std::mem::take(&mut config.searches), &own.searches);
    let mut options = BTreeMap::new();
    for option in &config.options {
        let (name, value) = option.split_once(':').unwrap_or((option, ""));
        options.insert(name.to_owned(), value.to_owned());
    }
    for option in own.options.iter().flatten() {
        let name = option.name.clone().unwrap_or_default();
        options.insert(name, option.value.clone().unwrap_or_default());
    }
    let render = |(name, value): (String, String)| match value.as_str() {
        "" => name,
        value => format!("{name}:{value}"),
    };
    config.options = options.into_iter().map(render).collect();
}

fn without_duplicates(list: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let list = list.into_iter();
    list.filter(|text| seen.insert(text.clone())).collect()
}

/// Cuts what exceeds the limits of resolvers, and reports it.
fn fit(config: &mut DnsConfig, warnings: &mut Vec<Warning>) {
    let mut warn = |message: String| {
        warnings.push(Warning {
            reason: "DNSConfigForming",
            message,
        });
    };
    if config.servers.len() > MOST_SERVERS {
        config.servers.truncate(MOST_SERVERS);
        warn(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied \
             nameserver line is: {}",
            config.servers.join(" ")
        ));
    }
    let stated = config.searches.len();
    config.searches.truncate(MOST_SEARCHES);
    config.searches.retain(|name| name.len() <= LONGEST_SEARCH);
    let mut length = config.searches.join(" ").len();
    while length > LONGEST_SEARCH_LINE
        && let Some(cut) = config.searches.pop()
    {
        length = length.saturating_sub(cut.len() + 1);
    }
    if config.searches.len() < stated {
        warn(format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied \
             search line is: {}",
            config.searches.join(" ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::spec::testing::{node, pod_with};

    fn config(servers: &[&str], searches: &[&str], options: &[&str]) -> DnsConfig {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        DnsConfig {
            servers: owned(servers),
            searches: owned(searches),
            options: owned(options),
        }
    }

    #[test]
    fn resolv_conf_is_parsed_as_by_resolvers() {
        for (text, want) in [
            ("", config(&[], &[], &[])),
            (" \n\n# nameserver 1.2.3.4\n", config(&[], &[], &[])),
            ("nameserver 1.2.3.4", config(&["1.2.3.4"], &[], &[])),
            (
                " nameserver  1.2.3.4\nnameserver\tfd00::1\r\n",
                config(&["1.2.3.4", "fd00::1"], &[], &[]),
            ),
            (
                "search foo\nsearch bar. . baz.local.",
                config(&[], &["bar", "baz.local"], &[]),
            ),
            ("search .", config(&[], &[], &[])),
            (
                "options ndots:5 attempts:2\noptions ndots:1 single-request",
                config(&[], &[], &["attempts:2", "ndots:1", "single-request"]),
            ),
        ] {
            assert_eq!(parse_resolv_conf(text), Ok(want), "{text:?}");
        }
        assert!(parse_resolv_conf("nameserver ").is_err());
    }

    fn check(spec: Value, host: Option<&DnsConfig>, want: &DnsConfig, reasons: &[&str]) {
        let mut node = node("/var/lib/kubelet");
        node.cluster_dns = vec!["10.0.0.10".parse().unwrap()];
        node.ips = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        if spec["without"] == json!("clusterDNS") {
            node.cluster_dns.clear();
        }
        let mut warnings = Vec::new();
        let got = pod_dns(&node, &pod_with(spec.clone()), host, &mut warnings);
        assert_eq!(&got, want, "{spec}");
        let got: Vec<&str> = warnings.iter().map(|warning| warning.reason).collect();
        assert_eq!(got, reasons, "{spec}");
    }

    #[test]
    fn the_policy_chooses_between_cluster_node_and_nothing() {
        let host = config(&["1.1.1.1"], &["corp.example", "cluster.local"], &["debug"]);
        let cluster = config(
            &["10.0.0.10"],
            &[
                "ns.svc.cluster.local",
                "svc.cluster.local",
                "cluster.local",
                "corp.example",
            ],
            &["ndots:5"],
        );
        let nothing = config(&[], &[], &[]);
        let itself = config(&["127.0.0.1", "::1"], &["."], &[]);
        let some = Some(&host);
        check(json!({}), some, &cluster, &[]);
        check(json!({"dnsPolicy": "ClusterFirst"}), some, &cluster, &[]);
        check(json!({"dnsPolicy": "Unheard"}), some, &cluster, &[]);
        check(
            json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}),
            some,
            &host,
            &[],
        );
        check(
            json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}),
            some,
            &cluster,
            &[],
        );
        check(json!({"dnsPolicy": "Default"}), some, &host, &[]);
        check(json!({"dnsPolicy": "Default"}), None, &itself, &[]);
        check(json!({"dnsPolicy": "None"}), some, &nothing, &[]);
        check(
            json!({"without": "clusterDNS"}),
            some,
            &host,
            &["MissingClusterDNS"],
        );
        check(
            json!({"without": "clusterDNS"}),
            None,
            &itself,
            &["MissingClusterDNS"],
        );
    }

    #[test]
    fn pod_dns_config_is_merged_and_its_options_win() {
        let own = json!({
            "nameservers": ["10.0.0.10", "9.9.9.9"],
            "searches": ["svc.cluster.local", "my.example"],
            "options": [{"name": "ndots", "value": "1"}, {"name": "edns0"}],
        });
        let want = config(
            &["10.0.0.10", "9.9.9.9"],
            &[
                "ns.svc.cluster.local",
                "svc.cluster.local",
                "cluster.local",
                "my.example",
            ],
            &["edns0", "ndots:1"],
        );
        check(json!({"dnsConfig": own}), None, &want, &[]);
    }

    #[test]
    fn dns_config_above_resolver_limits_is_cut_with_a_warning() {
        let servers = ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"];
        let own = json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": servers}});
        check(
            own,
            None,
            &config(&servers[..3], &[], &[]),
            &["DNSConfigForming"],
        );

        let many: Vec<String> = (0..33).map(|i| format!("s{i}")).collect();
        let kept: Vec<&str> = many[..32].iter().map(String::as_str).collect();
        let own = json!({"dnsPolicy": "None", "dnsConfig": {"searches": many}});
        check(own, None, &config(&[], &kept, &[]), &["DNSConfigForming"]);

        let long = "x".repeat(254);
        let own = json!({"dnsPolicy": "None", "dnsConfig": {"searches": ["a", long, "b"]}});
        check(
            own,
            None,
            &config(&[], &["a", "b"], &[]),
            &["DNSConfigForming"],
        );

        let wide: Vec<String> = (0..9).map(|i| format!("{i}{}", "x".repeat(249))).collect();
        let kept: Vec<&str> = wide[..8].iter().map(String::as_str).collect();
        let own = json!({"dnsPolicy": "None", "dnsConfig": {"searches": wide}});
        check(own, None, &config(&[], &kept, &[]), &["DNSConfigForming"]);
    }
}
