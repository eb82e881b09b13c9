//! The state of the cluster that admission uses, parsed again only when it has changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_core::admission::default_toleration_seconds::DefaultTolerationSeconds;
use plimsoll_core::admission::overcommit::Override;
use plimsoll_core::admission::pod_security::{NamespacePolicy, PodSecurity};
use plimsoll_core::admission::priority::PriorityClasses;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::namespace::NamespaceView;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cache::{Cache, Collection};
use crate::machinery::admission::Cluster;

/// The parsed state, each part with the version of the collection it was read from.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    priority_classes: Option<(u64, Arc<PriorityClasses>)>,
    runtime_classes: Option<(u64, Arc<BTreeMap<String, RuntimeClass>>)>,
    limit_ranges: (u64, BTreeMap<String, LimitRanges>),
    accounts: (u64, BTreeMap<String, Arc<Value>>),
    pod_security: (u64, BTreeMap<String, Arc<NamespacePolicy>>),
}

/// The LimitRanges of a namespace, or the first one that cannot be decoded.
#[derive(Clone, Debug, Default)]
struct LimitRanges {
    readable: Arc<Vec<LimitRangeView>>,
    unreadable: Option<Arc<str>>,
}

impl Facts {
    /// The admission settings for objects of a namespace.
    pub(crate) fn cluster(
        &self,
        cache: &Cache,
        namespace: &str,
        settings: &crate::server::Options,
    ) -> Cluster {
        let overcommit = settings.overcommit.as_ref();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let limit_ranges = known.limit_ranges(cache, namespace);
        Cluster {
            priority_classes: known.priority_classes(cache),
            runtime_classes: known.runtime_classes(cache),
            limit_ranges: limit_ranges.readable,
            unreadable_limit_range: limit_ranges.unreadable,
            overcommit: overcommit
                .filter(|all| applies(all, cache, namespace))
                .cloned(),
            toleration_seconds: DefaultTolerationSeconds::default(),
            memory_pressure: settings.memory_pressure,
        }
    }
}

impl Facts {
    /// The service account that a new pod runs as.
    pub(crate) fn account(&self, cache: &Cache, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let collection = collection(cache, "serviceaccounts");
        let version = collection.version();
        let key = format!("{namespace}/{name}");
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.accounts.0 != version {
            known.accounts = (version, BTreeMap::new());
        }
        if let Some(account) = known.accounts.1.get(&key) {
            return Some(Arc::clone(account));
        }
        let account = Arc::new(collection.get(&key)?.value().ok()?);
        known.accounts.1.insert(key, Arc::clone(&account));
        Some(account)
    }
}

impl Facts {
    /// The Pod Security policy of a namespace; `None` if there is no such namespace.
    pub(crate) fn pod_security(
        &self,
        cache: &Cache,
        namespace: &str,
        plugin: &PodSecurity,
    ) -> Option<Arc<NamespacePolicy>> {
        let collection = collection(cache, "namespaces");
        let version = collection.version();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.pod_security.0 != version {
            known.pod_security = (version, BTreeMap::new());
        }
        if let Some(policy) = known.pod_security.1.get(namespace) {
            return Some(Arc::clone(policy));
        }
        let stored = collection.get(namespace)?;
        let parsed: Namespace = serde_json::from_slice(stored.json()).ok()?;
        let labels = parsed.metadata.labels.unwrap_or_default();
        let policy = Arc::new(plugin.policy_of(&labels));
        let all = &mut known.pod_security.1;
        all.insert(namespace.to_owned(), Arc::clone(&policy));
        Some(policy)
    }
}

/// Whether the override applies to the namespace.
fn applies(overcommit: &Override, cache: &Cache, namespace: &str) -> bool {
    let stored = collection(cache, "namespaces").get(namespace);
    let parsed = stored.and_then(|stored| serde_json::from_slice(stored.json()).ok());
    parsed.is_some_and(|namespace| overcommit.applies_to(&NamespaceView::from_api(&namespace)))
}

impl Known {
    fn priority_classes(&mut self, cache: &Cache) -> Arc<PriorityClasses> {
        let collection = collection(cache, "priorityclasses");
        let version = collection.version();
        match &self.priority_classes {
            Some((seen, classes)) if *seen == version => Arc::clone(classes),
            _ => {
                let classes: Vec<PriorityClass> = all(collection, "");
                let classes = Arc::new(PriorityClasses::from_api(&classes));
                self.priority_classes = Some((version, Arc::clone(&classes)));
                classes
            }
        }
    }

    fn runtime_classes(&mut self, cache: &Cache) -> Arc<BTreeMap<String, RuntimeClass>> {
        let collection = collection(cache, "runtimeclasses");
        let version = collection.version();
        match &self.runtime_classes {
            Some((seen, classes)) if *seen == version => Arc::clone(classes),
            _ => {
                let classes: Vec<RuntimeClass> = all(collection, "");
                let named = classes.into_iter();
                let named = named.filter_map(|class| Some((class.metadata.name.clone()?, class)));
                let classes = Arc::new(named.collect());
                self.runtime_classes = Some((version, Arc::clone(&classes)));
                classes
            }
        }
    }

    fn limit_ranges(&mut self, cache: &Cache, namespace: &str) -> LimitRanges {
        let collection = collection(cache, "limitranges");
        let version = collection.version();
        if self.limit_ranges.0 != version {
            self.limit_ranges = (version, BTreeMap::new());
        }
        if let Some(ranges) = self.limit_ranges.1.get(namespace) {
            return ranges.clone();
        }
        let prefix = format!("{namespace}/");
        let mut unreadable = collection.unreadable_keys(&prefix).into_iter().next();
        let mut views = Vec::new();
        for object in collection.list(&prefix, None) {
            let range = serde_json::from_slice::<LimitRange>(object.json());
            match range
                .ok()
                .and_then(|range| LimitRangeView::from_api(&range).ok())
            {
                Some(view) => views.push(view),
                None => unreadable = Some(Arc::clone(object.key())),
            }
        }
        let ranges = LimitRanges {
            readable: Arc::new(views),
            unreadable,
        };
        self.limit_ranges
            .1
            .insert(namespace.to_owned(), ranges.clone());
        ranges
    }
}

fn collection<'a>(cache: &'a Cache, plural: &str) -> &'a Arc<Collection> {
    let stored = cache.stored(plural);
    stored.expect("the kinds that admission reads are stored")
}

/// All objects that can be decoded. An object that a pod names and that is not among them does not
/// exist, and the pod is rejected.
fn all<K: DeserializeOwned>(collection: &Collection, prefix: &str) -> Vec<K> {
    let objects = collection.list(prefix, None);
    let parsed = objects
        .iter()
        .filter_map(|object| serde_json::from_slice(object.json()).ok());
    parsed.collect()
}
