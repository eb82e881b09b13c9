//! Certificates in PEM form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A certificate in PEM form.
pub(crate) fn pem(der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<&str> = (0..encoded.len())
        .step_by(64)
        .map(|start| &encoded[start..(start + 64).min(encoded.len())])
        .collect();
    let body = lines.join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}
