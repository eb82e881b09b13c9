//! Commands that the shell executes itself: those that change it, and those that would be slow as
//! programs.

use std::os::unix::ffi::OsStringExt;

use super::declare;
use super::lexer::is_name;
use super::shell::{Flow, Shell, Step};
use crate::applets;
use crate::options::{bytes, path};
use crate::outcome::{Outcome, shown};
use crate::sys;

#[derive(Debug, Clone, Copy)]
pub(super) struct Builtin {
    pub(super) name: &'static str,
    /// As POSIX has it: goes before functions, keeps assignments, and its errors end a script.
    pub(super) is_special: bool,
    pub(super) run: fn(&mut Shell, &[Vec<u8>]) -> Step,
}

const fn special(name: &'static str, run: fn(&mut Shell, &[Vec<u8>]) -> Step) -> Builtin {
    Builtin {
        name,
        is_special: true,
        run,
    }
}

const fn regular(name: &'static str, run: fn(&mut Shell, &[Vec<u8>]) -> Step) -> Builtin {
    Builtin {
        name,
        is_special: false,
        run,
    }
}

const BUILTINS: [Builtin; 31] = [
    special(".", source),
    special(":", nothing),
    special("break", |shell, fields| {
        leave_loop(shell, fields, Flow::Break)
    }),
    special("continue", |shell, fields| {
        leave_loop(shell, fields, Flow::Continue)
    }),
    special("eval", eval),
    special("exec", nothing),
    special("exit", exit),
    special("export", declare::export),
    special("readonly", declare::readonly),
    special("return", return_),
    special("set", declare::set),
    special("shift", shift),
    special("trap", declare::trap),
    special("unset", declare::unset),
    regular("[", |shell, fields| {
        applet(shell, fields, applets::test::run_bracket)
    }),
    regular("cd", cd),
    regular("command", command),
    regular("echo", |shell, fields| {
        applet(shell, fields, applets::echo::run)
    }),
    regular("false", |shell, _| with_status(shell, 1)),
    regular("getopts", declare::getopts),
    regular("jobs", jobs),
    regular("kill", |shell, fields| {
        applet(shell, fields, applets::kill::run)
    }),
    regular("local", declare::local),
    regular("printf", |shell, fields| {
        applet(shell, fields, applets::printf::run)
    }),
    regular("pwd", pwd),
    regular("read", super::read::run),
    regular("test", |shell, fields| {
        applet(shell, fields, applets::test::run)
    }),
    regular("true", nothing),
    regular("type", type_),
    regular("umask", umask),
    regular("wait", wait),
];

pub(super) fn find(name: &[u8]) -> Option<&'static Builtin> {
    BUILTINS
        .iter()
        .find(|builtin| builtin.name.as_bytes() == name)
}

/// Executes an applet in this process, with its output written at once.
fn applet(
    shell: &mut Shell,
    fields: &[Vec<u8>],
    run: fn(&[Vec<u8>], &mut dyn std::io::Write) -> Outcome,
) -> Step {
    let name = fields
        .first()
        .map(|name| shown(name).into_owned())
        .unwrap_or_default();
    let mut output = Vec::new();
    let outcome = run(fields.get(1..).unwrap_or_default(), &mut output);
    shell.print(&name, &output);
    match outcome {
        Ok(status) if shell.status == 0 => shell.status = status.into(),
        Ok(_) => {}
        Err(failure) => {
            let (status, message) = failure.parts();
            shell.fail(status.into(), format_args!("{name}: {message}"));
        }
    }
    Ok(())
}

fn nothing(_: &mut Shell, _: &[Vec<u8>]) -> Step {
    Ok(())
}

fn with_status(shell: &mut Shell, status: i32) -> Step {
    shell.status = status;
    Ok(())
}

/// The number that a builtin was given, or a default.
fn count(shell: &mut Shell, fields: &[Vec<u8>], default: i64) -> Result<i64, Flow> {
    let Some(text) = fields.get(1) else {
        return Ok(default);
    };
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        let name = fields.first().map(|name| shown(name)).unwrap_or_default();
        shell.abort(format_args!("{name}: {}: not a number", shown(text)))
    })
}

fn leave_loop(shell: &mut Shell, fields: &[Vec<u8>], flow: fn(usize) -> Flow) -> Step {
    let count = count(shell, fields, 1)?;
    let count = usize::try_from(count).unwrap_or(0).min(shell.loops);
    if count == 0 {
        return Ok(());
    }
    Err(flow(count))
}

/// The status that `exit` and `return` were given; without, `before`.
fn status(shell: &mut Shell, fields: &[Vec<u8>], before: i32) -> Result<i32, Flow> {
    let number = count(shell, fields, before.into())?;
    Ok(i32::try_from(number & 0xff).unwrap_or(255))
}

fn exit(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    shell.status = status(shell, fields, shell.status_before)?;
    Err(Flow::Exit)
}

fn return_(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    shell.status = status(shell, fields, shell.status_before)?;
    if shell.returnable == 0 {
        return Err(Flow::Exit);
    }
    Err(Flow::Return)
}

fn eval(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let text = fields.get(1..).unwrap_or_default().join(&b' ');
    shell.status = shell.status_before;
    shell.run_text(&text)
}

fn source(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let Some(name) = fields.get(1) else {
        return Err(shell.abort(".: name the file to read"));
    };
    let file = if name.contains(&b'/') {
        name.clone()
    } else {
        let directories = shell.variables.get(b"PATH").unwrap_or_default().to_vec();
        let files = directories
            .split(|byte| *byte == b':')
            .map(|directory| [directory, b"/", name].concat());
        let found = files.into_iter().find(|file| path(file).is_file());
        found.unwrap_or_else(|| name.clone())
    };
    let text = super::read_script(path(&file))
        .map_err(|error| shell.abort(format_args!(".: {}: {error}", shown(&file))))?;
    shell.returnable += 1;
    shell.status = shell.status_before;
    let result = shell.run_text(&text);
    shell.returnable -= 1;
    match result {
        Err(Flow::Return) => Ok(()),
        result => result,
    }
}

fn shift(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let count = count(shell, fields, 1)?;
    match usize::try_from(count) {
        Ok(count) if count <= shell.arguments.len() => {
            shell.arguments.drain(..count);
            Ok(())
        }
        _ => Err(shell.abort(format_args!(
            "shift: {count}: there are not that many arguments"
        ))),
    }
}

fn cd(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let operands = fields
        .iter()
        .skip(1)
        .filter(|field| *field != b"-P" && *field != b"-L" && *field != b"--");
    let operands: Vec<&Vec<u8>> = operands.collect();
    let (target, prints) = match operands.as_slice() {
        [] => (shell.variables.get(b"HOME").map(<[u8]>::to_vec), false),
        [dash] if dash.as_slice() == b"-" => {
            (shell.variables.get(b"OLDPWD").map(<[u8]>::to_vec), true)
        }
        [target] => (Some((*target).clone()), false),
        _ => {
            shell.fail(2, "cd: name one directory");
            return Ok(());
        }
    };
    let Some(target) = target else {
        let missing = if prints { "OLDPWD" } else { "HOME" };
        shell.fail(2, format_args!("cd: {missing} is not set"));
        return Ok(());
    };
    let before = working_directory(shell);
    let wanted = logical(&before, &target);
    // A name such as `link/..` may exist only as the kernel reads it.
    let result = std::env::set_current_dir(path(&wanted))
        .or_else(|_| std::env::set_current_dir(path(&target)));
    if let Err(error) = result {
        shell.fail(2, format_args!("cd: {}: {error}", shown(&target)));
        return Ok(());
    }
    if prints {
        shell.print("cd", &[wanted.as_slice(), b"\n"].concat());
    }
    let set = shell.set_variable(b"OLDPWD", before);
    if let Err(message) = set.and_then(|()| shell.set_variable(b"PWD", wanted)) {
        shell.fail(1, format_args!("cd: {message}"));
    }
    Ok(())
}

/// PWD if it still names the working directory, else the kernel's name for it.
pub(super) fn working_directory(shell: &Shell) -> Vec<u8> {
    use std::os::unix::fs::MetadataExt;
    let place = |name: &[u8]| {
        std::fs::metadata(path(name))
            .ok()
            .map(|m| (m.dev(), m.ino()))
    };
    if let Some(known) = shell.variables.get(b"PWD")
        && known.starts_with(b"/")
        && place(known).is_some()
        && place(known) == place(b".")
    {
        return known.to_vec();
    }
    std::env::current_dir()
        .map(|found| found.into_os_string().into_vec())
        .unwrap_or_default()
}

/// The absolute name, with `.` and `..` worked out by name, as `cd` does.
fn logical(base: &[u8], target: &[u8]) -> Vec<u8> {
    let whole = if target.starts_with(b"/") {
        target.to_vec()
    } else {
        [base, b"/", target].concat()
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in whole.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    [b"/".as_slice(), &parts.join(&b'/')].concat()
}

fn pwd(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let directory = if fields.get(1).is_some_and(|option| option == b"-P") {
        std::env::current_dir()
            .map(|found| bytes(&found).to_vec())
            .unwrap_or_default()
    } else {
        working_directory(shell)
    };
    if directory.is_empty() {
        shell.fail(1, "pwd: the working directory has been removed");
        return Ok(());
    }
    shell.print("pwd", &[directory.as_slice(), b"\n"].concat());
    Ok(())
}

fn command(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let mut words = fields.get(1..).unwrap_or_default();
    let mut describes = None;
    while let Some(option) = words.first() {
        match option.as_slice() {
            b"-v" => describes = Some(false),
            b"-V" => describes = Some(true),
            b"-p" | b"--" => {}
            _ => break,
        }
        words = words.get(1..).unwrap_or_default();
    }
    if let Some(is_verbose) = describes {
        return describe_all(shell, words, is_verbose);
    }
    let Some(name) = words.first() else {
        return Ok(());
    };
    if name == b"exec" {
        return match words.get(1..) {
            Some([]) | None => Ok(()),
            Some(words) => shell.replace(words, Vec::new()),
        };
    }
    if let Some(builtin) = find(name) {
        return (builtin.run)(shell, words);
    }
    let child = shell.fork(|shell| shell.replace(words, Vec::new()))?;
    shell.status = shell.wait_for(child);
    shell.interrupted()
}

fn type_(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    describe_all(shell, fields.get(1..).unwrap_or_default(), true)
}

fn describe_all(shell: &mut Shell, names: &[Vec<u8>], is_verbose: bool) -> Step {
    for name in names {
        let (what, plain) = if shell.functions.contains_key(name) {
            ("a shell function".to_owned(), name.clone())
        } else if find(name).is_some() {
            ("a shell builtin".to_owned(), name.clone())
        } else if let Some(file) = shell.find_program(name).filter(|file| path(file).is_file()) {
            (shown(&file).into_owned(), file)
        } else {
            if is_verbose {
                shell.report(format_args!("{}: not found", shown(name)));
            }
            shell.status = 127;
            continue;
        };
        let line = if is_verbose {
            format!("{} is {what}\n", shown(name)).into_bytes()
        } else {
            [plain.as_slice(), b"\n"].concat()
        };
        shell.print("command", &line);
    }
    Ok(())
}

fn umask(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    let Some(text) = fields.get(1) else {
        let mask = sys::set_umask(0);
        sys::set_umask(mask);
        shell.print("umask", format!("{mask:04o}\n").as_bytes());
        return Ok(());
    };
    let mask = std::str::from_utf8(text)
        .ok()
        .and_then(|text| u32::from_str_radix(text, 8).ok());
    match mask.filter(|mask| *mask <= 0o777) {
        Some(mask) => {
            sys::set_umask(mask);
        }
        None => shell.fail(
            2,
            format_args!("umask: {}: not an octal number up to 777", shown(text)),
        ),
    }
    Ok(())
}

fn wait(shell: &mut Shell, fields: &[Vec<u8>]) -> Step {
    if fields.len() < 2 {
        return shell.wait_for_jobs(None);
    }
    for text in fields.iter().skip(1) {
        let process = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        let Some(process) = process else {
            shell.fail(2, format_args!("wait: {}: not a process id", shown(text)));
            return Ok(());
        };
        shell.wait_for_jobs(Some(process))?;
    }
    Ok(())
}

fn jobs(shell: &mut Shell, _: &[Vec<u8>]) -> Step {
    shell.reap();
    let mut text = String::new();
    for (process, status) in &shell.jobs {
        match status {
            None => text.push_str(&format!("{process} running\n")),
            Some(ended) => text.push_str(&format!("{process} ended with {}\n", ended.status)),
        }
    }
    shell.print("jobs", text.as_bytes());
    Ok(())
}

pub(super) fn is_variable(shell: &mut Shell, command: &str, name: &[u8]) -> Result<(), Flow> {
    if is_name(name) {
        return Ok(());
    }
    Err(shell.abort(format_args!(
        "{command}: {}: not a name of a variable",
        shown(name)
    )))
}
