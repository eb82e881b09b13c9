//! Which cluster a command talks to.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Arguments of commands that talk to a cluster.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// The kubeconfig file; without it `KUBECONFIG`, `~/.kube/config` or the pod's own account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig file.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Cluster {
    /// A client of the cluster.
    pub(crate) async fn client(&self) -> Result<kube::Client> {
        let config = self.config().await?;
        kube::Client::try_from(config).context("cannot talk to the cluster")
    }

    /// Where the cluster is, and who talks to it.
    pub(crate) async fn config(&self) -> Result<kube::Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                kube::Config::from_custom_kubeconfig(file, &options).await
            }
            None if self.context.is_some() => kube::Config::from_kubeconfig(&options).await,
            None => {
                let config = kube::Config::infer().await;
                return config.context("no cluster is configured; give --kubeconfig");
            }
        };
        config.context("the kubeconfig cannot be used")
    }
}
