//! The numbers of system calls, by architecture and name.

use libcontainer::oci_spec::runtime::Arch;

/// An architecture whose calls a program of this machine can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    X86_64,
    X86,
    Aarch64,
    Arm,
}

/// What this machine's own programs use.
#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE: Abi = Abi::X86_64;
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE: Abi = Abi::Aarch64;

/// From this number on, calls of an x86-64 process are those of x32, whose numbers differ. Kernels
/// have it switched off; to a filter such a call is one that no profile names.
const X32: u32 = 0x4000_0000;

impl Abi {
    /// The one that a profile names, if this machine has it.
    pub(super) fn named(arch: Arch) -> Option<Abi> {
        let abi = match arch {
            Arch::ScmpArchNative => NATIVE,
            Arch::ScmpArchX86_64 => Abi::X86_64,
            Arch::ScmpArchX86 => Abi::X86,
            Arch::ScmpArchAarch64 => Abi::Aarch64,
            Arch::ScmpArchArm => Abi::Arm,
            _ => return None,
        };
        let is_ours = match NATIVE {
            Abi::X86_64 | Abi::X86 => matches!(abi, Abi::X86_64 | Abi::X86),
            Abi::Aarch64 | Abi::Arm => matches!(abi, Abi::Aarch64 | Abi::Arm),
        };
        is_ours.then_some(abi)
    }

    /// What the kernel calls it (`AUDIT_ARCH_*`).
    pub(super) fn audit(self) -> u32 {
        match self {
            Abi::X86_64 => 0xc000_003e,
            Abi::X86 => 0x4000_0003,
            Abi::Aarch64 => 0xc000_00b7,
            Abi::Arm => 0x4000_0028,
        }
    }

    /// The first number that is not one of its calls.
    pub(super) fn end(self) -> Option<u32> {
        (self == Abi::X86_64).then_some(X32)
    }

    /// The number of a call, if there is one of that name.
    pub(super) fn number(self, name: &str) -> Option<u32> {
        use syscalls::{aarch64, arm, x86, x86_64};
        let number = match self {
            Abi::X86_64 => name.parse::<x86_64::Sysno>().ok()?.id(),
            Abi::X86 => name.parse::<x86::Sysno>().ok()?.id(),
            Abi::Aarch64 => name.parse::<aarch64::Sysno>().ok()?.id(),
            Abi::Arm => name.parse::<arm::Sysno>().ok()?.id(),
        };
        u32::try_from(number).ok()
    }
}
