//! The user that a client certificate names.

use sha2::{Digest, Sha256};
use x509_parser::der_parser::oid;
use x509_parser::der_parser::oid::Oid;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use plimsoll_core::object::user::{CREDENTIAL_ID, User};

/// The subject attribute that carries a user's uid.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// The user that a verified certificate (DER) names: the common name, with the organisations as
/// groups. `None` where there is none or the certificate contradicts itself.
///
/// Matches v1.36 apiserver/pkg/authentication/request/x509/x509.go, `CommonNameUserConversion`.
pub(super) fn user_of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let text = |attribute: &AttributeTypeAndValue| attribute.as_str().ok().map(str::to_owned);

    // The last common name counts, as in Go.
    let name = subject.iter_common_name().filter_map(text).last()?;
    if name.is_empty() {
        return None;
    }
    let mut uids = subject.iter_by_oid(&UID);
    let uid = match (uids.next(), uids.next()) {
        (None, _) => String::new(),
        (Some(only), None) => text(only).filter(|uid| !uid.is_empty())?,
        (Some(_), Some(_)) => return None,
    };
    let fingerprint: String = Sha256::digest(der)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let credential = vec![format!("X509SHA256={fingerprint}")];
    Some(User {
        name,
        uid,
        groups: subject.iter_organization().filter_map(text).collect(),
        extra: [(CREDENTIAL_ID.to_owned(), credential)].into(),
    })
}
