//! Redirects: open files in the places of descriptors, and what was there before.

use std::fs::OpenOptions;
use std::io::{Write, pipe};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use super::ast::{Redirect, Target};
use super::shell::{Flow, Shell};
use crate::options::path;
use crate::outcome::shown;
use crate::sys;

/// Here-documents up to this size fit into a pipe, which holds 64 KiB by default.
const PIPE_BYTES: usize = 4096;

/// Descriptors as they were before redirects.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// Each descriptor, and its copy if it was open.
    descriptors: Vec<(i32, Option<i32>)>,
}

impl Saved {
    pub(super) fn restore(self) {
        for (descriptor, copy) in self.descriptors.into_iter().rev() {
            match copy {
                Some(copy) => {
                    // The copy is open, so this fails only if the kernel is out of memory.
                    let _ = sys::duplicate(copy, descriptor);
                    sys::close(copy);
                }
                None => sys::close(descriptor),
            }
        }
    }

    /// The redirects stay.
    pub(super) fn keep(self) {
        for (_, copy) in self.descriptors {
            copy.into_iter().for_each(sys::close);
        }
    }
}

impl Shell {
    /// Performs redirects in their order. The inner error is a file that cannot be opened.
    pub(super) fn redirect(
        &mut self,
        redirects: &[Redirect],
    ) -> Result<Result<Saved, String>, Flow> {
        let mut saved = Saved::default();
        for redirect in redirects {
            let result = match self.redirect_one(redirect, &mut saved) {
                Ok(result) => result,
                Err(flow) => {
                    saved.restore();
                    return Err(flow);
                }
            };
            if let Err(message) = result {
                saved.restore();
                return Ok(Err(message));
            }
        }
        Ok(Ok(saved))
    }

    fn redirect_one(
        &mut self,
        redirect: &Redirect,
        saved: &mut Saved,
    ) -> Result<Result<(), String>, Flow> {
        let mut options = OpenOptions::new();
        let word = match &redirect.target {
            Target::Read(word) => {
                options.read(true);
                word
            }
            Target::Write(word) | Target::Overwrite(word) => {
                options.write(true).create(true).truncate(true);
                word
            }
            Target::Append(word) => {
                options.append(true).create(true);
                word
            }
            Target::ReadWrite(word) => {
                options.read(true).write(true).create(true);
                word
            }
            Target::Duplicate(word) => {
                let source = self.expand_text(word)?;
                return Ok(duplicate(&source, redirect.descriptor, saved));
            }
            Target::Document(body) => {
                let text = match body.get() {
                    Some(word) => self.expand_text(word)?,
                    None => Vec::new(),
                };
                let file = self.document(&text)?;
                return Ok(put(file, redirect.descriptor, saved));
            }
        };
        let name = self.expand_text(word)?;
        let is_overwriting = matches!(redirect.target, Target::Write(_));
        if is_overwriting && self.settings.noclobber && path(&name).is_file() {
            return Ok(Err(format!("{}: the file exists", shown(&name))));
        }
        let file = options.open(path(&name));
        let file = file.map_err(|error| format!("{}: {error}", shown(&name)));
        Ok(file.and_then(|file| put(file.into(), redirect.descriptor, saved)))
    }

    /// A pipe to read the text from; a child writes what does not fit into it, so that here-documents
    /// need no writable file system.
    fn document(&mut self, text: &[u8]) -> Result<OwnedFd, Flow> {
        let (reader, mut writer) = match pipe() {
            Ok(ends) => ends,
            Err(error) => return Err(self.abort(format_args!("here-document: {error}"))),
        };
        if text.len() > PIPE_BYTES {
            self.fork(|shell| {
                sys::close(reader.as_raw_fd());
                // A command that reads less than everything is no error.
                shell.status = i32::from(writer.write_all(text).is_err());
                Err(Flow::Exit)
            })?;
        } else if let Err(error) = writer.write_all(text) {
            return Err(self.abort(format_args!("here-document: {error}")));
        }
        Ok(reader.into())
    }
}

fn duplicate(source: &[u8], descriptor: i32, saved: &mut Saved) -> Result<(), String> {
    if source == b"-" {
        save(descriptor, saved);
        sys::close(descriptor);
        return Ok(());
    }
    let number = std::str::from_utf8(source).ok();
    let number = number.and_then(|text| text.parse::<i32>().ok());
    let Some(number) = number.filter(|number| *number >= 0) else {
        return Err(format!("{}: not a descriptor", shown(source)));
    };
    save(descriptor, saved);
    sys::duplicate(number, descriptor).map_err(|error| format!("descriptor {number}: {error}"))
}

fn save(descriptor: i32, saved: &mut Saved) {
    let copy = sys::save_descriptor(descriptor).ok();
    saved.descriptors.push((descriptor, copy));
}

fn put(file: OwnedFd, descriptor: i32, saved: &mut Saved) -> Result<(), String> {
    if file.as_raw_fd() == descriptor {
        // The place was free, and the file has been opened right there. It is closed when a program
        // is executed, unless it is duplicated onto itself by way of another place.
        let copy = sys::save_descriptor(descriptor).map_err(|error| error.to_string())?;
        saved.descriptors.push((descriptor, None));
        let moved = file.into_raw_fd();
        sys::close(moved);
        let result = sys::duplicate(copy, descriptor).map_err(|error| error.to_string());
        sys::close(copy);
        return result;
    }
    save(descriptor, saved);
    sys::duplicate(file.as_raw_fd(), descriptor)
        .map_err(|error| format!("descriptor {descriptor}: {error}"))
}
