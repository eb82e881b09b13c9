//! Kubeconfig files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Certificate;

/// A kubeconfig with everything in it: `server` is an `https` URL, `user` the name of the entry.
/// It holds a private key; write it with [`super::write_private`].
pub fn kubeconfig(server: &str, ca_pem: &str, user: &str, client: &Certificate) -> String {
    // JSON texts are YAML texts.
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let server = text(server);
    let user = text(user);
    let ca = STANDARD.encode(ca_pem);
    let certificate = STANDARD.encode(&client.certificate_pem);
    let key = STANDARD.encode(&client.key_pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: plimsoll
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: plimsoll
  context:
    cluster: plimsoll
    user: {user}
current-context: plimsoll
"
    )
}
