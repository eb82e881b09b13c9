//! Images are pulled from a real registry.

use plimsoll_testkit::images::Image;
use plimsoll_testkit::registry::{PASSWORD, Registry, USER};
use serde_json::{Value, json};

use crate::cluster::{Cluster, IMAGE, on_both_runtimes};
use crate::manifest::{WAIT, container, pod, status};

on_both_runtimes!(
    an_image_is_pulled,
    a_secret_opens_a_registry,
    missing_image_is_reported,
);

fn with_image(name: &str, image: &str) -> Value {
    let mut main = container("main", WAIT);
    main["image"] = json!(image);
    pod(name, &[main])
}

fn an_image_is_pulled(cluster: &mut Cluster) {
    let registry = Registry::start();
    let name = registry.push("tests/busybox", "1", &Image::busybox());
    let pulled = cluster.run(&with_image("p", &name));
    assert_eq!(status(&pulled, "main")["image"], json!(name));
    let id = status(&pulled, "main")["imageID"].as_str().unwrap();
    assert!(id.contains("@sha256:"), "{id}");
    let events = cluster.kubectl("events --for pod/p");
    for part in [
        format!("Pulling image \"{name}\""),
        format!("Successfully pulled image \"{name}\" in "),
    ] {
        assert!(events.contains(&part), "{part} is missing in {events}");
    }
    // Once the image is on the node, no registry is needed.
    drop(registry);
    cluster.run(&with_image("again", &name));
    cluster.mentions(
        "events --for pod/again",
        &format!("Container image \"{name}\" already present on machine"),
    );
}

fn a_secret_opens_a_registry(cluster: &mut Cluster) {
    let registry = Registry::start_with_login();
    let name = registry.push("tests/secret", "1", &Image::busybox());
    cluster.create(&with_image("without", &name));
    cluster.until_object("pod without", "refused", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        let reason = waiting["reason"].as_str();
        matches!(reason, Some("ErrImagePull" | "ImagePullBackOff"))
    });
    let server = registry.address();
    cluster.kubectl(&format!(
        "create secret docker-registry login --docker-server={server} --docker-username={USER} \
         --docker-password={PASSWORD}"
    ));
    let mut with = with_image("with", &name);
    with["spec"]["imagePullSecrets"] = json!([{ "name": "login" }]);
    cluster.run(&with);
}

fn missing_image_is_reported(cluster: &mut Cluster) {
    let registry = Registry::start();
    registry.push("tests/busybox", "1", &Image::busybox());
    let name = format!("{}/tests/busybox:2", registry.address());
    cluster.create(&with_image("p", &name));
    let pod = cluster.until_object("pod p", "held back", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "ImagePullBackOff"
    });
    let printed = status(&pod, "main")["state"]["waiting"]["message"].as_str();
    let printed = printed.expect("a message");
    assert!(
        printed.starts_with(&format!("Back-off pulling image \"{name}\"")),
        "{printed}"
    );
    assert_eq!(pod["status"]["phase"], "Pending");
    let events = cluster.kubectl("events --for pod/p");
    for part in [
        format!("Failed to pull image \"{name}\": "),
        "Error: ErrImagePull".to_owned(),
        format!("Back-off pulling image \"{name}\""),
        "Error: ImagePullBackOff".to_owned(),
    ] {
        assert!(events.contains(&part), "{part} is missing in {events}");
    }

    let mut never = with_image("never", &name);
    never["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
    cluster.create(&never);
    let wanted = format!("Container image \"{name}\" is not present with pull policy of Never");
    cluster.until_object("pod never", "has a reason", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "ErrImageNeverPull" && waiting["message"] == wanted
    });
    cluster.create(&with_image("invalid", "Not An Image"));
    cluster.until_object("pod invalid", "has a reason", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "InvalidImageName"
    });
    let image = cluster.get("node n1")["status"]["images"].to_string();
    assert!(image.contains(IMAGE), "{image}");
}
