//! Creating objects.
//!
//! The order of a create, and where its steps are:
//!
//! 1. decode and set defaults, match the path, track field managers: `machinery::write::create`;
//! 2. mutating admission: `Gate::admit`, in `server::admission`;
//! 3. the kind's strategy and validation: `machinery::{strategy, validation}`;
//! 4. validating admission: `Gate::check`; 2 to 4 are the function `finish` of `machinery::write::create`;
//! 5. quotas: `Gate::charge`;
//! 6. the store: object and quotas in one transaction.

use http::Response;
use serde_json::Value;

use super::identity;
use super::write::{WriteOutcome, check_bounds, name_of, namespace_of};
use crate::auth::node::Operation;
use crate::body::Body;
use crate::cache;
use crate::http::negotiation::Endpoint;
use crate::http::query::WriteOptions;
use crate::machinery::strategy::certificates;
use crate::machinery::write::{self, Accepted, Part};
use crate::server::admission::Gate;
use crate::server::background::{own_events, signing};
use crate::server::request::call::{Call, key};
use crate::server::request::respond;
use crate::status::Status;
use crate::store::{Outcome, Txn};

/// How often a taken generated name is replaced by another.
const NAME_ATTEMPTS: usize = 8;

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
            let identity = identity::new();
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
    pub(in crate::server) async fn insert(
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
}

fn is_name_generated(object: &Value) -> bool {
    let prefix = object["metadata"]["generateName"]
        .as_str()
        .unwrap_or_default();
    let name = name_of(object);
    !prefix.is_empty() && name.len() > 5 && prefix.starts_with(&name[..name.len() - 5])
}
