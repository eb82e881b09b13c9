//! One certificate authority: a key, its certificate, and what it signs.

use std::path::Path;

use plimsoll_core::object::timestamp::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::file::{read_if_exists, read_or_create_private, write_public};
use super::leaf::{Term, Validity, belongs, failed, pem_of, validity_of, with_certificate};
use super::subject::{with_name, with_subject};
use super::{AuthorityError, CA_DAYS, LEAF_DAYS, lifetime, new_key, seconds, time_text};

/// No clock that is set is before this: 2025-01-01T00:00:00Z.
const EARLIEST: i64 = 1_735_689_600;

/// An authority.
#[derive(Debug)]
pub(super) struct Ca {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    /// The authority in `NAME.key` and `NAME.crt`, which are created if missing.
    pub(super) fn open(
        directory: &Path,
        name: &str,
        common_name: &str,
        now: Timestamp,
    ) -> Result<Ca, AuthorityError> {
        let key_path = directory.join(format!("{name}.key"));
        let path = directory.join(format!("{name}.crt"));
        let key_pem = read_or_create_private(&key_path, || {
            check_clock(now)?;
            new_key(common_name).map(|key| key.serialize_pem())
        })?;
        let malformed = |path: &Path, what| AuthorityError::Malformed {
            path: path.to_owned(),
            what,
        };
        let key = || KeyPair::from_pem(&key_pem).map_err(|_| malformed(&key_path, "private key"));
        let renew = || -> Result<String, AuthorityError> {
            check_clock(now)?;
            let (start, end) = lifetime(now, CA_DAYS);
            let pem = self_signed(common_name, &key()?, start, end)?;
            write_public(&path, &pem)?;
            Ok(pem)
        };
        let certificate_pem = match read_if_exists(&path)? {
            None => renew()?,
            Some(pem) => match validity_of(&pem) {
                None => return Err(malformed(&path, "certificate")),
                Some(validity) if validity.is_due(now) => renew()?,
                Some(validity) => {
                    if validity.is_ahead_of(now) {
                        // Only a warning: the clock will be set, the certificate cannot be changed.
                        tracing::warn!(
                            file = %path.display(),
                            now = time_text(seconds(now)),
                            begins = time_text(validity.start),
                            "system clock is before the start of the certificate authority's validity"
                        );
                    }
                    pem
                }
            },
        };
        if !belongs(&certificate_pem, &key_pem) {
            return Err(AuthorityError::OtherKey {
                certificate: path,
                key: key_path,
            });
        }
        let issuer = Issuer::from_ca_cert_pem(&certificate_pem, key()?)
            .map_err(|_| malformed(&path, "certificate of an authority"))?;
        Ok(Ca {
            certificate_pem,
            issuer,
        })
    }

    /// From when until when a certificate (PEM) that it has signed is used.
    pub(super) fn term(&self, certificate_pem: &str) -> Term {
        let own = validity_of(&self.certificate_pem);
        let signed = validity_of(certificate_pem);
        Term {
            start: signed.map_or(0, |validity| validity.start),
            due: signed.map_or(0, Validity::due),
            authority: own.map_or(0, |validity| validity.start),
        }
    }

    /// Its certificate, as PEM.
    pub(super) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub(super) fn key(&self) -> &KeyPair {
        self.issuer.key()
    }

    /// A client certificate (PEM) for a key.
    pub(super) fn sign_client(
        &self,
        user: &str,
        groups: &[&str],
        key: &impl PublicKeyData,
        now: Timestamp,
    ) -> Result<String, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = self.sign_leaf(params, user, key, now)?;
        let der = with_subject(certificate.der(), user, groups, self.key());
        let der = der.ok_or_else(|| failed(user, rcgen::Error::CouldNotParseCertificate))?;
        Ok(pem_of(&der))
    }

    /// A certificate that begins now and is good for as long as certificates are.
    pub(super) fn sign_leaf(
        &self,
        mut params: CertificateParams,
        subject: &str,
        key: &impl PublicKeyData,
        now: Timestamp,
    ) -> Result<rcgen::Certificate, AuthorityError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = lifetime(now, LEAF_DAYS);
        let signed = params.signed_by(key, &self.issuer);
        signed.map_err(|source| failed(subject, source))
    }

    /// A certificate (PEM) of those contents with a subject that is DER already.
    pub(super) fn sign_named(
        &self,
        params: &CertificateParams,
        subject: &[u8],
        key: &impl PublicKeyData,
    ) -> Result<String, rcgen::Error> {
        let signed = params.signed_by(key, &self.issuer)?;
        let signed = with_name(signed.der(), subject, self.key());
        let signed = signed.ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(pem_of(&signed))
    }

    /// Whether the certificate is one of this authority's. Keys change when files are replaced.
    pub(super) fn has_signed(&self, pem: &str) -> bool {
        with_certificate(pem, |leaf| self.has_signed_certificate(leaf)) == Some(true)
    }

    /// The same for a certificate in DER.
    pub(super) fn has_signed_der(&self, der: &[u8]) -> bool {
        let leaf = X509Certificate::from_der(der);
        leaf.is_ok_and(|(_, leaf)| self.has_signed_certificate(&leaf))
    }

    fn has_signed_certificate(&self, leaf: &X509Certificate<'_>) -> bool {
        let check = |ca: &X509Certificate<'_>| leaf.verify_signature(Some(ca.public_key())).is_ok();
        with_certificate(&self.certificate_pem, check) == Some(true)
    }
}

/// A certificate (PEM) for an authority's key.
pub(super) fn self_signed(
    common_name: &str,
    key: &KeyPair,
    start: OffsetDateTime,
    end: OffsetDateTime,
) -> Result<String, AuthorityError> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    (params.not_before, params.not_after) = (start, end);
    let certificate = params.self_signed(key);
    let certificate = certificate.map_err(|source| failed(common_name, source))?;
    Ok(certificate.pem())
}

fn check_clock(now: Timestamp) -> Result<(), AuthorityError> {
    match seconds(now) >= EARLIEST {
        true => Ok(()),
        false => Err(AuthorityError::ClockNotSet {
            now: time_text(seconds(now)),
        }),
    }
}
