//! A machine with a join token becomes a node.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use super::caller::Caller;
use super::cluster::{Cluster, eventually};
use super::objects::node;

const TOKEN: &str = "abcdef.0123456789abcdef";
pub(crate) const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn join_token(expiration: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "expiration": expiration,
            "auth-extra-groups": "system:bootstrappers:join",
        },
    })
}

fn binding(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
            "name": "system:bootstrappers"}],
    })
}

/// A key and a signing request of the machine for that user.
pub(crate) fn signing_request(user: &str) -> (KeyPair, Value) {
    request_with_names(user, Vec::new())
}

/// The same with alternative names.
fn request_with_names(user: &str, names: Vec<SanType>) -> (KeyPair, Value) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, user);
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
    });
    (key, request)
}

/// Allows machines with a join token to request node certificates.
async fn allow_joining(cluster: &Cluster) {
    let admin = cluster.admin();
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for (name, role) in [
        ("join-create", "system:node-bootstrapper"),
        (
            "join-approve",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        ),
    ] {
        let answer = admin.post(bindings, &binding(name, role)).await;
        assert!(matches!(answer.code, 201 | 409));
    }
}

/// Requests the certificate of that node, and waits for the decision.
async fn request_certificate(joining: &Caller, name: &str) -> Value {
    let (_, request) = signing_request(&format!("system:node:{name}"));
    let made = eventually("the token is known", async || {
        let answer = joining.post(REQUESTS, &request).await;
        (answer.code == 201).then(|| answer.json())
    })
    .await;
    let path = format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().unwrap());
    eventually("the request is decided on", async || {
        let found = joining.get(&path).await.expect(200);
        let is_denied = found["status"]["conditions"][0]["type"] == "Denied";
        let is_signed = found["status"]["certificate"].is_string();
        (is_denied || is_signed).then_some(found)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_token_does_not_take_over_a_node() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    allow_joining(&cluster).await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let token = join_token("2099-01-01T00:00:00Z");
    admin.post(secrets, &token).await.expect(201);
    let joining = cluster.bearer(TOKEN);
    let first = request_certificate(&joining, "n9").await;
    assert!(first["status"]["certificate"].is_string(), "{first}");
    let first = first["metadata"]["name"].as_str().unwrap().to_owned();

    // It has its certificate, though it is not registered yet.
    let denied = |csr: &Value| {
        assert!(csr["status"]["certificate"].is_null(), "{csr}");
        let condition = &csr["status"]["conditions"][0];
        assert_eq!(condition["reason"], "NodeExists", "{csr}");
        condition["message"].as_str().unwrap().to_owned()
    };
    let message = denied(&request_certificate(&joining, "n9").await);
    assert_eq!(
        message,
        format!(
            "the signing request \"{first}\" was approved for a node with name \"n9\" already; \
             delete that request (kubectl delete csr {first}) or change the name of the joining node"
        )
    );
    let nodes = "/api/v1/nodes";
    admin.post(nodes, &node("n9")).await.expect(201);
    let message = denied(&request_certificate(&joining, "n9").await);
    assert!(
        message.starts_with("a Node with name \"n9\" already exists"),
        "{message}"
    );
    admin.post(nodes, &node("n8")).await.expect(201);
    denied(&request_certificate(&joining, "n8").await);

    // Two machines request one name at the same time: one gets it.
    let both = futures::join!(
        request_certificate(&joining, "n7"),
        request_certificate(&joining, "n7")
    );
    let signed = [&both.0, &both.1].map(|csr| csr["status"]["certificate"].is_string());
    assert_eq!(signed.iter().filter(|is_signed| **is_signed).count(), 1);

    // The administrator has deleted the node: its name is free.
    admin.delete(&format!("{nodes}/n9")).await.expect(200);
    eventually("what the node was given is forgotten", async || {
        let found = admin.get(&format!("{REQUESTS}/{first}")).await;
        (found.code == 404).then_some(())
    })
    .await;
    let again = request_certificate(&joining, "n9").await;
    assert!(again["status"]["certificate"].is_string(), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn join_token_yields_a_certificate_and_a_node() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    allow_joining(&cluster).await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let joining = cluster.bearer(TOKEN);
    joining.get(REQUESTS).await.refused(401, "Unauthorized");
    admin
        .post(secrets, &join_token("2099-01-01T00:00:00Z"))
        .await
        .expect(201);
    let (key, request) = signing_request("system:node:n9");
    let made = eventually("the token is known", async || {
        let answer = joining.post(REQUESTS, &request).await;
        (answer.code == 201).then(|| answer.json())
    })
    .await;
    assert_eq!(made["spec"]["username"], "system:bootstrap:abcdef");
    let path = format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().unwrap());
    let signed = eventually("the request is signed", async || {
        let found = joining.get(&path).await.expect(200);
        let certificate = found["status"]["certificate"].as_str()?.to_owned();
        Some(certificate)
    })
    .await;
    let pem = String::from_utf8(STANDARD.decode(signed).unwrap()).unwrap();
    let mut config = kube::Config::new(cluster.url().parse().unwrap());
    config.root_cert = None;
    config.accept_invalid_certs = true;
    config.read_timeout = Some(Duration::from_secs(20));
    config.auth_info.client_certificate_data = Some(STANDARD.encode(pem));
    config.auth_info.client_key_data = Some(STANDARD.encode(key.serialize_pem()).into());
    let kubelet = super::caller::Caller::new(kube::Client::try_from(config).unwrap());
    kubelet.post("/api/v1/nodes", &node("n9")).await.expect(201);
    kubelet
        .post("/api/v1/nodes", &node("n8"))
        .await
        .refused(403, "Forbidden");
    // The token is for joining and nothing else.
    joining.get("/api/v1/nodes").await.refused(403, "Forbidden");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_join_token_is_rejected() {
    let cluster = Cluster::start().await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let old = join_token("2020-01-01T00:00:00Z");
    cluster.admin().post(secrets, &old).await.expect(201);
    for token in [TOKEN, "abcdef.0123456789abcdee", "abcdeg.0123456789abcdef"] {
        cluster
            .bearer(token)
            .get(REQUESTS)
            .await
            .refused(401, "Unauthorized");
    }
}

/// Allows nodes to get their serving certificates approved.
async fn allow_serving(cluster: &Cluster) {
    let admin = cluster.admin();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "selfnodeserver"},
        "rules": [{"apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests/selfnodeserver"], "verbs": ["create"]}],
    });
    let roles = format!("{rbac}/clusterroles");
    admin.post(&roles, &role).await.expect(201);
    let mut binding = binding("selfnodeserver", "selfnodeserver");
    binding["subjects"][0]["name"] = json!("system:nodes");
    let bindings = format!("{rbac}/clusterrolebindings");
    admin.post(&bindings, &binding).await.expect(201);
}

/// A request of a node for a serving certificate.
fn serving_request(node: &str, names: Vec<SanType>) -> (KeyPair, Value) {
    let (key, mut request) = request_with_names(&format!("system:node:{node}"), names);
    request["spec"]["signerName"] = json!("kubernetes.io/kubelet-serving");
    request["spec"]["usages"] = json!(["digital signature", "server auth"]);
    (key, request)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serving_certificate_is_signed_once_its_node_exists() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    allow_serving(&cluster).await;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

    let kubelet = cluster.kubelet("n7");
    let name = SanType::DnsName("n7".try_into().unwrap());
    let (_, request) = serving_request("n7", vec![name]);
    let made = kubelet.post(REQUESTS, &request).await.expect(201);
    let path = format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().unwrap());
    // Another request that is processed later and signed at once: before that this one has been
    // processed.
    let (_, other) = signing_request("system:node:n7");
    let rotation = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";
    let mut may_rotate = self::binding("rotation", rotation);
    may_rotate["subjects"][0]["name"] = json!("system:nodes");
    admin.post(bindings, &may_rotate).await.expect(201);
    let other = kubelet.post(REQUESTS, &other).await.expect(201);
    let other = format!("{REQUESTS}/{}", other["metadata"]["name"].as_str().unwrap());
    let certificate = async |path: &str| {
        let found = admin.get(path).await.expect(200);
        found["status"]["certificate"].as_str().map(str::to_owned)
    };
    eventually("the other is signed", async || certificate(&other).await).await;
    assert_eq!(certificate(&path).await, None);
    kubelet.post("/api/v1/nodes", &node("n7")).await.expect(201);
    eventually("it is signed", async || certificate(&path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_gets_no_certificate_for_foreign_addresses() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    allow_serving(&cluster).await;
    let kubelet = cluster.kubelet("n7");
    let foreign = ["10.255.255.254", "kubernetes.default"];
    let mut own = kubelet.post("/api/v1/nodes", &node("n7")).await.expect(201);
    let addresses = ["127.0.0.1", foreign[0], foreign[1]];
    let addresses = addresses.map(|a| json!({"type": "InternalIP", "address": a}));
    own["status"] = json!({"addresses": addresses});
    let status = "/api/v1/nodes/n7/status";
    kubelet.put(status, &own).await.expect(200);
    for (name, reason) in [
        (
            SanType::IpAddress(foreign[0].parse().unwrap()),
            "IP address 10.255.255.254 is not where the request came from (127.0.0.1)",
        ),
        (
            SanType::DnsName(foreign[1].try_into().unwrap()),
            "DNS name \"kubernetes.default\" is the API server's",
        ),
    ] {
        let (_, request) = serving_request("n7", vec![name]);
        let made = kubelet.post(REQUESTS, &request).await.expect(201);
        let proven = &made["spec"]["extra"]["plimsoll.dev/proven-addresses"];
        assert_eq!(*proven, json!(["127.0.0.1"]));
        let path = format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().unwrap());
        let csr = eventually("it is decided on", async || {
            let csr = admin.get(&path).await.expect(200);
            csr["status"]["conditions"].is_array().then_some(csr)
        })
        .await;
        let condition = &csr["status"]["conditions"][0];
        assert_eq!(condition["type"], "AutoApprovalRefused", "{csr}");
        assert_eq!(condition["message"], reason);
        // An administrator may approve it manually.
        let mut approved = csr.clone();
        let yes =
            json!({"type": "Approved", "status": "True", "reason": "IKnow", "message": "yes"});
        approved["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(yes);
        let approval = format!("{path}/approval");
        admin.put(&approval, &approved).await.expect(200);
        eventually("it is signed", async || {
            let csr = admin.get(&path).await.expect(200);
            csr["status"]["certificate"].is_string().then_some(())
        })
        .await;
    }
    // No client can set addresses itself, and one that impersonates a node proves none.
    let as_node = admin.with("impersonate-user", "system:node:n7");
    let as_node = as_node.with("impersonate-group", "system:nodes");
    let local = SanType::IpAddress("127.0.0.1".parse().unwrap());
    let (_, mut request) = serving_request("n7", vec![local]);
    request["spec"]["extra"] = json!({"plimsoll.dev/proven-addresses": ["127.0.0.1"]});
    let made = as_node.post(REQUESTS, &request).await.expect(201);
    let proven = &made["spec"]["extra"]["plimsoll.dev/proven-addresses"];
    assert_eq!(*proven, json!([]));
}
