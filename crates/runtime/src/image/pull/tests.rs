use std::fs;

use plimsoll_core::error_chain::error_chain;
use plimsoll_testkit::images::{Image, Layer, Tree, digest};
use plimsoll_testkit::registry::{PASSWORD, Registry, USER};
use serde_json::json;
use tempfile::TempDir;

use super::*;

struct Bench {
    _folder: TempDir,
    store: Store,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("images")).unwrap();
        Bench {
            _folder: folder,
            store,
        }
    }

    async fn pull_as(&self, name: &str, auth: RegistryAuth) -> Result<Record, Error> {
        let name = name.parse().unwrap();
        self.store
            .pull(&name, auth, &Registries::default(), false)
            .await
    }

    async fn pull(&self, name: &str) -> Result<Record, Error> {
        self.pull_as(name, RegistryAuth::Anonymous).await
    }

    fn file(&self, image: &Record, layer: usize, path: &str) -> String {
        let files = self.store.layers.files(&image.layers[layer]);
        fs::read_to_string(files.join(path)).unwrap()
    }

    fn leftovers(&self) -> Vec<String> {
        let parts = ["blobs", "layers", "work"].into_iter();
        let names = |part: &str| super::super::file::names(&self.store.directory().join(part));
        parts.flat_map(|part| names(part).unwrap()).collect()
    }
}

fn tree(name: &str) -> Vec<u8> {
    Tree::new().file(name, 0o644, name.as_bytes()).into_tar()
}

/// More layers than are fetched at once, in all compressions.
fn image() -> Image {
    Image::new(vec![
        Layer::gzip(tree("a")),
        Layer::zstd(tree("b")),
        Layer::plain(tree("c")),
        Layer::gzip(tree("d")),
        Layer::gzip(tree("e")),
    ])
}

fn manifest_digest(image: &Image) -> String {
    digest(&image.manifest())
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn an_image_is_pulled_by_tag_and_by_digest() {
    let registry = Registry::start();
    let image = image();
    let name = registry.push("team/app", "v1", &image);
    let by_digest = format!(
        "{}/team/app@{}",
        registry.address(),
        manifest_digest(&image)
    );

    let bench = Bench::new();
    let record = bench.pull(&name).await.unwrap();
    assert_eq!(record.id.to_string(), image.id());
    assert_eq!(record.tags, [name.clone()].into());
    assert_eq!(record.digests, [by_digest.clone()].into());
    assert_eq!(record.reference(), by_digest);
    for (layer, path) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        assert_eq!(bench.file(&record, layer, path), path);
    }
    assert!(record.size > 0);

    let other = Bench::new();
    let record = other.pull(&by_digest).await.unwrap();
    assert_eq!(record.tags, [].into());
    assert_eq!(record.digests, [by_digest].into());
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn stored_layers_are_not_fetched_again() {
    let registry = Registry::start();
    let first = image();
    let name = registry.push("app", "latest", &first);
    let bench = Bench::new();
    let before = bench.pull(&name).await.unwrap();

    // The same image under another name.
    registry.put_blob("copy", &first.configuration());
    for layer in &first.layers {
        registry.put_blob("copy", &layer.blob);
    }
    let media_type = MANIFESTS[0];
    registry.put_manifest("copy", "x", media_type, &first.manifest());
    let copy = format!("{}/copy:x", registry.address());
    assert_eq!(bench.pull(&copy).await.unwrap().id, before.id);
    let catalogue = bench.store.catalogue().unwrap();
    assert_eq!(catalogue.images().len(), 1);
    assert_eq!(catalogue.images()[0].tags.len(), 2);

    // A tag that moved brings the new image and only its new layers.
    let mut second = first.clone();
    second.layers.push(Layer::gzip(tree("f")));
    registry.push("app", "latest", &second);
    let after = bench.pull(&name).await.unwrap();
    assert_eq!(after.layers[..5], before.layers);
    let catalogue = bench.store.catalogue().unwrap();
    assert_eq!(catalogue.find(&name).map(|image| image.id), Some(after.id));
    assert_eq!(catalogue.images().len(), 2);
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn an_index_gives_the_image_for_this_machine() {
    let registry = Registry::start();
    let ours = image();
    let mut other = ours.clone();
    other.layers.pop();
    for image in [&ours, &other] {
        registry.push("app", "single", image);
        let manifest = image.docker_manifest();
        let digest = digest(&manifest);
        registry.put_manifest("app", &digest, MANIFESTS[1], &manifest);
    }
    let entry = |image: &Image, architecture: &str| {
        let manifest = image.docker_manifest();
        json!({
            "mediaType": MANIFESTS[1],
            "digest": digest(&manifest),
            "size": manifest.len(),
            "platform": {"os": "linux", "architecture": architecture},
        })
    };
    let architecture = super::super::configuration::architecture();
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEXES[1],
        "manifests": [entry(&other, "s390x"), entry(&ours, architecture)],
    });
    let index = index.to_string();
    let digest = registry.put_manifest("app", "multi", INDEXES[1], index.as_bytes());
    let bench = Bench::new();
    let name = format!("{}/app:multi", registry.address());
    let record = bench.pull(&name).await.unwrap();
    assert_eq!(record.id.to_string(), ours.id());
    // The request was for the index, so its digest is that of the image.
    let by_digest = format!("{}/app@{digest}", registry.address());
    assert_eq!(record.digests, [by_digest].into());
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn registry_may_require_credentials() {
    let registry = Registry::start_with_login();
    let name = registry.push("app", "v1", &image());
    let address = registry.address();
    let bench = Bench::new();
    let basic =
        |user: &str, password: &str| RegistryAuth::Basic(user.to_owned(), password.to_owned());
    let denied = format!(
        "image {name}: access denied by registry {address}, credentials are missing or wrong"
    );
    for wrong in [RegistryAuth::Anonymous, basic(USER, "guess")] {
        let refused = bench.pull_as(&name, wrong).await.unwrap_err();
        assert_eq!(refused.to_string(), denied);
        assert!(!refused.is_unavailable());
    }
    assert_eq!(bench.leftovers(), [""; 0]);
    bench.pull_as(&name, basic(USER, PASSWORD)).await.unwrap();
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn missing_image_is_named_with_its_registry() {
    let registry = Registry::start();
    let address = registry.address();
    registry.push("app", "v1", &image());
    let bench = Bench::new();
    for name in ["app:v2", "nothing:v1"] {
        let name = format!("{address}/{name}");
        let refused = bench.pull(&name).await.unwrap_err();
        let expected = format!("image {name} not found in registry {address}");
        assert_eq!(refused.to_string(), expected);
    }
    assert_eq!(bench.leftovers(), [""; 0]);
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn layers_with_a_wrong_diff_id_are_refused() {
    let registry = Registry::start();
    let genuine = image();
    let mut forged = genuine.clone();
    forged.layers[3] = Layer::gzip(tree("evil"));
    // The manifest is right about the blobs, the configuration is about the genuine layers.
    for layer in &forged.layers {
        registry.put_blob("app", &layer.blob);
    }
    registry.put_blob("app", &genuine.configuration());
    let forged_id = forged.id();
    let manifest = String::from_utf8(forged.manifest()).unwrap();
    let manifest = manifest.replace(&forged_id, &genuine.id());
    let manifest = manifest.replace(
        &format!("\"size\":{}", forged.configuration().len()),
        &format!("\"size\":{}", genuine.configuration().len()),
    );
    registry.put_manifest("app", "v1", MANIFESTS[0], manifest.as_bytes());
    let bench = Bench::new();
    let name = format!("{}/app:v1", registry.address());
    let refused = bench.pull(&name).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("image {name} cannot be unpacked")
    );
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains("does not match its diff ID"), "{cause}");
    assert_eq!(bench.leftovers(), [""; 0]);
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn unreachable_registry_is_unavailable() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let bench = Bench::new();
    let name = format!("{address}/app:v1");
    let refused = bench.pull(&name).await.unwrap_err();
    assert!(refused.is_unavailable());
    let expected = format!("image {name}: registry {address} cannot be reached");
    assert_eq!(refused.to_string(), expected);
}

/// A registry of few words: what it answers to which request.
struct Scripted {
    address: std::net::SocketAddr,
}

impl Scripted {
    /// Answers by path: further headers and a body, or a status.
    fn start(answer: impl Fn(&str, &str) -> (u16, String, Vec<u8>) + Send + 'static) -> Scripted {
        use std::io::{BufRead, BufReader, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().and_then(Result::ok).unwrap_or_default();
                let headers: Vec<String> = lines
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let headers = headers.join("\n").to_lowercase();
                let (status, more, body) = answer(path, &headers);
                let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n{more}\r\n");
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            }
        });
        Scripted { address }
    }

    /// Serves one image without authentication, its blobs changed in transit.
    fn serving(image: Image, change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) -> Scripted {
        Scripted::start(move |path, _| {
            if path == "/v2/" {
                return (200, String::new(), Vec::new());
            }
            if path.starts_with("/v2/app/manifests/") {
                let media_type = format!("Content-Type: {}\r\n", MANIFESTS[0]);
                return (200, media_type, image.manifest());
            }
            let wanted = path.trim_start_matches("/v2/app/blobs/");
            if digest(&image.configuration()) == wanted {
                return (200, String::new(), image.configuration());
            }
            let blob = image
                .layers
                .iter()
                .find(|layer| digest(&layer.blob) == wanted);
            (200, String::new(), change(blob.unwrap().blob.clone()))
        })
    }

    fn image(&self) -> String {
        format!("{}/app:v1", self.address)
    }
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn blobs_are_checked_as_they_arrive() {
    let longer = |blob: Vec<u8>| [blob, vec![0; 100]].concat();
    let shorter = |mut blob: Vec<u8>| {
        blob.truncate(blob.len() / 2);
        blob
    };
    let flipped = |mut blob: Vec<u8>| {
        let middle = blob.len() / 2;
        blob[middle] ^= 1;
        blob
    };
    type Change = fn(Vec<u8>) -> Vec<u8>;
    let changes: [(Change, &str); 3] = [
        (longer, "is longer than its"),
        (shorter, "Invalid digest"),
        (flipped, "Invalid digest"),
    ];
    for (change, expected) in changes {
        let bench = Bench::new();
        let registry = Scripted::serving(image(), change);
        let refused = bench.pull(&registry.image()).await.unwrap_err();
        let text = error_chain(&refused);
        assert!(text.contains(expected), "{text}");
        assert_eq!(bench.leftovers(), [""; 0]);
    }
    let registry = Scripted::serving(image(), |blob| blob);
    Bench::new().pull(&registry.image()).await.unwrap();
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn token_is_fetched_from_the_realm_of_the_registry() {
    let image = image();
    let manifest = image.manifest();
    let registry = Scripted::start(move |path, headers| {
        let host = headers
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .unwrap_or_default();
        if path.starts_with("/token?") {
            let is_known = headers.contains("authorization: basic dtpw");
            assert!(path.contains("scope=repository%3Aapp%3Apull"), "{path}");
            return match is_known {
                true => (200, String::new(), br#"{"token":"t0ken"}"#.to_vec()),
                false => (401, String::new(), b"who are you?".to_vec()),
            };
        }
        if !headers.contains("authorization: bearer t0ken") {
            let where_to =
                format!("WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n");
            return (401, where_to, Vec::new());
        }
        if path.contains("/manifests/") {
            return (200, String::new(), manifest.clone());
        }
        let wanted = path.trim_start_matches("/v2/app/blobs/");
        let blobs = image.layers.iter().map(|layer| layer.blob.clone());
        let mut blobs = blobs.chain([image.configuration()]);
        let blob = blobs.find(|blob| digest(blob) == wanted).unwrap();
        (200, String::new(), blob)
    });
    let bench = Bench::new();
    let known = RegistryAuth::Basic("u".to_owned(), "p".to_owned());
    // dTpw is base64 of u:p.
    bench.pull_as(&registry.image(), known).await.unwrap();
    let unknown = bench.pull(&registry.image()).await.unwrap_err();
    assert!(matches!(unknown, Error::Unauthorized { .. }));
    assert!(error_chain(&unknown).ends_with(": who are you?"));
}

#[tokio::test]
#[ignore = "tier: tools"]
async fn a_registry_in_trouble_is_unavailable() {
    let registry = Scripted::start(|_, _| (503, String::new(), b"down".to_vec()));
    let refused = Bench::new().pull(&registry.image()).await.unwrap_err();
    assert!(refused.is_unavailable(), "{refused}");
    assert!(error_chain(&refused).ends_with("HTTP status 503: down"));
}

/// The client gives up its own thread at such tokens.
#[tokio::test]
#[ignore = "tier: tools"]
async fn a_hostile_token_is_an_error_not_a_crash() {
    let registry = Scripted::start(|path, headers| {
        let host = headers
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .unwrap_or_default();
        if path.starts_with("/token") {
            return (200, String::new(), br#"{"token":"a\nb"}"#.to_vec());
        }
        let where_to = format!("WWW-Authenticate: Bearer realm=\"http://{host}/token\"\r\n");
        (401, where_to, Vec::new())
    });
    let refused = Bench::new().pull(&registry.image()).await.unwrap_err();
    assert!(matches!(refused, Error::Client { .. }), "{refused}");
}
