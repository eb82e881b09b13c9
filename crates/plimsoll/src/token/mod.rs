//! `plimsoll token`: bootstrap tokens of machines that join as nodes.
//!
//! Output and texts are kubeadm's: v1.36 cmd/kubeadm/app/cmd/token.go.

mod create;
mod delete;
mod list;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::cluster;

/// The namespace of tokens.
const NAMESPACE: &str = "kube-system";

/// The name prefix of tokens' Secrets; the token's id follows.
const NAME_PREFIX: &str = "bootstrap-token-";

/// The type of tokens' Secrets.
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";

/// Sub-commands of `plimsoll token`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a token and print the command to join another machine.
    Create(create::Arguments),
    /// Delete tokens.
    Delete(delete::Arguments),
    /// List tokens, including expired ones.
    List(list::Arguments),
}

/// Runs a sub-command.
pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Create(arguments) => cluster::ask(&arguments.cluster, create::create(arguments)),
        Command::Delete(arguments) => {
            let ids = delete::ids(&arguments.tokens)?;
            cluster::ask(&arguments.cluster, delete::delete(arguments, &ids))
        }
        Command::List(arguments) => cluster::ask(&arguments.cluster, list::list(arguments)),
    }
}

fn secrets(client: Client) -> Api<Secret> {
    Api::namespaced(client, NAMESPACE)
}
