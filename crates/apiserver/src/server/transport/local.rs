//! An in-process client: a `kube::Client` whose requests use no socket.
//!
//! They take the same path as those from the network, from routing to the response's bytes; only
//! authentication is replaced by the caller's word.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tower::Service;

use crate::auth::identity::User;
use crate::body::{self, Body, BodyError};
use crate::server::Server;
use crate::server::request::handle::Peer;

/// Passes requests of one user to the server.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    server: Arc<Server>,
    user: User,
}

impl Server {
    /// A client in this process that acts as `user`.
    pub fn client(self: &Arc<Self>, user: User) -> kube::Client {
        let service = Local {
            server: Arc::clone(self),
            user,
        };
        kube::Client::new(service, "default")
    }
}

impl<B> Service<Request<B>> for Local
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = Arc::clone(&self.server);
        let peer = Peer::Trusted(self.user.clone());
        let request = request.map(|body| BodyExt::boxed_unsync(body.map_err(BodyError::other)));
        let has_no_body = request.method() == Method::HEAD;
        Box::pin(async move {
            let response = server.handle(request, &peer).await;
            // On a socket, hyper takes care of this.
            Ok(if has_no_body {
                response.map(|_| body::empty())
            } else {
                response
            })
        })
    }
}
