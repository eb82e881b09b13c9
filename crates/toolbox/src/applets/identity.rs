//! `id`, `whoami`, `hostname`, `uname`: user, groups, host and kernel.

use std::fs;
use std::io::Write;

use super::users;
use crate::options::{Accepted, Options};
use crate::outcome::{Failure, Outcome};
use crate::sys;

/// A value of the kernel, such as `hostname` or `osrelease`.
fn kernel(name: &str) -> Result<String, Failure> {
    let file = format!("/proc/sys/kernel/{name}");
    match fs::read_to_string(&file) {
        Ok(text) => Ok(text.trim_end().to_owned()),
        Err(error) => Err(Failure::on(file, error)),
    }
}

pub(crate) fn id(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "ugn",
            ..Accepted::default()
        },
    )?;
    let (user, group) = (sys::effective_user(), sys::group());
    match (options.has('u'), options.has('g'), options.has('n')) {
        (true, _, false) => writeln!(output, "{user}")?,
        (true, _, true) => writeln!(output, "{}", users::user(user))?,
        (false, true, false) => writeln!(output, "{group}")?,
        (false, true, true) => writeln!(output, "{}", users::group(group))?,
        (false, false, _) => {
            let named = |number: u32, name: Option<String>| match name {
                Some(name) => format!("{number}({name})"),
                None => number.to_string(),
            };
            let mut line = format!(
                "uid={} gid={}",
                named(user, users::user_name(user)),
                named(group, users::group_name(group))
            );
            for (place, number) in supplementary_groups().into_iter().enumerate() {
                line.push_str(if place == 0 { " groups=" } else { "," });
                line.push_str(&named(number, users::group_name(number)));
            }
            writeln!(output, "{line}")?;
        }
    }
    Ok(0)
}

fn supplementary_groups() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    let numbers = line.unwrap_or_default().split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

pub(crate) fn whoami(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    no_operands(&Options::parse(args, Accepted::default())?)?;
    writeln!(output, "{}", users::user(sys::effective_user()))?;
    Ok(0)
}

pub(crate) fn hostname(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    no_operands(&Options::parse(args, Accepted::default())?)?;
    writeln!(output, "{}", kernel("hostname")?)?;
    Ok(0)
}

fn no_operands(options: &Options) -> Result<(), Failure> {
    if options.operands.is_empty() {
        return Ok(());
    }
    Err(Failure::usage("takes no arguments"))
}

pub(crate) fn uname(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "asnrvm",
            ..Accepted::default()
        },
    )?;
    no_operands(&options)?;
    let is_bare = !['a', 's', 'n', 'r', 'v', 'm']
        .into_iter()
        .any(|letter| options.has(letter));
    let mut parts = Vec::new();
    for (letter, name) in [
        ('s', "ostype"),
        ('n', "hostname"),
        ('r', "osrelease"),
        ('v', "version"),
    ] {
        if options.has(letter) || options.has('a') || letter == 's' && is_bare {
            parts.push(kernel(name)?);
        }
    }
    if options.has('m') || options.has('a') {
        parts.push(std::env::consts::ARCH.to_owned());
    }
    writeln!(output, "{}", parts.join(" "))?;
    Ok(0)
}
