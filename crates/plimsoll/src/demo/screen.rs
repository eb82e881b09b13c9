//! Output of the demo: text in 80 columns, and one part that is redrawn in place.

use std::fmt;

use anyhow::Result;
use plimsoll_report::text::{Palette, Table, Terminal, wrap};

use crate::print;

/// Wider text is harder to read.
const WIDEST: usize = 80;
const INDENT: &str = "   ";

/// Standard output is closed, so that the demo can end.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

/// Standard output.
#[derive(Debug)]
pub(super) struct Screen {
    /// Number of lines of the part that is redrawn; 0 if there is none.
    drawn: usize,
}

impl Screen {
    pub(super) fn stdout() -> Screen {
        Screen { drawn: 0 }
    }

    /// The terminal with its current size, which users may change.
    pub(super) fn terminal() -> Terminal {
        let terminal = print::terminal();
        Terminal {
            width: terminal.width.min(WIDEST),
            ..terminal
        }
    }

    /// The heading of a step, after an empty line.
    pub(super) fn heading(&mut self, text: &str) -> Result<()> {
        let palette = Palette(Screen::terminal().colour);
        self.write(&format!("\n{}\n", palette.heading(text)))
    }

    /// A paragraph below a heading.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        let width = Screen::terminal()
            .width
            .saturating_sub(INDENT.len())
            .max(20);
        let lines = wrap(text, width).into_iter();
        let lines: Vec<String> = lines.map(|line| format!("{INDENT}{line}\n")).collect();
        self.write(&lines.concat())
    }

    pub(super) fn table(&mut self, table: &Table) -> Result<()> {
        let palette = Palette(Screen::terminal().colour);
        let mut lines = table.lines();
        if let Some(heading) = lines.first_mut() {
            *heading = palette.faint(heading);
        }
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("{INDENT}{line}\n"))
            .collect();
        self.write(&lines.concat())
    }

    /// Writes text unchanged.
    pub(super) fn write(&mut self, text: &str) -> Result<()> {
        self.drawn = 0;
        put(text)
    }

    /// Replaces the lines drawn before on a terminal; appends elsewhere.
    pub(super) fn draw(&mut self, lines: &[String]) -> Result<()> {
        let text = match Screen::terminal().is_interactive {
            true => over(self.drawn, lines),
            false => format!("\n{}\n", lines.join("\n")),
        };
        self.drawn = lines.len();
        put(&text)
    }
}

fn put(text: &str) -> Result<()> {
    match print::write(text)? {
        true => Ok(()),
        false => Err(ReaderGone.into()),
    }
}

/// Lines are cleared one by one, so that nothing flickers.
fn over(drawn: usize, lines: &[String]) -> String {
    let begin = match drawn {
        0 => "\n".to_owned(),
        drawn => format!("\x1b[{drawn}A"),
    };
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K\n")).collect();
    format!("{begin}{}\x1b[J", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redraws_as_many_lines_as_were_drawn() {
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(over(0, &lines), "\na\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(over(2, &lines[..1]), "\x1b[2Aa\x1b[K\n\x1b[J");
    }
}
