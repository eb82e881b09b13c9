//! Authentication and authorization of clients.
//!
//! Matches v1.36 pkg/kubelet/server/auth.go and cmd/kubelet/app/auth.go: a client certificate of
//! the cluster's authority, or a token that the API server recognises; then the API server decides
//! whether that user may do this with `nodes/<name>/<subresource>`.
//!
//! Reading order: [`User`], [`Authenticator`], `attributes` (verb and resource of a request), [`Authorizer`].

mod attributes;
mod authenticate;
mod authorize;
mod bearer;
mod certificate;
mod expiring;
mod retry;

pub(super) use attributes::Attributes;
pub use authenticate::{Authenticator, TokenReviews};
pub(super) use authorize::Denial;
pub use authorize::{Authorizer, Reviews};
pub(super) use bearer::strip_token;
pub use plimsoll_core::object::user::User;
