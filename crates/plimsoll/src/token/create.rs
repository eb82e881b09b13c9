//! `plimsoll token create`.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use plimsoll_client::clock::Clock;
use plimsoll_core::duration;
use plimsoll_node::identity::pin::Pin;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::logging;
use crate::pem::pem;
use crate::print;

use super::{NAME_PREFIX, NAMESPACE, SECRET_TYPE};

/// The group of machines that authenticate with a token.
const JOINING: &str = "system:bootstrappers:plimsoll:default-node-token";

/// Arguments of `plimsoll token create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the command that joins another machine
  plimsoll token create --server https://10.0.0.1:6443")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) cluster: Cluster,

    /// Duration before the token expires; `0s` for never.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_ttl)]
    ttl: duration::Duration,

    /// Description of the token, shown by `plimsoll token list`.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,

    /// Address of the API server for the joining machine [default: as in the kubeconfig].
    #[arg(long, value_name = "URL")]
    server: Option<http::Uri>,
}

fn parse_ttl(text: &str) -> Result<duration::Duration, String> {
    let ttl = text.parse::<duration::Duration>();
    ttl.map_err(|_| "invalid duration (try 24h, 90m)".to_owned())
}

/// Creates a token and prints the command to join with it.
pub(super) async fn create(arguments: &Arguments) -> Result<()> {
    let config = arguments.cluster.config().await?;
    let server = arguments.server.as_ref().unwrap_or(&config.cluster_url);
    let server = server.to_string();
    let server = server.trim_end_matches('/');
    let authorities = config.root_cert.clone().unwrap_or_default();
    if authorities.is_empty() {
        bail!("the kubeconfig has no CA certificate; machines could not verify the API server");
    }
    let ca_pem: String = authorities.iter().map(|der| pem(der)).collect();
    let client = Client::try_from(config.clone()).context("cannot create an API client")?;
    let (id, secret) = (random(6), random(16));
    let token = Token {
        id: &id,
        secret: &secret,
        expiration: expiry(arguments.ttl),
        description: &arguments.description,
    };
    for object in objects(server, &ca_pem, &token) {
        apply(&client, &object).await?;
    }
    let pins = Pin::of_certificates(&ca_pem)?;
    let pins: Vec<String> = pins.iter().map(ToString::to_string).collect();
    print::write(&format!(
        "plimsoll node --join {server} --token {id}.{secret} --discovery-token-ca-cert-hash {}\n",
        pins.join(",")
    ))?;
    if server.contains("//127.") || server.contains("//localhost") || server.contains("//[::1]") {
        logging::print_line(&format!(
            "hint: {server} is reachable only from this machine; pass an external address with --server"
        ));
    }
    Ok(())
}

fn expiry(ttl: duration::Duration) -> Option<String> {
    let nanos = u64::try_from(ttl.as_nanos())
        .ok()
        .filter(|nanos| *nanos > 0)?;
    let at = Clock::system()
        .now()
        .saturating_add(Duration::from_nanos(nanos));
    Some(at.to_api_seconds().0.to_string())
}

/// Random lower-case letters and digits.
fn random(length: usize) -> String {
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = vec![0; length];
    // Rejecting the last few values keeps all characters equally likely.
    for byte in &mut bytes {
        *byte = loop {
            let mut one = [0];
            let read = rustix::rand::getrandom(&mut one, rustix::rand::GetRandomFlags::empty());
            if read == Ok(1) && one[0] < 252 {
                break ALPHABET[usize::from(one[0]) % ALPHABET.len()];
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The token to create.
struct Token<'a> {
    id: &'a str,
    secret: &'a str,
    expiration: Option<String>,
    description: &'a str,
}

/// The token and the objects that joining machines need, with kubeadm's names and contents.
fn objects(server: &str, ca_pem: &str, token: &Token<'_>) -> Vec<Value> {
    let id = token.id;
    let mut data = json!({
        "token-id": id,
        "token-secret": token.secret,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": JOINING,
    });
    if let Some(expiration) = &token.expiration {
        data["expiration"] = json!(expiration);
    }
    if !token.description.is_empty() {
        data["description"] = json!(token.description);
    }
    let information = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(ca_pem) },
        }],
    });
    let csr = "system:certificates.k8s.io:certificatesigningrequests";
    let mut objects = vec![
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
            "metadata": { "name": format!("{NAME_PREFIX}{id}"), "namespace": NAMESPACE },
            "stringData": data,
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "cluster-info", "namespace": "kube-public" },
            "data": { "kubeconfig": information.to_string() },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": "plimsoll:cluster-info", "namespace": "kube-public" },
            "rules": [{
                "apiGroups": [""], "resources": ["configmaps"],
                "resourceNames": ["cluster-info"], "verbs": ["get"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": "plimsoll:cluster-info", "namespace": "kube-public" },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                "name": "plimsoll:cluster-info",
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                "name": "system:anonymous",
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "plimsoll:selfnodeserver" },
            "rules": [{
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["certificatesigningrequests/selfnodeserver"], "verbs": ["create"],
            }],
        }),
    ];
    let bindings = [
        (
            "plimsoll:kubelet-bootstrap",
            "system:node-bootstrapper".to_owned(),
            JOINING,
        ),
        (
            "plimsoll:node-autoapprove-bootstrap",
            format!("{csr}:nodeclient"),
            JOINING,
        ),
        (
            "plimsoll:node-autoapprove-certificate-rotation",
            format!("{csr}:selfnodeclient"),
            "system:nodes",
        ),
        (
            "plimsoll:node-autoapprove-serving",
            "plimsoll:selfnodeserver".to_owned(),
            "system:nodes",
        ),
    ];
    objects.extend(bindings.map(|(name, role, group)| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role,
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group,
            }],
        })
    }));
    objects
}

async fn apply(client: &Client, object: &Value) -> Result<()> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", "v1"));
    let kind = GroupVersionKind::gvk(group, version, text("/kind"));
    let resource = ApiResource::from_gvk(&kind);
    let name = text("/metadata/name");
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let parameters = PatchParams::apply("plimsoll").force();
    let applied = api.patch(name, &parameters, &Patch::Apply(object)).await;
    applied.with_context(|| format!("cannot apply {} {name}", kind.kind))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_consist_of_lower_case_letters_and_digits() {
        let token = random(4096);
        assert!(
            token
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        );
        assert!(token.contains('z') && token.contains('0'));
    }

    #[test]
    fn a_token_without_ttl_has_no_expiration() {
        let secret = |expiration| {
            let token = Token {
                id: "abcdef",
                secret: "0123",
                expiration,
                description: "",
            };
            objects("https://s", "pem", &token)
        };
        let never = &secret(None)[0]["stringData"];
        assert!(never.get("expiration").is_none());
        assert!(never.get("description").is_none());
        let some_day = &secret(Some("2026-01-01T00:00:00Z".to_owned()))[0]["stringData"];
        assert_eq!(some_day["expiration"], "2026-01-01T00:00:00Z");
    }
}
