//! The cluster of a command, and errors when talking to it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::data_dir::DEFAULT_DATA_DIR;
use crate::exit::Exit;
use crate::failure::{self, Advise, causes, kube_error};
use crate::help::CLUSTER;

/// The path of the service account token in pods.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Arguments of commands that talk to a cluster.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Path to the kubeconfig file [env: KUBECONFIG].
    ///
    /// Without the flag and the variable: `~/.kube/config`, the service account of the pod that the
    /// command runs in, `/var/lib/plimsoll/admin.kubeconfig`.
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig file [default: the current context].
    #[arg(long, value_name = "NAME", help_heading = CLUSTER)]
    context: Option<String>,
}

/// The source of the API client's configuration.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    /// The files of `KUBECONFIG`.
    Variable,
    Pod,
}

/// The sources that exist.
#[derive(Debug)]
struct Environment {
    has_variable: bool,
    home: Option<PathBuf>,
    is_pod: bool,
    admin: PathBuf,
}

impl Environment {
    fn of_this_process() -> Environment {
        let variable = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Environment {
            has_variable: std::env::split_paths(&variable).any(|path| !path.as_os_str().is_empty()),
            home: home.map(|home| home.join(".kube/config")),
            is_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
                && Path::new(POD_TOKEN).exists(),
            admin: Path::new(DEFAULT_DATA_DIR).join("admin.kubeconfig"),
        }
    }

    /// The first existing source in kubectl's order; the cluster of `plimsoll up` comes last.
    fn choose(&self) -> Result<Source> {
        if self.has_variable {
            return Ok(Source::Variable);
        }
        if let Some(home) = self.home.as_ref().filter(|home| home.exists()) {
            return Ok(Source::File(home.clone()));
        }
        if self.is_pod {
            return Ok(Source::Pod);
        }
        match std::fs::File::open(&self.admin) {
            Ok(_) => Ok(Source::File(self.admin.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.nothing_found()),
            Err(error) => Err(unreadable(&self.admin, error)),
        }
    }

    fn nothing_found(&self) -> Error {
        let home = match &self.home {
            Some(home) => format!("{} does not exist", home.display()),
            None => "there is no home directory".to_owned(),
        };
        let tried = [
            "KUBECONFIG is not set".to_owned(),
            home,
            "not running in a pod".to_owned(),
            format!("{} does not exist", self.admin.display()),
        ];
        anyhow!(tried.join("\n"))
            .context("no kubeconfig found")
            .hint(
                "start a cluster with \"plimsoll up\", or name a kubeconfig with --kubeconfig FILE",
            )
    }
}

impl Cluster {
    /// A client of the cluster.
    pub(crate) async fn client(&self) -> Result<kube::Client> {
        let config = self.config().await?;
        kube::Client::try_from(config).context("cannot create an API client")
    }

    /// The address of the cluster and the user's credentials.
    pub(crate) async fn config(&self) -> Result<kube::Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        match self.source()? {
            Source::File(path) => {
                if let Err(error) = std::fs::File::open(&path) {
                    return Err(unreadable(&path, error));
                }
                let file = Kubeconfig::read_from(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let config = kube::Config::from_custom_kubeconfig(file, &options).await;
                config.with_context(|| format!("cannot use {}", path.display()))
            }
            Source::Variable => {
                let config = kube::Config::from_kubeconfig(&options).await;
                config.context("cannot use the kubeconfig that KUBECONFIG names")
            }
            Source::Pod => {
                kube::Config::incluster().context("cannot use the service account of this pod")
            }
        }
    }

    fn source(&self) -> Result<Source> {
        match &self.kubeconfig {
            Some(path) => Ok(Source::File(path.clone())),
            None => Environment::of_this_process().choose(),
        }
    }

    /// The address of the server and the source that names it.
    async fn tried(&self) -> Option<String> {
        let url = self.config().await.ok()?.cluster_url;
        let source = match self.source().ok()? {
            Source::File(path) => path.display().to_string(),
            Source::Variable => "the kubeconfig that KUBECONFIG names".to_owned(),
            Source::Pod => "the service account of this pod".to_owned(),
        };
        let url = url.to_string();
        Some(format!("{} (from {source})", url.trim_end_matches('/')))
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let kind = error.kind();
    let error = Error::from(error).context(format!("cannot read {}", path.display()));
    match kind {
        ErrorKind::PermissionDenied => error.hint(format!(
            "it belongs to the user that started the cluster: run this as root (sudo), or give \
             yourself a copy: sudo install -D -m 600 -o \"$USER\" {} ~/.kube/config",
            path.display()
        )),
        _ => error,
    }
}

/// Runs a command that talks to a cluster. Prints errors of the API server as kubectl does.
pub(crate) fn ask(
    cluster: &Cluster,
    command: impl Future<Output = Result<()>>,
) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let Err(error) = runtime.block_on(command) else {
        return Ok(Exit::Success.into());
    };
    let Some(refusal) = refusal(&error) else {
        return Err(error);
    };
    let tried = match refusal.is_unreachable {
        true => runtime.block_on(cluster.tried()),
        false => None,
    };
    let hint = tried.map(|tried| {
        format!("no answer from {tried}; start the cluster, or name another with --kubeconfig")
    });
    failure::print_refusal(&refusal.text, &hint.unwrap_or_default());
    Ok(failure::exit_of(&error).into())
}

/// An error of the cluster, in kubectl's words.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    text: String,
    /// Whether the server did not answer.
    is_unreachable: bool,
}

/// The API server's error, or that it does not answer, in kubectl's words.
fn refusal(error: &Error) -> Option<Refusal> {
    let causes = causes(error);
    let status = match causes.iter().find_map(|cause| kube_error(*cause))? {
        kube::Error::Api(status) => status,
        kube::Error::Service(_) | kube::Error::HyperError(_) => {
            let cause = error.root_cause();
            return Some(Refusal {
                text: format!("Unable to connect to the server: {cause}"),
                is_unreachable: true,
            });
        }
        _ => return None,
    };
    let reason = match status.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    Some(Refusal {
        text: format!("Error from server{reason}: {}", status.message),
        is_unreachable: false,
    })
}

/// The error of a request in few words, for notes beside other results.
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
    fn errors_of_the_server_read_as_in_kubectl() {
        let status = kube::core::Status::failure("pods \"x\" not found", "NotFound");
        let error = kube::Error::Api(status.boxed());
        let error = Error::from(error).context("while asking");
        let error = refusal(&error).map(|refusal| (refusal.text, refusal.is_unreachable));
        let expected = "Error from server (NotFound): pods \"x\" not found";
        assert_eq!(error, Some((expected.to_owned(), false)));
        let silence = std::io::Error::from(ErrorKind::ConnectionRefused);
        let error = Error::from(kube::Error::Service(silence.into()));
        let error = refusal(&error).map(|refusal| (refusal.text, refusal.is_unreachable));
        let expected = "Unable to connect to the server: connection refused";
        assert_eq!(error, Some((expected.to_owned(), true)));
        assert_eq!(refusal(&anyhow!("something else")), None);
    }

    #[test]
    fn tries_kubeconfigs_in_kubectl_order_then_the_cluster_of_up() {
        let folder = std::env::temp_dir().join(format!("plimsoll-cluster-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (home, admin) = (folder.join("config"), folder.join("admin.kubeconfig"));
        for file in [&home, &admin] {
            std::fs::write(file, "").unwrap();
        }
        let mut around = Environment {
            has_variable: true,
            home: Some(home.clone()),
            is_pod: true,
            admin: admin.clone(),
        };
        assert_eq!(around.choose().unwrap(), Source::Variable);
        around.has_variable = false;
        assert_eq!(around.choose().unwrap(), Source::File(home));
        around.home = Some(folder.join("none"));
        assert_eq!(around.choose().unwrap(), Source::Pod);
        around.is_pod = false;
        assert_eq!(around.choose().unwrap(), Source::File(admin.clone()));
        std::fs::remove_file(&admin).unwrap();
        let nothing = format!("{:#}", around.choose().unwrap_err());
        for tried in ["KUBECONFIG", "none", "admin.kubeconfig"] {
            assert!(nothing.contains(tried), "{nothing}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
