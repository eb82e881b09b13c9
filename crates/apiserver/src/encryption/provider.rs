//! One way to encrypt values.

use bytes::Bytes;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The prefix of all encrypted values; name, version and key follow.
pub(super) const ENCRYPTED: &[u8] = b"k8s:enc:";

const AESGCM: &[u8] = b"k8s:enc:aesgcm:v1:";

/// Names in messages are truncated to this length: they come from the store.
const SHOWN: usize = 64;

/// One way to encrypt.
pub(super) enum Provider {
    /// Plaintext.
    Identity,
    /// AES-GCM with a random nonce. The first key encrypts, all decrypt.
    AesGcm(Vec<Key>),
}

/// A named key.
pub(super) struct Key {
    name: String,
    key: LessSafeKey,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys must not be logged.
        match self {
            Provider::Identity => f.write_str("Identity"),
            Provider::AesGcm(keys) => {
                let names = keys.iter().map(|key| &key.name);
                f.debug_list().entries(names).finish()
            }
        }
    }
}

impl Key {
    /// A key of 16 or 32 bytes.
    pub(super) fn new(name: &str, secret: &[u8]) -> Option<Key> {
        let algorithm = match secret.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            _ => return None,
        };
        Some(Key {
            name: name.to_owned(),
            key: LessSafeKey::new(UnboundKey::new(algorithm, secret).ok()?),
        })
    }

    /// The prefix of values that it encrypts.
    fn prefix(&self) -> Vec<u8> {
        [AESGCM, self.name.as_bytes(), b":"].concat()
    }

    fn encrypt(&self, storage_key: &[u8], value: &[u8]) -> Result<Bytes, String> {
        let failed = |_| format!("key {:?} of provider aesgcm cannot encrypt", self.name);
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut sealed = value.to_vec();
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(nonce_used, Aad::from(storage_key), &mut sealed)
            .map_err(failed)?;
        Ok([&self.prefix()[..], &nonce, &sealed].concat().into())
    }

    /// `None` if the value was not encrypted with this key for this place in the store.
    fn decrypt(&self, storage_key: &[u8], sealed: &[u8]) -> Option<Bytes> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut sealed = sealed.to_vec();
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(storage_key), &mut sealed);
        let len = opened.ok()?.len();
        sealed.truncate(len);
        Some(sealed.into())
    }
}

impl Provider {
    pub(super) fn encrypt(&self, storage_key: &[u8], value: &Bytes) -> Result<Bytes, String> {
        match self {
            Provider::AesGcm(keys) if !keys.is_empty() => keys[0].encrypt(storage_key, value),
            _ => Ok(value.clone()),
        }
    }

    /// Whether its encrypted values begin as this one does.
    pub(super) fn would_write(&self, value: &[u8]) -> bool {
        match self {
            Provider::AesGcm(keys) if !keys.is_empty() => value.starts_with(&keys[0].prefix()),
            _ => !value.starts_with(ENCRYPTED),
        }
    }

    /// The decrypted value, if it is of this provider; or the error, if it cannot be decrypted.
    fn decrypt(&self, storage_key: &[u8], value: &Bytes) -> Option<Result<Bytes, String>> {
        match self {
            Provider::Identity if value.starts_with(ENCRYPTED) => None,
            Provider::Identity => Some(Ok(value.clone())),
            Provider::AesGcm(keys) => {
                let sealed = value.strip_prefix(AESGCM)?;
                let named = keys.iter().find_map(|key| {
                    let sealed = sealed.strip_prefix(key.name.as_bytes())?;
                    Some((key, sealed.strip_prefix(b":")?))
                });
                let (key, sealed) = named?;
                let problem = || {
                    format!(
                        "key {:?} of provider aesgcm does not decrypt it: it is another key of the \
                         same name, or the value is damaged",
                        key.name
                    )
                };
                Some(key.decrypt(storage_key, sealed).ok_or_else(problem))
            }
        }
    }
}

/// The decrypted value, with the first provider that can read it.
pub(super) fn decrypt(
    providers: &[Provider],
    storage_key: &[u8],
    value: &Bytes,
) -> Result<Bytes, String> {
    let mut problem = None;
    for provider in providers {
        match provider.decrypt(storage_key, value) {
            Some(Ok(clear)) => return Ok(clear),
            Some(Err(found)) => problem = Some(found),
            None => {}
        }
    }
    Err(problem.unwrap_or_else(|| unknown(value)))
}

/// Why no provider can read a value. Only the names in an encrypted value are shown.
fn unknown(value: &[u8]) -> String {
    let Some(names) = value.strip_prefix(ENCRYPTED) else {
        return "it is not encrypted, and the configuration has no provider identity to read it"
            .to_owned();
    };
    let mut names = names.splitn(4, |byte| *byte == b':');
    let mut shown = || {
        let name = String::from_utf8_lossy(names.next().unwrap_or_default());
        let printable = name.chars().filter(|c| !c.is_control());
        printable.take(SHOWN).collect::<String>()
    };
    let (provider, _version, key) = (shown(), shown(), shown());
    format!("it is encrypted with key {key:?} of provider {provider}, which is not configured")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &[u8] = b"/registry/secrets/default/db";

    fn providers(keys: &[(&str, u8)]) -> Vec<Provider> {
        let keys = keys
            .iter()
            .map(|(name, byte)| Key::new(name, &[*byte; 32]).unwrap());
        vec![Provider::AesGcm(keys.collect())]
    }

    #[test]
    fn encrypted_value_decrypts_and_hides_plaintext() {
        let old = providers(&[("key1", 1)]);
        let value = Bytes::from_static(br#"{"data":"hunter2"}"#);
        let stored = old[0].encrypt(PLACE, &value).unwrap();
        assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
        assert!(!stored.windows(7).any(|part| part == b"hunter2"));
        assert_eq!(decrypt(&old, PLACE, &stored), Ok(value.clone()));
        let rotated = providers(&[("key2", 2), ("key1", 1)]);
        assert_eq!(decrypt(&rotated, PLACE, &stored), Ok(value));
        assert!(old[0].would_write(&stored) && !rotated[0].would_write(&stored));
    }

    #[test]
    fn errors_name_key_and_provider() {
        let stored = providers(&[("key1", 1)])[0]
            .encrypt(PLACE, &Bytes::from_static(b"{}"))
            .unwrap();
        let problem = |keys: &[(&str, u8)], place| decrypt(&providers(keys), place, &stored);
        let missing = problem(&[("key2", 2)], PLACE).unwrap_err();
        assert_eq!(
            missing,
            "it is encrypted with key \"key1\" of provider aesgcm, which is not configured"
        );
        let changed = problem(&[("key1", 2)], PLACE).unwrap_err();
        assert!(changed.starts_with("key \"key1\" of provider aesgcm does not decrypt it"));
        // A value that was moved to another key of the store is rejected.
        problem(&[("key1", 1)], b"/registry/secrets/default/other").unwrap_err();
        let clear = decrypt(
            &providers(&[("key1", 1)]),
            PLACE,
            &Bytes::from_static(b"{}"),
        );
        assert!(clear.unwrap_err().contains("no provider identity"));
    }

    /// Made with OpenSSL, in upstream's layout: AES-256-GCM with a key of 32 times 0x01, a nonce of
    /// 12 times 0x02, and the key in the store as additional data.
    #[test]
    fn values_of_other_implementations_are_decrypted() {
        let sealed = [
            0x7c, 0xab, 0x49, 0xd4, 0x1a, 0x08, 0x0b, 0x2b, 0xd6, 0x5c, 0xff, 0xff, 0x07, 0xa9,
            0x7e, 0xf7, 0xe6, 0xff,
        ];
        let stored = [b"k8s:enc:aesgcm:v1:key1:", &[2; NONCE_LEN][..], &sealed].concat();
        let read = decrypt(&providers(&[("key1", 1)]), PLACE, &stored.into());
        assert_eq!(read, Ok(Bytes::from_static(b"{}")));
    }
}
