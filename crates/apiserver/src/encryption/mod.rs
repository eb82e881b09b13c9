//! Encryption at rest: values are encrypted when they are written to the store and decrypted when
//! they are read, according to upstream's `EncryptionConfiguration`.
//!
//! The stored form is the one of kube-apiserver v1.36, so that either reads the
//! other's etcd. Matches v1.36 apiserver/pkg/storage/value and server/options/encryptionconfig.
//!
//! Reading order: `configuration` (reading the file), `provider` (one way to encrypt), `keys`
//! (which values are encrypted with what), `store` (a store that does it), `reload`.

mod configuration;
mod keys;
mod provider;
mod reload;
mod store;

pub use keys::Keys;
pub use reload::follow;
pub use store::EncryptedStore;
