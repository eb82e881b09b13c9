//! A real etcd for tests: own folder, free loopback ports, gone when dropped.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long etcd may take to answer after its start.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Between two looks at whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A port that seemed free may be taken by the time etcd binds it.
const START_ATTEMPTS: u32 = 5;

/// A running etcd with one member.
#[derive(Debug)]
pub struct Etcd {
    process: Child,
    endpoint: String,
    /// Removed with this value.
    _folder: TempDir,
}

impl Etcd {
    /// Starts the `etcd` of the `PATH` and waits until it serves.
    ///
    /// # Panics
    ///
    /// With an install hint if there is none, with its log if it does not come up.
    pub fn start() -> Self {
        for _ in 1..START_ATTEMPTS {
            if let Ok(etcd) = Self::try_start() {
                return etcd;
            }
        }
        Self::try_start().unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Where clients connect to.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn try_start() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
        let log_path = folder.path().join("log");
        let log = File::create(&log_path).map_err(|e| format!("no log file: {e}"))?;
        let err = log.try_clone().map_err(|e| format!("no log file: {e}"))?;
        let (client, peer) = (free_port()?, free_port()?);
        let endpoint = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .args(["--name", "test"])
            .args(["--listen-client-urls", &endpoint])
            .args(["--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            // The shortest lease is one and a half election timeouts.
            .args(["--heartbeat-interval", "20", "--election-timeout", "200"])
            .stdout(log)
            .stderr(err)
            .spawn()
            .map_err(|e| {
                format!(
                    "cannot run etcd: {e}\nhint: apt-get install etcd-server, or run scripts/test"
                )
            })?;
        let mut etcd = Self {
            process,
            endpoint,
            _folder: folder,
        };
        etcd.wait_until_ready(client, log_path)?;
        Ok(etcd)
    }

    fn wait_until_ready(&mut self, port: u16, log: PathBuf) -> Result<(), String> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if is_healthy(port) {
                return Ok(());
            }
            let ended = self.ended();
            if ended.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(log).unwrap_or_default();
                return Err(format!("etcd does not come up ({ended:?}):\n{log}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody listens on at the moment.
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
