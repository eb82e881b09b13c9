//! Authentication of clients.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::api::{Api, ObjectMeta};
use rustls::pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::User;
use super::bearer::token;
use super::certificate::user_of_certificate;
use super::expiring::Expiring;
use super::retry::review;
use crate::server::tls::ClientAuthority;

/// Tokens that are reviewed at once.
const UNDER_WAY: usize = 32;

/// How many tokens are remembered.
const TOKENS: usize = 4096;

/// Finds the user of a request.
///
/// As upstream, the ways are tried one after another and the first that knows the client wins; a
/// client with only invalid credentials is refused even where anonymous clients are
/// allowed.
#[derive(Debug)]
pub struct Authenticator {
    /// Signs client certificates; without it they are not looked at.
    pub authority: Option<Arc<ClientAuthority>>,
    /// Knows tokens; without it they are not looked at.
    pub tokens: Option<TokenReviews>,
    /// Whether a client may be anonymous.
    pub anonymous: bool,
}

/// Has the API server review tokens, and caches the results.
#[derive(Debug)]
pub struct TokenReviews {
    api: Api<TokenReview>,
    known: Expiring<[u8; 32], Option<User>>,
    /// Any client can make up tokens; the API server must not be flooded with them.
    under_way: Semaphore,
    /// How long an answer is good (`authentication.webhook.cacheTTL`).
    life: Duration,
}

/// The client must authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct Unauthenticated;

impl Authenticator {
    /// The user of a request over a connection with that certificate chain.
    pub(in crate::server) async fn user(
        &self,
        chain: &[CertificateDer<'static>],
        headers: &HeaderMap,
    ) -> Result<User, Unauthenticated> {
        let mut has_failed = false;
        if let (Some(authority), Some((own, others))) = (&self.authority, chain.split_first()) {
            match authority.verify(own, others, UnixTime::now()) {
                Ok(()) => {
                    if let Some(user) = user_of_certificate(own) {
                        return Ok(user.authenticated());
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "unable to authenticate client certificate");
                    has_failed = true;
                }
            }
        }
        if let (Some(tokens), Some(token)) = (&self.tokens, token(headers)) {
            match tokens.user(&token).await {
                Some(user) => return Ok(user.authenticated()),
                None => has_failed = true,
            }
        }
        if self.anonymous && !has_failed {
            return Ok(User::anonymous());
        }
        Err(Unauthenticated)
    }
}

impl TokenReviews {
    /// Asks through this client; answers are good for `life` (2 minutes upstream).
    pub fn new(client: kube::Client, life: Duration) -> TokenReviews {
        TokenReviews {
            api: Api::all(client),
            known: Expiring::new(TOKENS),
            under_way: Semaphore::new(UNDER_WAY),
            life,
        }
    }

    /// The user of a token, or `None` if the token is invalid. A failed review is not
    /// remembered.
    async fn user(&self, token: &str) -> Option<User> {
        // The tokens themselves need not lie about in memory.
        let key: [u8; 32] = Sha256::digest(token).into();
        if let Some(known) = self.known.get(&key, Instant::now()) {
            return known;
        }
        let _place = self.under_way.acquire().await.ok()?;
        let asked = TokenReview {
            metadata: ObjectMeta::default(),
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
            },
            status: None,
        };
        let status = match review(&self.api, &asked).await {
            Ok(answered) => answered.status.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "failed to review token"
                );
                return None;
            }
        };
        let user = if status.authenticated == Some(true) {
            status.user.map(User::from_api)
        } else if status.error.is_some_and(|error| !error.is_empty()) {
            // Something went wrong while looking, rather than the token being wrong.
            return None;
        } else {
            None
        };
        self.known.put(key, user.clone(), Instant::now(), self.life);
        user
    }
}
