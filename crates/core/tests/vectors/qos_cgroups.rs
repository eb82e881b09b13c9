//! `node/qos-cgroups.json`.

use plimsoll_core::cgroup::{MemoryQos, TierSettings, TierUsage, compute_qos_tiers};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::resources::Bytes;
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Value, json};

use crate::cgroup_json::{bytes, described_config, huge_page_sizes, pod};

pub(crate) fn check(case: &Value) -> Outcome {
    let input = &case["input"];
    let is = |key: &str| input[key].as_bool().unwrap_or_default();
    let pods: Vec<PodView> = input["pods"]
        .as_array()
        .into_iter()
        .flatten()
        .map(pod)
        .collect();
    let is_reserving = is("featureGateQOSReserved");
    let settings = TierSettings {
        huge_page_sizes: huge_page_sizes(),
        memory_qos: match (
            is("featureGateMemoryQoS"),
            input["memoryReservationPolicy"].as_str(),
        ) {
            (false, _) => MemoryQos::Off,
            (true, Some("TieredReservation")) => MemoryQos::TieredReservation,
            (true, _) => MemoryQos::NoReservation,
        },
        reserved_memory_percent: input["qosReservedMemoryPercent"]
            .as_i64()
            .filter(|_| is_reserving),
        allocatable_memory: bytes(&input["nodeAllocatableMemory"]),
    };
    let mut tiers = compute_qos_tiers(&pods, &settings);
    if is_reserving && input["firstUpdateFails"].is_array() {
        let usage = |path: &str| input["memoryUsage"][path].as_i64().map(Bytes);
        tiers = tiers.retried_with(TierUsage {
            burstable: usage("/kubepods/burstable"),
            best_effort: usage("/kubepods/besteffort"),
        });
    }
    let got = json!({
        "/kubepods": described_config(&tiers.guaranteed),
        "/kubepods/burstable": described_config(&tiers.burstable),
        "/kubepods/besteffort": described_config(&tiers.best_effort),
    });
    compare_with_expected(case, &got)
}
