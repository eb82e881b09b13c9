//! The image that is part of the program, so that pods run on a machine that reaches no registry.
//!
//! It holds one static program with many names, and the few files that programs expect.

use std::io::{self, Write};

use super::catalogue::Record;
use super::configuration::Start;
use super::file::{Doing, Error as FileError};
use super::import::{Error, Options, Source};
use super::reference::Reference;
use super::store::Store;

/// The name of the image. A pod that leaves out the tag means this one.
pub const NAME: &str = "plimsoll.dev/demo:latest";

/// Where the program lies in the image; its other names are links to it.
const PROGRAM: &str = "bin/plimsoll-toolbox";

const FILES: [(&str, &str); 3] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("etc/group", "root:x:0:\nnobody:x:65534:\n"),
    ("etc/nsswitch.conf", "hosts: files dns\n"),
];

/// What the image is made of.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinImage {
    /// A static program that does what its file name says.
    pub program: &'static [u8],
    /// The names that it understands, one per line.
    pub names: &'static str,
}

impl BuiltinImage {
    /// The root file system as a tar, always the same for the same program.
    fn root_file_system(&self) -> io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, mode) in [
            ("bin", 0o755),
            ("etc", 0o755),
            ("root", 0o700),
            ("tmp", 0o1777),
            ("var", 0o755),
            ("var/www", 0o755),
        ] {
            let mut header = header(tar::EntryType::Directory, mode, 0);
            tar.append_data(&mut header, path, io::empty())?;
        }
        let size = |bytes: &[u8]| bytes.len() as u64;
        let mut of_program = header(tar::EntryType::Regular, 0o755, size(self.program));
        tar.append_data(&mut of_program, PROGRAM, self.program)?;
        for (path, text) in FILES {
            let mut of_file = header(tar::EntryType::Regular, 0o644, size(text.as_bytes()));
            tar.append_data(&mut of_file, path, text.as_bytes())?;
        }
        for name in self.names.lines() {
            let mut of_link = header(tar::EntryType::Symlink, 0o777, 0);
            tar.append_link(&mut of_link, format!("bin/{name}"), "plimsoll-toolbox")?;
        }
        tar.into_inner()
    }
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header
}

/// Whether an image is the one that is part of the program. No registry has it.
pub(super) fn is_builtin(name: &Reference) -> bool {
    name.to_string() == NAME
}

impl Store {
    /// Puts the built-in image into the store, in place of the one of another release.
    pub fn install_builtin(&self, image: &BuiltinImage) -> Result<Record, Error> {
        let name: Reference = NAME.parse().expect("a test parses the name");
        let before = self.catalogue()?.by_name(&name).map(|record| record.id);
        let directory = self.temporary()?;
        let path = directory.path("root.tar");
        let write = || -> io::Result<()> {
            std::fs::File::create(&path)?.write_all(&image.root_file_system()?)
        };
        write().doing("write", &path)?;
        let options = Options {
            name: Some(name),
            start: Start {
                cmd: Some(vec!["sh".to_owned()]),
                ..Start::default()
            },
            pinned: true,
        };
        let mut records = self.import(&Source::Path(path), &options)?;
        let record = records.pop().ok_or(Error::Empty)?;
        if let Some(before) = before.filter(|before| *before != record.id) {
            self.remove(&before)?;
        }
        Ok(record)
    }

    fn temporary(&self) -> Result<super::workspace::Workspace, FileError> {
        self.workspace(&std::collections::BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(program: &'static [u8]) -> BuiltinImage {
        BuiltinImage {
            program,
            names: "cat\nls\nsh\n",
        }
    }

    #[test]
    fn the_name_has_a_tag() {
        let name: Reference = "plimsoll.dev/demo".parse().unwrap();
        assert!(is_builtin(&name));
        assert!(!is_builtin(&"plimsoll.dev/demo:1".parse().unwrap()));
    }

    #[test]
    fn installs_the_same_image_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let first = store.install_builtin(&image(b"one")).unwrap();
        let second = store.install_builtin(&image(b"one")).unwrap();
        assert_eq!(first, second);
        assert!(first.pinned);
        assert_eq!(store.catalogue().unwrap().images().len(), 1);
    }

    #[test]
    fn replaces_the_image_of_another_release() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let old = store.install_builtin(&image(b"one")).unwrap();
        let new = store.install_builtin(&image(b"two")).unwrap();
        assert_ne!(old.id, new.id);
        let catalogue = store.catalogue().unwrap();
        assert_eq!(catalogue.find(NAME).unwrap().id, new.id);
        assert_eq!(catalogue.images().len(), 1);
    }
}
