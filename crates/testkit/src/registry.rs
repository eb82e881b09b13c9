//! A real image registry for tests: own folder, free loopback port, gone when dropped.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::images::{Image, digest};

/// How long the registry may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Between two looks at whether it listens.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The user of a [`Registry::start_with_login`].
pub const USER: &str = "captain";
/// The password of [`USER`].
pub const PASSWORD: &str = "secret";
/// The output of `htpasswd -B` for the two.
const PASSWORD_FILE: &str =
    "captain:$2y$04$pLimsollpLimsollpLimsu4q5wdqnh2vwvnk/wthuvolXaivSeufa\n";
/// The client's header: base64 of `captain:secret`.
const LOGIN_HEADER: &str = "Authorization: Basic Y2FwdGFpbjpzZWNyZXQ=\r\n";

const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A registry that serves plain HTTP on a loopback port.
#[derive(Debug)]
pub struct Registry {
    process: Child,
    port: u16,
    has_login: bool,
    folder: TempDir,
}

impl Registry {
    /// Starts the `docker-registry` of the `PATH` and waits until it listens.
    ///
    /// # Panics
    ///
    /// With an install hint if there is none, with its log if it does not come up.
    pub fn start() -> Registry {
        Self::start_with(false)
    }

    /// As [`Self::start`], open only to [`USER`] with [`PASSWORD`].
    pub fn start_with_login() -> Registry {
        Self::start_with(true)
    }

    /// Its host and port, as the first part of an image's name.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Puts an image into it; returns the full name.
    pub fn push(&self, repository: &str, tag: &str, image: &Image) -> String {
        self.put_blob(repository, &image.configuration());
        for layer in &image.layers {
            self.put_blob(repository, &layer.blob);
        }
        self.put_manifest(repository, tag, OCI_MANIFEST, &image.manifest());
        format!("{}/{repository}:{tag}", self.address())
    }

    /// Puts one blob into a repository; returns its digest.
    pub fn put_blob(&self, repository: &str, bytes: &[u8]) -> String {
        let begun = self.request("POST", &format!("/v2/{repository}/blobs/uploads/"), "", &[]);
        let location = begun
            .lines()
            .find_map(|line| line.strip_prefix("Location: "))
            .unwrap_or_else(|| panic!("the registry takes no blob: {begun}"));
        let path = location.trim_start_matches(&format!("http://{}", self.address()));
        let digest = digest(bytes);
        let stored = self.request("PUT", &format!("{path}&digest={digest}"), "", bytes);
        assert!(stored.contains(" 201 "), "blob {digest}: {stored}");
        digest
    }

    /// Puts a manifest or index into a repository under a tag or digest; returns its digest.
    pub fn put_manifest(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> String {
        let path = format!("/v2/{repository}/manifests/{reference}");
        let header = format!("Content-Type: {media_type}\r\n");
        let stored = self.request("PUT", &path, &header, bytes);
        assert!(stored.contains(" 201 "), "manifest {reference}: {stored}");
        digest(bytes)
    }

    fn start_with(has_login: bool) -> Registry {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("htpasswd"), PASSWORD_FILE).expect("the folder is ours");
        std::fs::write(path("config.yml"), configuration(&folder, has_login))
            .expect("the folder is ours");
        let log = File::create(path("log")).expect("the folder is ours");
        let log_too = log.try_clone().expect("a second handle");
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(path("config.yml"))
            .stdout(log)
            .stderr(log_too)
            .spawn()
            .unwrap_or_else(|e| {
                panic!(
                    "cannot run docker-registry: {e}\n\
                     hint: apt-get install docker-registry, or run scripts/test"
                )
            });
        let mut registry = Registry {
            process,
            port: 0,
            has_login,
            folder,
        };
        registry.wait_until_it_listens();
        registry
    }

    /// The registry picks its port and writes it to its log.
    fn wait_until_it_listens(&mut self) {
        const ANNOUNCEMENT: &str = "listening on 127.0.0.1:";
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let port = log.split_once(ANNOUNCEMENT).and_then(|(_, rest)| {
                let end = rest.find(|c: char| !c.is_ascii_digit())?;
                rest[..end].parse().ok()
            });
            if let Some(port) = port {
                self.port = port;
                return;
            }
            let ended = self.process.try_wait().ok().flatten();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "docker-registry does not come up ({ended:?}):\n{log}"
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> String {
        let login = if self.has_login { LOGIN_HEADER } else { "" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Length: {}\r\n{login}{headers}\r\n",
            self.address(),
            body.len(),
        );
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(READY_WITHIN))?;
            stream.write_all(head.as_bytes())?;
            stream.write_all(body)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(folder: &TempDir, has_login: bool) -> String {
    let folder = folder.path().display();
    let login = format!("auth: {{htpasswd: {{realm: tests, path: {folder}/htpasswd}}}}\n");
    format!(
        "version: 0.1\n\
         log: {{level: info, formatter: text}}\n\
         storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}\n\
         http: {{addr: \"127.0.0.1:0\", secret: none}}\n{}",
        if has_login { &login } else { "" },
    )
}
