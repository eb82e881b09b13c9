//! A real etcd for tests: own folder, free loopback ports, gone when dropped.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::certificates::Authority;

/// How long etcd may take to answer after its start.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Between two looks at whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A port that seemed free may be taken by the time etcd binds it.
const START_ATTEMPTS: u32 = 5;

const AUTHORITY_FILE: &str = "ca.pem";
const CERTIFICATE_FILE: &str = "server.pem";
const KEY_FILE: &str = "server-key.pem";

/// An etcd with one member.
#[derive(Debug)]
pub struct Etcd {
    process: Child,
    ports: Ports,
    folder: TempDir,
    is_encrypted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    peer: u16,
    /// Health without encryption.
    metrics: u16,
}

impl Etcd {
    /// Starts the `etcd` of the `PATH` and waits until it serves.
    ///
    /// # Panics
    ///
    /// With an install hint if there is none, with its log if it does not come up.
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// As [`Self::start`], for clients of an authority over encrypted connections.
    pub fn start_with_tls(authority: &Authority) -> Self {
        Self::start_with(Some(authority))
    }

    fn start_with(authority: Option<&Authority>) -> Self {
        for _ in 1..START_ATTEMPTS {
            if let Ok(etcd) = Self::try_start(authority) {
                return etcd;
            }
        }
        Self::try_start(authority).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Kills it and starts it again on the same ports and data.
    ///
    /// # Panics
    ///
    /// With its log if it does not come up.
    pub fn restart(&mut self) {
        self.kill();
        let process = launch(self.folder.path(), self.ports, self.is_encrypted);
        self.process = process.unwrap_or_else(|problem| panic!("{problem}"));
        self.wait_until_ready()
            .unwrap_or_else(|problem| panic!("{problem}"));
    }

    /// Where clients connect to.
    pub fn endpoint(&self) -> String {
        client_url(self.ports, self.is_encrypted)
    }

    fn try_start(authority: Option<&Authority>) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
        let ports = Ports {
            client: free_port()?,
            peer: free_port()?,
            metrics: free_port()?,
        };
        if let Some(authority) = authority {
            write_certificates(folder.path(), authority)
                .map_err(|e| format!("no certificates: {e}"))?;
        }
        let is_encrypted = authority.is_some();
        let process = launch(folder.path(), ports, is_encrypted)?;
        let mut etcd = Self {
            process,
            ports,
            folder,
            is_encrypted,
        };
        etcd.wait_until_ready()?;
        Ok(etcd)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if is_healthy(self.ports.metrics) {
                return Ok(());
            }
            let ended = self.process.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(log_file(self.folder.path()));
                let log = log.unwrap_or_default();
                return Err(format!("etcd did not start ({ended:?}):\n{log}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(folder: &Path, ports: Ports, is_encrypted: bool) -> Result<Child, String> {
    let log = File::create(log_file(folder)).map_err(|e| format!("no log file: {e}"))?;
    let log_too = log.try_clone().map_err(|e| format!("no log file: {e}"))?;
    let client = client_url(ports, is_encrypted);
    let (peer, metrics) = (loopback(ports.peer), loopback(ports.metrics));
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(folder.join("data"))
        .args(["--name", "test"])
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--listen-metrics-urls", &metrics])
        .args(["--initial-cluster", &format!("test={peer}")])
        // The shortest lease is one and a half election timeouts.
        .args(["--heartbeat-interval", "20", "--election-timeout", "200"])
        .stdout(log)
        .stderr(log_too);
    if is_encrypted {
        command
            .arg("--client-cert-auth")
            .arg("--trusted-ca-file")
            .arg(folder.join(AUTHORITY_FILE))
            .arg("--cert-file")
            .arg(folder.join(CERTIFICATE_FILE))
            .arg("--key-file")
            .arg(folder.join(KEY_FILE));
    }
    command.spawn().map_err(|e| {
        format!("cannot run etcd: {e}\nhint: apt-get install etcd-server, or run scripts/test")
    })
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn write_certificates(folder: &Path, authority: &Authority) -> std::io::Result<()> {
    let own = authority.sign("127.0.0.1");
    std::fs::write(folder.join(AUTHORITY_FILE), authority.pem())?;
    std::fs::write(folder.join(CERTIFICATE_FILE), own.certificate_pem)?;
    std::fs::write(folder.join(KEY_FILE), own.key_pem)
}

fn client_url(ports: Ports, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{}", ports.client)
}

fn loopback(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// A port without a listener at the moment.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    let address = listener
        .local_addr()
        .map_err(|e| format!("no free port: {e}"))?;
    Ok(address.port())
}

fn is_healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}
