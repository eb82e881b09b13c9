//! The kubeconfig that a node keeps.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::request::KeyedCertificate;

/// A file of the node's cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct WriteError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// A kubeconfig with everything in it. JSON is YAML.
pub fn render(server: &str, ca_pem: &str, user: &str, client: &KeyedCertificate) -> String {
    let encoded = |text: &str| STANDARD.encode(text);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "default",
            "cluster": { "server": server, "certificate-authority-data": encoded(ca_pem) },
        }],
        "users": [{
            "name": user,
            "user": {
                "client-certificate-data": encoded(&client.certificate_pem),
                "client-key-data": encoded(&client.key_pem),
            },
        }],
        "contexts": [{ "name": "default", "context": { "cluster": "default", "user": user } }],
        "current-context": "default",
    });
    format!("{config:#}\n")
}

/// Writes a file that only its owner may read, all of it or nothing.
pub fn write_private(path: &Path, text: &str) -> Result<(), WriteError> {
    let failed = |source| WriteError {
        path: path.to_owned(),
        source,
    };
    let draft = path.with_extension("new");
    // A draft that a crash left behind may have another mode.
    let _ = std::fs::remove_file(&draft);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&draft, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_kubeconfig_is_private_and_can_be_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let client = KeyedCertificate {
            certificate_pem: "c".to_owned(),
            key_pem: "k".to_owned(),
        };
        for _ in 0..2 {
            let text = render("https://1.2.3.4:6443", "ca", "system:node:n1", &client);
            write_private(&path, &text).unwrap();
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = kube::config::Kubeconfig::read_from(&path).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("default"));
        let server = read.clusters[0].cluster.as_ref().unwrap().server.as_deref();
        assert_eq!(server, Some("https://1.2.3.4:6443"));
    }
}
