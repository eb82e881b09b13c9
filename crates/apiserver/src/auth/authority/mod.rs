//! The cluster's own certificate authority.
//!
//! Everything lives in one directory that only its owner can enter; keys are readable for their
//! owner only. What exists is reused, what is about to expire is made anew. The authority itself
//! is renewed with its old key, so that certificates it has signed stay good.
//!
//! Reading order: `file` (writing what nobody else may read), `leaf` (certificates for servers and
//! users), `request` (for keys made elsewhere), `subject` (users with several groups), `kubeconfig` (how kubectl is told).

use std::path::{Path, PathBuf};

use plimsoll_core::object::timestamp::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;

mod file;
mod kubeconfig;
mod leaf;
mod request;
mod subject;

pub use file::{FileError, read_or_create_private, write_private};
pub use kubeconfig::kubeconfig;
pub(super) use leaf::end_of;
pub use leaf::{Certificate, RequestProblem};

use file::{create_private_directory, read_if_exists, write_public};

const DAY_SECONDS: i64 = 24 * 60 * 60;
const CA_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 365;

/// A certificate is made anew when less than this part of its life is left.
const RENEW_AT_FRACTION: i64 = 4;

/// Clocks of other machines may be a little behind.
const BACKDATED_SECONDS: i64 = 60 * 60;

/// The authority that signs the certificates of servers, users and nodes.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// The authority cannot be had, or cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file holds something else than it should.
    #[error("{} holds no {what} in PEM form; remove it to have a new one made", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The authority's certificate is of another key.
    #[error(
        "{} is not the certificate of {}; put the right key back, or remove both to begin anew",
        certificate.display(),
        key.display()
    )]
    OtherKey {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A key or certificate cannot be made.
    #[error("cannot make a certificate for {subject}")]
    Sign {
        /// Whose certificate it would be.
        subject: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// The authority's own certificate is over.
    #[error("the certificate of the authority has expired; open it again to have it renewed")]
    Expired,
}

impl Authority {
    /// The authority in that directory; made if there is none.
    pub fn open(directory: &Path, now: Timestamp) -> Result<Authority, AuthorityError> {
        create_private_directory(directory)?;
        let key_path = directory.join("ca.key");
        let key_pem = read_or_create_private(&key_path, || {
            new_key("the authority").map(|key| key.serialize_pem())
        })?;
        let malformed = |path: &Path, what| AuthorityError::Malformed {
            path: path.to_owned(),
            what,
        };
        let key = || KeyPair::from_pem(&key_pem).map_err(|_| malformed(&key_path, "private key"));

        let path = directory.join("ca.crt");
        let existing = read_if_exists(&path)?;
        let certificate_pem = match existing {
            Some(pem) => match leaf::validity_of(&pem) {
                None => return Err(malformed(&path, "certificate")),
                Some(validity) if !validity.is_due(now) => pem,
                Some(_) => new_ca(&path, &key()?, now)?,
            },
            None => new_ca(&path, &key()?, now)?,
        };
        if !leaf::belongs(&certificate_pem, &key_pem) {
            return Err(AuthorityError::OtherKey {
                certificate: path,
                key: key_path,
            });
        }
        let issuer = Issuer::from_ca_cert_pem(&certificate_pem, key()?)
            .map_err(|_| malformed(&path, "certificate of an authority"))?;
        Ok(Authority {
            directory: directory.to_owned(),
            certificate_pem,
            issuer,
        })
    }

    /// The certificate that clients trust, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }
}

/// Makes a certificate for the authority's key and writes it.
fn new_ca(path: &Path, key: &KeyPair, now: Timestamp) -> Result<String, AuthorityError> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "plimsoll-ca");
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    (params.not_before, params.not_after) = lifetime(now, CA_DAYS);
    let certificate = params
        .self_signed(key)
        .map_err(|source| AuthorityError::Sign {
            subject: "the authority".to_owned(),
            source,
        })?;
    let pem = certificate.pem();
    write_public(path, &pem)?;
    Ok(pem)
}

fn new_key(subject: &str) -> Result<KeyPair, AuthorityError> {
    KeyPair::generate().map_err(|source| AuthorityError::Sign {
        subject: subject.to_owned(),
        source,
    })
}

/// From a little before `now` until that many days after it.
fn lifetime(now: Timestamp, days: i64) -> (OffsetDateTime, OffsetDateTime) {
    let seconds = now.as_nanos().div_euclid(1_000_000_000);
    let at = |seconds: i64| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .expect("a timestamp and a few years are within four digits of a year")
    };
    let end = seconds.saturating_add(days.saturating_mul(DAY_SECONDS));
    (at(seconds - BACKDATED_SECONDS), at(end))
}

#[cfg(test)]
mod tests;
