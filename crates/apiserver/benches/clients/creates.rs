//! Creates of pods, each durable before it is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;

use super::link::{Cluster, request};
use super::times::Times;

const CLIENTS: usize = 32;
const FOR: Duration = Duration::from_secs(10);
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) async fn measure(cluster: &Arc<Cluster>) {
    let begun = Instant::now();
    let creating = (0..CLIENTS).map(|number| tokio::spawn(create(Arc::clone(cluster), number)));
    let mut times = Times::default();
    for client in creating.collect::<Vec<_>>() {
        times.extend(client.await.expect("a client"));
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    println!("  {rate:.0} creates/s: {}", times.report());
}

async fn create(cluster: Arc<Cluster>, client: usize) -> Times {
    let mut link = cluster.own().await;
    let mut times = Times::default();
    let end = Instant::now() + FOR;
    for number in 0.. {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        let pod = format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{{\"name\":\"p{client}-{number}\",\
             \"labels\":{{\"app\":\"load\"}}}},\"spec\":{{\"containers\":[{{\"name\":\"main\",\
             \"image\":\"registry.example/pause:1\",\"resources\":{{\"requests\":{{\"cpu\":\"10m\",\
             \"memory\":\"16Mi\"}}}}}}]}}}}"
        );
        let answer = link
            .send(request("POST", PODS, "application/json", pod))
            .await;
        assert_eq!(answer.status(), 201);
        answer.into_body().collect().await.expect("a body");
        times.push(begun.elapsed());
    }
    times
}
