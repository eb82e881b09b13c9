use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::*;
use crate::auth::identity::{MASTERS, user_of_certificate};

/// TLS libraries read the clock themselves.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_secs(i64::try_from(since.as_secs()).unwrap())
}

fn days_later(time: Timestamp, days: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos() + days * DAY_SECONDS * 1_000_000_000)
}

fn authority() -> (TempDir, Authority) {
    let directory = TempDir::new().unwrap();
    let authority = Authority::open(&directory.path().join("pki"), now()).unwrap();
    (directory, authority)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

fn key(certificate: &Certificate) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).unwrap()
}

fn roots(pem: &str) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    Arc::new(roots)
}

/// A whole handshake in memory; the client's certificate as the server has verified it.
fn handshake(
    authority: &Authority,
    server_name: &str,
    client: Option<&Certificate>,
) -> Result<Option<Vec<u8>>, rustls::Error> {
    let provider = Arc::new(default_provider());
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let server = authority.server(&names, now()).unwrap();
    let clients = roots(&authority.client_ca_pem());
    let verifier = WebPkiClientVerifier::builder_with_provider(clients, provider.clone())
        .allow_unauthenticated()
        .build()
        .unwrap();
    let server_config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![der(&server.certificate_pem)], key(&server))?;
    let client_config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(authority.certificate_pem()));
    let client_config = match client {
        Some(client) => {
            client_config.with_client_auth_cert(vec![der(&client.certificate_pem)], key(client))?
        }
        None => client_config.with_no_client_auth(),
    };
    let name = ServerName::try_from(server_name.to_owned()).unwrap();
    let mut server = ServerConnection::new(Arc::new(server_config))?;
    let mut client = ClientConnection::new(Arc::new(client_config), name)?;
    while server.is_handshaking() || client.is_handshaking() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    let found = server.peer_certificates().and_then(|chain| chain.first());
    Ok(found.map(|certificate| certificate.to_vec()))
}

#[test]
fn keys_and_directory_are_private_to_the_owner() {
    let (directory, authority) = authority();
    authority.server(&["localhost".to_owned()], now()).unwrap();
    authority.admin(now()).unwrap();
    let pki = directory.path().join("pki");
    assert_eq!(mode(&pki), 0o700);
    for name in ["ca.key", "client-ca.key", "server.key", "admin.key"] {
        assert_eq!(mode(&pki.join(name)), 0o600, "{name}");
    }
    for name in ["ca.crt", "server.crt", "admin.crt"] {
        assert_eq!(mode(&pki.join(name)), 0o644, "{name}");
    }
}

#[test]
fn permissions_of_a_readable_key_are_restricted() {
    let (directory, _) = authority();
    let pki = directory.path().join("pki");
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    open(&pki, 0o755).unwrap();
    open(&pki.join("ca.key"), 0o644).unwrap();
    Authority::open(&pki, now()).unwrap();
    assert_eq!((mode(&pki), mode(&pki.join("ca.key"))), (0o700, 0o600));
}

#[test]
fn existing_files_are_reused() {
    let (directory, first) = authority();
    let names = ["localhost".to_owned(), "::1".to_owned()];
    let server = first.server(&names, now()).unwrap();
    let again = Authority::open(&directory.path().join("pki"), now()).unwrap();
    assert_eq!(again.certificate_pem(), first.certificate_pem());
    let same = again.server(&names, now()).unwrap();
    assert_eq!(same.certificate_pem, server.certificate_pem);
    assert_eq!(same.key_pem, server.key_pem);
}

#[test]
fn server_certificate_is_reissued_for_new_names_age_or_key() {
    let (directory, authority) = authority();
    let names = ["localhost".to_owned()];
    let first = authority.server(&names, now()).unwrap();
    let later = authority.server(&names, days_later(now(), 300)).unwrap();
    assert_ne!(first.certificate_pem, later.certificate_pem);
    let others = ["localhost".to_owned(), "10.0.0.1".to_owned()];
    let renamed = authority.server(&others, now()).unwrap();
    assert_ne!(later.certificate_pem, renamed.certificate_pem);
    let path = directory.path().join("pki/server.key");
    fs::write(path, authority.admin(now()).unwrap().key_pem).unwrap();
    let repaired = authority.server(&others, now()).unwrap();
    assert_ne!(renamed.certificate_pem, repaired.certificate_pem);
}

#[test]
fn ca_certificate_is_renewed_with_the_same_key() {
    let (directory, first) = authority();
    let client = first.client("alice", &[], now()).unwrap();
    let much_later = days_later(now(), 3000);
    let renewed = Authority::open(&directory.path().join("pki"), much_later).unwrap();
    assert_ne!(renewed.certificate_pem(), first.certificate_pem());
    assert!(renewed.clients.has_signed(&client.certificate_pem));
}

#[test]
fn error_names_the_file_that_is_not_a_certificate() {
    let (directory, _) = authority();
    let path = directory.path().join("pki/ca.crt");
    fs::write(&path, "nonsense").unwrap();
    let error = Authority::open(&directory.path().join("pki"), now()).unwrap_err();
    let expected = format!(
        "{} does not contain a certificate in PEM format; remove the file to create a new one",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn certificate_of_another_key_is_rejected() {
    let (directory, _) = authority();
    let (other_directory, _) = authority();
    let file = |directory: &TempDir| directory.path().join("pki/ca.key");
    fs::copy(file(&other_directory), file(&directory)).unwrap();
    let error = Authority::open(&directory.path().join("pki"), now()).unwrap_err();
    assert!(matches!(error, AuthorityError::OtherKey { .. }), "{error}");
}

#[test]
fn users_and_groups_survive_the_handshake() {
    let (_directory, authority) = authority();
    let groups = ["dev", "ops", "naïve-ünïcode"];
    let client = authority.client("alice", &groups, now()).unwrap();
    for server_name in ["localhost", "127.0.0.1"] {
        let seen = handshake(&authority, server_name, Some(&client)).unwrap();
        let user = user_of_certificate(&seen.unwrap()).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", ""));
        assert_eq!(user.groups, groups);
        let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
        assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
    }
    assert_eq!(handshake(&authority, "localhost", None), Ok(None));
}

#[test]
fn kubelets_and_administrator_have_upstream_user_names() {
    let (_directory, authority) = authority();
    let user = |certificate: &Certificate| {
        let der = der(&certificate.certificate_pem);
        user_of_certificate(&der).unwrap().unwrap()
    };
    let kubelet = user(&authority.kubelet("n1", now()).unwrap());
    assert_eq!(kubelet.node_name(), Some("n1"));
    assert!(user(&authority.admin(now()).unwrap()).is_in(MASTERS));
}

#[test]
fn joining_kubelet_keeps_its_key() {
    let (_directory, authority) = authority();
    let request = |user: &str, group: &str| {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        params.distinguished_name.push(DnType::CommonName, user);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap();
        (request.pem().unwrap(), key.serialize_pem())
    };
    let (pem, key_pem) = request("system:node:n1", "system:nodes");
    let certificate_pem = authority.sign_kubelet(&pem, now()).unwrap();
    let client = Certificate {
        certificate_pem,
        key_pem,
    };
    let seen = handshake(&authority, "localhost", Some(&client)).unwrap();
    let user = user_of_certificate(&seen.unwrap()).unwrap().unwrap();
    assert_eq!(user.node_name(), Some("n1"));

    let refused = [
        request("system:node:n1", "system:masters"),
        request("alice", "system:nodes"),
        request("system:node:", "system:nodes"),
    ];
    for (pem, _) in refused {
        let problem = authority.sign_kubelet(&pem, now()).unwrap_err();
        assert!(matches!(problem, RequestProblem::NotKubelet), "{problem}");
    }
    let problem = authority.sign_kubelet("nonsense", now()).unwrap_err();
    assert!(matches!(problem, RequestProblem::Malformed(_)), "{problem}");
}

#[test]
fn foreign_and_serving_certificates_are_rejected_as_clients() {
    let (_directory, own) = authority();
    let (_other_directory, other) = authority();
    let stranger = other.admin(now()).unwrap();
    assert!(handshake(&own, "localhost", Some(&stranger)).is_err());
    let server = own.server(&["localhost".to_owned()], now()).unwrap();
    assert!(handshake(&own, "localhost", Some(&server)).is_err());
    assert!(handshake(&own, "example.com", None).is_err());
    // The certificate that this server uses with nodes, although it is a client certificate.
    let certificate = own.node_client("api", &[MASTERS], now()).unwrap();
    assert!(handshake(&own, "localhost", Some(&certificate)).is_err());
}

/// A directory of an earlier version, in which one CA signed everything.
fn earlier() -> (TempDir, Ca) {
    let directory = TempDir::new().unwrap();
    let long_ago = days_later(now(), -100);
    let ca = Ca::open(directory.path(), "ca", "plimsoll-ca", long_ago).unwrap();
    (directory, ca)
}

fn signed_by(ca: &Ca, user: &str, time: Timestamp) -> Certificate {
    let key = new_key(user).unwrap();
    Certificate {
        certificate_pem: ca.sign_client(user, &[MASTERS], &key, time).unwrap(),
        key_pem: key.serialize_pem(),
    }
}

#[test]
fn certificates_of_the_replaced_ca_are_valid_only_if_signed_before_replacement() {
    let (directory, replaced_ca) = earlier();
    let before = signed_by(&replaced_ca, "before", days_later(now(), -1));
    let authority = Authority::open(directory.path(), now()).unwrap();
    // Clients trust the same CA and stay authenticated with their certificates.
    assert_eq!(authority.certificate_pem(), replaced_ca.certificate_pem());
    let shown = handshake(&authority, "localhost", Some(&before)).unwrap();
    assert!(authority.admits_client(&shown.unwrap()));
    let since = signed_by(&replaced_ca, "since", days_later(now(), 1));
    assert!(!authority.admits_client(&der(&since.certificate_pem)));
    let own = authority.client("own", &[], now()).unwrap();
    assert!(authority.admits_client(&der(&own.certificate_pem)));
    assert!(!replaced_ca.has_signed(&own.certificate_pem));
    // Nodes are trusted with the certificates that they have.
    let trusted = authority.kubelet_serving_ca_pem();
    assert_eq!(trusted.matches("BEGIN CERTIFICATE").count(), 2);

    // A year later everything of it has expired, and the replacement time is unchanged.
    let again = Authority::open(directory.path(), days_later(now(), 30)).unwrap();
    assert!(again.admits_client(&der(&before.certificate_pem)));
    assert!(!again.admits_client(&der(&since.certificate_pem)));
    let later = Authority::open(directory.path(), days_later(now(), 366)).unwrap();
    assert_eq!(
        later.client_ca_pem().matches("BEGIN CERTIFICATE").count(),
        1
    );
}

#[test]
fn new_directory_has_no_replaced_ca() {
    let (directory, authority) = authority();
    for pem in [
        authority.client_ca_pem(),
        authority.kubelet_serving_ca_pem(),
    ] {
        assert_eq!(pem.matches("BEGIN CERTIFICATE").count(), 1);
        assert_ne!(pem, authority.certificate_pem());
    }
    let again = Authority::open(&directory.path().join("pki"), now()).unwrap();
    assert_eq!(again.client_ca_pem(), authority.client_ca_pem());
}

#[test]
fn clock_that_is_behind_changes_nothing() {
    let (directory, first) = authority();
    let names = ["localhost".to_owned()];
    let server = first.server(&names, now()).unwrap();
    let admin = first.admin(now()).unwrap();
    for behind in [days_later(now(), -2), Timestamp::from_secs(5)] {
        let again = Authority::open(&directory.path().join("pki"), behind).unwrap();
        assert_eq!(again.certificate_pem(), first.certificate_pem());
        assert_eq!(again.client_ca_pem(), first.client_ca_pem());
        let same = again.server(&names, behind).unwrap();
        assert_eq!(same.certificate_pem, server.certificate_pem);
        let same = again.admin(behind).unwrap();
        assert_eq!(same.certificate_pem, admin.certificate_pem);
    }
}

#[test]
fn unset_clock_is_rejected_before_keys_are_created() {
    let directory = TempDir::new().unwrap();
    let error = Authority::open(directory.path(), Timestamp::from_secs(5)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the clock of this machine says 1970-01-01T00:00:05Z, which cannot be; set it before the \
         keys of the cluster are made"
    );
    assert!(!directory.path().join("ca.key").exists());
    Authority::open(directory.path(), now()).unwrap();
}

#[test]
fn kubeconfig_is_self_contained() {
    let (_directory, authority) = authority();
    let admin = authority.admin(now()).unwrap();
    let ca = authority.certificate_pem();
    let text = kubeconfig("https://127.0.0.1:6443", ca, "admin", &admin);
    assert!(
        text.contains("    server: \"https://127.0.0.1:6443\"\n"),
        "{text}"
    );
    let value = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(key))
            .unwrap();
        use base64::Engine;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(line.trim())
            .unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(value("certificate-authority-data:"), ca);
    assert_eq!(value("client-certificate-data:"), admin.certificate_pem);
    assert_eq!(value("client-key-data:"), admin.key_pem);
}
