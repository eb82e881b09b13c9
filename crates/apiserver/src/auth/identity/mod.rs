//! The users of requests.
//!
//! Reading order: `certificate` (from a verified client certificate), `bearer` (tokens in headers),
//! `authenticate` (the user of a request), `impersonation` (the headers of `kubectl --as`).

mod authenticate;
mod bearer;
mod certificate;
mod impersonation;

pub use authenticate::{Credentials, Unauthenticated, authenticate};
pub use bearer::{WebSocketToken, token_from_header, token_from_web_socket_protocols};
pub use certificate::{CertificateError, user_of_certificate};
pub use impersonation::{WithoutUser, requested_user};
pub use plimsoll_core::object::user::{
    ANONYMOUS, AUTHENTICATED, BOOTSTRAPPERS, MASTERS, NODE_USER_PREFIX, NODES, SERVICE_ACCOUNTS,
    UNAUTHENTICATED, User, service_account_groups, service_account_user_name,
    split_service_account,
};
pub(crate) use plimsoll_core::object::user::{
    CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID,
};
