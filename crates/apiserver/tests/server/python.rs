//! The Python client `kubernetes` as an independent check.

use std::path::Path;
use std::process::{Command, Output};

use super::cluster::Cluster;

fn run(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}; install python3 and python3-venv"))
}

/// A Python with the package, in a directory of its own; `None` if there is no package index.
fn python(folder: &Path) -> Option<std::path::PathBuf> {
    let venv = folder.join("venv");
    let made = run(Command::new("python3").arg("-m").arg("venv").arg(&venv));
    let text = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(
        made.status.success(),
        "no venv; install python3-venv: {text}"
    );
    let python = venv.join("bin/python");
    let installed = run(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--timeout",
        "20",
        "--retries",
        "1",
        "kubernetes",
    ]));
    installed.status.success().then_some(python)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn the_python_client_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let found = tokio::task::spawn_blocking(move || python(&path))
        .await
        .unwrap();
    let Some(python) = found else {
        eprintln!("skipped: pip finds no package index to install the client `kubernetes` from");
        return;
    };
    let cluster = Cluster::start().await;
    let kubeconfig = folder.path().join("kubeconfig");
    let text = cluster.kubeconfig("admin", &["system:masters"]);
    std::fs::write(&kubeconfig, text).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");
    let output = tokio::task::spawn_blocking(move || {
        run(Command::new(python)
            .arg(script)
            .env("KUBECONFIG", kubeconfig))
    });
    let output = output.await.unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.ends_with("all steps passed\n"), "{out}");
}
