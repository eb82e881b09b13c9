//! `httpd`: static files over HTTP/1.1, one request per connection. Always in the foreground.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::http::read_head;
use crate::options::{Accepted, Options, bytes, path};
use crate::outcome::{Failure, Outcome, shown, warn};
use crate::sys::{self, Disposition};

/// Connections at a time; further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 64;

/// How long a client may take to send its whole request, and to take each piece of the answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Threads call little, and there may be many of them in a small container.
const STACK: usize = 256 << 10;

/// The most entries of a listing.
const MAX_ENTRIES: usize = 10_000;

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "fv",
            valued: "ph",
            ..Accepted::default()
        },
    )?;
    if let Some(extra) = options.operands.first() {
        return Err(Failure::usage(format!(
            "{}: unexpected argument",
            shown(extra)
        )));
    }
    let directory = path(options.value('h').unwrap_or(b"."));
    let root =
        fs::canonicalize(directory).map_err(|error| Failure::on(directory.display(), error))?;
    if !root.is_dir() {
        return Err(Failure::on(root.display(), "not a directory"));
    }
    // A client that leaves must not end the server.
    sys::set_disposition(sys::SIGPIPE, Disposition::Ignore)?;
    let listener = listen(options.text('p')?.unwrap_or("80"))?;
    writeln!(
        output,
        "httpd: serving {} on {}",
        root.display(),
        listener.local_addr()?
    )?;
    output.flush()?;
    serve(
        &listener,
        Site {
            root,
            is_verbose: options.has('v'),
        },
    )
}

/// `PORT` or `ADDRESS:PORT`; without an address, all of both families.
fn listen(text: &str) -> Result<TcpListener, Failure> {
    let wrong = || Failure::usage(format!("-p {text}: not PORT or ADDRESS:PORT"));
    let result = match text.rsplit_once(':') {
        Some((address, port)) => {
            let address: IpAddr = address
                .trim_matches(['[', ']'])
                .parse()
                .map_err(|_| wrong())?;
            TcpListener::bind(SocketAddr::new(address, port.parse().map_err(|_| wrong())?))
        }
        None => {
            let port: u16 = text.parse().map_err(|_| wrong())?;
            TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
        }
    };
    result.map_err(|error| Failure::on(format_args!("port {text}"), error))
}

#[derive(Debug)]
struct Site {
    root: PathBuf,
    is_verbose: bool,
}

/// Counts connections, and waits while there are too many.
#[derive(Default)]
struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

impl Places {
    fn take(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut usize| *taken >= MAX_CONNECTIONS;
        let taken = self.freed.wait_while(taken, is_full);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn free(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.freed.notify_one();
    }
}

fn serve(listener: &TcpListener, site: Site) -> Outcome {
    let site = Arc::new(site);
    let places = Arc::new(Places::default());
    loop {
        places.take();
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The client has left, or descriptors are short for a moment.
                warn("httpd", format_args!("accept: {error}"));
                places.free();
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let (site, own_places) = (Arc::clone(&site), Arc::clone(&places));
        let thread = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || {
                if let Err(error) = answer(&site, stream)
                    && site.is_verbose
                {
                    warn("httpd", error);
                }
                own_places.free();
            });
        if let Err(error) = thread {
            warn("httpd", format_args!("thread: {error}"));
            places.free();
        }
    }
}

/// What a request comes to.
enum Reply {
    File(File, u64, &'static str),
    Page(String),
    /// The location of a directory that was requested without its slash.
    Moved(String),
    Refused(u16, &'static str),
}

/// A request, which has to be complete at a certain time.
struct Request<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for Request<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

fn answer(site: &Site, mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let peer = stream.peer_addr()?;
    let deadline = Instant::now() + TIMEOUT;
    let request = Request {
        stream: &stream,
        deadline,
    };
    let head = match read_head(&mut BufReader::new(request)) {
        Ok(head) => head,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let reply = Reply::Refused(400, "Bad Request");
            return send(reply, false, &mut stream).map(drop);
        }
        Err(error) => return Err(error),
    };
    let mut words = head.first.split(' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let reply = match method {
        "GET" | "HEAD" => site.find(target),
        _ => Reply::Refused(405, "Method Not Allowed"),
    };
    let code = send(reply, method == "HEAD", &mut stream)?;
    if site.is_verbose {
        let mut output = io::stdout().lock();
        writeln!(
            output,
            "{} {method} {} {code}",
            peer.ip(),
            target.escape_default()
        )?;
    }
    Ok(())
}

impl Site {
    fn find(&self, target: &str) -> Reply {
        let target = target.split(['?', '#']).next().unwrap_or_default();
        let refused = Reply::Refused(404, "Not Found");
        let Some(name) = decode(target).filter(|name| is_safe(name)) else {
            return Reply::Refused(400, "Bad Request");
        };
        let inside = name
            .iter()
            .position(|byte| *byte != b'/')
            .and_then(|start| name.get(start..));
        let file = self.root.join(path(inside.unwrap_or_default()));
        // Links inside of the directory are followed, but not out of it.
        let Ok(file) = fs::canonicalize(file) else {
            return refused;
        };
        if !file.starts_with(&self.root) {
            return refused;
        }
        if !file.is_dir() {
            return open(&file).unwrap_or(refused);
        }
        if !name.ends_with(b"/") {
            return Reply::Moved(format!("{target}/"));
        }
        let index = fs::canonicalize(file.join("index.html"));
        if let Ok(index) = index
            && index.starts_with(&self.root)
        {
            return open(&index).unwrap_or(refused);
        }
        match listing(&file, &name) {
            Ok(page) => Reply::Page(page),
            Err(_) => Reply::Refused(403, "Forbidden"),
        }
    }
}

fn open(file: &Path) -> Option<Reply> {
    // Opening a pipe would wait for a writer.
    let found = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    match File::open(file) {
        Ok(open) => Some(Reply::File(open, found.len(), content_type(file))),
        Err(_) => Some(Reply::Refused(403, "Forbidden")),
    }
}

/// The bytes that `%41` and the like stand for.
fn decode(target: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let mut rest = target.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after.get(2..)?;
    }
    Some(decoded)
}

fn is_safe(name: &[u8]) -> bool {
    name.starts_with(b"/")
        && !name.contains(&0)
        && !name.split(|byte| *byte == b'/').any(|part| part == b"..")
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("txt" | "md" | "log" | "yaml" | "yml") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        _ => "application/octet-stream",
    }
}

fn listing(directory: &Path, name: &[u8]) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let mut name = bytes(Path::new(&entry.file_name())).to_vec();
        if entry.file_type()?.is_dir() {
            name.push(b'/');
        }
        names.push(name);
    }
    names.sort();
    let title = escape(&shown(name));
    let mut page = format!("<!DOCTYPE html>\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>\n");
    for name in names {
        let mut link = String::new();
        for byte in &name {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) {
                link.push(char::from(*byte));
            } else {
                link.push_str(&format!("%{byte:02X}"));
            }
        }
        page.push_str(&format!(
            "<li><a href=\"./{link}\">{}</a>\n",
            escape(&shown(&name))
        ));
    }
    page.push_str("</ul>\n");
    Ok(page)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Sends a reply and returns its code.
fn send(reply: Reply, is_head: bool, stream: &mut TcpStream) -> io::Result<u16> {
    let (code, reason, kind, length, extra) = match &reply {
        Reply::File(_, length, kind) => (200, "OK", *kind, *length, String::new()),
        Reply::Page(page) => (
            200,
            "OK",
            "text/html; charset=utf-8",
            length(page),
            String::new(),
        ),
        Reply::Moved(location) => (
            301,
            "Moved Permanently",
            "text/plain",
            0,
            format!("Location: {location}\r\n"),
        ),
        Reply::Refused(code, reason) => {
            let allow = if *code == 405 {
                "Allow: GET, HEAD\r\n"
            } else {
                ""
            };
            (
                *code,
                *reason,
                "text/plain",
                length(reason) + 1,
                allow.to_owned(),
            )
        }
    };
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{extra}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if is_head {
        return Ok(code);
    }
    match reply {
        // Not more than announced, though the file may be growing.
        Reply::File(file, length, _) => drop(io::copy(&mut file.take(length), stream)?),
        Reply::Page(page) => stream.write_all(page.as_bytes())?,
        Reply::Moved(_) => {}
        Reply::Refused(_, reason) => stream.write_all(format!("{reason}\n").as_bytes())?,
    }
    stream.flush()?;
    Ok(code)
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_of_the_directory() {
        for (target, expected) in [
            ("/a%20b", Some(b"/a b".as_slice())),
            ("/%e4", Some(b"/\xe4")),
            ("/a/../b", None),
            ("/%2e%2e/b", None),
            ("/..", None),
            ("/a..b", Some(b"/a..b")),
            ("a", None),
            ("", None),
            ("/%", None),
            ("/%+1", None),
            ("/%00", None),
        ] {
            let found = decode(target).filter(|name| is_safe(name));
            assert_eq!(found.as_deref(), expected, "{target}");
        }
    }
}
