//! `plimsoll demo` as a user runs it: its output and its cleanup.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use plimsoll_testkit::inventory::{Inventory, Place};
use plimsoll_testkit::vm::slowness;
use plimsoll_testkit::waiting::until;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cluster::PLIMSOLL;
use crate::transcript::{OMITTED, blocks, compare};

/// The variable with which a run records its output in README.
const RECORD: &str = "PLIMSOLL_RECORD";

/// The timeout of a demo.
const LIMIT: Duration = Duration::from_secs(30);

const COMMAND: &str = "cargo run --release -- demo";

/// A running demo, with its output in files.
struct Demo {
    child: Child,
    folder: TempDir,
}

impl Demo {
    fn start() -> Demo {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| std::fs::File::create(folder.path().join(name)).unwrap();
        let child = Command::new(PLIMSOLL)
            .arg("demo")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("COLUMNS")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap();
        Demo { child, folder }
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("out")).unwrap()
    }

    fn complaints(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("err")).unwrap()
    }

    fn until_printed(&self, text: &str) {
        until(&format!("the demo prints {text:?}"), || {
            let printed = self.printed();
            match printed.contains(text) {
                true => Ok(()),
                false => Err(format!("{printed}\n{}", self.complaints())),
            }
        });
    }

    fn place(&self) -> Place {
        let id = self.child.id();
        let folder = self.folder.path().join(format!("plimsoll-demo-{id}"));
        Place {
            data: folder.join("data"),
            folder,
            cgroups: format!("/plimsoll-demo-{id}"),
            bridge: format!("plmd{id}"),
        }
    }

    /// The process of the cluster.
    fn cluster(&self) -> Pid {
        let id = self.child.id();
        let children = format!("/proc/{id}/task/{id}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let first = children.split_whitespace().next().unwrap();
        Pid::from_raw(first.parse().unwrap()).unwrap()
    }

    fn wait(&mut self) -> ExitStatus {
        until("the demo ends", || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => Err(format!("{}\n{}", self.printed(), self.complaints())),
        })
    }

    /// Nothing is left on the machine: processes, mounts, cgroups, links, tables, files.
    fn left_nothing(&self) {
        let place = self.place();
        let left = Inventory::of_place(&place).beyond(&Inventory::default());
        assert!(left.is_empty(), "{left:#?}\n{}", self.complaints());
        assert!(!place.folder.exists(), "{}", self.complaints());
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Fails if the process has exited, as expected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "tier: root"]
fn shows_an_eviction_within_half_a_minute_and_leaves_nothing_behind() {
    let begun = Instant::now();
    let mut demo = Demo::start();
    let status = demo.wait();
    let took = begun.elapsed();
    let printed = demo.printed();
    assert!(
        status.success(),
        "{status}: {printed}\n{}",
        demo.complaints()
    );
    assert_eq!(demo.complaints(), "");
    assert!(took < LIMIT * slowness(), "it took {took:?}");
    demo.left_nothing();
    assert!(
        !printed.contains('\x1b'),
        "colour only on terminals: {printed:?}"
    );
    let wide = printed.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    for pod in [
        "calm      Burstable",
        "steady    Guaranteed",
        "growing   BestEffort",
    ] {
        assert!(printed.contains(pod), "{pod:?} is not in {printed}");
    }
    let frames = printed.matches("NODE demo   Ready").count();
    assert!((2..=15).contains(&frames), "{frames} frames: {printed}");
    for text in [
        "The node was low on resource: memory.",
        "POD default/growing was evicted from node demo",
        ">1   default/growing",
        "steady   Guaranteed   Running   0",
    ] {
        assert!(printed.contains(text), "{text:?} is not in {printed}");
    }
    is_what_readme_shows(&printed);
}

#[test]
#[ignore = "tier: root"]
fn removes_everything_when_interrupted() {
    for (text, signal) in [
        ("1. A cluster", Signal::INT),
        ("3. The load line", Signal::TERM),
    ] {
        let mut demo = Demo::start();
        demo.until_printed(text);
        let id = i32::try_from(demo.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.unwrap(), signal).unwrap();
        assert_eq!(demo.wait().code(), Some(130), "{}", demo.complaints());
        demo.left_nothing();
    }
}

#[test]
#[ignore = "tier: root"]
fn removes_everything_and_shows_the_log_when_the_cluster_ends() {
    let mut demo = Demo::start();
    demo.until_printed("NODE demo");
    kill_process(demo.cluster(), Signal::KILL).unwrap();
    assert_eq!(demo.wait().code(), Some(1), "{}", demo.printed());
    let complaints = demo.complaints();
    for text in ["plimsoll up has exited", "Node demo is Ready"] {
        assert!(complaints.contains(text), "{complaints}");
    }
    demo.left_nothing();
}

/// README shows parts of a recorded run: the last frame of the load line, the eviction with its
/// explanation, and the other pods.
fn is_what_readme_shows(printed: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&file).unwrap();
    let mut steps = blocks(&readme).into_iter().flatten();
    let shown = steps.find(|step| step.command == COMMAND);
    let shown = shown.expect("README shows the demo").output;
    if std::env::var_os(RECORD).is_some() {
        std::fs::write(&file, readme.replacen(&shown, &excerpt(printed), 1)).unwrap();
        return;
    }
    if let Err(difference) = compare(&shown, printed) {
        panic!("README shows another demo; {RECORD}=1 writes it anew: {difference}");
    }
}

fn excerpt(printed: &str) -> String {
    let third = printed.find("3. The load line").unwrap();
    let first_frame = printed.find("NODE demo").unwrap();
    let last_frame = printed.rfind("NODE demo").unwrap();
    let events = printed.find("EVENTS").unwrap();
    let others = printed.find("6. The other pods").unwrap();
    let removal = printed.find("Removal").unwrap();
    let parts = [
        &printed[third..first_frame],
        &printed[last_frame..events],
        &printed[others..removal],
    ];
    let parts = parts.map(|part| format!("{}\n{OMITTED}\n", part.trim_end()));
    format!("{OMITTED}\n{}", parts.concat())
}
