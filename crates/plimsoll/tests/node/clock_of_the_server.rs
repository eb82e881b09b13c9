//! The system clock is set while a server runs: no acknowledged write is lost, watches continue,
//! and clients are served as soon as certificates are valid again.

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt};
use plimsoll_testkit::process::Process;
use plimsoll_testkit::vm::slowness;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::cluster::PLIMSOLL;
use crate::vm;

pub(crate) const HOUR: u64 = 60 * 60;
/// Longer than the validity of any certificate but those of authorities.
pub(crate) const YEAR: u64 = 366 * 24 * HOUR;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

/// How long a request may take where everything is slow.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
#[ignore = "tier: vm"]
fn clients_continue_when_the_servers_clock_is_set() {
    // Tests must not set the clock of the machine that runs them.
    if slowness() == 1 {
        let own = ["clock_of_the_server::"];
        return vm::machine().run_own_tests(&own, vm::LIMIT).unwrap();
    }
    let right = now();
    let _clock = SetClock(right);
    let mut world = World::start();
    let authority = world.file("pki/ca.crt");
    world.create_event();
    let token = world.token();
    assert_eq!(world.as_bearer(&token), 403, "it is known, and may not");
    let mut stream = world.watch("0");
    world.write("before", "it begins", Some(&mut stream));

    set_clock(right + 2 * HOUR);
    world.write("a", "two hours ahead", Some(&mut stream));
    assert_eq!(world.as_bearer(&token), 401, "a token of an hour");
    let fresh = world.token();
    assert_eq!(world.as_bearer(&fresh), 403);

    set_clock(right + HOUR);
    world.write("b", "one of them back", Some(&mut stream));
    drop(stream);

    // All certificates but those of authorities have expired.
    set_clock(right + YEAR);
    world.write("c", "a year ahead", None);

    // Certificates are not valid yet. The server changes nothing for a clock that must be wrong.
    set_clock(HOUR);
    let certificate = world.file("pki/server.crt");
    std::thread::sleep(PATIENCE);
    assert!(world.try_ask("GET", "/livez", None).is_err(), "in 1970");
    assert_eq!(world.file("pki/server.crt"), certificate);

    // Certificates issued a year ahead are not valid yet.
    set_clock(right);
    world.write("d", "right again", None);
    let token = world.token();
    assert_eq!(world.as_bearer(&token), 403);
    assert_eq!(world.file("pki/ca.crt"), authority);
    world.has_all();
    let log = world.server.log();
    assert!(
        !log.contains("panic") && !log.contains("internal error"),
        "{log}"
    );
    let status = world.server.interrupt();
    assert!(status.success(), "{status}: {log}");
}

/// Corrects the clock at the end: other tests on the machine use it.
pub(crate) struct SetClock(pub(crate) u64);

impl Drop for SetClock {
    fn drop(&mut self) {
        set_clock(self.0);
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a clock after 1970").as_secs()
}

pub(crate) fn set_clock(seconds: u64) {
    let mut command = Command::new("date");
    let output = command.args(["-s", &format!("@{seconds}")]).output();
    let output = output.expect("date is there");
    assert!(output.status.success(), "{output:?}");
}

type Stream = Pin<Box<dyn futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>>>>;

/// A server without nodes, and the writes that it has acknowledged.
struct World {
    server: Process,
    runtime: Runtime,
    /// Names and revisions, in the order in which they were written.
    written: Vec<(String, u64)>,
    folder: TempDir,
}

impl World {
    fn start() -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().display().to_string();
        let arguments = ["server", "--data-dir", &data, "--listen", "127.0.0.1:0"];
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let log = folder.path().join("server.log");
        let mut server = Process::start(PLIMSOLL, &log, &arguments);
        server.says("export KUBECONFIG=");
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let world = World {
            server,
            runtime: builder.enable_all().build().expect("a runtime"),
            written: Vec::new(),
            folder,
        };
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        until("the service account", || {
            world.try_ask("GET", account, None)
        });
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the server has written it")
    }

    /// The administrator's, as the kubeconfig has it at the moment.
    async fn config(&self) -> Result<kube::Config, String> {
        let file = Kubeconfig::read_from(self.path("admin.kubeconfig"));
        let file = file.map_err(|error| format!("{error:?}"))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        config.map_err(|error| format!("{error:?}"))
    }

    async fn client(&self) -> Result<Client, String> {
        let config = self.config().await?;
        Client::try_from(config).map_err(|error| format!("{error:?}"))
    }

    fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let asking = async {
            let client = self.client().await?;
            let answer = client.request_text(request.expect("a request")).await;
            let text = answer.map_err(|error| format!("{error:?}"))?;
            Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
        };
        let answer = async { tokio::time::timeout(PATIENCE, asking).await };
        let answer = self.runtime.block_on(answer);
        answer.unwrap_or_else(|_| Err(format!("no answer in {PATIENCE:?}")))
    }

    /// Polls until there is an answer: certificates are checked twice a minute.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let what = format!("{method} {path} is answered");
        until(&what, || self.try_ask(method, path, body))
    }

    /// Writes, and reads by a watch from what was written before, and by an older watch.
    fn write(&mut self, name: &str, when: &str, stream: Option<&mut Stream>) {
        self.ask("GET", "/livez", None);
        let map = json!({ "metadata": { "name": name }, "data": { "when": when } });
        let made = self.ask("POST", MAPS, Some(&map));
        let version = made["metadata"]["resourceVersion"].as_str();
        let version: u64 = version.expect("a version").parse().expect("a number");
        if let Some((_, before)) = self.written.last() {
            assert!(version > *before, "{when}: {version} after {before}");
            let mut missed = self.watch(&before.to_string());
            self.expect(&mut missed, name);
        }
        if let Some(stream) = stream {
            self.expect(stream, name);
        }
        self.written.push((name.to_owned(), version));
        self.has_all();
        // It is to last an hour.
        let events = self.ask("GET", EVENTS, None).to_string();
        assert!(events.contains("ClockIsSet"), "{when}: {events}");
    }

    fn watch(&self, version: &str) -> Stream {
        let watching = async {
            let api: Api<ConfigMap> = Api::namespaced(self.client().await?, "default");
            let params = WatchParams::default().fields("metadata.name!=kube-root-ca.crt");
            let stream = api.watch(&params, version).await;
            stream.map_err(|error| format!("{error:?}"))
        };
        Box::pin(self.runtime.block_on(watching).expect("a watch"))
    }

    fn expect(&self, stream: &mut Stream, name: &str) {
        let mut added = pin!(stream.try_filter_map(async |event| match event {
            WatchEvent::Added(map) => Ok(Some(map)),
            WatchEvent::Bookmark(_) => Ok(None),
            other => panic!("{other:?}"),
        }));
        let next = async { tokio::time::timeout(PATIENCE, added.next()).await };
        let map = self.runtime.block_on(next).expect("an event");
        let map = map.expect("the watch continues").expect("an object");
        assert_eq!(map.name_any(), name);
    }

    fn has_all(&self) {
        let maps = self.ask("GET", MAPS, None);
        let maps = maps["items"].as_array().expect("a list");
        for (name, version) in &self.written {
            let found = maps.iter().find(|map| map["metadata"]["name"] == **name);
            let found = found.unwrap_or_else(|| panic!("{name} is lost"));
            assert_eq!(found["metadata"]["resourceVersion"], version.to_string());
        }
    }

    fn create_event(&self) {
        let event = json!({
            "metadata": { "name": "clock" }, "reason": "ClockIsSet", "type": "Normal",
            "involvedObject": { "kind": "Namespace", "name": "default" },
        });
        self.ask("POST", EVENTS, Some(&event));
    }

    fn token(&self) -> String {
        let request = json!({ "spec": { "expirationSeconds": HOUR, "audiences": [] } });
        let made = self.ask("POST", TOKENS, Some(&request));
        let token = made["status"]["token"].as_str();
        token.expect("a token").to_owned()
    }

    /// The error of a request with the token: authenticated callers get another code.
    fn as_bearer(&self, token: &str) -> u16 {
        let asking = async {
            let mut config = self.config().await.expect("a kubeconfig");
            config.auth_info = kube::config::AuthInfo::default();
            config.auth_info.token = Some(token.to_owned().into());
            let client = Client::try_from(config).expect("a client");
            let request = Request::get(MAPS).body(Vec::new()).expect("a request");
            match client.request_text(request).await {
                Err(kube::Error::Api(status)) => status.code,
                other => panic!("{other:?}"),
            }
        };
        self.runtime.block_on(asking)
    }
}
