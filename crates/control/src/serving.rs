//! What a running loop shows of itself over plain HTTP: `/healthz`, `/livez`, `/readyz`, `/metrics`
//! and `/configz`.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
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

    /// Checks by name; the process is not to be relied on for as long as one fails.
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

/// Serves until `stop`.
pub async fn serve(
    listener: Arc<TcpListener>,
    handlers: Arc<dyn Handlers>,
    stop: CancellationToken,
) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "failed to accept connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (handlers, stop) = (Arc::clone(&handlers), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = respond(handlers.as_ref(), &request);
                async move { Ok::<_, Infallible>(response) }
            });
            let builder = Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                () = stop.cancelled() => {}
                served = connection => if let Err(error) = served {
                    tracing::debug!(%error, "connection closed with an error");
                }
            }
        });
    }
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
    use super::*;
    use http_body_util::BodyExt;

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

    #[tokio::test]
    async fn a_server_answers_on_its_address_until_it_is_stopped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let handlers = Arc::new(Shown { is_ready: true });
        let server = tokio::spawn(serve(Arc::new(listener), handlers, stop.clone()));
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("/healthz").body(Full::<Bytes>::default());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        stop.cancel();
        server.await.unwrap();
    }
}
