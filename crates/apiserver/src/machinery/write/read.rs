//! Decoding a body into an object of its kind, with defaults.

use serde_json::{Value, json};

use super::context::WriteContext;
use super::{Body, metadata};
use crate::kinds::GroupVersionKind;
use crate::machinery::conversion::round_trip;
use crate::machinery::decoding::decode;
use crate::machinery::defaulting::apply_defaults;
use crate::machinery::strategy::complete;
use crate::status::Status;

/// Decodes the body; its problems become warnings.
pub(super) fn read(context: &mut WriteContext<'_>, body: Body<'_>) -> Result<Value, Status> {
    let request = context.request;
    let of = request.body_type();
    let decoded = decode(body.bytes, body.format, of, request.validation)
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let mut object = decoded.object;
    set_defaults(of, &mut object);
    if decoded.resets_managers {
        forget_managers(&mut object);
    }
    context.warnings.extend(decoded.warnings);
    Ok(object)
}

/// Sets defaults, and applies the effects of upstream's conversion.
pub(super) fn set_defaults(of: GroupVersionKind, object: &mut Value) {
    apply_defaults(of, object);
    round_trip(of, object);
    complete(of, object);
}

/// An empty list of managers requests a reset; the canonical form of an object would have
/// no list.
pub(super) fn forget_managers(object: &mut Value) {
    metadata(object)["managedFields"] = json!([]);
}
