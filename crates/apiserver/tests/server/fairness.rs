//! A greedy client, and other clients that must be served meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_apiserver::store::RedbOptions;
use plimsoll_core::admission::event_rate_limit::{EventRateLimits, Limit, LimitType};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::caller::Caller;
use super::cluster::{Cluster, eventually, soon};
use super::objects::{CONFIG_MAPS, SECRETS, config_map, secret};

/// Users with all permissions that are not administrators.
const TENANTS: &str = "tenants";

async fn cluster_of_tenants(places: Option<usize>) -> Cluster {
    let adapt = |options: &mut plimsoll_apiserver::server::Options| {
        options.max_reads = places.unwrap_or(options.max_reads);
        options.max_writes = places.unwrap_or(options.max_writes);
    };
    let cluster = Cluster::start_with(adapt, RedbOptions::default()).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding", "metadata": {"name": TENANTS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": TENANTS}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    cluster.admin().post(bindings, &binding).await.expect(201);
    cluster
}

fn tenant(cluster: &Cluster, name: &str) -> Caller {
    cluster.user(name, &[TENANTS])
}

/// A connection of a tenant, or an anonymous one.
async fn connect(cluster: &Cluster, user: Option<&str>, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let ca = cluster.server.authority().certificate_pem();
    let ca = CertificateDer::from_pem_slice(ca.as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match user {
        None => config.with_no_client_auth(),
        Some(user) => {
            let own = cluster.certificate(user, &[TENANTS]);
            let pem = own.certificate_pem.as_bytes();
            let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let tcp = TcpStream::connect(cluster.address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    soon("a handshake", connecting).await.unwrap()
}

type Http2 = http2::SendRequest<Empty<Bytes>>;

/// An HTTP/2 connection of a tenant.
async fn http2(cluster: &Cluster, user: &str) -> Http2 {
    let stream = connect(cluster, Some(user), b"h2").await;
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    let uri = format!("https://127.0.0.1{path}");
    let request = Request::builder().method(Method::GET).uri(uri);
    request.body(Empty::new()).unwrap()
}

/// A write whose body never comes.
async fn stalled_write(cluster: &Cluster, user: &str) -> TlsStream<TcpStream> {
    let mut stream = connect(cluster, Some(user), b"http/1.1").await;
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: 1000000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

async fn metric(admin: &Caller, sample: &str) -> u64 {
    let text = admin.get("/metrics").await.body;
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(sample));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_body_does_not_occupy_a_write_seat() {
    let cluster = cluster_of_tenants(Some(4)).await;
    let admin = cluster.admin();
    let mut stalled = Vec::new();
    for _ in 0..8 {
        stalled.push(stalled_write(&cluster, "greedy").await);
    }
    let bodies = "apiserver_flowcontrol_current_executing_requests{\
        priority_level=\"global-default\",request_kind=\"body\"}";
    eventually("bodies are waited for", async || {
        (metric(&admin, bodies).await == 8).then_some(())
    })
    .await;
    let begun = Instant::now();
    for (number, name) in ["greedy", "other", "another"].into_iter().enumerate() {
        let object = config_map(&format!("c{number}"));
        let answer = tenant(&cluster, name).post(CONFIG_MAPS, &object).await;
        answer.expect(201);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    // The wait ends, and the client gets an error.
    let mut answer = Vec::new();
    let reading = stalled[0].read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(30), reading).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(
        answer.contains("the body of the request did not come"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_that_takes_all_seats_leaves_some_to_others() {
    let cluster = cluster_of_tenants(Some(10)).await;
    let far = cluster.store.current_revision().await.unwrap() + 1000;
    // Each waits three seconds for a version that does not come.
    let path = format!("{SECRETS}?resourceVersion={far}");
    let mut greedy = JoinSet::new();
    for _ in 0..100 {
        let (caller, path) = (tenant(&cluster, "greedy"), path.clone());
        greedy.spawn(async move { caller.get(&path).await.code });
    }
    let admin = cluster.admin();
    let executing = "apiserver_flowcontrol_current_executing_requests{\
        priority_level=\"global-default\",request_kind=\"readOnly\"}";
    eventually("the greedy have their share", async || {
        (metric(&admin, executing).await == 3).then_some(())
    })
    .await;
    let begun = Instant::now();
    tenant(&cluster, "modest").get(SECRETS).await.expect(200);
    cluster
        .kubelet("n")
        .get("/api/v1/nodes/n")
        .await
        .refused(404, "NotFound");
    admin.get(SECRETS).await.expect(200);
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    let codes = greedy.join_all().await;
    assert!(codes.contains(&504) && codes.contains(&429), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_per_user_are_limited() {
    let cluster = cluster_of_tenants(None).await;
    let mut connections = Vec::new();
    let mut watches = Vec::new();
    let mut refused = 0;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=0");
    for _ in 0..9 {
        let mut sender = http2(&cluster, "greedy").await;
        for _ in 0..240 {
            let answer = soon("a watch", sender.send_request(get(&path)))
                .await
                .unwrap();
            match answer.status().as_u16() {
                200 => watches.push(answer),
                code => {
                    assert_eq!(code, 429);
                    assert_eq!(answer.headers()["retry-after"], "1");
                    refused += 1;
                }
            }
        }
        connections.push(sender);
    }
    assert_eq!((watches.len(), refused), (2_000, 160));
    drop(tenant(&cluster, "modest").watch(&path).await);
    drop(watches);
    let again = eventually("watches that ended are not counted", async || {
        let answer = connections[0].send_request(get(&path)).await.ok()?;
        (answer.status() == 200).then_some(answer)
    });
    drop(again.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_resets_close_the_connection() {
    let cluster = cluster_of_tenants(None).await;
    let far = cluster.store.current_revision().await.unwrap() + 1000;
    let path = format!("{SECRETS}?resourceVersion={far}");
    let mut sender = http2(&cluster, "greedy").await;
    let mut given_up = 0;
    while sender.ready().await.is_ok() && given_up < 20_000 {
        let asking = (0..200).map(|_| sender.send_request(get(&path)));
        let asking: Vec<_> = asking.collect();
        // Long enough to be sent.
        let waiting = futures::future::join_all(asking);
        let _ = tokio::time::timeout(Duration::from_millis(20), waiting).await;
        given_up += 200;
    }
    assert!((400..20_000).contains(&given_up), "{given_up}");
    tenant(&cluster, "greedy").get(SECRETS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_token_closes_the_connection() {
    let cluster = cluster_of_tenants(None).await;
    let mut stream = connect(&cluster, None, b"http/1.1").await;
    let request = "GET /api HTTP/1.1\r\nhost: x\r\nauthorization: Bearer made-up\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the end", stream.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 401"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_beyond_the_rate_limit_are_rejected() {
    let limit = Limit {
        limit_type: LimitType::SourceAndObject,
        qps: 1,
        burst: 3,
        cache_size: 10,
    };
    let adapt = |options: &mut plimsoll_apiserver::server::Options| {
        options.event_rate_limits = EventRateLimits(vec![limit]);
    };
    let cluster = Cluster::start_with(adapt, RedbOptions::default()).await;
    let admin = cluster.admin();
    let path = "/api/v1/namespaces/default/events";
    let event = |name: &str, about: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "source": {"component": "c"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": about}})
    };
    for number in 0..3 {
        admin
            .post(path, &event(&format!("e{number}"), "p"))
            .await
            .expect(201);
    }
    let dry = admin
        .post(&format!("{path}?dryRun=All"), &event("e3", "p"))
        .await;
    dry.expect(201);
    let refused = admin.post(path, &event("e3", "p")).await;
    assert_eq!(
        refused.refused(429, "TooManyRequests"),
        "Too many requests: limit reached on type SourceAndObject for key cPoddefaultp"
    );
    admin.post(path, &event("e3", "other")).await.expect(201);
}

/// Clients on a thread of their own: their CPU time is not the server's to share.
struct Attackers(Option<tokio::runtime::Runtime>);

impl Attackers {
    fn of<A: Future<Output = ()> + Send + 'static>(
        cluster: &Arc<Cluster>,
        count: usize,
        attack: impl Fn(Arc<Cluster>) -> A,
    ) -> Attackers {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        for _ in 0..count {
            runtime.spawn(attack(Arc::clone(cluster)));
        }
        Attackers(Some(runtime))
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The administrator's latencies, sorted: on one connection, and sometimes on a new one.
async fn waits_of_the_administrator(cluster: &Cluster) -> Vec<Duration> {
    let mut admin = cluster.admin();
    let mut waits = Vec::new();
    for number in 0..100 {
        if number % 10 == 9 {
            admin = cluster.admin();
        }
        let begun = Instant::now();
        admin.get("/api/v1/namespaces/default").await.expect(200);
        waits.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    waits.sort();
    waits
}

/// Sends something that never ends, on many connections.
async fn unfinished(
    cluster: &Cluster,
    count: usize,
    beginning: &[u8],
) -> Vec<TlsStream<TcpStream>> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = connect(cluster, None, b"http/1.1").await;
        let _ = stream.write_all(beginning).await;
        let _ = stream.flush().await;
        streams.push(stream);
    }
    streams
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn administrator_is_served_under_load() {
    let cluster = Arc::new(cluster_of_tenants(None).await);
    let mut seeding = JoinSet::new();
    for number in 0..2_000 {
        let admin = cluster.admin();
        let mut object = secret(&format!("s{number}"));
        object["stringData"] = json!({"d": "x".repeat(4_000)});
        seeding.spawn(async move { admin.post(SECRETS, &object).await.code });
        if seeding.len() >= 32 {
            assert_eq!(seeding.join_next().await.unwrap().unwrap(), 201);
        }
    }
    seeding.join_all().await;
    let mut table = Vec::new();
    let mut measure = async |attack: &str| {
        let asked = Arc::clone(&cluster);
        // On a thread of its own, too.
        let waits = tokio::task::spawn_blocking(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(waits_of_the_administrator(&asked))
        });
        let waits = waits.await.unwrap();
        let (half, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100 - 1]);
        println!("{attack:<20} p50 {half:>8.1?}  p99 {p99:>8.1?}");
        table.push((attack.to_owned(), p99));
    };
    measure("none").await;

    let mut kept = Vec::new();
    for _ in 0..300 {
        kept.push(stalled_write(&cluster, "greedy").await);
    }
    measure("slow bodies").await;
    drop(kept);

    let kept = unfinished(&cluster, 300, b"GET /api HTTP/1.1\r\nhost:").await;
    measure("slow headers").await;
    drop(kept);

    let mut silent = Vec::new();
    for _ in 0..1_200 {
        silent.push(TcpStream::connect(cluster.address).await.unwrap());
    }
    measure("silent sockets").await;
    drop(silent);

    let attackers = Attackers::of(&cluster, 4, |cluster| async move {
        loop {
            let mut sender = http2(&cluster, "greedy").await;
            while sender.ready().await.is_ok() {
                let asking = sender.send_request(get(SECRETS));
                let _ = tokio::time::timeout(Duration::from_micros(200), asking).await;
            }
        }
    });
    measure("rapid reset").await;
    drop(attackers);

    let streams = |path: &'static str| {
        Attackers::of(&cluster, 4, move |cluster| async move {
            let sender = http2(&cluster, "greedy").await;
            let asking = (0..240).map(|_| {
                let mut sender = sender.clone();
                async move {
                    while let Ok(answer) = sender.send_request(get(path)).await {
                        let _ = answer.into_body().collect().await;
                    }
                }
            });
            futures::future::join_all(asking).await;
        })
    };
    let attackers = streams("/api/v1/namespaces");
    measure("many streams").await;
    drop(attackers);

    let number = Arc::new(AtomicUsize::new(0));
    let attackers = Attackers::of(&cluster, 24, move |cluster| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        async move {
            let caller = tenant(&cluster, &format!("greedy{}", number % 3));
            let path = match number % 2 {
                0 => format!("{SECRETS}?pretty=true"),
                _ => SECRETS.to_owned(),
            };
            loop {
                caller.get(&path).await;
            }
        }
    });
    measure("huge lists").await;
    drop(attackers);

    let attackers = streams("/api/v1/namespaces/default/secrets?watch=true");
    measure("watch flood").await;
    drop(attackers);

    for (attack, p99) in table {
        assert!(p99 < Duration::from_secs(1), "{attack}: {p99:?}");
    }
}
