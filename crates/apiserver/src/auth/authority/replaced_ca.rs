//! The CA that signed all certificates, servers' and clients', in earlier versions.
//!
//! Clients trust its certificate, so it still signs the server certificate. Certificates that it
//! signed for clients and nodes stay valid until they expire; certificates that it signs from then
//! on must not count as clients' certificates. Its certificate is kept a second time, in
//! `former-ca.crt`, from its replacement until the last certificate it signed has expired.

use std::path::Path;

use plimsoll_core::object::timestamp::Timestamp;
use time::OffsetDateTime;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::ca::{Ca, self_signed};
use super::file::{read_if_exists, write_public};
use super::leaf::validity_of;
use super::{AuthorityError, DAY_SECONDS, LEAF_DAYS, seconds};

/// A CA that has been replaced.
#[derive(Debug)]
pub(super) struct ReplacedCa {
    certificate_pem: String,
    /// The time of its replacement, in seconds since 1970: later certificates do not count.
    replaced: i64,
}

impl ReplacedCa {
    /// The kept certificate, as long as it is needed; created if the directory `is_earlier`.
    pub(super) fn open(
        directory: &Path,
        server: &Ca,
        is_earlier: bool,
        now: Timestamp,
    ) -> Result<Option<ReplacedCa>, AuthorityError> {
        let path = directory.join("former-ca.crt");
        let certificate_pem = match read_if_exists(&path)? {
            Some(pem) => pem,
            None if is_earlier => {
                let at = |seconds| {
                    OffsetDateTime::from_unix_timestamp(seconds)
                        .expect("a timestamp and a year are within four digits of a year")
                };
                let now = seconds(now);
                let end = at(now.saturating_add(LEAF_DAYS.saturating_mul(DAY_SECONDS)));
                let pem = self_signed("plimsoll-ca", server.key(), at(now), end)?;
                write_public(&path, &pem)?;
                pem
            }
            None => return Ok(None),
        };
        let Some(validity) = validity_of(&certificate_pem) else {
            return Err(AuthorityError::Malformed {
                path,
                what: "certificate",
            });
        };
        Ok((seconds(now) <= validity.end).then_some(ReplacedCa {
            certificate_pem,
            replaced: validity.start,
        }))
    }

    /// Its certificate, as PEM.
    pub(super) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Whether it signed the certificate (DER) before it was replaced.
    pub(super) fn has_signed(&self, der: &[u8]) -> bool {
        let check = || {
            let (_, leaf) = X509Certificate::from_der(der).ok()?;
            let (_, own) = parse_x509_pem(self.certificate_pem.as_bytes()).ok()?;
            let own = own.parse_x509().ok()?;
            let is_signed = leaf.verify_signature(Some(own.public_key())).is_ok();
            Some(is_signed && leaf.validity().not_before.timestamp() <= self.replaced)
        };
        check() == Some(true)
    }
}
