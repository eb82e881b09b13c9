//! Errors of operation: each names what failed, the file or process, and what to do.

use std::net::TcpListener;
use std::path::Path;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::{Run, plimsoll};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn data(folder: &TempDir) -> String {
    folder.path().join("data").display().to_string()
}

/// A second start on the same data.
fn again(folder: &TempDir) -> Run {
    plimsoll(
        &[
            "server",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            &data(folder),
        ],
        "",
    )
}

/// A data directory with a cluster in it that does not run.
fn stopped_cluster() -> TempDir {
    let folder = folder();
    Daemon::server(folder.path(), &[]).stop(Signal::TERM);
    folder
}

#[track_caller]
fn fails(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    for part in parts {
        assert!(
            run.stderr.contains(part),
            "{part:?} is missing: {}",
            run.stderr
        );
    }
}

#[test]
fn refuses_an_unsupported_admission_configuration() {
    let folder = folder();
    let (main, own) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
    let header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("a file");
    let file = main.display().to_string();
    let arguments = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        &data(&folder),
        "--admission-control-config-file",
        &file,
    ];
    write(
        &main,
        &format!("{header}plugins: [{{name: ImagePolicyWebhook}}]\n"),
    );
    let place = format!("error: {file}:3:18: plugins[0].name: Unsupported value");
    fails(&plimsoll(&arguments, ""), 1, &[&place]);
    write(
        &main,
        &format!("{header}plugins: [{{name: PodSecurity, path: b.yaml}}]\n"),
    );
    write(
        &own,
        "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
         defaults:\n  enforce: strict\n",
    );
    let place = format!(
        "error: {}:4:12: defaults.enforce: Invalid value: \"strict\": must be one of privileged, \
         baseline, restricted",
        own.display()
    );
    fails(&plimsoll(&arguments, ""), 1, &[&place]);
    // Nothing was started.
    assert!(!folder.path().join("data").exists());
}

#[test]
fn server_raises_open_file_limit() {
    let folder = folder();
    let server = Daemon::server_with_open_files(folder.path(), 300);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid()));
    let limits = limits.expect("the server runs");
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let mut numbers = line.expect("a limit").split_whitespace();
    let (soft, hard) = (numbers.next(), numbers.next());
    assert_ne!(soft, Some("300"));
    assert_eq!(soft, hard);
    server.stop(Signal::TERM);
}

#[test]
fn logs_the_received_signal() {
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let folder = folder();
        let (code, log) = Daemon::server(folder.path(), &[]).stop(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains(&format!("received {name}, stopping")), "{log}");
    }
}

#[test]
fn names_the_process_that_uses_a_data_directory() {
    let folder = folder();
    let server = Daemon::server(folder.path(), &[]);
    let data = data(&folder);
    let expected = format!(
        "error: the data directory {data} is in use by plimsoll server (pid {})\nhint: ",
        server.pid()
    );
    fails(&again(&folder), 1, &[&expected]);
    // The file that is left behind says nothing by itself.
    server.stop(Signal::KILL);
    assert!(Path::new(&data).join("server.lock").exists());
    let next = Daemon::server(folder.path(), &[]);
    assert_eq!(next.stop(Signal::TERM).0, Some(0));
}

#[test]
fn names_the_process_that_listens_on_a_port() {
    let folder = folder();
    let server = Daemon::server(folder.path(), &[]);
    let (address, pid) = (server.address(), server.pid());
    let other = folder.path().join("other").display().to_string();
    let second = plimsoll(&["server", "--listen", &address, "--data-dir", &other], "");
    let holder = format!("hint: plimsoll server (pid {pid}) listens there");
    let what = format!("error: cannot listen on {address}\n");
    fails(&second, 1, &[&what, &holder, "--listen"]);
    let kubeconfig = folder
        .path()
        .join("data/admin.kubeconfig")
        .display()
        .to_string();
    for command in ["scheduler", "controllers"] {
        let run = plimsoll(
            &[command, "--kubeconfig", &kubeconfig, "--listen", &address],
            "",
        );
        fails(&run, 1, &[&what, &holder]);
    }
}

#[test]
fn names_a_process_of_another_program_too() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let run = plimsoll(
        &["server", "--listen", &address, "--data-dir", &data(&folder)],
        "",
    );
    let pid = format!("(pid {}) listens there", std::process::id());
    fails(&run, 1, &[&address, &pid]);
}

#[test]
fn names_an_address_that_the_machine_lacks() {
    let folder = folder();
    let run = plimsoll(
        &[
            "server",
            "--listen",
            "192.0.2.1:0",
            "--data-dir",
            &data(&folder),
        ],
        "",
    );
    fails(
        &run,
        1,
        &[
            "192.0.2.1:0",
            "hint: 192.0.2.1 is not an address of this machine",
        ],
    );
}

#[test]
fn suggests_an_address_for_a_bare_port() {
    let run = plimsoll(&["server", "--listen", "8443"], "");
    let expected = "invalid value '8443' for '--listen <ADDRESS:PORT>': expected ADDRESS:PORT such \
                    as 127.0.0.1:6443 (try 127.0.0.1:8443)";
    fails(&run, 2, &[expected]);
    let run = plimsoll(&["node", "--healthz-listen", "on"], "");
    fails(
        &run,
        2,
        &["--healthz-listen", "such as 127.0.0.1:10248, or off"],
    );
}

#[test]
fn refuses_names_that_no_bridge_can_have() {
    for (name, problem) in [
        ("sixteen-letters0", "the name has 16 bytes"),
        ("a/b", "the name contains '/'"),
        ("a b", "the name contains ' '"),
        (".", "\".\" names a directory"),
        ("", "the name is empty"),
    ] {
        for command in ["up", "node"] {
            let run = plimsoll(&[command, "--bridge", name], "");
            fails(
                &run,
                2,
                &["--bridge", problem, "1 to 15 visible ASCII characters"],
            );
        }
    }
}

#[test]
fn names_a_store_that_is_damaged() {
    let folder = stopped_cluster();
    let store = folder.path().join("data/store.redb");
    let sound = std::fs::read(&store).expect("a store");
    let mut overwritten = sound.clone();
    overwritten[4096..240_000].fill(0xa5);
    let hint = format!("mv {0} {0}.damaged", store.display());
    for content in [
        b"this is a note".to_vec(),
        sound[..100_000].to_vec(),
        overwritten,
    ] {
        std::fs::write(&store, &content).expect("the file is ours");
        let run = again(&folder);
        let what = format!(
            "{} is not a store of Plimsoll, or is damaged",
            store.display()
        );
        fails(
            &run,
            1,
            &["error: cannot open the store\n", &what, "restore", &hint],
        );
        assert!(!run.stderr.contains("panic"), "{}", run.stderr);
    }
    std::fs::write(&store, sound).expect("the file is ours");
    Daemon::server(folder.path(), &[]).stop(Signal::TERM);
}

#[test]
fn refuses_to_make_new_keys_for_an_old_store() {
    let folder = stopped_cluster();
    let pki = folder.path().join("data/pki");
    let saved = folder.path().join("saved");
    std::fs::rename(&pki, &saved).expect("the directory is ours");
    let run = again(&folder);
    let keys = ["ca.key", "service-account.key"].map(|name| pki.join(name).display().to_string());
    fails(
        &run,
        1,
        &[
            &format!(
                "error: the store has objects, but {} and {} are missing",
                keys[0], keys[1]
            ),
            "would stop working",
            &format!("hint: restore {} from a backup", pki.display()),
            "--new-authority",
        ],
    );
    assert!(!pki.exists(), "keys were made");
    std::fs::rename(&saved, &pki).expect("the directory is ours");
    let clients = pki.join("client-ca.key");
    std::fs::rename(&clients, folder.path().join("key")).expect("a key");
    let is_missing = format!("but {} is missing", clients.display());
    fails(&again(&folder), 1, &[&is_missing]);
    std::fs::rename(folder.path().join("key"), &clients).expect("the key is ours");
    std::fs::remove_file(pki.join("service-account.key")).expect("a key");
    fails(
        &again(&folder),
        1,
        &[&format!("but {} is missing", keys[1])],
    );
    // With the flag the server starts.
    Daemon::server(folder.path(), &["--new-authority"]).stop(Signal::TERM);
    Daemon::server(folder.path(), &[]).stop(Signal::TERM);
}

/// A start that was interrupted before anything was stored is no old store.
#[test]
fn makes_keys_for_a_store_without_objects() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).expect("a directory");
    std::fs::write(folder.path().join("data/store.redb"), b"").expect("a file");
    Daemon::server(folder.path(), &[]).stop(Signal::TERM);
}

/// A setting that would be ignored in silence keeps a node from starting.
#[test]
fn settings_that_a_node_cannot_follow_are_refused() {
    let folder = folder();
    let file = folder.path().join("node.yaml");
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                cpuManagerPolicy: static\nport: 10260\nhairpinMode: none\n";
    std::fs::write(&file, text).expect("a file");
    let name = file.display().to_string();
    for command in ["up", "node"] {
        let run = plimsoll(
            &[command, "--config", &name, "--data-dir", &data(&folder)],
            "",
        );
        let first = format!(
            "error: {name}:3:1: cpuManagerPolicy: \"static\" is not supported: no pod gets CPUs of \
             its own; supported: \"\", \"none\""
        );
        let second = format!(
            "error: {name}:4:1: port: 10260 differs from --kubelet-listen 0.0.0.0:10250; give \
             --kubelet-listen to plimsoll node"
        );
        fails(&run, 1, &[&first, &second]);
    }
}

#[test]
fn mistakes_in_configurations_have_positions() {
    let folder = folder();
    let file = folder.path().join("node.yaml");
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                maxPods: many\nevictionHrad: {}\n";
    std::fs::write(&file, text).expect("a file");
    let name = file.display().to_string();
    for command in ["up", "node"] {
        let run = plimsoll(
            &[command, "--config", &name, "--data-dir", &data(&folder)],
            "",
        );
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(lines.len(), 3, "{}", run.stderr);
        let first = format!("error: {name}:3:10: maxPods: Invalid value: \"many\"");
        let second = format!("error: {name}:4:1: evictionHrad: Unknown field");
        let hint = format!("hint: for details, run: plimsoll check {name}");
        fails(&run, 1, &[&first, &second, &hint]);
    }
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                parallelism: -1\nparalelism: 1\n";
    std::fs::write(&file, text).expect("a file");
    let run = plimsoll(&["scheduler", "--config", &name], "");
    fails(
        &run,
        1,
        &[
            &format!("error: {name}:4:"),
            &format!("hint: for details, run: plimsoll check {name}"),
        ],
    );
}
