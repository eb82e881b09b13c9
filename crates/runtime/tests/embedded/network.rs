//! Sandboxes and their addresses.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use plimsoll_runtime::wire::PodSandboxFilter;
use plimsoll_runtime::{Ports, Runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{Scene, remove_link, shell, until};

/// Unused ranges; tests may run in parallel.
async fn start_with_range(scene: &mut Scene, range: &str) {
    scene.end();
    scene.network.pod_cidr = Some(range.to_owned());
    scene.start().await;
}

const SERVER: &str = "mkdir /www; echo here > /www/index.html; exec httpd -f -p 8080 -h /www";

pub(crate) async fn pods_reach_each_other_and_the_machine_reaches_them(scene: &mut Scene) {
    start_with_range(scene, "10.231.1.0/24").await;
    let mut pods = Vec::new();
    for _ in 0..2 {
        let pod = scene.pod();
        let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
        let id = scene.run(&sandbox, &pod, shell("main", SERVER)).await;
        let status = scene.runtime().pod_sandbox_status(&sandbox).await.unwrap();
        pods.push((sandbox, id, status.network.unwrap().ip));
    }
    for (_, _, ip) in &pods {
        let answer = until("the machine reaches the pod", || async {
            let mut stream = TcpStream::connect((ip.as_str(), 8080)).ok()?;
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        })
        .await;
        assert!(answer.ends_with("here\n"), "{answer}");
    }
    let url = format!("http://{}:8080/", pods[1].2);
    let (output, code) = scene
        .exec(&pods[0].1, &["wget", "-q", "-O", "-", &url])
        .await;
    assert_eq!((output.as_str(), code), ("here\n", 0));
    let Ports::Here(dial) = scene.runtime().port_forward(&pods[0].0).await.unwrap() else {
        panic!("the embedded runtime connects itself");
    };
    let mut stream = dial(8080).await.unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("here\n"), "{answer}");
    dial(8081).await.err().unwrap();
}

pub(crate) async fn addresses_are_given_back(scene: &mut Scene) {
    start_with_range(scene, "10.231.2.0/29").await;
    let mut seen = Vec::new();
    // More pods than addresses, one after the other.
    for _ in 0..7 {
        let pod = scene.pod();
        let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
        let status = scene.runtime().pod_sandbox_status(&sandbox).await.unwrap();
        seen.push(status.network.unwrap().ip);
        scene.runtime().stop_pod_sandbox(&sandbox).await.unwrap();
    }
    assert_eq!(seen[0], "10.231.2.2");
    assert_eq!(seen[0], seen[5]);
    let mut pods = Vec::new();
    for _ in 0..5 {
        pods.push(scene.pod());
        scene
            .runtime()
            .run_pod_sandbox(pods.last().unwrap(), "")
            .await
            .unwrap();
    }
    let pod = scene.pod();
    let refused = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "no IP addresses available in range 10.231.2.0/29"
    );
    // The failed sandbox has left nothing behind.
    let all = scene
        .runtime()
        .list_pod_sandboxes(&PodSandboxFilter::default())
        .await
        .unwrap();
    assert_eq!(all.len(), 12);
    assert_eq!(
        fs::read_dir(scene.root().join("sandboxes"))
            .unwrap()
            .count(),
        12
    );
}

pub(crate) async fn cni_plugins_are_run(scene: &mut Scene) {
    let bridge = format!("c{}", scene.name)
        .chars()
        .take(15)
        .collect::<String>();
    let data = scene.dir.path().join("cni-data");
    let conf = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": scene.name,
        "plugins": [{
            "type": "bridge",
            "bridge": bridge,
            "isGateway": true,
            "ipam": {
                "type": "host-local",
                "dataDir": data,
                "ranges": [[{ "subnet": "10.231.3.0/24" }]],
            },
        }],
    });
    fs::create_dir_all(&scene.network.cni_conf_dir).unwrap();
    let path = scene.network.cni_conf_dir.join("10-test.conflist");
    fs::write(&path, conf.to_string()).unwrap();
    let pod = scene.pod();
    let sandbox = scene.runtime().run_pod_sandbox(&pod, "").await.unwrap();
    let status = scene.runtime().pod_sandbox_status(&sandbox).await.unwrap();
    assert_eq!(status.network.unwrap().ip, "10.231.3.2");
    let id = scene
        .run(&sandbox, &pod, shell("main", "exec sleep 1000"))
        .await;
    let (output, _) = scene.exec(&id, &["ip", "addr", "show", "eth0"]).await;
    assert!(output.contains("10.231.3.2/24"), "{output}");
    let given = data.join(&scene.name).join("10.231.3.2");
    assert!(given.exists());
    scene.runtime().remove_pod_sandbox(&sandbox).await.unwrap();
    assert!(!given.exists());
    fs::remove_file(&path).unwrap();
    remove_link(&bridge);
}
