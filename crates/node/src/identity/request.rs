//! Certificates that a node requests, or makes itself.

use std::net::IpAddr;

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, SanType,
};

/// The user that a node acts as.
pub fn user_of_node(node: &str) -> String {
    format!("system:node:{node}")
}

/// Keys or requests cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A name is invalid.
    #[error("invalid name {name:?} for a certificate")]
    Name {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// The rest.
    #[error("cannot create a key and a certificate signing request")]
    Make(#[from] rcgen::Error),
}

/// A key and the certificate signing request for it.
pub struct SigningRequest {
    /// The private key, PEM.
    pub key_pem: String,
    /// The signing request, PEM.
    pub request_pem: String,
}

/// The key stays out of logs.
impl std::fmt::Debug for SigningRequest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SigningRequest")
            .field("request_pem", &self.request_pem)
            .finish_non_exhaustive()
    }
}

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub struct KeyedCertificate {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

impl std::fmt::Debug for KeyedCertificate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("KeyedCertificate")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// What a node shows to the API server.
pub fn client_request(node: &str) -> Result<SigningRequest, RequestError> {
    let key = KeyPair::generate()?;
    let request = params(node).serialize_request(&key)?;
    Ok(SigningRequest {
        key_pem: key.serialize_pem(),
        request_pem: request.pem()?,
    })
}

/// The request for the certificate that a node's kubelet API serves with, under these names.
pub fn serving_request(node: &str, names: &[String]) -> Result<SigningRequest, RequestError> {
    let key = KeyPair::generate()?;
    let mut params = params(node);
    params.subject_alt_names = alternative_names(names)?;
    let request = params.serialize_request(&key)?;
    Ok(SigningRequest {
        key_pem: key.serialize_pem(),
        request_pem: request.pem()?,
    })
}

/// The certificate that the kubelet API serves with until a signed one is issued, as a kubelet does.
pub fn self_signed(node: &str, names: &[String]) -> Result<KeyedCertificate, RequestError> {
    let key = KeyPair::generate()?;
    let mut params = params(node);
    params.subject_alt_names = alternative_names(names)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(KeyedCertificate {
        certificate_pem: params.self_signed(&key)?.pem(),
        key_pem: key.serialize_pem(),
    })
}

fn params(node: &str) -> CertificateParams {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, user_of_node(node));
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    params
}

fn alternative_names(names: &[String]) -> Result<Vec<SanType>, RequestError> {
    let name = |name: &String| match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => match name.as_str().try_into() {
            Ok(host) => Ok(SanType::DnsName(host)),
            Err(source) => Err(RequestError::Name {
                name: name.clone(),
                source,
            }),
        },
    };
    names.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::FromDer;

    use super::*;

    #[test]
    fn certificate_request_has_the_nodes_subject() {
        let request = client_request("n1").unwrap();
        let pem = x509_parser::pem::parse_x509_pem(request.request_pem.as_bytes());
        let (_, pem) = pem.unwrap();
        let parsed =
            x509_parser::certification_request::X509CertificationRequest::from_der(&pem.contents);
        let (_, parsed) = parsed.unwrap();
        let subject = parsed.certification_request_info.subject.to_string();
        assert_eq!(subject, "O=system:nodes, CN=system:node:n1");
    }

    #[test]
    fn invalid_names_are_reported() {
        let names = ["n1".to_owned(), "10.0.0.1".to_owned()];
        assert!(serving_request("n1", &names).is_ok());
        assert!(self_signed("n1", &names).is_ok());
        let error = serving_request("n1", &["ü".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("\"ü\""), "{error}");
    }
}
