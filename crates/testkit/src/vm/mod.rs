//! A small virtual machine with a kernel, memory and cgroup v2 of its own.
//!
//! [`Machine`] takes programs and files, boots, runs one command as root with cgroup2 mounted, and
//! returns the command's exit status. QEMU emulates it in software, so that it works where
//! virtualisation does not; expect a tenth of the real machine's speed. The kernel is Debian's,
//! fetched once.
//!
//! Reading order: `kernel` (kernel and modules), `cpio` and `disk` (what the guest boots from),
//! `guest/` (what runs in it first), `lockup` (when it stands still).

mod cpio;
mod disk;
mod kernel;
mod lockup;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use cpio::Archive;
use disk::Root;
use kernel::Kernel;

/// What containers and their networks need, and file systems in files that count projects; what the
/// disk needs is found by the kernel's name.
const MODULES: [&str; 12] = [
    "virtio_pci",
    "virtio_blk",
    "overlay",
    "veth",
    "bridge",
    "nft_chain_nat",
    "nft_nat",
    "nft_masq",
    "nft_fib_ipv4",
    "nft_ct",
    "loop",
    "quota_v2",
];

const FIRST_STAGE: &str = include_str!("guest/first-stage.sh");
const SECOND_STAGE: &str = include_str!("guest/second-stage.sh");

const INSTALL_HINT: &str =
    "hint: apt-get install qemu-system-x86 busybox-static e2fsprogs, or run scripts/test";

/// The variable by which a program learns that it runs in a machine, and how far to extend its
/// deadlines.
const SLOWNESS_VARIABLE: &str = "PLIMSOLL_TEST_SLOWNESS";

/// How much longer things take in a machine than outside.
const SLOWNESS: u32 = 10;

/// How much longer things may take here than they usually do: 1, and more in a [`Machine`].
/// Deadlines of tests are multiplied by it.
pub fn slowness() -> u32 {
    let value = std::env::var(SLOWNESS_VARIABLE).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Names a `plimsoll` to run in machines instead of the one that was built with the test. A release
/// build is several times faster there.
const PROGRAM_VARIABLE: &str = "PLIMSOLL_PROGRAM";

/// The `plimsoll` that `PLIMSOLL_PROGRAM` names, if it is set.
pub fn given_program() -> Option<PathBuf> {
    std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from)
}

/// A machine that has not been booted yet.
#[derive(Debug)]
pub struct Machine {
    memory_mib: u32,
    cpus: u32,
    disk_mib: u64,
    variables: Vec<String>,
    root: Root,
    folder: TempDir,
}

/// The result of a command in a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit status; none if the machine ended before the command did, as after a panic.
    pub status: Option<i32>,
    /// All output of the console.
    pub console: String,
}

impl Machine {
    /// Two cpus, 1 GiB of memory, 2 GiB of disk with busybox on it.
    ///
    /// # Panics
    ///
    /// With an install hint if this machine has no busybox.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let root = Root::new(folder.path().join("root"));
        Self {
            memory_mib: 1024,
            cpus: 2,
            disk_mib: 2048,
            variables: Vec::new(),
            root,
            folder,
        }
    }

    /// With so much memory.
    #[must_use]
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// With so many cpus.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// With a disk of that size; it takes space on the host only as it is filled.
    #[must_use]
    pub fn disk_mib(mut self, disk_mib: u64) -> Self {
        self.disk_mib = disk_mib;
        self
    }

    /// With a variable in the environment of [the tests it runs](Self::run_own_tests).
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push(format!("{name}={value}"));
        self
    }

    /// With a file at an absolute path of the guest.
    #[must_use]
    pub fn file(self, host: &Path, guest: &str) -> Self {
        self.root.copy(host, guest);
        self
    }

    /// With a folder and its content, at an absolute path of the guest.
    #[must_use]
    pub fn folder(self, host: &Path, guest: &str) -> Self {
        self.root.copy_folder(host, guest);
        self
    }

    /// With a program at an absolute path of the guest, and the libraries it needs.
    #[must_use]
    pub fn program(self, host: &Path, guest: &str) -> Self {
        self.root.copy_program(host, guest);
        self
    }

    /// With a program of the host's `PATH`, at the same path.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn tool(self, name: &str) -> Self {
        let program = in_path(name).unwrap_or_else(|| {
            panic!("there is no {name}\nhint: run scripts/test, which installs it")
        });
        let inside = program.to_string_lossy().into_owned();
        self.program(&program, &inside)
    }

    /// With containerd, and all that it needs to run containers.
    ///
    /// # Panics
    ///
    /// As [`Self::tool`] does.
    #[must_use]
    pub fn containerd(mut self) -> Self {
        for tool in ["containerd", "containerd-shim-runc-v2", "ctr", "runc"] {
            self = self.tool(tool);
        }
        for plugin in ["host-local", "loopback", "ptp"] {
            let path = format!("/usr/lib/cni/{plugin}");
            self = self.program(Path::new(&path), &path);
        }
        self
    }

    /// Runs tests of the program that calls this: those marked to be ignored whose names contain
    /// any of the filters, if there are some, except those of tier vm themselves. The console goes to
    /// standard output. They find [`slowness`] to be that of the machine.
    ///
    /// # Errors
    ///
    /// If any of them fails.
    ///
    /// # Panics
    ///
    /// As [`Self::run`] does.
    pub fn run_own_tests(self, filters: &[&str], limit: Duration) -> Result<(), String> {
        const PROGRAM: &str = "/test/program";
        let own = std::env::current_exe().map_err(|e| format!("no path of this program: {e}"))?;
        let machine = self
            .variable(SLOWNESS_VARIABLE, &SLOWNESS.to_string())
            .program(&own, PROGRAM);
        let variables = machine.variables.clone();
        let mut command = vec!["env"];
        command.extend(variables.iter().map(String::as_str));
        command.extend([PROGRAM, "--ignored", "--color", "never"]);
        command.extend(["--skip", "vm/", "--skip", "vm::"]);
        command.extend(filters);
        let outcome = machine.run(&command, limit, &mut std::io::stdout());
        match outcome.status {
            Some(0) => Ok(()),
            Some(status) => Err(format!(
                "tests failed in the machine (exit status {status})"
            )),
            None => Err("the machine ended before the tests did".to_owned()),
        }
    }

    /// Boots, runs a command to its end and switches off. The console goes to `console` line by
    /// line. A machine whose kernel locks up is booted again, with the full limit.
    ///
    /// # Panics
    ///
    /// With a hint if there is no QEMU or no kernel to be had, with the console if the command has
    /// not ended within the limit.
    pub fn run(self, command: &[&str], limit: Duration, console: &mut dyn Write) -> Outcome {
        let kernel = Kernel::get();
        self.root.write("/command", &shell_words(command));
        self.root.write("/sbin/init", SECOND_STAGE);
        let initramfs = self.folder.path().join("initramfs");
        std::fs::write(&initramfs, initramfs_of(&kernel)).expect("the folder is ours");
        lockup::boot_until_alive(console, |console| self.boot(&kernel, limit, console))
    }

    /// Runs the command once, on a new disk.
    fn boot(&self, kernel: &Kernel, limit: Duration, console: &mut dyn Write) -> Outcome {
        let disk = self.folder.path().join("disk");
        self.root.fill(&disk, self.disk_mib);
        let status_file = self.folder.path().join("status");
        let qemu = in_path("qemu-system-x86_64");
        let qemu = qemu.unwrap_or_else(|| panic!("there is no qemu-system-x86_64\n{INSTALL_HINT}"));
        // If the test is killed, the machine ends with it.
        let mut process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(qemu)
            .args(["-accel", "tcg,thread=multi", "-cpu", "max"])
            .args(["-m", &self.memory_mib.to_string()])
            .args(["-smp", &self.cpus.to_string()])
            .args(["-display", "none", "-monitor", "none", "-no-reboot"])
            .args(["-nic", "none"])
            .args(["-serial", "stdio"])
            .args(["-serial", &format!("file:{}", status_file.display())])
            // The disk goes with the machine: nothing of it has to reach the host's, whose speed is
            // none of the guest's business.
            .args([
                "-drive",
                &format!("file={},format=raw,if=virtio,cache=unsafe", disk.display()),
            ])
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(self.folder.path().join("initramfs"))
            .arg("-append")
            .arg(format!(
                "console=ttyS0 panic=-1 quiet psi=1 {}",
                lockup::PARAMETERS
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot run setpriv of util-linux: {e}"));
        let output = process.stdout.take().expect("the output is piped");
        let running = Running(process);
        let console = follow(output, limit, console);
        drop(running);
        let status = std::fs::read_to_string(status_file).unwrap_or_default();
        Outcome {
            status: status.trim().parse().ok(),
            console,
        }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

/// A QEMU that ends when dropped.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes the console on until the machine is off.
fn follow(output: ChildStdout, limit: Duration, console: &mut dyn Write) -> String {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .is_ok_and(|count| count > 0)
        {
            let text = String::from_utf8_lossy(&line).replace('\r', "");
            line.clear();
            if send.send(text).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + limit;
    let mut all = String::new();
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(rest) {
            Ok(line) => {
                // A caller that does not read the console still gets it at the end.
                let _ = console.write_all(line.as_bytes());
                all.push_str(&line);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return all,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("the machine has not ended within {limit:?}; its console:\n{all}")
            }
        }
    }
}

/// The program of that name that a shell would run.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|file| file.is_file())
}

/// Enough to find the disk.
fn initramfs_of(kernel: &Kernel) -> Vec<u8> {
    let busybox = std::fs::read(disk::BUSYBOX).expect("the machine was made with it");
    let mut archive = Archive::new();
    for folder in ["bin", "dev", "modules", "new", "proc", "sys"] {
        archive.directory(folder);
    }
    archive.file("bin/busybox", &busybox);
    archive.file("init", FIRST_STAGE.as_bytes());
    let mut order = String::new();
    for (name, content) in kernel.modules(&MODULES) {
        archive.file(&format!("modules/{name}.ko"), &content);
        order.push_str(&name);
        order.push('\n');
    }
    archive.file("modules/order", order.as_bytes());
    archive.into_bytes()
}

/// A command as a shell script.
fn shell_words(command: &[&str]) -> String {
    let quoted = command
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// Where downloads are kept between runs: the workspace's build folder.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/vm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(
            shell_words(&["echo", "it's", "a b"]),
            r"'echo' 'it'\''s' 'a b'"
        );
    }

    #[test]
    #[ignore = "tier: vm"]
    fn machine_runs_command_on_cgroup_v2_and_returns_its_status() {
        let look =
            "cat /proc/mounts /sys/fs/cgroup/cgroup.controllers /proc/pressure/memory; exit 7";
        let machine = Machine::new().memory_mib(512).cpus(1);
        let limit = Duration::from_secs(120);
        let outcome = machine.run(&["sh", "-c", look], limit, &mut std::io::sink());
        assert_eq!(outcome.status, Some(7), "{}", outcome.console);
        assert!(outcome.console.contains("cgroup2"), "{}", outcome.console);
        assert!(
            outcome.console.contains("some avg10="),
            "{}",
            outcome.console
        );
    }

    #[test]
    #[ignore = "tier: vm"]
    fn a_machine_that_panics_has_no_status() {
        let crash = "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger";
        let limit = Duration::from_secs(120);
        let outcome = Machine::new().run(&["sh", "-c", crash], limit, &mut std::io::sink());
        assert_eq!(outcome.status, None, "{}", outcome.console);
        assert!(
            outcome.console.contains("Kernel panic"),
            "{}",
            outcome.console
        );
    }
}
