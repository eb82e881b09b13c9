//! `chmod`: octal modes and clauses such as `u+x,go-w`.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};

pub(crate) fn run(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    // A mode such as `-x` looks like an option.
    let recursion = args.iter().filter(|arg| *arg == b"-R").count();
    let words: Vec<&Vec<u8>> = args.iter().filter(|arg| *arg != b"-R").collect();
    let Some((mode, names)) = words.split_first().filter(|(_, names)| !names.is_empty()) else {
        return Err(Failure::usage("give a mode and at least one file"));
    };
    // Checked once, so that a wrong mode changes nothing.
    let text = std::str::from_utf8(mode).unwrap_or_default();
    change(text, 0, false)
        .ok_or_else(|| Failure::usage(format!("{}: not a mode such as 755 or u+x", shown(mode))))?;
    let names: Vec<Vec<u8>> = names.iter().map(|name| (*name).clone()).collect();
    let files = Options::parse(&names, Accepted::default())?;
    let mut status = 0;
    let mut left: Vec<PathBuf> = files
        .operands
        .iter()
        .map(|name| path(name).to_owned())
        .collect();
    while let Some(file) = left.pop() {
        let result = fs::metadata(&file).and_then(|found| {
            let before = found.permissions().mode() & 0o7777;
            let mode = change(text, before, found.is_dir()).unwrap_or(before);
            fs::set_permissions(&file, Permissions::from_mode(mode))?;
            if recursion > 0 && found.is_dir() {
                for entry in fs::read_dir(&file)? {
                    let entry = entry?;
                    if !entry.file_type()?.is_symlink() {
                        left.push(entry.path());
                    }
                }
            }
            Ok(())
        });
        if let Err(error) = result {
            warn("chmod", format_args!("{}: {error}", file.display()));
            status = 1;
        }
    }
    Ok(status)
}

/// The mode after a change; None if the text is no mode.
fn change(text: &str, before: u32, is_directory: bool) -> Option<u32> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return u32::from_str_radix(text, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777);
    }
    let mut mode = before;
    for clause in text.split(',') {
        let operators = ['+', '-', '='];
        let place = clause.find(operators)?;
        let (classes, actions) = clause.split_at(place);
        let mut mask = 0;
        for class in classes.chars() {
            mask |= match class {
                'u' => 0o4700,
                'g' => 0o2070,
                'o' => 0o1007,
                'a' => 0o7777,
                _ => return None,
            };
        }
        if mask == 0 {
            mask = 0o7777;
        }
        let (operator, letters) = actions.split_at(1);
        let mut bits = 0;
        for letter in letters.chars() {
            bits |= match letter {
                'r' => 0o444,
                'w' => 0o222,
                'x' => 0o111,
                'X' if is_directory || mode & 0o111 != 0 => 0o111,
                'X' => 0,
                's' => 0o6000,
                't' => 0o1000,
                _ => return None,
            };
        }
        // The sticky bit belongs to the file, not to one class.
        let bits = bits & (mask | 0o1000);
        mode = match operator {
            "+" => mode | bits,
            "-" => mode & !bits,
            _ => mode & !(mask & 0o777) | bits,
        };
    }
    Some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_or_clauses() {
        for (text, before, expected) in [
            ("755", 0, Some(0o755)),
            ("1777", 0, Some(0o1777)),
            ("+x", 0o644, Some(0o755)),
            ("u+x,go-r", 0o644, Some(0o700)),
            ("a=r", 0o777, Some(0o444)),
            ("u+s", 0o755, Some(0o4755)),
            ("+t", 0o777, Some(0o1777)),
            ("go=", 0o777, Some(0o700)),
            ("u+X", 0o644, Some(0o644)),
            ("89", 0, None),
            ("77777", 0, None),
            ("u*x", 0, None),
            ("", 0, None),
        ] {
            assert_eq!(change(text, before, false), expected, "{text}");
        }
    }
}
