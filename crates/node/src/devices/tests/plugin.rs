//! A device plugin: every device is the control device of loop devices, which containers may not open
//! unless it is given to them.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::wire::*;

/// The options and responses of a plugin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behavior {
    /// The devices it prefers, if it has a preference.
    pub(crate) prefers: Option<Vec<&'static str>>,
    /// Whether it must be called before containers start.
    pub(crate) pre_start: bool,
    /// Why it prepares no devices.
    pub(crate) refuses: Option<&'static str>,
}

/// A plugin that serves until it is dropped.
pub(crate) struct Plugin {
    directory: PathBuf,
    resource: String,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    behavior: Behavior,
    devices: Mutex<Vec<(String, bool)>>,
    watchers: Mutex<Vec<mpsc::UnboundedSender<Frame<Bytes>>>>,
    calls: Mutex<Vec<String>>,
}

impl Plugin {
    /// A plugin that listens beside the registration socket and has not registered yet.
    pub(crate) fn new(
        directory: &Path,
        resource: &str,
        devices: &[(&str, bool)],
        behavior: Behavior,
    ) -> Plugin {
        let shared = Arc::new(Shared {
            behavior,
            devices: Mutex::default(),
            watchers: Mutex::default(),
            calls: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let plugin = Plugin {
            directory: directory.to_owned(),
            resource: resource.to_owned(),
            shared,
            runtime: Some(runtime),
        };
        plugin.list(devices);
        plugin.listen();
        plugin
    }

    fn endpoint(&self) -> String {
        format!("{}.sock", self.resource.replace('/', "_"))
    }

    /// Listens at its socket, anew if the socket was removed.
    pub(crate) fn listen(&self) {
        let socket = self.directory.join(self.endpoint());
        let _ = std::fs::remove_file(&socket);
        let shared = Arc::clone(&self.shared);
        let runtime = self.runtime.as_ref().unwrap();
        let _entered = runtime.enter();
        let listener = UnixListener::bind(socket).unwrap();
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let shared = Arc::clone(&shared);
                let service = hyper::service::service_fn(move |request| {
                    let shared = Arc::clone(&shared);
                    async move { Ok::<_, Infallible>(shared.answer(request).await) }
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
            }
        });
    }

    /// Registers, in this version of the API, once the agent listens.
    pub(crate) fn register(&self, version: &str) -> Result<(), String> {
        let request = RegisterRequest {
            version: version.to_owned(),
            endpoint: self.endpoint(),
            resource_name: self.resource.clone(),
            options: None,
        };
        let socket = self.directory.join("kubelet.sock");
        let (sender, answer) = std::sync::mpsc::channel();
        self.runtime.as_ref().unwrap().spawn(async move {
            while UnixStream::connect(&socket).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let answer = call(&socket, "v1beta1.Registration/Register", &request).await;
            let _ = sender.send(answer.map(drop));
        });
        answer.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// Has these devices from now on.
    pub(crate) fn list(&self, devices: &[(&str, bool)]) {
        let devices = devices
            .iter()
            .map(|(id, is_healthy)| ((*id).to_owned(), *is_healthy));
        *self.shared.devices.lock().unwrap() = devices.collect();
        let list = self.shared.devices();
        let watchers = self.shared.watchers.lock().unwrap();
        for watcher in watchers.iter() {
            let _ = watcher.send(Frame::data(framed(&list)));
        }
    }

    /// The calls for containers since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.calls.lock().unwrap())
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.directory.join(self.endpoint()));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn devices(&self) -> ListAndWatchResponse {
        let devices = self.devices.lock().unwrap();
        let devices = devices.iter().map(|(id, is_healthy)| Device {
            id: id.clone(),
            health: if *is_healthy { "Healthy" } else { "Unhealthy" }.to_owned(),
            topology: None,
        });
        ListAndWatchResponse {
            devices: devices.collect(),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Frames> {
        let path = request.uri().path().to_owned();
        let message = request.into_body().collect().await.unwrap().to_bytes();
        let message = message.slice(5..);
        let called = |what: &str, devices: &[String]| {
            let call = format!("{what} {}", devices.join(" "));
            self.calls.lock().unwrap().push(call);
        };
        match path.rsplit('/').next().unwrap() {
            "GetDevicePluginOptions" => reply(&DevicePluginOptions {
                pre_start_required: self.behavior.pre_start,
                get_preferred_allocation_available: self.behavior.prefers.is_some(),
            }),
            "ListAndWatch" => {
                let (sender, receiver) = mpsc::unbounded_channel();
                let _ = sender.send(Frame::data(framed(&self.devices())));
                self.watchers.lock().unwrap().push(sender);
                respond(receiver)
            }
            "GetPreferredAllocation" => {
                let request = PreferredAllocationRequest::decode(message).unwrap();
                called(
                    "prefer",
                    &request.container_requests[0].available_device_ids,
                );
                let preferred = self.behavior.prefers.clone().unwrap_or_default();
                reply(&PreferredAllocationResponse {
                    container_responses: vec![ContainerPreferredAllocationResponse {
                        device_ids: preferred.into_iter().map(str::to_owned).collect(),
                    }],
                })
            }
            "Allocate" => {
                let request = AllocateRequest::decode(message).unwrap();
                let devices = &request.container_requests[0].devices_ids;
                called("allocate", devices);
                match self.behavior.refuses {
                    Some(why) => refuse(why),
                    None => reply(&prepared(devices)),
                }
            }
            "PreStartContainer" => {
                let request = PreStartContainerRequest::decode(message).unwrap();
                called("start", &request.devices_ids);
                reply(&Empty {})
            }
            other => refuse(&format!("unknown method {other}")),
        }
    }
}

fn prepared(devices: &[String]) -> AllocateResponse {
    let nodes = devices.iter().map(|id| DeviceSpec {
        container_path: format!("/dev/test-{id}"),
        host_path: "/dev/loop-control".to_owned(),
        permissions: "rw".to_owned(),
    });
    let text = |name: &str| (name.to_owned(), devices.join(","));
    AllocateResponse {
        container_responses: vec![ContainerAllocateResponse {
            envs: [text("TEST_DEVICES")].into(),
            mounts: vec![Mount {
                container_path: "/etc/test-devices".to_owned(),
                host_path: "/proc/version".to_owned(),
                read_only: true,
            }],
            devices: nodes.collect(),
            annotations: [text("test.example.com/devices")].into(),
            cdi_devices: Vec::new(),
        }],
    }
}

/// A message as gRPC sends it.
fn framed(message: &impl Message) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.encoded_len()).unwrap());
    framed.put_slice(&message.encode_to_vec());
    framed.freeze()
}

fn reply(message: &impl Message) -> Response<Frames> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let _ = sender.send(Frame::data(framed(message)));
    let _ = sender.send(status(0, ""));
    respond(receiver)
}

fn refuse(why: &str) -> Response<Frames> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let _ = sender.send(status(2, why));
    respond(receiver)
}

fn status(code: u16, message: &str) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    trailers.insert("grpc-message", HeaderValue::from_str(message).unwrap());
    Frame::trailers(trailers)
}

fn respond(frames: mpsc::UnboundedReceiver<Frame<Bytes>>) -> Response<Frames> {
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(Frames(frames)).unwrap()
}

/// A body of frames that may come later.
struct Frames(mpsc::UnboundedReceiver<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}

/// Calls a method at a socket; returns the message of its answer.
pub(crate) async fn call(
    socket: &Path,
    method: &str,
    message: &impl Message,
) -> Result<Bytes, String> {
    let stream = UnixStream::connect(socket).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://localhost/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(framed(message)))
        .unwrap();
    let answer = client.send_request(request).await;
    let (head, body) = answer.map_err(|error| error.to_string())?.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().unwrap_or(&head.headers);
    let text = |name: &str| {
        let value = trailers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    match text("grpc-status").as_str() {
        "0" => Ok(body.to_bytes().slice(5..)),
        _ => Err(decoded(&text("grpc-message"))),
    }
}

/// Text without percent signs in place of other characters.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at(2);
        decoded.push(char::from(u8::from_str_radix(code, 16).unwrap()));
        decoded.push_str(rest);
    }
    decoded
}
