//! Exit codes, errors and logging common to all commands.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::{Run, plimsoll};

/// Without any configuration of a cluster but those given.
fn alone(arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments).stdin(Stdio::null());
    command
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST");
    command.env_remove("RUST_LOG").env("HOME", folder.path());
    command.envs(variables.iter().copied());
    let output = command.output().expect("plimsoll starts");
    Run {
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
        code: output.status.code(),
    }
}

#[test]
fn exit_codes_are_those_of_the_table() {
    let help = plimsoll(&["--help"], "").stdout;
    let documented = include_str!("../../../../docs/commands.md");
    for (code, meaning) in [
        (0, "success"),
        (
            1,
            "the command failed on this machine, or found errors in its input",
        ),
        (2, "wrong usage"),
        (3, "the cluster refused, or could not be reached"),
        (70, "internal error"),
    ] {
        assert!(help.contains(&format!("\n  {code:<4}{meaning}")), "{help}");
        assert!(
            documented.contains(&format!("\n| {code} | {meaning}")),
            "{code}"
        );
    }
    assert_eq!(plimsoll(&["version"], "").code, Some(0));
    assert_eq!(plimsoll(&["check", "no-such-file.yaml"], "").code, Some(1));
    assert_eq!(plimsoll(&["token", "delete", "x"], "").code, Some(2));
    assert_eq!(plimsoll(&["node", "--node-labels", "x"], "").code, Some(2));
    assert_eq!(plimsoll(&["nothing"], "").code, Some(2));
}

#[test]
fn a_cluster_that_does_not_answer_ends_with_code_3() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Daemon::server(folder.path(), &[]);
    let address = server.address();
    let kubeconfig = folder
        .path()
        .join("data/admin.kubeconfig")
        .display()
        .to_string();
    let missing = plimsoll(&["loadline", "nowhere", "--kubeconfig", &kubeconfig], "");
    assert_eq!(missing.code, Some(3), "{}", missing.stderr);
    let expected = "Error from server (NotFound): nodes \"nowhere\" not found\n";
    assert_eq!(missing.stderr, expected);
    let arguments = ["replay", "--node", "nowhere", "--kubeconfig", &kubeconfig];
    let missing = plimsoll(&arguments, "");
    assert_eq!((missing.code, &*missing.stderr), (Some(3), expected));
    server.stop(Signal::TERM);
    for command in [
        &["loadline"][..],
        &["token", "list"],
        &["explain", "node", "n"],
        &["replay", "--node", "n"],
    ] {
        let run = plimsoll(&[command, &["--kubeconfig", &kubeconfig]].concat(), "");
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        assert!(
            run.stderr.starts_with("Unable to connect to the server: "),
            "{}",
            run.stderr
        );
        let tried = format!("hint: no answer from https://{address} (from {kubeconfig})");
        assert!(run.stderr.contains(&tried), "{}", run.stderr);
    }
    for command in ["scheduler", "controllers"] {
        let run = plimsoll(&[command, "--kubeconfig", "/nowhere/config"], "");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(
            run.stderr
                .starts_with("error: cannot read /nowhere/config\n"),
            "{}",
            run.stderr
        );
    }
}

/// The kubeconfig of a cluster on this machine would be used; there is none in an empty root.
#[test]
#[ignore = "tier: root"]
fn the_cluster_of_this_machine_is_the_default() {
    // A mount namespace of its own, in which /var/lib is empty.
    let script = "mount -t tmpfs none /var/lib && exec \"$@\"";
    let inside = |prepare: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        let script = script.replace("exec", &format!("{prepare} exec"));
        command.args(["--mount", "sh", "-c", &script, "sh"]);
        command.arg(env!("CARGO_BIN_EXE_plimsoll")).args(arguments);
        command.env_remove("KUBECONFIG").env("HOME", "/nonexistent");
        let output = command.output().expect("unshare runs");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), printed)
    };
    for command in [
        &["loadline"][..],
        &["token", "list"],
        &["scheduler"],
        &["controllers"],
    ] {
        let (code, printed) = inside("", command);
        assert_eq!(code, Some(1), "{printed}");
        let expected = "error: no kubeconfig found\n  KUBECONFIG is not set\n  \
                        /nonexistent/.kube/config does not exist\n  not running in a pod\n  \
                        /var/lib/plimsoll/admin.kubeconfig does not exist\n\
                        hint: start a cluster with \"plimsoll up\", or name a kubeconfig with --kubeconfig FILE\n";
        assert_eq!(printed, expected);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Daemon::server(folder.path(), &[]);
    let kubeconfig = folder.path().join("data/admin.kubeconfig");
    let copy = format!(
        "mkdir /var/lib/plimsoll && cp {} /var/lib/plimsoll/ &&",
        kubeconfig.display()
    );
    assert_eq!(inside(&copy, &["loadline"]), (Some(0), String::new()));
    drop(server);
    // A user without permission to read it gets an error.
    let prepare = format!("{copy} exec setpriv --reuid=65534 --regid=65534 --clear-groups");
    let mut command = Command::new("unshare");
    let script = script.replace("exec", &prepare);
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    // The program has to be where that user may go.
    let program = folder.path().join("plimsoll");
    std::fs::copy(env!("CARGO_BIN_EXE_plimsoll"), &program).expect("a copy");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("the folder is ours");
    command
        .arg(&program)
        .arg("loadline")
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent");
    let output = command.output().expect("unshare runs");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let expected = "error: cannot read /var/lib/plimsoll/admin.kubeconfig\n  Permission denied";
    assert!(printed.starts_with(expected), "{printed}");
    assert!(
        printed.contains("hint: ") && printed.contains("sudo"),
        "{printed}"
    );
}

#[test]
fn unreadable_kubeconfig_is_reported() {
    let run = alone(&["loadline"], &[("KUBECONFIG", "/nowhere/config")]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let expected = "error: cannot use the kubeconfig that KUBECONFIG names\n";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.contains("/nowhere/config"), "{}", run.stderr);
}

/// What a server with these arguments logs until it is stopped.
fn logged(further: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Daemon::server(folder.path(), further).stop(Signal::TERM).1
}

#[test]
fn verbosity_adds_lines() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Daemon::server(folder.path(), &[]);
    let kubeconfig = folder
        .path()
        .join("data/admin.kubeconfig")
        .display()
        .to_string();
    let asked = |variables: &[(&str, &str)], further: &[&str]| {
        let arguments = ["loadline", "--kubeconfig", &kubeconfig];
        let run = alone(&[&arguments[..], further].concat(), variables);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr
    };
    let no_lines = ["DEBUG", "TRACE"].map(|level| format!(" {level} "));
    for quiet in [asked(&[], &[]), asked(&[], &["-v", "2"])] {
        assert!(
            no_lines.iter().all(|level| !quiet.contains(level)),
            "{quiet}"
        );
    }
    assert!(asked(&[], &["-v", "6"]).contains(" DEBUG "));
    assert!(asked(&[], &["--verbosity=10"]).contains("TRACE "));
    // The variable wins.
    assert!(!asked(&[("RUST_LOG", "warn")], &["-v", "10"]).contains("TRACE "));
    assert!(asked(&[("RUST_LOG", "trace")], &[]).contains("TRACE "));
    let (_, log) = server.stop(Signal::TERM);
    assert_eq!(log.lines().count(), 3, "{log}");
    for wrong in ["11", "-1", "high"] {
        let run = plimsoll(&["version", &format!("-v={wrong}")], "");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
    }
    assert_eq!(plimsoll(&["-v", "4", "version"], "").code, Some(0));
}

#[test]
fn json_logs_are_json_on_every_line() {
    let log = logged(&["--log-format", "json", "-v=6"]);
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let messages = lines
        .iter()
        .filter_map(|line| line["fields"]["message"].as_str());
    let messages: Vec<&str> = messages.collect();
    for expected in [
        "serving on https://127.0.0.1:",
        "received SIGTERM, stopping",
    ] {
        let is_there = messages.iter().any(|message| message.starts_with(expected));
        assert!(is_there, "{expected}: {messages:?}");
    }
    let run = plimsoll(
        &[
            "config",
            "convert",
            "no-such-file.yaml",
            "--log-format",
            "json",
        ],
        "",
    );
    let error: Value = serde_json::from_str(&run.stderr).expect("JSON");
    assert_eq!(error["level"], "ERROR");
    assert_eq!(error["fields"]["message"], "cannot open no-such-file.yaml");
    assert!(
        error["fields"]["causes"]
            .as_str()
            .is_some_and(|text| text.contains("No such file"))
    );
}
