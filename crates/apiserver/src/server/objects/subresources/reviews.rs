//! Access reviews: `kubectl auth whoami`, `kubectl auth can-i`.

use http::Response;
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SubjectAccessReview,
    SubjectAccessReviewStatus,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::action::text;
use crate::auth::authorize::{ReviewProblems, review_local, review_self, review_subject};
use crate::auth::token;
use crate::body::Body;
use crate::server::request::call::Call;
use crate::server::request::respond;
use crate::status::Status;

impl Call<'_> {
    /// Handles a POST of a review.
    pub(crate) async fn review(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let mut body = self.action(bytes, self.kind.group_version_kind())?;
        self.wait_until_fresh("").await?;
        let status = self.respond(&body)?;
        body["kind"] = json!(self.kind.kind);
        body["apiVersion"] = json!(self.kind.api_version());
        if !body["metadata"].is_object() {
            body["metadata"] = json!({});
        }
        if self.kind.kind == "SelfSubjectReview" {
            body["metadata"]["creationTimestamp"] = json!(self.now_text());
        }
        body["status"] = status;
        Ok(respond::json(201, &body))
    }

    fn respond(&self, body: &Value) -> Result<Value, Status> {
        let server = self.server;
        match self.kind.kind {
            "SelfSubjectReview" => Ok(json!({"userInfo": json_of(&self.user.to_api())?})),
            "TokenReview" => {
                let spec = parsed(&body["spec"])?;
                let status = token::review(&server.tokens, &spec, server, self.now);
                let status = status.ok_or_else(|| {
                    Status::bad_request("token is required for TokenReview in authentication")
                })?;
                json_of(&status)
            }
            "SelfSubjectRulesReview" => {
                let namespace = text(body, "/spec/namespace");
                if namespace.is_empty() {
                    return Err(Status::bad_request("no namespace on request"));
                }
                let rules = server.access.with(self.user, &server.cache, |authorizer| {
                    authorizer.rules_review(self.user, namespace)
                });
                json_of(&rules)
            }
            "SelfSubjectAccessReview" => {
                let review: SelfSubjectAccessReview = parsed(body)?;
                self.access_review(|authorizer| review_self(authorizer, self.user, &review))
            }
            "SubjectAccessReview" => {
                let review: SubjectAccessReview = parsed(body)?;
                self.access_review(|authorizer| {
                    review_subject(authorizer, &review.metadata, &review.spec)
                })
            }
            "LocalSubjectAccessReview" => {
                let mut review: LocalSubjectAccessReview = parsed(body)?;
                let namespace = self.target.namespace.clone();
                review.metadata.namespace.get_or_insert(namespace);
                self.access_review(|authorizer| {
                    review_local(authorizer, &review.metadata, &review.spec)
                })
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn access_review(
        &self,
        ask: impl Fn(
            &crate::auth::authorize::Authorizer,
        ) -> Result<SubjectAccessReviewStatus, ReviewProblems>,
    ) -> Result<Value, Status> {
        let server = self.server;
        // Any caller may review the access of a node.
        let status = server.access.with_everything(&server.cache, ask);
        let status = status.map_err(|problems| Status::invalid(self.kind, "", &problems))?;
        json_of(&status)
    }
}

fn parsed<T: DeserializeOwned>(value: &Value) -> Result<T, Status> {
    serde_json::from_value(value.clone()).map_err(|error| Status::bad_request(error.to_string()))
}

fn json_of(value: &impl serde::Serialize) -> Result<Value, Status> {
    serde_json::to_value(value).map_err(|error| Status::internal_error(&error.to_string()))
}
