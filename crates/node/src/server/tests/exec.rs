//! Commands over WebSockets, with the client that everything else here uses.

use std::sync::Arc;

use bytes::Bytes;
use futures::SinkExt;
use http::{Request, Uri};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess, TerminalSize as Size};
use plimsoll_runtime::wire::ExecRequest;
use plimsoll_runtime::{Error, ProcessStreams, Session, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tower::service_fn;

use super::kubelet_api::{FakeNode, KubeletApi, soon};
use super::runtime::FakeRuntime;

/// The inside of a process that a test plays.
pub(super) struct Process {
    pub(super) stdin: Option<DuplexStream>,
    pub(super) stdout: Option<DuplexStream>,
    pub(super) stderr: Option<DuplexStream>,
    pub(super) sizes: mpsc::Receiver<TerminalSize>,
    pub(super) exit: oneshot::Sender<Result<i32, Error>>,
    pub(super) request: ExecRequest,
}

/// A process with the requested streams.
pub(super) fn process(request: &ExecRequest) -> (Process, Session) {
    let pipe = |wanted: bool| wanted.then(|| tokio::io::duplex(64)).unzip();
    let (stdin, inner_stdin) = pipe(request.stdin);
    let (stdout, inner_stdout) = pipe(request.stdout);
    let (stderr, inner_stderr) = pipe(request.stderr);
    let (resize, sizes) = mpsc::channel(8);
    let (exit, exited) = oneshot::channel();
    let streams = ProcessStreams {
        stdin: stdin.map(|s| Box::new(s) as _),
        stdout: stdout.map(|s| Box::new(s) as _),
        stderr: stderr.map(|s| Box::new(s) as _),
        resize: request.tty.then_some(resize),
        exit: Box::pin(async move {
            let lost = Error::Invalid("the process was lost".to_owned());
            exited.await.unwrap_or(Err(lost))
        }),
    };
    let process = Process {
        stdin: inner_stdin,
        stdout: inner_stdout,
        stderr: inner_stderr,
        sizes,
        exit,
        request: request.clone(),
    };
    (process, Session::Here(Box::new(streams)))
}

/// A kubelet API whose commands come out of the receiver as processes.
pub(super) async fn kubelet_api() -> (KubeletApi, mpsc::UnboundedReceiver<Process>) {
    let (started, processes) = mpsc::unbounded_channel();
    let mut runtime = FakeRuntime::with_app("/nowhere");
    let attached = started.clone();
    runtime.on_exec = Some(Box::new(move |request| {
        let (inside, session) = process(request);
        started.send(inside).unwrap();
        Ok(session)
    }));
    runtime.on_attach = Some(Box::new(move |request| {
        let (inside, session) = process(&ExecRequest {
            tty: request.tty,
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            ..ExecRequest::default()
        });
        attached.send(inside).unwrap();
        Ok(session)
    }));
    (
        KubeletApi::new(FakeNode::with_web(runtime)).await,
        processes,
    )
}

/// A client that calls the kubelet API as the API server would: `pods/exec` becomes `/exec`.
pub(super) fn pods(kubelet_api: &Arc<KubeletApi>) -> Api<Pod> {
    let kubelet_api = Arc::clone(kubelet_api);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let kubelet_api = Arc::clone(&kubelet_api);
        async move {
            let (mut parts, body) = request.into_parts();
            parts.uri = at_the_node(&parts.uri);
            parts.headers.insert("host", "localhost".parse().unwrap());
            let io = TokioIo::new(kubelet_api.connect(None).await);
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
            tokio::spawn(async move {
                let _ = connection.with_upgrades().await;
            });
            sender.send_request(Request::from_parts(parts, body)).await
        }
    });
    Api::namespaced(kube::Client::new(service, "default"), "default")
}

/// What the API server makes of an address below a pod.
pub(super) fn at_the_node(uri: &Uri) -> Uri {
    let parts: Vec<&str> = uri.path().split('/').collect();
    let ["", "api", "v1", "namespaces", namespace, "pods", pod, verb] = parts[..] else {
        panic!("{uri}");
    };
    let mut container = "app";
    let mut query = Vec::new();
    for pair in uri.query().unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let flag = u8::from(value == "true");
        match name {
            "container" => container = value,
            "stdin" => query.push(format!("input={flag}")),
            "stdout" => query.push(format!("output={flag}")),
            "stderr" => query.push(format!("error={flag}")),
            "tty" => query.push(format!("tty={flag}")),
            _ => query.push(pair.to_owned()),
        }
    }
    let query = query.join("&");
    let path = match verb {
        "portforward" => format!("/portForward/{namespace}/{pod}"),
        "log" => format!("/containerLogs/{namespace}/{pod}/{container}?{query}"),
        _ => format!("/{verb}/{namespace}/{pod}/{container}?{query}"),
    };
    path.parse().unwrap()
}

async fn text(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut text = String::new();
    soon(stream.read_to_string(&mut text)).await.unwrap();
    text
}

async fn reason(mut attached: AttachedProcess) -> (String, String) {
    let status = soon(attached.take_status().unwrap()).await.unwrap();
    let code = status.details.and_then(|details| details.causes);
    let code = code.and_then(|causes| causes.into_iter().next());
    let code = code.and_then(|cause| cause.message);
    (status.status.unwrap_or_default(), code.unwrap_or_default())
}

#[tokio::test]
async fn input_output_and_exit_code_travel() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let kubelet_api = Arc::new(kubelet_api);
    let params = AttachParams::default().stdin(true);
    let mut attached = soon(pods(&kubelet_api).exec("web", ["cat", "-n"], &params))
        .await
        .unwrap();
    let mut process = soon(processes.recv()).await.unwrap();
    assert_eq!(process.request.cmd, ["cat", "-n"]);
    assert_eq!(process.request.container_id, "c1");

    let mut stdin = attached.stdin().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    let inside = process.stdin.as_mut().unwrap();
    soon(inside.read_exact(&mut heard)).await.unwrap();
    assert_eq!(&heard, b"hello");
    // Closing the input is possible since the fifth version.
    stdin.shutdown().await.unwrap();
    drop(stdin);
    assert_eq!(text(process.stdin.as_mut().unwrap()).await, "");

    let output = "out ".repeat(5000);
    let mut stdout = attached.stdout().unwrap();
    let mut stderr = attached.stderr().unwrap();
    let said = output.clone();
    let saying = tokio::spawn(async move {
        let (mut out, mut err) = (process.stdout.unwrap(), process.stderr.unwrap());
        out.write_all(said.as_bytes()).await.unwrap();
        err.write_all(b"oops").await.unwrap();
        process.exit.send(Ok(3)).unwrap();
    });
    let (heard, errors) = tokio::join!(text(&mut stdout), text(&mut stderr));
    assert_eq!(heard, output);
    assert_eq!(errors, "oops");
    saying.await.unwrap();
    let failure = ("Failure".to_owned(), "3".to_owned());
    assert_eq!(reason(attached).await, failure);
}

#[tokio::test]
async fn a_terminal_follows_its_client() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let kubelet_api = Arc::new(kubelet_api);
    let params = AttachParams::interactive_tty();
    let mut attached = soon(pods(&kubelet_api).exec("web", ["sh"], &params))
        .await
        .unwrap();
    let mut process = soon(processes.recv()).await.unwrap();
    assert!(process.request.tty && !process.request.stderr);
    let mut sizes = attached.terminal_size().unwrap();
    let size = Size {
        width: 80,
        height: 24,
    };
    sizes.send(size).await.unwrap();
    let expected = TerminalSize {
        width: 80,
        height: 24,
    };
    assert_eq!(soon(process.sizes.recv()).await, Some(expected));
    drop(process.stdout);
    process.exit.send(Ok(0)).unwrap();
    let success = ("Success".to_owned(), String::new());
    assert_eq!(reason(attached).await, success);
}

#[tokio::test]
async fn process_ends_when_its_client_disconnects() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let kubelet_api = Arc::new(kubelet_api);
    let params = AttachParams::default().stdin(true);
    let attached = soon(pods(&kubelet_api).exec("web", ["sleep"], &params))
        .await
        .unwrap();
    let mut process = soon(processes.recv()).await.unwrap();
    attached.abort();
    drop(attached);
    // The process loses its streams and its future.
    soon(process.exit.closed()).await;
    assert_eq!(text(process.stdin.as_mut().unwrap()).await, "");
}

#[tokio::test]
async fn attach_streams_the_running_process() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let kubelet_api = Arc::new(kubelet_api);
    let params = AttachParams::default().stdin(false);
    let mut attached = soon(pods(&kubelet_api).attach("web", &params))
        .await
        .unwrap();
    let mut process = soon(processes.recv()).await.unwrap();
    let mut stdout = attached.stdout().unwrap();
    process
        .stdout
        .take()
        .unwrap()
        .write_all(b"log")
        .await
        .unwrap();
    process.stderr.take();
    process.exit.send(Ok(0)).unwrap();
    assert_eq!(text(&mut stdout).await, "log");
    let success = ("Success".to_owned(), String::new());
    assert_eq!(reason(attached).await, success);
}

#[tokio::test]
async fn failed_start_is_reported_on_the_error_channel() {
    let mut runtime = FakeRuntime::with_app("/nowhere");
    runtime.on_exec = Some(Box::new(|_| {
        Err(Error::failed("start \"nothing\"", "no such file"))
    }));
    let kubelet_api = Arc::new(KubeletApi::new(FakeNode::with_web(runtime)).await);
    let params = AttachParams::default();
    let mut attached = soon(pods(&kubelet_api).exec("web", ["nothing"], &params))
        .await
        .unwrap();
    let status = soon(attached.take_status().unwrap()).await.unwrap();
    assert_eq!(
        status.message.unwrap(),
        "Internal error occurred: error executing command in container: \
         cannot start \"nothing\": no such file"
    );
}

#[tokio::test]
async fn stopped_server_ends_commands() {
    let (mut kubelet_api, mut processes) = kubelet_api().await;
    let request = Request::get("/exec/default/web/app?output=1&command=sleep")
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "v4.channel.k8s.io")
        .body(http_body_util::Empty::<Bytes>::new());
    let response = soon(kubelet_api.send(None, request.unwrap())).await;
    assert_eq!(response.status(), 101);
    let accept = &response.headers()["sec-websocket-accept"];
    assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let mut process = soon(processes.recv()).await.unwrap();
    kubelet_api.stop.cancel();
    soon(&mut kubelet_api.task).await.unwrap();
    soon(process.exit.closed()).await;
}
