//! Certificates are exchanged before they end.
//!
//! Matches v1.36 client-go/util/certificate/certificate_manager.go: at 70 to 90 percent of its life,
//! each at another time, so that nodes that joined together do not ask together for ever.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kube::Client;
use kube::config::KubeconfigError;
use plimsoll_core::error_chain::error_chain;
use tokio_util::sync::CancellationToken;

use super::exchange::ClientExchange;
use super::kubeconfig::{self, Kept, WriteError, write_private};
use super::request::{RequestError, client_request};
use super::signing::{SigningError, sign_client};

/// The longest sleep in one go: clocks are set, and machines are put to sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// When a certificate is good, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    not_before: i64,
    not_after: i64,
}

/// A certificate cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ValidityError {
    /// It is not PEM.
    #[error("the certificate is not in PEM form")]
    Pem(#[source] x509_parser::asn1_rs::Err<x509_parser::error::PEMError>),
    /// It is not X.509.
    #[error("the certificate is not an X.509 certificate")]
    Certificate(#[source] x509_parser::asn1_rs::Err<x509_parser::error::X509Error>),
}

impl Validity {
    /// Of the first certificate in a PEM text.
    pub fn of_certificate(pem: &str) -> Result<Validity, ValidityError> {
        let parsed = x509_parser::pem::parse_x509_pem(pem.as_bytes());
        let (_, block) = parsed.map_err(ValidityError::Pem)?;
        let certificate = block.parse_x509().map_err(ValidityError::Certificate)?;
        let validity = certificate.validity();
        Ok(Validity {
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
        })
    }

    /// When it is to be exchanged. `chance` is between 0 and 1.
    fn renewed_at(self, chance: f64) -> SystemTime {
        let life = self.not_after.saturating_sub(self.not_before);
        let life = Duration::from_secs(u64::try_from(life).unwrap_or_default());
        time_of(self.not_before) + life.mul_f64(0.7 + 0.2 * chance.clamp(0.0, 1.0))
    }

    /// Whether it was good for the last time before `now`.
    pub fn is_over(self, now: SystemTime) -> bool {
        now > time_of(self.not_after)
    }
}

fn time_of(seconds: i64) -> SystemTime {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    SystemTime::UNIX_EPOCH + since
}

/// Waits until a certificate is to be exchanged. One that cannot be read is exchanged at once.
pub(crate) async fn until_due(certificate_pem: &str) {
    let Ok(validity) = Validity::of_certificate(certificate_pem) else {
        return;
    };
    let due = validity.renewed_at(fastrand::f64());
    while let Ok(rest) = due.duration_since(SystemTime::now()) {
        if rest.is_zero() {
            return;
        }
        tokio::time::sleep(rest.min(LONGEST_SLEEP)).await;
    }
}

/// How long to wait after so many failures in a row.
pub(crate) fn retry_after(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.clamp(1, 5))
}

/// A client's certificate was not exchanged.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Sign(#[from] SigningError),
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::ReadError),
    #[error("the new certificate cannot be used")]
    Config(#[from] Box<KubeconfigError>),
    #[error("the new certificate cannot be used")]
    Use(#[source] Box<kube::Error>),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Renews the certificate in a node's kubeconfig before it expires, until `stop` is cancelled. Users of the
/// exchange's client continue with the new one.
pub async fn keep_client_certificate(
    path: PathBuf,
    node: String,
    exchange: ClientExchange,
    stop: CancellationToken,
) {
    let keep = async {
        let mut failures = 0;
        loop {
            if failures == 0 {
                let kept = Kept::read(&path).map(|kept| kept.client.certificate_pem);
                until_due(&kept.unwrap_or_default()).await;
            }
            match renew(&path, &node, &exchange).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    let error = error_chain(&error);
                    tracing::warn!(%node, error, "failed to renew node client certificate; retrying");
                    tokio::time::sleep(retry_after(failures)).await;
                }
            }
        }
    };
    tokio::select! {
        () = keep => {}
        () = stop.cancelled() => {}
    }
}

/// Asks for a new certificate as the node itself, writes it down, and uses it.
async fn renew(path: &Path, node: &str, exchange: &ClientExchange) -> Result<(), RenewalError> {
    let kept = Kept::read(path)?;
    let request = client_request(node)?;
    let client = sign_client(&exchange.client(), &request).await?;
    let kept = Kept { client, ..kept };
    let config = kept.config().await.map_err(Box::new)?;
    write_private(path, &kept.render())?;
    let replaced = exchange.replace(move || Client::try_from(config.clone()));
    replaced.map_err(|source| RenewalError::Use(Box::new(source)))?;
    tracing::info!(%node, "rotated node client certificate");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60;

    #[test]
    fn a_certificate_is_exchanged_at_70_to_90_percent_of_its_life() {
        let validity = Validity {
            not_before: 1_000_000,
            not_after: 1_000_000 + 100 * DAY,
        };
        // Parts of a second are lost on the way.
        let day = |chance: f64| {
            let since = validity
                .renewed_at(chance)
                .duration_since(time_of(1_000_000));
            (since.unwrap().as_secs() + 1) / DAY.unsigned_abs()
        };
        assert_eq!(day(0.0), 70);
        assert_eq!(day(0.5), 80);
        assert_eq!(day(1.0), 90);
        assert!(!validity.is_over(time_of(validity.not_after)));
        assert!(validity.is_over(time_of(validity.not_after + 1)));
    }

    #[test]
    fn failures_back_off() {
        let waits: Vec<u64> = (1..=7).map(|count| retry_after(count).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 32, 32]);
    }

    #[tokio::test]
    async fn expired_or_unreadable_certificate_is_due_at_once() {
        until_due("no certificate").await;
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        let pem = params.self_signed(&key).unwrap().pem();
        until_due(&pem).await;
        let validity = Validity::of_certificate(&pem).unwrap();
        assert!(validity.is_over(SystemTime::now()));
    }
}
