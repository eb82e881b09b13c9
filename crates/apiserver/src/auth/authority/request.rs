//! Certificates for keys that were made elsewhere.
//!
//! Matches v1.36 pkg/controller/certificates/authority/policies.go.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose as Purpose, IsCa,
    KeyUsagePurpose as Usage, SanType, SubjectPublicKeyInfo,
};
use time::OffsetDateTime;

use super::ca::Ca;
use super::leaf::{failed, validity_of};
use super::{Authority, AuthorityError, Signer, seconds, time_text};
use crate::auth::signing_request::SigningRequest;

/// Clocks of other machines may be a little behind.
const BACKDATED_SECONDS: i64 = 5 * 60;
/// Certificates with a shorter lifetime expire on time; longer ones earlier by this backdating.
const SHORT_SECONDS: i64 = 8 * 60 * 60;

impl Authority {
    /// Signs a request whose signature and contents were checked. The certificate has the subject
    /// and the alternative names of the request, these usages, and ends with the authority's own
    /// at the latest.
    pub fn sign_request(
        &self,
        signer: Signer,
        request: &SigningRequest,
        usages: &BTreeSet<&str>,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<String, AuthorityError> {
        let ca = self.signer(signer);
        let subject = request.common_name.as_str();
        let refused = |source| failed(subject, source);
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = alternative_names(request).map_err(refused)?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = each_once(usages.iter().copied().filter_map(key_usage));
        params.extended_key_usages = each_once(usages.iter().copied().filter_map(purpose));
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = life(ca, lifetime, now)?;
        let key = SubjectPublicKeyInfo::from_der(&request.public_key_der).map_err(refused)?;
        ca.sign_named(&params, &request.subject_der, &key)
            .map_err(refused)
    }
}

fn life(
    ca: &Ca,
    lifetime: Duration,
    now: Timestamp,
) -> Result<(OffsetDateTime, OffsetDateTime), AuthorityError> {
    let now = seconds(now);
    let own = validity_of(ca.certificate_pem()).ok_or(AuthorityError::Expired)?;
    if now >= own.end {
        return Err(AuthorityError::Expired);
    }
    if now < own.start {
        return Err(AuthorityError::NotYetValid {
            now: time_text(now),
            start: time_text(own.start),
        });
    }
    let length = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    let mut end = now.saturating_add(length);
    if length >= SHORT_SECONDS {
        end -= BACKDATED_SECONDS;
    }
    let at = |seconds| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .expect("the end of a certificate is within four digits of a year")
    };
    Ok((at(now - BACKDATED_SECONDS), at(end.min(own.end))))
}

fn alternative_names(request: &SigningRequest) -> Result<Vec<SanType>, rcgen::Error> {
    let mut names = Vec::new();
    for name in &request.dns_names {
        names.push(SanType::DnsName(name.as_str().try_into()?));
    }
    for name in &request.email_addresses {
        names.push(SanType::Rfc822Name(name.as_str().try_into()?));
    }
    names.extend(request.ip_addresses.iter().copied().map(SanType::IpAddress));
    for name in &request.uris {
        names.push(SanType::URI(name.as_str().try_into()?));
    }
    Ok(names)
}

/// Some usages have two names.
fn each_once<T: PartialEq>(usages: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for usage in usages {
        if !unique.contains(&usage) {
            unique.push(usage);
        }
    }
    unique
}

fn key_usage(name: &str) -> Option<Usage> {
    Some(match name {
        "signing" | "digital signature" => Usage::DigitalSignature,
        "content commitment" => Usage::ContentCommitment,
        "key encipherment" => Usage::KeyEncipherment,
        "key agreement" => Usage::KeyAgreement,
        "data encipherment" => Usage::DataEncipherment,
        "cert sign" => Usage::KeyCertSign,
        "crl sign" => Usage::CrlSign,
        "encipher only" => Usage::EncipherOnly,
        "decipher only" => Usage::DecipherOnly,
        _ => return None,
    })
}

fn purpose(name: &str) -> Option<Purpose> {
    Some(match name {
        "any" => Purpose::Any,
        "server auth" => Purpose::ServerAuth,
        "client auth" => Purpose::ClientAuth,
        "code signing" => Purpose::CodeSigning,
        "email protection" | "s/mime" => Purpose::EmailProtection,
        "ipsec end system" => Purpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 5]),
        "ipsec tunnel" => Purpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 6]),
        "ipsec user" => Purpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 7]),
        "timestamping" => Purpose::TimeStamping,
        "ocsp signing" => Purpose::OcspSigning,
        "microsoft sgc" => Purpose::Other(vec![1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
        "netscape sgc" => Purpose::Other(vec![2, 16, 840, 1, 113_730, 4, 1]),
        _ => return None,
    })
}
