//! Certificates for tests, signed by an authority that lives as long as the test.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate and its key in PEM form.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// A new authority that no client trusts yet.
    ///
    /// # Panics
    ///
    /// If the machine has no randomness.
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new([]).expect("no names are valid names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a new key can sign");
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// The certificate to trust, in PEM form.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a host or a client of this name.
    ///
    /// # Panics
    ///
    /// If the name cannot be in a certificate.
    pub fn sign(&self, name: &str) -> Certificate {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new([name.to_owned()]).expect("a valid name");
        let signed = params.signed_by(&key, &self.issuer);
        Certificate {
            certificate_pem: signed.expect("the authority can sign").pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
