//! `plimsoll image`.

use std::io::Write;
use std::process::{Command, Stdio};

use plimsoll_testkit::images::{Image, Layer, Tree};
use tempfile::TempDir;

use crate::{Run, plimsoll};

/// A data directory of its own, and files beside it.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Bench { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("the folder is ours");
        path
    }

    fn image(&self, arguments: &[&str]) -> Run {
        let data = self.path("data");
        plimsoll(&[&["image", "--data-dir", &data], arguments].concat(), "")
    }
}

fn layer() -> Vec<u8> {
    let tree = Tree::new().file("bin/app", 0o755, b"app");
    tree.into_tar()
}

#[test]
fn images_are_imported_listed_and_removed() {
    let bench = Bench::new();
    let image = Image::new(vec![Layer::gzip(layer())]);
    let archive = bench.file("archive.tar", &image.docker_archive(&["app:1", "app:2"]));
    let run = bench.image(&["import", &archive]);
    let id = &image.id()["sha256:".len()..][..12];
    assert!(run.stdout.starts_with("imported docker.io/library/app:1, "));
    assert!(run.stdout.contains(id), "{}", run.stdout);
    let listed = bench.image(&["ls"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[1].starts_with("docker.io/library/app:1"));
    assert!(lines[1].contains(id));

    assert_eq!(bench.image(&["rm", "app:1"]).stdout, "removed app:1\n");
    let again = bench.image(&["rm", "app:1"]);
    assert_eq!(again.code, Some(1));
    assert_eq!(again.stderr, "error: image \"app:1\" not found\n");
    assert_eq!(bench.image(&["rm", id]).code, Some(0));
    assert_eq!(bench.image(&["ls"]).stdout.lines().count(), 1);
}

#[test]
fn a_root_file_system_becomes_an_image() {
    let bench = Bench::new();
    let tar = bench.file("rootfs.tar", &layer());
    let refused = bench.image(&["import", &tar]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("give a name"));
    assert!(
        refused
            .stderr
            .contains("hint: plimsoll image import --name")
    );
    let name = ["--name", "app:local", "--entrypoint", "/bin/app", "--pin"];
    let run = bench.image(&[&["import"], &name[..], &[&tar]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let listed = bench.image(&["ls"]).stdout;
    assert!(listed.contains("docker.io/library/app:local"));
    assert!(listed.trim_end().ends_with("yes"));
}

#[test]
fn archive_is_imported_from_stdin() {
    let bench = Bench::new();
    let archive = Image::new(vec![Layer::plain(layer())]).oci_archive(&["app:1"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["image", "import", "-", "--data-dir", &bench.path("data")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("plimsoll starts");
    let mut pipe = child.stdin.take().expect("stdin is a pipe");
    pipe.write_all(&archive).expect("plimsoll reads");
    drop(pipe);
    let output = child.wait_with_output().expect("plimsoll ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.starts_with("imported docker.io/library/app:1 ("),
        "{text}"
    );
}

#[test]
fn failed_import_names_the_file() {
    let bench = Bench::new();
    let path = bench.path("nothing.tar");
    let run = bench.image(&["import", &path]);
    assert_eq!(run.code, Some(1));
    let expected = format!("error: cannot import {path}\n  cannot open {path}\n");
    assert!(run.stderr.starts_with(&expected), "{}", run.stderr);
}

#[test]
#[ignore = "tier: tools"]
fn image_is_pulled_with_a_password() {
    use plimsoll_testkit::registry::{PASSWORD, Registry, USER};
    let bench = Bench::new();
    let registry = Registry::start_with_login();
    let name = registry.push("app", "v1", &Image::new(vec![Layer::gzip(layer())]));
    let denied = bench.image(&["pull", &name]);
    assert_eq!(denied.code, Some(1));
    assert!(denied.stderr.contains("access denied by registry"));
    let data = bench.path("data");
    let login = ["--username", USER, "--password-stdin"];
    let command = [&["image", "pull", "--data-dir", &data, &name], &login[..]];
    let run = plimsoll(&command.concat(), &format!("{PASSWORD}\n"));
    assert!(
        run.stdout.starts_with(&format!("pulled {name} (")),
        "{}",
        run.stderr
    );
}

/// Whenever it is killed, the store is as before or has the image.
#[test]
fn a_killed_import_leaves_nothing_behind() {
    let bench = Bench::new();
    let mut tree = Tree::new();
    for number in 0..300 {
        tree = tree.file(&format!("file-{number}"), 0o644, &[1; 5000]);
    }
    let image = Image::new(vec![Layer::gzip(tree.into_tar())]);
    let archive = bench.file("archive.tar", &image.docker_archive(&["app:1"]));
    let work = bench.folder.path().join("data/images/work");
    for files in [0, 1, 100, 290] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["image", "import", &archive])
            .args(["--data-dir", &bench.path("data")])
            .stdout(Stdio::null())
            .spawn()
            .expect("plimsoll starts");
        while unpacked_files(&work) < files {
            if child.try_wait().expect("a child of ours").is_some() {
                break;
            }
        }
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        let listed = bench.image(&["ls"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        let left = std::fs::read_dir(&work).expect("a directory").count();
        assert_eq!(left, 0, "killed after {files} files");
        bench.image(&["rm", "app:1"]);
    }
    assert_eq!(bench.image(&["import", &archive]).code, Some(0));
    assert!(bench.image(&["ls"]).stdout.contains("app:1"));
}

fn unpacked_files(work: &std::path::Path) -> usize {
    let Ok(workspaces) = std::fs::read_dir(work) else {
        return 0;
    };
    let layers = workspaces
        .flatten()
        .map(|entry| entry.path().join("layer-0/files"));
    let counts = layers.filter_map(|path| Some(std::fs::read_dir(path).ok()?.count()));
    counts.max().unwrap_or(0)
}
