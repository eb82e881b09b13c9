//! Authentication and authorization.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tower::service_fn;

use super::kubelet_api::{Ca, FakeNode, KubeletApi, open_to_all, read, soon};
use super::runtime::FakeRuntime;
use crate::server::Options;
use crate::server::access::{Authenticator, Authorizer, Reviews, TokenReviews};
use crate::server::tls::{ClientAuthority, ServerCertificate};

/// An API server that reviews: token `good` is user `robot`; `robot` may get stats and pods.
#[derive(Clone, Default)]
struct Reviewer {
    asked: Arc<Mutex<Vec<Value>>>,
    failures: Arc<AtomicUsize>,
}

impl Reviewer {
    fn client(&self) -> kube::Client {
        let reviewer = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let reviewer = reviewer.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let asked: Value = serde_json::from_slice(&body).unwrap();
                let answer = reviewer.review(&asked);
                let code = if answer["kind"] == "Status" { 500 } else { 201 };
                reviewer.asked.lock().unwrap().push(asked);
                let body = kube::client::Body::from(answer.to_string().into_bytes());
                let response = Response::builder().status(code).body(body);
                Ok::<_, tower::BoxError>(response.unwrap())
            }
        });
        kube::Client::new(service, "default")
    }

    fn review(&self, asked: &Value) -> Value {
        let left = self.failures.load(Ordering::Relaxed);
        if left > 0 {
            self.failures.store(left - 1, Ordering::Relaxed);
            return json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                "message": "later", "reason": "InternalError"});
        }
        let mut answer = asked.clone();
        let spec = &asked["spec"];
        answer["status"] = match asked["kind"].as_str() {
            Some("TokenReview") if spec["token"] == "good" => json!({
                "authenticated": true,
                "user": {"username": "robot", "groups": ["robots"]},
            }),
            Some("TokenReview") => json!({"authenticated": false}),
            _ => {
                let wanted = &spec["resourceAttributes"];
                let subresource = wanted["subresource"].as_str().unwrap();
                let allowed = spec["user"] == "robot"
                    && wanted["verb"] == "get"
                    && ["stats", "pods"].contains(&subresource);
                json!({"allowed": allowed})
            }
        };
        answer
    }

    fn options(&self, ca: &Ca, anonymous: bool) -> Options {
        let minute = Duration::from_secs(60);
        Options {
            authenticator: Authenticator {
                authority: Some(Arc::new(ClientAuthority::new(ca.pem.as_bytes()).unwrap())),
                tokens: Some(TokenReviews::new(self.client(), 2 * minute)),
                anonymous,
            },
            authorizer: Authorizer::Webhook(Box::new(Reviews::new(
                self.client(),
                "n1",
                5 * minute,
                minute / 2,
            ))),
            ..open_to_all(ca)
        }
    }

    async fn kubelet_api(&self, anonymous: bool) -> KubeletApi {
        let node = FakeNode::with_web(FakeRuntime::default());
        KubeletApi::with(node, |ca| self.options(ca, anonymous)).await
    }

    fn count(&self, kind: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|review| review["kind"] == kind).count()
    }
}

async fn with_token(kubelet_api: &KubeletApi, path: &str, token: &str) -> (StatusCode, String) {
    let request = Request::get(path)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {token}"))
        .body(Empty::<Bytes>::new());
    soon(async { read(kubelet_api.send(None, request.unwrap()).await).await }).await
}

#[tokio::test]
async fn a_token_is_reviewed_once_and_so_is_access() {
    let reviewer = Reviewer::default();
    let kubelet_api = reviewer.kubelet_api(false).await;
    for _ in 0..3 {
        let (code, _) = with_token(&kubelet_api, "/stats/summary", "good").await;
        assert_eq!(code, StatusCode::OK);
    }
    assert_eq!(reviewer.count("TokenReview"), 1);
    assert_eq!(reviewer.count("SubjectAccessReview"), 1);
    let asked = reviewer.asked.lock().unwrap().last().unwrap().clone();
    let expected = json!({
        "user": "robot",
        "groups": ["robots", "system:authenticated"],
        "resourceAttributes": {
            "verb": "get", "resource": "nodes", "subresource": "stats", "name": "n1",
            "version": "v1",
        },
    });
    assert_eq!(asked["spec"], expected);
}

#[tokio::test]
async fn refusals_have_upstreams_wording() {
    let reviewer = Reviewer::default();
    let kubelet_api = reviewer.kubelet_api(false).await;
    let unauthorized = (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
    assert_eq!(with_token(&kubelet_api, "/pods", "bad").await, unauthorized);
    assert_eq!(soon(kubelet_api.get("/pods")).await, unauthorized);
    let forbidden = |text: &str| (StatusCode::FORBIDDEN, text.to_owned());
    assert_eq!(
        with_token(&kubelet_api, "/configz", "good").await,
        forbidden(
            "Forbidden (user=robot, verb=get, resource=nodes, subresource(s)=[configz proxy])\n"
        )
    );
    assert_eq!(
        with_token(&kubelet_api, "/exec/default/web/app", "good").await,
        forbidden("Forbidden (user=robot, verb=get, resource=nodes, subresource(s)=[proxy])\n")
    );
    // The path is not served, so no review is requested.
    assert_eq!(
        soon(kubelet_api.get("/nothing")).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn request_without_credentials_is_anonymous_only_where_allowed() {
    let reviewer = Reviewer::default();
    let kubelet_api = reviewer.kubelet_api(true).await;
    let (code, text) = soon(kubelet_api.get("/pods")).await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    let start = "Forbidden (user=system:anonymous, verb=get, resource=nodes,";
    assert!(text.starts_with(start), "{text}");
    let (code, _) = with_token(&kubelet_api, "/pods", "bad").await;
    assert_eq!(code, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_certificate_of_the_authority_names_a_user() {
    let reviewer = Reviewer::default();
    let kubelet_api = reviewer.kubelet_api(false).await;
    let get = |path: &str| {
        let request = Request::get(path).header("host", "localhost");
        request.body(Empty::<Bytes>::new()).unwrap()
    };
    let own = kubelet_api.ca.sign("robot", &["machines"]);
    let response = soon(kubelet_api.send(Some(&own), get("/pods"))).await;
    assert_eq!(response.status(), StatusCode::OK);
    let asked = reviewer.asked.lock().unwrap().last().unwrap().clone();
    let groups = json!(["machines", "system:authenticated"]);
    assert_eq!(asked["spec"]["groups"], groups);
    let ids = &asked["spec"]["extra"]["authentication.kubernetes.io/credential-id"];
    assert!(ids[0].as_str().unwrap().starts_with("X509SHA256="));

    let foreign = Ca::new().sign("robot", &[]);
    let answer = soon(kubelet_api.send(Some(&foreign), get("/pods"))).await;
    let unauthorized = (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
    assert_eq!(read(answer).await, unauthorized);
    // A good token makes up for a foreign certificate.
    let request = Request::get("/pods")
        .header("host", "localhost")
        .header("authorization", "Bearer good")
        .body(Empty::<Bytes>::new());
    let response = soon(kubelet_api.send(Some(&foreign), request.unwrap())).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn failing_access_review_is_retried_a_limited_number_of_times() {
    let reviewer = Reviewer::default();
    reviewer.failures.store(2, Ordering::Relaxed);
    let user = crate::server::access::User {
        name: "robot".to_owned(),
        ..Default::default()
    };
    let minute = Duration::from_secs(60);
    let reviews = Reviews::new(reviewer.client(), "n1", minute, minute);
    let authorizer = Authorizer::Webhook(Box::new(reviews));
    let wanted = crate::server::access::Attributes::of(&http::Method::GET, "/stats/summary");
    assert_eq!(authorizer.allow(&user, &wanted).await, Ok(()));

    reviewer.failures.store(100, Ordering::Relaxed);
    let other = crate::server::access::Attributes::of(&http::Method::GET, "/logs/");
    let text = "Authorization error (user=robot, verb=get, resource=nodes, subresource=log)";
    let denial = crate::server::access::Denial::Unknown(text.to_owned());
    assert_eq!(authorizer.allow(&user, &other).await, Err(denial));
    assert_eq!(reviewer.failures.load(Ordering::Relaxed), 95);
}

#[tokio::test]
async fn certificates_can_be_rotated_while_the_server_runs() {
    let kubelet_api = KubeletApi::new(FakeNode::with_web(FakeRuntime::default())).await;
    let shown = |connection: &tokio_rustls::client::TlsStream<tokio::net::TcpStream>| {
        let (_, session) = connection.get_ref();
        session.peer_certificates().unwrap()[0].to_vec()
    };
    let before = shown(&kubelet_api.connect(None).await);
    let next = kubelet_api.ca.sign("node", &[]);
    let (chain, key) = (next.certificate.as_bytes(), next.key.as_bytes());
    kubelet_api.certificate.replace(chain, key).unwrap();
    assert_ne!(before, shown(&kubelet_api.connect(None).await));

    let other = Ca::new().sign("x", &[]);
    let mismatched = ServerCertificate::new(chain, other.key.as_bytes());
    assert!(mismatched.is_err());
    assert!(kubelet_api.certificate.replace(b"", key).is_err());
}
