//! The addresses of a service and their families.

use k8s_openapi::api::core::v1::ServiceSpec;

use super::super::address::{check_endpoint_ip, check_ip, is_dual_stack};
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::{is, is_headless};

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const FIXED: &str = "may not change once set";

fn list(values: &Option<Vec<String>>) -> &[String] {
    values.as_deref().unwrap_or_default()
}

/// Upstream's checks before it allocates addresses, and so before all others. Returns whether to
/// continue.
pub(super) fn check_before_allocation(
    spec: &ServiceSpec,
    old: Option<&ServiceSpec>,
    problems: &mut Problems,
) -> bool {
    if is(spec, "ExternalName") {
        return true;
    }
    check(spec, old, problems);
    if !problems.is_empty() {
        return false;
    }
    let path = Path::new("spec");
    let policy_path = path.child("ipFamilyPolicy");
    let policy = text(&spec.ip_family_policy);
    if policy == "SingleStack" {
        for (values, what) in [
            (&spec.cluster_ips, "cluster IPs"),
            (&spec.ip_families, "IP families"),
        ] {
            if list(values).len() == 2 {
                let detail = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are \
                     specified"
                );
                problems.invalid(&policy_path, json(&spec.ip_family_policy), detail);
            }
        }
    }
    let has_selector = spec.selector.as_ref().is_some_and(|map| !map.is_empty());
    let is_open = text(&spec.cluster_ip) == "None" && !has_selector;
    if !problems.is_empty() || is_open {
        return problems.is_empty();
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        problems.invalid(&policy_path, json(&spec.ip_family_policy), detail);
    }
    let families_path = path.child("ipFamilies");
    for (index, family) in list(&spec.ip_families).iter().enumerate() {
        if family != "IPv4" {
            let detail = "not configured on this cluster";
            problems.invalid(&families_path.index(index), json(family), detail);
        }
    }
    problems.is_empty()
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` agree.
pub(super) fn check(spec: &ServiceSpec, old: Option<&ServiceSpec>, problems: &mut Problems) {
    if is(spec, "ExternalName") {
        return;
    }
    let path = Path::new("spec");
    let ips_path = path.child("clusterIPs");
    let ips = list(&spec.cluster_ips);
    match (text(&spec.cluster_ip), ips.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            problems.invalid(&ips_path, json(&ips), detail);
        }
        (_, None) => problems.required(&ips_path, ""),
        (ip, Some(first)) if ip != first => {
            problems.invalid(&ips_path, json(&ips), "first value must match `clusterIP`");
        }
        _ => {}
    }
    check_families(spec, &path, problems);
    let known = old.map(|old| list(&old.cluster_ips)).unwrap_or_default();
    let before = problems.len();
    for (index, ip) in ips.iter().enumerate() {
        if index == 0 && ip == "None" {
            if ips.len() > 1 {
                let detail = "'None' must be the first and only value";
                problems.invalid(&ips_path, json(&ips), detail);
            }
            continue;
        }
        check_ip(ip, known, &ips_path.index(index), problems);
    }
    let has_bad_ips = problems.len() > before;
    if ips.len() > 2 {
        problems.invalid(&ips_path, json(&ips), "may only hold up to 2 values");
    }
    if has_bad_ips {
        return;
    }
    if ips.len() > 1 && is_dual_stack(ips.iter().map(String::as_str)) != Some(true) {
        let detail = "may specify no more than one IP for each IP family";
        problems.invalid(&ips_path, json(&ips), detail);
    }
    if is_headless(spec) {
        return;
    }
    for (index, (ip, family)) in ips.iter().zip(list(&spec.ip_families)).enumerate() {
        let is_v6 = ip.contains(':');
        if FAMILIES.contains(&family.as_str()) && is_v6 != (family == "IPv6") {
            let detail =
                format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            problems.invalid(&ips_path.index(index), ip, detail);
        }
    }
}

fn check_families(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let families_path = path.child("ipFamilies");
    let families = list(&spec.ip_families);
    for (index, family) in families.iter().enumerate() {
        let path = families_path.index(index);
        problems.one_of(&path, family, &FAMILIES);
        if families[..index].contains(family) {
            problems.duplicate(&path, family);
        }
    }
    if let Some(policy) = &spec.ip_family_policy {
        problems.one_of(&path.child("ipFamilyPolicy"), policy, &POLICIES);
    }
}

/// External addresses.
pub(super) fn check_external(
    spec: &ServiceSpec,
    old: Option<&ServiceSpec>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.child("externalIPs");
    let known = old.map(|old| list(&old.external_ips)).unwrap_or_default();
    for (index, ip) in list(&spec.external_ips).iter().enumerate() {
        let path = path.index(index);
        let before = problems.len();
        check_ip(ip, known, &path, problems);
        if problems.len() == before {
            check_endpoint_ip(ip, &path, problems);
        }
    }
}

/// Addresses and families are immutable, but a second one may be added and removed.
pub(super) fn check_update(spec: &ServiceSpec, old: &ServiceSpec, problems: &mut Problems) {
    if is(spec, "ExternalName") || is(old, "ExternalName") {
        return;
    }
    let path = Path::new("spec");
    let is_single = text(&spec.ip_family_policy) == "SingleStack";
    let (new_ips, old_ips) = (list(&spec.cluster_ips), list(&old.cluster_ips));
    let (is_new_headless, is_old_headless) = (is_headless(spec), is_headless(old));
    if !(is_new_headless && is_old_headless) {
        let path = path.child("clusterIPs");
        check_kept(new_ips, old_ips, new_ips, ChangedAt::Own, &path, problems);
        if old_ips.len() > new_ips.len() && new_ips.is_empty() {
            let detail = "primary clusterIP can not be unset";
            problems.invalid(&path.index(0), json(&new_ips), detail);
        }
    }
    if old_ips.len() > new_ips.len() && new_ips.len() == 1 && !is_single && !is_new_headless {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        let shown = json(&spec.ip_family_policy);
        problems.invalid(&path.child("ipFamilyPolicy"), shown, detail);
    }
    if is_new_headless || is_old_headless {
        return;
    }
    let (new, old) = (list(&spec.ip_families), list(&old.ip_families));
    let families_path = path.child("ipFamilies");
    if old.len() > new.len() && new_ips.is_empty() {
        let detail = "primary ipFamily can not be unset";
        problems.invalid(&families_path.index(0), json(&new), detail);
    }
    let shown = if old.len() == new.len() { new } else { new_ips };
    check_kept(new, old, shown, ChangedAt::First, &families_path, problems);
    if old.len() > new.len() && new.len() == 1 && !is_single {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        let shown = json(&spec.ip_family_policy);
        problems.invalid(&path.child("ipFamilyPolicy"), shown, detail);
    }
}

/// The item in upstream's error about a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangedAt {
    Own,
    First,
}

/// Lists of the same length are equal; otherwise their first items are.
fn check_kept(
    new: &[String],
    old: &[String],
    shown: &[String],
    changed_at: ChangedAt,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let compared = if new.len() == old.len() { new.len() } else { 1 };
    for (index, (after, before)) in new.iter().zip(old).take(compared).enumerate() {
        if after != before {
            let index = if changed_at == ChangedAt::Own {
                index
            } else {
                0
            };
            problems.invalid(&path.index(index), json(&shown), FIXED);
        }
    }
}
