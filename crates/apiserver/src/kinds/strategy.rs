//! How objects of a kind are written: the switches of upstream's registry strategies.
//!
//! Matches v1.36 pkg/registry/**/strategy.go and storage.go.

/// The switches of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// What increments `metadata.generation`.
    pub generation: Generation,
    /// Whether PUT of a missing object creates it.
    pub put_creates: bool,
    /// Whether PUT without a resourceVersion overwrites the stored object.
    pub allows_unconditional_update: bool,
    /// Whether DELETE returns the deleted object, rather than a Status.
    pub returns_deleted_object: bool,
    /// What happens to dependents without a propagation policy.
    pub default_cascade: Cascade,
}

impl Strategy {
    /// The strategy of most kinds.
    pub(super) const COMMON: Strategy = Strategy {
        generation: Generation::NotKept,
        put_creates: false,
        allows_unconditional_update: true,
        returns_deleted_object: false,
        default_cascade: Cascade::Background,
    };
}

/// What increments `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    NotKept,
    /// Always 1.
    One,
    /// 1 at first, one more with each change below these JSON pointers.
    Counts(&'static [&'static str]),
    /// As [`Generation::Counts`], but a new object has none: the first change makes it 1.
    CountsFromZero(&'static [&'static str]),
}

impl Generation {
    /// Most kinds count the changes of their spec.
    pub(super) const SPEC: Generation = Generation::Counts(&["/spec"]);
}

/// What happens to dependents by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// The garbage collector deletes them afterwards.
    Background,
    /// They stay, without their owner.
    Orphan,
    /// The kind has no dependents and takes no part in garbage collection.
    Unsupported,
}
