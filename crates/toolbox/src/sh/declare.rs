//! Builtins about variables, settings and traps.

use super::builtins::is_variable;
use super::shell::{Flow, Settings, Shell, Step};
use super::traps::EXIT;
use crate::outcome::shown;
use crate::signals;

/// Letters of `set`, their long names, and where they are kept.
type Setting = (u8, &'static str, fn(&mut Settings) -> &mut bool);

const SETTINGS: [Setting; 8] = [
    (b'a', "allexport", |settings| &mut settings.allexport),
    (b'C', "noclobber", |settings| &mut settings.noclobber),
    (b'e', "errexit", |settings| &mut settings.errexit),
    (b'f', "noglob", |settings| &mut settings.noglob),
    (b'n', "noexec", |settings| &mut settings.noexec),
    (b'u', "nounset", |settings| &mut settings.nounset),
    (b'x', "xtrace", |settings| &mut settings.xtrace),
    // Without a letter.
    (0, "pipefail", |settings| &mut settings.pipefail),
];

impl Shell {
    /// `$-`
    pub(super) fn settings_text(&self) -> Vec<u8> {
        let mut settings = self.settings;
        let set = SETTINGS
            .iter()
            .filter(|(letter, _, place)| *letter != 0 && *place(&mut settings));
        let letters = set.map(|(letter, _, _)| *letter);
        letters.chain(self.is_interactive.then_some(b'i')).collect()
    }

    /// Reads options of `set` and of the shell itself from the front; returns how many words they
    /// are. `other` takes the letters that only one of them knows.
    pub(super) fn read_settings(
        &mut self,
        words: &[Vec<u8>],
        mut other: impl FnMut(u8) -> bool,
    ) -> Result<usize, String> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let value = match word.first() {
                Some(b'-') if word.len() > 1 => true,
                Some(b'+') if word.len() > 1 => false,
                _ => break,
            };
            if word == b"--" {
                break;
            }
            at += 1;
            for letter in word.iter().skip(1).copied() {
                if letter == b'o' {
                    let name = words.get(at).ok_or("-o needs the name of an option")?;
                    at += 1;
                    self.set_named(name, value)?;
                } else if let Some((_, _, place)) =
                    SETTINGS.iter().find(|(known, _, _)| *known == letter)
                {
                    *place(&mut self.settings) = value;
                } else if !other(letter) {
                    return Err(format!("unknown option -{}", char::from(letter)));
                }
            }
        }
        Ok(at)
    }

    fn set_named(&mut self, name: &[u8], value: bool) -> Result<(), String> {
        let setting = SETTINGS
            .iter()
            .find(|(_, known, _)| known.as_bytes() == name);
        let (_, _, place) = setting.ok_or_else(|| format!("unknown option -o {}", shown(name)))?;
        *place(&mut self.settings) = value;
        Ok(())
    }
}

pub(super) fn set(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let words = fields.get(1..).unwrap_or_default();
    if words.is_empty() {
        let mut text = Vec::new();
        for (name, variable) in shell.variables.iter() {
            if let Some(value) = &variable.value {
                text.extend([name, b"=", &single_quoted(value), b"\n"].concat());
            }
        }
        shell.print("set", &text);
        return Ok(());
    }
    let count = shell
        .read_settings(words, |_| false)
        .map_err(|message| shell.abort(format_args!("set: {message}")))?;
    let rest = words.get(count..).unwrap_or_default();
    match rest.split_first() {
        Some((first, arguments)) if first == b"--" || first == b"-" => {
            shell.arguments = arguments.to_vec();
        }
        Some(_) => shell.arguments = rest.to_vec(),
        None => {}
    }
    Ok(())
}

/// In single quotes, as the shell reads it back.
pub(super) fn single_quoted(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// `name` or `name=value`.
fn halves(field: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut halves = field.splitn(2, |byte| *byte == b'=');
    (halves.next().unwrap_or_default(), halves.next())
}

fn declare(shell: &mut Shell, fields: &[Vec<u8>], is_readonly: bool) -> Step {
    let command = if is_readonly { "readonly" } else { "export" };
    let words = fields.get(1..).unwrap_or_default();
    let prints = words.is_empty() || words.first().is_some_and(|word| word == b"-p");
    if prints {
        let mut text = Vec::new();
        for (name, variable) in shell.variables.iter() {
            let is_shown = if is_readonly {
                variable.is_readonly
            } else {
                variable.is_exported
            };
            if is_shown {
                text.extend([command.as_bytes(), b" ", name].concat());
                if let Some(value) = &variable.value {
                    text.extend([b"=".as_slice(), &single_quoted(value)].concat());
                }
                text.push(b'\n');
            }
        }
        shell.print(command, &text);
        return Ok(());
    }
    for field in words.iter().filter(|word| *word != b"--") {
        let (name, value) = halves(field);
        is_variable(shell, command, name)?;
        if let Some(value) = value {
            shell
                .set_variable(name, value.to_vec())
                .map_err(|e| shell.abort(e))?;
        }
        shell.variables.mark(name, |variable| {
            variable.is_readonly |= is_readonly;
            variable.is_exported |= !is_readonly;
        });
    }
    Ok(())
}

pub(super) fn export(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    declare(shell, fields, false)
}

pub(super) fn readonly(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    declare(shell, fields, true)
}

pub(super) fn local(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    for field in fields.iter().skip(1) {
        let (name, value) = halves(field);
        is_variable(shell, "local", name)?;
        let before = shell.variables.variable(name).cloned();
        let Some(locals) = shell.locals.last_mut() else {
            return Err(shell.abort("local: only in a function"));
        };
        if locals.iter().all(|(known, _)| known != name) {
            locals.push((name.to_vec(), before));
        }
        if let Some(value) = value {
            shell
                .set_variable(name, value.to_vec())
                .map_err(|e| shell.abort(e))?;
        }
    }
    Ok(())
}

pub(super) fn unset(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let mut is_function = false;
    for field in fields.iter().skip(1) {
        match field.as_slice() {
            b"-f" => is_function = true,
            b"-v" => is_function = false,
            name if is_function => {
                shell.functions.remove(name);
            }
            name => {
                is_variable(shell, "unset", name)?;
                shell.variables.unset(name).map_err(|e| shell.abort(e))?;
            }
        }
    }
    Ok(())
}

pub(super) fn trap(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let mut words = fields.get(1..).unwrap_or_default();
    if words.first().is_some_and(|word| word == b"--") {
        words = words.get(1..).unwrap_or_default();
    }
    let Some((action, names)) = words.split_first() else {
        let mut text = Vec::new();
        for (signal, action) in shell.traps.iter() {
            let number = signal.to_string();
            let name = if signal == EXIT {
                "EXIT"
            } else {
                signals::name(signal).unwrap_or(&number)
            };
            text.extend(
                [
                    b"trap -- ",
                    single_quoted(action).as_slice(),
                    b" ",
                    name.as_bytes(),
                    b"\n",
                ]
                .concat(),
            );
        }
        shell.print("trap", &text);
        return Ok(());
    };
    // A lone number, or a lone name, takes the trap away.
    let is_reset = action == b"-"
        || names.is_empty()
        || action.iter().all(u8::is_ascii_digit) && !action.is_empty();
    let names = if action == b"-" || !is_reset {
        names
    } else {
        words
    };
    for name in names {
        let signal = if name == b"EXIT" {
            Some(EXIT)
        } else {
            signals::number(name)
        };
        let Some(signal) = signal else {
            shell.fail(1, format_args!("trap: {}: not a signal", shown(name)));
            continue;
        };
        let action = (!is_reset).then(|| action.clone());
        if let Err(message) = shell.set_trap(signal, action) {
            shell.fail(1, format_args!("trap: {message}"));
        }
    }
    Ok(())
}

/// `getopts LETTERS NAME [ARGUMENTS]`, with the place inside of a cluster kept in the shell.
pub(super) fn getopts(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let [_, letters, name, rest @ ..] = fields else {
        return Err(shell.abort("getopts: name the letters and a variable"));
    };
    is_variable(shell, "getopts", name)?;
    let arguments = if rest.is_empty() {
        shell.arguments.clone()
    } else {
        rest.to_vec()
    };
    let index = shell
        .variables
        .get(b"OPTIND")
        .and_then(crate::numbers::number);
    let mut index = index
        .and_then(|n| usize::try_from(n).ok())
        .unwrap_or(1)
        .max(1);
    if shell.option_place.0 != index {
        shell.option_place = (index, 1);
    }
    let word = arguments
        .get(index - 1)
        .filter(|word| word.len() > 1 && word.starts_with(b"-"));
    let Some(word) = word.filter(|word| *word != b"--") else {
        if arguments.get(index - 1).is_some_and(|word| word == b"--") {
            index += 1;
        }
        assign(shell, name, b"?")?;
        assign(shell, b"OPTIND", index.to_string().as_bytes())?;
        shell.status = 1;
        return Ok(());
    };
    let place = shell.option_place.1;
    let letter = word.get(place).copied().unwrap_or(b'?');
    let mut is_word_done = place + 1 >= word.len();
    let known = letters
        .iter()
        .position(|known| *known == letter && letter != b':');
    let is_quiet = letters.starts_with(b":");
    let mut found = letter;
    let mut value = None;
    match known {
        Some(known) if letters.get(known + 1) == Some(&b':') => {
            if is_word_done {
                index += 1;
                value = arguments.get(index - 1).cloned();
            } else {
                value = word.get(place + 1..).map(<[u8]>::to_vec);
                is_word_done = true;
            }
            if value.is_none() {
                found = if is_quiet { b':' } else { b'?' };
                index -= 1;
            }
        }
        Some(_) => {}
        None => found = b'?',
    }
    let is_wrong = found != letter || known.is_none();
    if is_wrong && is_quiet {
        value = Some(vec![letter]);
    } else if is_wrong {
        let what = if known.is_some() {
            "needs a value"
        } else {
            "is unknown"
        };
        shell.report(format_args!(
            "getopts: option -{} {what}",
            char::from(letter)
        ));
    }
    shell.option_place = if is_word_done {
        (index + 1, 1)
    } else {
        (index, place + 1)
    };
    let next = shell.option_place.0;
    assign(shell, b"OPTIND", next.to_string().as_bytes())?;
    match value {
        Some(value) => assign(shell, b"OPTARG", &value)?,
        None => shell
            .variables
            .unset(b"OPTARG")
            .map_err(|e| shell.abort(e))?,
    }
    assign(shell, name, &[found])
}

fn assign(shell: &mut Shell, name: &[u8], value: &[u8]) -> Result<(), Flow> {
    shell
        .set_variable(name, value.to_vec())
        .map_err(|e| shell.abort(e))
}
