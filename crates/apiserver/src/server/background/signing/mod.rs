//! Signing requests: automatic approval, and signing by the authority.
//!
//! Joining nodes request their certificates this way. Upstream has controllers for it; they need
//! the authority's key, which does not leave this server.

mod index;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::{Arc, Weak};

use futures::FutureExt;
use plimsoll_client::supervision::Weight;
use serde_json::{Value, json};

use self::index::{Addresses, Claims};
use crate::auth::Objects;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::authorize::Decision as Access;
use crate::auth::identity::User;
use crate::auth::signer::{self, Decision, NodeNameConflict, Signature};
use crate::auth::signing_request::SigningRequest;
use crate::cache::{self, Object};
use crate::kinds;
use crate::machinery::strategy::certificates;
use crate::machinery::write::Part;
use crate::server::Server;
use crate::server::request::call::{Call, time_text};
use crate::server::request::handle::Origin;
use crate::server::request::respond;
use crate::store::Txn;

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";

/// Whether a user has a permission on signers or on subresources of requests.
fn may(server: &Server, user: &User, verb: &str, resource: Resource<'_>) -> bool {
    let attributes = Attributes::resource(verb, resource);
    let decided = server
        .access
        .with(user, &server.cache, |all| all.authorize(user, &attributes));
    matches!(decided, Access::Allow(_))
}

/// The admission of signing requests: the requester, the approver, the signer.
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

/// Records the addresses that the caller connects from, in a field that no client can set: a
/// serving certificate is valid for no others.
///
/// An impersonated node has no addresses: the caller is not on its machine.
pub(crate) fn record_proven_addresses(call: &Call<'_>, csr: &mut Value) {
    if csr["spec"]["signerName"] != signer::KUBELET_SERVING {
        return;
    }
    let proven = match call.origin {
        _ if call.is_impersonated => Vec::new(),
        Origin::Elsewhere(address) => vec![address],
        Origin::ThisMachine => {
            let request = csr["spec"]["request"].as_str().unwrap_or_default();
            let parsed = SigningRequest::from_api(request).unwrap_or_default();
            let own = parsed
                .ip_addresses
                .into_iter()
                .filter(|a| is_of_this_machine(*a));
            [IpAddr::V4(Ipv4Addr::LOCALHOST)]
                .into_iter()
                .chain(own)
                .collect()
        }
    };
    let proven: Vec<String> = proven
        .iter()
        .map(|a| a.to_canonical().to_string())
        .collect();
    let extra = &mut csr["spec"]["extra"];
    if !extra.is_object() {
        *extra = json!({});
    }
    extra[signer::PROVEN_ADDRESSES] = json!(proven);
}

/// An address that can be bound here is not another machine's.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Processes every request when it appears and changes, and again when the node of a serving
/// certificate appears or changes, until the server stops.
pub(in crate::server) fn follow(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    let name = "certificatesigningrequest-signing-controller";
    server
        .supervisor
        .keep(name, Weight::Vital, move || run(weak.clone()).map(Ok));
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
        // From before the requests are read: a node that appears meanwhile is processed afterwards.
        let (known_nodes, mut node_watcher) = nodes.list_and_watch("");
        let (objects, mut watcher) = requests.list_and_watch("");
        let mut stop = strong.stopping();
        let mut addresses = Addresses::default();
        for node in known_nodes {
            addresses.record(node.name(), &node.value().unwrap_or_default());
        }
        let mut claims = Claims::default();
        for object in &objects {
            claims.record(object.name(), &object.value().unwrap_or_default());
        }
        for object in &objects {
            strong.sync_request(object, &mut claims, &addresses).await;
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
                let Some((event_type, object)) = event.seen(|_| true) else {
                    continue;
                };
                match (is_of_nodes, event_type) {
                    (false, cache::EventType::Deleted) => claims.forget(object.name()),
                    (false, _) => {
                        claims.record(object.name(), &object.value().unwrap_or_default());
                        server.sync_request(object, &mut claims, &addresses).await;
                    }
                    (true, cache::EventType::Deleted) => {
                        addresses.forget(object.name());
                        for request in claims.granted_to(object.name()) {
                            server.drop_request(&request).await;
                        }
                    }
                    (true, _) => {
                        addresses.record(object.name(), &object.value().unwrap_or_default());
                        for request in claims.waiting_for(object.name()) {
                            if let Some(request) = requests.get(&request) {
                                server.sync_request(&request, &mut claims, &addresses).await;
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Server {
    async fn sync_request(&self, object: &Object, claims: &mut Claims, addresses: &Addresses) {
        let csr = match object.value() {
            Ok(csr) if matches!(csr["status"], Value::Null | Value::Object(_)) => csr,
            _ => {
                tracing::warn!(
                    csr = object.name(),
                    "ignoring certificate signing request that cannot be decoded"
                );
                return;
            }
        };
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
        let taken = |name: &str| match node(name) {
            Some(_) => Some(NodeNameConflict::ByNode {
                node: name.to_owned(),
            }),
            None => claims.taken(name, object.name(), respond::now()),
        };
        let decision = match signer::decide(&csr, may_create, taken) {
            Decision::Ignore => {
                let holder = |address: &str, asking: &str| addresses.holder(address, asking);
                signer::decide_serving(&csr, node, may_create, &self.options.names, holder)
            }
            decided => decided,
        };
        let changed = match decision {
            Decision::Approve(message) => Some(with_condition(&csr, signer::approval(message))),
            Decision::Leave(message) if signer::has_auto_approval_refused(&csr, &message) => None,
            Decision::Leave(message) => {
                tracing::warn!(
                    csr = object.name(),
                    reason = message,
                    "certificate signing request needs manual approval"
                );
                Some(with_condition(
                    &csr,
                    signer::auto_approval_refused(&message),
                ))
            }
            Decision::Deny(message) => {
                tracing::warn!(
                    csr = object.name(),
                    reason = message,
                    "denied certificate signing request"
                );
                Some(with_condition(&csr, signer::denial(&message)))
            }
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
                    tracing::warn!(csr = object.name(), %error, "failed to sign certificate signing request");
                    None
                }
            },
        };
        if let Some(changed) = changed {
            // At once: the cache is a moment behind, and another request may be next.
            claims.record(object.name(), &changed);
            self.store_request(object, changed).await;
        }
    }

    /// Deletes requests that were approved for a node that no longer exists.
    async fn drop_request(&self, name: &str) {
        let txn = Txn::new().delete(format!("{}{PLURAL}/{name}", cache::ROOT));
        if let Err(error) = self.store.txn(txn).await {
            tracing::warn!(csr = name, %error, "failed to delete certificate signing request");
        }
    }

    /// After a conflict, the change event processes the request again.
    async fn store_request(&self, object: &Object, mut csr: Value) {
        if let Some(meta) = csr["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let key = format!("{}{PLURAL}/{}", cache::ROOT, object.key());
        let txn = Txn::update(key, object.revision(), cache::encode(&csr));
        if let Err(error) = self.store.txn(txn).await {
            tracing::warn!(csr = object.name(), %error, "failed to update certificate signing request");
        }
    }
}

/// The requester, as recorded at creation.
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
        Value::Array(conditions) => {
            conditions.retain(|other| other["type"] != condition["type"]);
            conditions.push(condition);
        }
        other => *other = json!([condition]),
    }
    certificates::stamp_conditions(&mut changed, csr, &time_text(respond::now()));
    changed
}
