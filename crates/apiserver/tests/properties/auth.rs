//! Properties of authentication and authorization, on arbitrary input.

use std::collections::BTreeMap;

use plimsoll_apiserver::auth::Objects;
use plimsoll_apiserver::auth::attributes::{Attributes, Resource};
use plimsoll_apiserver::auth::authority::Authority;
use plimsoll_apiserver::auth::authorize::Authorizer;
use plimsoll_apiserver::auth::identity::{
    User, requested_user, service_account_user_name, split_service_account, token_from_header,
    token_from_web_socket_protocols, user_of_certificate,
};
use plimsoll_apiserver::auth::node::{Operation, Write, restrict};
use plimsoll_apiserver::auth::rbac::{Policy, PolicyKind, PolicyWrite, check_write, rule_allows};
use plimsoll_apiserver::auth::signing_request::SigningRequest;
use plimsoll_apiserver::auth::token::{Authenticator, SigningKey, TokenRequestContext};
use plimsoll_core::object::timestamp::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tempfile::TempDir;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns the same object for every lookup.
struct Everywhere(Value);

impl Objects for Everywhere {
    fn object(&self, _: &str, _: &str, _: &str, _: &str) -> Option<Value> {
        Some(self.0.clone())
    }
}

fn authenticator() -> (TempDir, Authenticator) {
    let directory = TempDir::new().expect("a directory");
    let key = SigningKey::open(&directory.path().join("sa.key")).expect("a key");
    let issuer = "https://issuer";
    (
        directory,
        Authenticator::new(key, issuer, vec![issuer.to_owned()]),
    )
}

/// Any JSON, with the names that the code uses more likely than others.
fn any_json() -> impl Strategy<Value = Value> {
    let names = select(vec![
        "metadata",
        "spec",
        "name",
        "namespace",
        "uid",
        "labels",
        "annotations",
        "volumes",
        "containers",
        "env",
        "projected",
        "sources",
        "secret",
        "ownerReferences",
        "nodeName",
        "rules",
        "verbs",
        "resources",
        "apiGroups",
        "roleRef",
        "kind",
        "subjects",
        "data",
        "type",
        "boundObjectRef",
        "kubernetes.io/config.mirror",
        "claimRef",
        "csi",
        "taints",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        select(vec!["n1", "v1", "Pod", "*", ""]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let name = prop_oneof![4 => names.clone().prop_map(str::to_owned), 1 => ".{0,4}"];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn certificate_parser_never_panics(bytes in vec(any::<u8>(), 0..600)) {
        let _ = user_of_certificate(&bytes);
    }

    #[test]
    fn header_parsers_never_panic(
        header in ".{0,80}",
        pairs in vec(("[Ii]mpersonate-(User|Group|Uid|Extra-.{0,6})", ".{0,6}"), 0..6),
    ) {
        let _ = token_from_header(&header);
        let _ = token_from_web_socket_protocols([header.as_str()]);
        let headers = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        if let Err(error) = requested_user(headers) {
            prop_assert!(error.to_string().ends_with(" without impersonating a user name"));
        }
    }

    #[test]
    fn service_account_names_round_trip(namespace in "[a-z0-9]{1,20}", name in "[a-z0-9]{1,20}") {
        let user = service_account_user_name(&namespace, &name);
        prop_assert_eq!(split_service_account(&user), Some((namespace.as_str(), name.as_str())));
    }

    #[test]
    fn malformed_objects_never_panic(
        object in any_json(),
        old in any_json(),
        resource in select(vec![
            "pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts",
            "certificatesigningrequests", "leases", "clusterroles", "rolebindings",
        ]),
        subresource in select(vec!["", "status", "token", "eviction"]),
        operation in select(vec![Operation::Create, Operation::Update, Operation::Delete]),
    ) {
        let mut authorizer = Authorizer::default();
        for group in ["", GROUP, "storage.k8s.io", "resource.k8s.io"] {
            let _ = authorizer.observe(group, resource, "ns", "x", Some(&object));
            let _ = authorizer.observe(group, resource, "ns", "x", None);
        }
        let write = Write {
            operation,
            group: "",
            resource,
            subresource,
            namespace: "ns",
            name: "x",
            object: &object,
            old: &old,
        };
        let kubelet = User::new("system:node:n1", &["system:nodes"]);
        let _ = restrict(&kubelet, &write, &Everywhere(old.clone()), &authorizer);
        let alice = User::new("alice", &[]);
        for resource in ["roles", "clusterroles", "rolebindings", "clusterrolebindings"] {
            let write = PolicyWrite {
                kind: PolicyKind::of_resource(resource).unwrap(),
                namespace: "ns",
                name: "x",
                object: &object,
                old: Some(&old),
            };
            let _ = check_write(authorizer.policy(), &alice, &write);
        }
    }
}

#[test]
fn token_parser_never_panics() {
    let (_directory, tokens) = authenticator();
    let objects = Everywhere(json!({"metadata": {"uid": "u"}}));
    let now = Timestamp::from_secs(1_800_000_000);
    let context = TokenRequestContext {
        namespace: "ns",
        name: "web",
        id: "i",
    };
    let issued = tokens
        .issue(Default::default(), context, &objects, now)
        .unwrap();
    let good = issued.status.unwrap().token.unwrap();
    assert!(tokens.authenticate(&good, &objects, now).is_ok());
    let strategy = prop_oneof![
        ".{0,100}",
        "[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,90}",
    ];
    let mut runner = proptest::test_runner::TestRunner::default();
    let never_believed = runner.run(&strategy, |text| {
        prop_assert!(tokens.authenticate(&text, &objects, now).is_err());
        Ok(())
    });
    never_believed.unwrap();
    // A valid token with any changed byte is invalid.
    let places = (0..good.len(), any::<u8>().prop_map(|byte| byte & 0x7f));
    let mut runner = proptest::test_runner::TestRunner::default();
    let never_believed = runner.run(&places, |(place, byte)| {
        let mut bytes = good.clone().into_bytes();
        prop_assume!(bytes[place] != byte);
        bytes[place] = byte;
        let text = String::from_utf8(bytes).unwrap();
        prop_assert!(tokens.authenticate(&text, &objects, now).is_err());
        Ok(())
    });
    never_believed.unwrap();
}

#[test]
fn damaged_certificate_never_panics_the_parser() {
    let directory = TempDir::new().unwrap();
    let now = Timestamp::from_secs(1_800_000_000);
    let authority = Authority::open(directory.path(), now).unwrap();
    let client = authority.client("alice", &["a", "b"], now).unwrap();
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let der = CertificateDer::from_pem_slice(client.certificate_pem.as_bytes()).unwrap();
    let places = (0..der.len(), any::<u8>());
    let mut runner = proptest::test_runner::TestRunner::default();
    let outcome = runner.run(&places, |(place, byte)| {
        let mut bytes = der.to_vec();
        bytes[place] = byte;
        let _ = user_of_certificate(&bytes);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn damaged_csr_never_panics_or_changes_its_request() {
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::new(vec!["n1".to_owned()]).unwrap();
    let request = request.serialize_request(&key).unwrap();
    let der = request.der();
    let armoured = |der: &[u8]| {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
    };
    let whole = SigningRequest::from_pem(armoured(der).as_bytes()).unwrap();
    assert_eq!(whole.check_signature(), Ok(()));
    let damage = (0..der.len(), 1..=u8::MAX);
    let mut runner = proptest::test_runner::TestRunner::default();
    let outcome = runner.run(&damage, |(place, bits)| {
        let mut bytes = der.to_vec();
        bytes[place] ^= bits;
        // The bytes around the signature are not signed; the whole request is.
        if let Ok(read) = SigningRequest::from_pem(armoured(&bytes).as_bytes())
            && read.check_signature().is_ok()
        {
            prop_assert_eq!(&read.common_name, &whole.common_name);
            prop_assert_eq!(&read.organizations, &whole.organizations);
            prop_assert_eq!(&read.dns_names, &whole.dns_names);
            prop_assert_eq!(&read.ip_addresses, &whole.ip_addresses);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// A small cluster, so that names collide: two namespaces, three users, three groups, four roles.
fn any_subject() -> impl Strategy<Value = Value> {
    let named = (
        select(vec!["User", "Group"]),
        select(vec!["u1", "u2", "g1", "g2"]),
    )
        .prop_map(|(kind, name)| json!({"kind": kind, "name": name, "apiGroup": GROUP}));
    let account = (select(vec!["a", "b"]), select(vec![None, Some("n1"), Some("n2")]))
        .prop_map(|(name, namespace)| {
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        });
    prop_oneof![named, account]
}

fn any_rules() -> impl Strategy<Value = Value> {
    let rule = (
        select(vec!["get", "list", "*"]),
        select(vec!["", "apps", "*"]),
        select(vec!["pods", "pods/status", "*/status", "*"]),
        select(vec![None, Some("x")]),
    )
        .prop_map(|(verb, group, resource, name)| {
            let names: Vec<&str> = name.into_iter().collect();
            json!({"verbs": [verb], "apiGroups": [group], "resources": [resource],
                "resourceNames": names})
        });
    vec(rule, 0..3).prop_map(Value::from)
}

/// An object that is created, changed or deleted: kind, namespace, name, and value.
type Event = (PolicyKind, &'static str, &'static str, Option<Value>);

fn any_event() -> impl Strategy<Value = Event> {
    let place = || (select(vec!["n1", "n2"]), select(vec!["r1", "r2"]));
    let role = (place(), proptest::option::of(any_rules()), any::<bool>()).prop_map(
        |((namespace, name), rules, is_local)| {
            let object = rules.map(|rules| json!({"metadata": {"name": name}, "rules": rules}));
            match is_local {
                true => (PolicyKind::Role, namespace, name, object),
                false => (PolicyKind::ClusterRole, "", name, object),
            }
        },
    );
    let binding = (
        place(),
        select(vec!["Role", "ClusterRole"]),
        select(vec!["r1", "r2", "r3"]),
        proptest::option::of(vec(any_subject(), 0..4)),
        any::<bool>(),
    )
        .prop_map(|((namespace, name), kind, role, subjects, is_local)| {
            let object = subjects.map(|subjects| {
                let reference = json!({"apiGroup": GROUP, "kind": kind, "name": role});
                json!({"metadata": {"name": name}, "roleRef": reference, "subjects": subjects})
            });
            match is_local {
                true => (PolicyKind::RoleBinding, namespace, name, object),
                false => (PolicyKind::ClusterRoleBinding, "", name, object),
            }
        });
    prop_oneof![role, binding]
}

/// Every object, visited for every request.
#[derive(Default)]
struct Naive(BTreeMap<(&'static str, &'static str, &'static str), Value>);

impl Naive {
    fn allows(&self, user: &User, namespace: &str, attributes: &Attributes<'_>) -> bool {
        let bindings = self.0.iter().filter(|((resource, of, _), _)| {
            *resource == "clusterrolebindings" || *resource == "rolebindings" && *of == namespace
        });
        let mut rules = bindings.flat_map(|((_, of, _), binding)| {
            let subjects = binding["subjects"].as_array().expect("a list");
            let applies = subjects.iter().any(|subject| is_subject(user, subject, of));
            if applies {
                self.rules(&binding["roleRef"], of)
            } else {
                Vec::new()
            }
        });
        rules.any(|rule| rule_allows(&serde_json::from_value(rule).expect("a rule"), attributes))
    }

    fn rules(&self, reference: &Value, namespace: &'static str) -> Vec<Value> {
        let is_cluster = reference["kind"] == "ClusterRole";
        let mut found = self
            .0
            .iter()
            .filter(|((resource, of, name), _)| match is_cluster {
                true => *resource == "clusterroles" && reference["name"] == *name,
                false => *resource == "roles" && *of == namespace && reference["name"] == *name,
            });
        let role = found
            .next()
            .map(|(_, role)| role["rules"].as_array().expect("a list").clone());
        role.unwrap_or_default()
    }
}

fn is_subject(user: &User, subject: &Value, namespace: &str) -> bool {
    let name = subject["name"].as_str().expect("a text");
    match subject["kind"].as_str().expect("a text") {
        "User" => user.name == name,
        "Group" => user.is_in(name),
        _ => {
            let namespace = subject["namespace"].as_str().unwrap_or(namespace);
            !namespace.is_empty() && user.name == service_account_user_name(namespace, name)
        }
    }
}

proptest! {
    #[test]
    fn binding_index_equals_a_full_scan(
        events in vec(any_event(), 0..24),
        user in select(vec!["u1", "u2", "system:serviceaccount:n1:a", "system:serviceaccount:n2:b"]),
        groups in vec(select(vec!["g1", "g2", "u1"]), 0..3),
        namespace in select(vec!["", "n1", "n2"]),
        verb in select(vec!["get", "list"]),
        group in select(vec!["", "apps"]),
        subresource in select(vec!["", "status"]),
        name in select(vec!["", "x", "y"]),
    ) {
        let mut policy = Policy::default();
        let mut naive = Naive::default();
        for (kind, namespace, name, object) in &events {
            policy.observe(*kind, namespace, name, object.as_ref()).unwrap();
            let key = (kind.resource(), *namespace, *name);
            match object {
                Some(object) => naive.0.insert(key, object.clone()),
                None => naive.0.remove(&key),
            };
        }
        let user = User::new(user, &groups);
        let resource = Resource {
            group, resource: "pods", subresource, namespace, name, ..Resource::default()
        };
        let attributes = Attributes::resource(verb, resource);
        let expected = naive.allows(&user, namespace, &attributes);
        prop_assert_eq!(policy.allows(&user, &attributes).is_ok(), expected);
        let (rules, _) = policy.rules_for(&user, namespace);
        prop_assert_eq!(rules.iter().any(|rule| rule_allows(rule, &attributes)), expected);
    }
}
