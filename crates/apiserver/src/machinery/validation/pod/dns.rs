//! DNS settings and host aliases of a pod.

use k8s_openapi::api::core::v1::{HostAlias, PodDNSConfig, PodSpec};

use super::super::address::check_ip;
use super::super::names::{dns_subdomain, dns_subdomain_with_underscore};
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCH_PATHS: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;
const MAX_HOSTNAME_BYTES: usize = 64;

pub(super) fn check(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let config = spec.dns_config.as_ref();
    if text(&spec.dns_policy) == "None" {
        let Some(config) = config else {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return problems.required(path, detail);
        };
        if config.nameservers.as_ref().is_none_or(Vec::is_empty) {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return problems.required(&path.child("nameservers"), detail);
        }
    }
    if let Some(config) = config {
        check_config(config, path, problems);
    }
}

fn check_config(config: &PodDNSConfig, path: &Path<'_>, problems: &mut Problems) {
    let servers = config.nameservers.as_deref().unwrap_or_default();
    let servers_path = path.child("nameservers");
    if servers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        problems.invalid(&servers_path, json(&servers), detail);
    }
    for (index, server) in servers.iter().enumerate() {
        check_ip(server, &[], &servers_path.index(index), problems);
    }
    let searches = config.searches.as_deref().unwrap_or_default();
    let searches_path = path.child("searches");
    if searches.len() > MAX_SEARCH_PATHS {
        let detail = format!("must not have more than {MAX_SEARCH_PATHS} search paths");
        problems.invalid(&searches_path, json(&searches), detail);
    }
    if searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        let detail = format!(
            "must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the \
             search list"
        );
        problems.invalid(&searches_path, json(&searches), detail);
    }
    for (index, search) in searches
        .iter()
        .enumerate()
        .filter(|(_, search)| *search != ".")
    {
        let search = search.strip_suffix('.').unwrap_or(search);
        let broken = dns_subdomain_with_underscore(search);
        problems.invalid_each(&searches_path.index(index), search, broken);
    }
    let options = path.child("options");
    for (index, option) in config.options.iter().flatten().enumerate() {
        if text(&option.name).is_empty() {
            problems.required(&options.index(index), "must not be empty");
        }
    }
}

pub(super) fn check_host_aliases(aliases: &[HostAlias], list: &Path<'_>, problems: &mut Problems) {
    for (index, alias) in aliases.iter().enumerate() {
        let path = list.index(index);
        check_ip(&alias.ip, &[], &path.child("ip"), problems);
        let names = path.child("hostnames");
        for (index, name) in alias.hostnames.iter().flatten().enumerate() {
            problems.invalid_each(&names.index(index), name, dns_subdomain(name));
        }
    }
}

pub(super) fn check_hostname_override(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(name) = &spec.hostname_override else {
        return;
    };
    let path = path.child("hostnameOverride");
    if spec.set_hostname_as_fqdn == Some(true) {
        problems.forbidden(&path, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.host_network == Some(true) {
        problems.forbidden(&path, "may not be specified when hostNetwork is true");
    }
    if name.len() > MAX_HOSTNAME_BYTES {
        problems.too_long(&path, MAX_HOSTNAME_BYTES);
    }
    problems.invalid_each(&path, name, dns_subdomain(name));
}
