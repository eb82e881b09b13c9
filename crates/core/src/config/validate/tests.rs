use crate::config::{Profile, read_command_line, read_kubelet_configuration, read_okd_node_config};

/// The sentences about a KubeletConfiguration, without their paths.
fn check(body: &str, expected: &[&str]) {
    let text =
        format!("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{body}");
    let reading = read_kubelet_configuration(text.as_bytes(), Profile::Kubernetes136);
    let sentences: Vec<String> = reading.problems.iter().map(|p| p.message()).collect();
    assert_eq!(sentences, expected, "{body}");
}

#[test]
fn defaults_are_valid_in_every_profile() {
    for profile in Profile::ALL {
        assert_eq!(super::validate(&super::NodeConfig::defaults(*profile)), []);
    }
}

#[test]
fn enforcement_needs_its_cgroup_and_no_contradictions() {
    check(
        "enforceNodeAllocatable: [pods, system-reserved, pods]",
        &[
            "invalid configuration: systemReservedCgroup (--system-reserved-cgroup) must be \
             specified when \"system-reserved\" or \"system-reserved-compressible\" included in \
             enforceNodeAllocatable (--enforce-node-allocatable)",
            "invalid configuration: duplicated enforcements \"pods\" in enforceNodeAllocatable \
             (--enforce-node-allocatable)",
        ],
    );
    check(
        "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\n\
         kubeReservedCgroup: /kube\n",
        &[
            "invalid configuration: both \"kube-reserved\" and \"kube-reserved-compressible\" \
             cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)",
        ],
    );
    check(
        "enforceNodeAllocatable: [none, pods]",
        &[
            "invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) may not \
             contain additional enforcements when \"none\" is specified",
        ],
    );
    check(
        "cgroupsPerQOS: false",
        &[
            "invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when \
             \"pods\" contained in enforceNodeAllocatable (--enforce-node-allocatable)",
        ],
    );
    check(
        "cgroupsPerQOS: false\nenforceNodeAllocatable: [none]\n",
        &[],
    );
    check(
        "enforceNodeAllocatable: [everything]",
        &[
            "invalid configuration: option \"everything\" specified for enforceNodeAllocatable \
             (--enforce-node-allocatable). Valid options are \"pods\", \"system-reserved\", \
             \"system-reserved-compressible\", \"kube-reserved\", \"kube-reserved-compressible\" \
             or \"none\"",
        ],
    );
}

#[test]
fn reservations_are_of_known_resources_and_not_negative() {
    check(
        "kubeReserved: {gpu: '1', cpu: '-1', memory: lots}",
        &[
            "Unsupported value: \"gpu\": supported values: \"cpu\", \"memory\", \
             \"ephemeral-storage\", \"pid\"",
            "Invalid value: \"-1\": resource quantity for \"cpu\" cannot be negative: -1",
            "Invalid value: \"lots\": failed to parse quantity \"lots\" for \
             \"memory\" resource: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ],
    );
    check(
        "reservedSystemCPUs: 0-1\nkubeReservedCgroup: /kube\n",
        &[
            "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with \
             systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup \
             (--kube-reserved-cgroup)",
        ],
    );
    check(
        "reservedSystemCPUs: 0-a",
        &[
            "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 0-a, \
             error: strconv.Atoi: parsing \"a\": invalid syntax",
        ],
    );
    check(
        "qosReserved: {memory: '101%', cpu: 5%}",
        &[
            "--qos-reserved value failed to parse: failed to parse percentage \"101%\" for \
             \"memory\" resource: percentage must be between 0 and 100",
            "--qos-reserved value failed to parse: cannot reserve \"cpu\" resource",
        ],
    );
}

#[test]
fn thresholds_report_every_error() {
    check(
        "evictionHard: {memory.available: '0', memory.free: 1Gi}\n\
         evictionSoft: {nodefs.available: 101%, imagefs.available: 20%}\n",
        &[
            "Invalid value: \"0\": eviction threshold memory.available must be positive: 0",
            "Unsupported value: \"memory.free\": supported values: \"memory.available\", \
             \"allocatableMemory.available\", \"nodefs.available\", \"nodefs.inodesFree\", \
             \"imagefs.available\", \"imagefs.inodesFree\", \"containerfs.available\", \
             \"containerfs.inodesFree\", \"pid.available\"",
            "Invalid value: \"101%\": eviction percentage threshold nodefs.available must be <= \
             100%: 101%",
            "Required value: grace period must be specified for the soft eviction threshold \
             imagefs.available",
        ],
    );
}

#[test]
fn numbers_stay_in_their_ranges() {
    check(
        "imageGCHighThresholdPercent: 70\ncontainerLogMaxFiles: 1\nmaxPods: -1\n\
         systemCgroups: /system\ncpuCFSQuotaPeriod: 2s\nimageMinimumGCAge: -1s\nport: 70000\n\
         memoryThrottlingFactor: 1.5\npodLogsDir: logs/../x\n",
        &[
            "invalid configuration: systemCgroups (--system-cgroups) was specified and cgroupRoot \
             (--cgroup-root) was not specified",
            "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s must be between \
             1ms and 1sec, inclusive",
            "invalid configuration: maxPods (--max-pods) -1 must not be a negative number",
            "invalid configuration: containerLogMaxFiles must be greater than 1",
            "invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) 80 must \
             be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 70",
            "invalid configuration: imageMinimumGCAge -1s must not be negative",
            "invalid configuration: memoryThrottlingFactor 1.5 must be greater than 0 and less \
             than or equal to 1.0",
            "invalid configuration: pod logs path \"logs/../x\" must be absolute path",
            "invalid configuration: pod logs path \"logs/../x\" must be normalized",
            "invalid configuration: port (--port) 70000 must be between 1 and 65535, inclusive",
        ],
    );
}

#[test]
fn enumerations_take_only_known_values() {
    check(
        "memorySwap: {swapBehavior: UnlimitedSwap}\nmemoryReservationPolicy: TieredReservation\n\
         hairpinMode: all\ncontainerLogMaxSize: big\n",
        &[
            "invalid configuration: memorySwap.swapBehavior \"UnlimitedSwap\" must be one of: \
             \"\", \"LimitedSwap\" or \"NoSwap\"",
            "failed to parse container log max size \"big\": quantities must match the regular \
             expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            "invalid configuration: memoryReservationPolicy \"TieredReservation\" requires \
             MemoryQoS feature gate to be enabled",
            "invalid configuration: option \"all\" specified for hairpinMode (--hairpin-mode). \
             Valid options are \"none\", \"hairpin-veth\" or \"promiscuous-bridge\"",
        ],
    );
}

#[test]
fn problems_have_the_position_of_their_value() {
    let text = "apiVersion: v1\nkind: NodeConfig\nkubeletArguments:\n  eviction-soft:\n\
                \x20 - memory.available<1Gi\n  - pid.available<x\n";
    let reading = read_okd_node_config(text.as_bytes(), Profile::Okd39);
    let places: Vec<(String, usize)> = reading
        .problems
        .into_iter()
        .map(|problem| (problem.path, problem.position.map_or(0, |place| place.line)))
        .collect();
    assert_eq!(
        places,
        [
            (
                "kubeletArguments.eviction-soft[pid.available]".to_owned(),
                6
            ),
            ("evictionSoftGracePeriod[memory.available]".to_owned(), 5),
        ]
    );
}

#[test]
fn nodes_may_not_set_kubernetes_reserved_labels() {
    let label = ["--node-labels=node-role.kubernetes.io/master=,node.kubernetes.io/x=1"];
    let reading = read_command_line(&label, Profile::Kubernetes136);
    assert_eq!(reading.problems.len(), 1);
    assert_eq!(
        reading.problems[0].path,
        "--node-labels[node-role.kubernetes.io/master]"
    );
    assert_eq!(read_command_line(&label, Profile::Okd39).problems, []);
}
