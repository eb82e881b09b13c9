//! How violations name what they are about.

use std::collections::BTreeSet;

/// `"a", "b"`.
pub(super) fn quoted_list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let quoted = items
        .into_iter()
        .map(|item| format!("\"{}\"", item.as_ref()));
    quoted.collect::<Vec<_>>().join(", ")
}

/// The singular for one, else the plural.
pub(super) fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// `container "a"`, `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    let noun = plural(names.len(), "container", "containers");
    format!("{noun} {}", quoted_list(names))
}

/// Where a field was set: on the pod, on containers, or on both.
#[derive(Default)]
pub(super) struct Setters<'a> {
    pub(super) pod: bool,
    pub(super) containers: Vec<&'a str>,
}

impl Setters<'_> {
    pub(super) fn is_empty(&self) -> bool {
        !self.pod && self.containers.is_empty()
    }

    /// `pod and container "a"`.
    pub(super) fn named(&self) -> String {
        self.and(None)
    }

    /// The same with something else behind.
    pub(super) fn and(&self, other: Option<&str>) -> String {
        let pod = self.pod.then(|| "pod".to_owned());
        let some = !self.containers.is_empty();
        let named = some.then(|| containers(&self.containers));
        let all = pod.into_iter().chain(named);
        let all = all.chain(other.map(str::to_owned));
        all.collect::<Vec<_>>().join(" and ")
    }
}

/// Names, each once, sorted.
pub(super) type Names<'a> = BTreeSet<&'a str>;
