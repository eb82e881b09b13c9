//! Small applets about names and places: `basename dirname readlink pwd mkdir touch env`.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::SystemTime;

use crate::options::{Accepted, Options, bytes, path};
use crate::outcome::{Failure, Outcome, shown, warn};

pub(crate) fn basename(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(args, Accepted::default())?;
    let (name, suffix) = match options.operands.as_slice() {
        [name] => (name, None),
        [name, suffix] => (name, Some(suffix)),
        _ => return Err(Failure::usage("name one path")),
    };
    let trimmed = without_slashes(name);
    let mut last = trimmed
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or(trimmed);
    if trimmed.is_empty() && !name.is_empty() {
        last = b"/";
    }
    if let Some(head) = suffix.and_then(|suffix| last.strip_suffix(suffix.as_slice()))
        && !head.is_empty()
    {
        last = head;
    }
    output.write_all(&[last, b"\n"].concat())?;
    Ok(0)
}

fn without_slashes(mut name: &[u8]) -> &[u8] {
    while let Some(head) = name.strip_suffix(b"/") {
        name = head;
    }
    name
}

pub(crate) fn dirname(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(args, Accepted::default())?;
    for name in options.some_operands("path")? {
        let trimmed = without_slashes(name);
        let place = trimmed.iter().rposition(|byte| *byte == b'/');
        let head = match place {
            None if trimmed.is_empty() && !name.is_empty() => b"/".as_slice(),
            None => b".",
            Some(place) => match without_slashes(trimmed.get(..place).unwrap_or_default()) {
                b"" => b"/",
                head => head,
            },
        };
        output.write_all(&[head, b"\n"].concat())?;
    }
    Ok(0)
}

pub(crate) fn readlink(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "f",
            ..Accepted::default()
        },
    )?;
    let mut status = 0;
    for name in options.some_operands("link")? {
        let found = if options.has('f') {
            fs::canonicalize(path(name))
        } else {
            fs::read_link(path(name))
        };
        match found {
            Ok(found) => output.write_all(&[bytes(&found), b"\n"].concat())?,
            Err(error) => {
                warn("readlink", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
        }
    }
    Ok(status)
}

pub(crate) fn pwd(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    Options::parse(
        args,
        Accepted {
            flags: "LP",
            ..Accepted::default()
        },
    )?;
    let directory = std::env::current_dir().map_err(|e| Failure::on("working directory", e))?;
    output.write_all(&[bytes(&directory), b"\n"].concat())?;
    Ok(0)
}

pub(crate) fn mkdir(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "p",
            valued: "m",
            ..Accepted::default()
        },
    )?;
    let mode = options
        .text('m')?
        .map(|text| {
            let mode = u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777);
            mode.ok_or_else(|| Failure::usage(format!("-m {text}: not an octal mode up to 7777")))
        })
        .transpose()?;
    let mut status = 0;
    for name in options.some_operands("directory")? {
        let mut result = DirBuilder::new()
            .recursive(options.has('p'))
            .mode(0o777)
            .create(path(name));
        if let (Ok(()), Some(mode)) = (&result, mode) {
            result = fs::set_permissions(path(name), fs::Permissions::from_mode(mode));
        }
        if let Err(error) = result {
            warn("mkdir", format_args!("{}: {error}", shown(name)));
            status = 1;
        }
    }
    Ok(status)
}

pub(crate) fn touch(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "c",
            ..Accepted::default()
        },
    )?;
    let mut status = 0;
    let now = SystemTime::now();
    for name in options.some_operands("file")? {
        let times = fs::FileTimes::new().set_accessed(now).set_modified(now);
        let result = if path(name).is_dir() {
            fs::File::open(path(name))
        } else {
            OpenOptions::new()
                .append(true)
                .create(!options.has('c'))
                .open(path(name))
        };
        let is_left_out = |error: &std::io::Error| {
            options.has('c') && error.kind() == std::io::ErrorKind::NotFound
        };
        match result.and_then(|file| file.set_times(times)) {
            Err(error) if !is_left_out(&error) => {
                warn("touch", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
            _ => {}
        }
    }
    Ok(status)
}

pub(crate) fn env(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "i",
        valued: "u",
        stops_at_operand: true,
        ..Accepted::default()
    };
    let options = Options::parse(args, accepted)?;
    let mut variables: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if !options.has('i') {
        for (name, value) in std::env::vars_os() {
            variables.push((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
    }
    for name in options.values('u') {
        variables.retain(|(known, _)| known != name);
    }
    let mut words = options.operands.as_slice();
    while let Some((first, rest)) = words.split_first() {
        let Some(place) = first.iter().position(|byte| *byte == b'=') else {
            break;
        };
        let (name, value) = first.split_at(place);
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_vec(), value.get(1..).unwrap_or_default().to_vec()));
        words = rest;
    }
    let Some((program, args)) = words.split_first() else {
        for (name, value) in variables {
            output.write_all(&[name.as_slice(), b"=", &value, b"\n"].concat())?;
        }
        return Ok(0);
    };
    let pairs = variables
        .iter()
        .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value)));
    let error = Command::new(OsStr::from_bytes(program))
        .args(args.iter().map(|arg| OsStr::from_bytes(arg)))
        .env_clear()
        .envs(pairs)
        .exec();
    warn("env", format_args!("{}: {error}", shown(program)));
    Ok(if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    })
}
