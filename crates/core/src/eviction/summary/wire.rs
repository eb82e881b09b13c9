//! The document as other programs know it.

use crate::object::timestamp::Timestamp;

use super::{MemoryStats, Summary};

/// Something that may have times in it.
pub(super) trait Times {
    /// Cuts every time down to the second.
    fn to_whole_seconds(&mut self);
}

impl Times for Timestamp {
    fn to_whole_seconds(&mut self) {
        *self = Timestamp::from_secs(self.as_nanos().div_euclid(1_000_000_000));
    }
}

impl<T: Times> Times for Option<T> {
    fn to_whole_seconds(&mut self) {
        self.iter_mut().for_each(T::to_whole_seconds);
    }
}

impl<T: Times> Times for Vec<T> {
    fn to_whole_seconds(&mut self) {
        self.iter_mut().for_each(T::to_whole_seconds);
    }
}

macro_rules! timeless {
    ($($type:ty),+) => {$(
        impl Times for $type {
            fn to_whole_seconds(&mut self) {}
        }
    )+};
}
timeless!(String, bool, f64, i64, u64);

impl Summary {
    /// The document as upstream writes it: times in whole seconds, and nothing that is not
    /// upstream's.
    #[must_use]
    pub fn for_clients(mut self) -> Summary {
        self.to_whole_seconds();
        let node = &mut self.node;
        let system = node.system_containers.iter_mut();
        let system = system.filter_map(|container| container.memory.as_mut());
        let pods = self.pods.iter_mut().flat_map(|pod| {
            let containers = pod.containers.iter_mut();
            let containers = containers.filter_map(|container| container.memory.as_mut());
            pod.memory.iter_mut().chain(containers)
        });
        node.memory
            .iter_mut()
            .chain(system)
            .chain(pods)
            .for_each(MemoryStats::leave_out_own);
        self
    }
}

impl MemoryStats {
    fn leave_out_own(&mut self) {
        self.mem_available_bytes = None;
        self.active_file_bytes = None;
        if let Some(psi) = &mut self.psi {
            psi.time = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use crate::object::timestamp::Timestamp;
    use serde_json::json;

    #[test]
    fn clients_see_upstreams_fields_and_whole_seconds() {
        let time = Timestamp::from_rfc3339("2026-01-01T00:00:01.5Z");
        let memory = MemoryStats {
            time,
            usage_bytes: Some(3),
            mem_available_bytes: Some(1),
            ..MemoryStats::default()
        };
        let pod = PodStats {
            start_time: time,
            memory: Some(memory.clone()),
            network: Some(NetworkStats {
                time,
                ..NetworkStats::default()
            }),
            volume: vec![VolumeStats {
                name: "v".to_owned(),
                ..VolumeStats::default()
            }],
            ..PodStats::default()
        };
        let summary = Summary {
            node: NodeStats {
                node_name: "n".to_owned(),
                memory: Some(memory),
                ..NodeStats::default()
            },
            pods: vec![pod],
        };
        let second = "2026-01-01T00:00:01Z";
        assert_eq!(
            serde_json::to_value(summary.for_clients()).unwrap(),
            json!({
                "node": {"nodeName": "n", "memory": {"time": second, "usageBytes": 3}},
                "pods": [{
                    "podRef": {"name": "", "namespace": "", "uid": ""},
                    "startTime": second,
                    "containers": [],
                    "memory": {"time": second, "usageBytes": 3},
                    "network": {"time": second, "name": ""},
                    "volume": [{"time": null, "name": "v"}],
                }],
            })
        );
    }
}
