//! The Summary API's JSON (`GET /stats/summary`).
//!
//! A node agent fills it; reading one gives an [`super::Observation`] and what each pod uses, and
//! the way back is what records are made of. Numbers are 64 bits without sign; upstream reads them
//! with one, so that a wrapped difference is negative. What is not upstream's says so, and
//! [`Summary::for_clients`] leaves it out. Accelerators and user-defined metrics are not in it:
//! container runtimes report none.

macro_rules! stats {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)+ }

        impl super::wire::Times for $name {
            fn to_whole_seconds(&mut self) {
                $(super::wire::Times::to_whole_seconds(&mut self.$field);)+
            }
        }
    };
}

mod convert;
mod document;
mod figures;
pub(super) mod time;
mod wire;

use serde::{Deserialize, Deserializer};

pub use document::{
    ContainerStats, NodeStats, PodReference, PodStats, PvcReference, RuntimeStats, Summary,
    VolumeHealthStats, VolumeStats,
};
pub use figures::{
    CpuStats, FsStats, InterfaceStats, IoStats, MemoryStats, NetworkStats, ProcessStats, PsiData,
    PsiStats, RlimitStats, SwapStats,
};

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
