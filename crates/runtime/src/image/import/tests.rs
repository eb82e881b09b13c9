use std::fs;
use std::os::unix::fs::PermissionsExt;

use plimsoll_core::error_chain::error_chain;
use plimsoll_testkit::images::{Image, Layer, Tree, gzip};
use tempfile::TempDir;

use super::*;
use crate::image::MaxImageSize;

/// A store in a folder, and files beside it.
struct Bench {
    folder: TempDir,
    store: Store,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("images")).unwrap();
        Bench { folder, store }
    }

    fn import_with(&self, bytes: &[u8], options: &Options) -> Result<Vec<Record>, Error> {
        let path = self.folder.path().join("archive.tar");
        fs::write(&path, bytes).unwrap();
        self.store.import(&Source::Path(path), options)
    }

    fn import(&self, bytes: &[u8]) -> Result<Vec<Record>, Error> {
        self.import_with(bytes, &Options::default())
    }

    /// What lies in the store beside the lock and the catalogue.
    fn leftovers(&self) -> Vec<String> {
        let parts = ["blobs", "layers", "work"].into_iter();
        let names = |part: &str| file::names(&self.store.directory().join(part)).unwrap();
        parts.flat_map(names).collect()
    }
}

fn two_layers() -> Image {
    let bottom = Tree::new()
        .directory("etc", 0o750)
        .file("etc/motd", 0o640, b"hello")
        .file("gone", 0o644, b"");
    let top = Tree::new()
        .file("etc/hosts", 0o644, b"")
        .file(".wh.gone", 0o644, b"");
    Image::new(vec![
        Layer::gzip(bottom.into_tar()),
        Layer::zstd(top.into_tar()),
    ])
}

#[test]
fn both_kinds_of_archive_give_the_same_image() {
    let image = two_layers();
    let names = ["app:1", "quay.io/x/app:2"];
    for archive in [
        image.docker_archive(&names),
        image.oci_archive(&names),
        gzip(&image.docker_archive(&names)),
        gzip(&image.oci_archive(&names)),
    ] {
        let bench = Bench::new();
        let records = bench.import(&archive).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].id.to_string(), image.id());
        let tags: Vec<&str> = records[0].tags.iter().map(String::as_str).collect();
        assert_eq!(tags, ["docker.io/library/app:1", "quay.io/x/app:2"]);
        let motd = bench
            .store
            .layers
            .files(&records[0].layers[0])
            .join("etc/motd");
        assert_eq!(fs::read_to_string(&motd).unwrap(), "hello");
        assert_eq!(bench.store.catalogue().unwrap().images(), records);
    }
}

#[test]
fn an_image_that_unpacks_to_more_than_allowed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let layer = |name: &str| {
        let content = vec![0; 600 << 10];
        Layer::gzip(Tree::new().file(name, 0o644, &content).into_tar())
    };
    // Each layer would fit.
    let archive = Image::new(vec![layer("a"), layer("b")]).docker_archive(&["bomb"]);
    let path = folder.path().join("archive.tar");
    fs::write(&path, archive).unwrap();
    let import = |max: u64| {
        let directory = folder.path().join("images");
        let store = Store::open_with(&directory, MaxImageSize::Bytes(max)).unwrap();
        let imported = store.import(&Source::Path(path.clone()), &Options::default());
        imported.map(|_| ()).map_err(|error| {
            let left = file::names(&directory.join("work")).unwrap();
            assert_eq!(left, Vec::<String>::new());
            error_chain(&error)
        })
    };
    assert_eq!(
        import(1 << 20).unwrap_err(),
        "cannot import image bomb: its layers take more than 1048576 \
         bytes, which is the maximum size of an image (--max-image-size)"
    );
    import(2 << 20).unwrap();
}

/// A directory that a layer does not describe looks as it does in the layer below.
#[test]
fn directories_keep_their_attributes_between_layers() {
    let bench = Bench::new();
    let archive = two_layers().docker_archive(&["app"]);
    let record = bench.import(&archive).unwrap().remove(0);
    let etc = bench.store.layers.files(&record.layers[1]).join("etc");
    assert_eq!(etc.metadata().unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn an_archive_may_hold_several_images() {
    let bench = Bench::new();
    let (a, b) = (two_layers(), Image::new(vec![]));
    let list = |image: &Image, name: &str| {
        let parts = Parts::find(tar_file(&image.docker_archive(&[name]))).unwrap();
        let bytes = parts.read("manifest.json").unwrap();
        let list: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap();
        list[0].clone()
    };
    let manifest = serde_json::json!([list(&a, "a"), list(&b, "b")]).to_string();
    let mut tree = Tree::new().file("manifest.json", 0o644, manifest.as_bytes());
    for image in [&a, &b] {
        let hex = image.id().replace("sha256:", "");
        tree = tree.file(&format!("{hex}.json"), 0o644, &image.configuration());
    }
    for layer in &a.layers {
        let hex = plimsoll_testkit::images::digest(&layer.tar).replace("sha256:", "");
        // As docker links layers that images share.
        tree = tree
            .file(&format!("{hex}/real.tar"), 0o644, &layer.tar)
            .symlink(&format!("{hex}/layer.tar"), &format!("../{hex}/real.tar"));
    }
    let archive = tree.into_tar();
    let records = bench.import(&archive).unwrap();
    let ids: Vec<String> = records.iter().map(|record| record.id.to_string()).collect();
    assert_eq!(ids, [a.id(), b.id()]);
    let one_name = Options {
        name: Some("c".parse().unwrap()),
        ..Options::default()
    };
    let refused = bench.import_with(&archive, &one_name).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the archive has 2 images, cannot name all of them docker.io/library/c:latest"
    );
}

fn tar_file(bytes: &[u8]) -> File {
    use std::io::Write;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn a_root_file_system_becomes_an_image() {
    let bench = Bench::new();
    let tar = Tree::new().file("bin/sh", 0o755, b"#!").into_tar();
    let refused = bench.import(&tar).unwrap_err();
    assert!(matches!(refused, Error::NoName { .. }), "{refused}");
    let options = Options {
        name: Some("busybox:local".parse().unwrap()),
        start: Start {
            entrypoint: Some(vec!["sh".to_owned()]),
            ..Start::default()
        },
        pinned: true,
    };
    let record = bench.import_with(&tar, &options).unwrap().remove(0);
    assert!(record.pinned);
    let found = bench.store.catalogue().unwrap();
    assert_eq!(found.find("busybox:local"), Some(&record));
    let start = bench
        .store
        .configuration(&record.id)
        .unwrap()
        .config
        .unwrap();
    assert_eq!(start.entrypoint, Some(vec!["sh".to_owned()]));
    assert!(start.env.unwrap()[0].starts_with("PATH="));

    let directory = bench.folder.path().join("rootfs");
    fs::create_dir_all(directory.join("bin")).unwrap();
    fs::write(directory.join("bin/sh"), "#!").unwrap();
    let source = Source::Path(directory);
    let record = bench.store.import(&source, &options).unwrap().remove(0);
    let files = bench.store.layers.files(&record.layers[0]);
    assert_eq!(fs::read_to_string(files.join("bin/sh")).unwrap(), "#!");
}

#[test]
fn imported_image_keeps_its_start_command() {
    let bench = Bench::new();
    let options = Options {
        start: Start {
            cmd: Some(vec!["sh".to_owned()]),
            ..Start::default()
        },
        ..Options::default()
    };
    let archive = two_layers().docker_archive(&["app"]);
    let refused = bench.import_with(&archive, &options).unwrap_err();
    assert!(matches!(refused, Error::StartGiven { .. }), "{refused}");
}

#[test]
fn broken_archives_leave_nothing_behind() {
    let image = two_layers();
    let whole = image.docker_archive(&["app"]);
    let without_layer = {
        let mut other = image.clone();
        other.layers.pop();
        let hex = image.id().replace("sha256:", "");
        let archive = other.docker_archive(&["app"]);
        let parts = Parts::find(tar_file(&archive)).unwrap();
        let manifest = parts.read("manifest.json").unwrap();
        let manifest = String::from_utf8(manifest).unwrap();
        let other_hex = other.id().replace("sha256:", "");
        Tree::new()
            .file(
                "manifest.json",
                0o644,
                manifest.replace(&other_hex, &hex).as_bytes(),
            )
            .file(&format!("{hex}.json"), 0o644, &image.configuration())
            .into_tar()
    };
    let mut changed_layer = image.clone();
    changed_layer.layers[0].tar = Tree::new().file("evil", 0o644, b"").into_tar();
    let changed_layer = {
        let genuine = changed_layer.docker_archive(&["app"]);
        let configuration = image.configuration();
        let parts = Parts::find(tar_file(&genuine)).unwrap();
        let manifest = String::from_utf8(parts.read("manifest.json").unwrap()).unwrap();
        let hex = changed_layer.id().replace("sha256:", "");
        let mut tree = Tree::new()
            .file("manifest.json", 0o644, manifest.as_bytes())
            .file(&format!("{hex}.json"), 0o644, &configuration);
        for layer in &changed_layer.layers {
            let hex = plimsoll_testkit::images::digest(&layer.tar).replace("sha256:", "");
            tree = tree.file(&format!("{hex}/layer.tar"), 0o644, &layer.tar);
        }
        tree.into_tar()
    };
    for (what, archive) in [
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("no tar", b"something else".to_vec()),
        ("empty", Vec::new()),
        ("a layer less", without_layer),
        ("another layer", changed_layer),
    ] {
        let bench = Bench::new();
        assert!(bench.import(&archive).is_err(), "{what}");
        assert_eq!(bench.leftovers(), [""; 0], "{what}");
        assert_eq!(bench.store.catalogue().unwrap().images(), [], "{what}");
    }
}

#[test]
fn removal_keeps_shared_layers() {
    let bench = Bench::new();
    let image = two_layers();
    let mut bottom_only = image.clone();
    bottom_only.layers.pop();
    let top = bench
        .import(&image.docker_archive(&["top"]))
        .unwrap()
        .remove(0);
    let bottom = bench
        .import(&bottom_only.docker_archive(&["bottom"]))
        .unwrap()
        .remove(0);
    assert_eq!(top.layers[0], bottom.layers[0]);
    assert!(bench.store.remove(&top.id).unwrap());
    assert!(!bench.store.remove(&top.id).unwrap());
    assert!(bench.store.layers.has(&bottom.layers[0]));
    assert!(!bench.store.layers.has(&top.layers[1]));
    assert!(bench.store.remove(&bottom.id).unwrap());
    assert_eq!(bench.leftovers(), [""; 0]);
}
