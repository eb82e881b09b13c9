//! The client certificate with which this server connects to nodes, renewed before it expires.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use plimsoll_client::supervision::Weight;

use crate::auth::authority::{Authority, Term};
use crate::auth::identity::MASTERS;
use crate::node_proxy::NodeConnector;
use crate::server::request::clock::is_over;
use crate::server::request::respond;
use crate::server::{OpenError, Server};

/// The user of this server in requests to nodes.
const NODE_CLIENT_USER: &str = "kube-apiserver-kubelet-client";

/// How long to wait after a renewal failed.
const RETRY: Duration = Duration::from_secs(60);

/// The current connector.
#[derive(Debug)]
pub(in crate::server) struct NodeClient(RwLock<(NodeConnector, Term)>);

impl NodeClient {
    pub(in crate::server) fn new(authority: &Authority) -> Result<NodeClient, OpenError> {
        Ok(NodeClient(RwLock::new(build_connector(authority)?)))
    }

    /// The connector for requests to nodes from now on.
    pub(in crate::server) fn connector(&self) -> NodeConnector {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.0.clone()
    }

    fn term(&self) -> Term {
        self.0.read().unwrap_or_else(PoisonError::into_inner).1
    }

    fn renew(&self, authority: &Authority) -> Result<(), OpenError> {
        let next = build_connector(authority)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        tracing::info!("renewed kubelet client certificate");
        Ok(())
    }
}

fn build_connector(authority: &Authority) -> Result<(NodeConnector, Term), OpenError> {
    let own = authority.node_client(NODE_CLIENT_USER, &[MASTERS], respond::now())?;
    let connector = NodeConnector::new(&own, &authority.kubelet_serving_ca_pem())?;
    Ok((connector.allowing_local_addresses(), authority.term(&own)))
}

/// Renews the certificate before it expires, until the server is dropped.
pub(in crate::server) fn follow(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    let stop = server.supervisor.stopping().clone();
    server
        .supervisor
        .keep("node-client-certificate", Weight::Vital, move || {
            let term = weak.upgrade().map(|server| server.node_client.term());
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
        let renewed = server.node_client.renew(&server.authority);
        term = server.node_client.term();
        drop(server);
        if let Err(error) = renewed {
            tracing::warn!(%error, "failed to renew kubelet client certificate");
            tokio::time::sleep(RETRY).await;
        }
    }
}
