//! Files come and go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;

use super::manifest::parse;
use crate::folder::Watch;
use crate::pods::{Pods, anatomy};

/// `fileCheckFrequency`: how often files are read without being told of a change.
const SCAN_EVERY: Duration = Duration::from_secs(20);
/// How long a change is let settle: editors write files in several steps.
const SETTLE: Duration = Duration::from_millis(50);
/// A manifest is never larger.
const MAX_BYTES: u64 = 10 << 20;

/// Runs the pods of a directory, or of a single file, until told to stop.
pub(in crate::agent) async fn follow_directory(
    path: PathBuf,
    node: String,
    pods: Pods,
    stop: CancellationToken,
) {
    let mut running: BTreeMap<String, Pod> = BTreeMap::new();
    loop {
        // Watched before it is read, so that nothing falls between; and anew each time, because the
        // directory itself may come and go.
        let mut changes = Watch::new(&path);
        if let Some(found) = read(&path, &node) {
            let gone: Vec<String> = running
                .keys()
                .filter(|uid| !found.contains_key(*uid))
                .cloned()
                .collect();
            for uid in gone {
                running.remove(&uid);
                pods.remove(&uid);
            }
            for (uid, pod) in found {
                if running.insert(uid, pod.clone()).as_ref() != Some(&pod) {
                    pods.apply(pod);
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = changes.changed(SCAN_EVERY) => tokio::time::sleep(SETTLE).await,
        }
    }
}

/// The pods of all files by uid; `None` if the directory cannot be read, which says nothing about
/// what should run. Of two files with one pod the first by name counts.
fn read(path: &Path, node: &str) -> Option<BTreeMap<String, Pod>> {
    let files = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let entries = std::fs::read_dir(path).ok()?;
            let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            files.sort();
            files
        }
        Ok(_) => vec![path.to_owned()],
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(_) => return None,
    };
    let mut pods = BTreeMap::new();
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_fit = std::fs::metadata(&file).is_ok_and(|m| m.is_file() && m.len() <= MAX_BYTES);
        if name.starts_with('.') || !is_fit {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&file) else {
            tracing::warn!(file = %file.display(), "manifest cannot be read");
            continue;
        };
        match parse(&text, &file.to_string_lossy(), node) {
            Ok(pod) => {
                pods.entry(anatomy::uid(&pod).to_owned()).or_insert(pod);
            }
            Err(error) => tracing::warn!(file = %file.display(), %error, "manifest not used"),
        }
    }
    Some(pods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_pods_do_not_keep_others_from_running() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers: []\n";
        write("a.yaml", "nonsense: [").unwrap();
        write("b.yaml", pod).unwrap();
        write(".hidden.yaml", &pod.replace("web", "hidden")).unwrap();
        let pods = read(directory.path(), "n1").unwrap();
        let names: Vec<_> = pods
            .values()
            .map(|pod| anatomy::name(pod).to_owned())
            .collect();
        assert_eq!(names, ["web-n1"]);
        assert_eq!(read(&directory.path().join("none"), "n1").unwrap().len(), 0);
    }
}
