//! Static pods and their images in the API.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::Pods;
use super::table::{Source, Table, full_name};
use crate::pod_fields;

/// What is to be done about images of static pods.
#[derive(Clone, Debug, PartialEq)]
pub enum MirrorWork {
    /// Make one.
    Create(Arc<Pod>),
    /// Remove one.
    Delete(Arc<Pod>),
}

impl Pods {
    /// The object that stands in the API for a pod; none for a static pod without an image.
    pub(crate) fn object_of(&self, pod: &Arc<Pod>) -> Option<Arc<Pod>> {
        if !pod_fields::is_static(pod) {
            return Some(Arc::clone(pod));
        }
        let table = self.table();
        let image = table.mirrors.get(&full_name(pod))?;
        is_image_of(image, pod).then(|| Arc::clone(image))
    }

    /// What is to be done about images of static pods.
    pub(crate) fn mirror_work(&self) -> Vec<MirrorWork> {
        compute(&self.table())
    }

    /// Waits for static pods or images to change.
    pub(crate) async fn mirrors_changed(&self) {
        self.0.mirrors_changed.notified().await;
    }
}

fn is_image_of(image: &Pod, pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    let hash = annotations.and_then(|own| own.get(pod_fields::CONFIG_HASH));
    pod_fields::mirror_hash(image) == hash.map(String::as_str)
}

fn compute(table: &Table) -> Vec<MirrorWork> {
    if !table.is_ready() {
        return Vec::new();
    }
    let entries = table.entries.values();
    let statics: Vec<_> = entries
        .filter(|entry| entry.source == Source::Files)
        .collect();
    let mut work = Vec::new();
    for entry in statics.iter().filter(|entry| !entry.is_orphan) {
        let pod = entry.pod();
        match table.mirrors.get(&full_name(&pod)) {
            None => work.push(MirrorWork::Create(pod)),
            Some(image) if pod_fields::is_deleted(image) || !is_image_of(image, &pod) => {
                work.push(MirrorWork::Delete(Arc::clone(image)));
            }
            Some(_) => {}
        }
    }
    for (name, image) in &table.mirrors {
        // As long as the pod is ending its image shows how.
        let is_wanted = statics.iter().any(|entry| full_name(&entry.pod()) == *name)
            || table.waiting.contains_key(name);
        if !is_wanted {
            work.push(MirrorWork::Delete(Arc::clone(image)));
        }
    }
    work
}
