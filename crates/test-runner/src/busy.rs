//! Full load on all cores beside the tests, to find those that need a quiet machine.

use crate::table::cores;

/// Computes nothing, on every core, until this process ends.
pub(crate) fn start() {
    for _ in 0..cores() {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
}
