//! The alternate screen of a terminal: what is drawn there leaves nothing behind.

use anyhow::Result;

use super::stdout::write;

/// Switches to the alternate screen, hides the cursor, and has long lines cut and not continued.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// The reverse.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The alternate screen, until it is dropped.
#[derive(Debug)]
pub(crate) struct AlternateScreen(());

impl AlternateScreen {
    pub(crate) fn enter() -> Result<AlternateScreen> {
        write(ENTER)?;
        Ok(AlternateScreen(()))
    }

    /// Draws over what was drawn before; returns whether anything still reads.
    #[expect(
        clippy::unused_self,
        reason = "only the alternate screen may be drawn over"
    )]
    pub(crate) fn draw(&self, lines: &[String]) -> Result<bool> {
        write(&frame(lines))
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        // A terminal that is gone needs no care.
        let _ = write(LEAVE);
    }
}

/// Lines are cleared one by one, so that nothing flickers. No line feed follows the last one: on the
/// lowest line of the screen it would scroll.
fn frame(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K")).collect();
    format!("\x1b[H{}\x1b[J", lines.join("\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_fills_the_screen_does_not_scroll_it() {
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(frame(&lines), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
    }
}
