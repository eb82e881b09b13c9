use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use x509_parser::pem::parse_x509_pem;

use super::*;
use crate::auth::identity::user_of_certificate;

const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);
const CLIENT: [&str; 2] = ["digital signature", "client auth"];
const SERVER: [&str; 2] = ["digital signature", "server auth"];

fn request(common_name: &str, organization: &str, names: Vec<SanType>) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, organization);
    subject.push(DnType::CommonName, common_name);
    params.subject_alt_names = names;
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    STANDARD.encode(pem)
}

fn csr(signer: &str, request: &str, usages: &[&str]) -> Value {
    json!({
        "metadata": {"name": "csr-1"},
        "spec": {
            "signerName": signer, "request": request, "usages": usages,
            "username": "system:bootstrap:abcdef",
        },
        "status": {},
    })
}

fn approved(mut csr: Value) -> Value {
    csr["status"]["conditions"] = json!([approval("yes")]);
    csr
}

fn kubelet() -> Value {
    let request = request("system:node:n1", "system:nodes", vec![]);
    csr(KUBELET_CLIENT, &request, &CLIENT)
}

fn free(_: &str) -> Option<NodeNameConflict> {
    None
}

#[test]
fn a_join_token_does_not_take_over_a_node() {
    let taken = |node: &str| {
        let node = node.to_owned();
        Some(NodeNameConflict::ByNode { node })
    };
    let mut csr = kubelet();
    // A user that may approve requests anyway decides.
    assert_eq!(decide(&csr, |_| true, taken), Decision::Ignore);
    csr["spec"]["groups"] = json!(["system:bootstrappers", "system:authenticated"]);
    let message = "a Node with name \"n1\" already exists in the cluster; delete it (kubectl delete \
                   node n1) or change the name of the joining node";
    assert_eq!(
        decide(&csr, |_| true, taken),
        Decision::Deny(message.to_owned())
    );
    // The node itself has a certificate and requests the next one.
    csr["spec"]["username"] = json!("system:node:n1");
    let renewed = decide(&csr, |what| what == "selfnodeclient", taken);
    assert!(matches!(renewed, Decision::Approve(_)), "{renewed:?}");
}

#[test]
fn approved_request_reserves_the_node_name() {
    let csr = kubelet();
    assert_eq!(claim(&csr), None);
    let mut granted = approved(csr);
    assert_eq!(claim(&granted), Some(("n1".to_owned(), None)));
    let (authority, _directory) = authority();
    let Signature::Issued(pem) = sign(&authority, &granted, NOW).unwrap() else {
        panic!("the request is signed");
    };
    granted["status"]["certificate"] = json!(STANDARD.encode(pem));
    let end = NOW.as_nanos() / 1_000_000_000 + 365 * 86400 - 300;
    assert_eq!(claim(&granted), Some(("n1".to_owned(), Some(end))));
    granted["status"]["conditions"] = json!([approval("yes"), denial("no")]);
    assert_eq!(claim(&granted), None);
}

#[test]
fn kubelet_request_is_approved_if_requester_is_authorized() {
    let csr = kubelet();
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    assert_eq!(
        decide(&csr, |what| what == "nodeclient", free),
        Decision::Approve(message)
    );
    // A bootstrap token is not the node itself.
    assert_eq!(
        decide(&csr, |what| what == "selfnodeclient", free),
        Decision::Ignore
    );
    let mut own = csr;
    own["spec"]["username"] = json!("system:node:n1");
    let message = "Auto approving self kubelet client certificate after SubjectAccessReview.";
    assert_eq!(decide(&own, |_| true, free), Decision::Approve(message));
    assert_eq!(decide(&own, |_| false, free), Decision::Ignore);
}

#[test]
fn decided_and_non_kubelet_requests_are_ignored() {
    assert_eq!(
        decide(&approved(kubelet()), |_| true, free),
        Decision::Ignore
    );
    let mut issued = kubelet();
    issued["status"]["certificate"] = json!("YQ==");
    assert_eq!(decide(&issued, |_| true, free), Decision::Ignore);
    let named = vec![SanType::DnsName("a".try_into().unwrap())];
    for wrong in [
        csr(
            API_CLIENT,
            &request("system:node:n1", NODES, vec![]),
            &CLIENT,
        ),
        csr(KUBELET_CLIENT, &request("alice", NODES, vec![]), &CLIENT),
        csr(
            KUBELET_CLIENT,
            &request("system:node:n1", MASTERS, vec![]),
            &CLIENT,
        ),
        csr(
            KUBELET_CLIENT,
            &request("system:node:n1", NODES, vec![]),
            &SERVER,
        ),
        csr(
            KUBELET_CLIENT,
            &request("system:node:n1", NODES, named),
            &CLIENT,
        ),
        csr(KUBELET_CLIENT, "bm90aGluZw==", &CLIENT),
    ] {
        assert_eq!(decide(&wrong, |_| true, free), Decision::Ignore);
    }
}

fn authority() -> (Authority, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Authority::open(directory.path(), NOW).unwrap(), directory)
}

/// Start and end relative to [`NOW`], the client and server usages, and the names.
struct Issued {
    der: Vec<u8>,
    start: i64,
    end: i64,
    is_client: bool,
    is_server: bool,
    names: String,
}

fn issued(csr: &Value) -> Issued {
    let (authority, _directory) = authority();
    let Signature::Issued(pem) = sign(&authority, csr, NOW).unwrap() else {
        panic!("the request is signed");
    };
    let (_, pem) = parse_x509_pem(pem.as_bytes()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    let ca_pem = match text(csr, "/spec/signerName") {
        KUBELET_SERVING => authority.kubelet_serving_ca_pem(),
        _ => authority.client_ca_pem(),
    };
    let (_, ca) = parse_x509_pem(ca_pem.as_bytes()).unwrap();
    let ca = ca.parse_x509().unwrap();
    certificate.verify_signature(Some(ca.public_key())).unwrap();
    assert_eq!(certificate.issuer(), ca.subject());
    assert!(!certificate.is_ca());
    assert!(certificate.basic_constraints().unwrap().is_some());
    let usage = certificate.extended_key_usage().unwrap().unwrap().value;
    let names = certificate.subject_alternative_name().unwrap();
    let now = NOW.as_nanos() / 1_000_000_000;
    Issued {
        start: certificate.validity().not_before.timestamp() - now,
        end: certificate.validity().not_after.timestamp() - now,
        is_client: usage.client_auth,
        is_server: usage.server_auth,
        names: names.map_or_else(String::new, |n| format!("{:?}", n.value.general_names)),
        der: pem.contents.clone(),
    }
}

#[test]
fn approved_kubelet_gets_a_certificate_for_its_name() {
    let issued = issued(&approved(kubelet()));
    let user = user_of_certificate(&issued.der).unwrap().unwrap();
    assert_eq!(user.name, "system:node:n1");
    assert!(user.groups.contains(&NODES.to_owned()));
    assert!(issued.is_client && !issued.is_server);
    assert_eq!(issued.names, "");
    // A year, both ends five minutes early.
    assert_eq!((issued.start, issued.end), (-300, 365 * 86400 - 300));
}

#[test]
fn short_expiration_is_granted_exactly() {
    let mut csr = approved(kubelet());
    for (asked, end) in [
        (3600, 3600),
        (1, 600),
        (86400, 86400 - 300),
        (i32::MAX, 365 * 86400 - 300),
    ] {
        csr["spec"]["expirationSeconds"] = json!(asked);
        assert_eq!(issued(&csr).end, i64::from(end));
    }
}

#[test]
fn serving_certificate_keeps_its_names() {
    let names = vec![
        SanType::DnsName("n1".try_into().unwrap()),
        SanType::IpAddress(IpAddr::from([10, 0, 0, 1])),
    ];
    let request = request("system:node:n1", NODES, names);
    let issued = issued(&approved(csr(KUBELET_SERVING, &request, &SERVER)));
    assert!(issued.is_server && !issued.is_client);
    assert_eq!(issued.names, r#"[DNSName("n1"), IPAddress([10, 0, 0, 1])]"#);
}

#[test]
fn requests_violating_signer_rules_fail_permanently() {
    let (authority, _directory) = authority();
    for (csr, message) in [
        (
            csr(
                KUBELET_SERVING,
                &request("system:node:n1", NODES, vec![]),
                &SERVER,
            ),
            "DNS or IP subjectAltName is required",
        ),
        (
            csr(KUBELET_CLIENT, &request("n1", NODES, vec![]), &CLIENT),
            "subject common name does not begin with system:node:",
        ),
        (
            csr(
                KUBELET_CLIENT,
                &request("system:node:n1", NODES, vec![]),
                &SERVER,
            ),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            csr(API_CLIENT, &request("alice", "dev", vec![]), &SERVER),
            "invalid usage for client certificate: server auth",
        ),
        (
            csr(
                API_CLIENT,
                &request("alice", "dev", vec![]),
                &["key encipherment"],
            ),
            "missing required usage for client certificate: client auth",
        ),
    ] {
        let failed = sign(&authority, &approved(csr), NOW).unwrap();
        assert_eq!(failed, Signature::Failed(message.to_owned()));
    }
}

#[test]
fn requests_are_signed_once_and_only_after_approval() {
    let (authority, _directory) = authority();
    let not_due = |csr: &Value| sign(&authority, csr, NOW).unwrap() == Signature::NotDue;
    assert!(not_due(&kubelet()));
    let mut denied = approved(kubelet());
    denied["status"]["conditions"] = json!([approval("yes"), {"type": "Denied", "status": "True"}]);
    assert!(not_due(&denied));
    let mut failed = approved(kubelet());
    failed["status"]["conditions"] = json!([approval("yes"), failure("no")]);
    assert!(not_due(&failed));
    let mut done = approved(kubelet());
    done["status"]["certificate"] = json!("YQ==");
    assert!(not_due(&done));
    assert!(not_due(&approved(csr("example.com/x", "", &CLIENT))));
}

#[test]
fn a_request_that_was_tampered_with_is_not_signed() {
    let (authority, _directory) = authority();
    let pem = STANDARD
        .decode(request("system:node:n1", NODES, vec![]))
        .unwrap();
    let (_, pem) = parse_x509_pem(&pem).unwrap();
    let mut der = pem.contents;
    let at = der.windows(2).position(|pair| pair == b"n1").unwrap();
    der[at + 1] = b'2';
    let text = STANDARD.encode(&der);
    let pem =
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n");
    let csr = approved(csr(KUBELET_CLIENT, &STANDARD.encode(pem), &CLIENT));
    let error = sign(&authority, &csr, NOW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unable to parse csr \"csr-1\": x509: ECDSA verification failure"
    );
}

#[test]
fn signer_permissions_apply_by_name_or_domain() {
    let csr = kubelet();
    assert_eq!(
        check_approver(&csr, |signer| signer == KUBELET_CLIENT),
        Ok(())
    );
    assert_eq!(
        check_approver(&csr, |signer| signer == "kubernetes.io/*"),
        Ok(())
    );
    assert_eq!(
        check_approver(&csr, |_| false),
        Err("user not permitted to approve requests with signerName \
             \"kubernetes.io/kube-apiserver-client-kubelet\""
            .to_owned())
    );
    assert_eq!(check_status_writer(&csr, &csr, |_| false), Ok(()));
    assert!(check_status_writer(&approved(csr.clone()), &csr, |_| false).is_err());
}

#[test]
fn requests_for_system_masters_are_rejected() {
    let csr = csr(API_CLIENT, &request("eve", MASTERS, vec![]), &CLIENT);
    assert_eq!(
        check_subject(&csr),
        Err(
            "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not \
             allowed"
                .to_owned()
        )
    );
    assert_eq!(check_subject(&kubelet()), Ok(()));
}

/// A request of node `n1` for a serving certificate, made from those addresses.
fn serving(user: &str, from: &[&str], dns_names: &[&str], addresses: &[&str]) -> Value {
    let names = dns_names
        .iter()
        .map(|name| SanType::DnsName((*name).try_into().unwrap()));
    let addresses = addresses
        .iter()
        .map(|a| SanType::IpAddress(a.parse().unwrap()));
    let request = request("system:node:n1", NODES, names.chain(addresses).collect());
    let mut csr = csr(KUBELET_SERVING, &request, &SERVER);
    csr["spec"]["username"] = json!(user);
    csr["spec"]["extra"][PROVEN_ADDRESSES] = json!(from);
    csr
}

/// The decision about it, if the server is `10.0.0.1` and node `n2` has `10.0.0.8`.
fn decided_serving(csr: &Value, may: bool) -> Decision {
    let node = |name: &str| {
        let addresses = [
            "10.0.0.7",
            "10.0.0.1",
            "10.0.0.8",
            "box",
            "n2",
            "api.example.org",
        ];
        let addresses = addresses.map(|address| json!({"address": address}));
        (name == "n1").then(|| json!({"status": {"addresses": addresses}}))
    };
    let server_names = ["10.0.0.1", "api.example.org", "localhost"].map(str::to_owned);
    let holder = |address: &str, asking: &str| {
        assert_eq!(asking, "n1");
        matches!(address, "10.0.0.8" | "n2").then(|| "n2".to_owned())
    };
    decide_serving(
        csr,
        node,
        |what| may && what == "selfnodeserver",
        &server_names,
        holder,
    )
}

const NODE: &str = "system:node:n1";
const APPROVED: Decision =
    Decision::Approve("Auto approving self kubelet server certificate after SubjectAccessReview.");

#[test]
fn node_serving_certificate_is_approved_for_its_source_address() {
    let fine = serving(NODE, &["10.0.0.7"], &["n1", "box"], &["10.0.0.7"]);
    assert_eq!(decided_serving(&fine, true), APPROVED);
    let mapped = serving(NODE, &["10.0.0.7"], &["N1"], &["::ffff:10.0.0.7"]);
    assert_eq!(decided_serving(&mapped, true), APPROVED);
    assert_eq!(decided_serving(&fine, false), Decision::Ignore);
    let others = serving("system:node:n2", &["10.0.0.7"], &["n1"], &["10.0.0.7"]);
    assert_eq!(decided_serving(&others, true), Decision::Ignore);
    // The node's next heartbeat may add what its status lacks.
    let elsewhere = serving(NODE, &["10.0.0.9"], &[], &["10.0.0.9"]);
    assert_eq!(decided_serving(&elsewhere, true), Decision::Ignore);
}

#[test]
fn unproven_names_and_addresses_need_manual_approval() {
    let leave = |reason: &str| Decision::Leave(reason.to_owned());
    for (from, dns_names, addresses, expected) in [
        (
            &["10.0.0.9"][..],
            &["n1"][..],
            &["10.0.0.7"][..],
            "IP address 10.0.0.7 is not where the request came from (10.0.0.9)",
        ),
        (
            &[],
            &["n1"],
            &["10.0.0.7"],
            "IP address 10.0.0.7 is not where the request came from ()",
        ),
        (
            &["10.0.0.7"],
            &["n1"],
            &["10.0.0.7", "10.0.0.1"],
            "IP address 10.0.0.1 is not where the request came from (10.0.0.7)",
        ),
        // A gateway before the server and its nodes.
        (
            &["10.0.0.1"],
            &[],
            &["10.0.0.1"],
            "IP address 10.0.0.1 is the API server's",
        ),
        (
            &["10.0.0.8"],
            &[],
            &["10.0.0.8"],
            "IP address 10.0.0.8 is that of node \"n2\", too",
        ),
        (
            &["10.0.0.7"],
            &["n2"],
            &[],
            "DNS name \"n2\" is that of node \"n2\", too",
        ),
        (
            &["10.0.0.7"],
            &["API.example.org"],
            &[],
            "DNS name \"api.example.org\" is the API server's",
        ),
    ] {
        let csr = serving(NODE, from, dns_names, addresses);
        assert_eq!(decided_serving(&csr, true), leave(expected));
    }
}

#[test]
fn node_on_the_server_machine_shares_its_addresses_but_not_api_server_names() {
    let here = ["127.0.0.1", "10.0.0.1"];
    let fine = serving(NODE, &here, &["n1", "api.example.org"], &["10.0.0.1"]);
    assert_eq!(decided_serving(&fine, true), APPROVED);
    let node =
        |_: &str| Some(json!({"status": {"addresses": [{"address": "kubernetes.default"}]}}));
    let csr = serving(NODE, &here, &["kubernetes.default"], &[]);
    let decided = decide_serving(&csr, node, |_| true, &[], |_, _| None);
    let reason = "DNS name \"kubernetes.default\" is the API server's";
    assert_eq!(decided, Decision::Leave(reason.to_owned()));
}
