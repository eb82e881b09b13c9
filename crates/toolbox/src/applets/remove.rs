//! `rm` and `rmdir`.

use std::fs;
use std::io::{ErrorKind, Write};

use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};

pub(crate) fn rm(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let options = Options::parse(
        args,
        Accepted {
            flags: "rRf",
            ..Accepted::default()
        },
    )?;
    let is_recursive = options.has('r') || options.has('R');
    if options.operands.is_empty() && options.has('f') {
        return Ok(0);
    }
    let mut status = 0;
    for name in options.some_operands("path")? {
        let last = name
            .rsplit(|byte| *byte == b'/')
            .find(|part| !part.is_empty());
        if matches!(last, None | Some(b"." | b"..")) {
            return Err(Failure::usage(format!("{}: is not removed", shown(name))));
        }
        let result = fs::symlink_metadata(path(name)).and_then(|found| {
            if found.is_dir() && is_recursive {
                fs::remove_dir_all(path(name))
            } else {
                fs::remove_file(path(name))
            }
        });
        match result {
            Err(error) if !(options.has('f') && error.kind() == ErrorKind::NotFound) => {
                warn("rm", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
            _ => {}
        }
    }
    Ok(status)
}

pub(crate) fn rmdir(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    let options = Options::parse(args, Accepted::default())?;
    let mut status = 0;
    for name in options.some_operands("directory")? {
        if let Err(error) = fs::remove_dir(path(name)) {
            warn("rmdir", format_args!("{}: {error}", shown(name)));
            status = 1;
        }
    }
    Ok(status)
}
