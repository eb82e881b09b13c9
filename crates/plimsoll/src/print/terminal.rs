//! The terminal of standard output.

use std::io::IsTerminal;

use plimsoll_report::text::Terminal;

use super::colour::stdout_colour;

/// The terminal of standard output.
pub(crate) fn terminal() -> Terminal {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    Terminal {
        width: extent(&variable("COLUMNS"), size.map(|size| size.ws_col), 80),
        height: extent(&variable("LINES"), size.map(|size| size.ws_row), 24),
        is_unicode: is_unicode(&locale),
        is_interactive: std::io::stdout().is_terminal(),
        colour: stdout_colour(),
    }
}

/// The extent in the variable, else of the terminal, else the usual one.
fn extent(variable: &str, measured: Option<u16>, usual: usize) -> usize {
    let measured = measured.filter(|extent| *extent > 0).map(usize::from);
    let stated = variable.parse().ok().filter(|extent| *extent > 0);
    stated.or(measured).unwrap_or(usual)
}

/// By the first variable that is set, as the C library does it.
fn is_unicode(locale: &[String]) -> bool {
    let mut set = locale.iter().filter(|value| !value.is_empty());
    let first = set.next().map(|value| value.to_ascii_lowercase());
    first.is_some_and(|value| value.contains("utf-8") || value.contains("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_stated_or_measured() {
        assert_eq!(extent("140", Some(100), 80), 140);
        assert_eq!(extent("", Some(100), 80), 100);
        assert_eq!(extent("x", Some(0), 80), 80);
        assert_eq!(extent("0", None, 24), 24);
    }

    #[test]
    fn the_first_locale_variable_counts() {
        let of = |values: [&str; 3]| is_unicode(&values.map(str::to_owned));
        assert!(of(["", "", "en_GB.UTF-8"]));
        assert!(of(["C.utf8", "", "C"]));
        assert!(!of(["C", "", "en_GB.UTF-8"]));
        assert!(!of(["", "", ""]));
    }
}
