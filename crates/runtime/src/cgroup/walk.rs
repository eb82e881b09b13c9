//! The processes below a cgroup, found without allocating memory: a node that has none left must
//! still be able to kill a pod.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, openat};
use rustix::io::{Errno, read};
use rustix::process::Pid;

use super::kill::is_gone;

/// Cgroups in cgroups in cgroups: deeper ones are left out.
const DEEPEST: usize = 32;
const PIECE: usize = 1024;

/// Visits every process in a cgroup, given by its directory, and below. Visits none if the
/// cgroup does not exist.
pub(super) fn each_pid(directory: &CStr, visit: &mut dyn FnMut(Pid)) -> io::Result<()> {
    // Threads only have no such list.
    each_cgroup(directory, &mut |cgroup| {
        read_list(cgroup, visit).or_else(unless_gone)
    })
}

/// Visits the directory of a cgroup and those below it, the outer ones first. None is visited if the
/// cgroup is not there.
pub(super) fn each_cgroup(
    directory: &CStr,
    visit: &mut dyn FnMut(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    match open_directory(CWD, directory) {
        Ok(directory) => walk(directory.as_fd(), DEEPEST, visit),
        Err(errno) => unless_gone(errno),
    }
}

fn open_directory(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

fn unless_gone(errno: Errno) -> io::Result<()> {
    let error = io::Error::from(errno);
    if is_gone(&error) { Ok(()) } else { Err(error) }
}

fn walk(
    directory: BorrowedFd<'_>,
    depth: usize,
    visit: &mut dyn FnMut(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    visit(directory)?;
    if depth == 0 {
        return Ok(());
    }
    let mut buffer = [MaybeUninit::uninit(); PIECE];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return unless_gone(errno),
        };
        let name = entry.file_name();
        let may_be_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if !may_be_directory || name == c"." || name == c".." {
            continue;
        }
        match open_directory(directory, name) {
            Ok(child) => walk(child.as_fd(), depth - 1, visit)?,
            Err(Errno::NOTDIR) => {}
            Err(errno) => unless_gone(errno)?,
        }
    }
    Ok(())
}

fn read_list(directory: BorrowedFd<'_>, visit: &mut dyn FnMut(Pid)) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let list = openat(directory, c"cgroup.procs", flags, Mode::empty())?;
    let mut piece = [0; PIECE];
    let mut number: i32 = 0;
    loop {
        let length = match read(&list, &mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        for byte in &piece[..length] {
            if byte.is_ascii_digit() {
                let digit = i32::from(byte - b'0');
                number = number.saturating_mul(10).saturating_add(digit);
            } else {
                take(&mut number, visit);
            }
        }
    }
    take(&mut number, visit);
    Ok(())
}

/// Zero stands for a process that this pid namespace does not know.
fn take(number: &mut i32, visit: &mut dyn FnMut(Pid)) {
    if let Some(pid) = Pid::from_raw(std::mem::take(number)) {
        visit(pid);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn processes_of_cgroups_in_cgroups_are_found_and_none_where_there_is_no_cgroup() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("pod/container");
        fs::create_dir_all(&inner).unwrap();
        // Longer than what is read at a time.
        let many: Vec<i32> = (1_000_000..1_000_400).collect();
        let text: Vec<String> = many.iter().map(|pid| format!("{pid}\n")).collect();
        fs::write(folder.path().join("pod/cgroup.procs"), text.concat()).unwrap();
        fs::write(inner.join("cgroup.procs"), "7\n0\n12").unwrap();
        let mut found = Vec::new();
        let mut look = |name: &str| {
            let path = folder.path().join(name);
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            each_pid(&path, &mut |pid| found.push(pid.as_raw_nonzero().get())).unwrap();
        };
        look("none");
        look("pod");
        let mut expected = many;
        expected.extend([7, 12]);
        assert_eq!(found, expected);
    }
}
