//! What a pod calls itself.
//!
//! Matches v1.36 GeneratePodHostNameAndDomain in pkg/kubelet/kubelet_pods.go.

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::syntax;

use super::SpecError;
use crate::pod_fields::identity;

/// Host names are cut to what DNS allows in one label.
const LONGEST_HOST_NAME: usize = 63;
/// What fits into the kernel's `nodename`.
const LONGEST_FQDN: usize = 64;

/// The rule for labels, in the words of the API server.
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
     or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// The names of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName {
    /// The short one.
    pub host: String,
    /// The domain it is in; empty for none.
    pub domain: String,
}

/// The short name and domain of a pod.
pub fn pod_name(pod: &Pod, cluster_domain: &str) -> Result<PodName, SpecError> {
    let (namespace, name, _) = identity(pod);
    let spec = pod.spec.as_ref();
    if let Some(chosen) = spec.and_then(|spec| spec.hostname_override.as_deref()) {
        let problems = syntax::check_dns_subdomain(chosen);
        if !problems.is_empty() {
            return Err(SpecError::HostName {
                field: "HostnameOverride",
                value: chosen.to_owned(),
                form: "subdomain",
                rule: problems.join(";"),
            });
        }
        return Ok(PodName {
            host: shortened(name, chosen)?,
            domain: String::new(),
        });
    }
    let host = spec.and_then(|spec| spec.hostname.as_deref());
    let host = host.filter(|name| !name.is_empty());
    let subdomain = spec.and_then(|spec| spec.subdomain.as_deref());
    let subdomain = subdomain.filter(|name| !name.is_empty());
    for (field, value) in [("Hostname", host), ("Subdomain", subdomain)] {
        if let Some(value) = value.filter(|value| !syntax::is_dns_label(value)) {
            return Err(SpecError::HostName {
                field,
                value: value.to_owned(),
                form: "label",
                rule: LABEL_RULE.to_owned(),
            });
        }
    }
    let domain = subdomain.map(|sub| format!("{sub}.{namespace}.svc.{cluster_domain}"));
    Ok(PodName {
        host: shortened(name, host.unwrap_or(name))?,
        domain: domain.unwrap_or_default(),
    })
}

/// The host name of the pod's UTS namespace: the short name, or the full one on request.
pub fn kernel_host_name(pod: &Pod, name: &PodName) -> Result<String, SpecError> {
    let spec = pod.spec.as_ref();
    let wants_fqdn = spec.and_then(|spec| spec.set_hostname_as_fqdn);
    if name.domain.is_empty() || wants_fqdn != Some(true) {
        return Ok(name.host.clone());
    }
    let fqdn = format!("{}.{}", name.host, name.domain);
    if fqdn.len() > LONGEST_FQDN {
        return Err(SpecError::LongFqdn {
            fqdn,
            limit: LONGEST_FQDN,
        });
    }
    Ok(fqdn)
}

fn shortened(pod: &str, name: &str) -> Result<String, SpecError> {
    if name.len() <= LONGEST_HOST_NAME {
        return Ok(name.to_owned());
    }
    let cut = name.get(..LONGEST_HOST_NAME).unwrap_or_default();
    let cut = cut.trim_end_matches(['-', '.']);
    if cut.is_empty() {
        return Err(SpecError::EmptyHostName {
            pod: pod.to_owned(),
            value: name.to_owned(),
        });
    }
    Ok(cut.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, spec: Value) -> Pod {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let meta = json!({"name": name, "namespace": "ns"});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    }

    #[test]
    fn hostname_is_the_spec_or_pod_name_cut_to_a_label() {
        let long = "a".repeat(62);
        for (name, spec, host, domain) in [
            ("web", json!({}), "web", ""),
            ("web", json!({"hostname": "h"}), "h", ""),
            (
                "web",
                json!({"hostname": "h", "subdomain": "s"}),
                "h",
                "s.ns.svc.cluster.local",
            ),
            (
                "web",
                json!({"subdomain": "s"}),
                "web",
                "s.ns.svc.cluster.local",
            ),
            (&format!("{long}-bc"), json!({}), &long, ""),
            (
                "web",
                json!({"hostnameOverride": "a.b.example", "hostname": "h", "subdomain": "s"}),
                "a.b.example",
                "",
            ),
        ] {
            let got = pod_name(&pod(name, spec), "cluster.local").unwrap();
            assert_eq!((got.host.as_str(), got.domain.as_str()), (host, domain));
        }
    }

    #[test]
    fn names_that_dns_could_not_hold_are_refused() {
        let error = pod_name(&pod("web", json!({"hostname": "A_b"})), "x").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("pod Hostname \"A_b\" is not a valid DNS label: {LABEL_RULE}")
        );
        let error = pod_name(&pod(&"-".repeat(70), json!({})), "x").unwrap_err();
        assert!(matches!(error, SpecError::EmptyHostName { .. }));
    }

    #[test]
    fn set_hostname_as_fqdn_sets_the_full_name_if_it_fits() {
        let full = |name: &str, is_fqdn: bool| {
            let spec = json!({"subdomain": "s", "setHostnameAsFQDN": is_fqdn});
            let pod = pod(name, spec);
            kernel_host_name(&pod, &pod_name(&pod, "cluster.local").unwrap())
        };
        assert_eq!(full("web", false).unwrap(), "web");
        assert_eq!(full("web", true).unwrap(), "web.s.ns.svc.cluster.local");
        let error = full(&"w".repeat(60), true).unwrap_err().to_string();
        assert!(error.starts_with("failed to construct FQDN from pod hostname and cluster domain"));
        assert!(error.ends_with("is too long (64 characters is the max, 83 characters requested)"));
    }
}
