//! The admission plugin ServiceAccount: every pod gets a service account and its token.
//!
//! Matches v1.36 plugin/pkg/admission/serviceaccount/admission.go.

use std::sync::{Arc, LazyLock};

use plimsoll_core::problem::quoted;
use serde_json::{Map, Value, json};

use super::identity;

const MIRROR: &str = "kubernetes.io/config.mirror";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";

/// The lifetime of a pod's token; the node agent renews it before. The odd number distinguishes
/// tokens that were injected here from others.
const TOKEN_SECONDS: i64 = 60 * 60 + 7;

/// Adds the service account, its pull secrets, and a token volume to a new pod.
///
/// `account` looks up a service account of the namespace by name.
pub(crate) fn admit(
    pod: &mut Value,
    namespace: &str,
    account: impl FnOnce(&str) -> Option<Arc<Value>>,
) -> Result<(), String> {
    if !pod["metadata"]["annotations"][MIRROR].is_null() {
        return check_mirror_pod(pod);
    }
    let spec = &mut pod["spec"];
    if text(&spec["serviceAccountName"]).is_empty() {
        spec["serviceAccountName"] = json!("default");
    }
    // The deprecated name of the field has the same value.
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
    let name = text(&spec["serviceAccountName"]).to_owned();
    let account = account(&name).ok_or_else(|| {
        let missing = format!("serviceaccount {} not found", quoted(&name));
        format!("error looking up service account {namespace}/{name}: {missing}")
    })?;
    let wants_token = spec["automountServiceAccountToken"]
        .as_bool()
        .or_else(|| account["automountServiceAccountToken"].as_bool());
    if wants_token.unwrap_or(true) {
        mount_token(spec);
    }
    let has_secrets = spec["imagePullSecrets"]
        .as_array()
        .is_some_and(|s| !s.is_empty());
    if !has_secrets && account["imagePullSecrets"].is_array() {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    Ok(())
}

/// A mirror pod must not refer to objects of the cluster.
fn check_mirror_pod(pod: &Value) -> Result<(), String> {
    let spec = &pod["spec"];
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    for volume in volumes {
        if !volume["secret"].is_null() {
            return Err("a mirror pod may not reference secrets".to_owned());
        }
        let sources = volume["projected"]["sources"].as_array();
        for source in sources.into_iter().flatten() {
            if !source["serviceAccountToken"].is_null() {
                let reason = "a mirror pod may not use ServiceAccountToken volume projections";
                return Err(reason.to_owned());
            }
        }
    }
    Ok(())
}

/// Adds the token volume, and a mount to every container that has none of its own.
fn mount_token(spec: &mut Value) {
    let volumes = spec["volumes"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let existing = volumes
        .iter()
        .map(|volume| text(&volume["name"]))
        .find(|name| name.starts_with(VOLUME_PREFIX));
    let (name, is_new) = match existing {
        Some(name) => (name.to_owned(), false),
        None => (format!("{VOLUME_PREFIX}{}", identity::suffix()), true),
    };
    let mut is_used = false;
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array();
            let has_own = mounts
                .into_iter()
                .flatten()
                .any(|mount| mount["mountPath"] == MOUNT_PATH);
            if has_own {
                continue;
            }
            let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
            push(&mut container["volumeMounts"], mount);
            is_used = true;
        }
    }
    if is_used && is_new {
        push(&mut spec["volumes"], token_volume(name));
    }
}

/// What every token volume projects; copying it takes half as long as making it.
static PROJECTED: LazyLock<Value> = LazyLock::new(|| {
    json!({"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {
            "name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}],
        }},
        {"downwardAPI": {"items": [{
            "path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
        }]}},
    ]})
});

fn token_volume(name: String) -> Value {
    let mut volume = Map::new();
    volume.insert("name".to_owned(), Value::String(name));
    volume.insert("projected".to_owned(), PROJECTED.clone());
    Value::Object(volume)
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        // `json!` would copy the item.
        other => *other = Value::Array(vec![item]),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(pod: Value, account: Value) -> Result<Value, String> {
        let mut pod = pod;
        admit(&mut pod, "ns", |name| {
            (name == "default").then(|| Arc::new(account))
        })?;
        Ok(pod)
    }

    #[test]
    fn a_pod_without_an_account_gets_the_default_one_and_its_token() {
        let pod = json!({"metadata": {}, "spec": {"containers": [{"name": "a"}]}});
        let pod = admitted(pod, json!({"imagePullSecrets": [{"name": "s"}]})).unwrap();
        assert_eq!(pod["spec"]["serviceAccountName"], "default");
        assert_eq!(pod["spec"]["serviceAccount"], "default");
        assert_eq!(pod["spec"]["imagePullSecrets"][0]["name"], "s");
        let mount = &pod["spec"]["containers"][0]["volumeMounts"][0];
        assert_eq!(mount["mountPath"], MOUNT_PATH);
        assert_eq!(mount["name"], pod["spec"]["volumes"][0]["name"]);
    }

    #[test]
    fn automount_setting_of_the_pod_takes_precedence() {
        let pod = |wish: Value| {
            json!({"metadata": {}, "spec": {"containers": [{}],
                "automountServiceAccountToken": wish}})
        };
        let no = json!({"automountServiceAccountToken": false});
        let without = admitted(pod(Value::Null), no.clone()).unwrap();
        assert!(without["spec"]["volumes"].is_null());
        let with = admitted(pod(json!(true)), no).unwrap();
        assert!(with["spec"]["volumes"].is_array());
    }

    #[test]
    fn unknown_service_account_is_rejected_with_upstream_message() {
        let pod = json!({"metadata": {}, "spec": {"serviceAccountName": "other"}});
        assert_eq!(
            admitted(pod, json!({})).unwrap_err(),
            "error looking up service account ns/other: serviceaccount \"other\" not found"
        );
    }

    #[test]
    fn mirror_pod_is_unchanged() {
        let mirror = json!({"annotations": {MIRROR: "x"}});
        let pod = json!({"metadata": mirror, "spec": {"containers": [{}]}});
        assert_eq!(admitted(pod.clone(), json!({})).unwrap(), pod);
        let pod = json!({"metadata": mirror, "spec": {"serviceAccountName": "a"}});
        assert!(admitted(pod, json!({})).is_err());
    }
}
