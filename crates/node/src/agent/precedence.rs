//! That a node is under pressure is told before anything else.
//!
//! A pod that is evicted has its status and some events to be written in the same moment. On a machine
//! with little to spare they would be written first as often as not, and meanwhile pods still come.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;

/// How long others wait at most: an API server that does not answer keeps nobody from trying.
const PATIENCE: Duration = Duration::from_millis(250);

/// Who goes first. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Precedence(Arc<watch::Sender<Claims>>);

/// How often something had to be told, and up to which of these it was.
#[derive(Clone, Copy, Debug, Default)]
struct Claims {
    made: u64,
    met: u64,
}

/// That something is being told; what was claimed before it was begun is met when that is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling(u64);

impl Precedence {
    pub(super) fn new() -> Precedence {
        Precedence(Arc::new(watch::channel(Claims::default()).0))
    }

    /// Something has to be told before anything else.
    pub(super) fn claim(&self) {
        self.0.send_modify(|claims| claims.made += 1);
    }

    /// Begins to tell what there is to be told.
    pub(super) fn begin(&self) -> Telling {
        Telling(self.0.borrow().made)
    }

    /// It is told, or could not be.
    pub(super) fn end(&self, telling: Telling) {
        self.0.send_if_modified(|claims| {
            let is_news = claims.met < telling.0;
            claims.met = claims.met.max(telling.0);
            is_news
        });
    }

    /// A client for everybody else: its requests wait as long as something goes before them.
    pub(super) fn behind(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let precedence = self.clone();
        let polite = tower::service_fn(move |request: Request<Body>| {
            let (precedence, client) = (precedence.clone(), client.clone());
            async move {
                precedence.give_way().await;
                client.send(request).await
            }
        });
        Client::new(polite, namespace)
    }

    async fn give_way(&self) {
        let mut claims = self.0.subscribe();
        let is_over = claims.wait_for(|claims| claims.met >= claims.made);
        // Whether it was told or took too long: it is the next one's turn.
        let _ = tokio::time::timeout(PATIENCE, is_over).await;
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use tokio::time::{Instant, timeout};

    use super::*;

    fn server() -> Client {
        let service = tower::service_fn(|_: Request<Body>| async {
            let body = Body::from(b"yes".to_vec());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        });
        Client::new(service, "default")
    }

    async fn ask(client: &Client) -> String {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn others_wait_until_it_is_told() {
        let precedence = Precedence::new();
        let client = precedence.behind(server());
        assert_eq!(ask(&client).await, "yes");
        precedence.claim();
        let telling = precedence.begin();
        let soon = PATIENCE / 2;
        assert!(timeout(soon, ask(&client)).await.is_err(), "it waits");
        // What is claimed meanwhile is not told by what was begun before.
        precedence.claim();
        precedence.end(telling);
        assert!(timeout(soon, ask(&client)).await.is_err(), "it waits");
        precedence.end(precedence.begin());
        assert!(timeout(soon, ask(&client)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long() {
        let precedence = Precedence::new();
        let client = precedence.behind(server());
        precedence.claim();
        let begun = Instant::now();
        assert_eq!(ask(&client).await, "yes");
        assert_eq!(begun.elapsed().as_millis(), PATIENCE.as_millis());
    }
}
