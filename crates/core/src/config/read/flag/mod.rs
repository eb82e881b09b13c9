//! The kubelet's flags: what each is called, how its value is written, what became of it.
//!
//! OKD's `kubeletArguments` and a command line share this table. It holds the flags of v1.36
//! cmd/kubelet/app/options and those of v1.6 and v1.9 that are gone.
//!
//! Reading order: this file, `table` (flags that exist), `removed` (flags that do not), `value`
//! (text to tree).

mod removed;
mod table;
mod value;

pub(crate) use value::{FlagValue, parse_values};

use crate::threshold::flag::Separator;

use super::super::effect::Effect;

/// One flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) syntax: Syntax,
    pub(crate) target: Target,
    /// Why the flag cannot be given to a kubelet of today.
    pub(crate) removed: Option<RemovedFlag>,
    /// What the flag does on a node if no field holds its value.
    pub(crate) effect: Effect,
}

/// How the value of a flag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Bool,
    Int32,
    Int64,
    Duration,
    Text,
    /// `a,b`.
    List,
    /// `a=1,b=2` or `a<1,b<2`.
    Pairs(Separator),
    /// `a=1`, with commas in the value.
    SinglePair,
    /// `A=true,B=false`.
    BoolPairs,
    /// `a=1,b`; a label without a value is empty.
    Labels,
    /// `key=value:effect,key:effect`.
    Taints,
    /// `0:memory=1Gi;1:memory=2Gi`.
    ReservedMemory,
    /// `a:1,a:2,b:3`.
    Headers,
}

impl Syntax {
    /// The type and unit of the values, for the reference.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Syntax::Bool => "true or false",
            Syntax::Int32 | Syntax::Int64 => "whole number",
            Syntax::Duration => "duration",
            Syntax::Text => "text",
            Syntax::List => "list of texts",
            _ => "pairs",
        }
    }
}

/// Where the value of a flag goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A field of KubeletConfiguration.
    Field(&'static str),
    /// The node, but no file can say it.
    FlagOnly,
}

/// A flag that no longer exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedFlag {
    /// Its purpose.
    pub(crate) meaning: &'static str,
    /// Its replacement.
    pub(crate) instead: &'static str,
}

impl Flag {
    /// The key under which decoding finds the value.
    pub(crate) fn key(&self) -> String {
        match self.target {
            Target::Field(path) => path.to_owned(),
            Target::FlagOnly => format!("--{}", self.name),
        }
    }
}

/// The flag of that name; underscores count as dashes, as they do for the kubelet.
pub(crate) fn find(name: &str) -> Option<&'static Flag> {
    let name = name.replace('_', "-");
    all().find(|flag| flag.name == name)
}

/// The flag that sets the field.
pub(crate) fn for_field(path: &str) -> Option<&'static Flag> {
    let mut flags = all().filter(|flag| flag.removed.is_none());
    flags.find(|flag| matches!(flag.target, Target::Field(target) if target == path))
}

/// Every flag, those of today first.
pub(crate) fn all() -> impl Iterator<Item = &'static Flag> {
    table::FLAGS.iter().chain(removed::FLAGS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read::kubelet_fields;

    #[test]
    fn every_target_is_a_field_and_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for flag in all() {
            assert!(names.insert(flag.name), "{} stands twice", flag.name);
            if let Target::Field(path) = flag.target {
                let known = kubelet_fields::FIELDS.iter().any(|f| f.path == path);
                assert!(known, "{path}");
            }
        }
    }
}
