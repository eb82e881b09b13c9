//! Why an image could not be pulled, sorted by what its user can do about it.

use std::io;

use oci_client::errors::{OciDistributionError, OciErrorCode};

use super::super::digest::Digest;
use super::super::reference::Reference;
use super::super::{file, installation, manifest};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Registries answer with whole pages at times; statuses of pods are no place for these.
const MAX_MESSAGE: usize = 300;

/// Why an image could not be pulled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is wrong, or the image was deleted.
    #[error("image {image} not found in registry {registry}")]
    NotFound {
        /// Its whole name.
        image: String,
        /// The host of the registry.
        registry: String,
    },
    /// Credentials are missing or wrong.
    #[error(
        "image {image}: access denied by registry {registry}, credentials are missing or wrong"
    )]
    Unauthorized {
        /// Its whole name.
        image: String,
        /// The host of the registry.
        registry: String,
        /// The answer.
        #[source]
        source: Source,
    },
    /// The registry limits the rate of requests.
    #[error("image {image}: registry {registry} got too many requests")]
    TooManyRequests {
        /// Its whole name.
        image: String,
        /// The host of the registry.
        registry: String,
        /// The answer.
        #[source]
        source: Source,
    },
    /// The registry is down, or the network is.
    #[error("image {image}: registry {registry} cannot be reached")]
    Unreachable {
        /// Its whole name.
        image: String,
        /// The host of the registry.
        registry: String,
        /// Why.
        #[source]
        source: Source,
    },
    /// Another server may be answering, or this node does not trust the issuer of the certificate.
    #[error("image {image}: registry {registry} cannot be trusted")]
    Untrusted {
        /// Its whole name.
        image: String,
        /// The host of the registry.
        registry: String,
        /// What is wrong with its certificate.
        #[source]
        source: Source,
    },
    /// The registry's answer makes no sense.
    #[error("image {image}: registry {registry} sent an unexpected response")]
    Answer {
        /// Its whole name.
        image: String,
        /// The host of the registry.
        registry: String,
        /// What was wrong with it.
        #[source]
        source: Source,
    },
    /// The registry sent other content than requested.
    #[error("image {image}: the registry sent {found}, expected {asked}")]
    Content {
        /// Its whole name.
        image: String,
        /// The requested name.
        asked: String,
        /// What came.
        found: Digest,
    },
    /// The registry sent more than the manifest's size.
    #[error("image {image}: blob {digest} is longer than its {size} bytes")]
    Size {
        /// Its whole name.
        image: String,
        /// The blob.
        digest: Digest,
        /// By the manifest.
        size: u64,
    },
    /// The manifest is not used.
    #[error("image {image} cannot be used")]
    Manifest {
        /// Its whole name.
        image: String,
        /// Why.
        #[source]
        source: manifest::Error,
    },
    /// It arrived and could not be installed.
    #[error("image {image} cannot be unpacked")]
    Install {
        /// Its whole name.
        image: String,
        /// Why.
        #[source]
        source: installation::Error,
    },
    /// A file of the store.
    #[error(transparent)]
    File(#[from] file::Error),
    /// Credentials that are none.
    #[error("image {image}: cannot decode credentials ({problem})")]
    Credentials {
        /// Its whole name.
        image: String,
        /// What is wrong with them.
        problem: &'static str,
    },
    /// The client of registries does not work here.
    #[error("image {image}: the registry client failed")]
    Client {
        /// Its whole name.
        image: String,
        /// Why.
        #[source]
        source: Source,
    },
}

impl Error {
    /// Whether the registry, not the request, is at fault: trying later may help.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Error::Unreachable { .. })
    }

    pub(super) fn install(name: &Reference, source: installation::Error) -> Error {
        Error::Install {
            image: name.to_string(),
            source,
        }
    }

    /// Of a blob that stopped halfway, or turned out to be another.
    pub(super) fn interrupted(name: &Reference, source: io::Error) -> Error {
        let (image, registry) = (name.to_string(), name.registry.clone());
        let is_other = source
            .get_ref()
            .is_some_and(|inner| inner.is::<oci_client::errors::DigestError>());
        let source = Box::new(source);
        if is_other {
            return Error::Answer {
                image,
                registry,
                source,
            };
        }
        Error::Unreachable {
            image,
            registry,
            source,
        }
    }

    pub(super) fn from_registry(name: &Reference, error: OciDistributionError) -> Error {
        let (image, registry) = (name.to_string(), name.registry.clone());
        let kind = kind(&error);
        let source = bounded(error);
        match kind {
            Kind::NotFound => Error::NotFound { image, registry },
            Kind::Unauthorized => Error::Unauthorized {
                image,
                registry,
                source,
            },
            Kind::TooManyRequests => Error::TooManyRequests {
                image,
                registry,
                source,
            },
            Kind::Unreachable => Error::Unreachable {
                image,
                registry,
                source,
            },
            Kind::Untrusted => Error::Untrusted {
                image,
                registry,
                source,
            },
            Kind::Answer => Error::Answer {
                image,
                registry,
                source,
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotFound,
    Unauthorized,
    TooManyRequests,
    Unreachable,
    Untrusted,
    Answer,
}

fn kind(error: &OciDistributionError) -> Kind {
    match error {
        OciDistributionError::UnauthorizedError { .. }
        | OciDistributionError::AuthenticationFailure(_) => Kind::Unauthorized,
        OciDistributionError::RequestError(request) if is_about_trust(request) => Kind::Untrusted,
        OciDistributionError::RequestError(_) | OciDistributionError::IoError(_) => {
            Kind::Unreachable
        }
        OciDistributionError::ImageManifestNotFoundError(_) => Kind::NotFound,
        OciDistributionError::ServerError { code, .. } => match code {
            401 | 403 => Kind::Unauthorized,
            404 => Kind::NotFound,
            429 => Kind::TooManyRequests,
            500.. => Kind::Unreachable,
            _ => Kind::Answer,
        },
        OciDistributionError::RegistryError { envelope, .. } => {
            let codes = envelope
                .errors
                .iter()
                .map(|error| kind_of_code(&error.code));
            codes.fold(Kind::Answer, |kind, next| match kind {
                Kind::Answer => next,
                kind => kind,
            })
        }
        _ => Kind::Answer,
    }
}

/// Whether a refused certificate is at the bottom of it.
fn is_about_trust(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return true;
        }
        // What an io::Error wraps is not among its sources.
        let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
        if wrapped.is_some_and(|wrapped| is_about_trust(wrapped)) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn kind_of_code(code: &OciErrorCode) -> Kind {
    match code {
        OciErrorCode::Unauthorized | OciErrorCode::Denied => Kind::Unauthorized,
        OciErrorCode::BlobUnknown
        | OciErrorCode::ManifestBlobUnknown
        | OciErrorCode::ManifestUnknown
        | OciErrorCode::NameUnknown
        | OciErrorCode::NotFound => Kind::NotFound,
        OciErrorCode::Toomanyrequests => Kind::TooManyRequests,
        _ => Kind::Answer,
    }
}

fn bounded(error: OciDistributionError) -> Source {
    match error {
        OciDistributionError::ServerError { code, message, .. } => {
            format!("HTTP status {code}: {}", first_words(&message)).into()
        }
        OciDistributionError::AuthenticationFailure(answer) => first_words(&answer).into(),
        other => Box::new(other),
    }
}

fn first_words(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use oci_client::errors::OciEnvelope;

    use super::*;

    fn check(error: OciDistributionError, expected: &str) {
        let name = "quay.io/a/b:1".parse().unwrap();
        assert_eq!(Error::from_registry(&name, error).to_string(), expected);
    }

    fn server(code: u16) -> OciDistributionError {
        OciDistributionError::ServerError {
            code,
            url: "https://quay.io/v2/".to_owned(),
            message: "<html>\n page".repeat(1000),
        }
    }

    fn registry(code: &str) -> OciDistributionError {
        let text = format!(r#"{{"errors":[{{"code":"{code}","message":"m"}}]}}"#);
        let envelope: OciEnvelope = serde_json::from_str(&text).unwrap();
        OciDistributionError::RegistryError {
            envelope,
            url: "https://quay.io/v2/".to_owned(),
        }
    }

    #[test]
    fn registry_errors_are_classified() {
        let not_found = "image quay.io/a/b:1 not found in registry quay.io";
        let denied = "image quay.io/a/b:1: access denied by registry quay.io, credentials are missing or wrong";
        let too_many = "image quay.io/a/b:1: registry quay.io got too many requests";
        let unreachable = "image quay.io/a/b:1: registry quay.io cannot be reached";
        let odd = "image quay.io/a/b:1: registry quay.io sent an unexpected response";
        check(registry("MANIFEST_UNKNOWN"), not_found);
        check(registry("NAME_UNKNOWN"), not_found);
        check(registry("DENIED"), denied);
        check(registry("TOOMANYREQUESTS"), too_many);
        check(registry("SIZE_INVALID"), odd);
        check(server(404), not_found);
        check(server(403), denied);
        check(server(429), too_many);
        check(server(502), unreachable);
        check(server(418), odd);
    }

    #[test]
    fn rejected_certificate_differs_from_a_broken_connection() {
        let refused = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert!(is_about_trust(&refused));
        let wrapped = io::Error::other(io::Error::other(refused));
        assert!(is_about_trust(&wrapped));
        assert!(!is_about_trust(&io::Error::other(
            rustls::Error::DecryptError
        )));
        assert!(!is_about_trust(&io::Error::from(
            io::ErrorKind::ConnectionRefused
        )));
    }

    #[test]
    fn pages_are_cut_short() {
        let name = "quay.io/a/b:1".parse().unwrap();
        let error = Error::from_registry(&name, server(503));
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.starts_with("HTTP status 503: <html> page<html>"));
        assert!(source.len() < 400);
    }
}
