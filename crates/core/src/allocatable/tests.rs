use super::*;
use crate::duration::Duration;
use crate::resources::{Bytes, Count, ResourceList, ResourceName};
use crate::threshold::{Operator, Signal, Threshold, ThresholdValue};

const GI: i64 = 1 << 30;

fn list(entries: &[(ResourceName, &str)]) -> ResourceList {
    let parsed = |(name, text): &(ResourceName, &str)| (name.clone(), text.parse().unwrap());
    entries.iter().map(parsed).collect()
}

fn hard_memory(text: &str) -> Threshold {
    Threshold {
        signal: Signal::MemoryAvailable,
        operator: Operator::LessThan,
        value: ThresholdValue::Quantity(text.parse().unwrap()),
        grace_period: Duration::ZERO,
        min_reclaim: None,
    }
}

fn computed(machine: &Machine, settings: &Settings) -> Allocatable {
    compute_allocatable(
        machine,
        settings,
        &DevicePlugins::default(),
        &NodeResources::default(),
    )
}

fn machine() -> Machine {
    Machine {
        cores: 4,
        memory: Bytes(32 * GI),
        max_pid: Some(Count(32768)),
        ..Machine::default()
    }
}

#[test]
fn computes_worked_example_to_the_byte() {
    let settings = Settings {
        kube_reserved: list(&[(ResourceName::MEMORY, "2Gi")]),
        system_reserved: list(&[(ResourceName::MEMORY, "1Gi")]),
        hard_eviction: vec![hard_memory("100Mi")],
        is_enforced_on_pods: true,
        ..Settings::default()
    };
    let answer = computed(&machine(), &settings);
    let memory = &answer.terms[&ResourceName::MEMORY];
    assert_eq!(memory.allocatable.as_ref().unwrap().value(), 31_033_655_296);
    assert_eq!(
        memory.cgroup_limit.as_ref().unwrap().value(),
        31_138_512_896
    );
    assert_eq!(memory.hard_eviction.to_string(), "100Mi");
}

#[test]
fn kubepods_has_no_limit_if_allocatable_is_not_enforced() {
    let settings = Settings {
        kube_reserved: list(&[(ResourceName::MEMORY, "2Gi"), (ResourceName::PID, "100")]),
        ..Settings::default()
    };
    let limits = computed(&machine(), &settings).cgroup_limits();
    assert_eq!(limits.get_or_zero(&ResourceName::MEMORY).value(), 32 * GI);
    assert_eq!(limits.get_or_zero(&ResourceName::PID).value(), 32768);
}

#[test]
fn overreservation_leaves_zero_and_is_reported() {
    let settings = Settings {
        system_reserved: list(&[(ResourceName::CPU, "5"), (ResourceName::PID, "40000")]),
        is_enforced_on_pods: true,
        ..Settings::default()
    };
    let answer = computed(&machine(), &settings);
    assert!(
        answer
            .allocatable()
            .get_or_zero(&ResourceName::CPU)
            .is_zero()
    );
    assert!(
        answer
            .cgroup_limits()
            .get_or_zero(&ResourceName::PID)
            .is_zero()
    );
    let over: Vec<String> = answer
        .over_reserved()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        over,
        [
            "Resource \"cpu\" has a reservation of 5 but capacity of 4. \
             Expected capacity >= reservation."
        ]
    );
}

#[test]
fn keeps_other_status_resources_except_extended_ones_without_capacity() {
    let dongle = ResourceName::new("example.com/dongle");
    let gpu = ResourceName::new("example.com/gpu");
    let previous = NodeResources {
        capacity: list(&[
            (dongle.clone(), "4"),
            (ResourceName::new("hugepages-1Gi"), "2Gi"),
        ]),
        allocatable: list(&[(gpu.clone(), "1"), (ResourceName::new("odd"), "1")]),
    };
    let devices = DevicePlugins {
        removed: vec![ResourceName::new("example.com/gone")],
        ..DevicePlugins::default()
    };
    let answer = compute_allocatable(&machine(), &Settings::default(), &devices, &previous);
    let allocatable = answer.allocatable();
    assert_eq!(allocatable.get_or_zero(&dongle).value(), 4);
    assert!(!allocatable.contains(&gpu));
    assert!(allocatable.contains(&ResourceName::new("odd")));
    assert!(allocatable.contains(&ResourceName::new("example.com/gone")));
    assert_eq!(
        allocatable.get_or_zero(&ResourceName::MEMORY).value(),
        30 * GI,
        "huge pages of the previous status are taken from memory too"
    );
}

#[test]
fn reserved_system_cpus_replace_both_cpu_reservations() {
    let mut kube = list(&[(ResourceName::CPU, "1"), (ResourceName::MEMORY, "1Gi")]);
    let mut system = list(&[(ResourceName::CPU, "500m")]);
    reserved::replace_cpu(&mut kube, &mut system, 2);
    assert!(!kube.contains(&ResourceName::CPU));
    assert_eq!(system.get_or_zero(&ResourceName::CPU).to_string(), "2");
}

#[test]
fn reports_every_invalid_reservation_with_its_path() {
    let map = [("gpu", "1"), ("memory", "1Gb"), ("pid", "-1")]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let problems = reserved::problems(reserved::Reserved::Kube, &map);
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "kubeReserved[gpu]",
            "kubeReserved[memory]",
            "kubeReserved[pid]"
        ]
    );
    assert_eq!(
        reserved::parse(reserved::Reserved::Kube, &map)
            .unwrap_err()
            .to_string(),
        "--kube-reserved value failed to parse: cannot reserve \"gpu\" resource"
    );
}
