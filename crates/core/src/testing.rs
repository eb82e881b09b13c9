//! Builders for tests, here and in the crates above.
//!
//! Defaults are minimal, so that a test shows only what matters to it:
//! `pod("web").cpu("100m").memory("64Mi").priority(10).view()`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::object::pod::PodView;

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

/// A pod under construction. Resource methods speak of the container added last.
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
