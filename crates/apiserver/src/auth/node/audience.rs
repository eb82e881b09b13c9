//! The audiences of tokens that a kubelet may request: those that its pods mount tokens for.

use plimsoll_core::problem::{joined, quoted};
use serde_json::Value;

use super::references;
use super::restriction::Write;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::authorize::{Authorizer, Decision};
use crate::auth::identity::User;
use crate::auth::{Objects, list, text};

/// Whether the kubelet may request a token with these audiences for this pod. The error is the
/// text of the 403.
///
/// Matches v1.36 plugin/pkg/admission/noderestriction, `validateNodeServiceAccountAudience`;
/// in-tree volumes that upstream translates to CSI drivers are not followed.
pub(super) fn check_audience(
    user: &User,
    write: &Write<'_>,
    pod: &Value,
    objects: &dyn Objects,
    authorizer: &Authorizer,
) -> Result<(), String> {
    let audience = match list(write.object, "/spec/audiences") {
        [] => "",
        [only] => only.as_str().unwrap_or_default(),
        _ => return Err("node may only request 0 or 1 audiences".to_owned()),
    };
    let shown = quoted(audience);
    let is_mounted = is_audience_of_pod(pod, write.namespace, audience, objects);
    if is_mounted.map_err(|error| format!("error validating audience {shown}: {error}"))? {
        return Ok(());
    }
    let resource = Resource {
        resource: audience,
        namespace: write.namespace,
        name: write.name,
        ..Resource::default()
    };
    let attributes = Attributes::resource("request-serviceaccounts-token-audience", resource);
    match authorizer.authorize(user, &attributes) {
        Decision::Allow(_) => Ok(()),
        Decision::Deny { .. } => Err(format!(
            "audience {shown} not found in pod spec volume, {} is not authorized to request \
             tokens for this audience",
            user.name
        )),
    }
}

fn is_audience_of_pod(
    pod: &Value,
    namespace: &str,
    audience: &str,
    objects: &dyn Objects,
) -> Result<bool, String> {
    let mut errors = Vec::new();
    for volume in list(pod, "/spec/volumes") {
        let tokens = list(volume, "/projected/sources").iter();
        let mut tokens = tokens.map(|source| &source["serviceAccountToken"]);
        if tokens.any(|token| !token.is_null() && text(token, "/audience") == audience) {
            return Ok(true);
        }
        let driver = match references::claim_of_volume(pod, volume) {
            Some(claim) => driver_of_claim(namespace, &claim, objects),
            None => Ok(text(volume, "/csi/driver").to_owned()),
        };
        match driver.and_then(|driver| is_audience_of_driver(&driver, audience, objects)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(false),
        false => Err(joined(errors)),
    }
}

/// The CSI driver of a claim; empty if there is none.
fn driver_of_claim(namespace: &str, name: &str, objects: &dyn Objects) -> Result<String, String> {
    let claim = objects.object("", "persistentvolumeclaims", namespace, name);
    let claim = claim.ok_or_else(|| missing("persistentvolumeclaim", name))?;
    let name = text(&claim, "/spec/volumeName");
    let volume = objects.object("", "persistentvolumes", "", name);
    let volume = volume.ok_or_else(|| missing("persistentvolume", name))?;
    Ok(text(&volume, "/spec/csi/driver").to_owned())
}

fn is_audience_of_driver(
    name: &str,
    audience: &str,
    objects: &dyn Objects,
) -> Result<bool, String> {
    if name.is_empty() {
        return Ok(false);
    }
    let driver = objects.object("storage.k8s.io", "csidrivers", "", name);
    let driver = driver.ok_or_else(|| missing("csidriver.storage.k8s.io", name))?;
    let requests = list(&driver, "/spec/tokenRequests");
    Ok(requests
        .iter()
        .any(|request| text(request, "/audience") == audience))
}

fn missing(kind: &str, name: &str) -> String {
    format!("{kind} {} not found", quoted(name))
}
