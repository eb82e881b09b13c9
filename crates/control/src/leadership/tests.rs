use super::*;
use plimsoll_client::testing::TestApi;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";

/// A running candidate: what shows that it leads, what ends it, and its end.
struct Running {
    leads: oneshot::Receiver<()>,
    stop: CancellationToken,
    end: JoinHandle<Result<(), LeaseLost>>,
}

fn start(api: &TestApi, identity: &str) -> Running {
    let stop = CancellationToken::new();
    let (sender, leads) = oneshot::channel();
    let election = Election::new("kube-system", "kube-scheduler", identity);
    let end = tokio::spawn(election.run(
        api.client(),
        None,
        stop.clone(),
        async move |leading: CancellationToken| {
            sender.send(()).unwrap();
            leading.cancelled().await;
        },
    ));
    Running { leads, stop, end }
}

fn spec(api: &TestApi) -> Value {
    api.get(PATH).unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_next_takes_over_when_it_gives_up_the_lease() {
    let api = TestApi::default();
    let first = start(&api, "a");
    first.leads.await.unwrap();
    assert_eq!(spec(&api)["holderIdentity"], "a");
    assert_eq!(spec(&api)["leaseTransitions"], 0);
    assert_eq!(spec(&api)["leaseDurationSeconds"], 15);

    let mut second = start(&api, "b");
    sleep(Duration::from_mins(2)).await;
    assert!(second.leads.try_recv().is_err());

    first.stop.cancel();
    first.end.await.unwrap().unwrap();
    assert_eq!(spec(&api)["holderIdentity"], "");
    assert_eq!(spec(&api)["leaseDurationSeconds"], 1);
    second.leads.await.unwrap();
    assert_eq!(spec(&api)["holderIdentity"], "b");
    assert_eq!(spec(&api)["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn leader_that_stops_renewing_is_replaced_after_lease_duration() {
    let api = TestApi::default();
    let long_ago = "2000-01-01T00:00:00.000000Z";
    api.put(
        PATH,
        json!({"spec": {
            "holderIdentity": "gone", "leaseDurationSeconds": 15, "leaseTransitions": 4,
            "acquireTime": long_ago, "renewTime": long_ago,
        }}),
    );
    let begin = Instant::now();
    let running = start(&api, "b");
    running.leads.await.unwrap();
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(15), "{waited:?}");
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!(spec(&api)["leaseTransitions"], 5);
}

#[tokio::test(start_paused = true)]
async fn leader_that_cannot_renew_stops_with_error() {
    let api = TestApi::default();
    let running = start(&api, "a");
    running.leads.await.unwrap();
    api.set_fault(|_, _| Some(500));
    let begin = Instant::now();
    let lost = running.end.await.unwrap();
    assert!(lost.is_err());
    assert!(begin.elapsed() < Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn renewing_keeps_the_time_of_acquisition() {
    let api = TestApi::default();
    let running = start(&api, "a");
    running.leads.await.unwrap();
    let first = spec(&api);
    let writes = api.requests("PUT");
    sleep(Duration::from_secs(9)).await;
    assert_eq!(api.requests("PUT"), writes + 4);
    assert_eq!(spec(&api)["acquireTime"], first["acquireTime"]);
    assert_eq!(api.requests("GET"), 1);
}
