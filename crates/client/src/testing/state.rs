//! The objects, and the writes to them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::informer::Key;

use super::kinds::Kind;
use super::patch;

/// Why a request fails: code and reason.
pub(super) type Refusal = (u16, &'static str);

pub(super) const NOT_FOUND: Refusal = (404, "NotFound");
pub(super) const EXPIRED: Refusal = (410, "Expired");
const CONFLICT: Refusal = (409, "Conflict");
const EXISTS: Refusal = (409, "AlreadyExists");

/// An event of a watch.
#[derive(Clone)]
pub(super) struct Event {
    pub(super) revision: u64,
    pub(super) kind: &'static Kind,
    pub(super) change: &'static str,
    pub(super) object: Value,
}

#[derive(Default)]
pub(super) struct State {
    objects: BTreeMap<(&'static str, Key), Value>,
    log: Vec<Event>,
    /// Watches continue after this revision or a later one.
    pub(super) compacted: u64,
    uids: u64,
}

pub(super) fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

impl State {
    pub(super) fn revision(&self) -> u64 {
        self.log.last().map_or(1, |event| event.revision)
    }

    pub(super) fn since(&self, revision: u64) -> impl Iterator<Item = &Event> {
        self.log.iter().filter(move |e| e.revision > revision)
    }

    pub(super) fn compact(&mut self) {
        self.compacted = self.revision();
    }

    pub(super) fn get(&self, kind: &'static Kind, key: &Key) -> Option<&Value> {
        self.objects.get(&(kind.plural, key.clone()))
    }

    pub(super) fn list<'a>(
        &'a self,
        kind: &'static Kind,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Value> {
        let of_kind = self.objects.iter().filter(|((p, _), _)| *p == kind.plural);
        let within =
            of_kind.filter(move |((_, key), _)| namespace.is_none_or(|n| key.namespace == n));
        within.map(|(_, object)| object)
    }

    /// Stores the object, or removes it when its deletion is complete.
    pub(super) fn put(&mut self, kind: &'static Kind, mut object: Value) -> Value {
        let key = key_of(&object);
        let revision = self.revision() + 1;
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.name.into();
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = revision.to_string().into();
        if metadata["uid"].is_null() {
            self.uids += 1;
            metadata["uid"] = format!("uid-{}", self.uids).into();
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        if is_deletion_complete(kind, &object) {
            self.remove(kind, &key);
            return object;
        }
        let entry = (kind.plural, key);
        let change = match self.objects.insert(entry, object.clone()) {
            Some(_) => "MODIFIED",
            None => "ADDED",
        };
        self.broadcast(kind, change, revision, object.clone());
        object
    }

    pub(super) fn remove(&mut self, kind: &'static Kind, key: &Key) {
        let revision = self.revision() + 1;
        if let Some(mut object) = self.objects.remove(&(kind.plural, key.clone())) {
            object["metadata"]["resourceVersion"] = revision.to_string().into();
            self.broadcast(kind, "DELETED", revision, object);
        }
    }

    fn broadcast(
        &mut self,
        kind: &'static Kind,
        change: &'static str,
        revision: u64,
        object: Value,
    ) {
        self.log.push(Event {
            revision,
            kind,
            change,
            object,
        });
    }

    pub(super) fn create(
        &mut self,
        kind: &'static Kind,
        mut object: Value,
    ) -> Result<Value, Refusal> {
        if let Some(prefix) = object["metadata"]["generateName"].as_str()
            && object["metadata"]["name"].is_null()
        {
            object["metadata"]["name"] = format!("{prefix}{:05}", self.revision()).into();
        }
        if self.get(kind, &key_of(&object)).is_some() {
            return Err(EXISTS);
        }
        Ok(self.put(kind, object))
    }

    /// Replaces an object, or the part of it that the subresource is about.
    pub(super) fn update(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        subresource: Option<&str>,
        object: Value,
    ) -> Result<Value, Refusal> {
        let known = self.get(kind, key).ok_or(NOT_FOUND)?.clone();
        let version = &object["metadata"]["resourceVersion"];
        if !version.is_null() && *version != known["metadata"]["resourceVersion"] {
            return Err(CONFLICT);
        }
        let mut stored = object.clone();
        match subresource {
            Some("status") => {
                stored = known.clone();
                stored["status"] = object["status"].clone();
                // Deployments have their revision written with their status.
                if let Some(annotations) = object["metadata"].get("annotations") {
                    stored["metadata"]["annotations"] = annotations.clone();
                }
            }
            Some("finalize") => {
                stored = known.clone();
                stored["spec"]["finalizers"] = object["spec"]["finalizers"].clone();
            }
            _ => stored["status"] = known["status"].clone(),
        }
        for field in ["uid", "creationTimestamp", "deletionTimestamp"] {
            stored["metadata"][field] = known["metadata"][field].clone();
        }
        if stored == known {
            return Ok(known);
        }
        Ok(self.put(kind, stored))
    }

    pub(super) fn patch(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        subresource: Option<&str>,
        change: &Value,
        is_strategic: bool,
    ) -> Result<Value, Refusal> {
        let mut object = self.get(kind, key).ok_or(NOT_FOUND)?.clone();
        let uid = &change["metadata"]["uid"];
        if !uid.is_null() && *uid != object["metadata"]["uid"] {
            return Err(CONFLICT);
        }
        patch::merge(&mut object, change, is_strategic);
        self.update(kind, key, subresource, object)
    }

    pub(super) fn delete(
        &mut self,
        kind: &'static Kind,
        key: &Key,
        options: &Value,
    ) -> Result<Value, Refusal> {
        let mut object = self.get(kind, key).ok_or(NOT_FOUND)?.clone();
        for field in ["uid", "resourceVersion"] {
            let wanted = &options["preconditions"][field];
            if !wanted.is_null() && *wanted != object["metadata"][field] {
                return Err(CONFLICT);
            }
        }
        let metadata = &mut object["metadata"];
        let own = metadata["finalizers"].as_array().cloned();
        let mut finalizers = own.unwrap_or_default();
        finalizers.retain(|name| name != "orphan" && name != "foregroundDeletion");
        match options["propagationPolicy"].as_str() {
            Some("Orphan") => finalizers.push("orphan".into()),
            Some("Foreground") => finalizers.push("foregroundDeletion".into()),
            _ => {}
        }
        metadata["finalizers"] = finalizers.into();
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        if kind.name == "Pod" {
            let grace = match object["spec"]["nodeName"].is_null() {
                true => json!(0),
                false => match options["gracePeriodSeconds"].is_null() {
                    true => json!(30),
                    false => options["gracePeriodSeconds"].clone(),
                },
            };
            object["metadata"]["deletionGracePeriodSeconds"] = grace;
        }
        if kind.name == "Namespace" {
            object["status"]["phase"] = "Terminating".into();
        }
        Ok(self.put(kind, object))
    }
}

fn is_deletion_complete(kind: &Kind, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let grace = metadata["deletionGracePeriodSeconds"].as_i64();
    !metadata["deletionTimestamp"].is_null()
        && is_empty(&metadata["finalizers"])
        && (kind.name != "Namespace" || is_empty(&object["spec"]["finalizers"]))
        && grace.unwrap_or(0) == 0
}
