//! A client whose certificate can be exchanged while it is used.

use std::sync::{Arc, PoisonError, RwLock};

use http::Request;
use kube::Client;
use kube::client::Body;

/// Hands each request to the client of the moment. Connections of one that was replaced are closed
/// when what goes on over them ends; watches do within minutes.
#[derive(Clone)]
pub struct ClientExchange(Arc<RwLock<Client>>);

impl ClientExchange {
    /// Begins with this one.
    pub fn new(client: Client) -> ClientExchange {
        ClientExchange(Arc::new(RwLock::new(client)))
    }

    /// A client that is always the one of the moment.
    pub fn client(&self) -> Client {
        let namespace = self.current().default_namespace().to_owned();
        let exchange = self.clone();
        let newest = tower::service_fn(move |request: Request<Body>| {
            let client = exchange.current();
            async move { client.send(request).await }
        });
        Client::new(newest, namespace)
    }

    /// The one of the moment.
    pub(super) fn current(&self) -> Client {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Uses another one from the next request on.
    pub fn replace(&self, client: Client) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl std::fmt::Debug for ClientExchange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ClientExchange").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn answering(text: &'static str) -> Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let body = Body::from(text.as_bytes().to_vec());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        });
        Client::new(service, "default")
    }

    async fn asked(client: &Client) -> String {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap()
    }

    #[tokio::test]
    async fn who_holds_the_client_goes_on_with_the_new_one() {
        let exchange = ClientExchange::new(answering("old"));
        let client = exchange.client();
        assert_eq!(asked(&client).await, "old");
        exchange.replace(answering("new"));
        assert_eq!(asked(&client).await, "new");
    }
}
