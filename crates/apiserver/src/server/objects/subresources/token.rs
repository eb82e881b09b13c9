//! `serviceaccounts/token`: a token for a service account.

use http::Response;
use k8s_openapi::api::authentication::v1::TokenRequest;
use serde_json::Value;

use crate::auth::token::{RequestError, TokenRequestContext};
use crate::body::Body;
use crate::kinds::{self, GroupVersionKind};
use crate::server::objects::identity;
use crate::server::request::call::Call;
use crate::server::request::respond;
use crate::status::{Details, Status};

const TOKEN_REQUEST: GroupVersionKind = GroupVersionKind {
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenRequest",
};

impl Call<'_> {
    /// Handles a POST of a TokenRequest.
    pub(crate) async fn issue_token(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let body = self.action(bytes, TOKEN_REQUEST)?;
        // A consistent read: tokens are requested right after the account or the pod is created.
        self.wait_until_fresh("").await?;
        self.admit_action(&body)?;
        let request: TokenRequest = serde_json::from_value(body)
            .map_err(|error| Status::bad_request(format!("TokenRequest: {error}")))?;
        let id = identity::uid();
        let context = TokenRequestContext {
            namespace: &self.target.namespace,
            name: &self.target.name,
            id: &id,
        };
        let issued = self
            .server
            .tokens
            .issue(request, context, self.server, self.now);
        let issued = issued.map_err(|error| error_status(&error))?;
        let mut issued: Value = serde_json::to_value(issued)
            .map_err(|error| Status::internal_error(&error.to_string()))?;
        issued["kind"] = "TokenRequest".into();
        issued["apiVersion"] = "authentication.k8s.io/v1".into();
        Ok(respond::json(201, &issued))
    }
}

fn error_status(error: &RequestError) -> Status {
    let text = error.to_string();
    match error {
        RequestError::Invalid { name, problems } => {
            Status::invalid_kind("authentication.k8s.io", "TokenRequest", name, problems)
        }
        RequestError::NotFound { resource, name } => {
            let row = kinds::by_resource("", "v1", resource);
            match row {
                Some(row) => Status::not_found(row, name),
                None => Status::new(404, "NotFound", text),
            }
        }
        RequestError::BadRequest(_) => Status::bad_request(text),
        RequestError::Conflict { kind, name, .. } => {
            Status::new(409, "Conflict", text).about(Details {
                name: name.clone(),
                kind: kind.clone(),
                ..Details::default()
            })
        }
        RequestError::Sign => Status::internal_error(&text),
    }
}
