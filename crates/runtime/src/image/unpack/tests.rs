use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use plimsoll_testkit::images::Tree;
use proptest::prelude::*;
use tar::{EntryType, Header};
use tempfile::TempDir;

use super::*;
use crate::walk::{Usage, measure};

/// An empty directory to unpack into, and a neighbour that must not change.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("layer")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("layer").join(name)
    }

    fn unpack(&self, tar: &[u8]) -> Result<(), Error> {
        self.unpack_within(tar, Limits::default())
    }

    fn unpack_within(&self, tar: &[u8], limits: Limits) -> Result<(), Error> {
        unpack(tar, &self.path(""), &[], limits).map(drop)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// All that lies beside the layer, as it was made.
    fn assert_outside_is_untouched(&self) {
        let names = super::super::file::names(self.folder.path()).unwrap();
        assert_eq!(names, ["layer", "outside"]);
        let outside = self.folder.path().join("outside");
        let names = super::super::file::names(&outside).unwrap();
        assert_eq!(names, ["secret"]);
        let secret = outside.join("secret");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        let metadata = secret.metadata().unwrap();
        assert_eq!((metadata.nlink(), metadata.mode() & 0o7777), (1, 0o644));
        assert_eq!(outside.metadata().unwrap().mode() & 0o7777, 0o755);
    }
}

/// One entry with whatever path and link, which the builder of the tar crate would refuse.
fn raw_entry(kind: EntryType, path: &str, link: &str, mode: u32, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    let place = |field: &mut [u8], text: &str| {
        let length = text.len().min(field.len());
        field[..length].copy_from_slice(&text.as_bytes()[..length]);
    };
    place(&mut header.as_old_mut().name, path);
    place(&mut header.as_old_mut().linkname, link);
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1000);
    if matches!(kind, EntryType::Char | EntryType::Block) {
        header.set_device_major(8).unwrap();
        header.set_device_minor(0).unwrap();
    }
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// An extended attribute for the entry that follows.
fn xattr(name: &str, value: &[u8]) -> Vec<u8> {
    let key = format!("SCHILY.xattr.{name}=");
    let bare = key.len() + value.len() + 2;
    let length = (1..4).map(|digits| bare + digits);
    let length = length
        .into_iter()
        .find(|n| n.to_string().len() + bare == *n);
    let mut record = format!("{} {key}", length.unwrap()).into_bytes();
    record.extend_from_slice(value);
    record.push(b'\n');
    raw_entry(EntryType::XHeader, "x", "", 0o644, &record)
}

#[test]
fn files_keep_mode_time_and_content() {
    let bench = Bench::new();
    let tar = [
        raw_entry(EntryType::Directory, "./d/", "", 0o1700, b""),
        raw_entry(EntryType::Regular, "d/setuid", "", 0o4755, b"content"),
        raw_entry(EntryType::Link, "second", "./d/setuid", 0, b""),
        raw_entry(EntryType::Symlink, "link", "/anywhere", 0o777, b""),
        raw_entry(EntryType::Fifo, "fifo", "", 0o622, b""),
    ];
    bench.unpack(&tar.concat()).unwrap();
    assert_eq!(bench.read("second"), "content");
    let file = bench.path("d/setuid").metadata().unwrap();
    assert_eq!(file.permissions().mode() & 0o7777, 0o4755);
    assert_eq!((file.mtime(), file.nlink()), (1000, 2));
    let directory = bench.path("d").metadata().unwrap();
    assert_eq!(directory.permissions().mode() & 0o7777, 0o1700);
    assert_eq!(directory.mtime(), 1000);
    let link = bench.path("link");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/anywhere"));
    assert_eq!(link.symlink_metadata().unwrap().mtime(), 1000);
    let fifo = bench.path("fifo").metadata().unwrap();
    assert!(fifo.file_type().is_fifo());
    assert_eq!(fifo.permissions().mode() & 0o7777, 0o622);
}

#[test]
fn a_later_entry_replaces_an_earlier_one() {
    let bench = Bench::new();
    let tar = Tree::new()
        .file("file", 0o644, b"first")
        .file("file", 0o600, b"second")
        .directory("tree/deep", 0o755)
        .file("tree/deep/file", 0o644, b"")
        .file("tree", 0o644, b"now a file")
        .symlink("link", "file")
        .file("link", 0o644, b"not through the link")
        .file("was-file", 0o644, b"")
        .directory("was-file", 0o755)
        .file("was-file/inside", 0o644, b"");
    bench.unpack(&tar.into_tar()).unwrap();
    assert_eq!(bench.read("file"), "second");
    assert_eq!(bench.read("tree"), "now a file");
    assert_eq!(bench.read("link"), "not through the link");
    assert!(bench.path("was-file/inside").exists());
}

#[test]
fn links_resolve_inside_only() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("outside");
    let tar = Tree::new()
        .directory("inner", 0o755)
        .symlink("absolute", "/inner")
        .symlink("up", "../../../../inner")
        .file("absolute/a", 0o644, b"a")
        .file("up/b", 0o644, b"b")
        .symlink("out", outside.to_str().unwrap())
        .into_tar();
    bench.unpack(&tar).unwrap();
    assert_eq!(bench.read("inner/a"), "a");
    assert_eq!(bench.read("inner/b"), "b");
    let through = Tree::new().file("out/new", 0o644, b"").into_tar();
    // The target does not exist inside, and nothing is made at it outside.
    assert!(bench.unpack(&through).is_err());
    bench.assert_outside_is_untouched();
}

#[test]
fn paths_that_lead_out_are_refused_by_name() {
    let refused = |tar: Vec<u8>| {
        let bench = Bench::new();
        let error = bench.unpack(&tar).unwrap_err();
        bench.assert_outside_is_untouched();
        error.to_string()
    };
    let leads_out = r#"entry "../outside/secret" escapes the root file system"#;
    assert_eq!(
        refused(raw_entry(
            EntryType::Regular,
            "../outside/secret",
            "",
            0,
            b"x"
        )),
        leads_out
    );
    assert_eq!(
        refused(raw_entry(
            EntryType::Link,
            "link",
            "../outside/secret",
            0,
            b""
        )),
        leads_out
    );
    for name in [".wh.", ".wh..", ".wh...", "a/.wh.."] {
        let text = refused(raw_entry(EntryType::Regular, name, "", 0, b""));
        assert_eq!(text, format!("whiteout {name:?} names no file"));
    }
}

#[test]
fn hard_links_through_links_stay_inside() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("outside");
    let tar = [
        raw_entry(EntryType::Symlink, "s", outside.to_str().unwrap(), 0, b""),
        raw_entry(EntryType::Link, "stolen", "s/secret", 0, b""),
    ];
    assert!(bench.unpack(&tar.concat()).is_err());
    bench.assert_outside_is_untouched();
    assert!(!bench.path("stolen").exists());
}

#[test]
fn devices_are_not_made() {
    let bench = Bench::new();
    let tar = [
        raw_entry(EntryType::Block, "sda", "", 0o666, b""),
        raw_entry(EntryType::Char, "null", "", 0o666, b""),
        raw_entry(EntryType::Regular, "file", "", 0o644, b""),
    ];
    bench.unpack(&tar.concat()).unwrap();
    let names = super::super::file::names(&bench.path("")).unwrap();
    assert_eq!(names, ["file"]);
}

#[test]
fn whiteouts_take_the_form_of_overlayfs() {
    let bench = Bench::new();
    let tar = Tree::new()
        .file("etc/.wh.gone", 0, b"")
        .file("opaque/.wh..wh..opq", 0, b"")
        .file("opaque/new", 0o644, b"")
        .file(".wh..wh.plnk", 0, b"")
        // What the layer itself has is not hidden by its own whiteout, in either order.
        .file("mine", 0o644, b"mine")
        .file(".wh.mine", 0, b"")
        .file(".wh.ours", 0, b"")
        .file("ours", 0o644, b"ours")
        .file(".wh.replaced", 0, b"")
        .file("replaced/inside", 0o644, b"")
        .directory("again", 0o755)
        .file(".wh.again", 0, b"");
    bench.unpack(&tar.into_tar()).unwrap();
    let stat = |name: &str| rustix::fs::lstat(bench.path(name)).unwrap();
    assert!(is_whiteout(&stat("etc/gone")));
    assert_eq!(bench.read("mine"), "mine");
    assert_eq!(bench.read("ours"), "ours");
    let opaque = |name: &str| is_opaque(fs::File::open(bench.path(name)).unwrap().as_fd());
    assert!(opaque("opaque"));
    assert!(opaque("replaced"));
    assert!(opaque("again"));
    assert!(!opaque("etc"));
    let names = super::super::file::names(&bench.path("")).unwrap();
    assert_eq!(
        names,
        ["again", "etc", "mine", "opaque", "ours", "replaced"]
    );
}

/// Overlayfs would follow such attributes to files of other layers.
#[test]
fn attributes_of_overlayfs_itself_are_dropped() {
    let bench = Bench::new();
    let tar = [
        xattr("user.kept", b"value"),
        raw_entry(EntryType::Regular, "file", "", 0o644, b""),
        xattr("trusted.overlay.redirect", b"/etc"),
        raw_entry(EntryType::Directory, "one", "", 0o755, b""),
        xattr("user.overlay.opaque", b"y"),
        raw_entry(EntryType::Directory, "two", "", 0o755, b""),
    ];
    bench.unpack(&tar.concat()).unwrap();
    let mut value = [0; 16];
    let kept = rustix::fs::getxattr(bench.path("file"), "user.kept", &mut value);
    // Not every file system has attributes of users.
    assert!(kept.is_err() || &value[..kept.unwrap()] == b"value");
    for name in ["one", "two"] {
        let mut names = [0; 1024];
        let length = rustix::fs::listxattr(bench.path(name), &mut names).unwrap_or(0);
        let names = String::from_utf8_lossy(&names[..length]).into_owned();
        assert!(!names.contains("overlay"), "{names}");
    }
}

#[test]
#[ignore = "tier: root"]
fn owners_and_capabilities_are_kept() {
    let bench = Bench::new();
    // cap_net_bind_service, permitted and effective.
    let mut capability = [0; 20];
    capability[..8].copy_from_slice(&[1, 0, 0, 2, 0, 4, 0, 0]);
    let owned = |mut bytes: Vec<u8>| {
        let mut header = Header::from_byte_slice(&bytes[..512]).clone();
        header.set_uid(1234);
        header.set_gid(5678);
        header.set_cksum();
        bytes[..512].copy_from_slice(header.as_bytes());
        bytes
    };
    let tar = [
        xattr("security.capability", &capability),
        owned(raw_entry(EntryType::Regular, "file", "", 0o4755, b"")),
        owned(raw_entry(EntryType::Symlink, "link", "file", 0, b"")),
        owned(raw_entry(EntryType::Directory, "d", "", 0o755, b"")),
    ];
    bench.unpack(&tar.concat()).unwrap();
    for name in ["file", "link", "d"] {
        let metadata = bench.path(name).symlink_metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 5678), "{name}");
    }
    let mut value = [0; 64];
    let length =
        rustix::fs::getxattr(bench.path("file"), "security.capability", &mut value).unwrap();
    assert_eq!(&value[..length], &capability);
    let file = bench.path("file").metadata().unwrap();
    assert_eq!(file.mode() & 0o7777, 0o4755);
}

#[test]
fn bombs_are_stopped() {
    let bench = Bench::new();
    let limits = Limits {
        bytes: 1 << 20,
        entries: 100,
    };
    let many: Vec<u8> = (0..101)
        .flat_map(|n| raw_entry(EntryType::Regular, &format!("{n}"), "", 0o644, b""))
        .collect();
    let refused = bench.unpack_within(&many, limits).unwrap_err();
    assert_eq!(refused.to_string(), "the layer has more than 100 entries");
    let large = raw_entry(EntryType::Regular, "large", "", 0o644, &vec![0; 2 << 20]);
    let refused = bench.unpack_within(&large, limits).unwrap_err();
    assert_eq!(refused.to_string(), "the layer has more than 1048576 bytes");
    let mut endless = Header::new_gnu();
    endless.set_size(1 << 40);
    endless.set_path("endless").unwrap();
    endless.set_mode(0o644);
    endless.set_cksum();
    let endless = endless.as_bytes().chain(io::repeat(0));
    let refused = unpack(endless, &bench.path(""), &[], limits).unwrap_err();
    assert_eq!(refused.to_string(), "the layer has more than 1048576 bytes");
    let trailing = [vec![0; 1024], vec![1; 2 << 20]].concat();
    let refused = bench.unpack_within(&trailing, limits).unwrap_err();
    assert_eq!(refused.to_string(), "the layer has more than 1048576 bytes");
    assert!(measure(&bench.path("")).unwrap().bytes < 8 << 20);
}

/// Names that meet each other often, with every trick among them.
fn hostile_path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "..", ".", "", "outside", "secret", ".wh.a", ".wh.b", ".wh..wh..opq", ".wh...", "proc",
            "self", "root", "\u{1}", "..."
        ])
        .prop_map(str::to_owned),
    ];
    (prop::collection::vec(part, 1..5), any::<bool>()).prop_map(|(parts, is_absolute)| {
        format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/"))
    })
}

fn hostile_entry() -> impl Strategy<Value = (EntryType, String, String, u32)> {
    let kind = prop::sample::select(vec![
        EntryType::Regular,
        EntryType::Regular,
        EntryType::Directory,
        EntryType::Symlink,
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
    ]);
    let link = prop_oneof![
        hostile_path(),
        Just("OUTSIDE".to_owned()),
        Just("OUTSIDE/secret".to_owned()),
        Just("../../../../../../../../../../OUTSIDE".to_owned()),
        Just("/proc/self/root/OUTSIDE".to_owned()),
        Just("/proc/self/cwd/..".to_owned()),
    ];
    (kind, hostile_path(), link, 0o000_u32..0o10000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a tar says, nothing outside is touched; unpacking ends with success or an error.
    #[test]
    fn hostile_tars_touch_nothing_outside(entries in prop::collection::vec(hostile_entry(), 1..24)) {
        let bench = Bench::new();
        let outside = bench.folder.path().join("outside").display().to_string();
        let mut refused = 0;
        for (kind, path, link, mode) in &entries {
            let link = link.replace("OUTSIDE", &outside);
            let tar = raw_entry(*kind, path, &link, mode | 0o700, b"written");
            // Each entry alone, so that one refusal does not spare us the rest.
            refused += usize::from(bench.unpack(&tar).is_err());
        }
        prop_assert!(refused <= entries.len());
        bench.assert_outside_is_untouched();
        let Usage { inodes, .. } = measure(&bench.path("")).unwrap();
        prop_assert!(inodes < 200);
    }

    /// Noise is no tar, and no panic.
    #[test]
    fn noise_is_refused_or_ignored(noise in prop::collection::vec(any::<u8>(), 0..2048)) {
        let bench = Bench::new();
        let _ = bench.unpack(&noise);
        bench.assert_outside_is_untouched();
    }

    /// Flipped bits in a real tar neither.
    #[test]
    fn damaged_tars_touch_nothing_outside(at in 0_usize..4096, value in any::<u8>(), fix_sum in any::<bool>()) {
        let bench = Bench::new();
        let mut tar = [
            raw_entry(EntryType::Symlink, "s", "/outside", 0o777, b""),
            xattr("user.a", b"b"),
            raw_entry(EntryType::Regular, "s/f", "", 0o644, b"content"),
            raw_entry(EntryType::Link, "l", "s/f", 0o644, b""),
        ]
        .concat();
        let at = at % tar.len();
        tar[at] = value;
        let block = at / 512 * 512;
        if fix_sum {
            let mut header = Header::from_byte_slice(&tar[block..block + 512]).clone();
            header.set_cksum();
            tar[block..block + 512].copy_from_slice(header.as_bytes());
        }
        let _ = bench.unpack(&tar);
        bench.assert_outside_is_untouched();
    }
}
