//! A directory with a link per applet, as `/bin` of the image, and commands executed there.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_plimsoll-toolbox");

/// What any single command of these tests may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Toolbox {
    folder: tempfile::TempDir,
}

impl Toolbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        for name in applets() {
            symlink(PROGRAM, bin.join(name)).unwrap();
        }
        Self { folder }
    }

    /// An empty working directory.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// An applet in the working directory, with nothing but applets in PATH.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin().join(name));
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", self.bin());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let (name, args) = words.split_first().unwrap();
        output(self.command(name).args(args), b"")
    }

    /// What the applet prints; it has to succeed.
    pub(crate) fn print(&self, words: &[&str]) -> String {
        succeeded(words, self.run(words))
    }

    pub(crate) fn pipe(&self, words: &[&str], input: &str) -> Output {
        let (name, args) = words.split_first().unwrap();
        output(self.command(name).args(args), input.as_bytes())
    }

    pub(crate) fn sh(&self, script: &str) -> Output {
        self.run(&["sh", "-c", script])
    }
}

pub(crate) fn applets() -> Vec<String> {
    let output = Command::new(PROGRAM).arg("--list").output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().map(str::to_owned).collect()
}

pub(crate) fn succeeded(words: &[&str], output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{words:?}: {}: {errors}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command with an input, and fails if it does not end in time.
pub(crate) fn output(command: &mut Command, input: &[u8]) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that reads less than everything closes the pipe.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let process = child.id();
    let waiter = std::thread::spawn(move || child.wait_with_output().unwrap());
    let deadline = Instant::now() + PATIENCE;
    while !waiter.is_finished() {
        if Instant::now() > deadline {
            // Ends the waiting thread too.
            let _ = Command::new("kill")
                .args(["-9", &process.to_string()])
                .status();
            panic!("{command:?} does not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    writer.join().unwrap();
    waiter.join().unwrap()
}

pub(crate) fn write(file: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Waits for something that another process does.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn list_names_every_applet() {
    let names = applets();
    for name in [
        "sh", "tar", "ls", "cat", "sleep", "wget", "httpd", "hog", "[",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(names, sorted);
}

#[test]
fn every_applet_has_help() {
    let toolbox = Toolbox::new();
    for name in applets() {
        if ["[", "echo", "false", "printf", "test", "true", "yes"].contains(&name.as_str()) {
            continue;
        }
        let text = toolbox.print(&[&name, "--help"]);
        assert!(text.starts_with(&format!("Usage: {name}")), "{text}");
    }
}

#[test]
fn the_first_argument_names_the_applet_too() {
    let output = Command::new(PROGRAM)
        .args(["echo", "a", "b"])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"a b\n");
    let output = Command::new(PROGRAM).arg("no-such").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn unknown_options_are_usage_errors() {
    let toolbox = Toolbox::new();
    for name in [
        "ls", "cp", "rm", "grep", "wget", "httpd", "hog", "tail", "ps", "df", "tar", "mkdir", "sh",
    ] {
        let output = toolbox.run(&[name, "-@"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains("usage: "), "{name}: {errors}");
    }
}
