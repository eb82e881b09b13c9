//! The objects that are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::admission::quota::{ObjectCharge, PodCharge};
use plimsoll_core::object::resource_quota::QuotaView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::problem::Problem;
use plimsoll_core::quantity::{Format, Quantity};
use plimsoll_core::resources::{ResourceList, ResourceName};

use crate::housekeeping::discovery::{Kinds, discover};
use crate::work_queue::WorkQueue;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Metadata, Subscription};

use super::counting::{Counted, counted_for};

/// Changes are taken together for so long: a namespace that is filled or emptied is counted once
/// in a while, not once per object.
const BATCH_PERIOD: Duration = Duration::from_secs(1);

/// Caches of everything that quotas count, and the quotas to be counted when something changes.
pub(super) struct Sources {
    informers: Arc<Informers>,
    quotas: Arc<Informer<ResourceQuota>>,
    queue: Arc<WorkQueue<Key>>,
    pods: Arc<Informer<Pod>>,
    services: Arc<Informer<Service>>,
    claims: Arc<Informer<PersistentVolumeClaim>>,
    others: Mutex<OtherKinds>,
    subscriptions: Mutex<Vec<Subscription>>,
}

#[derive(Default)]
struct OtherKinds {
    kinds: Kinds,
    caches: BTreeMap<(String, String), Cache>,
}

/// The cache of a kind of which only the number counts.
struct Cache {
    objects: Arc<Informer<Metadata>>,
    _changes: Subscription,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sources {
    pub(super) fn new(
        informers: Arc<Informers>,
        quotas: Arc<Informer<ResourceQuota>>,
        queue: &Arc<WorkQueue<Key>>,
    ) -> Arc<Sources> {
        let sources = Arc::new(Sources {
            pods: informers.of(),
            services: informers.of(),
            claims: informers.of(),
            informers,
            quotas,
            queue: Arc::clone(queue),
            others: Mutex::default(),
            subscriptions: Mutex::default(),
        });
        // The informers outlive the sources, so they must not keep them alive.
        let weak = Arc::downgrade(&sources);
        let pods = sources.pods.on_change(move |change| {
            if let Some(sources) = weak.upgrade()
                && changes_pod_usage(change)
            {
                sources.recount(&change.key().namespace);
            }
        });
        let weak = Arc::downgrade(&sources);
        let services = sources.services.on_change(move |change| {
            if let Some(sources) = weak.upgrade()
                && !is_update_with(change, |service| &service.spec)
            {
                sources.recount(&change.key().namespace);
            }
        });
        let weak = Arc::downgrade(&sources);
        let claims = sources.claims.on_change(move |change| {
            if let Some(sources) = weak.upgrade()
                && !is_update_with(change, |claim| &claim.spec)
            {
                sources.recount(&change.key().namespace);
            }
        });
        lock(&sources.subscriptions).extend([pods, services, claims]);
        sources
    }

    pub(super) async fn synced(&self) {
        self.pods.synced().await;
        self.services.synced().await;
        self.claims.synced().await;
    }

    /// Has the quotas of a namespace counted soon.
    fn recount(&self, namespace: &str) {
        for quota in self.quotas.in_namespace(namespace) {
            self.queue.add_after(Key::of(&quota.metadata), BATCH_PERIOD);
        }
    }

    /// Keeps asking which kinds there are. Caches of kinds that no quota names any more are let
    /// go.
    pub(super) async fn run_discovery(&self, period: Duration) {
        loop {
            match discover(self.informers.client()).await {
                Ok(kinds) => self.set_kinds(kinds),
                Err(error) => tracing::warn!(%error, "failed to discover kinds"),
            }
            tokio::time::sleep(period).await;
        }
    }

    fn set_kinds(&self, kinds: Kinds) {
        let quotas = self.quotas.list();
        let hard = quotas.iter().filter_map(|q| q.spec.as_ref()?.hard.as_ref());
        let names = hard.flat_map(|hard| hard.keys());
        let named = names.filter_map(|name| counted_for(&ResourceName::new(name.as_str())));
        let named: BTreeSet<Counted> = named.collect();
        let is_new = {
            let mut others = lock(&self.others);
            others.caches.retain(|(plural, group), _| {
                named.contains(&Counted::Kind {
                    plural: plural.clone(),
                    group: group.clone(),
                })
            });
            let is_new = others.kinds != kinds;
            others.kinds = kinds;
            is_new
        };
        if is_new {
            for quota in quotas {
                self.queue.add(Key::of(&quota.metadata));
            }
        }
    }

    /// The usage of a namespace, of everything that the quota limits and that can be counted.
    pub(super) async fn usage(
        self: &Arc<Self>,
        namespace: &str,
        quota: &QuotaView,
        now: Timestamp,
    ) -> ResourceList {
        let mut counted = BTreeSet::new();
        let mut usage = ResourceList::new();
        for name in quota.hard.names() {
            let Some(objects) = counted_for(name) else {
                continue;
            };
            if let Counted::Kind { plural, group } = &objects
                && self.cache(plural, group).is_none()
            {
                continue;
            }
            usage.insert(name.clone(), Quantity::new(0, Format::DecimalSi));
            counted.insert(objects);
        }
        for objects in counted {
            let sum = match objects {
                Counted::Pods => self.pod_usage(namespace, quota, now),
                Counted::Services => {
                    let services = self.services.in_namespace(namespace);
                    let charges = services.iter().map(|s| ObjectCharge::of_service(s));
                    sum(quota, charges)
                }
                Counted::Claims => {
                    let claims = self.claims.in_namespace(namespace);
                    let charges = claims.iter().filter_map(|claim| {
                        let charge = ObjectCharge::of_claim(claim);
                        charge.inspect_err(|p| malformed(&claim.metadata, p)).ok()
                    });
                    sum(quota, charges)
                }
                Counted::Kind { plural, group } => {
                    let Some(cache) = self.cache(&plural, &group) else {
                        continue;
                    };
                    cache.synced().await;
                    let charge = ObjectCharge::of_kind(&group, &plural);
                    let objects = cache.in_namespace(namespace);
                    sum(quota, objects.iter().map(|_| charge.clone()))
                }
            };
            usage.add(&sum.filtered(|name| quota.hard.contains(name)));
        }
        usage
    }

    fn pod_usage(&self, namespace: &str, quota: &QuotaView, now: Timestamp) -> ResourceList {
        let now = now.to_api().0;
        let mut sum = ResourceList::new();
        for pod in self.pods.in_namespace(namespace) {
            match PodCharge::from_api(&pod, now) {
                Ok(charge) if charge.is_counted_by(quota) => sum.add(&charge.usage),
                Ok(_) => {}
                Err(problems) => malformed(&pod.metadata, &problems),
            }
        }
        sum
    }

    /// The cache of a kind, if the server has such a kind and it can be counted.
    fn cache(self: &Arc<Self>, plural: &str, group: &str) -> Option<Arc<Informer<Metadata>>> {
        let mut others = lock(&self.others);
        let name = (plural.to_owned(), group.to_owned());
        if let Some(cache) = others.caches.get(&name) {
            return Some(Arc::clone(&cache.objects));
        }
        let mut kinds = others.kinds.preferred().iter();
        let kind = kinds.find(|kind| {
            let verbs = ["create", "list", "watch", "delete"];
            kind.resource.plural == plural
                && kind.resource.group == group
                && kind.is_namespaced
                && plural != "events"
                && verbs.iter().all(|verb| kind.supports(verb))
        })?;
        let objects = self.informers.metadata_of(&kind.resource);
        let weak = Arc::downgrade(self);
        let changes = objects.on_change(move |change| {
            if let Some(sources) = weak.upgrade()
                && !matches!(change, Change::Updated { .. })
            {
                sources.recount(&change.key().namespace);
            }
        });
        let cache = Cache {
            objects: Arc::clone(&objects),
            _changes: changes,
        };
        others.caches.insert(name, cache);
        Some(objects)
    }
}

fn sum(quota: &QuotaView, charges: impl Iterator<Item = ObjectCharge>) -> ResourceList {
    let mut sum = ResourceList::new();
    for charge in charges.filter(|charge| charge.is_counted_by(quota)) {
        sum.add(&charge.usage);
    }
    sum
}

fn malformed(metadata: &ObjectMeta, problems: &[Problem]) {
    tracing::warn!(
        object = %Key::of(metadata), ?problems, "failed to compute usage, object not counted"
    );
}

/// Whether the change leaves alone the part of an object that its use depends on.
fn is_update_with<K, P: PartialEq>(change: &Change<K>, part: impl Fn(&K) -> &P) -> bool {
    match change {
        Change::Updated { before, after } => part(before) == part(after),
        _ => false,
    }
}

/// Whether what the pod is charged may be another: it came, went, ended, was resized or was given
/// a deadline.
fn changes_pod_usage(change: &Change<Pod>) -> bool {
    let Change::Updated { before, after } = change else {
        return true;
    };
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.clone());
    let resources = |pod: &Pod| {
        let status = pod.status.as_ref();
        let containers = status.and_then(|s| s.container_statuses.clone());
        let initial = status.and_then(|s| s.init_container_statuses.clone());
        let all = containers.into_iter().chain(initial).flatten();
        all.map(|c| (c.name, c.resources)).collect::<Vec<_>>()
    };
    before.spec != after.spec
        || phase(before) != phase(after)
        || before.metadata.deletion_timestamp != after.metadata.deletion_timestamp
        || resources(before) != resources(after)
}
