//! Exec, attach and port-forward.

use std::time::{Duration, Instant};

use plimsoll_runtime::wire::{AttachRequest, ExecRequest, ExecSyncResponse, Int64Value};
use plimsoll_runtime::{Error, Ports, Session, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{Scene, lasting, script, security, until};

pub(crate) async fn exec_returns_output_and_exit_code(scene: &Scene) {
    let id = scene.start_alone(&lasting()).await;
    let ran = exec(scene, &id, "echo out; echo err >&2; exit 7")
        .await
        .unwrap();
    assert_eq!(ran.exit_code, 7);
    assert_eq!(ran.stdout, b"out\n");
    assert_eq!(ran.stderr, b"err\n");
    let ran = exec(scene, &id, "true").await.unwrap();
    assert_eq!(
        (ran.exit_code, ran.stdout.len(), ran.stderr.len()),
        (0, 0, 0)
    );

    let command = ["/bin/no-such-program".to_owned()];
    let ran = scene
        .runtime()
        .exec_sync(&id, &command, Duration::ZERO)
        .await;
    assert!(ran.unwrap_err().chain().contains("no-such-program"));
}

pub(crate) async fn a_command_sees_the_containers_world(scene: &Scene) {
    let mut config = lasting();
    config.working_dir = "/var".to_owned();
    config.envs = vec![plimsoll_runtime::wire::KeyValue {
        key: "COLOR".to_owned(),
        value: b"blue".to_vec(),
    }];
    security(&mut config).run_as_user = Some(Int64Value { value: 1000 });
    let id = scene.start_alone(&config).await;
    assert_eq!(
        scene.shell(&id, "echo $COLOR $PWD $(id -u)").await,
        "blue /var 1000"
    );
    scene.shell(&id, "echo kept > /tmp/file").await;
    assert_eq!(scene.shell(&id, "cat /tmp/file").await, "kept");
}

pub(crate) async fn a_slow_command_is_ended_at_its_time_limit(scene: &Scene) {
    let id = scene.start_alone(&lasting()).await;
    let command = ["sleep", "4321"].map(str::to_owned);
    let limit = Duration::from_secs(1);
    let begun = Instant::now();
    let ran = scene.runtime().exec_sync(&id, &command, limit).await;
    let error = ran.unwrap_err();
    assert!(
        matches!(error, Error::TimedOut { after, .. } if after == limit),
        "{error:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    until("the command is gone", async || {
        let processes = scene.shell(&id, "ps -o args").await;
        (!processes.lines().any(|line| line == "sleep 4321")).then_some(())
    })
    .await;
}

pub(crate) async fn commands_run_only_in_running_containers(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let id = scene.create(&sandbox, &script("exit 0")).await;
    assert!(exec(scene, &id, "true").await.is_err());
    scene.runtime().start_container(&id).await.unwrap();
    scene.ended(&id).await;
    assert!(exec(scene, &id, "true").await.is_err());
}

pub(crate) async fn exec_returns_large_output_completely(scene: &Scene) {
    let id = scene.start_alone(&lasting()).await;
    let ran = exec(scene, &id, "head -c 1000000 /dev/zero | tr '\\0' x").await;
    let ran = ran.unwrap();
    assert_eq!(ran.stdout.len(), 1_000_000);
    assert!(ran.stdout.iter().all(|byte| *byte == b'x'));
}

pub(crate) async fn streams_are_handed_over_or_served_elsewhere(scene: &Scene) {
    let id = scene.start_alone(&lasting()).await;
    let script = "read line; echo got $line; echo err >&2; exit 7";
    let request = ExecRequest {
        container_id: id.clone(),
        cmd: ["sh", "-c", script].map(str::to_owned).to_vec(),
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
    };
    let mut streams = match scene.runtime().exec(&request).await.unwrap() {
        Session::Elsewhere(url) => return assert_is_address(&url),
        Session::Here(streams) => streams,
    };
    assert!(streams.resize.is_none());
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    stdin.shutdown().await.unwrap();
    let mut out = String::new();
    streams
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    let mut err = String::new();
    streams
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .await
        .unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("got hello\n", "err\n"));
    assert_eq!(streams.exit.await.unwrap(), 7);

    // Terminal sizes and bytes arrive on separate streams, so the command waits for the size.
    let sized = "read go; until test \"$(stty size)\" = '45 123'; do sleep 0.05; done; echo sized";
    let request = ExecRequest {
        cmd: ["sh", "-c", sized].map(str::to_owned).to_vec(),
        tty: true,
        stderr: false,
        ..request
    };
    let Session::Here(mut streams) = scene.runtime().exec(&request).await.unwrap() else {
        panic!("a runtime serves streams always here or always elsewhere");
    };
    assert!(streams.stderr.is_none());
    let size = TerminalSize {
        width: 123,
        height: 45,
    };
    streams.resize.take().unwrap().send(size).await.unwrap();
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"go\n").await.unwrap();
    let mut out = String::new();
    streams
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    assert!(out.contains("sized"), "{out}");
    assert_eq!(streams.exit.await.unwrap(), 0);
}

pub(crate) async fn attaching_joins_the_first_process(scene: &Scene) {
    let mut config = script("while read line; do echo got $line; done");
    config.stdin = true;
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    let request = AttachRequest {
        container_id: id.clone(),
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
    };
    let mut streams = match scene.runtime().attach(&request).await.unwrap() {
        Session::Elsewhere(url) => return assert_is_address(&url),
        Session::Here(streams) => streams,
    };
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    let mut stdout = streams.stdout.take().unwrap();
    let mut seen = [0; 10];
    stdout.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"got hello\n");
    scene.has_printed(&sandbox, &config, "got hello").await;
}

pub(crate) async fn ports_are_reached_or_served_elsewhere(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let config = script("while :; do echo hello | nc -l -p 8080; done");
    scene.start(&sandbox, &config).await;
    let dial = match scene.runtime().port_forward(&sandbox.id).await.unwrap() {
        Ports::Elsewhere(url) => return assert_is_address(&url),
        Ports::Here(dial) => dial,
    };
    let text = until("the port answers", async || {
        let mut connection = dial(8080).await.ok()?;
        let mut text = String::new();
        connection.read_to_string(&mut text).await.ok()?;
        Some(text)
    })
    .await;
    assert_eq!(text, "hello\n");
    assert!(dial(8081).await.is_err());
}

async fn exec(scene: &Scene, id: &str, script: &str) -> Result<ExecSyncResponse, Error> {
    let command = ["sh", "-c", script].map(str::to_owned);
    let limit = Duration::from_secs(30);
    scene.runtime().exec_sync(id, &command, limit).await
}

fn assert_is_address(url: &str) {
    assert!(
        url.starts_with("http://") || url.starts_with("https://"),
        "{url}"
    );
}
