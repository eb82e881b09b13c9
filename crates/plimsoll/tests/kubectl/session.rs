//! A kubectl session in a namespace of its own.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::printed::{Printed, normalised};
use crate::target::Target;

/// No command takes longer; one that hangs is a failure.
const COMMAND_WITHIN: Duration = Duration::from_secs(60);

/// How long something may take that is bound to happen.
const SOON: Duration = Duration::from_secs(20);

/// The file that the sessions' commands read.
const KUBECONFIG: &str = "kubeconfig.json";

/// A kubectl.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    path: PathBuf,
    /// The `32` of 1.32.
    pub(crate) minor: u32,
}

/// A kubectl in a namespace.
pub(crate) struct Session {
    pub(crate) target: Arc<Target>,
    pub(crate) kubectl: Kubectl,
    pub(crate) namespace: String,
    folder: TempDir,
}

/// Runs a check with every kubectl there is.
pub(crate) fn with_every_kubectl(check: impl Fn(&Session)) {
    with_kubectl_from(0, check);
}

/// The same for what kubectl can do only since a minor version.
pub(crate) fn with_kubectl_from(minor: u32, check: impl Fn(&Session)) {
    for kubectl in kubectls() {
        if kubectl.minor >= minor {
            check(&Session::begin(kubectl));
        }
    }
}

/// The kubectl of the `PATH` and those of `PLIMSOLL_KUBECTL`.
fn kubectls() -> Vec<Kubectl> {
    let more = std::env::var("PLIMSOLL_KUBECTL").unwrap_or_default();
    let more = more.split(':').filter(|path| !path.is_empty());
    let paths = std::iter::once("kubectl").chain(more);
    paths
        .map(|path| Kubectl {
            path: path.into(),
            minor: minor_version(path),
        })
        .collect()
}

fn minor_version(path: &str) -> u32 {
    let output = Command::new(path)
        .args(["version", "--client", "-o", "json"])
        .output()
        .unwrap_or_else(|error| {
            panic!("{path} does not run: {error}; install kubernetes-client or any kubectl")
        });
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a version");
    let minor = version["clientVersion"]["minor"].as_str().unwrap_or("0");
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

impl Session {
    fn begin(kubectl: Kubectl) -> Session {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let session = Session {
            target: Target::shared(),
            kubectl,
            namespace: format!("kubectl-{}-{count}", std::process::id()),
            folder: tempfile::tempdir().expect("a folder"),
        };
        session.write_kubeconfig();
        session.ok("create namespace $NS");
        // Pods are refused until their namespace has its account.
        session.eventually("get serviceaccount default -o name", |printed| {
            printed.stdout.contains("default")
        });
        session
    }

    /// The administrator's kubeconfig with the namespace as the usual one.
    fn write_kubeconfig(&self) {
        let output = Command::new(&self.kubectl.path)
            .args(["config", "view", "--raw", "-o", "json", "--kubeconfig"])
            .arg(self.target.kubeconfig())
            .output()
            .expect("kubectl runs");
        let mut config: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        config["contexts"][0]["context"]["namespace"] = self.namespace.as_str().into();
        self.file(KUBECONFIG, &config.to_string());
    }

    /// Runs a command, written as in a shell; single quotes keep words together, `$NS` stands for
    /// the namespace.
    pub(crate) fn run(&self, command: &str) -> Printed {
        self.run_with(command, |_| {})
    }

    /// The same with a change to how it is started.
    pub(crate) fn run_with(&self, command: &str, change: impl FnOnce(&mut Command)) -> Printed {
        let mut process = self.command(command);
        change(process.stdin(Stdio::null()));
        let process = process.stdout(Stdio::piped());
        let process = process.stderr(Stdio::piped()).spawn();
        let process = process.expect("kubectl starts");
        self.printed(command, finished(process, command))
    }

    /// Runs a command that must succeed, with any output.
    #[track_caller]
    pub(crate) fn ok(&self, command: &str) -> String {
        let printed = self.run(command);
        assert_eq!(printed.code, 0, "{printed:#?}");
        printed.stdout
    }

    /// Repeats a command until it says what is wanted.
    #[track_caller]
    pub(crate) fn eventually(&self, command: &str, is_fine: impl Fn(&Printed) -> bool) {
        let deadline = Instant::now() + SOON;
        loop {
            let printed = self.run(command);
            if is_fine(&printed) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "waited {SOON:?} in vain for what {command:?} is to show; last seen: {printed:#?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a command that keeps running, and collects its output.
    pub(crate) fn start(&self, command: &str) -> Running<'_> {
        let log = self.folder.path().join("running.out");
        let file = std::fs::File::create(&log).expect("a file");
        let mut process = self.command(command);
        let both = file.try_clone().expect("a file");
        let process = process.stdin(Stdio::null()).stdout(file).stderr(both);
        let process = process.spawn();
        Running {
            session: self,
            process: process.expect("kubectl starts"),
            log,
        }
    }

    /// Writes a file into the folder that commands run in. `$NS` stands for the namespace.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let text = text.replace("$NS", &self.namespace);
        // What begins with a brace is JSON to kubectl.
        let text = match name.ends_with(".yaml") {
            true => format!("---\n{text}"),
            false => text,
        };
        std::fs::write(self.folder.path().join(name), text).expect("a file");
    }

    /// A name that is unique in the whole cluster.
    pub(crate) fn unique(&self, name: &str) -> String {
        format!("{name}-{}", self.namespace)
    }

    /// Makes an object of a manifest.
    #[track_caller]
    pub(crate) fn create(&self, manifest: &str) {
        self.file("made.yaml", manifest);
        self.ok("create -f made.yaml");
    }

    /// Writes the status of an object as its controller or node would.
    #[track_caller]
    pub(crate) fn set_status(&self, object: &str, status: &str) {
        let (resource, name) = object.split_once('/').expect("kind/name");
        let path = match resource {
            "node" => format!("/api/v1/nodes/{name}"),
            "pod" => format!("/api/v1/namespaces/{}/pods/{name}", self.namespace),
            "deployment" => {
                format!(
                    "/apis/apps/v1/namespaces/{}/deployments/{name}",
                    self.namespace
                )
            }
            "pdb" => format!(
                "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{name}",
                self.namespace
            ),
            other => panic!("{other} has no path here"),
        };
        // Old kubectls cannot write a part of an object: it is read, changed and replaced.
        let whole = self.unmasked(&format!("get --raw {path}"));
        let mut whole: serde_json::Value = serde_json::from_str(&whole).expect("an object");
        whole["status"] = serde_json::from_str(status).expect("a status");
        self.file("status.json", &whole.to_string());
        self.ok(&format!("replace --raw {path}/status -f status.json"));
    }

    /// What a command prints, as it is.
    #[track_caller]
    pub(crate) fn unmasked(&self, command: &str) -> String {
        let output = self.command(command).output().expect("kubectl runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn command(&self, command: &str) -> Command {
        let mut process = Command::new(&self.kubectl.path);
        process
            .args(words(&command.replace("$NS", &self.namespace)))
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.folder.path().join(KUBECONFIG))
            .env("HOME", self.target.home.path());
        process
    }

    fn printed(&self, command: &str, output: Output) -> Printed {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("text");
            normalised(&text, &self.namespace)
        };
        Printed {
            command: format!("kubectl 1.{} {command}", self.kubectl.minor),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.run("delete namespace $NS --wait=false");
    }
}

/// A command that runs until it is dropped.
pub(crate) struct Running<'a> {
    session: &'a Session,
    process: Child,
    log: PathBuf,
}

impl Running<'_> {
    /// What has been printed by now.
    pub(crate) fn printed(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        normalised(&text, &self.session.namespace)
    }

    /// Waits until something is printed.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + SOON;
        loop {
            let printed = self.printed();
            if printed.contains(text) {
                return printed;
            }
            assert!(
                Instant::now() < deadline,
                "waited {SOON:?} in vain for {text:?}; last seen: {printed}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for a process, but not for ever.
fn finished(mut process: Child, command: &str) -> Output {
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = read(stdout.map(|pipe| Box::new(pipe) as Box<_>));
    let stderr = read(stderr.map(|pipe| Box::new(pipe) as Box<_>));
    let deadline = Instant::now() + COMMAND_WITHIN;
    let status = loop {
        if let Some(status) = process.try_wait().expect("kubectl can be waited for") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = process.kill();
            let _ = process.wait();
            panic!("kubectl {command} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Output {
        status,
        stdout: stdout.join().expect("read"),
        stderr: stderr.join().expect("read"),
    }
}

/// The words of a command. Single quotes keep spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut is_word) = (false, false);
    for letter in command.chars() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                is_word = true;
            }
            ' ' | '\n' if !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            other => {
                word.push(other);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[test]
fn quotes_keep_words_together() {
    assert_eq!(
        words("patch pod a -p '{\"a\": 1}'"),
        ["patch", "pod", "a", "-p", "{\"a\": 1}"]
    );
    assert_eq!(words(" a  '' "), ["a", ""]);
}
