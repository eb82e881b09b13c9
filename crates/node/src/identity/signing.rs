//! Asking the cluster for a signature.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use super::request::{KeyedCertificate, RequestError, SigningRequest, serving_request};

/// How long a node waits for its certificate.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A certificate could not be obtained.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The request cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The API server does not take it, or cannot be asked.
    #[error("cannot request a certificate")]
    Api(#[from] kube::Error),
    /// The request was denied.
    #[error("certificate signing request {name} was denied: {message}")]
    Refused {
        /// The request.
        name: String,
        /// The reason given.
        message: String,
    },
    /// The request was neither approved nor denied in time.
    #[error("certificate signing request {name} was not approved within {}s; approve it with `kubectl certificate approve {name}`", PATIENCE.as_secs())]
    Ignored {
        /// The request.
        name: String,
    },
}

/// The signer of certificates that nodes show to the API server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of certificates that nodes show to others.
const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// Has a client's request signed.
pub(super) async fn sign_client(
    client: &Client,
    request: &SigningRequest,
) -> Result<KeyedCertificate, SigningError> {
    sign(
        client,
        request,
        CLIENT_SIGNER,
        &["digital signature", "client auth"],
    )
    .await
}

/// Requests, as the node itself, the certificate that its kubelet API serves with.
pub async fn request_serving_certificate(
    client: &Client,
    node: &str,
    names: &[String],
) -> Result<KeyedCertificate, SigningError> {
    let request = serving_request(node, names)?;
    sign(
        client,
        &request,
        SERVING_SIGNER,
        &["digital signature", "server auth"],
    )
    .await
}

async fn sign(
    client: &Client,
    request: &SigningRequest,
    signer: &str,
    usages: &[&str],
) -> Result<KeyedCertificate, SigningError> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let object = CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some("csr-".to_owned()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.request_pem.clone().into_bytes()),
            signer_name: signer.to_owned(),
            usages: Some(usages.iter().map(ToString::to_string).collect()),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    };
    let created = requests.create(&PostParams::default(), &object).await?;
    let name = created.metadata.name.unwrap_or_default();
    let waiting = tokio::time::timeout(PATIENCE, wait(&requests, &name)).await;
    let certificate = waiting.unwrap_or_else(|_| Err(SigningError::Ignored { name }))?;
    Ok(KeyedCertificate {
        certificate_pem: certificate,
        key_pem: request.key_pem.clone(),
    })
}

async fn wait(
    requests: &Api<CertificateSigningRequest>,
    name: &str,
) -> Result<String, SigningError> {
    loop {
        let status = requests.get(name).await?.status.unwrap_or_default();
        if let Some(certificate) = status.certificate {
            return Ok(String::from_utf8_lossy(&certificate.0).into_owned());
        }
        let conditions = status.conditions.unwrap_or_default();
        if let Some(no) = conditions
            .iter()
            .find(|c| c.type_ == "Denied" || c.type_ == "Failed")
        {
            return Err(SigningError::Refused {
                name: name.to_owned(),
                message: no.message.clone().unwrap_or_else(|| no.type_.clone()),
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
