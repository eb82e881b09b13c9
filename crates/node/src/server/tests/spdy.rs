//! Commands and ports over SPDY, with our own other half.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use plimsoll_runtime::{Connection as PortConnection, Error, Ports, TerminalSize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::exec::{Process, kubelet_api, process};
use super::kubelet_api::{FakeNode, KubeletApi, open_to_all, read, soon};
use super::runtime::FakeRuntime;
use crate::server::stream::spdy::{Connection, Headers, Limits, Role, Stream};

const V4: &str = "v4.channel.k8s.io";

const LIMITS: Limits = Limits {
    streams: 16,
    buffer: 1 << 20,
};

/// Asks for SPDY; the connection, or the refusal.
async fn upgrade(
    kubelet_api: &KubeletApi,
    path: &str,
    protocol: &str,
) -> Result<Connection, (StatusCode, String)> {
    let request = Request::post(path)
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", protocol)
        .body(Empty::<Bytes>::new());
    let mut response = soon(kubelet_api.send(None, request.unwrap())).await;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(read(response).await);
    }
    let headers: &HeaderMap = response.headers();
    assert_eq!(headers["upgrade"], "SPDY/3.1");
    assert_eq!(headers["x-stream-protocol-version"], protocol);
    let upgraded = soon(hyper::upgrade::on(&mut response)).await.unwrap();
    let (connection, _) = Connection::start(TokioIo::new(upgraded), Role::Client, LIMITS);
    Ok(connection)
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let pairs = pairs.iter();
    Headers(
        pairs
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect(),
    )
}

async fn open(connection: &mut Connection, kind: &str) -> Stream {
    let named = headers(&[("streamtype", kind)]);
    soon(connection.open(named)).await.expect("it is accepted")
}

async fn text(input: &mut DuplexStream) -> String {
    let mut text = String::new();
    soon(input.read_to_string(&mut text)).await.unwrap();
    text
}

#[tokio::test]
async fn a_command_has_a_stream_for_everything() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let path = "/exec/default/web/app?input=1&output=1&error=1&command=cat";
    let mut connection = upgrade(&kubelet_api, path, V4).await.unwrap();
    let mut error = open(&mut connection, "error").await;
    let stdin = open(&mut connection, "stdin").await;
    let mut stdout = open(&mut connection, "stdout").await;
    let mut stderr = open(&mut connection, "stderr").await;
    let Process {
        stdin: inside_in,
        stdout: inside_out,
        stderr: inside_err,
        exit,
        request,
        ..
    } = soon(processes.recv()).await.unwrap();
    assert_eq!(request.cmd, ["cat"]);

    // Far more than a window or a buffer, both ways at once.
    let much = "0123456789abcdef".repeat(100_000);
    let said = much.clone();
    let speaking = tokio::spawn(async move {
        for piece in said.as_bytes().chunks(30_000) {
            let piece = Bytes::copy_from_slice(piece);
            stdin.output.send(piece).await.unwrap();
        }
        stdin.output.finish().await;
        stdin
    });
    let cat = tokio::spawn(async move {
        let (mut from, mut to) = (inside_in.unwrap(), inside_out.unwrap());
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        inside_err.unwrap().write_all(b"done").await.unwrap();
        exit.send(Ok(0)).unwrap();
    });
    assert_eq!(text(&mut stdout.input).await.len(), much.len());
    assert_eq!(text(&mut stderr.input).await, "done");
    assert_eq!(text(&mut error.input).await, r#"{"status":"Success"}"#);
    soon(cat).await.unwrap();
    soon(speaking).await.unwrap();
    soon(connection.link.gone.cancelled()).await;
}

#[tokio::test]
async fn exit_status_has_the_format_of_the_protocol_version() {
    let message = "command terminated with non-zero exit code: \
                   error executing command [sh], exit code 7";
    for (protocol, is_json) in [
        (V4, true),
        ("v3.channel.k8s.io", false),
        ("v2.channel.k8s.io", false),
        ("channel.k8s.io", false),
    ] {
        let (kubelet_api, mut processes) = kubelet_api().await;
        let path = "/exec/default/web/app?output=1&command=sh";
        let mut connection = upgrade(&kubelet_api, path, protocol).await.unwrap();
        let mut error = open(&mut connection, "error").await;
        let mut stdout = open(&mut connection, "stdout").await;
        let process = soon(processes.recv()).await.unwrap();
        drop(process.stdout);
        process.exit.send(Ok(7)).unwrap();
        assert_eq!(text(&mut stdout.input).await, "");
        let reported = text(&mut error.input).await;
        if is_json {
            let status: Value = serde_json::from_str(&reported).unwrap();
            assert_eq!(status["message"], message);
            let causes = json!([{"reason": "ExitCode", "message": "7"}]);
            assert_eq!(status["details"]["causes"], causes);
        } else {
            assert_eq!(reported, message);
        }
    }
}

#[tokio::test]
async fn a_terminal_has_a_stream_for_its_size() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let path = "/exec/default/web/app?input=1&output=1&error=1&tty=1&command=sh";
    let mut connection = upgrade(&kubelet_api, path, V4).await.unwrap();
    let _error = open(&mut connection, "error").await;
    let _stdin = open(&mut connection, "stdin").await;
    let _stdout = open(&mut connection, "stdout").await;
    let resize = open(&mut connection, "resize").await;
    let mut process = soon(processes.recv()).await.unwrap();
    assert!(process.request.tty && !process.request.stderr);
    let size = Bytes::from_static(b"{\"Width\":100,\"Height\":30}\n");
    resize.output.send(size).await.unwrap();
    let expected = TerminalSize {
        width: 100,
        height: 30,
    };
    assert_eq!(soon(process.sizes.recv()).await, Some(expected));
}

#[tokio::test]
async fn process_ends_when_its_client_disconnects() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let path = "/exec/default/web/app?input=1&output=1&command=sleep";
    let mut connection = upgrade(&kubelet_api, path, V4).await.unwrap();
    let _error = open(&mut connection, "error").await;
    let _stdin = open(&mut connection, "stdin").await;
    let _stdout = open(&mut connection, "stdout").await;
    let mut process = soon(processes.recv()).await.unwrap();
    drop(connection);
    soon(process.exit.closed()).await;
}

#[tokio::test]
async fn unrequested_streams_are_refused() {
    let (kubelet_api, mut processes) = kubelet_api().await;
    let path = "/exec/default/web/app?output=1&command=sh";
    let mut connection = upgrade(&kubelet_api, path, V4).await.unwrap();
    let stdin = headers(&[("streamtype", "stdin")]);
    assert!(soon(connection.open(stdin)).await.is_err());
    let _error = open(&mut connection, "error").await;
    let again = headers(&[("streamtype", "error")]);
    assert!(soon(connection.open(again)).await.is_err());
    let mut stdout = open(&mut connection, "stdout").await;
    let mut process = soon(processes.recv()).await.unwrap();
    let mut out = process.stdout.take().unwrap();
    out.write_all(b"still there").await.unwrap();
    drop(out);
    assert_eq!(text(&mut stdout.input).await, "still there");
}

#[tokio::test]
async fn process_ends_if_its_client_opens_no_streams() {
    let (started, mut processes) = mpsc::unbounded_channel();
    let mut runtime = FakeRuntime::with_app("/nowhere");
    runtime.on_exec = Some(Box::new(move |request| {
        let (inside, session) = process(request);
        started.send(inside).unwrap();
        Ok(session)
    }));
    let kubelet_api = KubeletApi::with(FakeNode::with_web(runtime), |ca| {
        let mut options = open_to_all(ca);
        options.stream_creation = Duration::from_millis(50);
        options
    });
    let kubelet_api = kubelet_api.await;
    let path = "/exec/default/web/app?output=1&command=sh";
    let _connection = upgrade(&kubelet_api, path, V4).await.unwrap();
    let mut process = soon(processes.recv()).await.unwrap();
    soon(process.exit.closed()).await;
}

#[tokio::test]
async fn idle_session_is_closed() {
    let (started, mut processes) = mpsc::unbounded_channel();
    let mut runtime = FakeRuntime::with_app("/nowhere");
    runtime.on_exec = Some(Box::new(move |request| {
        let (inside, session) = process(request);
        started.send(inside).unwrap();
        Ok(session)
    }));
    let kubelet_api = KubeletApi::with(FakeNode::with_web(runtime), |ca| {
        let mut options = open_to_all(ca);
        options.idle = Duration::from_millis(100);
        options
    });
    let kubelet_api = kubelet_api.await;
    let path = "/exec/default/web/app?output=1&command=sh";
    let mut connection = upgrade(&kubelet_api, path, V4).await.unwrap();
    let _error = open(&mut connection, "error").await;
    let _stdout = open(&mut connection, "stdout").await;
    let mut process = soon(processes.recv()).await.unwrap();
    soon(process.exit.closed()).await;
    soon(connection.link.gone.cancelled()).await;
}

/// A kubelet API that forwards ports to this machine's own.
async fn forwarding() -> KubeletApi {
    let mut runtime = FakeRuntime::with_app("/nowhere");
    runtime.on_forward = Some(Box::new(|sandbox| {
        assert_eq!(sandbox, "sandbox-uid-web");
        Ok(Ports::Here(Box::new(|port| {
            Box::pin(async move {
                let connected = TcpStream::connect(("127.0.0.1", port)).await;
                let connected = connected.map_err(|error| Error::failed("connect", error))?;
                Ok(Box::new(connected) as Box<dyn PortConnection>)
            })
        })))
    }));
    KubeletApi::new(FakeNode::with_web(runtime)).await
}

async fn forward(connection: &mut Connection, port: u16, request: &str) -> (Stream, Stream) {
    let port = port.to_string();
    let named = |kind| {
        headers(&[
            ("streamtype", kind),
            ("port", &port),
            ("requestid", request),
        ])
    };
    let error = soon(connection.open(named("error"))).await.unwrap();
    error.output.finish().await;
    let data = soon(connection.open(named("data"))).await.unwrap();
    (data, error)
}

#[tokio::test]
async fn ports_are_reached_by_pairs_of_streams() {
    let kubelet_api = forwarding().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // Answers with what it heard, but only when the other side has said all.
    let echo = tokio::spawn(async move {
        for _ in 0..3 {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut heard = Vec::new();
                socket.read_to_end(&mut heard).await.unwrap();
                socket.write_all(&heard).await.unwrap();
            });
        }
    });
    let path = "/portForward/default/web";
    let mut connection = upgrade(&kubelet_api, path, "portforward.k8s.io")
        .await
        .unwrap();
    let mut all = Vec::new();
    for request in ["0", "1", "2"] {
        all.push((request, forward(&mut connection, port, request).await));
    }
    for (request, (mut data, mut error)) in all.into_iter().rev() {
        let said = request.repeat(200_000);
        for piece in said.as_bytes().chunks(16_384) {
            let piece = Bytes::copy_from_slice(piece);
            data.output.send(piece).await.unwrap();
        }
        data.output.finish().await;
        assert_eq!(text(&mut data.input).await, said);
        assert_eq!(text(&mut error.input).await, "");
    }
    soon(echo).await.unwrap();
}

#[tokio::test]
async fn forwarding_to_a_closed_port_reports_an_error() {
    let kubelet_api = forwarding().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let path = "/portForward/default/web/uid-web";
    let mut connection = upgrade(&kubelet_api, path, "portforward.k8s.io")
        .await
        .unwrap();
    let (data, mut error) = forward(&mut connection, port, "0").await;
    let reported = text(&mut error.input).await;
    let start = format!("error forwarding port {port} to pod web, uid uid-web: cannot connect: ");
    assert!(reported.starts_with(&start), "{reported}");
    soon(data.reset.cancelled()).await;
    // The connection is still good.
    let bad = headers(&[("streamtype", "data"), ("port", "0")]);
    assert!(soon(connection.open(bad)).await.is_err());
    let (_, mut error) = forward(&mut connection, port, "1").await;
    assert!(text(&mut error.input).await.starts_with("error forwarding"));
}

#[tokio::test]
async fn invalid_port_forward_requests_are_refused() {
    let kubelet_api = forwarding().await;
    let v1 = "portforward.k8s.io";
    let cases = [
        ("/portForward/default/gone", v1, 404, "pod does not exist"),
        ("/portForward/default/web/other", v1, 404, "pod not found"),
        (
            "/portForward/default/web",
            "other",
            403,
            "unable to upgrade: unable to negotiate protocol: client supports [other], \
             server accepts [portforward.k8s.io]\n",
        ),
    ];
    for (path, protocol, code, expected) in cases {
        let refused = upgrade(&kubelet_api, path, protocol).await.unwrap_err();
        let code = StatusCode::from_u16(code).unwrap();
        assert_eq!(refused, (code, expected.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn malformed_bytes_end_only_their_connection() {
    let (kubelet_api, _processes) = kubelet_api().await;
    let kubelet_api = Arc::new(kubelet_api);
    let request = Request::post("/exec/default/web/app?output=1&command=sh")
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", V4)
        .body(Empty::<Bytes>::new());
    let mut response = soon(kubelet_api.send(None, request.unwrap())).await;
    let upgraded = soon(hyper::upgrade::on(&mut response)).await.unwrap();
    let mut io = TokioIo::new(upgraded);
    io.write_all(&[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff, 1, 2, 3])
        .await
        .unwrap();
    let mut rest = Vec::new();
    let _ = soon(io.read_to_end(&mut rest)).await;
    assert_eq!(soon(kubelet_api.get("/healthz")).await.0, StatusCode::OK);
}
