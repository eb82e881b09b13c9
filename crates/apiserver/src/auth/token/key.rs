//! The key that signs service account tokens.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::KeyPair as _;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
};
use serde::Serialize;

use super::jwt;
use crate::auth::authority::{FileError, read_or_create_private};

/// The algorithm: ECDSA with the curve P-256 and SHA-256.
pub(super) const ALGORITHM: &str = "ES256";

/// A key for service account tokens.
#[derive(Debug)]
pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

/// The key cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A new key cannot be made.
    #[error("cannot generate a signing key for service account tokens")]
    Generate(#[source] rcgen::Error),
    /// The file does not hold a key.
    #[error("{} does not contain a P-256 private key in PKCS#8 PEM format", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl SigningKey {
    /// The key in that file, which is created, readable by its owner only, if it is missing.
    pub fn open(path: &Path) -> Result<SigningKey, KeyError> {
        let pem = read_or_create_private(path, || {
            let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
            pair.map(|pair| pair.serialize_pem())
                .map_err(KeyError::Generate)
        })?;
        SigningKey::from_pem(&pem).ok_or_else(|| KeyError::Malformed {
            path: path.to_owned(),
        })
    }

    fn from_pem(pem: &str) -> Option<SigningKey> {
        let pair = KeyPair::from_pem(pem).ok()?;
        let random = SystemRandom::new();
        let signing = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            pair.serialized_der(),
            &random,
        );
        let public = digest(&SHA256, &pair.subject_public_key_info());
        Some(SigningKey {
            pair: signing.ok()?,
            id: URL_SAFE_NO_PAD.encode(public),
        })
    }

    /// The id of the key: a digest of the public key, as upstream derives it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// A token with these claims.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Result<String, ring::error::Unspecified> {
        let header = format!(r#"{{"alg":"{ALGORITHM}","kid":"{}"}}"#, self.id);
        let payload = serde_json::to_vec(claims).expect("claims are texts, numbers and lists");
        let unsigned = jwt::unsigned(header.as_bytes(), &payload);
        let signature = self.pair.sign(&SystemRandom::new(), unsigned.as_bytes())?;
        Ok(jwt::signed(&unsigned, signature.as_ref()))
    }

    /// Whether this key made the signature.
    pub(super) fn is_signature(&self, signed: &str, signature: &[u8]) -> bool {
        let public = self.pair.public_key().as_ref();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
        public.verify(signed.as_bytes(), signature).is_ok()
    }

    pub(super) fn key_set(&self) -> String {
        // The public key is a marker byte and the two coordinates.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let key = PublicKey {
            r#use: "sig",
            kty: "EC",
            kid: &self.id,
            crv: "P-256",
            alg: ALGORITHM,
            x: URL_SAFE_NO_PAD.encode(x),
            y: URL_SAFE_NO_PAD.encode(y),
        };
        let key = serde_json::to_string(&key).expect("texts are JSON");
        format!(r#"{{"keys":[{key}]}}"#)
    }

    pub(super) fn discovery(&self, issuer: &str, key_set_url: &str) -> String {
        let document = Discovery {
            issuer,
            jwks_uri: key_set_url,
            response_types_supported: ["id_token"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: [ALGORITHM],
        };
        serde_json::to_string(&document).expect("texts are JSON")
    }
}

/// A public key as RFC 7517 has it, in upstream's order.
#[derive(Serialize)]
struct PublicKey<'a> {
    r#use: &'a str,
    kty: &'a str,
    kid: &'a str,
    crv: &'a str,
    alg: &'a str,
    x: String,
    y: String,
}

/// The part of an OpenID discovery document that token verifiers need.
#[derive(Serialize)]
struct Discovery<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'a str; 1],
    subject_types_supported: [&'a str; 1],
    id_token_signing_alg_values_supported: [&'a str; 1],
}
