//! Whether they may.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, ObjectMeta};
use tokio::time::Instant;

use super::expiring::Expiring;
use super::retry::review;
use super::{Attributes, User};

/// How many answers are remembered.
const ANSWERS: usize = 8192;

/// Decides which user may do what.
#[derive(Debug)]
pub enum Authorizer {
    /// Every user may do everything.
    AlwaysAllow,
    /// The API server decides.
    Webhook(Box<Reviews>),
}

/// Has the API server review access, and caches the results.
#[derive(Debug)]
pub struct Reviews {
    api: Api<SubjectAccessReview>,
    node: String,
    known: Expiring<String, bool>,
    /// How long a yes is good (`authorization.webhook.cacheAuthorizedTTL`).
    allowed: Duration,
    /// How long a no is good (`authorization.webhook.cacheUnauthorizedTTL`).
    denied: Duration,
}

/// Why not, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum Denial {
    /// The user may not: 403.
    Forbidden(String),
    /// The review failed: 500.
    Unknown(String),
}

impl Authorizer {
    /// Whether a user may do one of these; they differ in the subresource only.
    pub(in crate::server) async fn allow(
        &self,
        user: &User,
        wanted: &Attributes,
    ) -> Result<(), Denial> {
        let Authorizer::Webhook(reviews) = self else {
            return Ok(());
        };
        let (name, verb) = (&user.name, wanted.verb);
        for subresource in &wanted.subresources {
            match reviews.allows(user, verb, subresource).await {
                Some(true) => return Ok(()),
                Some(false) => {}
                None => {
                    return Err(Denial::Unknown(format!(
                        "Authorization error (user={name}, verb={verb}, resource=nodes, \
                         subresource={subresource})"
                    )));
                }
            }
        }
        let tried = wanted.subresources.join(" ");
        Err(Denial::Forbidden(format!(
            "Forbidden (user={name}, verb={verb}, resource=nodes, subresource(s)=[{tried}])\n"
        )))
    }
}

impl Reviews {
    /// Asks through this client about that node. Upstream keeps a yes for 5 minutes and a no for
    /// 30 seconds.
    pub fn new(client: kube::Client, node: &str, allowed: Duration, denied: Duration) -> Reviews {
        Reviews {
            api: Api::all(client),
            node: node.to_owned(),
            known: Expiring::new(ANSWERS),
            allowed,
            denied,
        }
    }

    /// `None` if there was no answer.
    async fn allows(&self, user: &User, verb: &str, subresource: &str) -> Option<bool> {
        let asked = self.question(user, verb, subresource);
        let key = serde_json::to_string(&asked.spec).ok()?;
        if let Some(known) = self.known.get(&key, Instant::now()) {
            return Some(known);
        }
        let status = match review(&self.api, &asked).await {
            Ok(answered) => answered.status.unwrap_or_default(),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, user = user.name, "failed to review access");
                return None;
            }
        };
        let allowed = status.allowed && status.denied != Some(true);
        let life = if allowed { self.allowed } else { self.denied };
        self.known.put(key, allowed, Instant::now(), life);
        Some(allowed)
    }

    fn question(&self, user: &User, verb: &str, subresource: &str) -> SubjectAccessReview {
        let attributes = ResourceAttributes {
            name: Some(self.node.clone()),
            resource: Some("nodes".to_owned()),
            subresource: Some(subresource.to_owned()),
            verb: Some(verb.to_owned()),
            version: Some("v1".to_owned()),
            ..ResourceAttributes::default()
        };
        SubjectAccessReview {
            metadata: ObjectMeta::default(),
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
                groups: Some(user.groups.clone()),
                extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
                resource_attributes: Some(attributes),
                non_resource_attributes: None,
            },
            status: None,
        }
    }
}
