//! A write by a named manager: the object that results, with its `managedFields`.
//!
//! Matches v1.36 apimachinery/pkg/util/managedfields/internal: the chain of managers around the
//! updater, read here from the outside in.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::atom::Atom;
use super::cap::cap_updaters;
use super::conflict::{self, Conflict};
use super::created::{FieldKeys, fields_of_created};
use super::event;
use super::last_applied;
use super::managers::{Manager, Managers, Operation, Owned, encode_with};
use super::reset::ResetFields;
use super::set::FieldSet;
use super::updater::{Endpoint, Force};
use super::validate::{Duplicates, validate};
use crate::machinery::schema::canonical::empty;
use crate::machinery::schema::decode::Source;
use crate::machinery::schema::{StructId, decode, schema};
use crate::status::Status;

/// The manager of fields that existed before tracking began.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager of an anonymous write.
const UNKNOWN: &str = "unknown";

/// Tracks the managers of one kind's endpoint.
#[derive(Clone, Debug)]
pub struct FieldManager {
    kind: StructId,
    api_version: String,
    subresource: String,
    reset: ResetFields,
}

impl FieldManager {
    /// For the endpoint of a kind; `subresource` is empty for the object itself. `None` for kinds
    /// that the table does not have.
    pub fn new(api_version: &str, kind: &str, subresource: &str) -> Option<FieldManager> {
        Some(FieldManager {
            kind: schema().kind(api_version, kind)?,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            reset: ResetFields::of(api_version, kind, subresource),
        })
    }

    /// A create, update or client-side patch: `new` with its `managedFields`.
    ///
    /// `live` is the object before, `None` for a create. Both have been decoded and defaulted.
    /// `now` is RFC 3339. Upstream never fails here: an object whose fields cannot be tracked is
    /// stored without `managedFields`.
    pub fn update(&self, live: Option<&Value>, mut new: Value, manager: &str, now: &str) -> Value {
        let managers = self.adopted(self.managers_for_update(live, &new));
        set_managed_fields(&mut new, None);
        // Objects that were untracked before the first apply stay untracked until then.
        if managers.0.is_empty() && live.is_some() {
            return new;
        }
        // No manager can own `managedFields`, so those of the live object may stay.
        let before = live.unwrap_or_else(|| empty(self.kind));
        let is_sound = validate(self.atom(), &new, Duplicates::Allow).is_ok()
            && (live.is_none() || validate(self.atom(), before, Duplicates::Allow).is_ok());
        if is_sound
            && live.is_none()
            && managers.0.is_empty()
            && let ResetFields::Exclude(excluded) = &self.reset
        {
            let fields = fields_of_created(self.atom(), before, &new, excluded, &NEVER_OWNED_KEYS);
            if !fields.is_empty() {
                let writer = self.writer(manager, Operation::Update, Some(now));
                let entry = encode_with(writer, Value::Object(fields));
                set_managed_fields(&mut new, Some(Value::Array(vec![entry])));
            }
        } else if is_sound {
            let managers = self.track_update(before, &new, managers, manager, now);
            let managers = self.released(cap_updaters(managers));
            set_managed_fields(&mut new, managers.encode());
        }
        new
    }

    /// A server-side apply of `applied`: the merged object, decoded, with its `managedFields`.
    ///
    /// `live` is the object before, `None` if there is none. Defaulting comes after.
    pub fn apply(
        &self,
        live: Option<&Value>,
        applied: &Value,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<Value, Status> {
        self.check_applied(applied)?;
        let nothing = empty(self.kind);
        let tracked = live.unwrap_or(nothing);
        let managers = Managers::decode(managed_fields(tracked)).map_err(|error| {
            Status::unexpected(format!("failed to decode managed fields: {error}"))
        })?;
        let managers = self.adopted(managers);
        let live = without_managed_fields(tracked);
        self.check_typed(applied, &live)?;
        let managers = if managers.0.is_empty() {
            self.track_update(nothing, &live, managers, BEFORE_FIRST_APPLY, now)
        } else {
            managers
        };
        let force = if force { Force::Yes } else { Force::No };
        let attempt = |force| self.try_apply(&live, applied, managers.clone(), manager, force, now);
        let (new, managers) = match attempt(force) {
            Err(conflicts) if manager == last_applied::KUBECTL => {
                match self.remaining_conflicts(&live, conflicts) {
                    conflicts if conflicts.is_empty() => attempt(Force::Yes),
                    conflicts => Err(conflicts),
                }
            }
            other => other,
        }
        .map_err(|conflicts| conflict::refuse(&conflicts))?;
        let mut new = self.read(new, applied)?;
        if manager == last_applied::KUBECTL {
            last_applied::refresh(&mut new, applied);
        }
        set_managed_fields(&mut new, self.released(managers).encode());
        Ok(new)
    }

    /// With the managers of the other encoding, if the kind has one.
    fn adopted(&self, mut managers: Managers) -> Managers {
        if self.is_event() {
            event::adopt(&mut managers, &self.api_version);
        }
        managers
    }

    fn released(&self, mut managers: Managers) -> Managers {
        if self.is_event() {
            event::release(&mut managers);
        }
        managers
    }

    fn is_event(&self) -> bool {
        schema().get(self.kind).name == "Event"
    }

    fn atom(&self) -> Atom {
        Atom::of_kind(self.kind)
    }

    fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            atom: self.atom(),
            api_version: &self.api_version,
            reset: &self.reset,
        }
    }

    fn writer(&self, name: &str, operation: Operation, time: Option<&str>) -> Owned {
        let name = if name.is_empty() { UNKNOWN } else { name };
        Owned {
            manager: Manager {
                name: name.to_owned(),
                operation,
                api_version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => self.api_version.clone(),
                },
                subresource: self.subresource.clone(),
            },
            set: FieldSet::default(),
            api_version: self.api_version.clone(),
            time: time.map(str::to_owned),
        }
    }

    /// The managers before an update: those in the request, else those of the live object.
    /// Through a subresource they cannot be written.
    fn managers_for_update(&self, live: Option<&Value>, new: &Value) -> Managers {
        let of_live = || {
            let entries = live.map(managed_fields).unwrap_or_default();
            Managers::decode(entries).unwrap_or_default()
        };
        if !self.subresource.is_empty() {
            return of_live();
        }
        let sent = new.get("metadata").and_then(|m| m.get("managedFields"));
        if is_reset(sent) {
            return Managers::default();
        }
        match Managers::decode(managed_fields(new)) {
            Ok(managers) if !managers.0.is_empty() => managers,
            _ => of_live(),
        }
    }

    /// Changed fields go to a separate manager first, which shows whether the update
    /// changed anything at all; only then does the writer's entry take them over with a new time.
    fn track_update(
        &self,
        live: &Value,
        new: &Value,
        mut managers: Managers,
        manager: &str,
        now: &str,
    ) -> Managers {
        if managers.0.is_empty() {
            let set = self.endpoint().changed(live, new).difference(&NEVER_OWNED);
            if !set.is_empty() {
                let writer = self.writer(manager, Operation::Update, Some(now));
                managers.insert(Owned { set, ..writer });
            }
            return managers;
        }
        let current = Owned {
            manager: Manager {
                name: "current-operation".to_owned(),
                ..self.writer("", Operation::Update, None).manager
            },
            ..self.writer("", Operation::Update, None)
        };
        let current_id = current.manager.identifier();
        self.endpoint().update(live, new, &mut managers, current);
        if let Some(changed) = managers.0.remove(&current_id) {
            let set = changed.set.difference(&NEVER_OWNED);
            if !set.is_empty() {
                let mut writer = self.writer(manager, Operation::Update, Some(now));
                writer.set = match managers.0.get(&writer.manager.identifier()) {
                    Some(before) => set.union(before.set.clone()),
                    None => set,
                };
                managers.insert(writer);
            }
        }
        managers
    }

    fn try_apply(
        &self,
        live: &Value,
        applied: &Value,
        mut managers: Managers,
        manager: &str,
        force: Force,
        now: &str,
    ) -> Result<(Value, Managers), Vec<Conflict>> {
        let mut writer = self.writer(manager, Operation::Apply, None);
        let id = writer.manager.identifier();
        writer.time = managers.0.get(&id).and_then(|owned| owned.time.clone());
        let new = self
            .endpoint()
            .apply(live, applied, &mut managers, writer, force)?;
        if let Some(owned) = managers.0.get_mut(&id) {
            owned.set = std::mem::take(&mut owned.set).difference(&NEVER_OWNED);
            // An apply that changes nothing leaves the time as it is.
            if new.is_some() {
                owned.time = Some(now.to_owned());
            }
        }
        managers.0.retain(|_, owned| !owned.set.is_empty());
        Ok((new.unwrap_or_else(|| live.clone()), managers))
    }

    /// Without the fields that client-side apply wrote.
    fn remaining_conflicts(&self, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
        match last_applied::allowed_conflicts(self.atom(), &self.api_version, live) {
            None => conflicts,
            Some(allowed) => conflicts
                .into_iter()
                .filter(|conflict| !allowed.has(&conflict.path))
                .collect(),
        }
    }

    fn check_applied(&self, applied: &Value) -> Result<(), Status> {
        let text = |key: &str| applied.get(key).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if schema().kind(version, kind) != Some(self.kind) {
            return Err(Status::bad_request(format!(
                "invalid object type: {}",
                show_kind(version, kind)
            )));
        }
        let metadata = applied.get("metadata");
        if metadata.is_some_and(|m| m.get("managedFields").is_some_and(|f| !f.is_null())) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        Ok(())
    }

    fn check_typed(&self, applied: &Value, live: &Value) -> Result<(), Status> {
        validate(self.atom(), applied, Duplicates::Refuse).map_err(|error| {
            let object = show_object(applied);
            Status::unexpected(format!(
                "failed to create typed patch object ({object}): {error}"
            ))
        })?;
        validate(self.atom(), live, Duplicates::Allow).map_err(|error| {
            let object = show_object(live);
            Status::unexpected(format!(
                "failed to create typed live object ({object}): {error}"
            ))
        })
    }

    /// The merged object as Go's structs represent it.
    fn read(&self, merged: Value, applied: &Value) -> Result<Value, Status> {
        match decode(self.kind, &merged, Source::Maps) {
            Ok(decoded) => Ok(decoded.value),
            Err(error) => Err(Status::unexpected(format!(
                "failed to convert new object ({}) to proper version: unable to convert unstructured object to {}: {error}",
                show_object(applied),
                show_kind(&self.api_version, schema().get(self.kind).name,),
            ))),
        }
    }
}

/// Fields that the server or the name sets, not a manager.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

static NEVER_OWNED_KEYS: LazyLock<FieldKeys> = LazyLock::new(|| FieldKeys::of(&NEVER_OWNED));

/// An empty list, or one empty entry: the client requests a reset.
fn is_reset(sent: Option<&Value>) -> bool {
    match sent {
        Some(Value::Array(entries)) => match entries.as_slice() {
            [] => true,
            [Value::Object(only)] => only.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

fn managed_fields(object: &Value) -> &[Value] {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("managedFields"))
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    set_managed_fields(&mut object, None);
    object
}

fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Value::Object(object) = object else {
        return;
    };
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(metadata) = metadata else {
        return;
    };
    match entries {
        Some(entries) => metadata.insert("managedFields".to_owned(), entries),
        None => metadata.remove("managedFields"),
    };
}

/// `ns/name; /v1, Kind=Pod`, as Go prints an object's identity.
fn show_object(object: &Value) -> String {
    let text = |key: &str| {
        let metadata = object.get("metadata");
        let value = metadata.and_then(|metadata| metadata.get(key));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let top = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    format!(
        "{}/{}; {}",
        text("namespace"),
        text("name"),
        show_kind(top("apiVersion"), top("kind"))
    )
}

/// `apps/v1, Kind=Deployment`; the core group is empty.
fn show_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

/// Whether `entries` could be a `metadata.managedFields`.
pub fn check_managed_fields(entries: &[Value]) -> Result<(), String> {
    Managers::decode(entries).map(|_| ())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::machinery::schema::{Shape, Type, canonicalize};

    /// Some object of a type, the same for the same seed.
    fn some_value(ty: &Type, chance: &mut fastrand::Rng, depth: usize) -> Value {
        let text = ["", "a", "b\"", "é"][chance.usize(..4)];
        match &ty.shape {
            Shape::Bool => Value::from(chance.bool()),
            Shape::Int(_) => Value::from(chance.i32(0..3)),
            Shape::Float => Value::from(0.5),
            Shape::String | Shape::Bytes | Shape::Time | Shape::MicroTime => Value::from(text),
            Shape::Quantity => Value::from("100m"),
            Shape::IntOrString if chance.bool() => Value::from(8080),
            Shape::IntOrString => Value::from(text),
            Shape::Raw => serde_json::json!({"any": [text]}),
            Shape::Pointer(inner) => some_value(inner, chance, depth),
            Shape::List(item) => {
                let count = chance.usize(..3).min(depth);
                (0..count)
                    .map(|_| some_value(item, chance, depth - 1))
                    .collect()
            }
            Shape::Map(of) => {
                let count = chance.usize(..3).min(depth);
                let members = (0..count).map(|at| {
                    let name = ["a", "b/c"][at].to_owned();
                    (name, some_value(of, chance, depth - 1))
                });
                members.collect()
            }
            Shape::Struct(id) => some_struct(*id, chance, depth),
        }
    }

    fn some_struct(id: StructId, chance: &mut fastrand::Rng, depth: usize) -> Value {
        let mut members = Map::new();
        for field in &schema().get(id).fields {
            if depth > 0 && chance.usize(..5) < 2 {
                let value = some_value(&field.ty, chance, depth - 1);
                members.insert(field.name.to_owned(), value);
            }
        }
        Value::Object(members)
    }

    proptest! {
        #[test]
        fn creator_owns_same_fields_as_comparison_with_empty_object(seed: u64) {
            let chance = &mut fastrand::Rng::with_seed(seed);
            for (version, kind) in schema().kinds() {
                let fields = FieldManager::new(version, kind, "").unwrap();
                let mut new = some_struct(fields.kind, chance, 6);
                canonicalize(fields.kind, &mut new);
                set_managed_fields(&mut new, None);
                if validate(fields.atom(), &new, Duplicates::Allow).is_err() {
                    continue;
                }
                let nothing = empty(fields.kind);
                let compared = fields.endpoint().changed(nothing, &new);
                let compared = compared.difference(&NEVER_OWNED);
                let ResetFields::Exclude(excluded) = &fields.reset else {
                    panic!("{kind} can be created");
                };
                let (atom, never) = (fields.atom(), &*NEVER_OWNED_KEYS);
                let walked = fields_of_created(atom, nothing, &new, excluded, never);
                prop_assert_eq!(walked.is_empty(), compared.is_empty(), "{}", kind);
                prop_assert_eq!(Value::Object(walked), compared.to_fields_v1(), "{} {}", kind, new);
            }
        }
    }
}
