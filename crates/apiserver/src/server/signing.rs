//! Signing requests: which are approved without a person, and what the authority signs.
//!
//! Nodes that join ask for their certificates this way. Upstream has controllers for it; they need
//! the authority's key, which this server does not give away.

use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::call::{Call, time_text};
use super::{Server, respond};
use crate::auth::Objects;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::authorize::Decision as Access;
use crate::auth::identity::User;
use crate::auth::signer::{self, Decision, Signature};
use crate::cache::{self, Object};
use crate::kinds;
use crate::machinery::strategy::certificates;
use crate::machinery::write::Part;
use crate::store::Txn;

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";

/// Whether a user may do something with signers or with a part of requests.
fn may(server: &Server, user: &User, verb: &str, resource: Resource<'_>) -> bool {
    let attributes = Attributes::resource(verb, resource);
    let decided = server
        .access
        .with(user, &server.cache, |all| all.authorize(user, &attributes));
    matches!(decided, Access::Allow(_))
}

/// The admission of signing requests: who asks, who may approve, who may sign.
pub(crate) fn admit(
    call: &Call<'_>,
    part: Part,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), String> {
    let may_with_signer = |verb: &'static str| {
        move |signer: &str| {
            let resource = Resource {
                group: GROUP,
                resource: "signers",
                name: signer,
                ..Resource::default()
            };
            may(call.server, call.user, verb, resource)
        }
    };
    match (part, old) {
        (_, None) => signer::check_subject(object),
        (Part::Approval, Some(old)) => {
            certificates::stamp_conditions(object, old, &call.now_text());
            signer::check_approver(old, may_with_signer("approve"))
        }
        (Part::Status, Some(old)) => {
            certificates::stamp_conditions(object, old, &call.now_text());
            signer::check_status_writer(object, old, may_with_signer("sign"))
        }
        _ => Ok(()),
    }
}

/// Looks at every request as it appears and changes, and again when the node appears or changes
/// that asks for a serving certificate, until the server stops.
pub(super) fn follow(server: &Arc<Server>) {
    tokio::spawn(run(Arc::downgrade(server)));
}

async fn run(server: Weak<Server>) {
    loop {
        let Some(strong) = server.upgrade() else {
            return;
        };
        let collection = |group: &str, plural: &str| {
            let kind = kinds::by_resource(group, "v1", plural)?;
            strong.cache.collection(kind).cloned()
        };
        let (Some(requests), Some(nodes)) = (collection(GROUP, PLURAL), collection("", "nodes"))
        else {
            return;
        };
        // From before the requests are read: a node that appears meanwhile is seen afterwards.
        let (_, mut node_watcher) = nodes.list_and_watch("");
        let (objects, mut watcher) = requests.list_and_watch("");
        let mut stop = strong.stopping();
        for object in objects {
            strong.look_at_request(&object).await;
        }
        drop(strong);
        loop {
            let (batch, is_of_nodes) = tokio::select! {
                batch = watcher.next() => (batch, false),
                batch = node_watcher.next() => (batch, true),
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(batch) = batch else { break };
            let Some(server) = server.upgrade() else {
                return;
            };
            for event in batch {
                let Some((cache::Sort::Added | cache::Sort::Modified, object)) =
                    event.seen(|_| true)
                else {
                    continue;
                };
                if !is_of_nodes {
                    server.look_at_request(object).await;
                    continue;
                }
                for request in requests.list("", None) {
                    if signer::waits_for_node(&request.value(), object.name()) {
                        server.look_at_request(&request).await;
                    }
                }
            }
        }
    }
}

impl Server {
    async fn look_at_request(&self, object: &Object) {
        let csr = object.value();
        let requester = requester_of(&csr);
        let may_create = |subresource: &str| {
            let resource = Resource {
                group: GROUP,
                resource: PLURAL,
                subresource,
                ..Resource::default()
            };
            may(self, &requester, "create", resource)
        };
        let node = |name: &str| self.object("", "nodes", "", name);
        let decision = match signer::decide(&csr, may_create) {
            Decision::Ignore => signer::decide_serving(&csr, node, may_create),
            approved => approved,
        };
        let changed = match decision {
            Decision::Approve(message) => Some(with_condition(&csr, signer::approval(message))),
            Decision::Ignore => match signer::sign(&self.authority, &csr, respond::now()) {
                Ok(Signature::Issued(pem)) => {
                    let mut csr = csr.clone();
                    let encoded = k8s_openapi::ByteString(pem.into_bytes());
                    csr["status"]["certificate"] = json!(encoded);
                    Some(csr)
                }
                Ok(Signature::Failed(message)) => {
                    Some(with_condition(&csr, signer::failure(&message)))
                }
                Ok(Signature::NotDue) => None,
                Err(error) => {
                    tracing::warn!(name = object.name(), %error, "request not signed");
                    None
                }
            },
        };
        if let Some(changed) = changed {
            self.store_request(object, changed).await;
        }
    }

    /// A change meanwhile brings the request here again.
    async fn store_request(&self, object: &Object, mut csr: Value) {
        if let Some(meta) = csr["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let key = format!("{}{PLURAL}/{}", cache::ROOT, object.key());
        let txn = Txn::update(key, object.revision(), cache::encode(&csr));
        if let Err(error) = self.store.txn(txn).await {
            tracing::warn!(name = object.name(), %error, "request not stored");
        }
    }
}

/// Who made a request, as it was noted down then.
fn requester_of(csr: &Value) -> User {
    let spec = &csr["spec"];
    let texts = |list: &Value| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: spec["username"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect(),
    }
}

fn with_condition(csr: &Value, condition: Value) -> Value {
    let mut changed = csr.clone();
    match &mut changed["status"]["conditions"] {
        Value::Array(conditions) => conditions.push(condition),
        other => *other = json!([condition]),
    }
    certificates::stamp_conditions(&mut changed, csr, &time_text(respond::now()));
    changed
}
