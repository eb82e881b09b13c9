//! Static pods.

use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime};
use crate::manifest::{WAIT, container, pod, status};

fn with_manifests(runtime: Runtime) -> Cluster {
    Cluster::start_with(runtime, |folder| {
        let path = folder.join("manifests");
        std::fs::create_dir(&path).expect("the folder is ours");
        vec!["--pod-manifest-path".to_owned(), path.display().to_string()]
    })
}

fn write(cluster: &Cluster, manifest: &Value) {
    // Renamed into place, so that the agent never reads half a file.
    let folder = cluster.folder().join("manifests");
    let half = folder.join(".half");
    std::fs::write(&half, manifest.to_string()).expect("the folder is ours");
    std::fs::rename(half, folder.join("web.json")).expect("the folder is ours");
}

fn uid(pod: &Value) -> &Value {
    &pod["metadata"]["uid"]
}

#[test]
#[ignore = "tier: root"]
fn a_file_is_a_pod_embedded() {
    a_file_is_a_pod(&with_manifests(Runtime::Embedded));
}

#[test]
#[ignore = "tier: root"]
fn a_file_is_a_pod_containerd() {
    a_file_is_a_pod(&with_manifests(Runtime::Containerd));
}

fn a_file_is_a_pod(cluster: &Cluster) {
    let name = format!("web-{NODE}");
    let object = format!("pod {name}");
    let mut web = pod("web", &[container("main", WAIT)]);
    write(cluster, &web);
    let mirror = cluster.until_running(&json!(name));
    assert_eq!(
        mirror["metadata"]["annotations"]["kubernetes.io/config.source"],
        "file"
    );
    let owner = &mirror["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "Node", "{mirror:#}");
    assert_eq!(owner["name"], NODE, "{mirror:#}");
    assert_eq!(cluster.kubectl(&format!("exec {name} -- echo hi")), "hi\n");

    // The mirror is only an image of it.
    cluster.kubectl(&format!("delete {object} --wait=false"));
    let again = cluster.until_object(&object, "there again", |pod| {
        uid(pod).is_string() && uid(pod) != uid(&mirror) && pod["status"]["phase"] == "Running"
    });
    let id = |pod: &Value| status(pod, "main")["containerID"].clone();
    assert_eq!(id(&again), id(&mirror));
    assert_eq!(status(&again, "main")["restartCount"], 0);

    // Another file is another pod.
    web["spec"]["containers"][0]["env"] = json!([{ "name": "NEW", "value": "yes" }]);
    write(cluster, &web);
    cluster.until_object(&object, "another", |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        pod["spec"]["containers"][0]["env"][0]["name"] == "NEW"
            && status["ready"] == true
            && status["containerID"] != id(&mirror)
    });
    assert_eq!(
        cluster.kubectl(&format!("exec {name} -- sh -c 'echo $NEW'")),
        "yes\n"
    );

    let file: &Path = &cluster.folder().join("manifests/web.json");
    std::fs::remove_file(file).expect("it was written");
    cluster.is_gone(&object);
}

#[test]
#[ignore = "tier: root"]
fn a_static_pod_is_adopted() {
    let mut cluster = with_manifests(Runtime::Embedded);
    let name = json!(format!("web-{NODE}"));
    write(&cluster, &pod("web", &[container("main", WAIT)]));
    let before = cluster.until_running(&name);
    cluster.kill();
    cluster.start_again();
    let after = cluster.until_running(&name);
    assert_eq!(status(&after, "main"), status(&before, "main"));
}
