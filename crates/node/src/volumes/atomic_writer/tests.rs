use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn payload(files: &[(&str, &str)]) -> Payload {
    let files = files.iter();
    files
        .map(|(path, text)| {
            let content = FileContent {
                data: text.as_bytes().to_vec(),
                mode: 0o644,
                owner: None,
            };
            ((*path).to_owned(), content)
        })
        .collect()
}

fn write_now(dir: &Path, payload: &Payload) -> Result<bool, SetUpError> {
    write(
        dir,
        payload,
        Timestamp::from_secs(1_770_000_000),
        |_| Ok(()),
    )
}

/// Every file that a container would find, by its path, and the texts.
fn visible(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut unread = vec![(String::new(), dir.to_owned())];
    while let Some((prefix, dir)) = unread.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if prefix.is_empty() && name.starts_with("..") {
                continue;
            }
            let path = format!("{prefix}{name}");
            match fs::metadata(entry.path()).unwrap().is_dir() {
                true => unread.push((format!("{path}/"), entry.path())),
                false => drop(found.insert(path, fs::read_to_string(entry.path()).unwrap())),
            }
        }
    }
    found
}

fn check(dir: &Path, files: &[(&str, &str)]) {
    let want = files.iter();
    let want = want.map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    assert_eq!(visible(dir), want.collect());
}

fn hidden(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("..")).collect()
}

#[test]
fn files_are_links_into_a_version_that_is_replaced_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let first = [("a", "1"), ("deep/b", "2"), ("deep/er/c", "3")];
    assert!(write_now(dir, &payload(&first)).unwrap());
    check(dir, &first);
    assert_eq!(fs::read_link(dir.join("a")).unwrap(), Path::new("..data/a"));
    assert_eq!(
        fs::read_link(dir.join("deep")).unwrap(),
        Path::new("..data/deep")
    );
    let version = fs::read_link(dir.join(DATA)).unwrap();
    let version = version.to_str().unwrap();
    assert!(version.starts_with("..2026_02_02_02_40_00."), "{version}");

    let second = [("a", "changed"), ("deep/b", "2"), ("new", "4")];
    assert!(write_now(dir, &payload(&second)).unwrap());
    check(dir, &second);
    assert_eq!(hidden(dir).len(), 2, "one version and its link");
    assert!(!dir.join(version).exists());
}

#[test]
fn writing_the_same_files_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let files = payload(&[("a", "1")]);
    write_now(dir.path(), &files).unwrap();
    let version = fs::read_link(dir.path().join(DATA)).unwrap();
    assert!(!write_now(dir.path(), &files).unwrap());
    assert_eq!(fs::read_link(dir.path().join(DATA)).unwrap(), version);
    fs::remove_file(dir.path().join("a")).unwrap();
    assert!(!write_now(dir.path(), &files).unwrap());
    check(dir.path(), &[("a", "1")]);
}

#[test]
fn a_file_may_become_a_directory_and_back() {
    let dir = tempfile::tempdir().unwrap();
    for files in [[("x", "1")], [("x/y", "2")], [("x/y/z", "3")], [("x", "4")]] {
        write_now(dir.path(), &payload(&files)).unwrap();
        check(dir.path(), &files);
    }
}

#[test]
fn write_succeeds_after_an_interrupted_write() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_now(dir, &payload(&[("a", "1")])).unwrap();
    symlink("..nowhere", dir.join(NEW_DATA)).unwrap();
    write_now(dir, &payload(&[("a", "2")])).unwrap();
    check(dir, &[("a", "2")]);
    let version = fs::read_link(dir.join(DATA)).unwrap();
    fs::remove_dir_all(dir.join(version)).unwrap();
    write_now(dir, &payload(&[("a", "2")])).unwrap();
    check(dir, &[("a", "2")]);
}

#[test]
fn a_failure_before_publishing_leaves_the_old_version() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_now(dir, &payload(&[("a", "1")])).unwrap();
    let failed = write(dir, &payload(&[("a", "2")]), Timestamp::default(), |_| {
        Err(io::Error::other("no"))
    });
    assert!(failed.is_err());
    check(dir, &[("a", "1")]);
    assert_eq!(hidden(dir).len(), 2);
}

#[test]
fn ownership_is_set_before_new_files_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    write_now(dir.path(), &payload(&[("a", "1")])).unwrap();
    let new = payload(&[("a", "2")]);
    write(dir.path(), &new, Timestamp::default(), |dir| {
        check(dir, &[("a", "1")]);
        assert_eq!(hidden(dir).len(), 3);
        Ok(())
    })
    .unwrap();
    check(dir.path(), &[("a", "2")]);
}

#[test]
fn file_modes_ignore_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = payload(&[("a", "1"), ("b", "2")]);
    files.get_mut("a").unwrap().mode = 0o400;
    files.get_mut("b").unwrap().mode = 0o666;
    write_now(dir.path(), &files).unwrap();
    let mode = |name: &str| {
        let metadata = fs::metadata(dir.path().join(name)).unwrap();
        metadata.permissions().mode() & 0o7777
    };
    assert_eq!((mode("a"), mode("b"), mode(DATA)), (0o400, 0o666, 0o755));
}

#[test]
fn paths_cannot_leave_the_volume_or_use_reserved_names() {
    let long_name = "x".repeat(256);
    let long_path = "x/".repeat(2049);
    for (path, want) in [
        ("", "must not be empty: \"\""),
        ("/a", "must be relative path: /a"),
        ("a/../b", "must not contain '..': a/../b"),
        ("..", "must not contain '..': .."),
        ("..a", "must not start with '..': ..a"),
        ("./..data", "must not start with '..': ./..data"),
        (".", "must name a file: ."),
        (
            &long_name,
            "filenames must be less than or equal to 255 characters",
        ),
        (&long_path, "must be less than or equal to 4096 characters"),
    ] {
        let error = clean_path(path).unwrap_err();
        assert_eq!(error.to_string(), format!("invalid path: {want}"));
    }
    for (path, want) in [
        ("a", "a"),
        ("a//b/./c", "a/b/c"),
        ("a/..b", "a/..b"),
        (".a", ".a"),
    ] {
        assert_eq!(clean_path(path).unwrap(), want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is written after whatever, a container sees just the last files.
    #[test]
    fn only_the_last_version_is_visible(
        versions in prop::collection::vec(
            prop::collection::btree_map("[ab]/[cd]|[ef]|[ab]/g/h", "[xy]{0,2}", 0..5),
            1..5,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        for version in versions {
            let files: Vec<(&str, &str)> = version
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str()))
                .collect();
            write_now(dir.path(), &payload(&files)).unwrap();
            prop_assert_eq!(visible(dir.path()), version);
            prop_assert_eq!(hidden(dir.path()).len(), 2);
        }
    }
}
