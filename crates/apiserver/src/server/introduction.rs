//! How this server asks nodes: with a certificate of its own, which is exchanged before it ends.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use plimsoll_client::supervision::Weight;

use super::clock::is_over;
use super::{OpenError, Server, respond};
use crate::auth::authority::{Authority, Term};
use crate::auth::identity::MASTERS;
use crate::node_proxy::NodeConnector;

/// The user that nodes see when the server asks them.
const NODE_CLIENT: &str = "kube-apiserver-kubelet-client";

/// How soon a renewal that failed is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// The connector of the moment.
#[derive(Debug)]
pub(super) struct Introduction(RwLock<(NodeConnector, Term)>);

impl Introduction {
    pub(super) fn new(authority: &Authority) -> Result<Introduction, OpenError> {
        Ok(Introduction(RwLock::new(introduced(authority)?)))
    }

    /// What nodes are asked with from now on.
    pub(super) fn connector(&self) -> NodeConnector {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.0.clone()
    }

    fn term(&self) -> Term {
        self.0.read().unwrap_or_else(PoisonError::into_inner).1
    }

    fn renew(&self, authority: &Authority) -> Result<(), OpenError> {
        let next = introduced(authority)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        tracing::info!("the certificate that nodes are asked with is renewed");
        Ok(())
    }
}

fn introduced(authority: &Authority) -> Result<(NodeConnector, Term), OpenError> {
    let own = authority.introduction(NODE_CLIENT, &[MASTERS], respond::now())?;
    let connector = NodeConnector::new(&own, &authority.kubelet_serving_ca_pem())?;
    Ok((connector.allowing_local_addresses(), authority.term(&own)))
}

/// Exchanges the certificate before it ends, until the server is gone.
pub(super) fn follow(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    let stop = server.supervisor.stopping().clone();
    server
        .supervisor
        .keep("node-client-certificate", Weight::Vital, move || {
            let term = weak.upgrade().map(|server| server.introduction.term());
            let keeping = term.map(|term| keep(weak.clone(), term));
            let stop = stop.clone();
            async move {
                if let Some(keeping) = keeping {
                    stop.run_until_cancelled(keeping).await;
                }
                Ok(())
            }
        });
}

async fn keep(server: Weak<Server>, mut term: Term) {
    loop {
        is_over(term).await;
        let Some(server) = server.upgrade() else {
            return;
        };
        let renewed = server.introduction.renew(&server.authority);
        term = server.introduction.term();
        drop(server);
        if let Err(error) = renewed {
            tracing::warn!(%error, "the certificate that nodes are asked with is not renewed");
            tokio::time::sleep(RETRY).await;
        }
    }
}
