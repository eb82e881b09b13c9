//! The watchers of kube-rs, which restart and reconnect on their own.

use std::collections::BTreeMap;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};

use super::caller::Caller;
use super::cluster::{Cluster, soon};
use super::objects::{SECRETS, colored, secret};

/// Follows with the watcher until the state is as expected.
async fn follow(caller: &Caller, config: watcher::Config, expected: &[&str]) {
    let api: Api<Secret> = Api::namespaced(caller.client(), "default");
    let mut stream = watcher::watcher(api, config).default_backoff().boxed();
    let mut seen: BTreeMap<String, Secret> = BTreeMap::new();
    let mut is_ready = false;
    let reached = async {
        loop {
            match stream.next().await.unwrap().unwrap() {
                Event::Init => seen.clear(),
                Event::InitApply(object) | Event::Apply(object) => {
                    seen.insert(object.name_any(), object);
                }
                Event::InitDone => is_ready = true,
                Event::Delete(object) => {
                    seen.remove(&object.name_any());
                }
            }
            let names: Vec<&str> = seen.keys().map(String::as_str).collect();
            if is_ready && names == expected {
                return;
            }
        }
    };
    soon("the watcher's state", reached).await;
}

pub(crate) async fn check(caller: &Caller) {
    for number in 0..5 {
        let name = format!("s{number}");
        caller.post(SECRETS, &secret(&name)).await.expect(201);
    }
    let small_pages = watcher::Config::default().page_size(2);
    for config in [small_pages, watcher::Config::default().streaming_lists()] {
        let expected = ["s0", "s1", "s2", "s3", "s4", "t"];
        let following = follow(caller, config, &expected);
        let changing = async {
            caller.post(SECRETS, &secret("t")).await.expect(201);
            let path = format!("{SECRETS}/t");
            following_write(caller, &path).await;
        };
        tokio::join!(following, changing);
        caller.delete(&format!("{SECRETS}/t")).await.expect(200);
    }
    let red = watcher::Config::default()
        .labels("color=red")
        .streaming_lists();
    caller.post(SECRETS, &colored("r", "red")).await.expect(201);
    follow(caller, red, &["r"]).await;
}

/// Deletes and recreates, so that a watcher has events.
async fn following_write(caller: &Caller, path: &str) {
    caller.delete(path).await.expect(200);
    caller.post(SECRETS, &secret("t")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_reach_the_state_over_a_socket() {
    let cluster = Cluster::start().await;
    check(&cluster.admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_reach_the_state_in_process() {
    let cluster = Cluster::start().await;
    check(&cluster.local_admin()).await;
}
