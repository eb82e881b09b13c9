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

/// How often a generated name is tried anew when it is taken.
const NAME_ATTEMPTS: usize = 8;

/// How often a change is tried anew when somebody else changed the object meanwhile.
const CONFLICT_ATTEMPTS: usize = 20;

/// How long events are kept.
pub(super) const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

/// What a change does with an object, given as it is.
pub(crate) enum Change {
    /// Stores this.
    Put(Accepted),
    /// Leaves it as it is.
    Nothing,
    /// Removes it; the answer is the object with these last words.
    Remove(Value),
    /// Stores this and removes it right after: those who watch are told of both.
    Expire(Value),
}

/// What becomes of the object after a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Stays,
    Goes,
    GoesMarked,
}

/// How a change ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// The object as clients of the stored encoding get it.
    pub json: Bytes,
    /// What the caller should be told.
    pub warnings: Vec<String>,
    /// Whether the object is new.
    pub is_new: bool,
}

impl Call<'_> {
    /// Answers a POST of an object.
    pub(crate) async fn create(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let options = WriteOptions::for_create(self.query)?;
        let done = self.create_from(bytes, &options).await?;
        if (self.kind.group, self.kind.kind) == ("", "Namespace") && !options.is_dry_run {
            // Whoever made a namespace may use it at once.
            let namespace = respond::converted(self.kind, &done.json)?;
            let furnished = self.server.furnish_namespace(name_of(&namespace)).await;
            furnished.map_err(|error| Status::internal_error(&error))?;
        }
        let mut response = self.object_as(201, &done.json, output)?;
        respond::warn(&mut response, &done.warnings);
        Ok(response)
    }

    async fn create_from(&self, bytes: &[u8], options: &WriteOptions) -> Result<Done, Status> {
        let body = write::Body {
            bytes,
            format: self.body_format()?,
        };
        let manager = self.field_manager(&options.field_manager);
        let now = self.now_text();
        let request = self.request(Part::Main, &manager, &now, options);
        self.see_surroundings().await?;
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
    ) -> Result<Done, Status> {
        if self.kind.kind == "CertificateSigningRequest" {
            certificates::set_requester(&mut accepted.object, self.user);
            signing::note_proven_addresses(self, &mut accepted.object);
        }
        let name = name_of(&accepted.object).to_owned();
        let namespace = namespace_of(&accepted.object);
        let collection = self.collection()?;
        let key = format!(
            "{}{}",
            collection.prefix(),
            key(self.kind, namespace, &name)
        );
        let mut quotas = gate.charge(&accepted.object, None, is_dry_run).await?;
        write::to_stored(self.kind, &mut accepted.object);
        let bytes = cache::encode(&accepted.object);
        let done = |json| Done {
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

    /// Answers a PUT of an object.
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

    /// The answer to a write of an object or a part of it.
    fn written_part(
        &self,
        part: Part,
        done: &Done,
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
    ) -> Result<Done, Status> {
        self.see_surroundings().await?;
        let identity = super::identity::new();
        let mut gate = Gate::new(self, Part::Main, Operation::Create);
        let accepted = write::create(request, body, identity.as_ref(), &mut gate)?;
        self.insert(accepted, options.is_dry_run, gate).await
    }

    /// Answers a PATCH.
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
    ) -> Result<Done, Status> {
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
                self.see_surroundings().await?;
                let identity = super::identity::new();
                let mut gate = Gate::new(self, part, Operation::Create);
                let identity = identity.as_ref();
                let made = write::patch(&request, patch, force, body, None, identity, &mut gate)?;
                match self.insert(made, is_dry_run, gate).await {
                    // Somebody else was faster: now it is a change.
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

    /// Changes the object that the path names, again and again until nobody else interferes.
    ///
    /// `decide` is given the object in the encoding of the request's kind, with its version.
    pub(super) async fn change(
        &self,
        part: Part,
        is_dry_run: bool,
        mut decide: impl FnMut(&Value, &mut Gate<'_>) -> Result<Change, Status>,
    ) -> Result<Done, Status> {
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
            let done = |json| Done {
                json,
                warnings: accepted.warnings.clone(),
                is_new: false,
            };
            let is_unchanged = with_old_version == *current.json();
            if end == End::Stays && is_finished(self.kind, &accepted.object, &old) {
                // Upstream answers with the version that the object had.
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
                txn.is_urgent = is_going(&accepted.object);
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

    /// Changes the object that the path names as it is encoded, again and again until nobody else
    /// interferes. For changes that the server makes itself and nobody has to admit.
    ///
    /// `decide` is given the object as clients get it and tells what is to be stored. What it
    /// refuses on the word of the cache it is asked again with what the store has: the cache may be
    /// a moment behind, and waiting for it would make everybody wait who need not.
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

    /// The object straight from the store, after the cache's was found to be old.
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

    /// Removes a key if it is still at the revision; tells the revision of the removal.
    async fn remove(&self, key: &str, revision: Revision) -> Result<Option<Revision>, Status> {
        match self.commit(Txn::remove(key.to_owned(), revision)).await? {
            Outcome::Committed { revision } => Ok(Some(revision)),
            Outcome::Conflict { .. } => Ok(None),
        }
    }

    /// Removes an object whose time is up, whatever else was written to it meanwhile.
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
                // Whoever finishes deletions was faster.
                None => return Ok(marked),
            }
        }
        Err(Status::modified(self.kind, &self.target.name))
    }

    /// Whether the store would keep the same object in another form: a write that changes nothing is
    /// one then, so that `kubectl replace` encrypts with the key of today.
    async fn is_stale(&self, key: &str) -> Result<bool, Status> {
        let stale = self.server.store.is_stale(key.as_bytes()).await;
        stale.map_err(|error| store_failure(&error))
    }

    pub(super) async fn commit(&self, txn: Txn) -> Result<Outcome, Status> {
        let outcome = self.server.store.txn(txn).await;
        let outcome = outcome.map_err(|error| store_failure(&error))?;
        if let Outcome::Committed { revision } = &outcome {
            self.server.decisive.note(self.kind, *revision);
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

/// The refusal of the store, for dry runs, which do not ask it.
fn check_bounds(key: &str, bytes: &[u8]) -> Result<(), Status> {
    bounded::check(key.as_bytes(), bytes).map_err(|error| store_failure(&error))
}

fn unchanged(current: &Object, warnings: Vec<String>) -> Done {
    Done {
        json: current.json().clone(),
        warnings,
        is_new: false,
    }
}

/// An object that is being deleted goes with the change that takes its last finalizer away.
///
/// Matches v1.36 `ShouldDeleteDuringUpdate`; namespaces have finalizers of their own besides.
fn is_finished(kind: &Kind, new: &Value, old: &Value) -> bool {
    let has_some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    let is_namespace = (kind.group, kind.kind) == ("", "Namespace");
    let is_held = has_some(&new["metadata"]["finalizers"])
        || is_namespace && has_some(&new["spec"]["finalizers"]);
    let meta = &old["metadata"];
    let grace = meta["deletionGracePeriodSeconds"].as_i64();
    !is_held && !meta["deletionTimestamp"].is_null() && grace.unwrap_or_default() == 0
}

/// Whether the object is being deleted. What leads to its end goes on though the store is full.
fn is_going(object: &Value) -> bool {
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
