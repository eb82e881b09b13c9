//! The client against a socket that gives prepared answers; a real runtime is called in
//! `tests/runtime`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tempfile::TempDir;
use tokio::net::UnixListener;

use super::super::wire::{
    ExecRequest, ExecResponse, ImageSpec, LinuxRuntimeConfiguration, PodSandboxConfig,
    RuntimeConfigResponse, RuntimeHandler, RuntimeHandlerFeatures, StatusResponse, VersionResponse,
};
use super::super::{Error, Runtime, Session, UserNamespaceSupport};
use super::{Cri, Options};
use plimsoll_core::cgroup::Driver;

/// What a verb is answered with: a message, a gRPC code with words, or nothing at all.
#[derive(Clone)]
enum Answer {
    Message(Vec<u8>),
    Refusal(u16, &'static str),
    Silence,
}

/// A socket where every verb gets the same answer.
struct Socket {
    folder: TempDir,
}

impl Socket {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cri.sock")
    }

    /// Serves until the returned task is aborted; connections end with it.
    fn serve(&self, answer: Answer) -> tokio::task::JoinHandle<()> {
        let _ = std::fs::remove_file(self.path());
        let listener = UnixListener::bind(self.path()).unwrap();
        tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = answer.clone();
                let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                    assert_eq!(request.headers()["content-type"], "application/grpc");
                    respond(answer.clone())
                });
                let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                connections.spawn(serving);
            }
        })
    }

    fn client(&self) -> Cri {
        let mut options = Options::at(format!("unix://{}", self.path().display()));
        options.request_timeout = Duration::from_millis(300);
        Cri::new(&options).unwrap()
    }
}

type Frames = futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

async fn respond(answer: Answer) -> Result<Response<StreamBody<Frames>>, Infallible> {
    let mut trailers = HeaderMap::new();
    let mut frames = Vec::new();
    match answer {
        Answer::Message(message) => {
            let mut body = BytesMut::new();
            body.put_u8(0);
            body.put_u32(u32::try_from(message.len()).unwrap());
            body.put_slice(&message);
            frames.push(Ok(Frame::data(body.freeze())));
            trailers.insert("grpc-status", 0.into());
        }
        Answer::Refusal(code, words) => {
            trailers.insert("grpc-status", code.into());
            trailers.insert("grpc-message", words.parse().unwrap());
        }
        Answer::Silence => std::future::pending().await,
    }
    frames.push(Ok(Frame::trailers(trailers)));
    let body = StreamBody::new(futures::stream::iter(frames));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(body).unwrap())
}

fn version() -> Answer {
    let version = VersionResponse {
        version: "0.1.0".to_owned(),
        runtime_name: "stub".to_owned(),
        runtime_version: "1".to_owned(),
        runtime_api_version: "v1".to_owned(),
    };
    Answer::Message(version.encode_to_vec())
}

#[tokio::test]
async fn missing_socket_is_reported_with_its_path() {
    let socket = Socket::new();
    let error = socket.client().version().await.unwrap_err();
    let path = socket.path();
    assert_eq!(
        error.chain(),
        format!(
            "cannot reach the runtime at unix://{}: No such file or directory (os error 2)",
            path.display()
        )
    );
}

#[tokio::test]
async fn restarted_runtime_is_reached_again() {
    let socket = Socket::new();
    let client = socket.client();
    for _ in 0..3 {
        let serving = socket.serve(version());
        assert_eq!(client.version().await.unwrap().runtime_name, "stub");
        serving.abort();
        let _ = serving.await;
        std::fs::remove_file(socket.path()).unwrap();
        let error = client.version().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn call_to_a_hanging_runtime_times_out() {
    let socket = Socket::new();
    let _serving = socket.serve(Answer::Silence);
    let error = socket.client().version().await.unwrap_err();
    let limit = Duration::from_millis(300);
    assert!(
        matches!(error, Error::TimedOut { verb: "Version", after } if after == limit),
        "{error:?}"
    );
}

#[tokio::test]
async fn missing_containers_are_not_found_but_can_be_removed() {
    let socket = Socket::new();
    let _serving = socket.serve(Answer::Refusal(5, "an error occurred"));
    let client = socket.client();
    let error = client.container_status("c1").await.unwrap_err();
    assert_eq!(error.to_string(), "container \"c1\" not found");
    let error = client.pod_sandbox_status("s1").await.unwrap_err();
    assert_eq!(error.to_string(), "sandbox \"s1\" not found");
    client.stop_container("c1", Duration::ZERO).await.unwrap();
    client.remove_container("c1").await.unwrap();
    client.stop_pod_sandbox("s1").await.unwrap();
    client.remove_pod_sandbox("s1").await.unwrap();
    client.remove_image(&ImageSpec::default()).await.unwrap();
}

#[tokio::test]
async fn refusals_keep_the_words_of_the_runtime() {
    let socket = Socket::new();
    let image = ImageSpec {
        image: "nowhere/app:1".to_owned(),
        ..ImageSpec::default()
    };
    let config = PodSandboxConfig::default();
    let pull = |code| {
        let serving = socket.serve(Answer::Refusal(code, "no such host"));
        let (client, image, config) = (socket.client(), image.clone(), config.clone());
        async move {
            let error = client.pull_image(&image, None, &config).await.unwrap_err();
            serving.abort();
            error.chain()
        }
    };
    assert_eq!(
        pull(5).await,
        "cannot pull image \"nowhere/app:1\": rpc error: code = NotFound desc = no such host"
    );
    assert_eq!(
        pull(2).await,
        "cannot pull image \"nowhere/app:1\": no such host"
    );
    let _serving = socket.serve(Answer::Refusal(2, "no such host"));
    let error = socket.client().start_container("c1").await.unwrap_err();
    assert_eq!(
        error.chain(),
        "cannot start container \"c1\": rpc error: code = Unknown desc = no such host"
    );
}

#[tokio::test]
async fn timed_out_command_is_reported_with_its_limit() {
    let socket = Socket::new();
    let _serving = socket.serve(Answer::Refusal(4, "timeout 1s exceeded"));
    let limit = Duration::from_secs(1);
    let ran = socket.client().exec_sync("c1", &[], limit).await;
    let error = ran.unwrap_err();
    assert!(
        matches!(error, Error::TimedOut { verb: "ExecSync", after } if after == limit),
        "{error:?}"
    );
}

#[tokio::test]
async fn cgroup_driver_is_the_runtimes_if_reported() {
    let cases = [
        (Answer::Refusal(12, "unknown method RuntimeConfig"), None),
        (runtime_config(None), None),
        (runtime_config(Some(0)), Some(Driver::Systemd)),
        (runtime_config(Some(1)), Some(Driver::Cgroupfs)),
    ];
    for (answer, driver) in cases {
        let socket = Socket::new();
        let _serving = socket.serve(answer);
        assert_eq!(socket.client().cgroup_driver().await.unwrap(), driver);
    }
    let socket = Socket::new();
    let _serving = socket.serve(runtime_config(Some(7)));
    let error = socket.client().cgroup_driver().await.unwrap_err();
    assert_eq!(
        error.chain(),
        "cannot get the configuration of the runtime: runtime returned an unknown cgroup driver 7"
    );
}

fn runtime_config(cgroup_driver: Option<i32>) -> Answer {
    let linux = cgroup_driver.map(|cgroup_driver| LinuxRuntimeConfiguration { cgroup_driver });
    Answer::Message(RuntimeConfigResponse { linux }.encode_to_vec())
}

#[tokio::test]
async fn streams_are_served_elsewhere() {
    let url = "http://127.0.0.1:4711/exec/token";
    let socket = Socket::new();
    let answer = ExecResponse {
        url: url.to_owned(),
    };
    let _serving = socket.serve(Answer::Message(answer.encode_to_vec()));
    let session = socket.client().exec(&ExecRequest::default()).await.unwrap();
    assert!(matches!(session, Session::Elsewhere(at) if at == url));

    let nowhere = Socket::new();
    let _serving = nowhere.serve(Answer::Message(Vec::new()));
    let error = nowhere.client().port_forward("s1").await.unwrap_err();
    assert_eq!(
        error.chain(),
        "cannot forward ports of sandbox \"s1\": URL is not set"
    );
}

#[tokio::test]
async fn large_answers_are_taken() {
    let socket = Socket::new();
    let mut whole = version();
    if let Answer::Message(message) = &mut whole {
        let large = VersionResponse {
            runtime_name: "x".repeat(12 * 1024 * 1024),
            ..VersionResponse::decode(message.as_slice()).unwrap()
        };
        *message = large.encode_to_vec();
    }
    let _serving = socket.serve(whole);
    let mut options = Options::at(socket.path().display().to_string());
    options.request_timeout = Duration::from_secs(60);
    let version = Cri::new(&options).unwrap().version().await.unwrap();
    assert_eq!(version.runtime_name.len(), 12 * 1024 * 1024);
}

#[tokio::test]
async fn user_namespace_support_is_that_of_the_default_handler() {
    let handler = |name: &str, user_namespaces| RuntimeHandler {
        name: name.to_owned(),
        features: Some(RuntimeHandlerFeatures {
            user_namespaces,
            ..RuntimeHandlerFeatures::default()
        }),
    };
    let lacking = |why: &str| UserNamespaceSupport::Lacking(why.to_owned());
    let without_features = RuntimeHandler {
        features: None,
        ..handler("", false)
    };
    for (runtime_handlers, expected) in [
        // As containerd 1.6 answers.
        (vec![], lacking("")),
        (vec![handler("", false), handler("vm", true)], lacking("")),
        (vec![without_features], lacking("")),
        (
            vec![handler("vm", true)],
            lacking("the handler \"\" is not known"),
        ),
        (
            vec![handler("vm", false), handler("", true)],
            UserNamespaceSupport::Full,
        ),
    ] {
        let socket = Socket::new();
        let status = StatusResponse {
            runtime_handlers,
            ..StatusResponse::default()
        };
        let serving = socket.serve(Answer::Message(status.encode_to_vec()));
        assert_eq!(socket.client().user_namespaces().await.unwrap(), expected);
        serving.abort();
    }
}
