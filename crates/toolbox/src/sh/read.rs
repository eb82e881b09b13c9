//! `read [-r] [-p TEXT] NAME…`: one line of standard input, byte by byte, so that what follows is
//! left to the commands that follow.

use super::builtins::is_variable;
use super::shell::{Shell, Step};
use crate::options::{Accepted, Options};
use crate::sys;

/// The longest line.
const MAX_LINE: usize = 1 << 20;

/// A byte of the line; one behind a backslash separates nothing.
type Byte = (u8, bool);

pub(super) fn run(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let accepted = Accepted {
        flags: "r",
        valued: "p",
        ..Accepted::default()
    };
    let options = match Options::parse(fields.get(1..).unwrap_or_default(), accepted) {
        Ok(options) => options,
        Err(failure) => return Err(shell.abort(format_args!("read: {}", failure.parts().1))),
    };
    for name in &options.operands {
        is_variable(shell, "read", name)?;
    }
    if let Some(prompt) = options.value('p') {
        // Without standard error there is no prompt.
        let _ = sys::write_all(2, prompt);
    }
    let mut line: Vec<Byte> = Vec::new();
    let mut is_escaped = false;
    let status = loop {
        let mut byte = [0];
        match sys::read(0, &mut byte) {
            Ok(0) => break 1,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                if sys::has_noted() {
                    return shell.end_of_waiting();
                }
                continue;
            }
            Err(error) => {
                shell.fail(2, format_args!("read: {error}"));
                return Ok(());
            }
        }
        let [byte] = byte;
        match byte {
            b'\n' if is_escaped => is_escaped = false,
            b'\n' => break 0,
            b'\\' if !is_escaped && !options.has('r') => is_escaped = true,
            0 => {}
            byte => {
                line.push((byte, is_escaped));
                is_escaped = false;
            }
        }
        if line.len() > MAX_LINE {
            shell.fail(
                2,
                format_args!("read: a line of more than {MAX_LINE} bytes"),
            );
            return Ok(());
        }
    };
    assign(shell, &options.operands, &line)?;
    shell.status = status;
    Ok(())
}

fn assign(shell: &mut Shell, names: &[Vec<u8>], line: &[Byte]) -> Step {
    let ifs = shell.variables.get(b"IFS").unwrap_or(b" \t\n").to_vec();
    let is_blank =
        |(byte, is_escaped): &Byte| !is_escaped && byte.is_ascii_whitespace() && ifs.contains(byte);
    let is_separator = |(byte, is_escaped): &Byte| !is_escaped && ifs.contains(byte);
    let default = [b"REPLY".to_vec()];
    let names = if names.is_empty() { &default } else { names };
    let mut rest = line;
    while rest.first().is_some_and(is_blank) {
        rest = rest.get(1..).unwrap_or_default();
    }
    for (place, name) in names.iter().enumerate() {
        let value;
        if place + 1 == names.len() {
            while rest.last().is_some_and(is_blank) {
                rest = rest.get(..rest.len() - 1).unwrap_or_default();
            }
            // A single separator at the end belongs to the last field.
            if let Some((last, head)) = rest.split_last()
                && is_separator(last)
                && !head.iter().any(is_separator)
            {
                rest = head;
            }
            value = rest;
        } else {
            let end = rest.iter().position(is_separator).unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            value = field;
            rest = after;
            while rest.first().is_some_and(is_blank) {
                rest = rest.get(1..).unwrap_or_default();
            }
            if rest
                .first()
                .is_some_and(|byte| is_separator(byte) && !is_blank(byte))
            {
                rest = rest.get(1..).unwrap_or_default();
                while rest.first().is_some_and(is_blank) {
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        }
        let value = value.iter().map(|(byte, _)| *byte).collect();
        shell
            .set_variable(name, value)
            .map_err(|e| shell.abort(e))?;
    }
    Ok(())
}
