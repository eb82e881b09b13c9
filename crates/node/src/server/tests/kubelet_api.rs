//! A kubelet API on a socket, and clients for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::ranking::RankingRecord;
use plimsoll_core::threshold::Signal;
use plimsoll_runtime::{self as runtime, Runtime};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::runtime::FakeRuntime;
use crate::server::access::{Authenticator, Authorizer};
use crate::server::tls::{ClientAuthority, ServerCertificate};
use crate::server::{Metrics, Node, Options, Server, Trouble};

/// Longer than anything should take.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// Runs a future that must not hang.
pub(super) async fn soon<F: Future>(future: F) -> F::Output {
    let ended = tokio::time::timeout(DEADLINE, future).await;
    ended.expect("it ends in time")
}

/// A node that shows what a test says.
#[derive(Debug)]
pub(super) struct FakeNode {
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) runtime: Arc<FakeRuntime>,
    pub(super) trouble: Mutex<Option<String>>,
    pub(super) decisions: Vec<Arc<Record>>,
}

impl FakeNode {
    /// A node with pod `default/web`, whose container `app` runs.
    pub(super) fn with_web(runtime: FakeRuntime) -> FakeNode {
        let pod = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
            "spec": {"containers": [{"name": "app"}, {"name": "late"}, {"name": "tty", "tty": true}]},
            "status": {"containerStatuses": [
                {
                    "name": "app", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                    "containerID": "fake://c1", "state": {"running": {}},
                },
                {
                    "name": "late", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": {"reason": "ContainerCreating"}},
                },
            ]},
        });
        FakeNode {
            pods: vec![Arc::new(serde_json::from_value(pod).unwrap())],
            runtime: Arc::new(runtime),
            trouble: Mutex::default(),
            decisions: Vec::new(),
        }
    }
}

#[async_trait]
impl Node for FakeNode {
    fn pods(&self) -> Vec<Arc<Pod>> {
        self.pods.clone()
    }

    async fn running_pods(&self) -> Result<Vec<Pod>, runtime::Error> {
        Ok(Vec::new())
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime) as Arc<dyn Runtime>
    }

    async fn summary(&self, only_cpu_and_memory: bool) -> Result<Vec<u8>, Trouble> {
        if let Some(trouble) = self.trouble.lock().unwrap().clone() {
            return Err(trouble.into());
        }
        let summary = json!({"node": {"nodeName": "n1"}, "small": only_cpu_and_memory});
        Ok(summary.to_string().into_bytes())
    }

    async fn metrics(&self, page: Metrics) -> Result<String, Trouble> {
        Ok(format!("# {page:?}\n"))
    }

    fn configuration(&self) -> Value {
        json!({"kind": "KubeletConfiguration"})
    }

    fn ranking(&self, signal: Signal) -> Option<RankingRecord> {
        Some(RankingRecord {
            signal: signal.to_string(),
            items: Vec::new(),
        })
    }

    fn decisions(&self) -> Vec<Arc<Record>> {
        self.decisions.clone()
    }

    fn sync_loop(&self) -> Result<(), String> {
        match self.trouble.lock().unwrap().clone() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }
}

/// The certificate authority of a test.
pub(super) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
}

/// A certificate and its key in PEM form.
#[derive(Clone)]
pub(super) struct Signed {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Ca {
    pub(super) fn new() -> Ca {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Ca { issuer, pem }
    }

    /// A certificate for a host, or for a client that is this user in these groups.
    pub(super) fn sign(&self, name: &str, groups: &[&str]) -> Signed {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::CommonName, name);
        for group in groups {
            subject.push(DnType::OrganizationName, *group);
        }
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Signed {
            certificate: signed.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A kubelet API that runs as long as this lives.
pub(super) struct KubeletApi {
    pub(super) address: SocketAddr,
    pub(super) ca: Ca,
    pub(super) certificate: Arc<ServerCertificate>,
    pub(super) node: Arc<FakeNode>,
    pub(super) stop: CancellationToken,
    pub(super) task: JoinHandle<()>,
}

impl Drop for KubeletApi {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}

/// Any client may do anything.
pub(super) fn open_to_all(ca: &Ca) -> Options {
    Options {
        authenticator: Authenticator {
            authority: Some(Arc::new(ClientAuthority::new(ca.pem.as_bytes()).unwrap())),
            tokens: None,
            anonymous: true,
        },
        authorizer: Authorizer::AlwaysAllow,
        debugging_handlers: true,
        system_logs: None,
        idle: Duration::from_secs(3600),
        stream_creation: Duration::from_secs(30),
        max_connections: 64,
    }
}

impl KubeletApi {
    pub(super) async fn new(node: FakeNode) -> KubeletApi {
        KubeletApi::with(node, open_to_all).await
    }

    pub(super) async fn with(node: FakeNode, options: impl FnOnce(&Ca) -> Options) -> KubeletApi {
        let ca = Ca::new();
        let own = ca.sign("node", &[]);
        let certificate = ServerCertificate::new(own.certificate.as_bytes(), own.key.as_bytes());
        let certificate = Arc::new(certificate.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let node = Arc::new(node);
        let server = Server::new(Arc::clone(&node) as Arc<dyn Node>, options(&ca));
        let stop = CancellationToken::new();
        let serving = server.serve(listener, Arc::clone(&certificate), stop.clone());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        KubeletApi {
            address,
            ca,
            certificate,
            node,
            stop,
            task,
        }
    }

    /// A connection on which HTTP/1.1 is spoken.
    pub(super) async fn connect(&self, client: Option<&Signed>) -> TlsStream<TcpStream> {
        self.dial(client, b"http/1.1").await
    }

    pub(super) async fn dial(
        &self,
        client: Option<&Signed>,
        protocol: &[u8],
    ) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.ca.pem.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            None => builder.with_no_client_auth(),
            Some(signed) => {
                let chain = CertificateDer::from_pem_slice(signed.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
                let chain = vec![chain.unwrap()];
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, socket).await.unwrap()
    }

    /// Sends a request over a connection of its own.
    pub(super) async fn send(
        &self,
        client: Option<&Signed>,
        request: Request<Empty<Bytes>>,
    ) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(client).await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        sender.send_request(request).await.unwrap()
    }

    /// The answer to a request without anything to show.
    pub(super) async fn ask(&self, method: Method, path: &str) -> (StatusCode, String) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "localhost").body(Empty::new());
        read(self.send(None, request.unwrap()).await).await
    }

    pub(super) async fn get(&self, path: &str) -> (StatusCode, String) {
        self.ask(Method::GET, path).await
    }
}

/// The status and the whole text of an answer.
pub(super) async fn read(response: Response<Incoming>) -> (StatusCode, String) {
    let code = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}
