//! From a method and a verb to the operation on an object or a subresource.

use http::{Method, Request, Response};

use super::call::{Call, read_body};
use crate::body::Body;
use crate::kinds::Verb;
use crate::machinery::write::Part;
use crate::status::Status;

impl Call<'_> {
    /// A request about whole objects.
    ///
    /// Each operation is in a box of its own: a future is copied several times on its way to the
    /// connection, and all in one it would be as large as the largest of them.
    pub(super) async fn on_object(
        &self,
        method: &Method,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let is_named = !self.target.name.is_empty();
        let allowed = |verb: Verb| match self.kind.allows(verb) {
            true => Ok(()),
            false => Err(Status::method_not_allowed()),
        };
        match (self.verb, is_named) {
            ("watch", _) => {
                allowed(Verb::Watch)?;
                let name = Some(self.target.name.as_str()).filter(|_| is_named);
                Box::pin(self.watch(name)).await
            }
            ("get", true) | ("list", false) if self.kind.group == "metrics.k8s.io" => {
                Box::pin(self.usage()).await
            }
            ("get", true) => {
                allowed(Verb::Get)?;
                Box::pin(self.get()).await
            }
            ("list", false) => {
                allowed(Verb::List)?;
                Box::pin(self.list()).await
            }
            ("create", false) => {
                allowed(Verb::Create)?;
                let bytes = read_body(request.into_body()).await?;
                if self.kind.storage.is_some() {
                    return Box::pin(self.create(&bytes)).await;
                }
                match self.kind.kind {
                    "Binding" => Box::pin(self.bind_by_body(&bytes)).await,
                    _ => Box::pin(self.review(&bytes)).await,
                }
            }
            ("update", true) => {
                allowed(Verb::Update)?;
                let bytes = read_body(request.into_body()).await?;
                Box::pin(self.update(&bytes, Part::Main)).await
            }
            ("patch", true) => {
                allowed(Verb::Patch)?;
                let bytes = read_body(request.into_body()).await?;
                Box::pin(self.patch(&bytes, Part::Main)).await
            }
            ("delete", true) => {
                allowed(Verb::Delete)?;
                let bytes = read_body(request.into_body()).await?;
                Box::pin(self.delete(&bytes)).await
            }
            ("deletecollection", false) => {
                allowed(Verb::DeleteCollection)?;
                let bytes = read_body(request.into_body()).await?;
                Box::pin(self.delete_collection(&bytes)).await
            }
            _ => {
                tracing::debug!(%method, "method not allowed");
                Err(Status::method_not_allowed())
            }
        }
    }

    /// A request about a subresource.
    pub(super) async fn on_part(
        &self,
        method: &Method,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let Some(subresource) = self.subresource else {
            return Err(Status::unknown_path());
        };
        let verb = match *method {
            Method::GET | Method::HEAD => Verb::Get,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => return Err(Status::method_not_allowed()),
        };
        if !subresource.verbs.contains(&verb) {
            return Err(Status::method_not_allowed());
        }
        let part = match subresource.name {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            "resize" => Part::Resize,
            "ephemeralcontainers" => Part::EphemeralContainers,
            "scale" => Part::Scale,
            "approval" => Part::Approval,
            _ => Part::Main,
        };
        match (subresource.name, verb) {
            ("scale", Verb::Get) => self.get_scale().await,
            ("log", _) => self.log(request).await,
            ("exec" | "attach" | "portforward", _) => self.stream(request).await,
            ("proxy", _) => self.proxy(request).await,
            ("binding", _) => self.bind(&read_body(request.into_body()).await?).await,
            ("eviction", _) => self.evict(&read_body(request.into_body()).await?).await,
            ("token", _) => {
                self.issue_token(&read_body(request.into_body()).await?)
                    .await
            }
            (_, Verb::Get) if part != Part::Main => self.get().await,
            (_, Verb::Update) if part != Part::Main => {
                self.update(&read_body(request.into_body()).await?, part)
                    .await
            }
            (_, Verb::Patch) if part != Part::Main => {
                self.patch(&read_body(request.into_body()).await?, part)
                    .await
            }
            _ => Err(Status::method_not_allowed()),
        }
    }
}
