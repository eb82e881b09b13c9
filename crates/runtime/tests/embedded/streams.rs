//! Terminals and live streams.

use std::time::Duration;

use plimsoll_runtime::wire::{AttachRequest, ContainerConfig, ExecRequest};
use plimsoll_runtime::{Output, ProcessStreams, Runtime, Session, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{PATIENCE, Scene, shell, until};

async fn container(scene: &mut Scene, config: ContainerConfig) -> String {
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    scene.run(&sandbox, &pod, config).await
}

fn here(session: Session) -> ProcessStreams {
    match session {
        Session::Here(streams) => *streams,
        Session::Elsewhere(url) => panic!("streams are at {url}"),
    }
}

/// Reads until the text has arrived.
async fn read_until(output: &mut Output, text: &str) -> String {
    let mut got = String::new();
    let read = async {
        let mut buffer = [0; 1024];
        while !got.contains(text) {
            let length = output.read(&mut buffer).await.unwrap();
            assert_ne!(length, 0, "ended after {got:?}");
            got.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    };
    let done = tokio::time::timeout(PATIENCE, read).await;
    assert!(done.is_ok(), "waited in vain for {text:?}, got {got:?}");
    got
}

async fn read_all(output: Option<Output>) -> String {
    let mut text = String::new();
    output.unwrap().read_to_string(&mut text).await.unwrap();
    text
}

fn exec(id: &str, line: &str) -> ExecRequest {
    ExecRequest {
        container_id: id.to_owned(),
        cmd: ["sh", "-c", line].map(str::to_owned).to_vec(),
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
    }
}

pub(crate) async fn a_command_has_three_streams(scene: &mut Scene) {
    let id = container(scene, shell("main", "exec sleep 1000")).await;
    let request = exec(&id, "cat; echo error >&2; exit 5");
    let mut streams = here(scene.runtime().exec(&request).await.unwrap());
    assert!(streams.resize.is_none());
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    stdin.shutdown().await.unwrap();
    assert_eq!(read_all(streams.stdout.take()).await, "hello");
    assert_eq!(read_all(streams.stderr.take()).await, "error\n");
    assert_eq!(streams.exit.await.unwrap(), 5);
}

/// Waits until the container's terminal has the size.
async fn has_size(scene: &Scene, id: &str, size: &str) {
    until("the size has come", || async {
        let (output, _) = scene
            .exec(id, &["sh", "-c", "stty size < /dev/pts/0"])
            .await;
        output.starts_with(size).then_some(())
    })
    .await;
}

pub(crate) async fn a_command_with_a_terminal_knows_its_size(scene: &mut Scene) {
    let id = container(scene, shell("main", "exec sleep 1000")).await;
    let line = "tty; while read word; do echo got $word; done";
    let request = ExecRequest {
        tty: true,
        ..exec(&id, line)
    };
    let mut streams = here(scene.runtime().exec(&request).await.unwrap());
    assert!(streams.stderr.is_none());
    let mut stdout = streams.stdout.take().unwrap();
    read_until(&mut stdout, "/dev/pts/0").await;
    let size = TerminalSize {
        width: 123,
        height: 45,
    };
    streams.resize.as_ref().unwrap().send(size).await.unwrap();
    let mut stdin = streams.stdin.take().unwrap();
    has_size(scene, &id, "45 123").await;
    stdin.write_all(b"word\n").await.unwrap();
    read_until(&mut stdout, "got word").await;
    // End of file, as typed.
    stdin.write_all(b"\x04").await.unwrap();
    assert_eq!(streams.exit.await.unwrap(), 0);
}

pub(crate) async fn hanging_up_kills_the_command(scene: &mut Scene) {
    let id = container(scene, shell("main", "exec sleep 1000")).await;
    for tty in [false, true] {
        let request = ExecRequest {
            tty,
            ..exec(&id, "echo begun; exec sleep 4711")
        };
        let mut streams = here(scene.runtime().exec(&request).await.unwrap());
        read_until(streams.stdout.as_mut().unwrap(), "begun").await;
        drop(streams);
        until("the command is gone", || async {
            let (processes, _) = scene.exec(&id, &["ps", "-o", "args"]).await;
            (!processes.contains("4711")).then_some(())
        })
        .await;
    }
}

pub(crate) async fn missing_command_is_reported(scene: &mut Scene) {
    let id = container(scene, shell("main", "exec sleep 1000")).await;
    let command = vec!["no-such-tool".to_owned()];
    let refused = scene
        .runtime()
        .exec_sync(&id, &command, Duration::ZERO)
        .await
        .unwrap_err();
    let want = "exec: \"no-such-tool\": executable file not found in $PATH";
    assert!(refused.chain().contains(want), "{}", refused.chain());
}

fn attach(id: &str, tty: bool) -> AttachRequest {
    AttachRequest {
        container_id: id.to_owned(),
        stdin: true,
        stdout: true,
        stderr: !tty,
        tty,
    }
}

pub(crate) async fn stdin_once_closes_stdin_after_the_first_attach(scene: &mut Scene) {
    let mut config = shell("main", "cat; echo done >&2");
    config.stdin = true;
    config.stdin_once = true;
    let id = container(scene, config).await;
    let mut streams = here(scene.runtime().attach(&attach(&id, false)).await.unwrap());
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    read_until(streams.stdout.as_mut().unwrap(), "hello\n").await;
    stdin.shutdown().await.unwrap();
    assert_eq!(read_all(streams.stderr.take()).await, "done\n");
    assert_eq!(streams.exit.await.unwrap(), 0);
    assert_eq!(scene.wait_for_exit(&id).await.exit_code, 0);
}

pub(crate) async fn many_attach_to_one_terminal(scene: &mut Scene) {
    let mut config = shell(
        "main",
        "while read word; do echo \"$word $(stty size)\"; done",
    );
    config.stdin = true;
    config.tty = true;
    let id = container(scene, config).await;
    let mut first = here(scene.runtime().attach(&attach(&id, true)).await.unwrap());
    let mut second = here(scene.runtime().attach(&attach(&id, true)).await.unwrap());
    let size = TerminalSize {
        width: 80,
        height: 24,
    };
    first.resize.as_ref().unwrap().send(size).await.unwrap();
    has_size(scene, &id, "24 80").await;
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(b"one\n").await.unwrap();
    read_until(first.stdout.as_mut().unwrap(), "one 24 80").await;
    read_until(second.stdout.as_mut().unwrap(), "24 80").await;
    // Detaching does not stop the container.
    drop((first, stdin));
    let mut stdin = second.stdin.take().unwrap();
    stdin.write_all(b"two\n").await.unwrap();
    read_until(second.stdout.as_mut().unwrap(), "two 24 80").await;
    drop((second, stdin));
    scene
        .runtime()
        .stop_container(&id, Duration::ZERO)
        .await
        .unwrap();
}

pub(crate) async fn slow_reader_does_not_block_other_readers(scene: &mut Scene) {
    let line = "i=0; while [ $i -lt 4000 ]; do echo $i; i=$((i+1)); done; \
                dd if=/dev/zero bs=1024 count=2048 2>/dev/null; echo; echo end";
    let mut config = shell("main", &format!("read go; {line}"));
    config.stdin = true;
    let id = container(scene, config).await;
    let mut lazy = here(scene.runtime().attach(&attach(&id, false)).await.unwrap());
    lazy.stdin
        .as_mut()
        .unwrap()
        .write_all(b"go\n")
        .await
        .unwrap();
    // The client does not read: the monitor drops it after a while.
    assert_eq!(scene.wait_for_exit(&id).await.exit_code, 0);
    let log = std::fs::read(scene.logs().join("main/0.log")).unwrap();
    assert!(log.ends_with(b" stdout F end\n"));
}
