//! Watching a folder of manifests.

use std::io;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;

use super::{MAX_BYTES, parse};
use crate::folder::{Changes, Watch};
use crate::pods::Pods;
use crate::pods::set::Source;

/// How often the folder is read even if no change is reported (`fileCheckFrequency`).
pub const PERIOD: Duration = Duration::from_secs(20);
/// Changes that come together are read together.
const SETTLE: Duration = Duration::from_millis(50);

/// Passes the pods in the folder, or in the single file, to `pods` until `stop` is cancelled.
pub async fn watch(
    path: &Path,
    node_name: &str,
    period: Duration,
    pods: &Pods,
    stop: CancellationToken,
) {
    loop {
        let mut changes = Watch::new(path, Changes::Finished);
        match read(path, node_name).await {
            Ok(found) => pods.replace(Source::Files, found),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "failed to read static pod manifests")
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = changes.changed(period) => tokio::time::sleep(SETTLE).await,
        }
    }
}

/// The pods in a folder or file. What cannot be read as a pod is left out and logged; a folder that
/// is not there is empty.
async fn read(path: &Path, node_name: &str) -> io::Result<Vec<Pod>> {
    let metadata = match tokio::fs::metadata(path).await {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    if metadata.is_dir() {
        let mut entries = tokio::fs::read_dir(path).await?;
        while let Some(entry) = entries.next_entry().await? {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !is_hidden {
                files.push(entry.path());
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut pods = Vec::new();
    for file in files {
        let name = file.display().to_string();
        match read_file(&file, &name, node_name).await {
            Ok(pod) => pods.push(pod),
            Err(error) => {
                tracing::warn!(path = name, error, "failed to process static pod manifest")
            }
        }
    }
    Ok(pods)
}

async fn read_file(file: &Path, name: &str, node_name: &str) -> Result<Pod, String> {
    let metadata = tokio::fs::metadata(file).await;
    let metadata = metadata.map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let text = tokio::fs::read_to_string(file).await;
    let text = text.map_err(|error| error.to_string())?;
    parse(&text, name, node_name).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_fields;

    fn manifest(name: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: a}}]}}}}"
        )
    }

    #[tokio::test]
    async fn invalid_pod_files_do_not_hide_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::write(path.join("b.yaml"), manifest("b")).unwrap();
        std::fs::write(path.join("a.json"), manifest("a")).unwrap();
        std::fs::write(path.join("broken.yaml"), "{").unwrap();
        std::fs::write(path.join(".hidden.yaml"), manifest("h")).unwrap();
        std::fs::create_dir(path.join("folder")).unwrap();
        let pods = read(path, "n").await.unwrap();
        let names: Vec<&str> = pods.iter().map(pod_fields::name).collect();
        assert_eq!(names, ["a-n", "b-n"]);
        let one = read(&path.join("b.yaml"), "n").await.unwrap();
        assert_eq!(one.len(), 1);
        assert!(read(&path.join("none"), "n").await.unwrap().is_empty());
    }
}
