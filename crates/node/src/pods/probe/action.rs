//! One question to one container.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe};
use plimsoll_runtime::{Error, Runtime};
use tokio::net::TcpStream;

use super::grpc;
use super::tracker::Numbers;
use crate::pods::fetch::{self, FetchError, Purpose, dial_error, port_of};
use crate::pods::plan::go_duration;
use crate::pods::spec::env::expansion;

/// So often a question that could not be asked is tried.
const TRIES: usize = 3;
/// So much of a command's output is kept.
const OUTPUT_BYTES: usize = 10 * 1024;

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All is well.
    Success(String),
    /// All is well, with a reservation.
    Warning(String),
    /// Not all is well.
    Failure(String),
    /// The question could not be asked.
    Error(String),
}

/// A container to ask.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The container.
    pub(super) container: Arc<Container>,
    /// Its runtime id.
    pub(super) id: String,
    /// The pod's address.
    pub(super) pod_ip: String,
}

impl Asked {
    /// Asks; what could not be asked is tried again.
    pub(super) async fn ask(&self, probe: &Probe, runtime: &dyn Runtime) -> Found {
        let mut found = Found::Error(String::new());
        for _ in 0..TRIES {
            found = self.ask_once(probe, runtime).await;
            if !matches!(found, Found::Error(_)) {
                break;
            }
        }
        found
    }

    async fn ask_once(&self, probe: &Probe, runtime: &dyn Runtime) -> Found {
        let timeout = Numbers::of(probe).timeout;
        if let Some(exec) = &probe.exec {
            return self.exec(exec, timeout, runtime).await;
        }
        if let Some(action) = &probe.http_get {
            return self.http_get(action, timeout).await;
        }
        if let Some(socket) = &probe.tcp_socket {
            let host = socket.host.as_deref().filter(|host| !host.is_empty());
            let host = host.unwrap_or(&self.pod_ip);
            return match port_of(&socket.port, &self.container) {
                Ok(port) => connect(host, port, timeout).await,
                Err(error) => Found::Error(error),
            };
        }
        if let Some(action) = &probe.grpc {
            let Ok(port) = u16::try_from(action.port) else {
                return Found::Error(format!("invalid port number: {}", action.port));
            };
            let service = action.service.as_deref().unwrap_or_default();
            return grpc::ask(&self.pod_ip, port, service, timeout).await;
        }
        Found::Error(format!("missing probe handler for {}", self.container.name))
    }

    async fn exec(&self, exec: &ExecAction, timeout: Duration, runtime: &dyn Runtime) -> Found {
        let command: Vec<String> = exec
            .command
            .iter()
            .flatten()
            .map(|word| expand(word, &self.container))
            .collect();
        let timed_out = || {
            let command = command.join(" ");
            let after = go_duration(timeout);
            Found::Failure(format!(
                "command timed out: {command:?} timed out after {after}"
            ))
        };
        let answer = runtime.exec_sync(&self.id, &command, timeout);
        // Runtimes keep the time; one that does not must not block the probe forever.
        let patience = timeout + Duration::from_secs(10);
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => {
                let mut output = answer.stdout;
                output.extend_from_slice(&answer.stderr);
                output.truncate(OUTPUT_BYTES);
                let output = String::from_utf8_lossy(&output).into_owned();
                match answer.exit_code {
                    0 => Found::Success(output),
                    _ => Found::Failure(output),
                }
            }
            Ok(Err(Error::TimedOut { .. })) | Err(_) => timed_out(),
            Ok(Err(error)) => Found::Error(error.chain()),
        }
    }

    async fn http_get(&self, action: &HTTPGetAction, timeout: Duration) -> Found {
        let asked = fetch::get(action, &self.container, &self.pod_ip, Purpose::Probe);
        match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(answer)) => match answer.code {
                200..=299 => Found::Success(answer.body),
                300..=399 => Found::Warning(format!(
                    "Probe terminated redirects, Response body: {}",
                    answer.body
                )),
                code => Found::Failure(format!("HTTP probe failed with statuscode: {code}")),
            },
            Ok(Err(FetchError::Target(problem))) => Found::Error(problem),
            Ok(Err(error)) => Found::Failure(error.to_string()),
            Err(_) => match fetch::Target::of(action, &self.container, &self.pod_ip) {
                Ok(target) => Found::Failure(format!(
                    "Get {:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                    target.to_string()
                )),
                Err(problem) => Found::Error(problem),
            },
        }
    }
}

async fn connect(host: &str, port: u16, timeout: Duration) -> Found {
    let address = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    match tokio::time::timeout(timeout, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => Found::Success(String::new()),
        Ok(Err(error)) => Found::Failure(dial_error(&address, &error)),
        Err(_) => Found::Failure(format!("dial tcp {address}: i/o timeout")),
    }
}

/// Expands variables of the container's own environment. Values from elsewhere are not
/// known here, as upstream.
fn expand(word: &str, container: &Container) -> String {
    let value_of = |name: &str| {
        let mut variables = container.env.iter().flatten().rev();
        match variables.find(|variable| variable.name == name) {
            Some(variable) => variable.value.clone().unwrap_or_default().into_bytes(),
            None => expansion::reference(name),
        }
    };
    String::from_utf8_lossy(&expansion::expand(word, value_of)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_know_the_plain_values_of_their_container() {
        let container: Container = serde_json::from_value(json!({
            "name": "a",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {}}],
        }))
        .unwrap();
        for (word, expected) in [
            ("x$(A)y", "x1y"),
            ("$$(A)", "$(A)"),
            ("$(B)", ""),
            ("$(C)$", "$(C)$"),
            ("$(A", "$(A"),
        ] {
            assert_eq!(expand(word, &container), expected);
        }
    }

    #[tokio::test]
    async fn open_port_is_healthy() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let second = Duration::from_secs(1);
        assert_eq!(
            connect("127.0.0.1", port, second).await,
            Found::Success(String::new())
        );
        drop(listener);
        assert_eq!(
            connect("127.0.0.1", port, second).await,
            Found::Failure(format!(
                "dial tcp 127.0.0.1:{port}: connect: connection refused"
            ))
        );
    }
}
