//! Builders for tests, here and in the crates above.
//!
//! Defaults are minimal, so that a test shows only what matters to it:
//! `pod("web").cpu("100m").memory("64Mi").priority(10).view()`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::config::Profile;
use crate::eviction::usage::{ContainerUsage, MemoryUsage, PodUsage};
use crate::eviction::{Candidate, MemoryObservation, MemorySource, Observation, Settings};
use crate::object::pod::PodView;
use crate::object::timestamp::Timestamp;
use crate::resources::Bytes;
use crate::threshold::{DiskLayout, Duration, Statements};

/// A pod in namespace `default` with one container `c` that states nothing.
pub fn pod(name: &str) -> PodBuilder {
    PodBuilder(Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some(format!("uid-{name}")),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![container("c")],
            ..PodSpec::default()
        }),
        status: None,
    })
}

fn container(name: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: Some("image".to_owned()),
        ..Container::default()
    }
}

/// A pod under construction. Resource methods apply to the container added last.
#[derive(Clone, Debug)]
pub struct PodBuilder(Pod);

impl PodBuilder {
    /// Requests cpu.
    #[must_use]
    pub fn cpu(self, quantity: &str) -> PodBuilder {
        self.request("cpu", quantity)
    }

    /// Requests memory.
    #[must_use]
    pub fn memory(self, quantity: &str) -> PodBuilder {
        self.request("memory", quantity)
    }

    /// Requests any resource.
    #[must_use]
    pub fn request(self, name: &str, quantity: &str) -> PodBuilder {
        self.resources(|resources| &mut resources.requests, name, quantity)
    }

    /// Limits any resource.
    #[must_use]
    pub fn limit(self, name: &str, quantity: &str) -> PodBuilder {
        self.resources(|resources| &mut resources.limits, name, quantity)
    }

    /// Sets the resolved priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> PodBuilder {
        self.spec().priority = Some(priority);
        self
    }

    /// Sets the pod's termination grace period.
    #[must_use]
    pub fn termination_grace(mut self, seconds: i64) -> PodBuilder {
        self.spec().termination_grace_period_seconds = Some(seconds);
        self
    }

    /// Sets the time of creation, in seconds since 1970.
    #[must_use]
    pub fn created_at(mut self, seconds: i64) -> PodBuilder {
        self.0.metadata.creation_timestamp = Some(Timestamp::from_secs(seconds).to_api());
        self
    }

    /// Puts the pod into another namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> PodBuilder {
        self.0.metadata.namespace = Some(namespace.to_owned());
        self
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> PodBuilder {
        let annotations = self.0.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The pod as eviction sees it.
    pub fn candidate(self, profile: Profile) -> Candidate {
        Candidate::new(&self.view(), profile)
    }

    /// Adds another container.
    #[must_use]
    pub fn container(mut self, name: &str) -> PodBuilder {
        self.spec().containers.push(container(name));
        self
    }

    /// The API object.
    pub fn build(self) -> Pod {
        self.0
    }

    /// The view of it; the quantities given must be well formed.
    pub fn view(self) -> PodView {
        PodView::from_api(&self.0).expect("tests give well-formed quantities")
    }

    fn spec(&mut self) -> &mut PodSpec {
        self.0.spec.get_or_insert_default()
    }

    fn resources(
        mut self,
        part: fn(&mut ResourceRequirements) -> &mut Option<BTreeMap<String, ApiQuantity>>,
        name: &str,
        quantity: &str,
    ) -> PodBuilder {
        let container = self.spec().containers.last_mut();
        let container = container.expect("a pod under construction has a container");
        let resources = container.resources.get_or_insert_default();
        let list = part(resources).get_or_insert_default();
        list.insert(name.to_owned(), ApiQuantity(quantity.to_owned()));
        self
    }
}

/// A pod whose container `c` uses that much memory and nothing else.
pub fn memory_usage(bytes: i64) -> PodUsage {
    PodUsage {
        memory: Some(MemoryUsage {
            working_set: Some(Bytes(bytes)),
        }),
        containers: vec![ContainerUsage {
            name: "c".to_owned(),
            memory: Some(Bytes(bytes)),
            ..ContainerUsage::default()
        }],
        ..PodUsage::default()
    }
}

/// A node of which only the memory was measured.
pub fn memory_observation(available: i64, capacity: i64, time: Timestamp) -> Observation {
    Observation {
        memory: Some(MemoryObservation {
            available: Bytes(available),
            working_set: Bytes(capacity - available),
            time: Some(time),
            ..MemoryObservation::default()
        }),
        ..Observation::default()
    }
}

/// Eviction settings with those thresholds, given as pairs of signal and text, and with grace
/// periods of soft ones; a transition period of five minutes; a pod in every pass, as upstream;
/// everything else as by default.
pub fn eviction_settings(
    profile: Profile,
    hard: &[(&str, &str)],
    soft: &[(&str, &str, &str)],
) -> Settings {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let statements = Statements {
        hard: hard.iter().copied().map(owned).collect(),
        soft: soft
            .iter()
            .map(|(signal, value, _)| owned((signal, value)))
            .collect(),
        soft_grace_period: soft
            .iter()
            .map(|(signal, _, grace)| owned((signal, grace)))
            .collect(),
        ..Statements::default()
    };
    Settings {
        profile,
        thresholds: statements
            .parse()
            .expect("tests give well-formed thresholds"),
        layout: DiskLayout::Single,
        pressure_transition_period: Duration::from_secs(300),
        max_pod_grace_period_seconds: 0,
        local_storage_capacity_isolation: true,
        memory_source: MemorySource::WorkingSet,
        memory_stall: None,
        back_off: false,
        always_give_grace: true,
    }
}
