//! The requirements of a test on the machine.

use std::fmt;

/// In the order in which tiers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// Random inputs by the hundred thousand.
    Fuzz,
    /// Nothing.
    Unit,
    /// Programs of the distribution.
    Tools,
    /// To be root.
    Root,
    /// To boot a virtual machine.
    Vm,
}

impl Tier {
    pub(crate) const ALL: [Tier; 5] = [Tier::Fuzz, Tier::Unit, Tier::Tools, Tier::Root, Tier::Vm];

    /// The tier of that name.
    pub(crate) fn called(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.name() == name)
    }

    /// The tier that a reason to ignore a test names: `tier: root`.
    pub(crate) fn in_reason(reason: &str) -> Option<Tier> {
        let tier = Tier::called(reason.trim().strip_prefix("tier: ")?)?;
        // These two are never ignored.
        (tier > Tier::Unit).then_some(tier)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tier::Fuzz => "fuzz",
            Tier::Unit => "unit",
            Tier::Tools => "tools",
            Tier::Root => "root",
            Tier::Vm => "vm",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_tiers_that_need_something() {
        assert_eq!(Tier::in_reason("tier: root"), Some(Tier::Root));
        assert_eq!(Tier::in_reason("tier: vm\n"), Some(Tier::Vm));
        assert_eq!(Tier::in_reason("tier: unit"), None);
        assert_eq!(Tier::in_reason("slow"), None);
        assert_eq!(Tier::in_reason("root"), None);
    }
}
