//! Mount points inside volumes.
//!
//! A container may mount one volume below another. The outer one may be read-only later, so the
//! directory is made when it is set up. Matches v1.36 pkg/volume/util/nested_volumes.go.

use k8s_openapi::api::core::v1::{Pod, VolumeMount};

use super::SetUpError;

/// Directories that the volume needs for others to be mounted on, relative to it.
pub fn mount_points(pod: &Pod, volume: &str) -> Result<Vec<String>, SetUpError> {
    let Some(spec) = &pod.spec else {
        return Ok(Vec::new());
    };
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|container| &container.volume_mounts);
    let containers = crate::pod_fields::containers(spec).map(|container| &container.volume_mounts);
    let mut found = Vec::new();
    for mounts in containers.chain(ephemeral).flatten() {
        found.extend(in_container(mounts, volume)?);
    }
    Ok(found)
}

fn in_container(mounts: &[VolumeMount], volume: &str) -> Result<Vec<String>, SetUpError> {
    let mut all: Vec<String> = mounts
        .iter()
        .map(|mount| cleaned(&mount.mount_path))
        .collect();
    all.sort();
    let mut found = Vec::new();
    for own in mounts.iter().filter(|mount| mount.name == volume) {
        let own = cleaned(&own.mount_path);
        if own.starts_with("../") {
            return Err(SetUpError::MountPoint(own));
        }
        let prefix = format!("{own}/");
        // Those below another mount are made in that one's volume.
        let mut seen: Vec<String> = Vec::new();
        for point in all.iter().filter(|point| point.starts_with(&prefix)) {
            if !seen.iter().any(|seen| point.starts_with(seen)) {
                seen.push(format!("{point}/"));
                found.push(point[prefix.len()..].to_owned());
            }
        }
    }
    Ok(found)
}

/// The shortest form of a path.
fn cleaned(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            ("..", None) if is_absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pods::spec::testing::pod_with;

    fn check(mounts: &[(&str, &str)], want: &[&str]) {
        let mounts: Vec<_> = mounts
            .iter()
            .map(|(name, path)| json!({"name": name, "mountPath": path}))
            .collect();
        let pod = pod_with(json!({"containers": [{"name": "c", "volumeMounts": mounts}]}));
        assert_eq!(mount_points(&pod, "vol").unwrap(), want, "{mounts:?}");
    }

    #[test]
    fn only_the_outermost_mount_below_a_volume_needs_a_directory_in_it() {
        check(&[("vol", "/dir")], &[]);
        check(&[("vol", "/dir"), ("other", "/dir/nested")], &["nested"]);
        check(&[("vol", "/dir"), ("other", "/dir-not/nested")], &[]);
        check(
            &[
                ("vol", "/dir/"),
                ("a", "/dir/x/y"),
                ("b", "/dir/x"),
                ("c", "/dir/x-z"),
            ],
            &["x", "x-z"],
        );
        check(
            &[("vol", "/a"), ("vol", "/b"), ("o", "/b/deep/er")],
            &["deep/er"],
        );
        check(&[("vol", "/dir"), ("o", "/dir/../dir/./n")], &["n"]);
    }

    #[test]
    fn mounts_cannot_lead_out_of_the_container() {
        let mounts = json!([{"name": "vol", "mountPath": "../../etc"}]);
        let pod = pod_with(json!({"containers": [{"name": "c", "volumeMounts": mounts}]}));
        assert!(mount_points(&pod, "vol").is_err());
    }
}
