//! The serving certificate of the node: requested, and rotated before it expires.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use plimsoll_core::error_chain::error_chain;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::identity::renewal::{retry_after, until_due};
use crate::identity::request::KeyedCertificate;
use crate::identity::request_serving_certificate;
use crate::server::tls::ServerCertificate;

/// Shows each certificate that is given.
pub(super) async fn show_given_certificates(
    mut given: watch::Receiver<KeyedCertificate>,
    certificate: Arc<ServerCertificate>,
    stop: CancellationToken,
) {
    loop {
        let changed = tokio::select! {
            changed = given.changed() => changed,
            () = stop.cancelled() => return,
        };
        if changed.is_err() {
            return;
        }
        let next = given.borrow_and_update().clone();
        let (chain_pem, key) = (&next.certificate_pem, &next.key_pem);
        if let Err(error) = certificate.replace(chain_pem.as_bytes(), key.as_bytes()) {
            tracing::warn!(
                error = error_chain(&error),
                "failed to replace serving certificate"
            );
        }
    }
}

/// Asks for a certificate that others trust until there is one, and for the next one in time.
pub(super) async fn keep_serving_certificate(
    client: Client,
    node: String,
    names: Vec<String>,
    certificate: Arc<ServerCertificate>,
    mut registered: watch::Receiver<Option<Arc<Node>>>,
    stop: CancellationToken,
) {
    let keep = async {
        // The approver looks for the names in the Node object.
        let _ = registered.wait_for(Option::is_some).await;
        let mut failures = 0;
        loop {
            let problem = match request_serving_certificate(&client, &node, &names).await {
                Ok(signed) => {
                    let (chain_pem, key) = (&signed.certificate_pem, &signed.key_pem);
                    match certificate.replace(chain_pem.as_bytes(), key.as_bytes()) {
                        Ok(()) => {
                            failures = 0;
                            until_due(chain_pem).await;
                            continue;
                        }
                        Err(error) => error_chain(&error),
                    }
                }
                Err(error) => error_chain(&error),
            };
            failures += 1;
            tracing::warn!(%node, problem, "failed to obtain serving certificate; retrying");
            tokio::time::sleep(retry_after(failures)).await;
        }
    };
    tokio::select! {
        () = keep => {}
        () = stop.cancelled() => {}
    }
}
