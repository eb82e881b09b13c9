use crate::resources::{Bytes, Millicores, ResourceName};
use crate::testing::pod;

use super::{Overhead, QosClass};

#[test]
fn a_pod_that_states_nothing_is_best_effort() {
    assert_eq!(pod("p").view().qos_class(), QosClass::BestEffort);
}

#[test]
fn equal_requests_and_limits_everywhere_are_guaranteed() {
    let full = pod("p")
        .cpu("1")
        .limit("cpu", "1")
        .memory("1Gi")
        .limit("memory", "1024Mi");
    assert_eq!(full.clone().view().qos_class(), QosClass::Guaranteed);
    assert_eq!(
        full.container("second").view().qos_class(),
        QosClass::Burstable
    );
}

#[test]
fn an_empty_pod_level_resources_member_hides_the_containers() {
    let mut api = pod("p").cpu("1").limit("cpu", "1").build();
    api.spec.as_mut().unwrap().resources = Some(Default::default());
    let view = super::PodView::from_api(&api).unwrap();
    assert_eq!(view.qos_class(), QosClass::BestEffort);
}

#[test]
fn requests_add_up_over_containers() {
    let view = pod("p")
        .cpu("100m")
        .container("d")
        .cpu("250m")
        .memory("64Mi")
        .view();
    let demand = view.demand();
    assert_eq!(demand.cpu, Millicores(350));
    assert_eq!(demand.memory, Bytes(64 << 20));
    assert_eq!(
        view.requests(Overhead::Included)
            .get(&ResourceName::CPU)
            .unwrap()
            .to_string(),
        "350m"
    );
}

#[test]
fn every_malformed_quantity_is_reported_with_its_path() {
    let api = pod("p").cpu("100 m").limit("memory", "1GB").build();
    let problems = super::PodView::from_api(&api).unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "spec.containers[0].resources.limits[memory]",
            "spec.containers[0].resources.requests[cpu]"
        ]
    );
}
