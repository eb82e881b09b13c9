//! Machines whose kernel stands still.
//!
//! Once in some hundreds of machines both cpus were seen waiting inside the kernel without end,
//! moments after boot: QEMU's software emulation with a thread for each cpu is not free of such
//! races. The kernel detects that. It is set to panic then, with the stacks of all cpus on the
//! console, and the machine is booted again from a new disk. A program cannot bring a healthy
//! kernel there, so that no fault of a test is hidden by this; a kernel that locks up every time is
//! reported.

use std::io::Write;

use super::Outcome;

/// Makes a kernel that is locked up report it and end. A cpu is given twice the threshold, as it
/// may wait for one of the host's.
pub(super) const PARAMETERS: &str =
    "softlockup_panic=1 softlockup_all_cpu_backtrace=1 watchdog_thresh=30";

/// How often a machine is booted at most.
const BOOTS: usize = 3;

/// The message of the panic that [`PARAMETERS`] causes.
const PANIC: &str = "Kernel panic - not syncing: softlockup";

/// Boots until the kernel does not stand still.
pub(super) fn boot_until_alive(
    console: &mut dyn Write,
    mut boot: impl FnMut(&mut dyn Write) -> Outcome,
) -> Outcome {
    for boots in 1.. {
        let outcome = boot(console);
        if outcome.status.is_some() || !outcome.console.contains(PANIC) || boots == BOOTS {
            return outcome;
        }
        // A caller that does not read the console still gets the outcome.
        let _ = writeln!(
            console,
            "the machine's kernel stood still; it is booted again"
        );
    }
    unreachable!("the last boot returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Option<i32>, console: &str) -> Outcome {
        Outcome {
            status,
            console: console.to_owned(),
        }
    }

    /// The outcome, and how often the machine was booted.
    fn boots(outcomes: &[Outcome]) -> (Outcome, usize) {
        let mut boots = 0;
        let outcome = boot_until_alive(&mut std::io::sink(), |_| {
            boots += 1;
            outcomes[boots - 1].clone()
        });
        (outcome, boots)
    }

    #[test]
    fn only_a_locked_up_kernel_is_rebooted() {
        let still = ended(None, "Kernel panic - not syncing: softlockup: hung tasks");
        let fine = ended(Some(0), "all is well");
        assert_eq!(boots(&[still.clone(), fine.clone()]), (fine.clone(), 2));
        assert_eq!(boots(std::slice::from_ref(&fine)), (fine, 1));

        let failed = ended(Some(1), "");
        assert_eq!(boots(std::slice::from_ref(&failed)), (failed, 1));
        let panicked = ended(None, "Kernel panic - not syncing: sysrq triggered crash");
        assert_eq!(boots(std::slice::from_ref(&panicked)), (panicked, 1));

        let always = [still.clone(), still.clone(), still.clone()];
        assert_eq!(boots(&always), (still, 3));
    }
}
