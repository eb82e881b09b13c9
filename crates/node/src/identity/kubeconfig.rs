//! The kubeconfig that a node keeps.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::{Value, json};

use super::request::KeyedCertificate;

/// A file of the node's cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct WriteError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// A node's kubeconfig cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path} is not the kubeconfig of a node")]
pub struct ReadError {
    path: PathBuf,
    #[source]
    source: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0} is missing")]
    Missing(&'static str),
}

/// What a node that has joined keeps: the server's address, its certificate authority, and the node's
/// own certificate.
#[derive(Clone, Debug)]
pub struct Kept {
    /// `https://HOST:PORT`.
    pub server: String,
    /// The cluster's authority.
    pub ca_pem: String,
    /// The user that the node acts as.
    pub user: String,
    /// What the node shows.
    pub client: KeyedCertificate,
}

impl Kept {
    /// Reads what [`Kept::render`] has made.
    pub fn read(path: &Path) -> Result<Kept, ReadError> {
        let read = || -> Result<Kept, Problem> {
            let file: Value = serde_json::from_slice(&std::fs::read(path)?)?;
            Kept::of(&file).map_err(Problem::Missing)
        };
        read().map_err(|source| ReadError {
            path: path.to_owned(),
            source,
        })
    }

    fn of(file: &Value) -> Result<Kept, &'static str> {
        let text = |pointer| file.pointer(pointer).and_then(Value::as_str).ok_or(pointer);
        let decoded = |pointer| {
            let bytes = STANDARD.decode(text(pointer)?).map_err(|_| pointer)?;
            String::from_utf8(bytes).map_err(|_| pointer)
        };
        Ok(Kept {
            server: text("/clusters/0/cluster/server")?.to_owned(),
            ca_pem: decoded("/clusters/0/cluster/certificate-authority-data")?,
            user: text("/users/0/name")?.to_owned(),
            client: KeyedCertificate {
                certificate_pem: decoded("/users/0/user/client-certificate-data")?,
                key_pem: decoded("/users/0/user/client-key-data")?,
            },
        })
    }

    /// How to act as the node.
    pub(super) async fn config(&self) -> Result<Config, KubeconfigError> {
        let file = Kubeconfig::from_yaml(&self.render())?;
        Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await
    }

    /// A kubeconfig with everything in it. JSON is YAML.
    pub fn render(&self) -> String {
        let encoded = |text: &str| STANDARD.encode(text);
        let user = &self.user;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "default",
                "cluster": {
                    "server": self.server,
                    "certificate-authority-data": encoded(&self.ca_pem),
                },
            }],
            "users": [{
                "name": user,
                "user": {
                    "client-certificate-data": encoded(&self.client.certificate_pem),
                    "client-key-data": encoded(&self.client.key_pem),
                },
            }],
            "contexts": [{ "name": "default", "context": { "cluster": "default", "user": user } }],
            "current-context": "default",
        });
        format!("{config:#}\n")
    }
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
        let kept = Kept {
            server: "https://1.2.3.4:6443".to_owned(),
            ca_pem: "ca".to_owned(),
            user: "system:node:n1".to_owned(),
            client: KeyedCertificate {
                certificate_pem: "c".to_owned(),
                key_pem: "k".to_owned(),
            },
        };
        for _ in 0..2 {
            write_private(&path, &kept.render()).unwrap();
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = Kept::read(&path).unwrap();
        assert_eq!(read.render(), kept.render());
        assert_eq!(read.client.key_pem, "k");
        write_private(&path, "{}").unwrap();
        let error = Kept::read(&path).unwrap_err();
        assert!(error.to_string().contains("kubeconfig"), "{error}");
    }
}
