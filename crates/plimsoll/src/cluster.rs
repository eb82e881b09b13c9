//! Which cluster a command talks to, and what it says if that does not work.

use std::path::PathBuf;
use std::process::ExitCode;

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

/// Runs a command that asks a cluster. What goes wrong is told as kubectl tells it, and ends it with
/// exit code 1.
pub(crate) fn ask(command: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    match runtime.block_on(command) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            tell(&error);
            Ok(ExitCode::FAILURE)
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is where errors reach people")]
fn tell(error: &anyhow::Error) {
    match refusal(error) {
        Some(refusal) => eprintln!("{refusal}"),
        None => crate::report(error),
    }
}

/// What the API server said, or that it says nothing, in kubectl's words.
fn refusal(error: &anyhow::Error) -> Option<String> {
    let mut causes = error.chain();
    let status = match causes.find_map(|cause| cause.downcast_ref::<kube::Error>())? {
        kube::Error::Api(status) => status,
        kube::Error::Service(_) | kube::Error::HyperError(_) => {
            let cause = error.root_cause();
            return Some(format!("Unable to connect to the server: {cause}"));
        }
        _ => return None,
    };
    let reason = match status.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    Some(format!("Error from server{reason}: {}", status.message))
}

/// Why a question was not answered, in few words: for what is told beside an answer to others.
pub(crate) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("status {}", status.code),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_as_kubectl_tells_them() {
        let status = kube::core::Status::failure("pods \"x\" not found", "NotFound");
        let error = kube::Error::Api(status.boxed());
        let error = anyhow::Error::from(error).context("while asking");
        let told = refusal(&error);
        let expected = "Error from server (NotFound): pods \"x\" not found";
        assert_eq!(told.as_deref(), Some(expected));
        let silence = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = anyhow::Error::from(kube::Error::Service(silence.into()));
        let expected = "Unable to connect to the server: connection refused";
        assert_eq!(refusal(&error).as_deref(), Some(expected));
        assert_eq!(refusal(&anyhow::anyhow!("something else")), None);
    }
}
