//! The node's configuration, from the files that existing clusters use.
//!
//! Three notations lead to one [`NodeConfig`]: a KubeletConfiguration file, an OKD
//! `node-config.yaml`, and a kubelet's command line. This module never looks at a machine:
//! whether the reservations fit its capacity is for `allocatable` to say.
//!
//! Reading order: [`NodeConfig`] and the [`Setting`]s it is made of, [`Profile`], then the way a
//! file takes: [`document`] (text to tree), `read` (tree or flags to assignments), `decode`
//! (assignments to values, with [`reserved`] for reservations), `validate`, [`effect`] (what each setting
//! does on a node), and `convert` (OKD to KubeletConfiguration).

mod choice;
mod convert;
mod cpu_set;
mod decode;
pub mod document;
pub mod effect;
mod node_config;
mod profile;
mod read;
pub mod reserved;
mod setting;
mod taint;
mod validate;

pub use choice::{
    AuthorizationMode, CgroupDriver, Enforcement, MemoryReservationPolicy, Profile, SwapBehavior,
};
pub use convert::{Conversion, Note, NoteKind, convert_okd_node_config};
pub use cpu_set::CpuSet;
pub use node_config::{NodeConfig, ShutdownGracePeriod, SignalTexts};
pub use profile::{CriticalRule, EvictionRank, MemoryPressureBlocks, SoftGrace};
pub(crate) use read::kubelet::check_type;
pub(crate) use read::shape;
pub use read::suggest::{closest, did_you_mean};
pub use read::{
    Notation, Reading, read_command_line, read_document, read_file, read_kubelet_configuration,
    read_okd_node_config,
};
pub use setting::{Origin, Setting};
pub use taint::{TaintError, parse_taint};
pub use validate::{may_label_itself, validate};
