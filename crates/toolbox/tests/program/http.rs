//! `wget` and `httpd`, with each other and with what is neither.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use crate::toolbox::{Toolbox, write};

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(toolbox: &Toolbox) -> Self {
        let args = ["-f", "-p", "127.0.0.1:0", "-h", "site"];
        let mut child = toolbox
            .command("httpd")
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { child, address }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The answer to a request that no client would send.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It serves until it is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn files_are_served_and_fetched() {
    let toolbox = Toolbox::new();
    let work = toolbox.work();
    let large = "0123456789".repeat(100_000);
    write(&work.join("site/large"), &large);
    write(&work.join("site/a b.txt"), "blank");
    write(&work.join("site/sub/index.html"), "<p>index");
    write(&work.join("site/sub2/<f>"), "");
    write(&work.join("secret"), "secret");
    std::os::unix::fs::symlink("../secret", work.join("site/link")).unwrap();
    let server = Server::start(&toolbox);
    let get = |path: &str| toolbox.run(&["wget", "-q", "-O", "-", &server.url(path)]);
    assert!(get("/large").stdout == large.as_bytes());
    assert_eq!(get("/a%20b.txt").stdout, b"blank");
    // By way of a redirect to /sub/.
    assert_eq!(get("/sub").stdout, b"<p>index");
    let listing = String::from_utf8(get("/").stdout).unwrap();
    assert!(
        listing.contains("href=\"./a%20b.txt\"") && listing.contains("href=\"./sub/\""),
        "{listing}"
    );
    assert!(
        String::from_utf8(get("/sub2/").stdout)
            .unwrap()
            .contains("&lt;f&gt;")
    );
    for path in ["/none", "/link", "/sub2/none/x"] {
        let output = get(path);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(8), 0),
            "{path}"
        );
    }
    toolbox.print(&["wget", "-q", &server.url("/large")]);
    assert_eq!(std::fs::read_to_string(work.join("large")).unwrap(), large);
    // A second one would replace the file.
    assert_eq!(
        toolbox
            .run(&["wget", "-q", &server.url("/large")])
            .status
            .code(),
        Some(3)
    );
    let output = toolbox.run(&["wget", "--spider", "-S", "-q", &server.url("/large")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Content-Length: 1000000"));
}

#[test]
fn nothing_outside_of_the_directory_is_served() {
    let toolbox = Toolbox::new();
    write(&toolbox.work().join("site/f"), "f");
    write(&toolbox.work().join("secret"), "secret");
    let server = Server::start(&toolbox);
    for (request, expected) in [
        ("GET /../secret HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
        ("GET /%2e%2e/secret HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
        ("GET secret HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
        ("GET //f HTTP/1.1\r\n\r\n", "HTTP/1.1 200"),
        ("POST /f HTTP/1.1\r\n\r\n", "HTTP/1.1 405"),
        ("nonsense\r\n\r\n", "HTTP/1.1 405"),
        ("GET /f HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400"),
        ("HEAD /f HTTP/1.1\r\n\r\n", "HTTP/1.1 200"),
    ] {
        let answer = server.raw(request);
        assert!(
            answer.starts_with(expected) && !answer.contains("secret"),
            "{request}: {answer}"
        );
    }
    assert!(server.raw("HEAD /f HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
}

/// Answers one connection with this text and returns the request.
fn answer_once(text: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") {
            reader.read_line(&mut request).unwrap();
        }
        reader.get_mut().write_all(text.as_bytes()).unwrap();
        request
    });
    (url, server)
}

#[test]
fn wget_reads_every_kind_of_body_and_reports_errors() {
    let toolbox = Toolbox::new();
    for (text, status, body) in [
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
            0,
            "abcd",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end",
            0,
            "to the end",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", 0, "ab"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 4, "abc"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
            4,
            "abc",
        ),
        ("HTTP/1.1 500 Broken\r\n\r\n", 8, ""),
        ("SMTP ready\r\n\r\n", 7, ""),
        ("", 4, ""),
        ("HTTP/1.1 302 Found\r\nLocation: https://x/\r\n\r\n", 7, ""),
    ] {
        let (url, server) = answer_once(text);
        let output = toolbox.run(&["wget", "-qO-", "--header", "X-Test: 1", &url]);
        let request = server.join().unwrap();
        assert!(
            request.starts_with("GET /x HTTP/1.1\r\nHost: 127.0.0.1:")
                && request.contains("\r\nX-Test: 1\r\n"),
            "{request}"
        );
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stdout).as_ref()
            ),
            (Some(status), body),
            "{text}"
        );
    }
}

#[test]
fn wget_refuses_unsupported_requests() {
    let toolbox = Toolbox::new();
    for (url, status, words) in [
        ("https://x/", 2, "https is not supported"),
        ("ftp://x/", 2, "ftp is not supported"),
        ("http://127.0.0.1:1/", 4, "127.0.0.1:1"),
        ("http://a..b/", 4, "does not resolve"),
    ] {
        let output = toolbox.run(&["wget", "-q", "-O", "-", url]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{url}: {errors}");
        assert!(errors.contains(words), "{errors}");
    }
    // A server that never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let output = toolbox.run(&["wget", "-q", "-T", "1", "-O", "-", &url]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("timed out"));
}
