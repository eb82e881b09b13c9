//! A client that can be exchanged while it is used: for one with another certificate, and for one with
//! new connections when the server does not answer on those that there are.
//!
//! A connection may be dead without having ended: a machine between node and server changed, or
//! forgot it. The kernel gives it up after a quarter of an hour, and each further one that waits to
//! be used again costs as much. Upstream's kubelet closes all of its connections when heartbeats fail.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::BoxError;

/// How long the head of an answer may take; watches and logs are answered at once, too. As long as
/// heartbeats of upstream's kubelet wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Makes a client that has no connections yet.
type Make = Arc<dyn Fn() -> kube::Result<Client> + Send + Sync>;

/// Hands each request to the client of the moment. Connections of one that was replaced are closed
/// when the requests over them end; watches do within minutes. The connections of a client that was given
/// up because the server was silent are closed at once.
#[derive(Clone)]
pub struct ClientExchange(Arc<RwLock<Current>>);

#[derive(Clone)]
struct Current {
    make: Make,
    client: Client,
    given_up: CancellationToken,
}

/// Why a request ended without an answer.
#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error("the API server has not answered within {} s", ANSWER_WITHIN.as_secs())]
    NoAnswer,
    #[error("closed the connection: the API server does not answer")]
    GivenUp,
}

impl Current {
    fn new(make: Make) -> kube::Result<Current> {
        Ok(Current {
            client: make()?,
            make,
            given_up: CancellationToken::new(),
        })
    }
}

impl ClientExchange {
    /// Begins with a client that is made so.
    ///
    /// # Errors
    ///
    /// If none can be made.
    pub fn new(
        make: impl Fn() -> kube::Result<Client> + Send + Sync + 'static,
    ) -> kube::Result<ClientExchange> {
        let current = Current::new(Arc::new(make))?;
        Ok(ClientExchange(Arc::new(RwLock::new(current))))
    }

    /// A client that is always the one of the moment.
    pub fn client(&self) -> Client {
        let namespace = self.current().client.default_namespace().to_owned();
        let exchange = self.clone();
        let newest = tower::service_fn(move |request: Request<Body>| {
            let exchange = exchange.clone();
            async move { exchange.send(request).await }
        });
        Client::new(newest, namespace)
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Ending>, BoxError> {
        let Current {
            client, given_up, ..
        } = self.current();
        let ended = Box::pin(given_up.clone().cancelled_owned());
        let answer = tokio::select! {
            answer = tokio::time::timeout(ANSWER_WITHIN, client.send(request)) => answer,
            () = given_up.cancelled() => return Err(Silence::GivenUp.into()),
        };
        match answer {
            Ok(answer) => Ok(answer?.map(|body| Ending { body, ended })),
            Err(_) => {
                self.give_up(&given_up);
                Err(Silence::NoAnswer.into())
            }
        }
    }

    /// Cancels the requests of the client that belongs to this token, and uses a new client.
    fn give_up(&self, given_up: &CancellationToken) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if given_up.is_cancelled() {
            // Another request was quicker.
            return;
        }
        match Current::new(Arc::clone(&current.make)) {
            Ok(next) => {
                tracing::warn!("API server does not answer; opening new connection");
                *current = next;
            }
            Err(error) => tracing::warn!(%error, "failed to open new connection to API server"),
        }
        given_up.cancel();
    }

    fn current(&self) -> Current {
        let current = self.0.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses another one from the next request on.
    ///
    /// # Errors
    ///
    /// If it cannot be made; the one of the moment stays then.
    pub fn replace(
        &self,
        make: impl Fn() -> kube::Result<Client> + Send + Sync + 'static,
    ) -> kube::Result<()> {
        let next = Current::new(Arc::new(make))?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}

impl std::fmt::Debug for ClientExchange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ClientExchange").finish_non_exhaustive()
    }
}

/// The body of an answer, which ends when its connection is given up.
struct Ending {
    body: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Silence::GivenUp.into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn answering(text: &'static str) -> kube::Result<Client> {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let body = Body::from(text.as_bytes().to_vec());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        });
        Ok(Client::new(service, "default"))
    }

    fn request(path: &str) -> Request<Vec<u8>> {
        Request::get(path).body(Vec::new()).unwrap()
    }

    async fn asked(client: &Client) -> kube::Result<String> {
        client.request_text(request("/version")).await
    }

    #[tokio::test]
    async fn existing_client_uses_the_new_connection_after_a_replacement() {
        let exchange = ClientExchange::new(|| answering("old")).unwrap();
        let client = exchange.client();
        assert_eq!(asked(&client).await.unwrap(), "old");
        exchange.replace(|| answering("new")).unwrap();
        assert_eq!(asked(&client).await.unwrap(), "new");
    }

    /// The first one made answers a watch with a body that never comes, and nothing else.
    fn silent_at_first(made: &AtomicU32) -> kube::Result<Client> {
        if made.fetch_add(1, Ordering::Relaxed) > 0 {
            return answering("new");
        }
        let service = tower::service_fn(|request: Request<Body>| async move {
            if !request.uri().path().starts_with("/watch") {
                std::future::pending::<()>().await;
            }
            let body = http_body_util::StreamBody::new(futures::stream::pending());
            let body: http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error> =
                http_body_util::BodyExt::boxed_unsync(body);
            Ok::<_, std::convert::Infallible>(Response::new(body))
        });
        Ok(Client::new(service, "default"))
    }

    #[tokio::test(start_paused = true)]
    async fn silent_connection_is_closed_and_next_request_connects_again() {
        let made = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&made);
        let exchange = ClientExchange::new(move || silent_at_first(&counted)).unwrap();
        let client = exchange.client();
        let watch = client.request_stream(request("/watch")).await.unwrap();
        let watching = tokio::spawn(async move {
            use futures::AsyncReadExt;
            let mut text = String::new();
            std::pin::pin!(watch).read_to_string(&mut text).await
        });
        let (one, other) = tokio::join!(asked(&client), asked(&client));
        assert!(one.is_err() && other.is_err());
        assert!(watching.await.unwrap().is_err(), "the watch ends as well");
        assert_eq!(asked(&client).await.unwrap(), "new");
        assert_eq!(made.load(Ordering::Relaxed), 2, "once for both");
    }
}
