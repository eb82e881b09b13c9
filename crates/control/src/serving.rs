//! What a running loop shows of itself over plain HTTP: `/healthz`, `/livez`, `/readyz`, `/metrics`
//! and `/configz`.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use plimsoll_client::accept_loop::accept;
use plimsoll_client::http_connection::{self, Limits};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The content type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The handlers of the endpoints.
pub trait Handlers: Send + Sync + 'static {
    /// Checks by name; the process is to be restarted if one fails.
    fn health(&self) -> Vec<Check> {
        Vec::new()
    }

    /// Checks by name; the process is not ready for as long as one fails.
    fn readiness(&self) -> Vec<Check> {
        Vec::new()
    }

    /// All metrics, as text.
    fn metrics(&self) -> String;

    /// The configuration in force.
    fn configuration(&self) -> serde_json::Value;

    /// A page of its own, as JSON.
    fn page(&self, _path: &str, _query: &str) -> Option<serde_json::Value> {
        None
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Whether all is well.
    pub is_ok: bool,
}

/// Scrapers, probers and other clients at once.
const MAX_CONNECTIONS: usize = 64;

/// How long requests may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Serves until `stop`, then lets open requests end.
pub async fn serve(
    listener: Arc<TcpListener>,
    handlers: Arc<dyn Handlers>,
    stop: CancellationToken,
) {
    let until = stop.clone();
    let connection = move |socket, address| {
        let (handlers, stop) = (Arc::clone(&handlers), until.clone());
        async move {
            let answer = move |request: Request<Incoming>| {
                let response = respond(handlers.as_ref(), &request);
                std::future::ready(response)
            };
            let (drain, close) = (stop.cancelled(), pending());
            http_connection::serve(socket, address, Limits::default(), drain, close, answer).await;
        }
    };
    accept(
        listener,
        MAX_CONNECTIONS,
        stop.cancelled(),
        GRACE,
        connection,
    )
    .await;
}

fn respond<B>(handlers: &dyn Handlers, request: &Request<B>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    let query = request.uri().query().unwrap_or_default();
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let text = "only GET and HEAD are served\n".to_owned();
        return answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
    }
    match path {
        "/healthz" => checked("healthz", &handlers.health(), query),
        "/livez" => checked("livez", &[], query),
        "/readyz" => checked("readyz", &handlers.readiness(), query),
        "/metrics" => answer(StatusCode::OK, OPEN_METRICS, handlers.metrics()),
        "/configz" => {
            let configz = serde_json::json!({"componentconfig": handlers.configuration()});
            answer(StatusCode::OK, JSON, configz.to_string())
        }
        _ => match handlers.page(path, query) {
            Some(page) => answer(StatusCode::OK, JSON, page.to_string()),
            None => answer(
                StatusCode::NOT_FOUND,
                TEXT,
                "404 page not found\n".to_owned(),
            ),
        },
    }
}

/// Matches v1.36 staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go.
fn checked(name: &str, checks: &[Check], query: &str) -> Response<Full<Bytes>> {
    let mut lines = String::from("[+]ping ok\n");
    for check in checks {
        lines += &match check.is_ok {
            true => format!("[+]{} ok\n", check.name),
            false => format!("[-]{} failed: reason withheld\n", check.name),
        };
    }
    let is_verbose = query.split('&').any(|part| {
        let key = part.split('=').next();
        key == Some("verbose")
    });
    if checks.iter().any(|check| !check.is_ok) {
        lines += &format!("{name} check failed\n");
        return answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, lines);
    }
    if is_verbose {
        lines += &format!("{name} check passed\n");
        return answer(StatusCode::OK, TEXT, lines);
    }
    answer(StatusCode::OK, TEXT, "ok".to_owned())
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let value = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    let value = header::HeaderValue::from_static("nosniff");
    let name = header::X_CONTENT_TYPE_OPTIONS;
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    struct Shown {
        is_ready: bool,
    }

    impl Handlers for Shown {
        fn readiness(&self) -> Vec<Check> {
            vec![Check {
                name: "sched-handler-sync",
                is_ok: self.is_ready,
            }]
        }

        fn metrics(&self) -> String {
            "# EOF\n".to_owned()
        }

        fn configuration(&self) -> serde_json::Value {
            serde_json::json!({"a": 1})
        }
    }

    async fn get(is_ready: bool, path: &str) -> (u16, String) {
        let request = Request::get(path).body(()).unwrap();
        let response = respond(&Shown { is_ready }, &request);
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn checks_report_ok_or_failed_ones() {
        assert_eq!(get(true, "/healthz").await, (200, "ok".to_owned()));
        assert_eq!(get(false, "/livez").await, (200, "ok".to_owned()));
        let verbose = "[+]ping ok\n[+]sched-handler-sync ok\nreadyz check passed\n";
        assert_eq!(
            get(true, "/readyz?verbose").await,
            (200, verbose.to_owned())
        );
        let failed =
            "[+]ping ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n";
        assert_eq!(get(false, "/readyz").await, (500, failed.to_owned()));
    }

    #[tokio::test]
    async fn serves_configuration_and_metrics_only() {
        let configz = r#"{"componentconfig":{"a":1}}"#;
        assert_eq!(get(true, "/configz").await, (200, configz.to_owned()));
        assert_eq!(get(true, "/metrics").await.1, "# EOF\n");
        assert_eq!(get(true, "/").await.0, 404);
    }

    async fn served() -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let handlers = Arc::new(Shown { is_ready: true });
        let server = tokio::spawn(serve(Arc::new(listener), handlers, stop.clone()));
        (address, stop, server)
    }

    /// The beginning of the answer; empty if the server closes the connection.
    async fn ask(client: &mut TcpStream) -> String {
        let request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut answer = [0; 15];
        let asked = client.write_all(request).await;
        let read = match asked {
            Ok(()) => client.read(&mut answer).await.unwrap_or(0),
            Err(_) => 0,
        };
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }

    #[tokio::test]
    async fn a_server_answers_on_its_address_until_it_is_stopped() {
        let (address, stop, server) = served().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        assert_eq!(ask(&mut client).await, "HTTP/1.1 200 OK");
        stop.cancel();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn clients_beyond_the_limit_are_disconnected() {
        let (address, _stop, _server) = served().await;
        let mut held = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut client = TcpStream::connect(address).await.unwrap();
            assert_eq!(ask(&mut client).await, "HTTP/1.1 200 OK");
            held.push(client);
        }
        let mut one_more = TcpStream::connect(address).await.unwrap();
        assert_eq!(ask(&mut one_more).await, "");
        held.pop();
        let mut next = TcpStream::connect(address).await.unwrap();
        while ask(&mut next).await.is_empty() {
            next = TcpStream::connect(address).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_client_is_disconnected() {
        let (address, _stop, _server) = served().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET /healthz HTTP/1.1\r\n")
            .await
            .unwrap();
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest).await;
    }
}
