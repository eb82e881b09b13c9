//! Creating, updating and patching objects.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::admission::Gate;
use super::bounded;
use super::call::{Call, key};
use super::list::store_failure;
use super::own_events;
use super::respond;
use super::signing;
use super::subresources::scale_of_stored;
use crate::auth::node::Operation;
use crate::body::Body;
use crate::cache::{self, Object};
use crate::http::negotiation::{Endpoint, Output};
use crate::http::query::{PatchOptions, WriteOptions};
use crate::kinds::Kind;
use crate::machinery::strategy::certificates;
use crate::machinery::write::{self, Accepted, Part, PatchType, Request};
use crate::status::Status;
use crate::store::{Outcome, Revision, Txn};

/// How often a taken generated name is replaced by another.
const NAME_ATTEMPTS: usize = 8;

/// How often an update is retried when another caller changed the object meanwhile.
const CONFLICT_ATTEMPTS: usize = 20;

/// How long events are kept.
pub(super) const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

/// The outcome of an update function, given the current object.
pub(crate) enum Change {
    /// Stores this.
    Put(Accepted),
    /// Leaves it as it is.
    Nothing,
    /// Deletes the object; the response is this last state.
    Remove(Value),
    /// Stores this and deletes it right after: watchers get both events.
    Expire(Value),
}

/// The effect of an update on the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Stays,
    Goes,
    GoesMarked,
}

/// How a change ended.
#[derive(Debug)]
pub(crate) struct WriteOutcome {
    /// The object as clients of the stored encoding get it.
    pub json: Bytes,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Whether the object is new.
    pub is_new: bool,
}

impl Call<'_> {
    /// Handles a POST of an object.
    pub(crate) async fn create(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let options = WriteOptions::for_create(self.query)?;
        let done = self.create_from(bytes, &options).await?;
        if (self.kind.group, self.kind.kind) == ("", "Namespace") && !options.is_dry_run {
            // The creator of a namespace may use it at once.
            let namespace = respond::converted(self.kind, &done.json)?;
            let created = self
                .server
                .ensure_namespace_defaults(name_of(&namespace))
                .await;
            created.map_err(|error| Status::internal_error(&error))?;
        }
        let mut response = self.object_as(201, &done.json, output)?;
        respond::warn(&mut response, &done.warnings);
        Ok(response)
    }

    async fn create_from(
        &self,
        bytes: &[u8],
        options: &WriteOptions,
    ) -> Result<WriteOutcome, Status> {
        let body = write::Body {
            bytes,
            format: self.body_format()?,
        };
        let manager = self.field_manager(&options.field_manager);
        let now = self.now_text();
        let request = self.request(Part::Main, &manager, &now, options);
        self.wait_for_namespace_and_account().await?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let identity = super::identity::new();
            let mut gate = Gate::new(self, Part::Main, Operation::Create);
            let accepted = write::create(&request, body, identity.as_ref(), &mut gate)?;
            let is_generated = is_name_generated(&accepted.object);
            match self.insert(accepted, options.is_dry_run, gate).await {
                Err(status) if status.reason == "AlreadyExists" && is_generated => {
                    if attempt >= NAME_ATTEMPTS {
                        return Err(status);
                    }
                }
                other => return other,
            }
        }
    }

    /// Stores a new object.
    pub(super) async fn insert(
        &self,
        mut accepted: Accepted,
        is_dry_run: bool,
        gate: Gate<'_>,
    ) -> Result<WriteOutcome, Status> {
        if self.kind.kind == "CertificateSigningRequest" {
            certificates::set_requester(&mut accepted.object, self.user);
            signing::record_proven_addresses(self, &mut accepted.object);
        }
        let name = name_of(&accepted.object).to_owned();
        let namespace = namespace_of(&accepted.object);
        accepted.warnings.extend(self.kind.inert_warning());
        let collection = self.collection()?;
        let key = format!(
            "{}{}",
            collection.prefix(),
            key(self.kind, namespace, &name)
        );
        let mut quotas = gate.charge(&accepted.object, None, is_dry_run).await?;
        write::to_stored(self.kind, &mut accepted.object);
        let bytes = cache::encode(&accepted.object);
        let done = |json| WriteOutcome {
            json,
            warnings: accepted.warnings.clone(),
            is_new: true,
        };
        if is_dry_run {
            let short_key = &key[collection.prefix().len()..];
            if collection.get(short_key).is_some() || collection.unreadable(short_key).is_some() {
                return Err(Status::already_exists(self.kind, &name));
            }
            check_bounds(&key, &bytes)?;
            return Ok(done(bytes));
        }
        loop {
            let mut txn = Txn::new().if_absent(key.clone());
            txn = self.put(txn, key.clone(), bytes.clone());
            txn = quotas.add_to(txn);
            match self.commit(txn).await? {
                Outcome::Committed { revision } => {
                    own_events::record_inert(self.server, self.kind, &accepted.object).await;
                    return Ok(done(cache::encode_with_revision(&bytes, revision)));
                }
                Outcome::Conflict { key: lost, .. } if lost == key.as_bytes() => {
                    return Err(Status::already_exists(self.kind, &name));
                }
                Outcome::Conflict { .. } => {
                    quotas = gate.charge(&accepted.object, None, is_dry_run).await?;
                }
            }
        }
    }

    /// Handles a PUT of an object.
    pub(crate) async fn update(&self, bytes: &[u8], part: Part) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let options = WriteOptions::for_update(self.query)?;
        let body = write::Body {
            bytes,
            format: self.body_format()?,
        };
        let manager = self.field_manager(&options.field_manager);
        let now = self.now_text();
        let request = self.request(part, &manager, &now, &options);
        let exists = self.stored("").await;
        let done = match exists {
            Err(missing) if missing.code == 404 => {
                if !self.kind.strategy.put_creates || part != Part::Main {
                    return Err(missing);
                }
                self.create_by_put(body, &request, &options).await?
            }
            Err(other) => return Err(other),
            Ok(_) => {
                self.change(part, options.is_dry_run, |old, gate| {
                    write::update(&request, body, old, gate).map(Change::Put)
                })
                .await?
            }
        };
        self.written_part(part, &done, output)
    }

    /// The response to a write of an object or a subresource.
    fn written_part(
        &self,
        part: Part,
        done: &WriteOutcome,
        output: Output,
    ) -> Result<Response<Body>, Status> {
        let code = if done.is_new { 201 } else { 200 };
        let mut response = match part {
            Part::Scale => self.value_as(code, &scale_of_stored(&done.json)?, output)?,
            _ => self.object_as(code, &done.json, output)?,
        };
        respond::warn(&mut response, &done.warnings);
        Ok(response)
    }

    async fn create_by_put(
        &self,
        body: write::Body<'_>,
        request: &Request<'_>,
        options: &WriteOptions,
    ) -> Result<WriteOutcome, Status> {
        self.wait_for_namespace_and_account().await?;
        let identity = super::identity::new();
        let mut gate = Gate::new(self, Part::Main, Operation::Create);
        let accepted = write::create(request, body, identity.as_ref(), &mut gate)?;
        self.insert(accepted, options.is_dry_run, gate).await
    }

    /// Handles a PATCH.
    pub(crate) async fn patch(&self, bytes: &[u8], part: Part) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let patch = PatchType::from_content_type(self.header(CONTENT_TYPE))?;
        let options = PatchOptions::from_query(self.query, patch)?;
        let done = self.patch_from(bytes, part, patch, &options).await?;
        self.written_part(part, &done, output)
    }

    async fn patch_from(
        &self,
        bytes: &[u8],
        part: Part,
        patch: PatchType,
        options: &PatchOptions,
    ) -> Result<WriteOutcome, Status> {
        let body = write::Body {
            bytes,
            format: write::BodyFormat::Json,
        };
        let manager = self.field_manager(&options.write.field_manager);
        let now = self.now_text();
        let request = self.request(part, &manager, &now, &options.write);
        let force = options.force;
        let is_dry_run = options.write.is_dry_run;
        loop {
            let exists = match self.stored("").await {
                Ok(_) => true,
                Err(missing) if missing.code == 404 => false,
                Err(other) => return Err(other),
            };
            if !exists {
                if patch != PatchType::Apply || part != Part::Main {
                    return Err(Status::not_found(self.kind, &self.target.name));
                }
                self.wait_for_namespace_and_account().await?;
                let identity = super::identity::new();
                let mut gate = Gate::new(self, part, Operation::Create);
                let identity = identity.as_ref();
                let made = write::patch(&request, patch, force, body, None, identity, &mut gate)?;
                match self.insert(made, is_dry_run, gate).await {
                    // Another caller created it first: now this is an update.
                    Err(taken) if taken.reason == "AlreadyExists" => continue,
                    other => return other,
                }
            }
            return self
                .change(part, is_dry_run, |old, gate| {
                    let identity = super::identity::new();
                    let identity = identity.as_ref();
                    let old = Some(old);
                    let made = write::patch(&request, patch, force, body, old, identity, gate);
                    made.map(Change::Put)
                })
                .await;
        }
    }

    /// Updates the object that the path names, with retries on conflicts.
    ///
    /// `decide` gets the object in the encoding of the request's kind, with its version.
    pub(super) async fn change(
        &self,
        part: Part,
        is_dry_run: bool,
        mut decide: impl FnMut(&Value, &mut Gate<'_>) -> Result<Change, Status>,
    ) -> Result<WriteOutcome, Status> {
        let collection = Arc::clone(self.collection()?);
        let short_key = self.key();
        let full_key = format!("{}{short_key}", collection.prefix());
        let mut current = self.stored("").await?;
        for _ in 0..CONFLICT_ATTEMPTS {
            let old = respond::converted(self.kind, current.json())?;
            let mut gate = Gate::new(self, part, Operation::Update);
            let (mut accepted, end) = match decide(&old, &mut gate)? {
                Change::Put(accepted) => (accepted, End::Stays),
                Change::Nothing => return Ok(unchanged(&current, Vec::new())),
                Change::Remove(object) => (Accepted::unchecked(object), End::Goes),
                Change::Expire(object) => (Accepted::unchecked(object), End::GoesMarked),
            };
            let quotas = gate
                .charge(&accepted.object, Some(&old), is_dry_run)
                .await?;
            write::to_stored(self.kind, &mut accepted.object);
            let bytes = cache::encode(&accepted.object);
            if is_dry_run {
                check_bounds(&full_key, &bytes)?;
            }
            let revision = current.revision();
            let with_old_version = cache::encode_with_revision(&bytes, revision);
            let done = |json| WriteOutcome {
                json,
                warnings: accepted.warnings.clone(),
                is_new: false,
            };
            let is_unchanged = with_old_version == *current.json();
            if end == End::Stays && is_finished(self.kind, &accepted.object, &old) {
                // As in upstream, the response has the version that the object had.
                if is_dry_run || self.remove(&full_key, revision).await?.is_some() {
                    return Ok(done(with_old_version));
                }
            } else if is_dry_run
                || end == End::Stays && is_unchanged && !self.is_stale(&full_key).await?
            {
                return Ok(done(with_old_version));
            } else if end == End::Goes {
                if let Some(revision) = self.remove(&full_key, revision).await? {
                    return Ok(done(cache::encode_with_revision(&bytes, revision)));
                }
            } else {
                let mut txn = Txn::new().if_at(full_key.clone(), revision);
                txn.is_urgent = is_being_deleted(&accepted.object);
                let txn = quotas.add_to(self.put(txn, full_key.clone(), bytes.clone()));
                if let Outcome::Committed { mut revision } = self.commit(txn).await? {
                    if end == End::GoesMarked {
                        revision = self.remove_marked(&full_key, revision).await?;
                    }
                    return Ok(done(cache::encode_with_revision(&bytes, revision)));
                }
            }
            current = self.read_again(&full_key, &short_key).await?;
        }
        Err(Status::modified(self.kind, &self.target.name))
    }

    /// Updates the object that the path names in its encoded form, with retries on conflicts. For
    /// updates that the server makes itself and that need no admission.
    ///
    /// `decide` gets the object as clients do and returns what to store. If it fails on the cached
    /// object, it is called again with the object from the store: the cache may be a moment behind,
    /// and waiting for it would delay every caller.
    pub(super) async fn rewrite(
        &self,
        is_dry_run: bool,
        mut decide: impl FnMut(&[u8]) -> Result<Bytes, Status>,
    ) -> Result<(), Status> {
        let short_key = self.key();
        let full_key = format!("{}{short_key}", self.collection()?.prefix());
        let cached = self.collection()?.get(&short_key);
        let mut is_cached = cached.is_some();
        let mut current = match cached {
            Some(cached) => cached,
            None => self.read_again(&full_key, &short_key).await?,
        };
        for _ in 0..CONFLICT_ATTEMPTS {
            let bytes = match decide(current.json()) {
                Err(_) if is_cached => {
                    is_cached = false;
                    current = self.read_again(&full_key, &short_key).await?;
                    continue;
                }
                decided => decided?,
            };
            if is_dry_run {
                return Ok(());
            }
            let txn = Txn::new().if_at(full_key.clone(), current.revision());
            let txn = self.put(txn, full_key.clone(), bytes);
            if let Outcome::Committed { .. } = self.commit(txn).await? {
                return Ok(());
            }
            is_cached = false;
            current = self.read_again(&full_key, &short_key).await?;
        }
        Err(Status::modified(self.kind, &self.target.name))
    }

    /// The object directly from the store, after the cached one was found to be stale.
    async fn read_again(&self, full_key: &str, short_key: &str) -> Result<Arc<Object>, Status> {
        let found = self.server.store.get(full_key.as_bytes(), None).await;
        let found = found.map_err(|error| store_failure(&error))?;
        let Some(entry) = found.entry else {
            return Err(Status::not_found(self.kind, &self.target.name));
        };
        let object = self.collection()?.read(short_key.into(), &entry);
        object
            .map(Arc::new)
            .map_err(|_| Status::unreadable(full_key))
    }

    /// Deletes a key if it is still at the revision; returns the revision of the delete.
    async fn remove(&self, key: &str, revision: Revision) -> Result<Option<Revision>, Status> {
        match self.commit(Txn::remove(key.to_owned(), revision)).await? {
            Outcome::Committed { revision } => Ok(Some(revision)),
            Outcome::Conflict { .. } => Ok(None),
        }
    }

    /// Deletes an object whose grace period is over, whatever was written to it meanwhile.
    async fn remove_marked(&self, key: &str, marked: Revision) -> Result<Revision, Status> {
        let mut seen = marked;
        for _ in 0..CONFLICT_ATTEMPTS {
            if let Some(revision) = self.remove(key, seen).await? {
                return Ok(revision);
            }
            let found = self.server.store.get(key.as_bytes(), None).await;
            let found = found.map_err(|error| store_failure(&error))?;
            match found.entry {
                Some(entry) => seen = entry.mod_revision,
                // Another caller finished the deletion first.
                None => return Ok(marked),
            }
        }
        Err(Status::modified(self.kind, &self.target.name))
    }

    /// Whether the store would encode the same object differently: an update without changes is
    /// then written, so that `kubectl replace` encrypts with the current key.
    async fn is_stale(&self, key: &str) -> Result<bool, Status> {
        let stale = self.server.store.is_stale(key.as_bytes()).await;
        stale.map_err(|error| store_failure(&error))
    }

    pub(super) async fn commit(&self, txn: Txn) -> Result<Outcome, Status> {
        let outcome = self.server.store.txn(txn).await;
        let outcome = outcome.map_err(|error| store_failure(&error))?;
        if let Outcome::Committed { revision } = &outcome {
            self.server.consistency.record(self.kind, *revision);
        }
        Ok(outcome)
    }

    fn put(&self, txn: Txn, key: String, bytes: Bytes) -> Txn {
        if self.kind.storage == Some("events") {
            txn.put_for(EVENT_TTL, key, bytes)
        } else {
            txn.put(key, bytes)
        }
    }

    pub(super) fn request<'r>(
        &'r self,
        part: Part,
        manager: &'r str,
        now: &'r str,
        options: &WriteOptions,
    ) -> Request<'r> {
        Request {
            kind: self.kind,
            part,
            namespace: &self.target.namespace,
            name: &self.target.name,
            manager,
            now,
            validation: options.field_validation,
            rules: self.server.rules(),
        }
    }
}

/// The error of the store, for dry runs, which do not reach it.
fn check_bounds(key: &str, bytes: &[u8]) -> Result<(), Status> {
    bounded::check(key.as_bytes(), bytes).map_err(|error| store_failure(&error))
}

fn unchanged(current: &Object, warnings: Vec<String>) -> WriteOutcome {
    WriteOutcome {
        json: current.json().clone(),
        warnings,
        is_new: false,
    }
}

/// An object that is being deleted is removed by the update that removes its last finalizer.
///
/// Matches v1.36 `ShouldDeleteDuringUpdate`; namespaces have finalizers in their spec, too.
fn is_finished(kind: &Kind, new: &Value, old: &Value) -> bool {
    let has_some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    let is_namespace = (kind.group, kind.kind) == ("", "Namespace");
    let is_held = has_some(&new["metadata"]["finalizers"])
        || is_namespace && has_some(&new["spec"]["finalizers"]);
    let meta = &old["metadata"];
    let grace = meta["deletionGracePeriodSeconds"].as_i64();
    !is_held && !meta["deletionTimestamp"].is_null() && grace.unwrap_or_default() == 0
}

/// Whether the object is being deleted. Writes that complete the deletion pass when the store is
/// full.
fn is_being_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn is_name_generated(object: &Value) -> bool {
    let prefix = object["metadata"]["generateName"]
        .as_str()
        .unwrap_or_default();
    let name = name_of(object);
    !prefix.is_empty() && name.len() > 5 && prefix.starts_with(&name[..name.len() - 5])
}

pub(super) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}
