//! Properties of cgroup values and QoS classes.

use plimsoll_core::cgroup::conversion::{
    MAX_SHARES, MIN_SHARES, kubelet_weight_from_shares, millicores_from_quota,
    millicores_from_shares, quota_from_millicores, runtime_weight_from_shares,
    shares_from_kubelet_weight, shares_from_millicores,
};
use plimsoll_core::cgroup::{CgroupName, Driver, HugePageSize};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::pod::{ContainerView, PodView, QosClass, Requirements};
use plimsoll_core::resources::{Bytes, Millicores, ResourceList, ResourceName};
use proptest::prelude::*;

fn list() -> impl Strategy<Value = ResourceList> {
    let amount = || prop::option::of(prop::sample::select(vec!["0", "1", "1000m", "2"]));
    (amount(), amount()).prop_map(|(cpu, memory)| {
        let named = [(ResourceName::CPU, cpu), (ResourceName::MEMORY, memory)];
        let given = |(name, text): (ResourceName, Option<&str>)| {
            Some((
                name,
                text?.parse().expect("only well-formed texts are generated"),
            ))
        };
        named.into_iter().filter_map(given).collect()
    })
}

fn container() -> impl Strategy<Value = ContainerView> {
    (list(), list(), any::<bool>()).prop_map(|(requests, limits, is_equal)| {
        let requests = if is_equal { limits.clone() } else { requests };
        ContainerView {
            resources: Requirements { requests, limits },
            ..ContainerView::default()
        }
    })
}

fn shuffled_twice() -> impl Strategy<Value = (Vec<ContainerView>, Vec<ContainerView>)> {
    prop::collection::vec(container(), 1..4)
        .prop_flat_map(|containers| (Just(containers.clone()), Just(containers).prop_shuffle()))
}

proptest! {
    #[test]
    fn the_qos_class_does_not_depend_on_the_order_of_containers(
        (one, other) in shuffled_twice(),
        (init_one, init_other) in shuffled_twice(),
    ) {
        let class = |containers, init_containers| {
            let pod = PodView { containers, init_containers, ..PodView::default() };
            pod.compute_qos_class()
        };
        prop_assert_eq!(class(one, init_one), class(other, init_other));
    }

    #[test]
    fn more_cpu_never_gives_fewer_shares_or_less_weight(
        a in 0i64..400_000,
        b in 0i64..400_000,
    ) {
        let (less, more) = (Millicores(a.min(b)), Millicores(a.max(b)));
        let (few, many) = (shares_from_millicores(less), shares_from_millicores(more));
        prop_assert!(few <= many && few >= MIN_SHARES && many <= MAX_SHARES);
        for weight in [kubelet_weight_from_shares, runtime_weight_from_shares] {
            prop_assert!(weight(few) <= weight(many));
            prop_assert!(weight(few) >= 1 && weight(many) <= 10_000);
        }
    }

    #[test]
    fn no_number_causes_a_conversion_panic(signed in any::<i64>(), unsigned in any::<u64>()) {
        let _ = shares_from_millicores(Millicores(signed));
        let _ = quota_from_millicores(Millicores(signed), unsigned);
        let _ = millicores_from_quota(signed, unsigned);
        let _ = millicores_from_shares(unsigned);
        let _ = kubelet_weight_from_shares(unsigned);
        let _ = runtime_weight_from_shares(unsigned);
        let _ = shares_from_kubelet_weight(unsigned);
        let _ = HugePageSize(Bytes(signed)).file_part();
    }

    #[test]
    fn a_weight_is_read_back_from_its_shares(weight in 1u64..=10_000) {
        let shares = shares_from_kubelet_weight(weight);
        prop_assert!(kubelet_weight_from_shares(shares).abs_diff(weight) <= 1);
    }

    #[test]
    fn a_pod_cgroup_is_found_again_by_its_path(uid in "[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,4}") {
        let kubepods = CgroupName::kubepods(&CgroupName::ROOT);
        let name = CgroupName::pod(&kubepods, QosClass::Burstable, &PodUid::from(uid.as_str()));
        let name = name.unwrap();
        for driver in [Driver::Cgroupfs, Driver::Systemd] {
            let path = name.to_path(driver);
            prop_assert_eq!(CgroupName::parse(path.as_str(), driver), name.clone());
        }
    }

    #[test]
    fn no_text_causes_a_name_parser_panic(text in any::<String>()) {
        for driver in [Driver::Cgroupfs, Driver::Systemd] {
            let _ = CgroupName::parse(&text, driver).to_path(driver);
        }
    }
}
