//! The content of the files of a volume.
//!
//! Matches v1.36 MakePayload of pkg/volume/configmap and pkg/volume/secret, and CollectData of
//! pkg/volume/downwardapi.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret};
use plimsoll_core::resources::ResourceList;

use super::{SetUpError, downward};

/// The default of every `defaultMode`.
pub const DEFAULT_MODE: i32 = 0o644;

/// Files by their paths in the volume.
pub type Payload = BTreeMap<String, FileContent>;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
    /// Its owner, if not the agent.
    pub owner: Option<u32>,
}

impl FileContent {
    fn new(data: impl Into<Vec<u8>>, mode: i32) -> FileContent {
        FileContent {
            data: data.into(),
            mode: mode_bits(mode),
            owner: None,
        }
    }
}

/// The permission bits of a mode in the API; what else it has is ignored.
pub fn mode_bits(mode: i32) -> u32 {
    u32::try_from(mode & 0o777).unwrap_or_default()
}

/// The files of a ConfigMap: all keys, or the ones mapped. One that does not exist has none.
pub fn from_config_map(
    object: Option<&ConfigMap>,
    items: &[KeyToPath],
    default_mode: i32,
    is_optional: bool,
) -> Result<Payload, SetUpError> {
    let texts = object
        .into_iter()
        .flat_map(|object| object.data.iter().flatten());
    let blobs = object
        .into_iter()
        .flat_map(|object| object.binary_data.iter().flatten());
    // A key that is in both is text where it is mapped; upstream lets bytes win otherwise.
    let blobs = blobs.map(|(key, data)| (key.as_str(), data.0.as_slice()));
    let texts = texts.map(|(key, text)| (key.as_str(), text.as_bytes()));
    let data: BTreeMap<&str, &[u8]> = match items {
        [] => texts.chain(blobs).collect(),
        _ => blobs.chain(texts).collect(),
    };
    from_keys(
        &data,
        items,
        default_mode,
        is_optional,
        SetUpError::NoConfigMapKey,
    )
}

/// The files of a Secret: all keys, or the ones mapped. One that does not exist has none.
pub fn from_secret(
    object: Option<&Secret>,
    items: &[KeyToPath],
    default_mode: i32,
    is_optional: bool,
) -> Result<Payload, SetUpError> {
    let data = object
        .into_iter()
        .flat_map(|object| object.data.iter().flatten());
    let data = data.map(|(key, data)| (key.as_str(), data.0.as_slice()));
    from_keys(
        &data.collect(),
        items,
        default_mode,
        is_optional,
        SetUpError::NoSecretKey,
    )
}

fn from_keys(
    data: &BTreeMap<&str, &[u8]>,
    items: &[KeyToPath],
    default_mode: i32,
    is_optional: bool,
    missing: fn(String) -> SetUpError,
) -> Result<Payload, SetUpError> {
    if items.is_empty() {
        let all = data.iter();
        let all = all.map(|(key, data)| ((*key).to_owned(), FileContent::new(*data, default_mode)));
        return Ok(all.collect());
    }
    let mut payload = Payload::new();
    for item in items {
        match data.get(item.key.as_str()) {
            Some(data) => {
                let content = FileContent::new(*data, item.mode.unwrap_or(default_mode));
                payload.insert(item.path.clone(), content);
            }
            None if is_optional => {}
            None => return Err(missing(item.key.clone())),
        }
    }
    Ok(payload)
}

/// The files of a downward API volume. All that fail are reported.
pub fn from_pod(
    pod: &Pod,
    items: &[DownwardAPIVolumeFile],
    default_mode: i32,
    allocatable: &ResourceList,
) -> Result<Payload, SetUpError> {
    let mut payload = Payload::new();
    let mut failures = Vec::new();
    for item in items {
        let value = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => downward::file_field(pod, &field.field_path),
            (None, Some(resource)) => downward::file_resource(pod, resource, allocatable),
            (None, None) => Ok(String::new()),
        };
        match value {
            Ok(value) => {
                let content = FileContent::new(value, item.mode.unwrap_or(default_mode));
                payload.insert(item.path.clone(), content);
            }
            Err(error) => failures.push(error.into()),
        }
    }
    one_or_many(failures).map_or(Ok(payload), Err)
}

/// The file of a token. It is private wherever the pod names its reader: `owner` is the user
/// that all its containers run as, and the group is given more afterwards.
pub fn from_token(
    token: &str,
    default_mode: i32,
    owner: Option<i64>,
    has_group: bool,
) -> FileContent {
    let mode = match owner.is_some() || has_group {
        true => 0o600,
        false => default_mode,
    };
    FileContent {
        owner: owner.and_then(|owner| u32::try_from(owner).ok()),
        ..FileContent::new(token, mode)
    }
}

/// Failures as one.
pub(super) fn one_or_many(mut failures: Vec<SetUpError>) -> Option<SetUpError> {
    match failures.len() {
        0 | 1 => failures.pop(),
        _ => Some(SetUpError::Many(failures)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config_map() -> ConfigMap {
        serde_json::from_value(json!({
            "data": {"a": "text", "b": "more"},
            "binaryData": {"c": "AAE="},
        }))
        .unwrap()
    }

    fn item(key: &str, path: &str, mode: Option<i32>) -> KeyToPath {
        KeyToPath {
            key: key.to_owned(),
            path: path.to_owned(),
            mode,
        }
    }

    fn listed(payload: &Payload) -> Vec<(&str, &[u8], u32)> {
        let files = payload.iter();
        files
            .map(|(path, file)| (path.as_str(), file.data.as_slice(), file.mode))
            .collect()
    }

    #[test]
    fn all_keys_become_files_unless_some_are_chosen() {
        let object = config_map();
        let all = from_config_map(Some(&object), &[], 0o644, false).unwrap();
        let want: [(&str, &[u8], u32); 3] = [
            ("a", b"text", 0o644),
            ("b", b"more", 0o644),
            ("c", &[0, 1], 0o644),
        ];
        assert_eq!(listed(&all), want);
        let items = [item("a", "deep/x", Some(0o400)), item("c", "y", None)];
        let some = from_config_map(Some(&object), &items, 0o640, false).unwrap();
        let want: [(&str, &[u8], u32); 2] = [("deep/x", b"text", 0o400), ("y", &[0, 1], 0o640)];
        assert_eq!(listed(&some), want);
    }

    #[test]
    fn a_chosen_key_must_exist_unless_the_source_is_optional() {
        let items = [item("zz", "x", None)];
        let error = from_config_map(Some(&config_map()), &items, 0o644, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "configmap references non-existent config key: zz"
        );
        let error = from_secret(Some(&Secret::default()), &items, 0o644, false).unwrap_err();
        assert_eq!(error.to_string(), "references non-existent secret key: zz");
        assert!(from_secret(None, &items, 0o644, true).unwrap().is_empty());
    }

    #[test]
    fn fields_and_resources_of_the_pod_become_files() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]},
        }))
        .unwrap();
        let read = |items| {
            let items: Vec<DownwardAPIVolumeFile> = serde_json::from_value(items).unwrap();
            from_pod(&pod, &items, 0o644, &ResourceList::default())
        };
        let files = read(json!([
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "cpu", "mode": 0o400,
             "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
        ]))
        .unwrap();
        let want: [(&str, &[u8], u32); 2] = [("cpu", b"2", 0o400), ("labels", b"app=\"x\"", 0o644)];
        assert_eq!(listed(&files), want);
        let error = read(json!([
            {"path": "a", "fieldRef": {"fieldPath": "spec.x"}},
            {"path": "b", "resourceFieldRef": {"containerName": "d", "resource": "limits.cpu"}},
        ]))
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "[unsupported fieldPath: spec.x, container d not found]"
        );
    }

    #[test]
    fn tokens_have_mode_0600_with_run_as_user_or_fs_group() {
        for (owner, has_group, mode) in [
            (None, false, 0o644),
            (Some(7), false, 0o600),
            (None, true, 0o600),
        ] {
            let file = from_token("t", DEFAULT_MODE, owner, has_group);
            assert_eq!(file.mode, mode);
            assert_eq!(file.owner, owner.map(|_| 7));
        }
    }
}
