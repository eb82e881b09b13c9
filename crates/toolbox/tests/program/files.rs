//! Applets about files.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::toolbox::{Toolbox, write};

#[test]
fn files_are_made_copied_moved_and_removed() {
    let toolbox = Toolbox::new();
    let work = toolbox.work();
    toolbox.print(&["mkdir", "-p", "a/b/c"]);
    write(&work.join("a/b/f"), "text");
    toolbox.print(&["chmod", "u=rwx,go=", "a/b/f"]);
    toolbox.print(&["ln", "-s", "f", "a/b/l"]);
    toolbox.print(&["cp", "-r", "a", "copy"]);
    assert_eq!(
        std::fs::read_to_string(work.join("copy/b/l")).unwrap(),
        "text"
    );
    assert_eq!(toolbox.print(&["readlink", "copy/b/l"]), "f\n");
    let mode = std::fs::metadata(work.join("copy/b/f"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    toolbox.print(&["mv", "copy/b/f", "copy/c"]);
    toolbox.print(&["touch", "a/new"]);
    assert_eq!(
        toolbox.print(&["ls", "a", "copy"]),
        "a:\nb\nnew\n\ncopy:\nb\nc\n"
    );
    toolbox.print(&["rm", "-rf", "a", "copy", "none"]);
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
    assert_eq!(toolbox.run(&["rm", "none"]).status.code(), Some(1));
    assert_eq!(toolbox.run(&["rm", "-r", ".."]).status.code(), Some(2));
}

#[test]
fn a_directory_is_not_copied_into_itself() {
    let toolbox = Toolbox::new();
    toolbox.print(&["mkdir", "a"]);
    assert_eq!(toolbox.run(&["cp", "-r", "a", "a"]).status.code(), Some(1));
    assert_eq!(toolbox.run(&["cp", "a", "b"]).status.code(), Some(1));
    write(&toolbox.work().join("f"), "x");
    assert_eq!(toolbox.run(&["cp", "f", "f"]).status.code(), Some(1));
    assert_eq!(toolbox.print(&["cat", "f"]), "x");
}

#[test]
fn ls_shows_attributes() {
    let toolbox = Toolbox::new();
    write(&toolbox.work().join("f"), "x".repeat(2048));
    toolbox.print(&["chmod", "640", "f"]);
    toolbox.print(&["ln", "-s", "f", "l"]);
    toolbox.print(&["touch", ".hidden"]);
    let text = toolbox.print(&["ls", "-lh"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("total "), "{text}");
    assert!(
        lines[1].starts_with("-rw-r----- 1 ")
            && lines[1].contains(" 2.0K ")
            && lines[1].ends_with(" f"),
        "{text}"
    );
    assert!(
        lines[2].starts_with("lrwxrwxrwx 1 ") && lines[2].ends_with(" l -> f"),
        "{text}"
    );
    assert_eq!(toolbox.print(&["ls", "-a"]), ".\n..\n.hidden\nf\nl\n");
    assert_eq!(toolbox.print(&["ls", "-d", "."]), ".\n");
    assert_eq!(toolbox.run(&["ls", "none", "f"]).status.code(), Some(1));
}

#[test]
fn dd_fills_files() {
    let toolbox = Toolbox::new();
    toolbox.print(&["dd", "if=/dev/zero", "of=f", "bs=64k", "count=3"]);
    assert_eq!(
        std::fs::metadata(toolbox.work().join("f")).unwrap().len(),
        3 << 16
    );
    let output = toolbox.pipe(
        &["dd", "bs=2", "skip=1", "count=2", "status=none"],
        "abcdefgh",
    );
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (b"cdef".as_slice(), b"".as_slice())
    );
    for wrong in ["bs=0", "bs=4x", "what=1", "count", "conv=ucase"] {
        assert_eq!(
            toolbox.run(&["dd", wrong]).status.code(),
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn space_is_measured() {
    let toolbox = Toolbox::new();
    toolbox.print(&["dd", "if=/dev/urandom", "of=d", "bs=1M", "count=1"]);
    toolbox.print(&["ln", "d", "same"]);
    let text = toolbox.print(&["du", "-s", "."]);
    let size: u64 = text.split('\t').next().unwrap().parse().unwrap();
    assert!((1024..1100).contains(&size), "{text}");
    let text = toolbox.print(&["df", "-h", "."]);
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn stat_has_formats() {
    let toolbox = Toolbox::new();
    write(&toolbox.work().join("f"), "abc");
    let found = std::fs::metadata(toolbox.work().join("f")).unwrap();
    let expected = format!("f 3 {} {}\n", found.ino(), found.mtime());
    assert_eq!(toolbox.print(&["stat", "-c", "%n %s %i %Y", "f"]), expected);
    assert!(toolbox.print(&["stat", "f"]).contains("regular file"));
    assert_eq!(
        toolbox.run(&["stat", "-c", "%Q", "f"]).status.code(),
        Some(2)
    );
}
