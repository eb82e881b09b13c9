//! Paths of the node itself.
//!
//! Matches v1.36 pkg/volume/hostpath: nothing is mounted, only checked or made.

use std::fs::{self, File, FileType};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt, OpenOptionsExt as _};
use std::path::Path;

use super::SetUpError;

/// Checks that the path is what the pod says, making it where the pod says so.
pub fn check(path: &str, kind: &str) -> Result<(), SetUpError> {
    if path.split('/').any(|part| part == "..") {
        return Err(SetUpError::HostPathBacksteps(path.to_owned()));
    }
    let (wanted, is_wanted): (&'static str, fn(&FileType) -> bool) = match kind {
        "" => return Ok(()),
        "Directory" | "DirectoryOrCreate" => ("directory", FileType::is_dir),
        "File" | "FileOrCreate" => ("file", FileType::is_file),
        "Socket" => ("socket file", FileTypeExt::is_socket),
        "CharDevice" => ("character device", FileTypeExt::is_char_device),
        "BlockDevice" => ("block device", FileTypeExt::is_block_device),
        other => return Err(SetUpError::UnknownHostPathType(other.to_owned())),
    };
    let found = fs::metadata(path);
    let written = SetUpError::write(path);
    match (kind, &found) {
        ("DirectoryOrCreate", Err(_)) => {
            let mut builder = fs::DirBuilder::new();
            return builder
                .recursive(true)
                .mode(0o755)
                .create(path)
                .map_err(written);
        }
        ("FileOrCreate", Err(_)) => return make_file(Path::new(path)).map_err(written),
        _ => {}
    }
    match found {
        Ok(metadata) if is_wanted(&metadata.file_type()) => Ok(()),
        _ => Err(SetUpError::HostPathType {
            path: path.to_owned(),
            wanted,
        }),
    }
}

/// Its directory must be there already.
fn make_file(path: &Path) -> std::io::Result<()> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false);
    options.mode(0o644).open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn host_path_must_match_its_type() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("file"), "").unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let (directory, file, socket) = (at(""), at("file"), at("socket"));
        for (path, kind, want) in [
            (&directory, "Directory", None),
            (&file, "Directory", Some("directory")),
            (&file, "File", None),
            (&directory, "FileOrCreate", Some("file")),
            (&file, "DirectoryOrCreate", Some("directory")),
            (&socket, "Socket", None),
            (&file, "Socket", Some("socket file")),
            (&"/dev/null".to_owned(), "CharDevice", None),
            (&file, "CharDevice", Some("character device")),
            (&file, "BlockDevice", Some("block device")),
            (&at("missing"), "File", Some("file")),
            (&at("missing"), "", None),
        ] {
            let got = check(path, kind).map_err(|error| error.to_string());
            let want = want.map(|is| format!("hostPath type check failed: {path} is not a {is}"));
            assert_eq!(got.err(), want, "{path} {kind}");
        }
        assert_eq!(
            check(&file, "Tape").unwrap_err().to_string(),
            "Tape is an invalid volume type"
        );
        assert_eq!(
            check("/a/../b", "").unwrap_err().to_string(),
            "invalid HostPath `/a/../b`: must not contain '..'"
        );
    }

    #[test]
    fn host_path_or_create_types_create_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        check(&at("a/b"), "DirectoryOrCreate").unwrap();
        assert!(Path::new(&at("a/b")).is_dir());
        check(&at("a/file"), "FileOrCreate").unwrap();
        assert!(Path::new(&at("a/file")).is_file());
        check(&at("missing/file"), "FileOrCreate").unwrap_err();
    }
}
