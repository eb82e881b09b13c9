//! A `plimsoll` process that runs until it is stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to start, or to stop, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it in the background; `log` gets its standard error.
    pub(crate) fn start(arguments: &[&str], log: &Path) -> Daemon {
        let child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log).expect("a log"))
            .env_remove("RUST_LOG")
            .spawn()
            .expect("plimsoll starts");
        Daemon {
            child,
            log: log.to_owned(),
        }
    }

    /// A server that is started with few open files allowed, and may raise that.
    pub(crate) fn server_with_open_files(folder: &Path, soft: u32) -> Daemon {
        let log = folder.join("log");
        let script = format!("ulimit -Sn {soft} && exec \"$0\" \"$@\"");
        let child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll"), "server"])
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("a shell starts");
        let daemon = Daemon { child, log };
        daemon.wait_for("admin.kubeconfig");
        daemon
    }

    /// A server on a port of its own, with its data below `folder`.
    pub(crate) fn server(folder: &Path, further: &[&str]) -> Daemon {
        let data = folder.join("data").display().to_string();
        let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", &data];
        let daemon = Daemon::start(&[&arguments[..], further].concat(), &folder.join("log"));
        daemon.wait_for("admin.kubeconfig");
        daemon
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The address of a server that serves.
    pub(crate) fn address(&self) -> String {
        let log = self.log();
        let line = log
            .lines()
            .find_map(|line| line.strip_prefix("serving on https://"));
        line.expect("a server that serves").to_owned()
    }

    pub(crate) fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "no {text:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal; what the process ended with, and all that it wrote.
    pub(crate) fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("the process runs");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return (status.code(), self.log());
            }
            assert!(Instant::now() < deadline, "does not stop: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
