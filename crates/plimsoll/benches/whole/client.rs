//! Clients of the API server.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

const PATIENCE: Duration = Duration::from_secs(30);

/// A client with the credentials in a file that is about to be written.
pub(crate) async fn connect(kubeconfig: &Path) -> Result<Client> {
    let config = configuration(kubeconfig).await?;
    Client::try_from(config).context("cannot speak to the server")
}

/// Address and credentials, from a file that is about to be written.
pub(crate) async fn configuration(kubeconfig: &Path) -> Result<Config> {
    let deadline = Instant::now() + PATIENCE;
    while !kubeconfig.exists() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let file = Kubeconfig::read_from(kubeconfig).context("cannot read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.context("cannot use the kubeconfig")
}
