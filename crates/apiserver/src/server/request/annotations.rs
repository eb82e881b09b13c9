//! Annotations that admission adds to a request's audit event.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The annotations of one request.
#[derive(Debug, Default)]
pub(crate) struct Annotations(Mutex<BTreeMap<String, String>>);

impl Annotations {
    /// Sets an annotation. A retried request sets it again.
    pub(crate) fn set(&self, key: String, value: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, value);
    }

    /// All of them; `None` if there are none.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = all.iter();
        let pairs = pairs.map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        (!all.is_empty()).then(|| pairs.collect())
    }
}
