//! Parsing PKCS#10 signing requests.
//!
//! Matches v1.36 pkg/apis/certificates/helpers.go `ParseCSR`.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_SIG_ED25519};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

/// A request for a certificate, parsed but not verified: see [`SigningRequest::check_signature`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SigningRequest {
    /// The subject's common name, the last if it has several.
    pub common_name: String,
    /// The subject's organisations, in order.
    pub organizations: Vec<String>,
    /// The DNS names it should be good for.
    pub dns_names: Vec<String>,
    /// The addresses it should be good for.
    pub ip_addresses: Vec<IpAddr>,
    /// The mail addresses it should be good for.
    pub email_addresses: Vec<String>,
    /// The URIs it should be good for.
    pub uris: Vec<String>,
    pub(super) subject_der: Vec<u8>,
    pub(super) public_key_der: Vec<u8>,
    der: Vec<u8>,
}

/// A text is not a signing request, in the words of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningRequestError {
    /// Another type of PEM block, or none.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotPem,
    /// The right type of PEM block around something else.
    #[error("asn1: structure error: not a certificate request")]
    Malformed,
    /// It is not signed with the key that it is for.
    #[error("{0}")]
    Signature(&'static str),
}

impl SigningRequest {
    /// Reads `spec.request` of an object: base64 of PEM.
    pub fn from_api(text: &str) -> Result<SigningRequest, SigningRequestError> {
        let pem = STANDARD.decode(text);
        let pem = pem.map_err(|_| SigningRequestError::NotPem)?;
        SigningRequest::from_pem(&pem)
    }

    /// Reads a request in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<SigningRequest, SigningRequestError> {
        let (_, pem) = parse_x509_pem(pem).map_err(|_| SigningRequestError::NotPem)?;
        if pem.label != "CERTIFICATE REQUEST" {
            return Err(SigningRequestError::NotPem);
        }
        let (rest, parsed) = X509CertificationRequest::from_der(&pem.contents)
            .map_err(|_| SigningRequestError::Malformed)?;
        if !rest.is_empty() {
            return Err(SigningRequestError::Malformed);
        }
        let info = &parsed.certification_request_info;
        let text = |text: Result<&str, _>| {
            let text =
                text.map_err(|_: x509_parser::error::X509Error| SigningRequestError::Malformed);
            text.map(str::to_owned)
        };
        let common_name = info.subject.iter_common_name().last();
        let common_name = common_name.map(|name| text(name.as_str())).transpose()?;
        let organizations = info.subject.iter_organization();
        let mut request = SigningRequest {
            common_name: common_name.unwrap_or_default(),
            organizations: organizations
                .map(|name| text(name.as_str()))
                .collect::<Result<_, _>>()?,
            subject_der: info.subject.as_raw().to_vec(),
            public_key_der: info.subject_pki.raw.to_vec(),
            ..SigningRequest::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension {
                for name in &names.general_names {
                    request.add_name(name)?;
                }
            }
        }
        request.der = pem.contents;
        Ok(request)
    }

    /// Verifies that the requester has the private key.
    pub fn check_signature(&self) -> Result<(), SigningRequestError> {
        let (_, parsed) = X509CertificationRequest::from_der(&self.der)
            .map_err(|_| SigningRequestError::Malformed)?;
        let key = &parsed
            .certification_request_info
            .subject_pki
            .algorithm
            .algorithm;
        let failure = if *key == OID_KEY_TYPE_EC_PUBLIC_KEY {
            "x509: ECDSA verification failure"
        } else if *key == OID_SIG_ED25519 {
            "x509: Ed25519 verification failure"
        } else {
            "crypto/rsa: verification error"
        };
        let checked = parsed.verify_signature();
        checked.map_err(|_| SigningRequestError::Signature(failure))
    }

    /// Other types of names are skipped, as in Go.
    fn add_name(&mut self, name: &GeneralName<'_>) -> Result<(), SigningRequestError> {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.email_addresses.push((*name).to_owned()),
            GeneralName::URI(name) => self.uris.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                self.ip_addresses
                    .push(address.map_err(|_| SigningRequestError::Malformed)?);
            }
            _ => {}
        }
        Ok(())
    }
}
