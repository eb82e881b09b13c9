//! `wget`: HTTP only. Exit statuses are GNU wget's: 3 for files, 4 for the network, 7 for what is not
//! HTTP, 8 for an answer that is an error.

use std::fs::OpenOptions;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::http::{Chunks, Head, read_head};
use super::resolve::resolve;
use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};

const FILE_FAILED: u8 = 3;
const NETWORK_FAILED: u8 = 4;
const PROTOCOL_FAILED: u8 = 7;
const SERVER_FAILED: u8 = 8;

const MAX_REDIRECTS: usize = 20;

/// GNU wget's.
const DEFAULT_TIMEOUT: u64 = 900;

/// The error, and its exit status.
type Failed = (u8, String);

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "qSs",
        valued: "OTHP",
        long: &[
            ("quiet", 'q'),
            ("server-response", 'S'),
            ("spider", 's'),
            ("output-document", 'O'),
            ("timeout", 'T'),
            ("header", 'H'),
            ("post-data", 'P'),
        ],
        ..Accepted::default()
    };
    let options = Options::parse(args, accepted)?;
    let seconds = options.number('T')?.unwrap_or(DEFAULT_TIMEOUT);
    let mut headers = Vec::new();
    for header in options.values('H') {
        let text = std::str::from_utf8(header).ok().filter(|text| {
            text.split_once(':')
                .is_some_and(|(name, _)| !name.trim().is_empty())
                && !text.contains(['\r', '\n'])
        });
        let text = text.ok_or_else(|| {
            Failure::usage(format!("{}: not of the form NAME: VALUE", shown(header)))
        })?;
        headers.push(text.to_owned());
    }
    let fetch = Fetch {
        options: &options,
        headers,
        timeout: (seconds > 0).then(|| Duration::from_secs(seconds)),
    };
    let mut status = 0;
    for text in options.some_operands("URL")? {
        let url = Url::parse(&shown(text)).map_err(Failure::Usage)?;
        if let Err((failed, message)) = fetch.url(url, output) {
            warn("wget", message);
            status = failed;
        }
    }
    Ok(status)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Url {
    host: String,
    port: u16,
    /// With the query, beginning with a slash.
    path: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => {
                return Err(format!("{text}: {scheme} is not supported, only http"));
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(format!(
                "{text}: users and passwords in addresses are not supported"
            ));
        }
        let wrong = || format!("{text}: not an address such as http://HOST:PORT/PATH");
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
                (host, port.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = port.map_or(Ok(80), str::parse).map_err(|_| wrong())?;
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        if host.is_empty() || text.contains(|c: char| c.is_control() || c == ' ') {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            path,
        })
    }

    /// Where a redirect leads.
    fn join(&self, location: &str) -> Result<Self, String> {
        if location.contains("://") {
            return Self::parse(location);
        }
        let host = self.authority();
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("http://{rest}"));
        }
        if location.starts_with('/') {
            return Self::parse(&format!("http://{host}{location}"));
        }
        let path = self.path.split('?').next().unwrap_or_default();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self::parse(&format!("http://{host}{folder}/{location}"))
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == 80 {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// The name of the file that it is saved in.
    fn file(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        match path.rsplit('/').next() {
            None | Some("" | "." | "..") => "index.html",
            Some(name) => name,
        }
    }
}

struct Fetch<'a> {
    options: &'a Options,
    headers: Vec<String>,
    timeout: Option<Duration>,
}

impl Fetch<'_> {
    fn url(&self, mut url: Url, output: &mut dyn Write) -> Result<(), Failed> {
        let mut is_post = self.options.value('P').is_some();
        let name = url.file().to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let (head, stream) = self.request(&url, is_post)?;
            if self.options.has('S') {
                // Without standard error there is no place to show them.
                let _ = writeln!(io::stderr().lock(), "  {}", head.first);
                for (name, value) in &head.fields {
                    let _ = writeln!(io::stderr().lock(), "  {name}: {value}");
                }
            }
            let code = head
                .first
                .split(' ')
                .nth(1)
                .and_then(|code| code.parse::<u16>().ok());
            let code = code.filter(|_| head.first.starts_with("HTTP/"));
            match (code, head.get("location")) {
                (None, _) => {
                    return Err((
                        PROTOCOL_FAILED,
                        format!("{}: the answer is not HTTP", url.authority()),
                    ));
                }
                (Some(301 | 302 | 303 | 307 | 308), Some(location)) => {
                    is_post &= matches!(code, Some(307 | 308));
                    url = url
                        .join(location)
                        .map_err(|message| (PROTOCOL_FAILED, message))?;
                }
                (Some(200..=299), _) if self.options.has('s') => return Ok(()),
                (Some(200..=299), _) => return self.save(&name, &head, stream, output),
                _ => {
                    let message = format!(
                        "{}{}: the server answers {}",
                        url.authority(),
                        url.path,
                        head.first
                    );
                    return Err((SERVER_FAILED, message));
                }
            }
        }
        Err((
            SERVER_FAILED,
            format!("more than {MAX_REDIRECTS} redirects"),
        ))
    }

    fn connect(&self, url: &Url) -> Result<TcpStream, Failed> {
        let addresses = resolve(&url.host).map_err(|message| (NETWORK_FAILED, message))?;
        let mut problem = String::new();
        for address in addresses {
            let address = SocketAddr::new(address, url.port);
            let stream = match self.timeout {
                Some(timeout) => TcpStream::connect_timeout(&address, timeout),
                None => TcpStream::connect(address),
            };
            match stream {
                Ok(stream) => return Ok(stream),
                Err(error) => problem = format!("{address}: {error}"),
            }
        }
        Err((NETWORK_FAILED, problem))
    }

    fn request(&self, url: &Url, is_post: bool) -> Result<(Head, BufReader<TcpStream>), Failed> {
        let body = self.options.value('P').filter(|_| is_post);
        let method = match (body, self.options.has('s')) {
            (Some(_), _) => "POST",
            (None, true) => "HEAD",
            (None, false) => "GET",
        };
        let mut request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            url.path,
            url.authority()
        );
        let has = |name: &str| {
            let mut names = self
                .headers
                .iter()
                .filter_map(|header| header.split(':').next());
            names.any(|own| own.trim().eq_ignore_ascii_case(name))
        };
        if !has("user-agent") {
            request.push_str("User-Agent: wget (plimsoll-toolbox)\r\n");
        }
        if let Some(body) = body {
            if !has("content-type") {
                request.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
            }
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for header in &self.headers {
            request.push_str(header);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        let mut stream = self.connect(url)?;
        let failed = |error: io::Error| {
            (
                NETWORK_FAILED,
                format!("{}: {}", url.authority(), explain(&error)),
            )
        };
        stream.set_read_timeout(self.timeout).map_err(failed)?;
        stream.set_write_timeout(self.timeout).map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        stream.write_all(body.unwrap_or_default()).map_err(failed)?;
        let mut stream = BufReader::new(stream);
        loop {
            let head = read_head(&mut stream).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    (PROTOCOL_FAILED, format!("{}: {error}", url.authority()))
                }
                _ => failed(error),
            })?;
            // 1xx is followed by the answer itself.
            if !head
                .first
                .split(' ')
                .nth(1)
                .is_some_and(|code| code.len() == 3 && code.starts_with('1'))
            {
                return Ok((head, stream));
            }
        }
    }

    fn save(
        &self,
        name: &str,
        head: &Head,
        stream: BufReader<TcpStream>,
        output: &mut dyn Write,
    ) -> Result<(), Failed> {
        let length = head.get("content-length").map(|text| {
            text.parse::<u64>().map_err(|_| {
                (
                    PROTOCOL_FAILED,
                    format!("Content-Length {text}: not a number"),
                )
            })
        });
        let length = length.transpose()?;
        let is_chunked = head
            .get("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let mut body: Box<dyn Read> = match length {
            _ if is_chunked => Box::new(Chunks::new(stream)),
            Some(length) => Box::new(stream.take(length)),
            None => Box::new(stream),
        };
        let chosen = self.options.value('O');
        let name = chosen.unwrap_or(name.as_bytes());
        let failed = |error: io::Error| (FILE_FAILED, format!("{}: {error}", shown(name)));
        let count = if name == b"-" {
            let count = copy(&mut body, output)?;
            output.flush().map_err(failed)?;
            count
        } else {
            // A name that the server chose must not replace a file.
            let mut how = OpenOptions::new();
            how.write(true);
            if chosen.is_some() {
                how.create(true).truncate(true)
            } else {
                how.create_new(true)
            };
            let mut file = how.open(path(name)).map_err(failed)?;
            copy(&mut body, &mut file)?
        };
        if let Some(length) = length.filter(|length| !is_chunked && count < *length) {
            return Err((
                NETWORK_FAILED,
                format!("the connection ended after {count} of {length} bytes"),
            ));
        }
        if !self.options.has('q') {
            warn(
                "wget",
                format_args!("saved {count} bytes to {}", shown(name)),
            );
        }
        Ok(())
    }
}

fn copy(input: &mut dyn Read, output: &mut dyn Write) -> Result<u64, Failed> {
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err((
                    NETWORK_FAILED,
                    format!("reading the answer: {}", explain(&error)),
                ));
            }
        };
        let piece = buffer.get(..count).unwrap_or_default();
        output
            .write_all(piece)
            .map_err(|error| (FILE_FAILED, format!("writing the answer: {error}")))?;
        total += u64::try_from(count).unwrap_or(u64::MAX);
    }
}

/// The kernel reports a timeout of a socket as an operation that would block.
fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "timed out".to_owned(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_defaults() {
        for (text, host, port, path, file) in [
            ("http://a", "a", 80, "/", "index.html"),
            ("a:81/b?c=d#e", "a", 81, "/b?c=d", "b"),
            ("HTTP://[::1]:8080/x/", "::1", 8080, "/x/", "index.html"),
            ("http://a?q", "a", 80, "/?q", "index.html"),
            ("http://a/..", "a", 80, "/..", "index.html"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.host.as_str(), url.port, url.path.as_str(), url.file()),
                (host, port, path, file)
            );
        }
        for text in [
            "https://a",
            "ftp://a/b",
            "http://",
            "http://a:99999",
            "http://u:p@h",
            "http://a b",
            "http://[::1",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn redirects_are_relative() {
        let url = Url::parse("http://a:81/b/c?d").unwrap();
        for (location, expected) in [
            ("http://x/y", "http://x/y"),
            ("/y", "http://a:81/y"),
            ("y", "http://a:81/b/y"),
            ("//x/y", "http://x/y"),
        ] {
            assert_eq!(
                url.join(location).unwrap(),
                Url::parse(expected).unwrap(),
                "{location}"
            );
        }
        assert!(url.join("https://x").is_err());
    }
}
