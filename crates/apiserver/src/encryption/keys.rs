//! Which values are encrypted, and with which key.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_core::problem::Problem;

use super::configuration::{self, Rule};
use super::provider::{self, ENCRYPTED};
use crate::cache::{ROOT, check_stored};
use crate::kinds;
use crate::store::Entry;

/// The keys and rules of one configuration.
#[derive(Debug)]
pub struct Keys {
    /// By the kind's part of the key in the store; kinds that no rule names are absent.
    rules: BTreeMap<&'static str, Arc<Rule>>,
}

impl Keys {
    /// Parses an EncryptionConfiguration in YAML or JSON; returns all errors otherwise.
    pub fn parse(text: &str) -> Result<Keys, Vec<Problem>> {
        let rules: Vec<Arc<Rule>> = configuration::read(text)?
            .into_iter()
            .map(Arc::new)
            .collect();
        let mut of_kinds = BTreeMap::new();
        for kind in kinds::all() {
            let rule = rules
                .iter()
                .find(|rule| rule.matches(kind.group, kind.plural));
            if let (Some(storage), Some(rule)) = (kind.storage, rule) {
                of_kinds.entry(storage).or_insert_with(|| Arc::clone(rule));
            }
        }
        Ok(Keys { rules: of_kinds })
    }

    fn rule(&self, key: &[u8]) -> Option<&Rule> {
        let path = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?;
        // Some storage prefixes contain a slash: `services/specs`.
        let ends = path.match_indices('/').map(|(at, _)| at).take(2);
        let mut rules = ends.filter_map(|end| self.rules.get(&path[..end]));
        rules.next().map(Arc::as_ref)
    }

    /// The value as it is stored.
    pub(super) fn encrypt(&self, key: &[u8], value: &Bytes) -> Result<Bytes, String> {
        let first = self.rule(key).and_then(|rule| rule.providers.first());
        first.map_or_else(|| Ok(value.clone()), |first| first.encrypt(key, value))
    }

    /// The decrypted value.
    pub(super) fn decrypt(&self, key: &[u8], value: &Bytes) -> Result<Bytes, String> {
        match self.rule(key) {
            Some(rule) => provider::decrypt(&rule.providers, key, value),
            None => Ok(value.clone()),
        }
    }

    /// The entry with its decrypted value, or marked as unreadable.
    pub(super) fn open(&self, mut entry: Entry) -> Entry {
        if entry.unreadable.is_some() {
            return entry;
        }
        match self.decrypt(&entry.key, &entry.value) {
            Ok(value) => entry.value = value,
            Err(problem) => {
                let key = String::from_utf8_lossy(&entry.key).into_owned();
                tracing::error!(key, problem, "failed to decrypt stored value");
                entry.value = Bytes::new();
                entry.unreadable = Some(problem.into());
            }
        }
        entry
    }

    /// Whether the value would be encrypted differently today.
    pub(super) fn is_stale(&self, key: &[u8], value: &[u8]) -> bool {
        let first = self.rule(key).and_then(|rule| rule.providers.first());
        first.is_some_and(|first| !first.would_write(value))
    }

    /// Returns what is wrong with a stored value, if anything. Encrypted values are skipped if
    /// there are no keys.
    pub fn check_stored(keys: Option<&Keys>, key: &[u8], value: &[u8]) -> Result<(), String> {
        match keys {
            None if value.starts_with(ENCRYPTED) => Ok(()),
            None => check_stored(key, value),
            Some(keys) => {
                let value = keys.decrypt(key, &Bytes::copy_from_slice(value))?;
                check_stored(key, &value)
            }
        }
    }
}
