//! The authorizer, kept in step with the cache.
//!
//! It is brought up to date when it is asked, not when something changes: most changes are of pods,
//! and those matter only when a node asks. Catching up costs as much as there are changes since.

use std::sync::{Arc, PoisonError, RwLock};

use crate::auth::authorize::Authorizer;
use crate::auth::identity::{NODES, User};
use crate::cache::{Cache, Collection, Expired, Object, Sort, Watcher};
use crate::kinds;

/// What the roles and bindings are made of.
const POLICY: [(&str, &str); 4] = [
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
];

/// What tells which node may see what.
const GRAPH: [(&str, &str); 4] = [
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
];

/// Who may do what, as of now.
#[derive(Debug, Default)]
pub(crate) struct Access {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    authorizer: Authorizer,
    policy: Vec<Followed>,
    graph: Vec<Followed>,
    /// Whether a change was begun to be taken in and not finished.
    is_torn: bool,
}

/// A collection and how far the authorizer knows it.
#[derive(Debug)]
struct Followed {
    collection: Arc<Collection>,
    /// `None` before the first look, and when everything has to be learnt anew.
    watcher: Option<Watcher>,
    seen: u64,
}

impl Access {
    /// Asks the authorizer on behalf of a user.
    pub(crate) fn with<T>(&self, user: &User, cache: &Cache, ask: impl Fn(&Authorizer) -> T) -> T {
        self.ask(user.is_in(NODES), cache, ask)
    }

    /// Asks the authorizer about whomever.
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
        let is_current = |followed: &[Followed]| {
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

    /// An object that is gone meanwhile looks like one that never was: all are read anew, so that
    /// nothing stays granted that was revoked.
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

fn follow(cache: &Cache, resources: &[(&str, &str)]) -> Vec<Followed> {
    let kinds = resources.iter().filter_map(|(group, plural)| {
        let kind = kinds::by_resource(group, "v1", plural)?;
        cache.collection(kind)
    });
    let followed = kinds.map(|collection| Followed {
        collection: Arc::clone(collection),
        watcher: None,
        seen: 0,
    });
    followed.collect()
}

impl Followed {
    /// Fails when changes are missing.
    fn catch_up(&mut self, authorizer: &mut Authorizer) -> Result<(), Expired> {
        // Changes from here on may be missed by what follows and are looked at next time.
        let version = self.collection.version();
        self.observe_changes(authorizer)?;
        self.seen = version;
        Ok(())
    }

    fn observe_changes(&mut self, authorizer: &mut Authorizer) -> Result<(), Expired> {
        let kind = self.collection.kind();
        // An object that cannot be read is as one that is gone: it grants nothing, and hides no
        // other.
        let mut observe = |object: &Object, is_there: bool| {
            let (namespace, name) = (object.namespace(), object.name());
            let value = is_there.then(|| object.value()).transpose();
            let value = value.unwrap_or_else(|error| {
                tracing::warn!(%namespace, %name, %error, "ignored in decisions about access");
                None
            });
            let value = value.as_ref();
            let observed = authorizer.observe(kind.group, kind.plural, namespace, name, value);
            if let Err(error) = observed {
                tracing::warn!(%namespace, %name, %error, "ignored in decisions about access");
            }
        };
        if let Some(watcher) = &mut self.watcher {
            loop {
                let batch = watcher.poll()?;
                if batch.is_empty() {
                    return Ok(());
                }
                for event in batch {
                    if let Some((sort, object)) = event.seen(|_| true) {
                        observe(object, sort != Sort::Deleted);
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
