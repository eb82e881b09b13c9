//! Live streams: commands in containers ([`command`]), and joining their first process
//! ([`attach`]).

mod attach;
mod command;

use super::job::Resize;
use crate::TerminalSize;

/// How much of a stream is buffered at most.
const BUFFER: usize = 64 * 1024;

fn resize(size: TerminalSize) -> Resize {
    Resize {
        width: size.width,
        height: size.height,
    }
}
