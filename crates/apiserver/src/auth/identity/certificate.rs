//! The user that a client certificate names.

use ring::digest::{SHA256, digest};
use x509_parser::der_parser::oid;
use x509_parser::der_parser::oid::Oid;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use super::{CREDENTIAL_ID, User};

/// The subject attribute that carries a user's uid.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// Why a certificate names no user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not a certificate.
    #[error("the client certificate cannot be read: {0}")]
    Malformed(String),
    /// The uid is not a text.
    #[error("unable to parse UID into a string")]
    UidNotText,
    /// More than one uid.
    #[error("expected 1 UID, but found multiple: [{}]", .0.join(" "))]
    SeveralUids(Vec<String>),
    /// An empty uid.
    #[error("UID cannot be an empty string")]
    EmptyUid,
}

/// The user that a certificate (DER) names: the common name, with the organisations as groups.
///
/// The certificate must already have been verified: signed by the authority, valid now, meant for
/// clients. `None` if it has no common name; such a client is anonymous.
///
/// Matches v1.36 apiserver/pkg/authentication/request/x509/x509.go, `CommonNameUserConversion`.
pub fn user_of_certificate(der: &[u8]) -> Result<Option<User>, CertificateError> {
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|error| CertificateError::Malformed(error.to_string()))?;
    let subject = certificate.subject();
    let text = |attribute: &AttributeTypeAndValue| attribute.as_str().ok().map(str::to_owned);

    // The last common name counts, as in Go.
    let name = subject.iter_common_name().filter_map(text).last();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let uids: Vec<&AttributeTypeAndValue> = subject.iter_by_oid(&UID).collect();
    let uid = match uids.as_slice() {
        [] => String::new(),
        [only] => match text(only).ok_or(CertificateError::UidNotText)? {
            empty if empty.is_empty() => return Err(CertificateError::EmptyUid),
            uid => uid,
        },
        several => {
            let texts = several.iter().filter_map(|uid| text(uid)).collect();
            return Err(CertificateError::SeveralUids(texts));
        }
    };
    let fingerprint = hex(digest(&SHA256, der).as_ref());
    let credential = vec![format!("X509SHA256={fingerprint}")];
    Ok(Some(User {
        name,
        uid,
        groups: subject.iter_organization().filter_map(text).collect(),
        extra: [(CREDENTIAL_ID.to_owned(), credential)].into(),
    }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
