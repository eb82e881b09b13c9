//! What an image says about itself: the part of its OCI configuration that matters here.
//!
//! Docker's configurations have the same shape, with nulls where OCI leaves fields out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::{Digest, compute_chain};

/// An image's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// As Go calls it: `amd64`, `arm64`.
    pub architecture: String,
    /// `linux`.
    pub os: String,
    /// How a container starts.
    #[serde(default)]
    pub config: Option<Start>,
    /// The layers.
    pub rootfs: RootFs,
}

/// How a container of the image starts unless its pod overrides it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Start {
    /// `user`, `user:group`, by name or number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `NAME=value` pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// The first arguments of the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Vec<String>>,
    /// Further arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<Vec<String>>,
    /// Where the process starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The signal that stops it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<String>,
    /// Directories that hold data of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<BTreeMap<String, Value>>,
}

/// The layers an image is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of their tars, lowest first.
    pub diff_ids: Vec<Digest>,
}

impl Configuration {
    /// From its JSON.
    pub fn parse(bytes: &[u8]) -> Result<Configuration, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The names of the stacks of layers, one per layer, lowest first.
    pub fn chains(&self) -> Vec<Digest> {
        let mut chains: Vec<Digest> = Vec::new();
        for diff_id in &self.rootfs.diff_ids {
            chains.push(compute_chain(chains.last(), diff_id));
        }
        chains
    }

    /// The user's number, or else the user's name. Both none for root by default.
    ///
    /// Matches how containerd fills `Image` of CRI.
    pub fn user(&self) -> (Option<i64>, String) {
        let user = self.config.as_ref().and_then(|start| start.user.as_deref());
        let name = user
            .unwrap_or_default()
            .split(':')
            .next()
            .unwrap_or_default();
        match name.parse() {
            Ok(number) => (Some(number), String::new()),
            Err(_) => (None, name.to_owned()),
        }
    }
}

/// This machine's architecture as Go calls it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_fields_are_absent() {
        let text = br#"{"architecture":"amd64","os":"linux","created":"x","history":[],
            "config":{"Hostname":"","User":"","Env":null,"Cmd":["sh"],"Entrypoint":null,"Volumes":{"/data":{}}},
            "rootfs":{"type":"layers","diff_ids":[]}}"#;
        let start = Configuration::parse(text).unwrap().config.unwrap();
        assert_eq!(start.cmd, Some(vec!["sh".to_owned()]));
        assert_eq!((start.env, start.entrypoint), (None, None));
        assert!(start.volumes.unwrap().contains_key("/data"));
        let bare = br#"{"architecture":"amd64","os":"linux","config":null,"rootfs":{"type":"layers","diff_ids":[]}}"#;
        assert_eq!(Configuration::parse(bare).unwrap().config, None);
    }

    #[test]
    fn users_have_a_number_or_a_name() {
        for (user, number, name) in [
            ("", None, ""),
            ("1000", Some(1000), ""),
            ("1000:100", Some(1000), ""),
            ("app:app", None, "app"),
        ] {
            let start = Start {
                user: Some(user.to_owned()),
                ..Start::default()
            };
            let configuration = Configuration {
                config: Some(start),
                ..Configuration::default()
            };
            assert_eq!(configuration.user(), (number, name.to_owned()));
        }
    }

    #[test]
    fn each_layer_is_named_with_all_below_it() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let configuration = Configuration {
            rootfs: RootFs {
                kind: "layers".to_owned(),
                diff_ids: vec![a, b],
            },
            ..Configuration::default()
        };
        assert_eq!(configuration.chains(), [a, compute_chain(Some(&a), &b)]);
    }
}
