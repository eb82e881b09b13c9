//! Names of hosts to addresses, without the C library, which would load others for it: `/etc/hosts`,
//! then the name servers of `/etc/resolv.conf`, with its search list, over UDP.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// More of a file than this is not read.
const MAX_BYTES: u64 = 1 << 20;

/// As resolvers do: the first three name servers, each queried twice, five seconds at a time.
const MAX_SERVERS: usize = 3;
const ATTEMPTS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(5);

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_INTERNET: u16 = 1;

pub(super) fn resolve(host: &str) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let found = hosts(&read("/etc/hosts"), host);
    if !found.is_empty() {
        return Ok(found);
    }
    let config = Config::parse(&read("/etc/resolv.conf"));
    let mut problem = "no name server knows it".to_owned();
    for name in config.candidates(host) {
        match config.ask(&name) {
            Ok(found) if !found.is_empty() => return Ok(found),
            Ok(_) => {}
            Err(error) => problem = error,
        }
    }
    Err(format!("{host}: the name does not resolve: {problem}"))
}

fn read(file: &str) -> String {
    let mut bytes = Vec::new();
    // A missing file is an empty one.
    if let Ok(file) = File::open(file) {
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.split(['#', ';']).next().unwrap_or_default();
    line.split_whitespace()
}

fn hosts(text: &str, host: &str) -> Vec<IpAddr> {
    let address = |line| {
        let mut words = words(line);
        let address = words.next()?.parse().ok()?;
        words
            .any(|name| name.eq_ignore_ascii_case(host))
            .then_some(address)
    };
    text.lines().filter_map(address).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Config {
    servers: Vec<SocketAddr>,
    search: Vec<String>,
    /// Names with at least so many dots are tried as they are first.
    dots: usize,
}

impl Config {
    fn parse(text: &str) -> Self {
        let mut config = Self {
            servers: Vec::new(),
            search: Vec::new(),
            dots: 1,
        };
        for line in text.lines() {
            let mut words = words(line);
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    config
                        .servers
                        .extend(address.map(|address| SocketAddr::new(address, 53)));
                }
                Some("search" | "domain") => config.search = words.map(str::to_owned).collect(),
                Some("options") => {
                    let dots = words.find_map(|word| word.strip_prefix("ndots:")?.parse().ok());
                    config.dots = dots.unwrap_or(config.dots);
                }
                _ => {}
            }
        }
        config.servers.truncate(MAX_SERVERS);
        if config.servers.is_empty() {
            config.servers.push(SocketAddr::from(([127, 0, 0, 1], 53)));
        }
        config
    }

    fn candidates(&self, host: &str) -> Vec<String> {
        if let Some(absolute) = host.strip_suffix('.') {
            return vec![absolute.to_owned()];
        }
        let mut names: Vec<String> = self
            .search
            .iter()
            .map(|domain| format!("{host}.{domain}"))
            .collect();
        if host.matches('.').count() >= self.dots {
            names.insert(0, host.to_owned());
        } else {
            names.push(host.to_owned());
        }
        names
    }

    fn ask(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let mut found = self.ask_for(name, TYPE_A)?;
        if found.is_empty() {
            found = self.ask_for(name, TYPE_AAAA)?;
        }
        Ok(found)
    }

    fn ask_for(&self, name: &str, kind: u16) -> Result<Vec<IpAddr>, String> {
        let mut problem = String::new();
        for _ in 0..ATTEMPTS {
            for server in &self.servers {
                match exchange(*server, name, kind) {
                    Ok(Answer::Addresses(found)) => return Ok(found),
                    Ok(Answer::Failed(code)) => {
                        problem = format!("name server {server} failed with code {code}")
                    }
                    Err(error) => problem = format!("name server {server}: {error}"),
                }
            }
        }
        Err(problem)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// None for a name that does not exist, or has no such addresses.
    Addresses(Vec<IpAddr>),
    Failed(u8),
}

fn exchange(server: SocketAddr, name: &str, kind: u16) -> io::Result<Answer> {
    let id = RandomState::new().build_hasher().finish().to_le_bytes();
    let question = question([id[0], id[1]], name, kind)
        .ok_or_else(|| io::Error::other(format!("{name}: not a name of a host")))?;
    let local: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((local, 0))?;
    // Only what this server sends is received.
    socket.connect(server)?;
    socket.send(&question)?;
    let deadline = Instant::now() + PATIENCE;
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer)?;
        if let Some(answer) = answer(buffer.get(..length).unwrap_or_default(), &question, kind) {
            return Ok(answer);
        }
    }
}

/// A standard query with recursion; None if a part of the name is empty or too long.
fn question(id: [u8; 2], name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut message = id.to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        let length = u8::try_from(label.len())
            .ok()
            .filter(|length| (1..=63).contains(length))?;
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend(CLASS_INTERNET.to_be_bytes());
    (message.len() <= 12 + 255 + 4).then_some(message)
}

/// None for a message that does not answer the question.
fn answer(message: &[u8], question: &[u8], kind: u16) -> Option<Answer> {
    let (id, body) = (question.get(..2)?, question.get(12..)?);
    let is_ours = message.get(..2)? == id
        && message.get(2)? & 0x80 != 0
        && message.get(12..12 + body.len())?.eq_ignore_ascii_case(body);
    if !is_ours {
        return None;
    }
    let code = message.get(3)? & 0x0f;
    // 3 is a name that does not exist.
    if code != 0 && code != 3 {
        return Some(Answer::Failed(code));
    }
    let records = number(message, 6)?;
    let mut found = Vec::new();
    let mut at = question.len();
    for _ in 0..records {
        // A cut message still has whole records in front.
        let Some((record, next)) = record(message, at) else {
            break;
        };
        at = next;
        if record.kind == kind && record.class == CLASS_INTERNET {
            found.extend(address(record.data));
        }
    }
    Some(Answer::Addresses(found))
}

struct Record<'a> {
    kind: u16,
    class: u16,
    data: &'a [u8],
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at + 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn record(message: &[u8], mut at: usize) -> Option<(Record<'_>, usize)> {
    // The name: labels up to an empty one, or to a pointer to its remainder.
    loop {
        let length = *message.get(at)?;
        match length {
            0 => {
                at += 1;
                break;
            }
            0xc0.. => {
                at += 2;
                break;
            }
            _ => at += usize::from(length) + 1,
        }
    }
    let (kind, class) = (number(message, at)?, number(message, at + 2)?);
    let start = at + 10;
    let end = start + usize::from(number(message, at + 8)?);
    let data = message.get(start..end)?;
    Some((Record { kind, class, data }, end))
}

fn address(data: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(data) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(data).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_list_is_tried_first_for_names_with_few_dots() {
        let text = "search a.svc.cluster.local svc.cluster.local # two\nnameserver 10.96.0.10\n\
                    nameserver fd00::1\nnameserver wrong\noptions ndots:5 timeout:1\n";
        let config = Config::parse(text);
        assert_eq!(config.servers.len(), 2);
        assert_eq!(
            config.candidates("web"),
            ["web.a.svc.cluster.local", "web.svc.cluster.local", "web"]
        );
        assert_eq!(config.candidates("example.org."), ["example.org"]);
        let config = Config::parse("search x");
        assert_eq!(config.candidates("a.b"), ["a.b", "a.b.x"]);
    }

    #[test]
    fn hosts_file_knows_aliases() {
        let text = "127.0.0.1 localhost\n10.0.0.7 web web.local # comment\nwrong x\n";
        assert_eq!(
            hosts(text, "WEB.local"),
            ["10.0.0.7".parse::<IpAddr>().unwrap()]
        );
        assert_eq!(hosts(text, "comment"), Vec::<IpAddr>::new());
    }

    #[test]
    fn reads_answers_with_aliases_and_pointers() {
        let question = question([7, 9], "web.x", TYPE_A).unwrap();
        let mut message = question.clone();
        message[2] = 0x81;
        message[3] = 0x80;
        message[7] = 2;
        // An alias, then the address of it.
        message.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12]);
        message.extend([1, b'y', 0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 1, 2, 3]);
        let expected = Answer::Addresses(vec!["10.1.2.3".parse().unwrap()]);
        assert_eq!(answer(&message, &question, TYPE_A), Some(expected));
        // Cut anywhere, it is no answer or one without the record, and nothing panics.
        for length in 0..message.len() {
            match answer(&message[..length], &question, TYPE_A) {
                None => {}
                Some(found) => assert_eq!(found, Answer::Addresses(Vec::new())),
            }
        }
        message[3] = 0x82;
        assert_eq!(answer(&message, &question, TYPE_A), Some(Answer::Failed(2)));
        message[0] = 8;
        assert_eq!(answer(&message, &question, TYPE_A), None);
    }

    #[test]
    fn rejects_invalid_names() {
        let long = "a".repeat(64);
        let longer = vec!["a".repeat(60); 5].join(".");
        for name in ["", "a..b", long.as_str(), longer.as_str()] {
            assert_eq!(question([0, 0], name, TYPE_A), None, "{name}");
        }
    }
}
