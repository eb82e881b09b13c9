//! Pins: how a joining machine knows that it talks to the right cluster.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use x509_parser::pem::Pem;

/// The digest of a certificate authority's public key, `sha256:` and 64 digits.
///
/// Matches v1.36 cmd/kubeadm/app/util/pubkeypin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

/// A text is no pin.
#[derive(Debug, thiserror::Error)]
#[error("invalid pin {text:?}: expected sha256: and 64 hexadecimal digits")]
pub struct InvalidPin {
    text: String,
}

/// Certificates cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// They are not PEM.
    #[error("the cluster's certificate authority is not in PEM form")]
    Pem(#[source] x509_parser::error::PEMError),
    /// They are not X.509.
    #[error("the cluster's certificate authority is not an X.509 certificate")]
    Certificate(#[source] x509_parser::asn1_rs::Err<x509_parser::error::X509Error>),
}

impl Pin {
    /// The pins of all certificates in a PEM text.
    pub fn of_certificates(pem: &str) -> Result<Vec<Pin>, PinError> {
        let mut pins = Vec::new();
        for block in Pem::iter_from_buffer(pem.as_bytes()) {
            let block = block.map_err(PinError::Pem)?;
            let certificate = block.parse_x509().map_err(PinError::Certificate)?;
            pins.push(Pin(Sha256::digest(certificate.public_key().raw).into()));
        }
        Ok(pins)
    }
}

impl FromStr for Pin {
    type Err = InvalidPin;

    fn from_str(text: &str) -> Result<Pin, InvalidPin> {
        let invalid = || InvalidPin {
            text: text.to_owned(),
        };
        let digits = text.strip_prefix("sha256:").ok_or_else(invalid)?;
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = &digits[index * 2..index * 2 + 2];
            *byte = u8::from_str_radix(pair, 16).map_err(|_| invalid())?;
        }
        Ok(Pin(bytes))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_as_they_are_written() {
        let text = format!("sha256:{}", "0f".repeat(32));
        assert_eq!(text.parse::<Pin>().unwrap().to_string(), text);
        for wrong in [
            "",
            "sha256:",
            "sha1:00",
            &text[..70],
            &text.replace('f', "x"),
            "sha256:+f",
        ] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_certificate_is_known_by_its_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = || {
            let names = vec!["a".to_owned()];
            let params = rcgen::CertificateParams::new(names).unwrap();
            params.self_signed(&key).unwrap().pem()
        };
        let first = Pin::of_certificates(&certificate()).unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(first, Pin::of_certificates(&certificate()).unwrap());
        assert_eq!(Pin::of_certificates("nothing").unwrap(), []);
    }
}
