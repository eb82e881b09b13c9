//! Walks by a process of their own: as good as by the caller, and bounded.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::cgroup::{CgroupPath, Driver, Version};
use plimsoll_testkit::disk::mount_ext4;
use plimsoll_testkit::mount::unmount_below;
use plimsoll_testkit::vm::slowness;
use rustix::fs::{FileType, Mode, mknodat};

use super::*;
use crate::cgroup::Cgroups;
use crate::cgroup::testing::KernelCgroups;

/// What walks may take, the kernel's memory included.
const MEMORY: u64 = 64 << 20;
/// What they may take of the process that has them done.
const OWN: u64 = 8 << 20;

/// This very program is the process that walks, when started for this test.
const CHILD: &str = "walk::tests::child_main";

#[test]
#[ignore = "tier: root"]
fn child_main() {
    // Run as a test it has no socket.
    if rustix::net::sockopt::socket_type(std::io::stdin()).is_ok() {
        walker_main();
    }
}

fn command() -> Vec<OsString> {
    let program = std::env::current_exe().unwrap();
    let words = [CHILD, "--exact", "--ignored", "--nocapture", "--quiet"];
    let words = words.map(OsString::from);
    std::iter::once(program.into()).chain(words).collect()
}

fn apart() -> Walker {
    Walker::apart(command(), Arc::new(|_| {}))
}

/// The whole walk, and in how many steps.
fn walked(walker: &Walker, path: &Path, step: u64) -> (Usage, u64) {
    let mut walk = walker.begin(path, Scope::Tree);
    for steps in 1.. {
        let (mut budget, deadline) = (step, Instant::now() + Duration::from_secs(60));
        match walk.advance(&mut budget, deadline) {
            Progress::Pending => assert_eq!(budget, 0),
            Progress::Done(usage) => {
                assert!(walk.is_whole);
                return (usage, steps);
            }
            other => panic!("{other:?}"),
        }
    }
    unreachable!()
}

fn make_files(directory: &Path, count: u32) {
    // Directories of a million files are slow on some file systems.
    for folder in 0..count.div_ceil(10_000) {
        let path = directory.join(folder.to_string());
        fs::create_dir(&path).unwrap();
        let folder = File::open(&path).unwrap();
        for index in 0..10_000_u32.min(count) {
            let (kind, mode) = (FileType::RegularFile, Mode::RUSR);
            mknodat(&folder, index.to_string(), kind, mode, 0).unwrap();
        }
    }
}

#[test]
fn walk_in_a_child_process_matches_one_in_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    make_files(folder.path(), 500);
    fs::write(folder.path().join("large"), vec![1; 100_000]).unwrap();
    fs::hard_link(folder.path().join("large"), folder.path().join("again")).unwrap();
    let (here, walker) = (Walker::here(), apart());
    let (expected, _) = walked(&here, folder.path(), u64::MAX);
    assert_eq!(expected.inodes, 500 + 3);
    for step in [7, 100, u64::MAX] {
        let (found, steps) = walked(&walker, folder.path(), step);
        assert_eq!(found, expected);
        assert_eq!(steps, walked(&here, folder.path(), step).1);
    }
    // Two at once, and one that is given up.
    let mut other = walker.begin(folder.path(), Scope::Tree);
    let mut budget = 10;
    let deadline = Instant::now() + Duration::from_secs(10);
    assert!(matches!(
        other.advance(&mut budget, deadline),
        Progress::Pending
    ));
    assert_eq!(walked(&walker, &folder.path().join("large"), 1).0.inodes, 1);
    drop(other);
    assert_eq!(walked(&walker, folder.path(), u64::MAX).0, expected);
    let mut missing = walker.begin(&folder.path().join("missing"), Scope::Tree);
    let error = missing.advance(&mut budget, deadline);
    let Progress::Failed(error) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn walk_restarts_when_its_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    make_files(folder.path(), 300);
    let pids = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&pids);
    let account = Arc::new(move |pid| noted.lock().unwrap().push(pid));
    let walker = Walker::apart(command(), account);
    let mut walk = walker.begin(folder.path(), Scope::Tree);
    let advance = |walk: &mut Walk| {
        let mut budget = 100;
        walk.advance(&mut budget, Instant::now() + Duration::from_secs(10))
    };
    assert!(matches!(advance(&mut walk), Progress::Pending));
    let pid = pids.lock().unwrap()[0];
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(matches!(advance(&mut walk), Progress::Silent(_)));
    let deadline = Instant::now() + Duration::from_secs(30);
    let found = loop {
        match advance(&mut walk) {
            Progress::Done(usage) => break usage,
            Progress::Silent(_) => std::thread::yield_now(),
            _ => {}
        }
        assert!(Instant::now() < deadline);
    };
    assert_eq!(found.inodes, 300 + 2);
    assert_eq!(pids.lock().unwrap().len(), 2);
}

#[test]
#[ignore = "tier: root"]
fn hanging_directory_does_not_block_others() {
    let folder = tempfile::tempdir().unwrap();
    let (hanging, other) = (folder.path().join("hanging"), folder.path().join("other"));
    fs::create_dir(&hanging).unwrap();
    fs::create_dir(&other).unwrap();
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let device = device.unwrap();
    let data = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0",
        device.as_raw_fd()
    );
    let data = std::ffi::CString::new(data).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("hangs", &hanging, "fuse", flags, &*data).unwrap();
    let walker = apart();
    let begun = Instant::now();
    // No process answers its requests.
    for _ in 0..4 {
        let mut walk = walker.begin(&hanging, Scope::Tree);
        let mut budget = 10;
        let progress = walk.advance(&mut budget, Instant::now() + STEP_TIME);
        assert!(matches!(progress, Progress::Silent(_)), "{progress:?}");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10) * slowness(), "{took:?}");
    // They end when the file system does.
    drop(device);
    unmount_below(folder.path());
    let deadline = Instant::now() + Duration::from_secs(20) * slowness();
    let mut walk = walker.begin(&other, Scope::Tree);
    loop {
        let mut budget = 10;
        match walk.advance(&mut budget, Instant::now() + STEP_TIME) {
            Progress::Done(usage) => break assert_eq!(usage.inodes, 1),
            _ => assert!(Instant::now() < deadline),
        }
        std::thread::yield_now();
    }
}

/// Moves this process into a cgroup, and back in the end.
struct Moved;

impl Moved {
    fn into(cgroups: &Cgroups, cgroup: &CgroupPath) -> Moved {
        cgroups.enter(cgroup, std::process::id()).unwrap();
        Moved
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        let all = Cgroups::detect(Path::new("/"), Driver::Cgroupfs, "/").unwrap();
        let root = CgroupPath::parse("/").unwrap();
        all.enter(&root, std::process::id()).unwrap();
    }
}

/// Bytes that a cgroup holds, those of the kernel included.
fn held(cgroups: &Cgroups, cgroup: &CgroupPath) -> u64 {
    let file = match cgroups.version() {
        Version::V1 => "memory.usage_in_bytes",
        Version::V2 => "memory.current",
    };
    let directory = cgroups.layout().directory("memory", cgroup).unwrap();
    let text = fs::read_to_string(directory.join(file)).unwrap();
    text.trim().parse().unwrap()
}

/// The most that a cgroup holds more than at first while a walk runs, and what that finds. It
/// ends early where it takes far too much.
fn grown(walker: &Walker, path: &Path, held: impl Fn() -> u64) -> (u64, Option<Usage>) {
    let (before, mut most) = (held(), 0);
    let mut walk = walker.begin(path, Scope::Tree);
    loop {
        let (mut budget, deadline) = (20_000, Instant::now() + Duration::from_secs(60));
        let progress = walk.advance(&mut budget, deadline);
        most = most.max(held().saturating_sub(before));
        match progress {
            Progress::Pending if most > 4 * MEMORY => return (most, None),
            Progress::Pending => {}
            Progress::Done(usage) => {
                assert!(walk.is_whole);
                return (most, Some(usage));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
#[ignore = "tier: root"]
fn walk_of_a_million_files_uses_no_memory_of_the_caller() {
    let files: u32 = if slowness() == 1 { 1_000_000 } else { 200_000 };
    let folder = tempfile::tempdir().unwrap();
    let (image, at) = (folder.path().join("image"), folder.path().join("mounted"));
    let inodes = (files + files / 100 + 1000).to_string();
    mount_ext4(&image, &at, 1024, &["-N", &inodes]).unwrap();
    let path = at.join("volume");
    fs::create_dir(&path).unwrap();
    make_files(&path, files);
    // After a new mount nothing of it is in memory, which else belongs to the process that made it.
    unmount_below(folder.path());
    let mut mount = std::process::Command::new("mount");
    mount
        .args(["-t", "ext4", "-o", "loop,ro"])
        .arg(&image)
        .arg(&at);
    assert!(mount.status().unwrap().success());

    let kernel = KernelCgroups::new();
    let cgroups = kernel.cgroups().clone();
    let root = cgroups.path(cgroups.root());
    let below = |name: &str| CgroupPath::parse(&format!("{root}/{name}")).unwrap();
    let (own, walks) = (below("agent"), below("walks"));
    let moved = Moved::into(&cgroups, &own);
    let (account, confined) = (cgroups.clone(), walks.clone());
    let account = Arc::new(move |pid| account.confine(&confined, pid, MEMORY).unwrap());
    let walker = Walker::apart(command(), account);
    // It starts, and looks at something.
    walked(&walker, folder.path(), 10);
    let (most, found) = grown(&walker, &path, || held(&cgroups, &own));
    let by_walks = held(&cgroups, &walks);
    drop(walker);
    let expected = u64::from(files) + u64::from(files.div_ceil(10_000)) + 1;
    assert_eq!(found.map(|usage| usage.inodes), Some(expected));
    assert!(most <= OWN, "{most} bytes more");
    assert!(by_walks <= MEMORY, "{by_walks} bytes for walks");

    // It would be far more by a walk of its own.
    let (here, _) = grown(&Walker::here(), &path, || held(&cgroups, &own));
    drop(moved);
    unmount_below(folder.path());
    assert!(here > MEMORY, "{here} bytes more");
    writeln!(
        io::stderr(),
        "{files} files: {most} bytes more, {by_walks} bytes for walks; by its own walk {here} or more"
    )
    .unwrap();
}

/// The same with cgroup v2.
mod vm {
    use super::*;
    use plimsoll_testkit::vm::Machine;

    #[test]
    #[ignore = "tier: vm"]
    fn walk_uses_no_memory_of_the_caller_with_cgroup_v2_too() {
        let machine = Machine::new().memory_mib(1536).tool("mkfs.ext4");
        let limit = Duration::from_secs(1200);
        let done = machine.run_own_tests(&["walk::tests::walk_of_a_million_files"], limit);
        assert_eq!(done, Ok(()));
    }
}
