//! The real `kubectl`, through a front that stands in for the API server.
//!
//! It speaks SPDY and WebSockets with Go's libraries, which no half of ours can stand in for.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::{Output, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plimsoll_runtime::{Connection, Error, Ports, TerminalSize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::exec::{at_the_node, kubelet_api};
use super::kubelet_api::{FakeNode, KubeletApi, soon};
use super::runtime::FakeRuntime;

/// Answers what kubectl asks before it gets to the point, and passes that on.
async fn front(kubelet_api: Arc<KubeletApi>, speaks: Speaks) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let kubelet_api = Arc::clone(&kubelet_api);
            let service = service_fn(move |request| {
                let kubelet_api = Arc::clone(&kubelet_api);
                async move { Ok::<_, Infallible>(answer(&kubelet_api, speaks, request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .with_upgrades();
            tokio::spawn(async move {
                let _ = connection.await;
            });
        }
    });
    address
}

async fn answer(
    kubelet_api: &KubeletApi,
    speaks: Speaks,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    if let Some(upgrade) = request.headers().get("upgrade") {
        assert!(upgrade == "SPDY/3.1" || speaks == Speaks::Newest);
    }
    let found: Value = match request.uri().path() {
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}),
        "/api/v1" => json!({
            "kind": "APIResourceList", "groupVersion": "v1",
            "resources": [{
                "name": "pods", "singularName": "", "namespaced": true, "kind": "Pod",
                "verbs": ["get", "list"],
            }],
        }),
        "/api/v1/namespaces/default/pods/web" => {
            let mut pod = serde_json::to_value(&*kubelet_api.node.pods[0]).unwrap();
            pod["status"]["phase"] = "Running".into();
            pod
        }
        path if path.starts_with("/api/v1/namespaces/default/pods/web/") => {
            return pass_on(kubelet_api, request).await;
        }
        _ => {
            let mut missing = Response::new(Full::default());
            *missing.status_mut() = StatusCode::NOT_FOUND;
            return missing;
        }
    };
    let mut response = Response::new(Full::from(found.to_string()));
    let kind = "application/json".parse().unwrap();
    response.headers_mut().insert("content-type", kind);
    response
}

async fn pass_on(
    kubelet_api: &KubeletApi,
    mut request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let client = hyper::upgrade::on(&mut request);
    let mut passed = Request::new(Empty::<Bytes>::new());
    *passed.method_mut() = request.method().clone();
    *passed.uri_mut() = at_the_node(request.uri());
    *passed.headers_mut() = request.headers().clone();
    passed.headers_mut().remove("content-length");
    let mut response = kubelet_api.send(None, passed).await;
    let (code, headers) = (response.status(), response.headers().clone());
    let mut answer = if code == StatusCode::SWITCHING_PROTOCOLS {
        let node = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            let (client, node) = (client.await.unwrap(), node.await.unwrap());
            let (mut client, mut node) = (TokioIo::new(client), TokioIo::new(node));
            let _ = tokio::io::copy_bidirectional(&mut client, &mut node).await;
        });
        Response::new(Full::default())
    } else {
        let body = response.into_body().collect().await.unwrap();
        Response::new(Full::from(body.to_bytes()))
    };
    *answer.status_mut() = code;
    *answer.headers_mut() = headers;
    answer.headers_mut().remove("transfer-encoding");
    answer
}

/// What kubectl speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    Spdy,
    /// WebSockets, if it is new enough.
    Newest,
}

const BOTH: [Speaks; 2] = [Speaks::Spdy, Speaks::Newest];

fn kubectl(front: SocketAddr, speaks: Speaks, args: &[&str]) -> Command {
    let web_sockets = match speaks {
        Speaks::Spdy => "false",
        Speaks::Newest => "true",
    };
    let mut command = Command::new("kubectl");
    command
        .arg(format!("--server=http://{front}"))
        .arg("--cache-dir=/nonexistent")
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/local/bin")
        .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", web_sockets)
        .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", web_sockets)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn start(front: SocketAddr, speaks: Speaks, args: &[&str]) -> Child {
    let started = kubectl(front, speaks, args).spawn();
    started.expect("kubectl is installed (apt install kubernetes-client)")
}

async fn finish(child: Child) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = soon(child.wait_with_output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn kubectl_exec_carries_streams_and_exit_code() {
    for speaks in BOTH {
        let (kubelet_api, mut processes) = kubelet_api().await;
        let front = front(Arc::new(kubelet_api), speaks).await;
        let mut child = start(
            front,
            speaks,
            &["exec", "-i", "web", "-c", "app", "--", "cat", "-n"],
        );
        let process = soon(processes.recv()).await.unwrap();
        assert_eq!(process.request.cmd, ["cat", "-n"]);
        let much = "0123456789abcdef".repeat(50_000);
        let mut stdin = child.stdin.take().unwrap();
        let said = much.clone();
        tokio::spawn(async move {
            stdin.write_all(said.as_bytes()).await.unwrap();
            drop(stdin);
        });
        let cat = tokio::spawn(async move {
            let (mut from, mut to) = (process.stdin.unwrap(), process.stdout.unwrap());
            tokio::io::copy(&mut from, &mut to).await.unwrap();
            process.stderr.unwrap().write_all(b"oops\n").await.unwrap();
            process.exit.send(Ok(5)).unwrap();
        });
        let (code, stdout, stderr) = finish(child).await;
        soon(cat).await.unwrap();
        assert_eq!(stdout.len(), much.len());
        assert_eq!(stdout, much);
        assert_eq!(stderr, "oops\ncommand terminated with exit code 5\n");
        assert_eq!(code, Some(5));
    }
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn an_interrupted_kubectl_ends_its_command() {
    for speaks in BOTH {
        let (kubelet_api, mut processes) = kubelet_api().await;
        let front = front(Arc::new(kubelet_api), speaks).await;
        let mut child = start(
            front,
            speaks,
            &["exec", "-i", "web", "-c", "app", "--", "sleep"],
        );
        let mut process = soon(processes.recv()).await.unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"x").await.unwrap();
        let mut heard = [0];
        let inside = process.stdin.as_mut().unwrap();
        soon(inside.read_exact(&mut heard)).await.unwrap();
        child.kill().await.unwrap();
        soon(process.exit.closed()).await;
    }
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn a_terminal_of_kubectl_reaches_the_command() {
    for speaks in BOTH {
        let (kubelet_api, mut processes) = kubelet_api().await;
        let front = front(Arc::new(kubelet_api), speaks).await;
        let (near, far) = terminal(100, 30);
        let args = ["exec", "-it", "web", "-c", "app", "--", "sh"];
        let mut command = kubectl(front, speaks, &args);
        command.stdin(far.try_clone().unwrap());
        command.stdout(far.try_clone().unwrap()).stderr(far);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut process = soon(processes.recv()).await.unwrap();
        assert!(process.request.tty && process.request.stdin && !process.request.stderr);
        let size = TerminalSize {
            width: 100,
            height: 30,
        };
        assert_eq!(soon(process.sizes.recv()).await, Some(size));
        let mut near = tokio::fs::File::from_std(near);
        near.write_all(b"typed\r").await.unwrap();
        near.flush().await.unwrap();
        let mut typed = [0; 6];
        let inside = process.stdin.as_mut().unwrap();
        soon(inside.read_exact(&mut typed)).await.unwrap();
        assert_eq!(&typed, b"typed\r");
        let mut out = process.stdout.take().unwrap();
        out.write_all(b"answer\r\n").await.unwrap();
        drop(out);
        process.exit.send(Ok(0)).unwrap();
        let status = soon(child.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0));
        let mut shown = vec![0; 4096];
        let count = soon(near.read(&mut shown)).await.unwrap();
        let shown = String::from_utf8_lossy(&shown[..count]);
        assert!(shown.contains("answer\r\n"), "{shown:?}");
    }
}

/// A terminal of that size: the side that a person sits at, and the program's.
fn terminal(width: u16, height: u16) -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let name = ptsname(&near, Vec::new()).unwrap();
    let size = Winsize {
        ws_row: height,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&near, size).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let far = options.read(true).write(true).open(name.to_str().unwrap());
    (std::fs::File::from(near), far.unwrap())
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn kubectl_prints_why_a_command_did_not_start() {
    for speaks in BOTH {
        let mut runtime = FakeRuntime::with_app("/nowhere");
        runtime.on_exec = Some(Box::new(|_| {
            Err(Error::failed("start \"nothing\"", "no such file"))
        }));
        let kubelet_api = KubeletApi::new(FakeNode::with_web(runtime)).await;
        let front = front(Arc::new(kubelet_api), speaks).await;
        let child = start(
            front,
            speaks,
            &["exec", "web", "-c", "app", "--", "nothing"],
        );
        let (code, stdout, stderr) = finish(child).await;
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        let why = "error: Internal error occurred: error executing command in container: \
                   cannot start \"nothing\": no such file\n";
        assert_eq!(stderr, why);
    }
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn kubectl_attach_prints_the_output_of_the_running_process() {
    for speaks in BOTH {
        let (kubelet_api, mut processes) = kubelet_api().await;
        let front = front(Arc::new(kubelet_api), speaks).await;
        let child = start(front, speaks, &["attach", "web", "-c", "app"]);
        let process = soon(processes.recv()).await.unwrap();
        process.stdout.unwrap().write_all(b"a log\n").await.unwrap();
        drop(process.stderr);
        process.exit.send(Ok(0)).unwrap();
        let (code, stdout, stderr) = finish(child).await;
        assert_eq!((code, stdout.as_str()), (Some(0), "a log\n"), "{stderr}");
    }
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn kubectl_logs_shows_the_last_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.log");
    let log = "1970-01-01T00:00:01Z stdout F one\n1970-01-01T00:00:02Z stderr F two\n";
    std::fs::write(&path, log).unwrap();
    let runtime = FakeRuntime::with_app(path.to_str().unwrap());
    let kubelet_api = KubeletApi::new(FakeNode::with_web(runtime)).await;
    let front = front(Arc::new(kubelet_api), Speaks::Spdy).await;
    let child = start(
        front,
        Speaks::Spdy,
        &["logs", "web", "-c", "app", "--tail=1", "--timestamps"],
    );
    let expected = "1970-01-01T00:00:02.000000000Z two\n";
    assert_eq!(
        finish(child).await,
        (Some(0), expected.to_owned(), String::new())
    );
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn kubectl_port_forward_reaches_a_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    let mut runtime = FakeRuntime::with_app("/nowhere");
    runtime.on_forward = Some(Box::new(move |_| {
        Ok(Ports::Here(Box::new(move |port| {
            Box::pin(async move {
                if port != 80 {
                    return Err(Error::Invalid("connection refused".to_owned()));
                }
                let socket = TcpStream::connect(target).await.unwrap();
                Ok(Box::new(socket) as Box<dyn Connection>)
            })
        })))
    }));
    let kubelet_api = KubeletApi::new(FakeNode::with_web(runtime)).await;
    let front = front(Arc::new(kubelet_api), Speaks::Spdy).await;
    let args = [
        "port-forward",
        "--address=127.0.0.1",
        "pod/web",
        ":80",
        ":81",
    ];
    let mut child = start(front, Speaks::Spdy, &args);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut port = async || -> u16 {
        let line = soon(lines.next_line()).await.unwrap().unwrap();
        let port = line.strip_prefix("Forwarding from 127.0.0.1:").unwrap();
        port.split_once(' ').unwrap().0.parse().unwrap()
    };
    let (good, bad) = (port().await, port().await);

    let much = vec![7; 1 << 20];
    let mut several = Vec::new();
    for _ in 0..3 {
        let socket = TcpStream::connect(("127.0.0.1", good)).await.unwrap();
        let much = much.clone();
        several.push(tokio::spawn(async move {
            let (mut read, mut write) = socket.into_split();
            let said = much.clone();
            let saying = tokio::spawn(async move { write.write_all(&said).await.map(|()| write) });
            let mut heard = vec![0; much.len()];
            read.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, much);
            drop(saying.await.unwrap().unwrap());
        }));
    }
    for one in several {
        soon(one).await.unwrap();
    }
    let mut refused = TcpStream::connect(("127.0.0.1", bad)).await.unwrap();
    let mut nothing = Vec::new();
    let _ = soon(refused.read_to_end(&mut nothing)).await;
    assert!(nothing.is_empty());
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = soon(errors.next_line()).await.unwrap().unwrap();
    let why = "error forwarding port 81 to pod web, uid uid-web: connection refused";
    assert!(line.contains(why), "{line}");
    child.kill().await.unwrap();
}
