//! CertificateSigningRequests: automatic approval, and signing.
//!
//! Matches v1.36 pkg/controller/certificates (approver/sarapprove.go, signer/signer.go,
//! authority/policies.go), pkg/apis/certificates/helpers.go, and the admission plugins below
//! plugin/pkg/admission/certificates. Everything is a function of the object; callers supply the
//! permissions.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::problem::quoted;
use serde_json::{Value, json};

use super::authority::{Authority, AuthorityError, Signer, end_of};
use super::identity::{BOOTSTRAPPERS, MASTERS, NODE_USER_PREFIX, NODES};
use super::signing_request::{SigningRequest, SigningRequestError};
use super::{list, text};

/// Signs kubelets' client certificates.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signs kubelets' serving certificates.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signs other client certificates.
pub const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// How long certificates are good for at most; upstream's `--cluster-signing-duration`.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Twice the backdating, so that no certificate expires before it begins.
const SHORTEST: Duration = Duration::from_secs(10 * 60);

/// The decision about a pending request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Approve it, with this message.
    Approve(&'static str),
    /// Deny it, with this message: it is for a node that already exists.
    Deny(String),
    /// Leave it to an administrator, with this message.
    Leave(String),
    /// Leave it to an administrator.
    Ignore,
}

/// The outcome of signing a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// The certificate, as PEM.
    Issued(String),
    /// The request violates the signer's rules and will never be signed.
    Failed(String),
    /// Not approved yet, signed already, or another signer's.
    NotDue,
}

/// A request cannot be signed now, but may be later.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// It cannot be parsed. The API accepts no such request.
    #[error("unable to parse csr {}: {source}", quoted(name))]
    Request {
        /// The object's name.
        name: String,
        /// Why.
        #[source]
        source: SigningRequestError,
    },
    /// The authority cannot sign.
    #[error("error auto signing csr")]
    Authority(#[from] AuthorityError),
}

/// Whether a kubelet's request for a client certificate is approved automatically. `may` returns
/// whether the requester may create `certificatesigningrequests/<subresource>`, `taken` why the
/// name of a node belongs to another machine, if it does.
///
/// Stricter than upstream: a join token is shared by many machines, and must not let one of them
/// impersonate another. For a name that is taken, only the node itself gets a certificate.
pub fn decide(
    csr: &Value,
    may: impl Fn(&str) -> bool,
    taken: impl Fn(&str) -> Option<NodeNameConflict>,
) -> Decision {
    let is_decided = has_condition(csr, "Approved") || has_condition(csr, "Denied");
    if is_decided || has_certificate(csr) || text(csr, "/spec/signerName") != KUBELET_CLIENT {
        return Decision::Ignore;
    }
    let Ok(request) = SigningRequest::from_api(text(csr, "/spec/request")) else {
        return Decision::Ignore;
    };
    if check_kubelet_client(&request, &usages(csr)).is_err() {
        return Decision::Ignore;
    }
    if text(csr, "/spec/username") == request.common_name && may("selfnodeclient") {
        return Decision::Approve(
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        );
    }
    if !may("nodeclient") {
        return Decision::Ignore;
    }
    let node = request.common_name.strip_prefix(NODE_USER_PREFIX);
    match taken(node.unwrap_or_default()) {
        None => Decision::Approve(
            "Auto approving kubelet client certificate after SubjectAccessReview.",
        ),
        Some(taken) if is_by_join_token(csr) => Decision::Deny(taken.to_string()),
        Some(_) => Decision::Ignore,
    }
}

/// Why the name of a node is not free.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeNameConflict {
    /// The node exists.
    #[error(
        "a Node with name {} already exists in the cluster; delete it (kubectl delete node {node}) \
         or change the name of the joining node",
        quoted(node)
    )]
    ByNode {
        /// Its name.
        node: String,
    },
    /// A certificate was issued for another machine, which has not registered yet.
    #[error(
        "the signing request {} was approved for a node with name {} already; delete that request \
         (kubectl delete csr {request}) or change the name of the joining node",
        quoted(request),
        quoted(node)
    )]
    ByRequest {
        /// The node's name.
        node: String,
        /// The other request.
        request: String,
    },
}

fn is_by_join_token(csr: &Value) -> bool {
    let mut groups = list(csr, "/spec/groups").iter();
    groups.any(|group| group == BOOTSTRAPPERS)
}

/// The node name that an approved request gives to its requester, and until when in seconds since
/// 1970; without an end as long as no certificate is signed.
pub fn claim(csr: &Value) -> Option<(String, Option<i64>)> {
    let is_granted = has_condition(csr, "Approved")
        && !has_condition(csr, "Denied")
        && !has_true_condition(csr, "Failed");
    if !is_granted || text(csr, "/spec/signerName") != KUBELET_CLIENT {
        return None;
    }
    let request = SigningRequest::from_api(text(csr, "/spec/request")).ok()?;
    let node = request.common_name.strip_prefix(NODE_USER_PREFIX)?;
    let issued = STANDARD.decode(text(csr, "/status/certificate")).ok()?;
    let end = std::str::from_utf8(&issued).ok().and_then(end_of);
    Some((node.to_owned(), end))
}

/// The key in a request's `spec.extra` for the addresses that its requester connected from. A
/// loopback address is among them if that was the API server's own machine.
pub const PROVEN_ADDRESSES: &str = "plimsoll.dev/proven-addresses";

/// Normalizes a name or address, so that equal ones are equal strings.
pub fn comparable(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => name.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// Whether a kubelet's request for a serving certificate is approved automatically: it has to be
/// the node's own, for names that its Node object has, and for addresses that the request came
/// from. `node` returns that object, `may` is as in [`decide`], `server_names` are the API
/// server's, `holder` returns another node than the second that has a name or address, in the form
/// of [`comparable`]. Upstream leaves these requests to an administrator; without the role so does
/// this.
pub fn decide_serving(
    csr: &Value,
    node: impl Fn(&str) -> Option<Value>,
    may: impl Fn(&str) -> bool,
    server_names: &[String],
    holder: impl Fn(&str, &str) -> Option<String>,
) -> Decision {
    let is_decided = has_condition(csr, "Approved") || has_condition(csr, "Denied");
    if is_decided || has_certificate(csr) || text(csr, "/spec/signerName") != KUBELET_SERVING {
        return Decision::Ignore;
    }
    let Ok(request) = SigningRequest::from_api(text(csr, "/spec/request")) else {
        return Decision::Ignore;
    };
    let is_own = text(csr, "/spec/username") == request.common_name;
    if !is_own || check_kubelet_serving(&request, &usages(csr)).is_err() {
        return Decision::Ignore;
    }
    let name = request.common_name.strip_prefix(NODE_USER_PREFIX);
    let name = name.unwrap_or_default();
    let Some(node) = node(name) else {
        return Decision::Ignore;
    };
    let addresses = list(&node, "/status/addresses").iter();
    let addresses = addresses.map(|entry| comparable(text(entry, "/address")));
    let mut known: BTreeSet<String> = addresses.collect();
    known.insert(comparable(name));
    let dns_names = request.dns_names.iter().map(|name| comparable(name));
    let dns_names: Vec<String> = dns_names.collect();
    let ip_addresses = request.ip_addresses.iter().map(IpAddr::to_canonical);
    let ip_addresses: Vec<IpAddr> = ip_addresses.collect();
    let addresses = ip_addresses.iter().map(ToString::to_string);
    let mut requested = dns_names.iter().cloned().chain(addresses);
    if !requested.all(|name| known.contains(&name)) || !may("selfnodeserver") {
        return Decision::Ignore;
    }
    let asking = ServingRequest {
        node: name,
        proven: proven_addresses(csr),
        server_names,
        holder: &holder,
    };
    let dns_names = dns_names.iter().map(|name| asking.check_name(name));
    let addresses = ip_addresses.iter().map(|ip| asking.check_address(*ip));
    match dns_names.chain(addresses).collect::<Result<(), String>>() {
        Ok(()) => Decision::Approve(
            "Auto approving self kubelet server certificate after SubjectAccessReview.",
        ),
        Err(reason) => Decision::Leave(reason),
    }
}

/// Names by which pods reach the API server, whatever else it is called.
const KUBERNETES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A kubelet that requests a serving certificate.
struct ServingRequest<'a> {
    node: &'a str,
    proven: Vec<IpAddr>,
    server_names: &'a [String],
    holder: &'a dyn Fn(&str, &str) -> Option<String>,
}

impl ServingRequest<'_> {
    /// Nodes on the API server's machine share its names and addresses, and those of each other.
    fn is_on_server(&self) -> bool {
        self.proven.iter().any(IpAddr::is_loopback)
    }

    fn check_name(&self, name: &str) -> Result<(), String> {
        if KUBERNETES.contains(&name) || name == "localhost" {
            return Err(format!("DNS name {} is the API server's", quoted(name)));
        }
        // The client certificate proves the node's own name.
        let is_own = name == comparable(self.node);
        self.check_others(&format!("DNS name {}", quoted(name)), name, is_own)
    }

    fn check_address(&self, address: IpAddr) -> Result<(), String> {
        let what = format!("IP address {address}");
        if !self.proven.contains(&address) {
            let proven: Vec<String> = self.proven.iter().map(ToString::to_string).collect();
            let proven = proven.join(", ");
            return Err(format!(
                "{what} is not where the request came from ({proven})"
            ));
        }
        self.check_others(&what, &address.to_string(), false)
    }

    fn check_others(&self, what: &str, name: &str, is_own: bool) -> Result<(), String> {
        if self.is_on_server() {
            return Ok(());
        }
        let mut server_names = self.server_names.iter();
        if server_names.any(|other| comparable(other) == name) {
            return Err(format!("{what} is the API server's"));
        }
        match (self.holder)(name, self.node).filter(|_| !is_own) {
            Some(holder) => Err(format!("{what} is that of node {}, too", quoted(&holder))),
            None => Ok(()),
        }
    }
}

fn proven_addresses(csr: &Value) -> Vec<IpAddr> {
    let extra = csr.pointer("/spec/extra");
    let proven = extra.and_then(|extra| extra.get(PROVEN_ADDRESSES));
    let proven = proven.and_then(Value::as_array).into_iter().flatten();
    let proven = proven.filter_map(|address| address.as_str()?.parse().ok());
    proven.collect()
}

/// The type of the condition of a request that is left to an administrator.
const AUTO_APPROVAL_REFUSED: &str = "AutoApprovalRefused";

/// The condition of a request that is left to an administrator.
pub fn auto_approval_refused(message: &str) -> Value {
    json!({
        "type": AUTO_APPROVAL_REFUSED,
        "status": "True",
        "reason": "NotProven",
        "message": message,
    })
}

/// Whether the request has that condition with this message.
pub fn has_auto_approval_refused(csr: &Value, message: &str) -> bool {
    let mut conditions = list(csr, "/status/conditions").iter();
    conditions.any(|condition| {
        condition["type"] == AUTO_APPROVAL_REFUSED && text(condition, "/message") == message
    })
}

/// The node whose creation or change may allow this request.
pub fn waits_for_node(csr: &Value) -> Option<&str> {
    let is_decided = has_condition(csr, "Approved") || has_condition(csr, "Denied");
    if is_decided || text(csr, "/spec/signerName") != KUBELET_SERVING {
        return None;
    }
    text(csr, "/spec/username").strip_prefix(NODE_USER_PREFIX)
}

/// The condition of an automatic approval. The strategy adds the times.
pub fn approval(message: &str) -> Value {
    json!({
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": message,
    })
}

/// The condition of a denial because the node name belongs to another machine.
pub fn denial(message: &str) -> Value {
    json!({
        "type": "Denied",
        "status": "True",
        "reason": "NodeExists",
        "message": message,
    })
}

/// The condition of a request that will never be signed.
pub fn failure(message: &str) -> Value {
    json!({
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": message,
    })
}

/// Signs an approved request of one of the three signers. The key stays with the requester; the
/// subject and alternative names come from the request, the usages from the object.
pub fn sign(authority: &Authority, csr: &Value, now: Timestamp) -> Result<Signature, SignError> {
    let is_approved = has_condition(csr, "Approved") && !has_condition(csr, "Denied");
    if !is_approved || has_true_condition(csr, "Failed") || has_certificate(csr) {
        return Ok(Signature::NotDue);
    }
    let signer_name = text(csr, "/spec/signerName");
    let check: fn(&SigningRequest, &BTreeSet<&str>) -> Result<(), String> = match signer_name {
        KUBELET_CLIENT => check_kubelet_client,
        KUBELET_SERVING => check_kubelet_serving,
        API_CLIENT => |_, usages| check_api_client(usages),
        _ => return Ok(Signature::NotDue),
    };
    let signer = match signer_name {
        KUBELET_SERVING => Signer::Kubelets,
        _ => Signer::Clients,
    };
    let request = SigningRequest::from_api(text(csr, "/spec/request"));
    let request = request.and_then(|request| request.check_signature().map(|()| request));
    let request = request.map_err(|source| SignError::Request {
        name: text(csr, "/metadata/name").to_owned(),
        source,
    })?;
    let usages = usages(csr);
    if let Err(message) = check(&request, &usages) {
        return Ok(Signature::Failed(message));
    }
    let lifetime = lifetime(
        csr.pointer("/spec/expirationSeconds")
            .and_then(Value::as_u64),
    );
    let signed = authority.sign_request(signer, &request, &usages, lifetime, now)?;
    Ok(Signature::Issued(signed))
}

fn lifetime(requested: Option<u64>) -> Duration {
    let requested = requested.map_or(LONGEST, Duration::from_secs);
    requested.clamp(SHORTEST, LONGEST)
}

/// Whether a user may approve requests of a signer. `may` returns whether it may `approve` the
/// `signers` of that name; a whole domain is called `example.com/*`. The error is the reason.
pub fn check_approver(old: &Value, may: impl Fn(&str) -> bool) -> Result<(), String> {
    check_signer(old, may, "approve")
}

/// The same for `sign`: needed to change a request's status.
pub fn check_status_writer(
    new: &Value,
    old: &Value,
    may: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let is_same = |pointer| new.pointer(pointer) == old.pointer(pointer);
    if is_same("/status/certificate") && is_same("/status/conditions") {
        return Ok(());
    }
    check_signer(old, may, "sign")
}

fn check_signer(old: &Value, may: impl Fn(&str) -> bool, verb: &str) -> Result<(), String> {
    let signer = text(old, "/spec/signerName");
    let domain = signer.split('/').next().unwrap_or_default();
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let signer = quoted(signer);
    Err(format!(
        "user not permitted to {verb} requests with signerName {signer}"
    ))
}

/// No signing request makes its requester an administrator.
pub fn check_subject(csr: &Value) -> Result<(), String> {
    if text(csr, "/spec/signerName") != API_CLIENT {
        return Ok(());
    }
    let request = SigningRequest::from_api(text(csr, "/spec/request"))
        .map_err(|error| format!("failed to parse CSR: {error}"))?;
    if request.organizations.iter().any(|group| group == MASTERS) {
        return Err(format!(
            "use of {API_CLIENT} signer with {MASTERS} group is not allowed"
        ));
    }
    Ok(())
}

fn has_certificate(csr: &Value) -> bool {
    !text(csr, "/status/certificate").is_empty()
}

fn has_condition(csr: &Value, sort: &str) -> bool {
    let mut conditions = list(csr, "/status/conditions").iter();
    conditions.any(|condition| condition["type"] == sort)
}

fn has_true_condition(csr: &Value, sort: &str) -> bool {
    let mut conditions = list(csr, "/status/conditions").iter();
    conditions.any(|condition| {
        condition["type"] == sort && matches!(text(condition, "/status"), "" | "True")
    })
}

fn usages(csr: &Value) -> BTreeSet<&str> {
    let usages = list(csr, "/spec/usages").iter();
    usages.filter_map(Value::as_str).collect()
}

fn check_kubelet_client(request: &SigningRequest, usages: &BTreeSet<&str>) -> Result<(), String> {
    check_organization(request)?;
    refuse_names(&request.dns_names, "DNS")?;
    refuse_names(&request.email_addresses, "Email")?;
    refuse_names(&request.ip_addresses, "IP")?;
    refuse_names(&request.uris, "URI")?;
    check_common_name(request)?;
    check_usages(usages, "client auth")
}

fn check_kubelet_serving(request: &SigningRequest, usages: &BTreeSet<&str>) -> Result<(), String> {
    check_organization(request)?;
    if request.dns_names.is_empty() && request.ip_addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    refuse_names(&request.email_addresses, "Email")?;
    refuse_names(&request.uris, "URI")?;
    check_usages(usages, "server auth")?;
    check_common_name(request)
}

fn check_api_client(usages: &BTreeSet<&str>) -> Result<(), String> {
    let allowed = ["digital signature", "key encipherment", "client auth"];
    if let Some(wrong) = usages.iter().find(|usage| !allowed.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {wrong}"));
    }
    if !usages.contains("client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

fn check_organization(request: &SigningRequest) -> Result<(), String> {
    if request.organizations == [NODES] {
        return Ok(());
    }
    Err(format!("subject organization is not {NODES}"))
}

fn check_common_name(request: &SigningRequest) -> Result<(), String> {
    if request.common_name.starts_with(NODE_USER_PREFIX) {
        return Ok(());
    }
    Err(format!(
        "subject common name does not begin with {NODE_USER_PREFIX}"
    ))
}

fn refuse_names<T>(names: &[T], sort: &str) -> Result<(), String> {
    if names.is_empty() {
        return Ok(());
    }
    Err(format!("{sort} subjectAltNames are not allowed"))
}

/// Keys that are not RSA cannot encipher other keys.
fn check_usages(usages: &BTreeSet<&str>, purpose: &str) -> Result<(), String> {
    let needed = BTreeSet::from(["digital signature", purpose]);
    let with_rsa = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    if *usages == needed || *usages == with_rsa {
        return Ok(());
    }
    let names: Vec<&str> = with_rsa.into_iter().collect();
    Err(format!("usages did not match [{}]", names.join(" ")))
}

#[cfg(test)]
mod tests;
