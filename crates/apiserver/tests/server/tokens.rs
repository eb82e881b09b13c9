//! Tokens of service accounts.

use serde_json::{Value, json};

use super::caller::Caller;
use super::cluster::{Cluster, eventually};
use super::objects::{PODS, pod};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn token(caller: &Caller, account: &str, spec: Value) -> String {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": spec});
    let path = format!("{ACCOUNTS}/{account}/token");
    let issued = caller.post(&path, &request).await.expect(201);
    issued["status"]["token"].as_str().unwrap().to_owned()
}

async fn whoami(caller: &Caller) -> Option<Value> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = caller.post(path, &review).await;
    if answer.code == 401 {
        return None;
    }
    Some(answer.expect(201)["status"]["userInfo"].clone())
}

async fn is_refused_soon(caller: &Caller) {
    eventually("the token is no good any more", async || {
        whoami(caller).await.is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_is_valid_until_its_account_is_deleted() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    admin.post(ACCOUNTS, &account).await.expect(201);
    let token = token(&admin, "a", json!({})).await;
    let bearer = cluster.bearer(&token);
    let user = whoami(&bearer).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:a");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let reviewed = admin.post(reviews, &review).await.expect(201);
    assert_eq!(reviewed["status"]["authenticated"], true);
    // A new account of the same name is another one.
    admin.delete(&format!("{ACCOUNTS}/a")).await.expect(200);
    admin.post(ACCOUNTS, &account).await.expect(201);
    is_refused_soon(&bearer).await;
    let reviewed = admin.post(reviews, &review).await.expect(201);
    assert_ne!(reviewed["status"]["authenticated"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_bound_to_a_pod_ends_with_the_pod() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let made = admin.post(PODS, &pod("p")).await.expect(201);
    let bound = json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p",
        "uid": made["metadata"]["uid"]}});
    let bearer = cluster.bearer(&token(&admin, "default", bound).await);
    let user = whoami(&bearer).await.unwrap();
    assert_eq!(
        user["extra"]["authentication.kubernetes.io/pod-name"],
        json!(["p"])
    );
    admin.delete(&format!("{PODS}/p")).await.expect(200);
    is_refused_soon(&bearer).await;
    admin.post(PODS, &pod("p")).await.expect(201);
    assert!(whoami(&bearer).await.is_none());
    let gone = json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}});
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": gone});
    let path = format!("{ACCOUNTS}/default/token");
    admin.post(&path, &request).await.refused(404, "NotFound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_was_tampered_with_is_refused() {
    let cluster = Cluster::start().await;
    let token = token(&cluster.admin(), "default", json!({})).await;
    let (rest, signature) = token.rsplit_once('.').unwrap();
    let (header, payload) = rest.split_once('.').unwrap();
    for wrong in [
        format!("{header}.{payload}."),
        format!("{header}.{payload}x.{signature}"),
        format!(
            "{header}.{payload}.{}",
            signature.replace(['A', 'B', 'C'], "D")
        ),
        format!("eyJhbGciOiJub25lIn0.{payload}.{signature}"),
        format!("eyJhbGciOiJub25lIn0.{payload}."),
        "...".to_owned(),
        "a".repeat(10_000),
    ] {
        assert!(whoami(&cluster.bearer(&wrong)).await.is_none(), "{wrong}");
    }
}
