//! What the kernel counts is what a walk finds, and asking for it costs next to nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::walk::{Scope, Usage, Walker, measure};
use plimsoll_testkit::disk::{WITH_PROJECTS, mount_ext4, where_projects_are_counted};
use plimsoll_testkit::mount::unmount_below;
use plimsoll_testkit::vm::{Machine, slowness};
use rustix::fs::{FileType, Mode, mknodat};

use super::{DiskUsage, Wanted};
use crate::project_quota::ProjectQuotas;

/// As many as make walks a burden.
const FILES: u32 = 100_000;

/// A file system that counts projects.
struct Disk {
    folder: tempfile::TempDir,
    quotas: ProjectQuotas,
}

impl Disk {
    fn mount() -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let (image, at) = (folder.path().join("image"), folder.path().join("mounted"));
        let inodes = (FILES + 10_000).to_string();
        let options: Vec<&str> = WITH_PROJECTS.into_iter().chain(["-N", &inodes]).collect();
        mount_ext4(&image, &at, 256, &options).unwrap();
        Disk {
            folder,
            quotas: ProjectQuotas::wherever_possible(),
        }
    }

    fn make(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join("mounted").join(name);
        fs::create_dir(&path).unwrap();
        path
    }

    /// A directory with a project.
    fn counted(&self, name: &str) -> PathBuf {
        let path = self.make(name);
        assert!(self.quotas.assign(&path).unwrap());
        path
    }

    /// As the agent measures them.
    fn measuring(&self, paths: [&PathBuf; 2]) -> DiskUsage {
        let wanted = Wanted {
            scope: Scope::Tree,
            is_limited: true,
        };
        let mut usage = DiskUsage::new(self.quotas.clone(), Walker::here());
        let wanted = paths.map(|path| (path.clone(), wanted));
        usage.track(&BTreeMap::from(wanted));
        usage
    }

    fn held(&self, path: &Path) -> Option<Usage> {
        let held = self.quotas.held(path, self.quotas.project_of(path)?)?;
        Some(Usage {
            bytes: held.bytes,
            inodes: held.inodes,
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount_below(self.folder.path());
    }
}

fn bytes(usage: &DiskUsage, path: &Path) -> u64 {
    usage.get(path).unwrap().usage.bytes
}

#[test]
#[ignore = "tier: vm"]
fn project_quota_matches_a_directory_walk() {
    let machine = || Machine::new().tool("chattr");
    let test = "stats::disk::tests::project_quota_matches_a_directory_walk";
    where_projects_are_counted(test, machine, || {
        let disk = Disk::mount();
        only_empty_directories_without_a_project_get_one(&disk);
        quota_and_walk_agree_after_every_change(&disk);
        directory_with_files_outside_its_project_is_walked(&disk);
        quota_is_much_faster_than_a_walk(&disk);
    });
}

fn only_empty_directories_without_a_project_get_one(disk: &Disk) {
    let (one, two) = (disk.counted("one"), disk.counted("two"));
    let project = disk.quotas.project_of(&one);
    assert!(project.is_some() && project != disk.quotas.project_of(&two));
    // It keeps its own, also when the agent has started again.
    let again = ProjectQuotas::wherever_possible();
    assert!(again.assign(&one).unwrap());
    assert_eq!(again.project_of(&one), project);
    let three = disk.make("three");
    assert!(again.assign(&three).unwrap());
    assert_ne!(again.project_of(&three), project);

    let full = disk.make("full");
    fs::write(full.join("f"), "x").unwrap();
    assert!(!disk.quotas.assign(&full).unwrap());
    let inside = one.join("inside");
    fs::create_dir(&inside).unwrap();
    assert!(!disk.quotas.assign(&inside).unwrap(), "it is another's");
    assert_eq!(disk.quotas.project_of(&inside), None);
    assert!(!ProjectQuotas::default().assign(&three).unwrap());

    // A project is free when its directory is gone.
    fs::remove_dir_all(&one).unwrap();
    let next = disk.make("next");
    assert!(ProjectQuotas::wherever_possible().assign(&next).unwrap());
    assert_eq!(disk.quotas.project_of(&next), project);
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(!disk.quotas.assign(elsewhere.path()).unwrap());
}

fn quota_and_walk_agree_after_every_change(disk: &Disk) {
    let path = disk.counted("busy");
    let agree = |what: &str| {
        let counted = disk.held(&path);
        assert_eq!(counted, Some(measure(&path).unwrap()), "{what}");
    };
    agree("nothing");
    fs::write(path.join("a"), vec![1; 5_000_000]).unwrap();
    agree("a large file, not yet on disk");
    rustix::fs::sync();
    agree("and on disk");
    fs::create_dir_all(path.join("b/c/d")).unwrap();
    for index in 0..500 {
        fs::write(path.join("b/c").join(index.to_string()), "small").unwrap();
    }
    agree("many small files");
    fs::hard_link(path.join("a"), path.join("b/link")).unwrap();
    std::os::unix::fs::symlink("/", path.join("b/out")).unwrap();
    agree("links");
    let sparse = File::create(path.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    sparse.write_all_at(b"x", 1 << 29).unwrap();
    agree("a file with holes");
    fs::rename(path.join("b/c"), path.join("moved")).unwrap();
    fs::remove_file(path.join("a")).unwrap();
    agree("one name less");
    fs::remove_file(path.join("b/link")).unwrap();
    agree("and the other");
    let open = File::open(path.join("sparse")).unwrap();
    fs::remove_dir_all(path.join("moved")).unwrap();
    agree("less");
    // A removed file that is still open uses space, which a walk does not see.
    fs::remove_file(path.join("sparse")).unwrap();
    assert_eq!(disk.held(&path).unwrap().inodes, 4);
    drop(open);
    drop(sparse);
    agree("closed");
}

fn directory_with_files_outside_its_project_is_walked(disk: &Disk) {
    let (honest, hiding) = (disk.counted("honest"), disk.counted("hiding"));
    let mut usage = disk.measuring([&honest, &hiding]);
    let at = Timestamp::from_secs;
    usage.advance(at(0), 1000);
    for path in [&honest, &hiding] {
        fs::write(path.join("f"), vec![1; 10 << 20]).unwrap();
    }
    usage.advance(at(1), 1000);
    assert!(bytes(&usage, &honest) > 10 << 20);
    assert!(bytes(&usage, &hiding) > 10 << 20);
    let mut chattr = Command::new("chattr");
    let status = chattr.args(["-p", "0"]).arg(hiding.join("f")).status();
    assert!(status.unwrap().success());
    usage.advance(at(2), 1000);
    assert!(bytes(&usage, &hiding) < 1 << 20, "not counted as its own");
    usage.advance(at(61), 1000);
    assert!(bytes(&usage, &hiding) > 10 << 20, "found by a walk");
    fs::write(hiding.join("g"), vec![1; 10 << 20]).unwrap();
    usage.advance(at(62), 1000);
    assert!(bytes(&usage, &hiding) > 20 << 20, "and walked over since");
    assert_eq!(bytes(&usage, &honest), disk.held(&honest).unwrap().bytes);
}

fn quota_is_much_faster_than_a_walk(disk: &Disk) {
    let path = disk.counted("large");
    let large = File::open(&path).unwrap();
    for index in 0..FILES {
        let (kind, mode) = (FileType::RegularFile, Mode::RUSR);
        mknodat(&large, index.to_string(), kind, mode, 0).unwrap();
    }
    let begun = Instant::now();
    let found = measure(&path).unwrap();
    let walking = begun.elapsed();
    let times = 100;
    let begun = Instant::now();
    for _ in 0..times {
        assert_eq!(disk.held(&path), Some(found));
    }
    let asking = begun.elapsed() / times;
    let ratio = walking.as_nanos() / asking.as_nanos().max(1);
    // Not kept to itself by a test that succeeds.
    writeln!(
        std::io::stderr(),
        "{FILES} files: walked in {walking:?}, quota read in {asking:?}: {ratio} times"
    )
    .unwrap();
    assert_eq!(found.inodes, u64::from(FILES) + 1);
    assert!(asking < Duration::from_millis(1) * slowness(), "{asking:?}");

    // The figure is used before a walk has confirmed it.
    let small = disk.counted("small");
    let mut usage = disk.measuring([&path, &small]);
    for second in 0..4 {
        fs::write(small.join(second.to_string()), vec![1; 10_000]).unwrap();
        usage.advance(Timestamp::from_secs(second), 1000);
        assert_eq!(bytes(&usage, &small), disk.held(&small).unwrap().bytes);
        assert_eq!(bytes(&usage, &path), found.bytes);
    }
}
