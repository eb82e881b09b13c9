use plimsoll_testkit::images::{Image, Layer, Tree};

use super::super::import::{Options, Source};
use super::*;

/// Each with a layer of its own on one that all share.
fn image(own: &str) -> Image {
    let shared = Tree::new().file("shared", 0o644, b"shared");
    let own = Tree::new().file("own", 0o644, own.as_bytes());
    Image::new(vec![
        Layer::plain(shared.into_tar()),
        Layer::plain(own.into_tar()),
    ])
}

/// As the agent and the command line may, each with a handle of its own.
#[test]
fn several_may_use_one_directory() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("images");
    let use_it = &|own: String| {
        let archive = folder.path().join(format!("{own}.tar"));
        std::fs::write(&archive, image(&own).docker_archive(&[&own])).unwrap();
        let source = Source::Path(archive);
        for round in 0..4 {
            let store = Store::open(&directory).unwrap();
            store.roots.only_copies();
            let imported = store.import(&source, &Options::default()).unwrap();
            let id = imported[0].id;
            let root = format!("{own}-{round}");
            let merged = store.prepare_root(&id, &root, None).unwrap();
            store.remove(&id).unwrap();
            store.collect_garbage().unwrap();
            let read = |name: &str| std::fs::read_to_string(merged.join(name)).unwrap();
            assert_eq!(
                (read("shared"), read("own")),
                ("shared".into(), own.clone())
            );
            store.remove_root(&root).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for own in ["one", "two", "three"] {
            scope.spawn(move || use_it(own.to_owned()));
        }
    });
    let store = Store::open(&directory).unwrap();
    assert_eq!(store.catalogue().unwrap().images(), []);
    for part in ["blobs", "layers", "roots", "work"] {
        let left = file::names(&directory.join(part)).unwrap();
        assert_eq!(left, [""; 0], "{part}");
    }
}

#[test]
fn broken_catalogue_is_named_and_nothing_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let archive = folder.path().join("archive.tar");
    std::fs::write(&archive, image("one").docker_archive(&["one"])).unwrap();
    let source = Source::Path(archive);
    let imported = store.import(&source, &Options::default()).unwrap();
    let catalogue = folder.path().join("catalogue.json");
    std::fs::write(&catalogue, "{").unwrap();
    let refused = Store::open(folder.path()).unwrap_err().to_string();
    let path = catalogue.canonicalize().unwrap();
    assert_eq!(refused, format!("cannot decode {}", path.display()));
    assert!(
        imported[0]
            .layers
            .iter()
            .all(|layer| store.layers.has(layer))
    );
}
