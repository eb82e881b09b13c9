//! Computes the load line of a node from what was read.

use plimsoll_core::allocatable::{
    DevicePlugins, Machine, NodeResources, Settings, compute_allocatable,
};
use plimsoll_core::cgroup::MemoryQos;
use plimsoll_core::cgroup::pod::{PodSettings, pod_config};
use plimsoll_core::config::NodeConfig;
use plimsoll_core::eviction::record::distances::{DistanceRecord, LinesRecord};
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::{self, Engine, Input};
use plimsoll_core::object::node::{ConditionStatus, NodeCondition, NodeView};
use plimsoll_core::object::pod::{Overhead, PodView};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Bytes, Count, Millicores, ResourceList, ResourceName};
use plimsoll_core::threshold::{Signal, StarvedResource};

use crate::reading::{Reading, holds_resources, layout};
use crate::text::Unit;

use super::report::{NodeLine, Reserved, ResourceLine, ThresholdLine};

/// The figures of a resource besides its thresholds.
struct Figures {
    resource: &'static str,
    name: Option<ResourceName>,
    unit: Unit,
    starved: &'static [StarvedResource],
}

const RESOURCES: [Figures; 4] = [
    Figures {
        resource: "cpu",
        name: Some(ResourceName::CPU),
        unit: Unit::Millicores,
        starved: &[],
    },
    Figures {
        resource: "memory",
        name: Some(ResourceName::MEMORY),
        unit: Unit::Bytes,
        starved: &[StarvedResource::Memory],
    },
    Figures {
        resource: "ephemeral-storage",
        name: Some(ResourceName::EPHEMERAL_STORAGE),
        unit: Unit::Bytes,
        starved: &[StarvedResource::EphemeralStorage, StarvedResource::Inodes],
    },
    Figures {
        resource: "pids",
        name: None,
        unit: Unit::Count,
        starved: &[StarvedResource::Pids],
    },
];

/// The usual `cpuCFSQuotaPeriod`. Whether there is a quota does not depend on it.
const CPU_PERIOD_MICROS: u64 = 100_000;

/// The load line of a node.
pub fn compute(reading: &Reading) -> NodeLine {
    let mut unknown = Vec::new();
    let name = reading.node.metadata.name.clone().unwrap_or_default();
    let view = NodeView::from_api(&reading.node).unwrap_or_else(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        unknown.push(format!("capacity and allocatable: {}", problems.join("; ")));
        NodeView::default()
    });
    let pods: Vec<PodView> = reading
        .pods
        .iter()
        .filter(|pod| holds_resources(pod))
        .filter_map(|pod| PodView::from_api(pod).ok())
        .collect();
    if let Err(reason) = &reading.config {
        unknown.push(format!(
            "reservations and eviction thresholds: \
             the node does not show its configuration ({reason})"
        ));
    }
    if let Some(reason) = &reading.no_sample {
        unknown.push(format!("what is in use: {reason}"));
    }
    let lines = lines(reading);
    let is_forecast_missing = lines
        .items
        .iter()
        .all(|line| line.change_per_second.is_none());
    if is_forecast_missing && !lines.items.is_empty() {
        unknown.push("when a threshold is reached: that takes two samples, as with -w".to_owned());
    }
    let resources = RESOURCES.iter().map(|figures| {
        let reading = Known {
            view: &view,
            pods: &pods,
            config: reading.config.as_ref().ok(),
            sample: reading.samples.last(),
            lines: &lines,
        };
        reading.resource(figures)
    });
    NodeLine {
        status: status(&view),
        pressure: pressure(&view),
        pods: pods.len(),
        resources: resources.collect(),
        node: name,
        unknown,
    }
}

/// The status as kubectl prints it.
fn status(view: &NodeView) -> String {
    let ready = match view.conditions.status(NodeCondition::Ready) {
        Some(ConditionStatus::True) => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match view.is_unschedulable {
        true => format!("{ready},SchedulingDisabled"),
        false => ready.to_owned(),
    }
}

fn pressure(view: &NodeView) -> Vec<&'static str> {
    let all = [
        NodeCondition::MemoryPressure,
        NodeCondition::DiskPressure,
        NodeCondition::PidPressure,
    ];
    let held = all.into_iter().filter(|one| view.conditions.is_true(*one));
    held.map(NodeCondition::as_str).collect()
}

/// The distances that the agent serves; else those computed from the configuration and the samples.
fn lines(reading: &Reading) -> LinesRecord {
    if let Some(lines) = reading.lines.as_ref().filter(|lines| lines.at.is_some()) {
        return lines.clone();
    }
    let (Ok(config), Some(latest)) = (&reading.config, reading.samples.last()) else {
        return LinesRecord::default();
    };
    let Ok(settings) = eviction::Settings::new(config, layout(latest)) else {
        return LinesRecord::default();
    };
    let mut engine = Engine::new(settings);
    for (index, sample) in reading.samples.iter().enumerate() {
        let observation = sample.observation();
        let at = observation.memory.and_then(|memory| memory.time);
        let at = at.unwrap_or(Timestamp::from_secs(i64::try_from(index).unwrap_or(0)));
        // The decisions are discarded; only the state of the engine is needed.
        engine.step(
            at,
            Input::Observed {
                observation: &observation,
                pods: &[],
            },
        );
    }
    LinesRecord::of(&engine, Timestamp::default(), &latest.observation())
}

struct Known<'a> {
    view: &'a NodeView,
    pods: &'a [PodView],
    config: Option<&'a NodeConfig>,
    sample: Option<&'a Summary>,
    lines: &'a LinesRecord,
}

impl Known<'_> {
    fn resource(&self, figures: &Figures) -> ResourceLine {
        let amount = |quantity: &Quantity| match figures.unit {
            Unit::Millicores => Millicores::from_quantity(quantity).0,
            Unit::Bytes => Bytes::from_quantity(quantity).0,
            Unit::Count => Count::from_quantity(quantity).0,
        };
        let of = |list: &ResourceList| {
            let quantity = figures.name.as_ref().and_then(|name| list.get(name));
            quantity.map(amount)
        };
        let mut requested = ResourceList::default();
        let (mut limits, mut without_limit) = (0_i64, 0);
        for pod in self.pods {
            requested.add(&pod.requests(Overhead::Included));
            match figures.name.as_ref().and_then(|name| self.limit(pod, name)) {
                Some(own) => limits = limits.saturating_add(own),
                None => without_limit += 1,
            }
        }
        let is_shared_out = figures.name.is_some();
        let measured = self.measured(figures.resource);
        let capacity = of(&self.view.capacity.list).or(measured.map(|(_, capacity)| capacity));
        let allocatable = of(&self.view.allocatable.list);
        ResourceLine {
            resource: figures.resource,
            unit: figures.unit,
            capacity,
            reserved: self.reserved(figures, amount, capacity, allocatable),
            allocatable,
            requested: is_shared_out.then(|| of(&requested).unwrap_or(0)),
            limits: is_shared_out.then_some(limits),
            pods_without_limit: is_shared_out.then_some(without_limit),
            in_use: measured.map(|(in_use, _)| in_use),
            thresholds: self.thresholds(figures.starved),
        }
    }

    /// The limit of the pod's cgroup, or for local storage that of eviction; `None` if the pod has
    /// none. A pod with a container without a limit has none.
    fn limit(&self, pod: &PodView, name: &ResourceName) -> Option<i64> {
        let declared = || pod.limits(Overhead::Included);
        let config = pod_config(
            pod,
            &PodSettings {
                enforces_cpu_limits: self.config.is_none_or(|config| *config.cpu_cfs_quota),
                cpu_period_micros: CPU_PERIOD_MICROS,
                pids_limit: 0,
                memory_qos: MemoryQos::Off,
            },
        );
        let limit = match name {
            name if *name == ResourceName::CPU => {
                config.cpu_quota.filter(|quota| *quota > 0)?;
                Millicores::from_quantity(declared().get(name)?).0
            }
            name if *name == ResourceName::MEMORY => config.memory?.0,
            name => Bytes::from_quantity(declared().get(name)?).0,
        };
        Some(limit).filter(|limit| *limit > 0)
    }

    fn reserved(
        &self,
        figures: &Figures,
        amount: impl Fn(&Quantity) -> i64,
        capacity: Option<i64>,
        allocatable: Option<i64>,
    ) -> Option<Reserved> {
        let capacities = &self.view.capacity.typed;
        let machine = Machine {
            cores: capacities.cpu.0 / 1000,
            memory: capacities.memory,
            root_fs: Some(capacities.ephemeral_storage),
            ..Machine::default()
        };
        let computed = compute_allocatable(
            &machine,
            &Settings::from_config(self.config?),
            &DevicePlugins::default(),
            &NodeResources::default(),
        );
        let terms = computed.terms.get(figures.name.as_ref()?)?;
        let (kube, system) = (amount(&terms.kube_reserved), amount(&terms.system_reserved));
        let hard_eviction = amount(&terms.hard_eviction);
        Some(Reserved {
            kube,
            system,
            hard_eviction,
            other: capacity? - allocatable? - kube - system - hard_eviction,
        })
    }

    /// The amount in use, and the capacity that it is a part of.
    fn measured(&self, resource: &str) -> Option<(i64, i64)> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let node = self.sample.map(|sample| &sample.node);
        match resource {
            "cpu" => {
                let nanos = signed(node?.cpu.as_ref()?.usage_nano_cores?);
                let capacity = self.view.capacity.typed.cpu.0;
                Some((nanos.div_euclid(1_000_000), capacity))
            }
            "memory" => {
                let served = self.line_of(Signal::MemoryAvailable);
                let served = served.map(|line| (line.capacity - line.available, line.capacity));
                served.or_else(|| {
                    let memory = node?.memory.as_ref()?;
                    let used = signed(memory.working_set_bytes?);
                    let available = memory.available_bytes.map(signed);
                    let capacity = available.map(|available| used.saturating_add(available));
                    Some((used, capacity.unwrap_or(self.view.capacity.typed.memory.0)))
                })
            }
            "ephemeral-storage" => {
                let fs = node?.fs.as_ref()?;
                let capacity = signed(fs.capacity_bytes?);
                Some((capacity - signed(fs.available_bytes?), capacity))
            }
            _ => {
                let pids = node?.rlimit.as_ref()?;
                Some((pids.curproc?, pids.maxpid?))
            }
        }
    }

    fn line_of(&self, signal: Signal) -> Option<&DistanceRecord> {
        let mut items = self.lines.items.iter();
        items.find(|line| line.signal == signal.as_str())
    }

    fn thresholds(&self, starved: &[StarvedResource]) -> Vec<ThresholdLine> {
        // The available amount is never negative.
        let items = self.lines.items.iter().filter(|line| line.line > 0);
        let mut lines: Vec<ThresholdLine> = items
            .filter_map(|line| {
                let signal = Signal::from_name(&line.signal)?;
                let resource = signal.resource();
                starved
                    .contains(&resource)
                    .then(|| threshold(line, resource))
            })
            .collect();
        // The soft threshold of a signal is met first, and shown first.
        lines.sort_by_key(|line| line.is_hard);
        lines.sort_by_key(|line| Signal::from_name(&line.signal).map(|signal| signal as usize));
        lines
    }
}

fn threshold(line: &DistanceRecord, resource: StarvedResource) -> ThresholdLine {
    ThresholdLine {
        signal: line.signal.clone(),
        unit: match resource {
            StarvedResource::Memory | StarvedResource::EphemeralStorage => Unit::Bytes,
            StarvedResource::Inodes | StarvedResource::Pids => Unit::Count,
        },
        is_hard: line.is_hard,
        grace_period: (!line.is_hard).then(|| line.grace_period.clone()),
        line: line.line,
        available: line.available,
        capacity: line.capacity,
        distance: line.available.saturating_sub(line.line),
        change_per_second: line.change_per_second,
        reached_in_seconds: line.reached_in_nanos.map(seconds),
    }
}

fn seconds(nanos: i64) -> f64 {
    plimsoll_core::duration::Duration::from_nanos(nanos).as_secs_f64()
}
