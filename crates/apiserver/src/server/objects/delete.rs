//! Deleting objects: immediately, gracefully, or once their finalizers are removed.
//!
//! Matches v1.36 apiserver/pkg/registry/rest/delete.go and registry/generic/registry/store.go.

use http::Response;
use plimsoll_core::object::pod::is_terminal_phase;
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::{Value, json};

use super::subresources::part;
use super::write::Change;
use crate::auth::attributes::{Attributes, Resource};
use crate::body::Body;
use crate::http::negotiation::Endpoint;
use crate::http::protobuf;
use crate::http::query::{DeleteOptions, ListOptions, Preconditions, Propagation};
use crate::kinds::{Cascade, Kind};
use crate::machinery::write::{Accepted, BodyFormat, Part};
use crate::server::request::call::{Call, time_text};
use crate::server::request::respond;
use crate::server::request::route::Target;
use crate::status::Status;
use crate::store::{self, Txn};

/// The verb needed to remove an object that cannot be decoded.
const UNSAFE_DELETE_VERB: &str = "unsafe-delete-ignore-read-errors";

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// How a delete ended.
enum Outcome {
    /// The object was deleted; its last state.
    Gone(Value),
    /// The object is marked for deletion.
    Marked,
}

impl Call<'_> {
    /// The delete options: from the body if there is one, else from the query.
    fn delete_options(&self, bytes: &[u8]) -> Result<DeleteOptions, Status> {
        if bytes.is_empty() {
            return DeleteOptions::from_query(self.query).map_err(Status::from);
        }
        // Every group has its own name for them, and clients may use any.
        let undecodable = |error: String| Status::bad_request(format!("DeleteOptions: {error}"));
        let body: Value = match self.body_format()? {
            BodyFormat::Protobuf => protobuf::decode(bytes, "v1", "DeleteOptions")
                .map_err(|error| undecodable(error.to_string()))?,
            BodyFormat::Json => {
                serde_json::from_slice(bytes).map_err(|error| undecodable(error.to_string()))?
            }
            BodyFormat::Yaml => {
                let text = String::from_utf8_lossy(bytes);
                serde_saphyr::from_str(&text).map_err(|error| undecodable(error.to_string()))?
            }
        };
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if !body.is_object() || kind != "DeleteOptions" {
            return Err(undecodable("expected an object of this kind".to_owned()));
        }
        DeleteOptions::from_body(&body).map_err(Status::from)
    }

    /// Handles a DELETE of one object.
    pub(crate) async fn delete(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let options = self.delete_options(bytes)?;
        if options.ignores_read_error {
            return self.delete_undecodable(&options).await;
        }
        let (done, outcome) = self
            .delete_object(&options, |old| self.admit_delete(old))
            .await?;
        let mut response = match outcome {
            Outcome::Gone(object) if !self.kind.strategy.returns_deleted_object => {
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                let status = Status::success(self.kind, &self.target.name, uid);
                respond::status_as(&status, self.is_pretty())
            }
            Outcome::Gone(_) | Outcome::Marked => self.object_as(200, &done.json, output)?,
        };
        respond::warn(&mut response, &self.cascade_warnings(&options));
        Ok(response)
    }

    /// Removes an object that cannot be decoded, without the checks that would need it.
    ///
    /// Matches v1.36 registry/generic/registry/corrupt_obj_deleter.go.
    async fn delete_undecodable(&self, options: &DeleteOptions) -> Result<Response<Body>, Status> {
        let Kind { group, plural, .. } = *self.kind;
        let name = self.target.name.as_str();
        let attributes = Attributes::resource(
            UNSAFE_DELETE_VERB,
            Resource {
                group,
                resource: plural,
                namespace: &self.target.namespace,
                name,
                ..Resource::default()
            },
        );
        let server = self.server;
        let allowed = server.access.with(self.user, &server.cache, |authorizer| {
            authorizer.check(self.user, &attributes)
        });
        allowed.map_err(|refusal| {
            Status::denied(
                &refusal.group,
                &refusal.resource,
                &refusal.name,
                &refusal.reason,
            )
        })?;
        self.wait_until_fresh("").await?;
        let (collection, key) = (self.collection()?, self.key());
        let Some(revision) = collection.unreadable(&key) else {
            self.stored("").await?;
            let detail = "is exclusively used to delete corrupt object(s), try again by removing this option";
            let problem = options.misplaced_read_error(detail);
            return Err(Status::invalid_kind(
                group,
                plural,
                name,
                problem.as_slice(),
            ));
        };
        let full_key = format!("{}{key}", collection.prefix());
        match self.commit(Txn::remove(full_key, revision)).await? {
            store::Outcome::Committed { .. } => {
                let status = Status::success(self.kind, name, "");
                Ok(respond::status_as(&status, self.is_pretty()))
            }
            store::Outcome::Conflict { .. } => Err(Status::modified(self.kind, name)),
        }
    }

    /// Jobs orphan their pods by default, which surprises people: warn.
    fn cascade_warnings(&self, options: &DeleteOptions) -> Vec<String> {
        let says_nothing = options.propagation.is_none() && options.orphan_dependents.is_none();
        let is_job = (self.kind.group, self.kind.kind) == ("batch", "Job");
        if !is_job || !says_nothing {
            return Vec::new();
        }
        vec![
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning"
                .to_owned(),
        ]
    }

    /// Deletes the object that the path names, as far as the options and the object allow. The
    /// action that requested it has been admitted in place of the delete.
    pub(in crate::server) async fn delete_now(
        &self,
        options: &DeleteOptions,
    ) -> Result<(), Status> {
        self.delete_object(options, |_| Ok(())).await.map(drop)
    }

    async fn delete_object(
        &self,
        options: &DeleteOptions,
        admit: impl Fn(&Value) -> Result<(), Status>,
    ) -> Result<(super::write::WriteOutcome, Outcome), Status> {
        let mut outcome = Outcome::Marked;
        let done = self
            .change(Part::Main, options.is_dry_run, |old, _| {
                self.check_preconditions(&options.preconditions, old)?;
                admit(old)?;
                let change = self.mark(old, options);
                outcome = match &change {
                    Change::Remove(object) | Change::Expire(object) => {
                        Outcome::Gone(object.clone())
                    }
                    Change::Put(_) | Change::Nothing => Outcome::Marked,
                };
                Ok(change)
            })
            .await?;
        Ok((done, outcome))
    }

    pub(in crate::server) fn check_preconditions(
        &self,
        wanted: &Preconditions,
        old: &Value,
    ) -> Result<(), Status> {
        let meta = &old["metadata"];
        let Kind { group, kind, .. } = self.kind;
        let check = |what: &str, wanted: &Option<String>, found: &Value, fate: &str| {
            let found = found.as_str().unwrap_or_default();
            match wanted {
                Some(wanted) if wanted != found => {
                    let reason = format!(
                        "the {what} in the precondition ({wanted}) does not match the {what} in \
                         record ({found}). The object might have been {fate}"
                    );
                    let name = &self.target.name;
                    Err(Status::conflict_with(group, kind, name, &reason))
                }
                _ => Ok(()),
            }
        };
        let (uid, version) = (&wanted.uid, &wanted.resource_version);
        check("UID", uid, &meta["uid"], "deleted and then recreated")?;
        let found = &meta["resourceVersion"];
        check("ResourceVersion", version, found, "modified")
    }

    /// The effect of a delete on the object in its current state.
    fn mark(&self, old: &Value, options: &DeleteOptions) -> Change {
        let is_namespace = (self.kind.group, self.kind.kind) == ("", "Namespace");
        let mut object = without_version(old);
        let is_terminating = !old["metadata"]["deletionTimestamp"].is_null();
        let grace = grace_period(self.kind, old, options.grace_period_secs);
        let finalizers = finalizers_after(self.kind, old, options);
        let has_new_finalizers = finalizers != finalizers_of(old);
        set_finalizers(&mut object, &finalizers);
        if is_namespace && !is_terminating {
            // The namespace controller empties a namespace first, with or without finalizers.
            object["metadata"]["deletionTimestamp"] = json!(self.now_text());
            part(&mut object, "status")["phase"] = json!("Terminating");
            return Change::Put(Accepted::unchecked(object));
        }
        if is_namespace && has_namespace_finalizers(old) {
            return Change::Nothing;
        }
        if is_terminating {
            return self.shorten_grace_period(old, object, options, grace, has_new_finalizers);
        }
        let is_held = !finalizers.is_empty();
        if !is_graceful(self.kind) && !is_held {
            return Change::Remove(object);
        }
        let meta = &mut object["metadata"];
        meta["deletionTimestamp"] = json!(time_text(later(self.now, grace)));
        meta["deletionGracePeriodSeconds"] = json!(grace);
        // Deletion increments the generation, so that controllers of the kind observe it.
        if let Some(generation) = meta["generation"].as_i64().filter(|g| *g > 0) {
            meta["generation"] = json!(generation + 1);
        }
        match grace == 0 && !is_held {
            true => Change::Expire(object),
            false => Change::Put(Accepted::unchecked(object)),
        }
    }

    /// A second delete may shorten the grace period, never extend it.
    fn shorten_grace_period(
        &self,
        old: &Value,
        mut object: Value,
        options: &DeleteOptions,
        grace: i64,
        has_new_finalizers: bool,
    ) -> Change {
        let meta = &old["metadata"];
        let before = meta["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or_default();
        let is_held = !finalizers_of(&object).is_empty();
        let is_shorter = options.grace_period_secs.is_some() && grace < before;
        if is_shorter {
            let at = meta["deletionTimestamp"]
                .as_str()
                .and_then(Timestamp::from_rfc3339);
            let requested = later(at.unwrap_or(self.now), -before);
            let end = later(requested, grace);
            // Time that has passed counts, but a graceful deletion stays graceful: the node still
            // stops the pod.
            let (end, grace) = match end < self.now {
                true => (self.now, grace.min(1)),
                false => (end, grace),
            };
            object["metadata"]["deletionTimestamp"] = json!(time_text(end));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            return match grace == 0 && !is_held {
                true => Change::Expire(object),
                false => Change::Put(Accepted::unchecked(object)),
            };
        }
        if before == 0 && !is_held {
            return Change::Remove(object);
        }
        // An object that is being deleted gracefully stays until then.
        match has_new_finalizers && before == 0 {
            true => Change::Put(Accepted::unchecked(object)),
            false => Change::Nothing,
        }
    }

    /// Handles a DELETE of a collection: returns the deleted objects.
    pub(crate) async fn delete_collection(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let options = self.delete_options(bytes)?;
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        if let Some(problem) = options.misplaced_read_error(detail) {
            let (group, kind) = ("meta.k8s.io", "DeleteOptions");
            return Err(Status::invalid_kind(group, kind, "", &[problem]));
        }
        let list = ListOptions::from_query(self.query, self.kind, None)?;
        let page = self.page(&list).await?;
        let targets = page.objects.iter().map(|object| Target {
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            ..self.target.clone()
        });
        let targets: Vec<Target> = targets.collect();
        let call_of = |target| Call { target, ..*self };
        // All or none: an error half way through would leave the rest deleted.
        for (target, object) in targets.iter().zip(&page.objects) {
            if let Ok(old) = object.value() {
                call_of(target).admit_delete(&old)?;
            }
        }
        for (target, object) in targets.iter().zip(&page.objects) {
            let call = call_of(target);
            match call
                .delete_object(&options, |old| call.admit_delete(old))
                .await
            {
                Ok(_) => {}
                // Another caller deleted it first.
                Err(status) if status.code == 404 => {}
                // It has become undecodable meanwhile, and is no longer part of the collection.
                Err(_) if self.collection()?.unreadable(object.key()).is_some() => {}
                Err(status) => return Err(status),
            }
        }
        let list = self.list_value(&page);
        let mut response = self.value_as(200, &list, output)?;
        respond::warn(&mut response, &self.cascade_warnings(&options));
        Ok(response)
    }
}

/// Whether objects of the kind are deleted gracefully.
fn is_graceful(kind: &Kind) -> bool {
    (kind.group, kind.kind) == ("", "Pod")
}

/// The grace period of the object.
fn grace_period(kind: &Kind, object: &Value, requested: Option<i64>) -> i64 {
    if !is_graceful(kind) {
        return 0;
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    let is_placed = spec["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let has_ended = status["phase"].as_str().is_some_and(is_terminal_phase);
    if !is_placed || has_ended {
        return 0;
    }
    let wanted = requested.or_else(|| spec["terminationGracePeriodSeconds"].as_i64());
    match wanted.unwrap_or_default() {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// The finalizers that the propagation policy requires.
fn finalizers_after(kind: &Kind, old: &Value, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers = finalizers_of(old);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let cascade = kind.strategy.default_cascade;
    if cascade == Cascade::Unsupported {
        return finalizers;
    }
    let says = match (options.orphan_dependents, options.propagation) {
        (Some(true), _) => Some(Propagation::Orphan),
        (Some(false), _) => Some(Propagation::Background),
        (None, policy) => policy,
    };
    let (orphan, foreground) = match says {
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        // Existing finalizers express a propagation policy too.
        None if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND)),
        None => (cascade == Cascade::Orphan, false),
    };
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    finalizers
}

fn finalizers_of(object: &Value) -> Vec<String> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    finalizers.map(str::to_owned).collect()
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        if finalizers.is_empty() {
            meta.remove("finalizers");
        } else {
            meta.insert("finalizers".to_owned(), json!(finalizers));
        }
    }
}

/// A namespace is also held by the finalizers in its spec.
fn has_namespace_finalizers(namespace: &Value) -> bool {
    let finalizers = namespace["spec"]["finalizers"].as_array();
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

fn without_version(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
    }
    object
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    let nanos = seconds.saturating_mul(1_000_000_000);
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}
