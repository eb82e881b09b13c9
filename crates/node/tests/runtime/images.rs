//! Images are listed, pulled and removed.

use plimsoll_runtime::Error;
use plimsoll_runtime::wire::{AuthConfig, ContainerFilter, Image, ImageSpec};
use plimsoll_testkit::images::{Image as Recipe, Layer, Tree};
use plimsoll_testkit::registry::{PASSWORD, Registry, USER};

use crate::backend::{BUSYBOX, OPINIONATED};
use crate::scene::{Scene, image, lasting};

pub(crate) async fn an_image_is_known_by_name_and_id(scene: &Scene) {
    let found = status(scene, BUSYBOX).await.unwrap();
    assert!(found.id.starts_with("sha256:"), "{found:?}");
    assert_eq!(found.repo_tags, [BUSYBOX]);
    assert!(found.size > 100_000, "{found:?}");
    assert_eq!(status(scene, &found.id).await.unwrap().id, found.id);
    let list = scene.runtime().list_images().await.unwrap();
    assert!(list.iter().any(|image| image.id == found.id));

    let found = status(scene, OPINIONATED).await.unwrap();
    assert_eq!(found.username, "nobody");
    for short in ["opinionated:1", "library/opinionated:1"] {
        assert_eq!(status(scene, short).await.unwrap().id, found.id);
    }
}

pub(crate) async fn an_unknown_image_is_no_error(scene: &Scene) {
    assert_eq!(status(scene, "plimsoll.test/unheard-of:1").await, None);
    let no_id = format!("sha256:{}", "0".repeat(64));
    assert_eq!(status(scene, &no_id).await, None);
}

pub(crate) async fn an_image_is_pulled_from_a_registry(scene: &Scene) {
    let registry = Registry::start();
    let recipe = small("pulled");
    let name = registry.push("some/where", "v1", &recipe);
    let pulled = pull(scene, &name).await;
    let reference = pulled.unwrap_or_else(|error| panic!("{}", error.chain()));
    let found = status(scene, &name).await.unwrap();
    assert_eq!(found.id, recipe.id());
    assert_eq!(status(scene, &reference).await.unwrap().id, found.id);
    assert_eq!(found.repo_tags, [name.as_str()]);
    let repository = name.trim_end_matches(":v1");
    let prefix = format!("{repository}@sha256:");
    assert!(found.repo_digests[0].starts_with(&prefix), "{found:?}");
    let by_digest = status(scene, &found.repo_digests[0]).await.unwrap();
    assert_eq!(by_digest.id, found.id);

    pull(scene, &found.repo_digests[0]).await.unwrap();
}

pub(crate) async fn pull_needs_the_right_password(scene: &Scene) {
    let registry = Registry::start_with_login();
    let name = registry.push("private", "v1", &small("private"));
    let runtime = scene.runtime();
    let login = |password: &str| AuthConfig {
        username: USER.to_owned(),
        password: password.to_owned(),
        ..AuthConfig::default()
    };
    let spec = image(&name);
    let pod = scene.pod();
    assert!(runtime.pull_image(&spec, None, &pod).await.is_err());
    let wrong = login("wrong");
    assert!(runtime.pull_image(&spec, Some(&wrong), &pod).await.is_err());
    assert_eq!(status(scene, &name).await, None);
    let right = login(PASSWORD);
    let pulled = runtime.pull_image(&spec, Some(&right), &pod).await;
    pulled.unwrap_or_else(|error| panic!("{}", error.chain()));
}

pub(crate) async fn pull_of_a_missing_image_names_it(scene: &Scene) {
    let registry = Registry::start();
    let name = format!("{}/no/such:image", registry.address());
    let chain = pull(scene, &name).await.unwrap_err().chain();
    let is_named = chain.contains(&name) && chain.contains("not found");
    assert!(is_named, "{chain}");
    let chain = pull(scene, "Not a name!").await.unwrap_err().chain();
    assert!(chain.contains("Not a name!"), "{chain}");
}

pub(crate) async fn removed_image_is_not_listed(scene: &Scene) {
    let registry = Registry::start();
    let name = registry.push("short-lived", "v1", &small("short-lived"));
    let runtime = scene.runtime();
    let reference = pull(scene, &name).await.unwrap();
    runtime.remove_image(&image(&reference)).await.unwrap();
    assert_eq!(status(scene, &name).await, None);
    let list = runtime.list_images().await.unwrap();
    assert!(!list.iter().any(|image| image.repo_tags.contains(&name)));
    runtime.remove_image(&image(&name)).await.unwrap();
}

pub(crate) async fn container_status_names_its_image(scene: &Scene) {
    let id = scene.start_alone(&lasting()).await;
    let found = status(scene, BUSYBOX).await.unwrap();
    let container = scene.status(&id).await;
    assert_eq!(container.image.unwrap().image, BUSYBOX);
    let known = status(scene, &container.image_ref).await.unwrap();
    assert_eq!(known.id, found.id);
    let filter = ContainerFilter {
        id,
        ..ContainerFilter::default()
    };
    let listed = scene.runtime().list_containers(&filter).await.unwrap();
    let known = status(scene, &listed[0].image_ref).await.unwrap();
    assert_eq!(known.id, found.id);
}

pub(crate) async fn a_container_is_made_of_an_id(scene: &Scene) {
    // As agents do, so that the pulled image is the one that runs.
    let found = status(scene, BUSYBOX).await.unwrap();
    let mut config = lasting();
    config.image = Some(ImageSpec {
        image: found.id.clone(),
        user_specified_image: BUSYBOX.to_owned(),
        ..ImageSpec::default()
    });
    let id = scene.start_alone(&config).await;
    let container = scene.status(&id).await;
    assert_eq!(container.image.unwrap().image, BUSYBOX);
    assert_eq!(
        status(scene, &container.image_ref).await.unwrap().id,
        found.id
    );
}

pub(crate) async fn pull(scene: &Scene, name: &str) -> Result<String, Error> {
    let (spec, pod) = (image(name), scene.pod());
    scene.runtime().pull_image(&spec, None, &pod).await
}

pub(crate) async fn status(scene: &Scene, name: &str) -> Option<Image> {
    let status = scene.runtime().image_status(&image(name)).await;
    status.unwrap_or_else(|error| panic!("{}", error.chain()))
}

/// An image that no other case has.
pub(crate) fn small(content: &str) -> Recipe {
    let tree = Tree::new().file("content", 0o644, content.as_bytes());
    Recipe::new(vec![Layer::gzip(tree.into_tar())])
}
