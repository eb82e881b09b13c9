//! Cases that random histories are too short to reach: the bounds of what is kept.

use std::sync::Arc;

use serde_json::json;

use crate::object::identity::PodUid;
use crate::object::node::NodeView;
use crate::scheduling::decision::Decision;
use crate::scheduling::filters::Cycle;
use crate::scheduling::pod::SchedulingPod;
use crate::scheduling::profile::Profile;
use crate::scheduling::reference;
use crate::scheduling::tie_break::Attempts;

use super::Engine;

fn engine(nodes: usize) -> Engine {
    let mut engine = Engine::new(vec![Profile::default()], 7);
    for number in 0..nodes {
        let name = format!("n{number}");
        let api = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "500"}},
        });
        let view = NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap();
        engine.change(|cluster| [cluster.set_node(view)]);
    }
    engine
}

fn pod(uid: &str, app: &str) -> Arc<SchedulingPod> {
    let api = json!({
        "metadata": {"name": uid, "uid": uid, "namespace": "default", "labels": {"app": app}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "10m"}}}],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": app}},
                }},
            ]}},
        },
    });
    Arc::new(SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap())
}

/// Schedules the pod with both engines, demands the same node, and puts it there.
fn place(engine: &mut Engine, attempts: &mut Attempts, pod: &Arc<SchedulingPod>) {
    let profile = engine.profiles()[0].clone();
    let cluster = engine.cluster().clone();
    let cycle = Cycle {
        cluster: &cluster,
        profile: &profile,
        pod,
    };
    let plain = reference::schedule(&cycle, attempts).unwrap();
    let indexed = engine.schedule(0, pod).unwrap();
    let (Decision::Place(plain), Decision::Place(indexed)) = (plain, indexed) else {
        panic!("there is room for every pod");
    };
    assert_eq!(plain, indexed);
    let name = cluster.node(indexed.slot).unwrap().view.name.clone();
    engine.change(|cluster| cluster.assume_pod(Arc::clone(pod), &name));
}

#[test]
fn rebuilds_class_that_is_behind_the_log() {
    let mut engine = engine(3);
    let mut attempts = Attempts::new(7);
    place(&mut engine, &mut attempts, &pod("first", "web"));
    let node = "n1".into();
    for round in 0..10_000 {
        let uid = format!("other-{}", round % 7);
        let other = pod(&uid, "other");
        engine.change(|cluster| cluster.assume_pod(other, &node));
    }
    for number in 0..5 {
        place(
            &mut engine,
            &mut attempts,
            &pod(&format!("p{number}"), "web"),
        );
    }
}

#[test]
fn kinds_without_pods_are_dropped() {
    let mut engine = engine(2);
    let mut attempts = Attempts::new(7);
    place(&mut engine, &mut attempts, &pod("first", "web"));
    let node = "n0".into();
    for number in 0..3_000 {
        let uid = format!("job-{number}");
        let job = pod(&uid, &uid);
        engine.change(|cluster| cluster.assume_pod(job, &node));
        engine.change(|cluster| cluster.remove_pod(&PodUid::new(uid)));
    }
    assert!(engine.kinds.len() < 2_500, "{} kinds", engine.kinds.len());
    for number in 0..5 {
        place(
            &mut engine,
            &mut attempts,
            &pod(&format!("p{number}"), "web"),
        );
    }
}

#[test]
fn class_cache_is_bounded_and_drops_least_recently_used() {
    let mut engine = engine(64);
    let mut attempts = Attempts::new(7);
    let classes = |engine: &Engine| engine.classes.values().map(Vec::len).sum::<usize>();
    let most = super::FREE_BYTES / (64 * 96) + 1;
    for number in 0..most + 200 {
        let app = format!("app-{number}");
        let pod = pod(&app, &app);
        let _ = engine.schedule(0, &pod);
    }
    assert!(classes(&engine) <= most, "{} classes", classes(&engine));
    attempts = {
        let mut same = attempts;
        for _ in 0..most + 200 {
            same.draw_offset(64);
        }
        same
    };
    place(&mut engine, &mut attempts, &pod("again", "app-0"));
}
