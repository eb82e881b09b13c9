//! A container runtime behind a socket: containerd, CRI-O, whatever speaks CRI v1.
//!
//! [`Cri`] passes each verb on and checks what comes back as a kubelet does; it decides nothing
//! and keeps nothing. Time limits match v1.36 staging/src/k8s.io/cri-client/pkg/remote_runtime.go.
//! Streams are not carried: the runtime serves them itself and returns the URL.
//!
//! Reading order: `endpoint` (where it listens), `verb` (the requests), `client` (one
//! call), `answer` (what an answer must have), `service` (the trait).

mod answer;
mod client;
mod endpoint;
mod service;
#[cfg(test)]
mod tests;
mod verb;

use std::time::Duration;

use client::Client;

use super::Error;

/// Where a runtime listens and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `unix:///path` or a plain path (`containerRuntimeEndpoint`).
    pub endpoint: String,
    /// The same for images, if they are served elsewhere (`imageServiceEndpoint`).
    pub image_endpoint: Option<String>,
    /// How long a verb may take unless it has a limit of its own (`runtimeRequestTimeout`).
    pub request_timeout: Duration,
}

impl Options {
    /// A runtime at an endpoint, with upstream's time limit.
    pub fn at(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            image_endpoint: None,
            request_timeout: Duration::from_secs(120),
        }
    }
}

/// A runtime behind a socket. The connection is made by the first call, and made again when the
/// runtime comes back.
#[derive(Clone, Debug)]
pub struct Cri {
    runtime: Client,
    images: Client,
    limit: Duration,
}

impl Cri {
    /// Prepares the connection. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// If an endpoint is not that of a Unix socket.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let runtime = Client::new(&options.endpoint)?;
        let images = match &options.image_endpoint {
            Some(endpoint) if *endpoint != options.endpoint => Client::new(endpoint)?,
            _ => runtime.clone(),
        };
        Ok(Self {
            runtime,
            images,
            limit: options.request_timeout,
        })
    }
}
