//! `TokenReview`: authenticating tokens for other servers.

use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus, UserInfo};
use plimsoll_core::object::timestamp::Timestamp;

use super::Authenticator;
use crate::auth::Objects;

/// The result of a token review; `None` without a token, which is a 400.
///
/// Matches v1.36 pkg/registry/authentication/tokenreview/storage.go.
pub fn review(
    tokens: &Authenticator,
    spec: &TokenReviewSpec,
    objects: &dyn Objects,
    now: Timestamp,
) -> Option<TokenReviewStatus> {
    let token = Some(&spec.token).filter(|token| !token.is_empty())?;
    let wanted = spec.audiences.as_deref().unwrap_or_default();
    let wanted = match wanted {
        [] => &tokens.audiences,
        wanted => wanted,
    };
    Some(match tokens.authenticate_for(token, wanted, objects, now) {
        Ok(found) => TokenReviewStatus {
            authenticated: Some(true),
            user: Some(found.user.authenticated().to_api()),
            audiences: Some(found.audiences),
            error: None,
        },
        Err(error) => TokenReviewStatus {
            error: Some(error.to_string()),
            // Upstream shows an empty user, not none.
            user: Some(UserInfo::default()),
            ..TokenReviewStatus::default()
        },
    })
}
