//! The cluster's own certificate authorities.
//!
//! Everything lives in one directory that only its owner can enter; keys are readable for their
//! owner only. Existing files are reused, expiring certificates are renewed. A CA itself
//! is renewed with its old key, so that certificates it has signed stay good.
//!
//! Reading order: `file` (files that only their owner may read), `ca` (one CA), `replaced_ca`
//! (the CA of earlier versions), `leaf` (certificates for servers and users),
//! `request` (for keys made elsewhere), `subject` (users with several groups), `kubeconfig`.

use std::path::{Path, PathBuf};

use plimsoll_core::object::timestamp::Timestamp;
use rcgen::KeyPair;
use time::OffsetDateTime;

mod ca;
mod file;
mod kubeconfig;
mod leaf;
mod replaced_ca;
mod request;
mod subject;

pub use file::{FileError, read_or_create_private, write_private};
pub use kubeconfig::kubeconfig;
pub(super) use leaf::end_of;
pub(crate) use leaf::end_of_certificate;
pub use leaf::{Certificate, RequestProblem, Term};

use ca::Ca;
use file::create_private_directory;
use replaced_ca::ReplacedCa;

const DAY_SECONDS: i64 = 24 * 60 * 60;
const CA_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 365;

/// A certificate is renewed when less than this part of its lifetime is left.
const RENEW_AT_FRACTION: i64 = 4;

/// Clocks of other machines may be a little behind.
const BACKDATED_SECONDS: i64 = 60 * 60;

/// The CAs that sign the certificates of servers, users and nodes. One for each purpose: a
/// certificate for one purpose proves nothing for another.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    /// The CA that clients and nodes trust: it signs this server's certificates, and no others.
    server: Ca,
    /// Signs client certificates.
    clients: Ca,
    /// Signs the serving certificates of nodes.
    kubelets: Ca,
    /// The CA of earlier versions, as long as certificates of it are valid.
    replaced_ca: Option<ReplacedCa>,
}

/// The CA that signs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Client certificates.
    Clients,
    /// Serving certificates of nodes.
    Kubelets,
}

/// The CA cannot be opened, or cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file does not hold what it should.
    #[error("{} does not contain a {what} in PEM format; remove the file to create a new one", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The authority's certificate is of another key.
    #[error(
        "{} is not the certificate of {}; restore the matching key, or remove both files to create new ones",
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
        /// The subject of the certificate.
        subject: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// The CA's own certificate has expired.
    #[error("the certificate of the authority has expired; restart the server to renew it")]
    Expired,
    /// The CA's own certificate is not valid yet.
    #[error(
        "the clock of this machine ({now}) is before the certificate of the authority begins \
         ({start}); set the clock"
    )]
    NotYetValid {
        /// The current time of the clock.
        now: String,
        /// When the certificate begins.
        start: String,
    },
    /// The clock is not set: new certificates would have expired once it is.
    #[error(
        "the clock of this machine says {now}, which cannot be; set it before the keys of the \
         cluster are made"
    )]
    ClockNotSet {
        /// The current time of the clock.
        now: String,
    },
}

impl Authority {
    /// The CAs in that directory, which are created if missing.
    pub fn open(directory: &Path, now: Timestamp) -> Result<Authority, AuthorityError> {
        create_private_directory(directory)?;
        let exists = |name: &str| directory.join(name).exists();
        let is_earlier = exists("ca.key") && !exists("client-ca.key") && !exists("client-ca.crt");
        let server = Ca::open(directory, "ca", "plimsoll-ca", now)?;
        // Written first: certificates signed before must stay valid if this is interrupted.
        let replaced_ca = ReplacedCa::open(directory, &server, is_earlier, now)?;
        Ok(Authority {
            directory: directory.to_owned(),
            clients: Ca::open(directory, "client-ca", "plimsoll-client-ca", now)?,
            kubelets: Ca::open(
                directory,
                "kubelet-serving-ca",
                "plimsoll-kubelet-serving-ca",
                now,
            )?,
            replaced_ca,
            server,
        })
    }

    /// The certificate that clients of this server trust, as PEM.
    pub fn certificate_pem(&self) -> &str {
        self.server.certificate_pem()
    }

    /// The certificates that this server trusts in clients, as PEM.
    pub fn client_ca_pem(&self) -> String {
        self.with_former(&self.clients)
    }

    /// The certificates that this server trusts in nodes, as PEM.
    pub fn kubelet_serving_ca_pem(&self) -> String {
        self.with_former(&self.kubelets)
    }

    /// The certificates that a node trusts in its clients, as PEM: this server's, and users'.
    pub fn trusted_by_nodes_pem(&self) -> String {
        [
            self.server.certificate_pem(),
            self.clients.certificate_pem(),
        ]
        .concat()
    }

    fn with_former(&self, ca: &Ca) -> String {
        let replaced_ca = self
            .replaced_ca
            .as_ref()
            .map_or("", ReplacedCa::certificate_pem);
        [ca.certificate_pem(), replaced_ca].concat()
    }

    /// Whether a client's certificate (DER), whose chain has been verified, was signed for clients.
    /// A certificate of the replaced CA counts only if it was signed before the replacement.
    pub fn admits_client(&self, der: &[u8]) -> bool {
        let Some(replaced_ca) = &self.replaced_ca else {
            return true;
        };
        self.clients.has_signed_der(der) || replaced_ca.has_signed(der)
    }

    fn signer(&self, signer: Signer) -> &Ca {
        match signer {
            Signer::Clients => &self.clients,
            Signer::Kubelets => &self.kubelets,
        }
    }
}

fn new_key(subject: &str) -> Result<KeyPair, AuthorityError> {
    KeyPair::generate().map_err(|source| AuthorityError::Sign {
        subject: subject.to_owned(),
        source,
    })
}

/// Seconds since 1970.
fn seconds(time: Timestamp) -> i64 {
    time.as_nanos().div_euclid(1_000_000_000)
}

fn time_text(seconds: i64) -> String {
    Timestamp::from_secs(seconds).to_api().0.to_string()
}

/// From a little before `now` until that many days after it.
fn lifetime(now: Timestamp, days: i64) -> (OffsetDateTime, OffsetDateTime) {
    let seconds = seconds(now);
    let at = |seconds: i64| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .expect("a timestamp and a few years are within four digits of a year")
    };
    let end = seconds.saturating_add(days.saturating_mul(DAY_SECONDS));
    (at(seconds - BACKDATED_SECONDS), at(end))
}

#[cfg(test)]
mod tests;
