//! A place to run the runner in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

/// Nothing here takes as long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder that stands in for the workspace, with cargo's messages about the executable in it.
pub(crate) struct Bench {
    folder: TempDir,
}

/// The runner's output, and its exit status.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) text: String,
    pub(crate) code: i32,
}

impl Ran {
    pub(crate) fn last_line(&self) -> &str {
        self.text.lines().last().unwrap_or_default()
    }

    /// The lines between the given one and the next empty one.
    pub(crate) fn section(&self, title: &str) -> String {
        let title = format!("\n{title}\n");
        let (_, rest) = self.text.split_once(&title).unwrap_or(("", ""));
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(&fixture(false))
    }

    /// With a test without a tier.
    pub(crate) fn without_tier() -> Self {
        Self::with(&fixture(true))
    }

    fn with(executable: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let message = json!({
            "reason": "compiler-artifact",
            "manifest_path": folder.path().join("fixture/Cargo.toml"),
            "target": { "kind": ["test"], "name": "tests" },
            "profile": { "test": true },
            "executable": executable,
        });
        fs::create_dir(folder.path().join("fixture")).unwrap();
        fs::write(folder.path().join("built.json"), message.to_string()).unwrap();
        Bench { folder }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// The output of a test in a run.
    pub(crate) fn log(&self, test: &str, round: u32) -> String {
        let test = test.replace("::", ".");
        let file = format!("target/artifacts/fixture.tests.{test}/{round}.log");
        fs::read_to_string(self.path(&file)).unwrap_or_default()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_test-runner"));
        command
            .args(["--built", "built.json"])
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("FIXTURE_FOLDER", self.folder.path());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, line: &str) -> Ran {
        let output = self.command(line).output().unwrap();
        let mut text = String::from_utf8(output.stdout).unwrap();
        text += &String::from_utf8(output.stderr).unwrap();
        let code = output.status.code().unwrap();
        Ran { text, code }
    }

    pub(crate) fn start(&self, line: &str) -> Child {
        let mut command = self.command(line);
        command.stdout(Stdio::null()).spawn().unwrap()
    }

    /// The process id that a test wrote down.
    pub(crate) fn process(&self, file: &str) -> i32 {
        let file = self.path(file);
        until("a process id is written down", || {
            fs::read_to_string(&file).is_ok_and(|text| !text.is_empty())
        });
        fs::read_to_string(file).unwrap().parse().unwrap()
    }
}

/// Whether there is such a process, and it has not ended.
pub(crate) fn is_alive(id: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| !state.starts_with('Z'))
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The executable, compiled once for all tests.
fn fixture(lacks_tier: bool) -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        compile(&folder.path().join("with_tier"), &[]);
        compile(
            &folder.path().join("without_tier"),
            &["--cfg", "without_tier"],
        );
        folder
    });
    folder.path().join(if lacks_tier {
        "without_tier"
    } else {
        "with_tier"
    })
}

fn compile(to: &Path, arguments: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runner/fixture/tests.rs");
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let output = Command::new(rustc)
        .args([
            "--test",
            "--edition",
            "2024",
            "--check-cfg",
            "cfg(without_tier)",
        ])
        .args(arguments)
        .arg("-o")
        .arg(to)
        .arg(source)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}
