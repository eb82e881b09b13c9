//! Properties of what is left for pods.

use std::collections::BTreeMap;

use plimsoll_core::allocatable::reserved::{self, Reserved};
use plimsoll_core::allocatable::{
    DevicePlugins, HugePages, Machine, NodeResources, PodCount, Settings, compute_allocatable,
};
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Bytes, Count, ResourceList, ResourceName};
use plimsoll_core::threshold::Statements;
use proptest::prelude::*;

fn machine() -> impl Strategy<Value = Machine> {
    let huge_pages = prop::collection::vec((0u32..3, 0i64..1_000_000), 0..3);
    (
        1i64..1024,
        0i64..1 << 45,
        huge_pages,
        any::<Option<u32>>(),
        any::<Option<u16>>(),
    )
        .prop_map(|(cores, memory, huge_pages, root_fs, max_pid)| Machine {
            cores,
            memory: Bytes(memory),
            huge_pages: huge_pages
                .into_iter()
                .map(|(shift, count)| HugePages {
                    page_size: Bytes(2 << 20 << (9 * shift)),
                    count,
                })
                .collect(),
            root_fs: root_fs.map(|size| Bytes(size.into())),
            max_pid: max_pid.map(|count| Count(count.into())),
        })
}

fn reservation() -> impl Strategy<Value = ResourceList> {
    let names = prop::sample::subsequence(
        vec![
            ResourceName::CPU,
            ResourceName::MEMORY,
            ResourceName::EPHEMERAL_STORAGE,
            ResourceName::PID,
        ],
        0..=4,
    );
    (names, prop::array::uniform4("[0-9]{1,9}(m|k|M|Gi|Mi|)")).prop_map(|(names, texts)| {
        let quantities = texts
            .into_iter()
            .map(|text| text.parse().expect("only well-formed texts are generated"));
        names.into_iter().zip(quantities).collect()
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let value = prop_oneof!["[1-9][0-9]{0,8}(k|Mi|Gi)", "[1-9]?[0-9][.][0-9]{1,3}%"];
    let eviction = prop::array::uniform2(value).prop_map(|[memory, disk]| {
        let hard = BTreeMap::from([
            ("memory.available".to_owned(), memory),
            ("nodefs.available".to_owned(), disk),
        ]);
        Statements {
            hard,
            ..Statements::default()
        }
        .parse()
        .expect("only well-formed texts are generated")
    });
    (reservation(), reservation(), eviction, any::<bool>()).prop_map(
        |(kube_reserved, system_reserved, hard_eviction, is_enforced_on_pods)| Settings {
            kube_reserved,
            system_reserved,
            hard_eviction,
            pod_count: PodCount::default(),
            is_enforced_on_pods,
        },
    )
}

proptest! {
    #[test]
    fn amounts_are_between_zero_and_the_machines_capacity(
        machine in machine(),
        settings in settings(),
    ) {
        let answer = compute_allocatable(
            &machine,
            &settings,
            &DevicePlugins::default(),
            &NodeResources::default(),
        );
        for (name, terms) in &answer.terms {
            let whole = terms.machine.as_ref().or(terms.capacity.as_ref()).unwrap();
            let parts = [&terms.allocatable, &terms.absolute, &terms.cgroup_limit];
            for part in parts.into_iter().flatten() {
                prop_assert!(*part >= Quantity::ZERO, "{name}: {part}");
                prop_assert!(part <= whole, "{name}: {part} of {whole}");
            }
            if let (Some(allocatable), Some(absolute)) = (&terms.allocatable, &terms.absolute) {
                prop_assert!(allocatable <= absolute, "{name}: {allocatable} above {absolute}");
            }
        }
    }

    #[test]
    fn parsing_and_reporting_agree_on_valid_reservations(
        name in prop_oneof![Just("memory".to_owned()), any::<String>()],
        text in any::<String>(),
    ) {
        let map = BTreeMap::from([(name, text)]);
        let parsed = reserved::parse(Reserved::Kube, &map);
        prop_assert_eq!(parsed.is_err(), !reserved::problems(Reserved::Kube, &map).is_empty());
    }
}
