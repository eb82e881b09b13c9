//! Which controllers in a cache an object concerns.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector as ApiLabelSelector, ObjectMeta,
};
use kube::Resource;
use plimsoll_client::informer::{Informer, Key};
use plimsoll_core::object::selector::LabelSelector;

use super::ownership::{ControllerKind, controller_of};

/// The controller of the object, if it is of that kind and the very one that the cache holds.
pub fn owner_in<K>(
    controllers: &Informer<K>,
    kind: ControllerKind,
    object: &ObjectMeta,
) -> Option<Key>
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let reference = controller_of(object).filter(|reference| kind.is_named_by(reference))?;
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let key = Key::new(namespace, reference.name.as_str());
    let controller = controllers.get(&key)?;
    (controller.meta().uid.as_ref() == Some(&reference.uid)).then_some(key)
}

/// The controllers whose selector selects the object, so that they may want to adopt it.
pub fn adopters_in<K>(
    controllers: &Informer<K>,
    selector_of: impl Fn(&K) -> Option<ApiLabelSelector>,
    object: &ObjectMeta,
) -> Vec<Key>
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let Some(labels) = &object.labels else {
        return Vec::new();
    };
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let mut adopters = controllers.in_namespace(namespace);
    adopters.retain(|controller| {
        let selector = LabelSelector::from_api(selector_of(controller).as_ref());
        selector.is_ok_and(|selector| !selector.is_empty() && selector.matches(labels))
    });
    adopters
        .iter()
        .map(|controller| Key::of(controller.meta()))
        .collect()
}
