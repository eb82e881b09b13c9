//! Certificates for servers and users.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::object::syntax::check_dns_subdomain;
use plimsoll_core::object::timestamp::Timestamp;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, KeyPair, PublicKeyData, SanType,
};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::ca::Ca;
use super::file::{read_if_exists, write_private, write_public};
use super::{Authority, AuthorityError, RENEW_AT_FRACTION, new_key, seconds};
use crate::auth::identity::{MASTERS, NODE_USER_PREFIX, NODES};

/// A certificate and its key.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate, as PEM.
    pub certificate_pem: String,
    /// The private key, as PKCS#8 PEM.
    pub key_pem: String,
}

/// From when until when a certificate is used.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    pub(super) start: i64,
    pub(super) due: i64,
    /// When the certificate of the authority begins.
    pub(super) authority: i64,
}

impl Term {
    /// When to renew it, unless the clock is set.
    pub fn due(self) -> Timestamp {
        Timestamp::from_secs(self.due)
    }

    /// Whether another certificate is better. One that has not begun was made by a clock that was
    /// ahead. A clock that is before the authority itself is wrong: what it made would be over
    /// as soon as it is set.
    pub fn is_over(self, now: Timestamp) -> bool {
        let now = seconds(now);
        now > self.due || (self.authority..self.start).contains(&now)
    }
}

/// Why a signing request is rejected.
#[derive(Debug, thiserror::Error)]
pub enum RequestProblem {
    /// It cannot be parsed, or is not signed with the key it is for.
    #[error("the signing request cannot be read, or its signature is wrong")]
    Malformed(#[from] rcgen::Error),
    /// It is for another user than a kubelet.
    #[error("the signing request must be for CN=system:node:<name> and O=system:nodes")]
    NotKubelet,
    /// The authority cannot sign.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// The key stays out of logs.
impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.certificate_pem;
        f.debug_struct("Certificate")
            .field("certificate_pem", shown)
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// From when until when a certificate of this authority is used; one that cannot be read, never.
    pub fn term(&self, certificate: &Certificate) -> Term {
        self.server.term(&certificate.certificate_pem)
    }

    /// The certificate of this server, kept in `server.crt` and `server.key`. `names` are the
    /// host names and addresses that clients use; if they change, a new certificate is issued.
    pub fn server(&self, names: &[String], now: Timestamp) -> Result<Certificate, AuthorityError> {
        let wanted: BTreeSet<String> = names.iter().cloned().collect();
        let is_current = |pem: &str| names_of(pem) == wanted;
        let issue = || new_server(&self.server, "plimsoll-apiserver", names, now);
        self.kept(&self.server, "server", is_current, now, issue)
    }

    /// The certificate of the administrator, kept in `admin.crt` and `admin.key`.
    pub fn admin(&self, now: Timestamp) -> Result<Certificate, AuthorityError> {
        let issue = || self.client("kubernetes-admin", &[MASTERS], now);
        self.kept(&self.clients, "admin", |_| true, now, issue)
    }

    /// A new certificate for a user and its groups. It is not stored.
    pub fn client(
        &self,
        user: &str,
        groups: &[&str],
        now: Timestamp,
    ) -> Result<Certificate, AuthorityError> {
        new_client(&self.clients, user, groups, now)
    }

    /// A new client certificate with which this server connects to nodes. Unlike clients'
    /// certificates, it is signed by the CA that nodes trust since they joined; this server does
    /// not accept it from a client.
    pub fn node_client(
        &self,
        user: &str,
        groups: &[&str],
        now: Timestamp,
    ) -> Result<Certificate, AuthorityError> {
        new_client(&self.server, user, groups, now)
    }

    /// A new certificate for the kubelet of a node.
    pub fn kubelet(&self, node: &str, now: Timestamp) -> Result<Certificate, AuthorityError> {
        self.client(&format!("{NODE_USER_PREFIX}{node}"), &[NODES], now)
    }

    /// A new serving certificate for the kubelet of a node, valid for these names.
    pub fn kubelet_serving(
        &self,
        node: &str,
        names: &[String],
        now: Timestamp,
    ) -> Result<Certificate, AuthorityError> {
        let user = format!("{NODE_USER_PREFIX}{node}");
        new_server(&self.kubelets, &user, names, now)
    }

    /// The certificate (PEM) for a joining kubelet's signing request (PEM). The key stays on the
    /// node. Only the public key and the node's name are taken from the request.
    pub fn sign_kubelet(&self, request: &str, now: Timestamp) -> Result<String, RequestProblem> {
        let request = CertificateSigningRequestParams::from_pem(request)?;
        let subject = &request.params.distinguished_name;
        let part = |sort| match subject.get(&sort) {
            Some(DnValue::Utf8String(text)) => text.as_str(),
            Some(DnValue::PrintableString(text)) => text.as_str(),
            _ => "",
        };
        let user = part(DnType::CommonName);
        let node = user.strip_prefix(NODE_USER_PREFIX).unwrap_or_default();
        if part(DnType::OrganizationName) != NODES || !check_dns_subdomain(node).is_empty() {
            return Err(RequestProblem::NotKubelet);
        }
        let key = &request.public_key;
        Ok(self.clients.sign_client(user, &[NODES], key, now)?)
    }

    /// The certificate in those files if it is valid; otherwise a new one, which is stored there.
    fn kept(
        &self,
        ca: &Ca,
        file: &str,
        is_current: impl Fn(&str) -> bool,
        now: Timestamp,
        issue: impl Fn() -> Result<Certificate, AuthorityError>,
    ) -> Result<Certificate, AuthorityError> {
        let certificate_path = self.directory.join(format!("{file}.crt"));
        let key_path = self.directory.join(format!("{file}.key"));
        let certificate = read_if_exists(&certificate_path)?;
        let key = read_if_exists(&key_path)?;
        if let (Some(certificate_pem), Some(key_pem)) = (certificate, key) {
            let is_good = !ca.term(&certificate_pem).is_over(now)
                && ca.has_signed(&certificate_pem)
                && belongs(&certificate_pem, &key_pem)
                && is_current(&certificate_pem);
            if is_good {
                return Ok(Certificate {
                    certificate_pem,
                    key_pem,
                });
            }
        }
        let issued = issue()?;
        write_private(&key_path, &issued.key_pem)?;
        write_public(&certificate_path, &issued.certificate_pem)?;
        Ok(issued)
    }
}

fn new_client(
    ca: &Ca,
    user: &str,
    groups: &[&str],
    now: Timestamp,
) -> Result<Certificate, AuthorityError> {
    let key = new_key(user)?;
    Ok(Certificate {
        certificate_pem: ca.sign_client(user, groups, &key, now)?,
        key_pem: key.serialize_pem(),
    })
}

fn new_server(
    ca: &Ca,
    subject: &str,
    names: &[String],
    now: Timestamp,
) -> Result<Certificate, AuthorityError> {
    let mut params = CertificateParams::default();
    for name in names {
        let name = match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => {
                let host = name.as_str().try_into();
                SanType::DnsName(host.map_err(|source| failed(name, source))?)
            }
        };
        params.subject_alt_names.push(name);
    }
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, subject);
    params.distinguished_name = name;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = new_key(subject)?;
    let certificate = ca.sign_leaf(params, subject, &key, now)?;
    Ok(Certificate {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
    })
}

pub(super) fn failed(subject: &str, source: rcgen::Error) -> AuthorityError {
    AuthorityError::Sign {
        subject: subject.to_owned(),
        source,
    }
}

/// The text form of a certificate: base64 in lines of 64 characters.
pub(super) fn pem_of(der: &[u8]) -> String {
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        pem.extend(line.iter().map(|&byte| char::from(byte)));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

/// The validity of a certificate, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    pub(super) start: i64,
    pub(super) end: i64,
}

impl Validity {
    /// When the certificate should be renewed.
    pub(super) fn due(self) -> i64 {
        let rest = self.end.saturating_sub(self.start) / RENEW_AT_FRACTION;
        self.end.saturating_sub(rest)
    }

    /// Whether the certificate should be renewed. A clock that is behind is not a reason: a
    /// certificate issued by it would be expired once the clock is set.
    pub(super) fn is_due(self, now: Timestamp) -> bool {
        seconds(now) > self.due()
    }

    /// Whether it is not valid yet.
    pub(super) fn is_ahead_of(self, now: Timestamp) -> bool {
        seconds(now) < self.start
    }
}

/// `None` when the text holds no certificate.
pub(super) fn validity_of(pem: &str) -> Option<Validity> {
    with_certificate(pem, |certificate| {
        let validity = certificate.validity();
        Validity {
            start: validity.not_before.timestamp(),
            end: validity.not_after.timestamp(),
        }
    })
}

/// When a certificate expires, in seconds since 1970; `None` when the text holds none.
pub(in crate::auth) fn end_of(pem: &str) -> Option<i64> {
    validity_of(pem).map(|validity| validity.end)
}

/// When a certificate (DER) expires. One that cannot be parsed has expired.
pub(crate) fn end_of_certificate(der: &[u8]) -> Timestamp {
    let end = X509Certificate::from_der(der).map_or(0, |(_, c)| c.validity().not_after.timestamp());
    Timestamp::from_secs(end)
}

fn names_of(pem: &str) -> BTreeSet<String> {
    let names = with_certificate(pem, |certificate| {
        let extension = certificate.subject_alternative_name().ok().flatten();
        let names = extension.map_or(&[][..], |found| &found.value.general_names);
        names.iter().filter_map(name_text).collect()
    });
    names.unwrap_or_default()
}

fn name_text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d]).to_string()),
            _ => {
                let bytes = <[u8; 16]>::try_from(*bytes).ok()?;
                Some(IpAddr::from(bytes).to_string())
            }
        },
        _ => None,
    }
}

/// Whether the key belongs to the certificate. After a crash between two writes it may not.
pub(super) fn belongs(certificate_pem: &str, key_pem: &str) -> bool {
    let Ok(key) = KeyPair::from_pem(key_pem) else {
        return false;
    };
    let public = key.subject_public_key_info();
    with_certificate(certificate_pem, |c| c.public_key().raw == public) == Some(true)
}

pub(super) fn with_certificate<T>(
    pem: &str,
    read: impl FnOnce(&X509Certificate<'_>) -> T,
) -> Option<T> {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    Some(read(&certificate))
}
