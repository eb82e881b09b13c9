//! `/logs/`: the node's own log folder.
//!
//! As Go's file server, which upstream uses, except that nothing outside the folder is shown: a pod
//! that may write into the folder could else have the agent read any file for it by a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use futures::StreamExt;
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode};
use plimsoll_runtime::beneath::{self, Opened};
use rustix::fs::{Dir, FileType};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::answer;
use super::body::{self, Body};

/// Names in one listing.
const MAX_NAMES: usize = 10_000;

/// Something in the log folder.
enum Found {
    File(File, u64),
    /// Names; those of folders end with a slash.
    Folder(Vec<String>),
}

/// A file or folder below `root`. `ends_open` is whether the address ends with a slash, as those of
/// folders do.
pub(super) async fn show(root: &Path, below: &str, ends_open: bool) -> Response<Body> {
    let (root, path) = (root.to_owned(), below.to_owned());
    let found = tokio::task::spawn_blocking(move || find(&root, &path)).await;
    match found.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(Found::Folder(_)) if !ends_open => {
            let last = below.rsplit('/').next().unwrap_or_default();
            redirect(&format!("{}/", if last.is_empty() { "logs" } else { last }))
        }
        Ok(Found::Folder(names)) => listing(&names),
        Ok(Found::File(file, length)) => {
            // What is written from now on is for the next reader.
            let file = tokio::fs::File::from_std(file).take(length);
            let pieces = ReaderStream::new(file);
            let pieces = pieces.take_while(|piece| std::future::ready(piece.is_ok()));
            let pieces = pieces.filter_map(|piece| std::future::ready(piece.ok()));
            answer::streamed(body::stream(pieces))
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            answer::error(StatusCode::FORBIDDEN, "403 Forbidden")
        }
        Err(_) => answer::no_such_page(),
    }
}

fn find(root: &Path, below: &str) -> io::Result<Found> {
    match beneath::open(root, Path::new(below))? {
        Opened::File(file, length) => Ok(Found::File(file, length)),
        Opened::Directory(folder) => names(&folder).map(Found::Folder),
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)?.take(MAX_NAMES) {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let name = name.to_string_lossy();
        if name == "." || name == ".." {
            continue;
        }
        let is_folder = entry.file_type() == FileType::Directory;
        names.push(format!("{name}{}", if is_folder { "/" } else { "" }));
    }
    names.sort_unstable();
    Ok(names)
}

fn listing(names: &[String]) -> Response<Body> {
    let mut page = String::from(
        "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n",
    );
    for name in names {
        let (address, name) = (escape_address(name), escape_text(name));
        page.push_str(&format!("<a href=\"{address}\">{name}</a>\n"));
    }
    page.push_str("</pre>\n");
    answer::html(page)
}

fn redirect(to: &str) -> Response<Body> {
    let mut answer = answer::bare(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::from_str(&escape_address(to)) {
        Ok(to) => {
            answer.headers_mut().insert(LOCATION, to);
            answer
        }
        Err(_) => answer::no_such_page(),
    }
}

/// Everything but what is plain in a relative address. A colon would make the start of a name look
/// like a scheme.
fn escape_address(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                escaped.push(char::from(byte));
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

fn escape_text(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            plain => escaped.push(plain),
        }
    }
    escaped
}
