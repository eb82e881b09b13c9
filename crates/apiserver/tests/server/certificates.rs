//! Certificates that expire while the server runs, and certificates of an earlier version.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_apiserver::auth::authority::Authority;
use plimsoll_apiserver::store::{RedbOptions, RedbStore};
use plimsoll_client::skip_verification::SkipVerification;
use plimsoll_core::object::timestamp::Timestamp;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::caller::Caller;
use super::cluster::{Cluster, eventually, now, soon};
use super::objects::CONFIG_MAPS;

const YEAR: i64 = 365 * 24 * 60 * 60;

fn from_now(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(now().as_nanos() + seconds * 1_000_000_000)
}

/// The server's current certificate.
async fn shown(cluster: &Cluster) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let any = SkipVerification::new(&provider);
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any))
        .with_no_client_auth();
    let tcp = TcpStream::connect(cluster.address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    let stream = soon("a handshake", connecting).await.unwrap();
    let (_, session) = stream.get_ref();
    session.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serving_certificate_is_renewed_at_runtime() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    // A quarter of its lifetime is left in three seconds; it began an hour before it was issued.
    let made = from_now(-(YEAR * 3 / 4) + 60 * 60 / 4 + 3);
    let pki = folder.path().join("pki");
    let authority = Authority::open(&pki, now()).unwrap();
    let old = authority.server(&names, made).unwrap();
    let store = RedbStore::open(&folder.path().join("store.redb"), &RedbOptions::default());
    let cluster = Cluster::open(Arc::new(store.unwrap()), folder, |_| {}).await;
    let kept = authority.server(&names, now()).unwrap();
    assert_eq!(kept.certificate_pem, old.certificate_pem);
    let before = shown(&cluster).await;
    eventually("it is exchanged", async || {
        (shown(&cluster).await != before).then_some(())
    })
    .await;
    cluster.admin().get(CONFIG_MAPS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_issued_by_a_clock_ahead_are_replaced() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let authority = Authority::open(&folder.path().join("pki"), now()).unwrap();
    let ahead = authority.server(&names, from_now(YEAR)).unwrap();
    let admin = authority.admin(from_now(YEAR)).unwrap();
    // A clock that is before the authority is wrong, and changes nothing.
    let kept = authority.server(&names, Timestamp::from_secs(60)).unwrap();
    assert_eq!(kept.certificate_pem, ahead.certificate_pem);
    let store = RedbStore::open(&folder.path().join("store.redb"), &RedbOptions::default());
    // Clients that look at the certificate find the server ready.
    let cluster = Cluster::open(Arc::new(store.unwrap()), folder, |_| {}).await;
    cluster.admin().get(CONFIG_MAPS).await.expect(200);
    let renewed = authority.admin(now()).unwrap();
    assert_ne!(renewed.certificate_pem, admin.certificate_pem);
    cluster.caller(&renewed).get(CONFIG_MAPS).await.expect(200);
}

/// A client whose certificate expires in this many seconds.
fn caller_until(cluster: &Cluster, seconds: i64) -> Caller {
    let authority = cluster.server.authority();
    let made = from_now(seconds - YEAR);
    let own = authority
        .client("admin", &["system:masters"], made)
        .unwrap();
    cluster.caller(&own)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_client_certificate_is_rejected_on_open_connections() {
    let cluster = Cluster::start().await;
    let caller = caller_until(&cluster, 3);
    caller.get(CONFIG_MAPS).await.expect(200);
    let mut watch = caller.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    watch.next().await.unwrap();
    // The connection is kept, without another handshake.
    let code = Arc::new(Mutex::new(200));
    eventually("the identity ends", async || {
        let answer = caller.try_get(CONFIG_MAPS).await;
        *code.lock().unwrap() = answer.unwrap_or(0);
        (*code.lock().unwrap() != 200).then_some(())
    })
    .await;
    let code = *code.lock().unwrap();
    assert!(matches!(code, 0 | 401), "{code}");
    let ending = async { while watch.try_next().await.is_some() {} };
    let ended = tokio::time::timeout(Duration::from_secs(15), ending).await;
    ended.expect("the watch ends, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_an_earlier_pki_directory_stay_valid() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let pki = folder.path().join("pki");
    std::fs::create_dir(&pki).unwrap();
    // One CA, for servers and clients.
    let ca_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "plimsoll-ca");
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let day = time::Duration::days(1);
    let today = time::OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (today - day * 10, today + day * 3000);
    let ca_pem = params.self_signed(&ca_key).unwrap().pem();
    std::fs::write(pki.join("ca.crt"), &ca_pem).unwrap();
    std::fs::write(pki.join("ca.key"), ca_key.serialize_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&ca_pem, ca_key).unwrap();
    let client = |start| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "system:node:n1");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "system:nodes");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = (start, today + day * 300);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        plimsoll_apiserver::auth::authority::Certificate {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    };
    let before = client(today - day);
    let store = RedbStore::open(&folder.path().join("store.redb"), &RedbOptions::default());
    let cluster = Cluster::open(Arc::new(store.unwrap()), folder, |_| {}).await;
    assert_eq!(cluster.server.authority().certificate_pem(), ca_pem);
    let node = "/api/v1/nodes/n1";
    cluster
        .caller(&before)
        .get(node)
        .await
        .refused(404, "NotFound");
    // The same key signs the serving certificate, but no more client certificates.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let since = client(time::OffsetDateTime::now_utc());
    assert_eq!(cluster.caller(&since).try_get(node).await, None);
    let authority = cluster.server.authority();
    let certificate = authority.node_client("x", &["system:masters"], from_now(7200));
    let caller = cluster.caller(&certificate.unwrap());
    assert_eq!(caller.try_get(node).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn front_proxy_headers_are_ignored() {
    let cluster = Cluster::start().await;
    let anyone = cluster.user("anyone", &[]).with("x-remote-user", "admin");
    let anyone = anyone.with("x-remote-group", "system:masters");
    let message = anyone.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    assert!(message.contains("User \"anyone\""), "{message}");
}
