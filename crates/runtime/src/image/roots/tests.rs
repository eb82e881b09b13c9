use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};

use std::time::{Duration, Instant};

use plimsoll_testkit::images::{Image, Layer, Tree};
use tempfile::TempDir;

use super::super::catalogue::Record;
use super::super::import::{Options, Source};
use super::*;

/// A store with one image, beside its archive.
struct Bench {
    folder: TempDir,
    store: Store,
    image: Record,
}

impl Bench {
    fn new(image: &Image) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("images")).unwrap();
        let archive = folder.path().join("archive.tar");
        fs::write(&archive, image.docker_archive(&["app"])).unwrap();
        let source = Source::Path(archive);
        let image = store
            .import(&source, &Options::default())
            .unwrap()
            .remove(0);
        Bench {
            folder,
            store,
            image,
        }
    }

    fn with_copies(image: &Image) -> Bench {
        let bench = Bench::new(image);
        bench.store.roots.only_copies();
        bench
    }

    fn overlay(image: &Image) -> Bench {
        let bench = Bench::new(image);
        let overlay = bench.store.roots.overlay(&bench.store);
        assert!(overlay.is_some(), "no overlayfs");
        bench
    }

    fn prepare(&self, name: &str) -> PathBuf {
        self.store.prepare_root(&self.image.id, name, None).unwrap()
    }

    /// As after a restart of the agent.
    fn reopen(&mut self) {
        self.store = Store::open(self.store.directory()).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in self.store.roots.names().unwrap() {
            self.store.remove_root(&name).unwrap();
        }
        assert!(self.folder.path().exists());
    }
}

/// Layers that add, change, hide and hide again.
fn image() -> Image {
    let bottom = Tree::new()
        .directory("etc", 0o755)
        .file("etc/motd", 0o640, b"bottom")
        .file("etc/gone", 0o644, b"")
        .directory("var", 0o755)
        .file("var/old", 0o644, b"")
        .file("file-then-directory", 0o644, b"")
        .directory("hidden", 0o755)
        .file("hidden/old", 0o644, b"");
    let top = Tree::new()
        .directory("./", 0o711)
        .file("etc/motd", 0o600, b"top")
        .hard_link("etc/second-name", "etc/motd")
        .file("etc/.wh.gone", 0, b"")
        .file("var/.wh..wh..opq", 0, b"")
        .file("var/new", 0o644, b"")
        .directory("file-then-directory", 0o700)
        .file(".wh.hidden", 0, b"")
        .symlink("link", "/etc/motd");
    Image::new(vec![
        Layer::gzip(bottom.into_tar()),
        Layer::plain(top.into_tar()),
    ])
}

fn listing(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            found.push(path.strip_prefix(root).unwrap().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                ahead.push(path);
            }
        }
    }
    found.sort();
    found
}

fn check_root(root: &Path) {
    assert_eq!(
        listing(root),
        [
            "etc",
            "etc/motd",
            "etc/second-name",
            "file-then-directory",
            "link",
            "var",
            "var/new"
        ]
    );
    assert_eq!(fs::read_to_string(root.join("etc/motd")).unwrap(), "top");
    let motd = root.join("etc/motd").metadata().unwrap();
    assert_eq!((motd.mode() & 0o777, motd.nlink()), (0o600, 2));
    assert_eq!(root.metadata().unwrap().mode() & 0o777, 0o711);
    assert_eq!(
        fs::read_link(root.join("link")).unwrap(),
        Path::new("/etc/motd")
    );
}

/// A measurement may be some moments old.
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not in time");
        std::thread::yield_now();
    }
}

/// Everything a root must do, however it is made.
fn check_life(mut bench: Bench) {
    let root = bench.prepare("one");
    check_root(&root);
    let other = bench.prepare("two");
    let before = bench.store.roots.usage("one").unwrap().unwrap().usage;
    fs::write(root.join("var/written"), vec![1; 1 << 20]).unwrap();
    wait_until(|| {
        let after = bench.store.roots.usage("one").unwrap().unwrap().usage;
        after.bytes >= before.bytes + (1 << 20) && after.inodes > before.inodes
    });
    check_root(&other);

    bench.reopen();
    assert_eq!(bench.store.roots.names().unwrap(), ["one", "two"]);
    assert_eq!(bench.prepare("one"), root);
    assert!(root.join("var/written").exists());

    // Layers stay while a root lies on them.
    let id = bench.image.id;
    assert_eq!(bench.store.roots.of_image(&id).unwrap(), ["one", "two"]);
    assert!(bench.store.remove(&id).unwrap());
    assert!(root.join("etc/motd").exists());
    assert!(bench.store.prepare_root(&id, "three", None).is_err());
    bench.store.remove_root("one").unwrap();
    bench.store.remove_root("one").unwrap();
    check_root(&other);
    bench.store.remove_root("two").unwrap();
    bench.store.collect_garbage().unwrap();
    assert_eq!(bench.store.layers.all().unwrap(), []);
    assert_eq!(bench.store.roots.names().unwrap(), [""; 0]);
}

#[test]
fn copied_roots_behave_like_mounted_ones() {
    check_life(Bench::with_copies(&image()));
}

#[test]
#[ignore = "tier: root"]
fn overlay_mounts_live() {
    check_life(Bench::overlay(&image()));
}

#[test]
#[ignore = "tier: root"]
fn missing_mount_is_created_again() {
    let bench = Bench::overlay(&image());
    let root = bench.prepare("one");
    fs::write(root.join("written"), "").unwrap();
    overlay::unmount(&root).unwrap();
    assert_eq!(listing(&root), [""; 0]);
    bench.prepare("one");
    assert!(root.join("written").exists());
    // And only once.
    bench.prepare("one");
    overlay::unmount(&root).unwrap();
    assert_eq!(listing(&root), [""; 0]);
}

#[test]
#[ignore = "tier: root"]
fn layers_store_whiteouts_in_overlayfs_format() {
    let bench = Bench::overlay(&image());
    let top = bench.store.layers.files(&bench.image.layers[1]);
    let gone = top.join("etc/gone").metadata().unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
}

/// With the program that other tests run.
#[test]
#[ignore = "tier: root"]
fn programs_of_an_image_run_in_its_root() {
    let bench = Bench::overlay(&Image::busybox());
    let root = bench.prepare("one");
    let output = std::process::Command::new("chroot")
        .arg(&root)
        .args(["/bin/sh", "-c", "echo hello > /tmp/file && cat /tmp/file"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello\n");
}

/// Their paths do not fit into the options of a mount.
#[test]
#[ignore = "tier: root"]
fn an_image_may_have_many_layers() {
    let layer = |n: usize| Tree::new().file(&format!("file-{n}"), 0o644, b"");
    let layers = (0..120).map(|n| Layer::plain(layer(n).into_tar()));
    let bench = Bench::overlay(&Image::new(layers.collect()));
    assert_eq!(listing(&bench.prepare("one")).len(), 120);
}

#[test]
#[ignore = "tier: root"]
fn an_image_without_layers_has_an_empty_root() {
    let bench = Bench::overlay(&Image::new(vec![]));
    let root = bench.prepare("one");
    assert_eq!(listing(&root), [""; 0]);
    fs::write(root.join("file"), "").unwrap();
}

#[test]
fn names_that_could_be_paths_are_refused() {
    let bench = Bench::with_copies(&image());
    for name in ["", ".", "..", "a/b", "A", "a b", &"a".repeat(129)] {
        assert!(
            bench
                .store
                .prepare_root(&bench.image.id, name, None)
                .is_err()
        );
        assert!(bench.store.remove_root(name).is_err());
        assert!(bench.store.roots.usage(name).is_err());
    }
}

/// A power failure may leave a file empty that was not synced.
#[test]
fn root_without_its_record_is_created_again() {
    let mut bench = Bench::with_copies(&image());
    let root = bench.prepare("one");
    fs::write(root.join("written"), "").unwrap();
    fs::write(root.with_file_name(FACTS), "").unwrap();
    bench.reopen();
    bench.store.roots.only_copies();
    assert_eq!(bench.store.roots.names().unwrap(), ["one"]);
    assert!(bench.store.roots.usage("one").is_err());
    check_root(&bench.prepare("one"));
}

#[test]
fn leftovers_of_a_crash_are_removed() {
    let mut bench = Bench::with_copies(&image());
    let work = bench.store.directory().join("work");
    let blobs = bench.store.directory().join("blobs");
    let torn = work.join("0123456789abcdef/layer-0/files");
    fs::create_dir_all(&torn).unwrap();
    symlink(bench.store.directory(), torn.join("link")).unwrap();
    fs::write(blobs.join("unfinished.new"), "").unwrap();
    bench.reopen();
    assert_eq!(file::names(&work).unwrap(), [""; 0]);
    assert_eq!(file::names(&blobs).unwrap().len(), 1);
    check_root(&bench.prepare("one"));
}

/// A user namespace with these ids, as long as the process that has it.
struct Namespace {
    process: std::process::Child,
}

impl Namespace {
    const FIRST: u32 = 1_000_000;

    fn new() -> Namespace {
        let process = std::process::Command::new("unshare")
            .args(["--user", "sleep", "1000"])
            .spawn()
            .unwrap();
        let namespace = Namespace { process };
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        let path = format!("/proc/{}", namespace.process.id());
        wait_until(|| fs::read_link(format!("{path}/ns/user")).unwrap() != own);
        for map in ["uid_map", "gid_map"] {
            fs::write(format!("{path}/{map}"), format!("0 {} 65536", Self::FIRST)).unwrap();
        }
        namespace
    }

    fn prepare(&self, bench: &Bench, name: &str) -> PathBuf {
        let path = format!("/proc/{}/ns/user", self.process.id());
        let namespace = fs::File::open(path).unwrap();
        let owner = Owner {
            first: Self::FIRST,
            user_namespace: namespace.as_fd(),
        };
        let id = &bench.image.id;
        bench.store.prepare_root(id, name, Some(owner)).unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A root with files that belong to users of a namespace.
fn check_mapped(mut bench: Bench) {
    let namespace = Namespace::new();
    let root = namespace.prepare(&bench, "one");
    check_root(&root);
    let owner = |path: &str| {
        let metadata = root.join(path).symlink_metadata().unwrap();
        (metadata.uid(), metadata.gid())
    };
    let first = (Namespace::FIRST, Namespace::FIRST);
    for path in ["", "etc", "etc/motd", "link", "file-then-directory"] {
        assert_eq!(owner(path), first, "{path:?}");
    }
    fs::write(root.join("etc/motd"), "changed").unwrap();
    assert_eq!(owner("etc/motd"), first);
    // The layers are as they were, and a root of the machine's users beside it is not changed.
    let plain = bench.prepare("two");
    check_root(&plain);
    assert_eq!(plain.metadata().unwrap().uid(), 0);
    assert_eq!(bench.store.roots.names().unwrap(), ["one", "two"]);
    bench.reopen();
    namespace.prepare(&bench, "one");
    assert_eq!(
        fs::read_to_string(root.join("etc/motd")).unwrap(),
        "changed"
    );
    overlay::unmount(&root).unwrap();
    namespace.prepare(&bench, "one");
    assert_eq!(
        fs::read_to_string(root.join("etc/motd")).unwrap(),
        "changed"
    );
    // No layer is left mounted anywhere.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("idmapped"), "{mounts}");
}

#[test]
#[ignore = "tier: root"]
fn roots_of_a_user_namespace_lie_on_mapped_layers() {
    let bench = Bench::overlay(&image());
    check_mapped(bench);
}

#[test]
#[ignore = "tier: root"]
fn roots_of_a_user_namespace_are_copied_where_layers_cannot_be_mapped() {
    let bench = Bench::overlay(&image());
    bench.store.roots.maps_layers.set(false).unwrap();
    let namespace = Namespace::new();
    let root = namespace.prepare(&bench, "one");
    check_root(&root);
    assert_eq!(
        root.join("etc/motd").metadata().unwrap().uid(),
        Namespace::FIRST
    );
    assert_eq!(
        root.join("link").symlink_metadata().unwrap().gid(),
        Namespace::FIRST
    );
    assert!(matches!(
        bench.store.roots.facts("one").unwrap().kind,
        Kind::Copy { .. }
    ));
}
