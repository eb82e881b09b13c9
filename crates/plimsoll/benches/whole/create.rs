//! Creates of pods, each durable before it is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use http_body_util::BodyExt;

use crate::cost::Cost;
use crate::figure::{Better, print};
use crate::link::{Cluster, request};
use crate::stage::Stage;
use crate::times::Times;

const CLIENTS: usize = 32;
const FOR: Duration = Duration::from_secs(10);
const PODS: &str = "/api/v1/namespaces/default/pods";

/// 32 clients, as fast as they are answered.
pub(crate) async fn run() -> Result<()> {
    let mut stage = Stage::new()?;
    let server = stage.server()?;
    let cluster = Arc::new(Cluster::of(&stage.kubeconfig()).await?);
    let before = Cost::of(server)?;
    let created = measure(&cluster).await;
    let cost = Cost::of(server)?.since(&before, FOR);
    cost.print_cpu_per("create: CPU of the server per pod", created);
    Ok(())
}

/// Returns how many were created.
async fn measure(cluster: &Arc<Cluster>) -> usize {
    let begun = Instant::now();
    let creating = (0..CLIENTS).map(|number| tokio::spawn(create(Arc::clone(cluster), number)));
    let mut times = Times::default();
    for client in creating.collect::<Vec<_>>() {
        times.extend(client.await.expect("a client"));
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    let created = times.len();
    print("create", rate, "pods/s", Better::Higher);
    times.print("create");
    created
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
