//! Networks by CNI plugins: programs that get their command in their environment and on standard
//! input, and reply on standard output. Follows the CNI specification 1.0, sections 1 to 5.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::super::files::{self, Durability};
use crate::Error;
use crate::wire::{PodSandboxConfig, Protocol};

/// The network interface inside a sandbox.
const INTERFACE: &str = "eth0";
/// How long a plugin may take.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Cni {
    conf_dir: PathBuf,
    bin_dirs: Vec<PathBuf>,
}

/// A network: plugins that are run one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct NetworkList {
    name: String,
    #[serde(rename = "cniVersion", default = "first_version")]
    cni_version: String,
    plugins: Vec<Value>,
}

fn first_version() -> String {
    "0.1.0".to_owned()
}

/// What a sandbox was given, kept until it is taken back.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    list: NetworkList,
    /// `None` while the plugins have not all run.
    result: Option<Value>,
}

/// Why a CNI plugin failed.
#[derive(Debug, thiserror::Error)]
enum CniError {
    #[error("cannot read {}", .path.display())]
    Config {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no plugin {plugin:?} in {dirs:?}")]
    NoPlugin { plugin: String, dirs: Vec<PathBuf> },
    #[error("cannot run plugin {plugin:?}")]
    Run {
        plugin: String,
        #[source]
        source: io::Error,
    },
    #[error("plugin {plugin:?} failed ({command}): {message}")]
    Refused {
        plugin: String,
        command: &'static str,
        message: String,
    },
}

impl Cni {
    pub(super) fn new(conf_dir: PathBuf, bin_dirs: Vec<PathBuf>) -> Cni {
        Cni { conf_dir, bin_dirs }
    }

    /// Gives a sandbox its network; `None` if none is configured.
    pub(super) async fn add(
        &self,
        id: &str,
        netns: &Path,
        config: &PodSandboxConfig,
        note: &Path,
    ) -> Result<Option<Vec<IpAddr>>, Error> {
        let failed =
            |error: CniError| Error::failed(format!("set up the network of sandbox {id}"), error);
        let Some(list) = read_config(&self.conf_dir).map_err(failed)? else {
            return Ok(None);
        };
        let mut kept = Note { list, result: None };
        // Written before anything is done, so that it can be undone whatever happens.
        write_note(note, &kept)?;
        for plugin in &kept.list.plugins {
            let input = plugin_input(&kept.list, plugin, kept.result.as_ref(), config);
            let output = self
                .run("ADD", id, Some(netns), config, plugin, &input)
                .await;
            kept.result = Some(output.map_err(failed)?);
        }
        write_note(note, &kept)?;
        Ok(Some(addresses(kept.result.as_ref())))
    }

    /// Takes back what a sandbox was given.
    pub(super) async fn del(
        &self,
        id: &str,
        netns: Option<&Path>,
        config: &PodSandboxConfig,
        note: &Path,
    ) -> Result<(), Error> {
        let doing = || format!("tear down the network of sandbox {id}");
        let kept: Option<Note> =
            files::read_json(note).map_err(|error| Error::failed(doing(), error))?;
        let Some(kept) = kept else {
            return Ok(());
        };
        for plugin in kept.list.plugins.iter().rev() {
            let input = plugin_input(&kept.list, plugin, kept.result.as_ref(), config);
            let done = self.run("DEL", id, netns, config, plugin, &input).await;
            done.map_err(|error| Error::failed(doing(), error))?;
        }
        fs::remove_file(note).map_err(|error| Error::failed(doing(), error))
    }

    async fn run(
        &self,
        command: &'static str,
        id: &str,
        netns: Option<&Path>,
        config: &PodSandboxConfig,
        plugin: &Value,
        input: &Value,
    ) -> Result<Value, CniError> {
        let name = plugin["type"].as_str().unwrap_or_default().to_owned();
        let found = self.bin_dirs.iter().map(|dir| dir.join(&name));
        let is_plain = !name.is_empty() && !name.contains('/');
        let program = found.into_iter().find(|path| is_plain && path.is_file());
        let program = program.ok_or_else(|| CniError::NoPlugin {
            plugin: name.clone(),
            dirs: self.bin_dirs.clone(),
        })?;
        let path = std::env::join_paths(&self.bin_dirs).unwrap_or_default();
        let mut running = Command::new(program);
        running
            .env("CNI_COMMAND", command)
            .env("CNI_CONTAINERID", id)
            .env("CNI_NETNS", netns.unwrap_or_else(|| Path::new("")))
            .env("CNI_IFNAME", INTERFACE)
            .env("CNI_ARGS", arguments(id, config))
            .env("CNI_PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let talk = async {
            let mut process = running.spawn()?;
            if let Some(mut stdin) = process.stdin.take() {
                stdin.write_all(&serde_json::to_vec(input)?).await?;
            }
            process.wait_with_output().await
        };
        let output = tokio::time::timeout(PLUGIN_TIMEOUT, talk)
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
            .map_err(|source| CniError::Run {
                plugin: name.clone(),
                source,
            })?;
        if output.status.success() {
            // DEL has no result.
            return Ok(serde_json::from_slice(&output.stdout).unwrap_or(Value::Null));
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let said = [&answer["msg"], &answer["details"]];
        let said = said
            .iter()
            .filter_map(|part| part.as_str())
            .filter(|part| !part.is_empty());
        let message = match said.collect::<Vec<_>>().join("; ") {
            message if message.is_empty() => String::from_utf8_lossy(&output.stderr).into_owned(),
            message => message,
        };
        Err(CniError::Refused {
            plugin: name,
            command,
            message,
        })
    }
}

fn write_note(path: &Path, note: &Note) -> Result<(), Error> {
    files::write_json(path, note, Durability::Process)
        .map_err(|error| Error::failed(format!("write {}", path.display()), error))
}

/// The first network in the directory, in the order of file names.
fn read_config(dir: &Path) -> Result<Option<NetworkList>, CniError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(CniError::Config {
                path: dir.to_owned(),
                source,
            });
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let kind = path.extension().and_then(|kind| kind.to_str());
        let is_list = match kind {
            Some("conflist") => true,
            Some("conf" | "json") => false,
            _ => continue,
        };
        let parsed = fs::read(&path).and_then(|content| parse_config(&content, is_list));
        return match parsed {
            Ok(list) => Ok(Some(list)),
            Err(source) => Err(CniError::Config { path, source }),
        };
    }
    Ok(None)
}

fn parse_config(content: &[u8], is_list: bool) -> io::Result<NetworkList> {
    if is_list {
        return Ok(serde_json::from_slice(content)?);
    }
    let plugin: Value = serde_json::from_slice(content)?;
    let text = |name: &str| plugin[name].as_str().map(str::to_owned);
    Ok(NetworkList {
        name: text("name").ok_or_else(|| io::Error::other("no name"))?,
        cni_version: text("cniVersion").unwrap_or_else(first_version),
        plugins: vec![plugin],
    })
}

/// What a plugin reads: its own part of the configuration, the network's name, the result of
/// the plugin before it, and the capability arguments that it requests.
fn plugin_input(
    list: &NetworkList,
    plugin: &Value,
    previous: Option<&Value>,
    config: &PodSandboxConfig,
) -> Value {
    let mut input = plugin.clone();
    if let Some(fields) = input.as_object_mut() {
        fields.insert("name".to_owned(), json!(list.name));
        fields.insert("cniVersion".to_owned(), json!(list.cni_version));
        if let Some(previous) = previous {
            fields.insert("prevResult".to_owned(), previous.clone());
        }
        if plugin["capabilities"]["portMappings"] == json!(true) {
            let ports = json!({ "portMappings": port_mappings(config) });
            fields.insert("runtimeConfig".to_owned(), ports);
        }
    }
    input
}

fn port_mappings(config: &PodSandboxConfig) -> Vec<Value> {
    let mapped = config
        .port_mappings
        .iter()
        .filter(|port| port.host_port > 0);
    mapped
        .map(|port| {
            let protocol = match port.protocol() {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Sctp => "sctp",
            };
            json!({
                "hostPort": port.host_port,
                "containerPort": port.container_port,
                "protocol": protocol,
                "hostIP": port.host_ip,
            })
        })
        .collect()
}

fn arguments(id: &str, config: &PodSandboxConfig) -> String {
    let pod = config.metadata.clone().unwrap_or_default();
    format!(
        "IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={};K8S_POD_INFRA_CONTAINER_ID={id};K8S_POD_UID={}",
        pod.namespace, pod.name, pod.uid
    )
}

/// The addresses in a result, of any version of the specification.
fn addresses(result: Option<&Value>) -> Vec<IpAddr> {
    let Some(result) = result else {
        return Vec::new();
    };
    let listed = result["ips"].as_array().into_iter().flatten();
    let listed = listed.map(|ip| &ip["address"]);
    let old = [&result["ip4"]["ip"], &result["ip6"]["ip"]];
    listed
        .chain(old)
        .filter_map(|text| text.as_str()?.split('/').next()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_configuration_by_name_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_config(&dir.path().join("missing")).unwrap(), None);
        fs::write(dir.path().join("00-readme.txt"), "not a network").unwrap();
        assert_eq!(read_config(dir.path()).unwrap(), None);
        let single = r#"{"cniVersion":"0.4.0","name":"one","type":"bridge"}"#;
        fs::write(dir.path().join("20-one.conf"), single).unwrap();
        let list = read_config(dir.path()).unwrap().unwrap();
        assert_eq!((list.name.as_str(), list.plugins.len()), ("one", 1));
        let many = r#"{"cniVersion":"1.0.0","name":"many","plugins":[{"type":"a"},{"type":"b"}]}"#;
        fs::write(dir.path().join("10-many.conflist"), many).unwrap();
        let list = read_config(dir.path()).unwrap().unwrap();
        assert_eq!((list.name.as_str(), list.plugins.len()), ("many", 2));
        fs::write(dir.path().join("00-broken.conf"), "{").unwrap();
        assert!(read_config(dir.path()).is_err());
    }

    #[test]
    fn addresses_are_found_in_old_and_new_results() {
        let new = json!({"ips": [{"address": "10.1.0.2/16"}, {"address": "fd00::2/64"}]});
        let found = addresses(Some(&new));
        assert_eq!(
            found,
            [
                "10.1.0.2".parse::<IpAddr>().unwrap(),
                "fd00::2".parse().unwrap()
            ]
        );
        let old = json!({"ip4": {"ip": "10.1.0.3/16"}});
        assert_eq!(addresses(Some(&old)).len(), 1);
        assert!(addresses(None).is_empty());
    }

    #[test]
    fn cni_plugins_receive_the_previous_result() {
        let list = NetworkList {
            name: "net".to_owned(),
            cni_version: "1.0.0".to_owned(),
            plugins: vec![json!({"type": "portmap", "capabilities": {"portMappings": true}})],
        };
        let previous = json!({"ips": []});
        let config = PodSandboxConfig::default();
        let input = plugin_input(&list, &list.plugins[0], Some(&previous), &config);
        assert_eq!(input["name"], "net");
        assert_eq!(input["prevResult"], previous);
        assert_eq!(input["runtimeConfig"]["portMappings"], json!([]));
    }
}
