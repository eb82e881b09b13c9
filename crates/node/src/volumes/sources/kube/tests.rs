use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use plimsoll_client::testing::watch_line;
use serde_json::{Value, json};

use super::*;

/// An API server that lists, and sends given events to watchers.
#[derive(Clone, Debug, Default)]
struct Server(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    lists: VecDeque<(u16, Value)>,
    requests: Vec<String>,
    bodies: Vec<Value>,
    /// By the URI of the request.
    watchers: Vec<(String, mpsc::UnboundedSender<String>)>,
}

type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>>;

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<Answer, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// What the next list answers.
    fn will_list(&self, status: u16, answer: Value) {
        self.0.lock().unwrap().lists.push_back((status, answer));
    }

    fn will_list_items(&self, items: &[Value]) {
        self.will_list(
            200,
            json!({"metadata": {"resourceVersion": "1"}, "items": items}),
        );
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let mut inner = self.0.lock().unwrap();
        let uri = parts.uri.to_string();
        inner.requests.push(uri.clone());
        if !body.is_empty() {
            inner.bodies.push(serde_json::from_slice(&body).unwrap());
        }
        let (status, stream) = if uri.contains("sendInitialEvents") {
            (422, futures::stream::empty().boxed())
        } else if uri.contains("watch=true") {
            let (sender, receiver) = mpsc::unbounded();
            inner.watchers.push((uri, sender));
            (200, receiver.boxed())
        } else {
            let none = json!({"kind": "Status", "code": 404, "reason": "NotFound"});
            let (status, answer) = inner.lists.pop_front().unwrap_or((404, none));
            (status, futures::stream::iter([answer.to_string()]).boxed())
        };
        let frames = stream.map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line))));
        let body = StreamBody::new(frames).boxed_unsync();
        Response::builder().status(status).body(body).unwrap()
    }

    /// Sends an event to the watchers, once there is one.
    async fn send(&self, kind: &str, object: &Value) {
        self.until(|inner| !inner.watchers.is_empty()).await;
        for (_, watcher) in &self.0.lock().unwrap().watchers {
            // Watchers that left do not hear it.
            drop(watcher.unbounded_send(watch_line(kind, object)));
        }
    }

    async fn until(&self, is_met: impl Fn(&Inner) -> bool) {
        let met = async {
            while !is_met(&self.0.lock().unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), met)
            .await
            .unwrap();
    }

    fn requests(&self) -> Vec<String> {
        self.0.lock().unwrap().requests.clone()
    }
}

fn config_map(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "ns", "name": "c", "resourceVersion": "2"},
        "data": {"key": value},
    })
}

async fn value(sources: &KubeSources) -> Result<String, String> {
    let object = sources.config_map("ns", "c").await;
    let object = object.map_err(|error| error.to_string())?;
    Ok(object.data.as_ref().unwrap()["key"].clone())
}

async fn until_value(sources: &KubeSources, want: Result<&str, &str>) {
    let met = async {
        while value(sources).await.as_deref() != want.map_err(str::to_owned).as_ref().map(|v| *v) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), met)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_is_listed_once_and_followed_by_name() {
    let server = Server::default();
    server.will_list_items(&[config_map("1")]);
    let sources = KubeSources::new(server.client());
    assert_eq!(value(&sources).await.unwrap(), "1");
    assert_eq!(value(&sources).await.unwrap(), "1");
    server.send("MODIFIED", &config_map("2")).await;
    until_value(&sources, Ok("2")).await;
    server.send("DELETED", &config_map("2")).await;
    until_value(&sources, Err("configmap \"c\" not found")).await;
    server.send("ADDED", &config_map("3")).await;
    until_value(&sources, Ok("3")).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    for request in requests {
        assert!(
            request.starts_with("/api/v1/namespaces/ns/configmaps?"),
            "{request}"
        );
        assert!(
            request.contains("fieldSelector=metadata.name%3Dc"),
            "{request}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn missing_object_is_found_after_creation() {
    let server = Server::default();
    server.will_list_items(&[]);
    let sources = KubeSources::new(server.client());
    let error = value(&sources).await.unwrap_err();
    assert_eq!(error, "configmap \"c\" not found");
    server.send("ADDED", &config_map("1")).await;
    until_value(&sources, Ok("1")).await;
}

#[tokio::test(start_paused = true)]
async fn forbidden_is_retried_and_then_reported() {
    let refusal = json!({
        "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "configmaps \"c\" is forbidden: no relationship found",
    });
    let server = Server::default();
    server.will_list(403, refusal.clone());
    server.will_list_items(&[config_map("1")]);
    let sources = KubeSources::new(server.client());
    assert_eq!(
        value(&sources).await.unwrap(),
        "1",
        "the second try is allowed"
    );

    let server = Server::default();
    for _ in 0..50 {
        server.will_list(403, refusal.clone());
    }
    let sources = KubeSources::new(server.client());
    let error = value(&sources).await.unwrap_err();
    assert_eq!(
        error,
        "failed to sync configmap cache: configmaps \"c\" is forbidden: no relationship found"
    );
}

#[tokio::test(start_paused = true)]
async fn immutable_objects_are_not_watched() {
    let server = Server::default();
    let mut object = config_map("1");
    object["immutable"] = json!(true);
    server.will_list_items(&[object]);
    let sources = KubeSources::new(server.client());
    assert_eq!(value(&sources).await.unwrap(), "1");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(value(&sources).await.unwrap(), "1");
    assert_eq!(server.requests().len(), 1);
}

/// Whether the ConfigMap of these tests is watched.
fn is_watched(inner: &Inner) -> bool {
    let mut watchers = inner.watchers.iter();
    watchers.any(|(uri, watcher)| uri.contains("name%3Dc&") && !watcher.is_closed())
}

#[tokio::test(start_paused = true)]
async fn watch_of_unused_object_ends_unless_a_caller_waits_for_it() {
    let server = Server::default();
    server.will_list_items(&[config_map("1")]);
    let sources = KubeSources::new(server.client());
    value(&sources).await.unwrap();
    server.until(is_watched).await;
    let mut used = Named::default();
    let name = ("ns".to_owned(), "c".to_owned());
    used.config_maps.insert(name.clone());
    sources.retain(&used);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(is_watched(&server.0.lock().unwrap()));
    // A Secret of that name is another object.
    let secrets = Named {
        secrets: [name].into(),
        ..Named::default()
    };
    sources.retain(&secrets);
    server.until(|inner| !is_watched(inner)).await;

    server.will_list_items(&[config_map("2")]);
    let read = value(&sources);
    tokio::pin!(read);
    assert!(futures::poll!(&mut read).is_pending());
    sources.retain(&Named::default());
    assert_eq!(read.await.unwrap(), "2");
}

#[tokio::test(start_paused = true)]
async fn watch_ends_when_the_object_is_no_longer_read() {
    let server = Server::default();
    server.will_list_items(&[config_map("1")]);
    let sources = KubeSources::new(server.client());
    value(&sources).await.unwrap();
    server.until(|inner| inner.watchers.len() == 1).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    value(&sources).await.unwrap();
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(is_watched(&server.0.lock().unwrap()));
    tokio::time::sleep(Duration::from_secs(200)).await;
    server.will_list_items(&[]);
    sources.config_map("ns", "other").await.unwrap_err();
    server.until(|inner| !is_watched(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn services_of_the_namespace_and_the_api_servers_are_known() {
    let service = |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": "1"}});
    let server = Server::default();
    server.will_list_items(&[
        service("ns", "web"),
        service("default", "kubernetes"),
        service("other", "x"),
    ]);
    let sources = KubeSources::new(server.client());
    let names = |services: Vec<Arc<Service>>| {
        let names = services
            .iter()
            .map(|service| service.metadata.name.clone().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let got = sources.services("ns").await.unwrap();
    assert_eq!(names(got), ["kubernetes", "web"]);

    let silent = Server::default();
    let sources = KubeSources::new(silent.client());
    let error = sources.services("ns").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "services have not yet been read at least once, cannot construct envvars"
    );
}

#[tokio::test]
async fn a_token_is_bound_to_its_pod() {
    let server = Server::default();
    server.will_list(
        201,
        json!({
            "spec": {"audiences": ["vault"], "expirationSeconds": 3607},
            "status": {"token": "t", "expirationTimestamp": "1970-01-01T01:00:07Z"},
        }),
    );
    let sources = KubeSources::new(server.client());
    let request = TokenRequest {
        namespace: "ns".to_owned(),
        service_account: "sa".to_owned(),
        audience: "vault".to_owned(),
        expiration_secs: Some(3607),
        pod_name: "p".to_owned(),
        pod_uid: "u".to_owned(),
    };
    let token = sources.token(&request).await.unwrap();
    let want = Token {
        value: "t".to_owned(),
        lifetime_secs: Some(3607),
        expires_at: Timestamp::from_secs(3607),
    };
    assert_eq!(token, want);
    let uri = &server.requests()[0];
    assert!(
        uri.starts_with("/api/v1/namespaces/ns/serviceaccounts/sa/token"),
        "{uri}"
    );
    let spec = server.0.lock().unwrap().bodies[0]["spec"].clone();
    assert_eq!(
        spec,
        json!({
            "audiences": ["vault"], "expirationSeconds": 3607,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
        })
    );
    let error = sources.token(&request).await.unwrap_err();
    assert_eq!(error.to_string(), "serviceaccounts \"sa\" not found");
}
