//! The message of `plimsoll up` when its node is Ready: kubeconfig and commands to try.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{Api, Client};
use plimsoll_client::watching::wait_for;
use plimsoll_runtime::image::builtin::NAME;

use crate::logging;
use crate::node::DEFAULT_DATA_DIR;

/// Prints the message when pods can be created and run.
pub(crate) async fn print_when_ready(client: Client, node: String, kubeconfig: PathBuf) {
    wait_for(Api::all(client.clone()), &node, is_ready).await;
    // The API server rejects pods until their namespace has its service account.
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
    wait_for(accounts, "default", |account| account.is_some()).await;
    logging::announce(&lines(&node, &kubeconfig));
}

/// Whether the node is Ready.
pub(crate) fn is_ready(node: Option<&Node>) -> bool {
    let status = node.and_then(|node| node.status.as_ref());
    let mut conditions = status
        .into_iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn lines(node: &str, kubeconfig: &Path) -> Vec<String> {
    let merge = match kubeconfig.parent() {
        Some(directory) if directory != Path::new(DEFAULT_DATA_DIR) => {
            format!(
                "plimsoll kubeconfig --merge --data-dir {}",
                directory.display()
            )
        }
        _ => "plimsoll kubeconfig --merge".to_owned(),
    };
    let image = NAME.trim_end_matches(":latest");
    vec![
        format!("Node {node} is Ready. In another terminal:"),
        String::new(),
        format!("  export KUBECONFIG={}", kubeconfig.display()),
        format!("  kubectl run hello --image={image} -- sh -c 'echo hello; sleep infinity'"),
        "  plimsoll loadline".to_owned(),
        String::new(),
        format!("To make this the current cluster of kubectl: {merge}"),
    ]
}
