//! The in-process client gets the same responses as the socket.

use http::Method;
use serde_json::{Value, json};

use super::caller::{Answer, Caller};
use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, PODS, config_map, names, pod};

/// The parts of a response that must not depend on the transport; parts that always differ are
/// removed.
fn essence(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let named = [
        "content-type",
        "retry-after",
        "warning",
        "cache-control",
        "etag",
    ];
    let headers = named.map(|name| (name.to_owned(), answer.header(name).to_owned()));
    let mut body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        Value::String(text)
    });
    strip(&mut body);
    (answer.code, headers.to_vec(), body)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in [
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "time",
                "volumes",
                "volumeMounts",
                "deletionTimestamp",
            ] {
                fields.remove(name);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

async fn scenario(caller: &Caller) -> Vec<(u16, Vec<(String, String)>, Value)> {
    let path = format!("{CONFIG_MAPS}/c");
    let mut answers = Vec::new();
    let json = "application/json";
    let mut odd = config_map("odd");
    odd["unheard"] = json!("of");
    let requests: Vec<(Method, String, &str, String)> = vec![
        (
            Method::POST,
            CONFIG_MAPS.into(),
            json,
            config_map("c").to_string(),
        ),
        (
            Method::POST,
            CONFIG_MAPS.into(),
            json,
            config_map("c").to_string(),
        ),
        (Method::POST, CONFIG_MAPS.into(), json, odd.to_string()),
        (
            Method::POST,
            format!("{CONFIG_MAPS}?fieldValidation=Strict"),
            json,
            odd.to_string(),
        ),
        (Method::POST, CONFIG_MAPS.into(), json, "{\"kind\":".into()),
        (Method::POST, CONFIG_MAPS.into(), "text/plain", "x".into()),
        (
            Method::POST,
            CONFIG_MAPS.into(),
            "application/yaml",
            "metadata: {name: yaml}\n".into(),
        ),
        (Method::POST, PODS.into(), json, pod("p").to_string()),
        (
            Method::POST,
            PODS.into(),
            json,
            json!({"metadata": {"name": "Bad Name"}}).to_string(),
        ),
        (Method::GET, path.clone(), "", String::new()),
        (Method::HEAD, path.clone(), "", String::new()),
        (
            Method::GET,
            format!("{path}?pretty=true"),
            "",
            String::new(),
        ),
        (
            Method::GET,
            format!("{CONFIG_MAPS}/none"),
            "",
            String::new(),
        ),
        (
            Method::GET,
            format!("{CONFIG_MAPS}?limit=1"),
            "",
            String::new(),
        ),
        (
            Method::GET,
            format!("{CONFIG_MAPS}?labelSelector=%3D"),
            "",
            String::new(),
        ),
        (
            Method::PATCH,
            path.clone(),
            "application/merge-patch+json",
            json!({"data": {"a": "b"}}).to_string(),
        ),
        (
            Method::PATCH,
            path.clone(),
            "application/json-patch+json",
            json!([{"op": "remove", "path": "/data/none"}]).to_string(),
        ),
        (
            Method::PATCH,
            path.clone(),
            "application/unknown",
            "{}".into(),
        ),
        (Method::PUT, path.clone(), json, config_map("c").to_string()),
        (
            Method::PUT,
            path.clone(),
            json,
            config_map("other").to_string(),
        ),
        (
            Method::PUT,
            CONFIG_MAPS.into(),
            json,
            config_map("c").to_string(),
        ),
        (
            Method::DELETE,
            path.clone(),
            json,
            "{\"propagationPolicy\":\"Odd\"}".into(),
        ),
        (Method::DELETE, path.clone(), "", String::new()),
        (Method::DELETE, path.clone(), "", String::new()),
        (Method::GET, "/apis/none/v1/x".into(), "", String::new()),
        (Method::GET, "/api/v1".into(), "", String::new()),
        (Method::GET, "/apis".into(), "", String::new()),
        (Method::GET, "/version".into(), "", String::new()),
        (Method::GET, "/openapi/v3".into(), "", String::new()),
        (Method::OPTIONS, path, "", String::new()),
    ];
    for (method, path, media_type, body) in requests {
        let answer = caller.send(method, &path, media_type, body).await;
        assert!(!answer.header("audit-id").is_empty());
        answers.push(essence(&answer));
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_is_the_same_over_a_socket_and_in_process() {
    let (one, other) = (Cluster::start().await, Cluster::start().await);
    let (socket, local) = (
        scenario(&one.admin()).await,
        scenario(&other.local_admin()).await,
    );
    for (socket, local) in socket.iter().zip(&local) {
        assert_eq!(socket, local);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socket_and_in_process_clients_share_objects() {
    let cluster = Cluster::start().await;
    let (socket, local) = (cluster.admin(), cluster.local_admin());
    socket
        .post(CONFIG_MAPS, &config_map("by-socket"))
        .await
        .expect(201);
    local
        .post(CONFIG_MAPS, &config_map("by-call"))
        .await
        .expect(201);
    let lists = (socket.get(CONFIG_MAPS).await, local.get(CONFIG_MAPS).await);
    let lists = (lists.0.expect(200), lists.1.expect(200));
    assert_eq!(lists.0, lists.1);
    assert_eq!(
        names(&lists.0),
        ["by-call", "by-socket", "kube-root-ca.crt"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_process_client_is_authorized_as_its_user() {
    let cluster = Cluster::start().await;
    let user = plimsoll_apiserver::auth::identity::User::new("dave", &[]);
    let dave = Caller::new(cluster.server.client(user));
    let message = dave.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    assert!(message.contains("User \"dave\""), "{message}");
}
