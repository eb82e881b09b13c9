//! Encryption at rest: values are encrypted on their way into the store and decrypted on their way
//! out, by a configuration that is upstream's (`EncryptionConfiguration`).
//!
//! What lies in the store is what a kube-apiserver v1.36 would write, so that either reads the
//! other's etcd. Matches v1.36 apiserver/pkg/storage/value and server/options/encryptionconfig.
//!
//! Reading order: `configuration` (reading the file), `provider` (one way to encrypt), `keys` (which
//! values are encrypted with what), `store` (a store that does it), `reload`.

mod configuration;
mod keys;
mod provider;
mod reload;
mod store;

pub use keys::Keys;
pub use reload::follow;
pub use store::EncryptedStore;
