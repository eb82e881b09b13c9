use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReviewSpec};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

use super::*;
use crate::auth::Objects;

const ISSUER: &str = "https://kubernetes.default.svc";
const NOW: i64 = 1_800_000_000;

/// Objects by resource, namespace and name.
#[derive(Default)]
struct World(HashMap<(String, String, String), Value>);

impl World {
    fn with(mut self, resource: &str, namespace: &str, name: &str, object: Value) -> World {
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.0.insert(key, object);
        self
    }
}

impl Objects for World {
    fn object(&self, _: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.0.get(&key).cloned()
    }
}

fn world() -> World {
    let uid = |uid: &str| json!({"metadata": {"uid": uid}});
    let mut pod = uid("pod-uid");
    pod["spec"] = json!({"serviceAccountName": "web", "nodeName": "n1"});
    World::default()
        .with("serviceaccounts", "ns", "web", uid("sa-uid"))
        .with("pods", "ns", "p", pod)
        .with("nodes", "", "n1", uid("node-uid"))
        .with("secrets", "ns", "s", uid("secret-uid"))
}

fn authenticator() -> (TempDir, Authenticator) {
    let directory = TempDir::new().unwrap();
    let key = SigningKey::open(&directory.path().join("sa.key")).unwrap();
    (
        directory,
        Authenticator::new(key, ISSUER, vec![ISSUER.to_owned()]),
    )
}

fn at(seconds_later: i64) -> Timestamp {
    Timestamp::from_secs(NOW + seconds_later)
}

const CONTEXT: TokenRequestContext<'static> = TokenRequestContext {
    namespace: "ns",
    name: "web",
    id: "id-1",
};

fn issue(tokens: &Authenticator, request: Value) -> Result<TokenRequest, RequestError> {
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    tokens.issue(request, CONTEXT, &world(), at(0))
}

fn token(tokens: &Authenticator, spec: Value) -> String {
    let issued = issue(tokens, json!({ "spec": spec })).unwrap();
    issued.status.unwrap().token.unwrap()
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

fn bound_to(kind: &str, name: &str) -> Value {
    json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}})
}

#[test]
fn signing_key_is_private_and_reused() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("sa.key");
    let first = SigningKey::open(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(SigningKey::open(&path).unwrap().id(), first.id());
    std::fs::write(&path, "nonsense").unwrap();
    let error = SigningKey::open(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("does not contain a P-256 private key in PKCS#8 PEM format"),
        "{error}"
    );
}

#[test]
fn default_token_names_the_account_and_lasts_an_hour() {
    let (_directory, tokens) = authenticator();
    let issued = issue(&tokens, json!({})).unwrap();
    assert_eq!(
        serde_json::to_value(&issued.spec).unwrap(),
        json!({"audiences": [ISSUER], "expirationSeconds": 3600})
    );
    let status = serde_json::to_value(&issued.status).unwrap();
    assert_eq!(status["expirationTimestamp"], "2027-01-15T09:00:00Z");
    assert_eq!(issued.metadata.uid.as_deref(), Some("sa-uid"));
    let token = status["token"].as_str().unwrap();
    let expected = json!({
        "aud": [ISSUER], "exp": NOW + 3600, "iat": NOW, "iss": ISSUER, "jti": "id-1",
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": {"name": "web", "uid": "sa-uid"},
        },
        "nbf": NOW, "sub": "system:serviceaccount:ns:web",
    });
    assert_eq!(claims(token), expected);

    let user = tokens.authenticate(token, &world(), at(0)).unwrap();
    assert_eq!(user.name, "system:serviceaccount:ns:web");
    assert_eq!(user.uid, "sa-uid");
    assert_eq!(
        user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:ns"]
    );
    assert_eq!(
        user.extra["authentication.kubernetes.io/credential-id"],
        ["JTI=id-1"]
    );
}

#[test]
fn pod_token_names_its_node() {
    let (_directory, tokens) = authenticator();
    let token = token(&tokens, bound_to("Pod", "p"));
    let said = &claims(&token)["kubernetes.io"];
    assert_eq!(said["pod"], json!({"name": "p", "uid": "pod-uid"}));
    assert_eq!(said["node"], json!({"name": "n1", "uid": "node-uid"}));
    let user = tokens.authenticate(&token, &world(), at(0)).unwrap();
    let extra = |key: &str| user.extra[&format!("authentication.kubernetes.io/{key}")][0].clone();
    assert_eq!(extra("pod-name"), "p");
    assert_eq!(extra("pod-uid"), "pod-uid");
    assert_eq!(extra("node-name"), "n1");
    assert_eq!(extra("node-uid"), "node-uid");
}

#[test]
fn injected_token_lasts_a_year_with_a_warn_after_claim() {
    let (_directory, tokens) = authenticator();
    let mut spec = bound_to("Pod", "p");
    spec["expirationSeconds"] = json!(3607);
    let extended = claims(&token(&tokens, spec.clone()));
    assert_eq!(extended["exp"], NOW + 365 * 24 * 3600);
    assert_eq!(extended["kubernetes.io"]["warnafter"], NOW + 3607);
    spec["audiences"] = json!(["vault"]);
    assert_eq!(claims(&token(&tokens, spec))["exp"], NOW + 3607);
    let unbound = token(&tokens, json!({"expirationSeconds": 3607}));
    assert_eq!(claims(&unbound)["exp"], NOW + 3607);
}

#[test]
fn invalid_token_requests_are_rejected_with_upstream_messages() {
    let (_directory, tokens) = authenticator();
    let cases = [
        (
            json!({"spec": {"expirationSeconds": 599}}),
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 \
             minutes",
        ),
        (
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger \
             than 2^32 seconds",
        ),
        (
            json!({"metadata": {"name": "other"}}),
            "metadata.name: Invalid value: \"other\": must match the service account name if \
             specified",
        ),
        (
            json!({"metadata": {"uid": "x"}}),
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"web\": the UID \
             in the token request (x) does not match the UID of the service account (sa-uid)",
        ),
        (
            json!({"spec": bound_to("Pod", "gone")}),
            "pods \"gone\" not found",
        ),
        (
            json!({"spec": bound_to("ConfigMap", "c")}),
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s",
                "uid": "y"}}}),
            "Operation cannot be fulfilled on Secret \"s\": the UID in the bound object reference \
             (y) does not match the UID in record. The object might have been deleted and then \
             recreated",
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(issue(&tokens, request).unwrap_err().to_string(), expected);
    }
    let other = TokenRequestContext {
        name: "db",
        ..CONTEXT
    };
    let objects = world().with("serviceaccounts", "ns", "db", json!({}));
    let request = serde_json::from_value(json!({"spec": bound_to("Pod", "p")})).unwrap();
    assert_eq!(
        tokens
            .issue(request, other, &objects, at(0))
            .unwrap_err()
            .to_string(),
        "cannot bind token for serviceaccount \"db\" to pod running with different serviceaccount \
         name."
    );
    let gone = TokenRequestContext {
        name: "gone",
        ..CONTEXT
    };
    let error = tokens
        .issue(TokenRequest::default(), gone, &world(), at(0))
        .unwrap_err();
    assert_eq!(error.to_string(), "serviceaccounts \"gone\" not found");
}

#[test]
fn tokens_are_valid_with_one_minute_of_leeway() {
    let (_directory, tokens) = authenticator();
    let token = token(&tokens, json!({}));
    let check = |now| tokens.authenticate(&token, &world(), now).map(drop);
    assert_eq!(check(at(-61)), Err(TokenError::NotYetValid));
    assert_eq!(check(at(-60)), Ok(()));
    assert_eq!(check(at(3600 + 60)), Ok(()));
    assert_eq!(check(at(3600 + 61)), Err(TokenError::Expired));
}

#[test]
fn tokens_are_invalid_after_their_bound_object_is_deleted() {
    let (_directory, tokens) = authenticator();
    let objects = |resource: &str, name: &str, object: Option<Value>| {
        let namespace = if resource == "nodes" { "" } else { "ns" };
        let mut world = world();
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        match object {
            Some(object) => world.0.insert(key, object),
            None => world.0.remove(&key),
        };
        world
    };
    let other = || Some(json!({"metadata": {"uid": "other"}}));
    let deleted = |uid: &str, time: i64| {
        let time = Timestamp::from_secs(NOW + time).to_string();
        Some(json!({"metadata": {"uid": uid, "deletionTimestamp": time}}))
    };
    let cases = [
        (
            json!({}),
            objects("serviceaccounts", "web", None),
            "serviceaccounts \"web\" not found",
        ),
        (
            json!({}),
            objects("serviceaccounts", "web", other()),
            "service account UID (other) does not match claim (sa-uid)",
        ),
        (
            json!({}),
            objects("serviceaccounts", "web", deleted("sa-uid", -61)),
            "service account ns/web has been deleted",
        ),
        (
            json!({}),
            objects("serviceaccounts", "web", deleted("sa-uid", -60)),
            "",
        ),
        (
            bound_to("Pod", "p"),
            objects("pods", "p", None),
            "service account token has been invalidated",
        ),
        (
            bound_to("Pod", "p"),
            objects("pods", "p", other()),
            "pod UID (other) does not match service account pod ref claim (pod-uid)",
        ),
        (
            bound_to("Pod", "p"),
            objects("pods", "p", deleted("pod-uid", -61)),
            "service account token has been invalidated",
        ),
        (
            bound_to("Pod", "p"),
            objects("pods", "p", deleted("pod-uid", 30)),
            "",
        ),
        (bound_to("Pod", "p"), objects("nodes", "n1", None), ""),
        (
            bound_to("Node", "n1"),
            objects("nodes", "n1", other()),
            "node UID (other) does not match service account node ref claim (node-uid)",
        ),
        (
            bound_to("Secret", "s"),
            objects("secrets", "s", None),
            "service account token has been invalidated",
        ),
    ];
    for (spec, objects, expected) in cases {
        let token = token(&tokens, spec.clone());
        let found = tokens.authenticate(&token, &objects, at(0));
        let found = found
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn forged_and_foreign_tokens_are_rejected() {
    let (_directory, tokens) = authenticator();
    let (_other_directory, others) = authenticator();
    let good = token(&tokens, json!({}));
    let check = |token: &str| tokens.authenticate(token, &world(), at(0)).unwrap_err();
    assert_eq!(check(&token(&others, json!({}))), TokenError::NoKey);

    let parts: Vec<&str> = good.split('.').collect();
    let mut payload = claims(&good);
    payload["sub"] = json!("system:admin");
    let payload = URL_SAFE_NO_PAD.encode(payload.to_string());
    let forged = format!("{}.{payload}.{}", parts[0], parts[2]);
    assert_eq!(check(&forged), TokenError::Signature);
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    assert_eq!(
        check(&format!("{none}.{}.", parts[1])),
        TokenError::Signature
    );
    let issuer = URL_SAFE_NO_PAD.encode(r#"{"iss":"https://elsewhere"}"#);
    let foreign = format!("{}.{issuer}.{}", parts[0], parts[2]);
    assert_eq!(check(&foreign), TokenError::Unknown);
    for nonsense in ["", ".", "..", "a.b.c", "a.b.c.d", "{}"] {
        assert_eq!(check(nonsense), TokenError::Unknown, "{nonsense}");
    }
}

#[test]
fn token_for_another_audience_is_rejected() {
    let (_directory, tokens) = authenticator();
    let token = token(&tokens, json!({"audiences": ["vault", "db"]}));
    let error = tokens.authenticate(&token, &world(), at(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "token audiences [\"vault\" \"db\"] is invalid for the target audiences \
         [\"https://kubernetes.default.svc\"]"
    );
    let review = |audiences: Option<Vec<String>>| {
        let spec = TokenReviewSpec {
            token: token.clone(),
            audiences,
        };
        super::review(&tokens, &spec, &world(), at(0)).unwrap()
    };
    let found = review(Some(vec!["db".to_owned(), "web".to_owned()]));
    assert_eq!(found.authenticated, Some(true));
    assert_eq!(found.audiences.unwrap(), ["db"]);
    let groups = found.user.unwrap().groups.unwrap();
    assert_eq!(
        groups.last().map(String::as_str),
        Some("system:authenticated")
    );
    let refused = review(None);
    assert_eq!(refused.authenticated, None);
    assert_eq!(refused.error.unwrap(), error.to_string());
}

#[test]
fn published_keys_verify_tokens() {
    let (_directory, tokens) = authenticator();
    let token = token(&tokens, json!({}));
    let keys: Value = serde_json::from_str(&tokens.key_set()).unwrap();
    let key = &keys["keys"][0];
    let header = URL_SAFE_NO_PAD
        .decode(token.split('.').next().unwrap())
        .unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header, json!({"alg": "ES256", "kid": key["kid"]}));
    let part = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
    let point = [vec![4], part("x"), part("y")].concat();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(
            signed.as_bytes(),
            &URL_SAFE_NO_PAD.decode(signature).unwrap(),
        )
        .unwrap();
    assert_eq!(
        tokens.discovery("https://host/openid/v1/jwks"),
        "{\"issuer\":\"https://kubernetes.default.svc\",\"jwks_uri\":\"https://host/openid/v1/jwks\
         \",\"response_types_supported\":[\"id_token\"],\"subject_types_supported\":[\"public\"],\
         \"id_token_signing_alg_values_supported\":[\"ES256\"]}"
    );
}

fn join_secret(change: &[(&str, &str)]) -> World {
    let mut data = HashMap::from([
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-authentication", "true"),
    ]);
    data.extend(change.iter().copied());
    let data: HashMap<&str, String> = data
        .into_iter()
        .map(|(key, value)| (key, STANDARD.encode(value)))
        .collect();
    let secret = json!({"type": BOOTSTRAP_SECRET_TYPE, "data": data});
    World::default().with("secrets", "kube-system", "bootstrap-token-abcdef", secret)
}

#[test]
fn join_tokens_are_secrets() {
    let (_directory, tokens) = authenticator();
    let groups = |objects: &World, token: &str| {
        let user = tokens.authenticate(token, objects, at(0)).ok()?;
        assert_eq!(user.name, "system:bootstrap:abcdef");
        Some(user.groups.join(","))
    };
    const TOKEN: &str = "abcdef.0123456789abcdef";
    let later = at(1).to_string();
    let sooner = at(-1).to_string();
    let good: [(&[(&str, &str)], &str); 3] = [
        (&[], "system:bootstrappers"),
        (&[("expiration", &later)], "system:bootstrappers"),
        (
            &[(
                "auth-extra-groups",
                "system:bootstrappers:b,system:bootstrappers:a",
            )],
            "system:bootstrappers,system:bootstrappers:a,system:bootstrappers:b",
        ),
    ];
    for (change, expected) in good {
        assert_eq!(
            groups(&join_secret(change), TOKEN).as_deref(),
            Some(expected)
        );
    }
    let bad: [(&str, &str); 7] = [
        ("token-id", "abcdeg"),
        ("token-secret", "0123456789abcdeg"),
        ("usage-bootstrap-authentication", "false"),
        ("expiration", &sooner),
        ("expiration", "tomorrow"),
        ("auth-extra-groups", "system:masters"),
        ("auth-extra-groups", "system:bootstrappers:a-"),
    ];
    for change in bad {
        assert_eq!(groups(&join_secret(&[change]), TOKEN), None, "{change:?}");
    }
    assert_eq!(groups(&join_secret(&[]), "abcdef.0123456789abcdeg"), None);
    assert_eq!(groups(&World::default(), TOKEN), None);
}
