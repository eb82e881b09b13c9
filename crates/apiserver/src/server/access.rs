//! The authorizer, kept in step with the cache.
//!
//! The authorizer catches up with the cache at a review, not on every change: most changes are
//! of pods, and those matter only to nodes. The cost is proportional to the changes since
//! then.

use std::sync::{Arc, PoisonError, RwLock};

use crate::auth::authorize::Authorizer;
use crate::auth::identity::{NODES, User};
use crate::cache::{Cache, Collection, EventType, Expired, Object, Watcher};
use crate::kinds;

/// The kinds that hold roles and bindings.
const POLICY: [(&str, &str); 4] = [
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
];

/// The kinds that decide which node may read which object.
const GRAPH: [(&str, &str); 4] = [
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
];

/// The authorizer and how far it has followed the cache.
#[derive(Debug, Default)]
pub(crate) struct Access {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    authorizer: Authorizer,
    policy: Vec<TrackedCollection>,
    graph: Vec<TrackedCollection>,
    /// Whether applying a change began and did not finish.
    is_torn: bool,
}

/// A collection and the revision up to which the authorizer has applied it.
#[derive(Debug)]
struct TrackedCollection {
    collection: Arc<Collection>,
    /// `None` before the first read, and when everything has to be read again.
    watcher: Option<Watcher>,
    seen: u64,
}

impl Access {
    /// Runs a check against the authorizer for a user.
    pub(crate) fn with<T>(&self, user: &User, cache: &Cache, ask: impl Fn(&Authorizer) -> T) -> T {
        self.ask(user.is_in(NODES), cache, ask)
    }

    /// Runs a check against the authorizer for any user.
    pub(crate) fn with_everything<T>(&self, cache: &Cache, ask: impl Fn(&Authorizer) -> T) -> T {
        self.ask(true, cache, ask)
    }

    fn ask<T>(&self, needs_graph: bool, cache: &Cache, ask: impl Fn(&Authorizer) -> T) -> T {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.is_current(needs_graph) {
            return ask(&state.authorizer);
        }
        drop(state);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.catch_up(cache, needs_graph);
        ask(&state.authorizer)
    }
}

impl State {
    fn is_current(&self, needs_graph: bool) -> bool {
        let is_current = |followed: &[TrackedCollection]| {
            let mut followed = followed.iter();
            followed.all(|f| f.watcher.is_some() && f.seen == f.collection.version())
        };
        !self.policy.is_empty()
            && is_current(&self.policy)
            && (!needs_graph || !self.graph.is_empty() && is_current(&self.graph))
    }

    fn catch_up(&mut self, cache: &Cache, needs_graph: bool) {
        if self.policy.is_empty() {
            self.policy = follow(cache, &POLICY);
            self.graph = follow(cache, &GRAPH);
        }
        if std::mem::replace(&mut self.is_torn, true) {
            self.forget();
        }
        while self.follow_changes(needs_graph).is_err() {
            self.forget();
        }
        self.is_torn = false;
    }

    /// A full read cannot distinguish a deleted object from one that never existed: the authorizer
    /// is rebuilt from all objects, so that no revoked permission stays granted.
    fn forget(&mut self) {
        self.authorizer = Authorizer::default();
        for followed in self.policy.iter_mut().chain(&mut self.graph) {
            followed.watcher = None;
        }
    }

    fn follow_changes(&mut self, needs_graph: bool) -> Result<(), Expired> {
        let graph = self.graph.iter_mut().filter(|_| needs_graph);
        for followed in self.policy.iter_mut().chain(graph) {
            followed.catch_up(&mut self.authorizer)?;
        }
        Ok(())
    }
}

fn follow(cache: &Cache, resources: &[(&str, &str)]) -> Vec<TrackedCollection> {
    let kinds = resources.iter().filter_map(|(group, plural)| {
        let kind = kinds::by_resource(group, "v1", plural)?;
        cache.collection(kind)
    });
    let followed = kinds.map(|collection| TrackedCollection {
        collection: Arc::clone(collection),
        watcher: None,
        seen: 0,
    });
    followed.collect()
}

impl TrackedCollection {
    /// Returns an error if changes are missing.
    fn catch_up(&mut self, authorizer: &mut Authorizer) -> Result<(), Expired> {
        // Changes from here on may be missed below; the next call reads them.
        let version = self.collection.version();
        self.observe_changes(authorizer)?;
        self.seen = version;
        Ok(())
    }

    fn observe_changes(&mut self, authorizer: &mut Authorizer) -> Result<(), Expired> {
        let kind = self.collection.kind();
        // An object that cannot be decoded counts as deleted: it grants nothing, and does not
        // affect other objects.
        let mut observe = |object: &Object, is_there: bool| {
            let (namespace, name) = (object.namespace(), object.name());
            let value = is_there.then(|| object.value()).transpose();
            let value = value.unwrap_or_else(|error| {
                tracing::warn!(%namespace, %name, %error, "ignoring object that cannot be decoded in authorization");
                None
            });
            let value = value.as_ref();
            let observed = authorizer.observe(kind.group, kind.plural, namespace, name, value);
            if let Err(error) = observed {
                tracing::warn!(%namespace, %name, %error, "ignoring object that cannot be decoded in authorization");
            }
        };
        if let Some(watcher) = &mut self.watcher {
            loop {
                let batch = watcher.poll()?;
                if batch.is_empty() {
                    return Ok(());
                }
                for event in batch {
                    if let Some((event_type, object)) = event.seen(|_| true) {
                        observe(object, event_type != EventType::Deleted);
                    }
                }
            }
        }
        let (objects, watcher) = self.collection.list_and_watch("");
        for object in objects {
            observe(&object, true);
        }
        self.watcher = Some(watcher);
        Ok(())
    }
}
