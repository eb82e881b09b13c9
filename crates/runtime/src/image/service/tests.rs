use std::path::Path;

use plimsoll_testkit::images::{Image as TestImage, Layer, Tree};
use serde_json::json;
use tempfile::TempDir;

use super::super::import::{Options, Source};
use super::*;

struct Bench {
    folder: TempDir,
    service: ImageService,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("images")).unwrap();
        let service = ImageService::new(store, Registries::default());
        Bench { folder, service }
    }

    fn import(&self, image: &TestImage, name: &str) {
        let path = self.folder.path().join("archive.tar");
        std::fs::write(&path, image.docker_archive(&[name])).unwrap();
        let source = Source::Path(path);
        let store = &self.service.store;
        store.import(&source, &Options::default()).unwrap();
    }
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}

fn image() -> TestImage {
    let tree = Tree::new().file("etc/motd", 0o644, &[1; 10_000]);
    let mut image = TestImage::new(vec![Layer::gzip(tree.into_tar())]);
    image.config = json!({
        "User": "1000:100",
        "Env": ["A=b"],
        "Entrypoint": ["/app"],
        "Cmd": ["run"],
        "WorkingDir": "/data",
        "StopSignal": "SIGINT",
        "Volumes": {"/data": {}},
    });
    image
}

#[tokio::test]
async fn image_config_has_the_start_command() {
    let bench = Bench::new();
    let image = image();
    bench.import(&image, "app:1");
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let expected = ImageConfig {
        id: image.id(),
        reference: image.id(),
        entrypoint: words(&["/app"]),
        cmd: words(&["run"]),
        env: words(&["A=b"]),
        user: "1000:100".to_owned(),
        working_dir: "/data".to_owned(),
        stop_signal: "SIGINT".to_owned(),
        volumes: words(&["/data"]),
    };
    for name in ["app:1", "docker.io/library/app:1", &image.id()] {
        assert_eq!(bench.service.resolve(&spec(name)).await.unwrap(), expected);
    }
    let missing = bench.service.resolve(&spec("app:2")).await.unwrap_err();
    assert_eq!(missing.to_string(), r#"image "app:2" not found"#);
    assert!(missing.is_not_found());
}

#[tokio::test]
async fn images_are_listed_as_cri_lists_them() {
    let bench = Bench::new();
    assert_eq!(bench.service.list().await.unwrap(), []);
    bench.import(&image(), "app:1");
    let listed = bench.service.list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, image().id());
    assert_eq!(listed[0].repo_tags, ["docker.io/library/app:1"]);
    assert_eq!(listed[0].uid, Some(Int64Value { value: 1000 }));
    assert!(listed[0].size >= 10_000);
    let status = bench.service.status(&spec("app:1")).await.unwrap();
    assert_eq!(status.as_ref(), listed.first());
    assert_eq!(bench.service.status(&spec("app")).await.unwrap(), None);
}

#[tokio::test]
async fn a_removed_image_leaves_nothing() {
    let bench = Bench::new();
    bench.import(&image(), "app:1");
    let used = |info: ImageFsInfoResponse| {
        let image = &info.image_filesystems[0];
        assert!(image.timestamp > 0);
        let mountpoint = &image.fs_id.as_ref().unwrap().mountpoint;
        assert!(Path::new(mountpoint).ends_with("images"));
        image.used_bytes.unwrap().value
    };
    let full = used(bench.service.fs_info().await.unwrap());
    bench.service.remove(&spec(&image().id())).await.unwrap();
    bench.service.remove(&spec(&image().id())).await.unwrap();
    assert_eq!(bench.service.list().await.unwrap(), []);
    let empty = used(bench.service.fs_info().await.unwrap());
    assert!(full - empty >= 10_000, "{full} {empty}");
}

#[tokio::test]
async fn roots_are_made_of_images_that_are_here() {
    let bench = Bench::new();
    for id in ["app:1", &image().id()] {
        let refused = bench
            .service
            .prepare_root(id, "one", None)
            .await
            .unwrap_err();
        assert!(refused.is_not_found(), "{refused}");
    }
    let refused = bench
        .service
        .prepare_root(&image().id(), "../one", None)
        .await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert_eq!(bench.service.list_roots().await.unwrap(), [""; 0]);
    bench.service.remove_root("one").await.unwrap();
    let missing = bench.service.root_usage("one").await.unwrap_err();
    assert!(missing.is_not_found());
}

#[tokio::test]
async fn invalid_image_name_cannot_be_pulled() {
    let bench = Bench::new();
    let sandbox = PodSandboxConfig::default();
    let refused = bench.service.pull(&spec("App"), None, &sandbox).await;
    let text = refused.unwrap_err().chain();
    assert_eq!(
        text,
        r#"couldn't parse image name "App": invalid reference format: repository name (library/App) must be lowercase"#
    );
}

/// The first word is how the agent knows that the registry is at fault.
#[tokio::test]
#[ignore = "tier: tools"]
async fn unreachable_registry_has_its_own_error() {
    let bench = Bench::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let sandbox = PodSandboxConfig::default();
    let name = format!("{address}/app:1");
    let refused = bench.service.pull(&spec(&name), None, &sandbox).await;
    let text = refused.unwrap_err().chain();
    let expected = format!("RegistryUnavailable: image {name}: registry {address} cannot be");
    assert!(text.starts_with(&expected), "{text}");
}
