//! What of the devices survives a restart of the agent.
//!
//! The file has the name and the form of the kubelet's (v1.36
//! pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go) but for the checksum, which is a hash of
//! how Go prints the data: monitoring agents of devices read the file too.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::devices::{Allocation, Devices};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::ResourceName;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use super::{translate, wire};

/// The name of the file.
const FILE: &str = "kubelet_internal_checkpoint";
/// Larger files are not read.
const MAX_BYTES: u64 = 16 << 20;
/// Stands for the NUMA node of devices without one.
const NO_NUMA_NODE: i64 = -1;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    data: Data,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Data {
    pod_device_entries: Option<Vec<Entry>>,
    registered_devices: Option<BTreeMap<String, Option<Vec<String>>>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "PodUID")]
    pod_uid: String,
    #[serde(rename = "ContainerName")]
    container_name: String,
    #[serde(rename = "ResourceName")]
    resource_name: String,
    /// By NUMA node.
    #[serde(rename = "DeviceIDs")]
    device_ids: BTreeMap<i64, Vec<String>>,
    /// The plugin's answer, in base64.
    #[serde(rename = "AllocResp")]
    alloc_resp: String,
}

impl Entry {
    fn from_allocation(allocation: &Allocation) -> Entry {
        let mut device_ids: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (id, nodes) in &allocation.devices {
            let nodes = match nodes.is_empty() {
                true => &[NO_NUMA_NODE],
                false => nodes.as_slice(),
            };
            for node in nodes {
                device_ids.entry(*node).or_default().push(id.clone());
            }
        }
        let answer = translate::answer(&allocation.settings);
        Entry {
            pod_uid: allocation.pod.to_string(),
            container_name: allocation.container.clone(),
            resource_name: allocation.resource.to_string(),
            device_ids,
            alloc_resp: STANDARD.encode(answer.encode_to_vec()),
        }
    }

    fn to_allocation(&self) -> io::Result<Allocation> {
        let mut devices: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for (node, ids) in &self.device_ids {
            for id in ids {
                let nodes = devices.entry(id.clone()).or_default();
                nodes.extend((*node != NO_NUMA_NODE).then_some(*node));
            }
        }
        let answer = STANDARD
            .decode(&self.alloc_resp)
            .map_err(io::Error::other)?;
        let answer = wire::ContainerAllocateResponse::decode(answer.as_slice());
        Ok(Allocation {
            pod: PodUid::from(self.pod_uid.as_str()),
            container: self.container_name.clone(),
            resource: ResourceName::from(self.resource_name.as_str()),
            devices,
            settings: translate::settings(answer.map_err(io::Error::other)?),
        })
    }
}

/// Reads what an earlier agent has written to the directory.
pub(super) fn read(directory: &Path, now: Timestamp) -> io::Result<Devices> {
    let file = match std::fs::File::open(directory.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Devices::default()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text)?;
    let File { data } = serde_json::from_slice(&text)?;
    let resources = data.registered_devices.unwrap_or_default().into_keys();
    let entries = data.pod_device_entries.unwrap_or_default();
    let allocations: io::Result<Vec<_>> = entries.iter().map(Entry::to_allocation).collect();
    let resources = resources.map(|name| ResourceName::from(name.as_str()));
    Ok(Devices::restored(resources, allocations?, now))
}

/// Writes the state to the directory, whole or not at all.
pub(super) fn write(directory: &Path, devices: &Devices) -> io::Result<()> {
    let healthy = |resource: &ResourceName| {
        let all = devices.healthy_devices().filter(|(of, _)| *of == resource);
        Some(all.map(|(_, device)| device.id.clone()).collect())
    };
    let resources = devices.plugin_resources();
    let file = File {
        data: Data {
            pod_device_entries: Some(devices.allocations().map(Entry::from_allocation).collect()),
            registered_devices: Some(
                resources
                    .map(|resource| (resource.to_string(), healthy(resource)))
                    .collect(),
            ),
        },
    };
    let temporary = directory.join(format!(".{FILE}"));
    let mut written = std::fs::File::create(&temporary)?;
    written.write_all(&serde_json::to_vec(&file)?)?;
    written.sync_all()?;
    std::fs::rename(&temporary, directory.join(FILE))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::devices::{ContainerSettings, Device, DeviceNode, PluginOptions};

    use super::*;

    fn allocation() -> Allocation {
        Allocation {
            pod: PodUid::from("u1"),
            container: "main".to_owned(),
            resource: ResourceName::new("example.com/gpu"),
            devices: BTreeMap::from([("a".to_owned(), Vec::new()), ("b".to_owned(), vec![0, 1])]),
            settings: ContainerSettings {
                envs: BTreeMap::from([("GPU".to_owned(), "a,b".to_owned())]),
                devices: vec![DeviceNode {
                    container_path: "/dev/gpu0".to_owned(),
                    host_path: "/dev/zero".to_owned(),
                    permissions: "rw".to_owned(),
                }],
                cdi_devices: vec!["vendor.com/gpu=a".to_owned()],
                ..ContainerSettings::default()
            },
        }
    }

    #[test]
    fn allocations_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let gpu = ResourceName::new("example.com/gpu");
        let mut devices = Devices::default();
        devices.registered(&gpu, PluginOptions::default());
        let device = Device {
            id: "a".to_owned(),
            is_healthy: true,
            numa_nodes: Vec::new(),
        };
        devices.listed(&gpu, vec![device]);
        devices.allocate(allocation());
        write(folder.path(), &devices).unwrap();
        let text = std::fs::read(folder.path().join(FILE)).unwrap();
        let text: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let entry = &text["Data"]["PodDeviceEntries"][0];
        assert_eq!(entry["PodUID"], "u1");
        assert_eq!(entry["DeviceIDs"]["-1"][0], "a");
        assert_eq!(text["Data"]["RegisteredDevices"]["example.com/gpu"][0], "a");
        let restored = read(folder.path(), Timestamp::default()).unwrap();
        let allocations: Vec<_> = restored.allocations().cloned().collect();
        assert_eq!(allocations, [allocation()]);
        assert_eq!(restored.plugin_resources().collect::<Vec<_>>(), [&gpu]);
        assert!(restored.is_stopped(&gpu));
    }

    #[test]
    fn a_directory_without_the_file_has_no_devices_and_a_damaged_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let empty = read(folder.path(), Timestamp::default()).unwrap();
        assert_eq!(empty.plugin_resources().count(), 0);
        std::fs::write(folder.path().join(FILE), "{\"Data\": 1}").unwrap();
        read(folder.path(), Timestamp::default()).unwrap_err();
    }

    #[test]
    fn lists_that_the_kubelet_has_left_empty_are_null() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"x.org/y":null}},"Checksum":7}"#;
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let devices = read(folder.path(), Timestamp::default()).unwrap();
        assert_eq!(devices.plugin_resources().count(), 1);
    }
}
