//! `tar`: what it writes other tars read, and what they write it reads; hostile archives.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::toolbox::{Toolbox, output, write};

/// Files of every kind that is kept, with a name too long for a header.
fn fill(folder: &Path) {
    write(&folder.join("f"), "text");
    write(&folder.join("large"), "x".repeat(100_000));
    write(&folder.join("empty"), "");
    write(&folder.join("n".repeat(120)).join("m".repeat(120)), "deep");
    std::fs::set_permissions(folder.join("f"), std::fs::Permissions::from_mode(0o751)).unwrap();
    symlink("t".repeat(150), folder.join("link")).unwrap();
    std::fs::hard_link(folder.join("f"), folder.join("hard")).unwrap();
    std::fs::create_dir(folder.join("void")).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_234_567_890);
    let file = std::fs::File::options()
        .write(true)
        .open(folder.join("f"))
        .unwrap();
    file.set_modified(time).unwrap();
}

fn check(folder: &Path) {
    assert_eq!(std::fs::read_to_string(folder.join("f")).unwrap(), "text");
    assert_eq!(
        std::fs::metadata(folder.join("large")).unwrap().len(),
        100_000
    );
    let deep = folder.join("n".repeat(120)).join("m".repeat(120));
    assert_eq!(std::fs::read_to_string(deep).unwrap(), "deep");
    assert_eq!(
        std::fs::read_link(folder.join("link"))
            .unwrap()
            .as_os_str()
            .len(),
        150
    );
    let (file, hard) = (
        std::fs::metadata(folder.join("f")).unwrap(),
        std::fs::metadata(folder.join("hard")).unwrap(),
    );
    assert_eq!(file.ino(), hard.ino());
    assert_eq!((file.mode() & 0o777, file.mtime()), (0o751, 1_234_567_890));
    assert!(folder.join("void").is_dir() && folder.join("empty").is_file());
}

fn system_tar(work: &Path, args: &[&str]) -> Vec<u8> {
    let output = output(Command::new("tar").args(args).current_dir(work), b"");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn archives_are_compatible_with_the_system_tar() {
    let toolbox = Toolbox::new();
    let work = toolbox.work();
    fill(&work.join("tree"));
    toolbox.print(&["mkdir", "theirs", "ours", "pax", "piped"]);
    toolbox.print(&["tar", "cf", "own.tar", "tree"]);
    system_tar(&work, &["xpf", "own.tar", "-C", "theirs"]);
    check(&work.join("theirs/tree"));
    for format in ["gnu", "pax"] {
        system_tar(&work, &["--format", format, "-cf", "other.tar", "tree"]);
        let target = if format == "gnu" { "ours" } else { "pax" };
        toolbox.print(&["tar", "-xpf", "other.tar", "-C", target]);
        check(&work.join(target).join("tree"));
    }
    let archive = toolbox.run(&["tar", "cf", "-", "tree"]).stdout;
    let mut command = toolbox.command("tar");
    let output = output(command.args(["xmf", "-", "-C", "piped"]), &archive);
    assert!(output.status.success());
    assert_eq!(
        std::fs::read_to_string(work.join("piped/tree/f")).unwrap(),
        "text"
    );
    assert!(
        std::fs::metadata(work.join("piped/tree/f"))
            .unwrap()
            .mtime()
            > 1_300_000_000
    );
    let listed = toolbox.print(&["tar", "tf", "own.tar"]);
    let theirs = String::from_utf8(system_tar(&work, &["tf", "own.tar"])).unwrap();
    assert_eq!(listed, theirs);
}

#[test]
fn unpacks_with_the_flags_of_kubectl_cp() {
    let toolbox = Toolbox::new();
    let work = toolbox.work();
    write(&work.join("src/a/b"), "x");
    let archive = toolbox.run(&["tar", "cf", "-", "src/a"]).stdout;
    toolbox.print(&["mkdir", "one", "two"]);
    for args in [
        vec![
            "--no-same-permissions",
            "--no-same-owner",
            "-xmf",
            "-",
            "-C",
            "one",
        ],
        vec!["-xmf", "-", "-C", "two", "--strip-components", "2"],
    ] {
        let output = output(toolbox.command("tar").args(&args), &archive);
        assert!(output.status.success(), "{args:?}");
    }
    assert!(work.join("one/src/a/b").is_file() && work.join("two/b").is_file());
    // Only a part of the archive.
    let output = output(
        toolbox.command("tar").args(["tf", "-", "src/a/b"]),
        &archive,
    );
    assert_eq!(output.stdout, b"src/a/b\n");
}

#[test]
fn absolute_names_lose_their_slash() {
    let toolbox = Toolbox::new();
    let file = toolbox.work().join("f");
    write(&file, "x");
    let absolute = file.to_str().unwrap();
    toolbox.print(&["tar", "cf", "a.tar", absolute]);
    assert_eq!(
        toolbox.print(&["tar", "tf", "a.tar"]),
        format!("{}\n", &absolute[1..])
    );
}

/// One header, with a checksum, and data.
fn entry(name: &str, kind: u8, target: &str, data: &str) -> Vec<u8> {
    let mut block = vec![0_u8; 512];
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", data.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(157, target);
    put(257, "ustar\x0000");
    block[156] = kind;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend(data.as_bytes());
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

#[test]
fn nothing_is_written_outside_of_the_directory() {
    let toolbox = Toolbox::new();
    let work = toolbox.work();
    let outside = work.join("outside");
    for (case, entries) in [
        ("..", vec![entry("../outside/x", b'0', "", "evil")]),
        (
            "inner ..",
            vec![entry("a/../../outside/x", b'0', "", "evil")],
        ),
        (
            "absolute",
            vec![entry(outside.join("x").to_str().unwrap(), b'0', "", "evil")],
        ),
        (
            "link",
            vec![
                entry("l", b'2', "../outside", ""),
                entry("l/x", b'0', "", "evil"),
            ],
        ),
        (
            "link to link",
            vec![
                entry("l", b'2', "..", ""),
                entry("m", b'2', "l/outside", ""),
                entry("m/x", b'0', "", "evil"),
            ],
        ),
        (
            "link as directory",
            vec![
                entry("l", b'2', "../outside", ""),
                entry("l/", b'5', "", ""),
                entry("l/x", b'0', "", "evil"),
            ],
        ),
        (
            "link over file",
            vec![
                entry("l", b'2', "../outside/x", ""),
                entry("l", b'0', "", "evil"),
            ],
        ),
        (
            "hard link",
            vec![
                entry("h", b'1', "../outside/old", ""),
                entry("h", b'0', "", "evil"),
            ],
        ),
        (
            "hard link through link",
            vec![
                entry("l", b'2', "../outside", ""),
                entry("h", b'1', "l/old", ""),
            ],
        ),
    ] {
        toolbox.print(&["rm", "-rf", "in", "outside"]);
        toolbox.print(&["mkdir", "in", "outside"]);
        write(&outside.join("old"), "old");
        let archive = entries.concat();
        let output = output(
            toolbox.command("tar").args(["xf", "-", "-C", "in"]),
            &archive,
        );
        let is_replaced = case == "link over file";
        assert_eq!(output.status.success(), is_replaced, "{case}");
        assert!(!outside.join("x").exists(), "{case}");
        assert_eq!(
            std::fs::read_to_string(outside.join("old")).unwrap(),
            "old",
            "{case}"
        );
        assert_eq!(
            std::fs::metadata(outside.join("old")).unwrap().nlink(),
            1,
            "{case}"
        );
    }
    // A link that was there before may be used.
    toolbox.print(&["rm", "-rf", "in"]);
    toolbox.print(&["mkdir", "in", "in/real"]);
    symlink("real", work.join("in/was")).unwrap();
    let archive = entry("was/x", b'0', "", "good");
    assert!(
        output(
            toolbox.command("tar").args(["xf", "-", "-C", "in"]),
            &archive
        )
        .status
        .success()
    );
    assert!(work.join("in/real/x").is_file());
}

#[test]
fn damaged_archives_are_errors() {
    let toolbox = Toolbox::new();
    let whole = entry("f", b'0', "", &"x".repeat(1000));
    for (archive, is_fine) in [
        (&whole[..], true),
        (&whole[..700], false),
        (&b"x".repeat(600)[..], false),
    ] {
        let result = output(toolbox.command("tar").args(["xf", "-"]), archive);
        assert_eq!(result.status.success(), is_fine);
    }
    assert_eq!(toolbox.run(&["tar", "xf", "none"]).status.code(), Some(1));
    assert_eq!(toolbox.run(&["tar", "f", "x"]).status.code(), Some(2));
}
