//! System calls that the standard library has no function for.
//!
//! The only module with `unsafe`. Every function here takes and returns plain values; pointers are
//! made from slices and live no longer than the call. Reading order: processes, signals, files.

#![allow(
    unsafe_code,
    reason = "a shell needs fork, waitpid, signals and duplicated descriptors, and the crate has no dependency that wraps them"
)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const SIGHUP: i32 = 1;
pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGQUIT: i32 = 3;
pub(crate) const SIGUSR1: i32 = 10;
pub(crate) const SIGUSR2: i32 = 12;
pub(crate) const SIGPIPE: i32 = 13;
pub(crate) const SIGALRM: i32 = 14;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGCHLD: i32 = 17;

/// The highest number of a signal: real-time signals end there.
pub(crate) const LAST_SIGNAL: i32 = 64;

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_ERR: usize = usize::MAX;
const WNOHANG: c_int = 1;
const SIG_BLOCK: c_int = 0;
const SIG_SETMASK: c_int = 2;
const F_DUPFD_CLOEXEC: c_int = 1030;

/// glibc's `sigset_t`: 1024 bits, on every architecture of Linux.
#[repr(C)]
struct SignalSet([u64; 16]);

/// glibc's `struct statvfs` with 64-bit counts, and room for what a later version may append.
#[repr(C)]
#[derive(Default)]
struct RawFileSystem {
    block_size: u64,
    fragment_size: u64,
    blocks: u64,
    blocks_free: u64,
    blocks_available: u64,
    files: u64,
    files_free: u64,
    rest: [u64; 16],
}

// SAFETY of the `safe` items: they take integers only, and the kernel checks those.
unsafe extern "C" {
    safe fn getppid() -> c_int;
    safe fn geteuid() -> u32;
    safe fn getgid() -> u32;
    #[link_name = "umask"]
    safe fn c_umask(mask: u32) -> u32;
    #[link_name = "kill"]
    safe fn c_kill(process: c_int, signal: c_int) -> c_int;
    safe fn siginterrupt(signal: c_int, is_interrupting: c_int) -> c_int;
    #[link_name = "dup2"]
    safe fn c_dup2(from: c_int, to: c_int) -> c_int;
    #[link_name = "close"]
    safe fn c_close(descriptor: c_int) -> c_int;
    safe fn _exit(status: c_int) -> !;
    #[link_name = "fork"]
    fn c_fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn sigfillset(set: *mut SignalSet) -> c_int;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn sigsuspend(set: *const SignalSet) -> c_int;
    fn fcntl(descriptor: c_int, command: c_int, argument: c_int) -> c_int;
    #[link_name = "read"]
    fn c_read(descriptor: c_int, buffer: *mut c_void, length: usize) -> isize;
    #[link_name = "write"]
    fn c_write(descriptor: c_int, buffer: *const c_void, length: usize) -> isize;
    fn execve(path: *const c_char, args: *const *const c_char, env: *const *const c_char) -> c_int;
    #[link_name = "statvfs64"]
    fn statvfs(path: *const c_char, result: *mut RawFileSystem) -> c_int;
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Which of two processes the caller is after `fork`.
pub(crate) enum Forked {
    Parent { child: i32 },
    Child,
}

/// Only for a process with one thread: the shell.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the shell has a single thread, so no lock of another thread stays held in the child.
    match check(unsafe { c_fork() })? {
        0 => Ok(Forked::Child),
        child => Ok(Forked::Parent { child }),
    }
}

/// A child that has ended, and its status as `$?` shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) process: i32,
    pub(crate) status: i32,
    pub(crate) signal: Option<i32>,
}

fn ended(process: i32, raw: i32) -> Ended {
    let signal = raw & 0x7f;
    if signal == 0 {
        let status = (raw >> 8) & 0xff;
        return Ended {
            process,
            status,
            signal: None,
        };
    }
    Ended {
        process,
        status: 128 + signal,
        signal: Some(signal),
    }
}

/// Waits for any child, however long it takes. Interruptions by signals are waited through.
pub(crate) fn wait_for_child() -> io::Result<Ended> {
    loop {
        let mut raw = 0;
        // SAFETY: `raw` outlives the call.
        match check(unsafe { waitpid(-1, &raw mut raw, 0) }) {
            Ok(process) => return Ok(ended(process, raw)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A child that has ended already, if there is one.
pub(crate) fn reap() -> io::Result<Option<Ended>> {
    let mut raw = 0;
    // SAFETY: `raw` outlives the call.
    let process = check(unsafe { waitpid(-1, &raw mut raw, WNOHANG) })?;
    Ok((process != 0).then(|| ended(process, raw)))
}

/// Waits for any child or for a recorded signal, whichever is first; `None` is a signal.
///
/// Signals are blocked between looking and sleeping, so that none can slip in unseen. The caller
/// handles SIGCHLD (`Disposition::Wake`), as an ignored signal wakes no process.
pub(crate) fn wait_for_child_or_signal() -> io::Result<Option<Ended>> {
    let mut all = SignalSet([0; 16]);
    let mut before = SignalSet([0; 16]);
    // SAFETY: both sets outlive the calls.
    unsafe {
        sigfillset(&raw mut all);
        check(sigprocmask(SIG_BLOCK, &raw const all, &raw mut before))?;
    }
    let result = loop {
        if has_noted() {
            break Ok(None);
        }
        match reap() {
            Ok(None) => {}
            found => break found,
        }
        // SAFETY: `before` is a set that the kernel has filled in.
        unsafe { sigsuspend(&raw const before) };
    };
    // SAFETY: as above; with a null pointer no old set is returned.
    unsafe { sigprocmask(SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

/// Replaces this process; returns only if that fails.
pub(crate) fn exec(path: &CString, args: &[CString], env: &[CString]) -> io::Error {
    let pointers = |list: &[CString]| -> Vec<*const c_char> {
        let ended = std::iter::once(std::ptr::null());
        list.iter().map(|text| text.as_ptr()).chain(ended).collect()
    };
    let (args, env) = (pointers(args), pointers(env));
    // SAFETY: both arrays end with a null pointer and borrow strings that outlive the call.
    unsafe { execve(path.as_ptr(), args.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

pub(crate) fn kill(process: i32, signal: i32) -> io::Result<()> {
    check(c_kill(process, signal)).map(drop)
}

pub(crate) fn parent_process() -> i32 {
    getppid()
}

pub(crate) fn effective_user() -> u32 {
    geteuid()
}

pub(crate) fn group() -> u32 {
    getgid()
}

/// What happens when a signal arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    Default,
    Ignore,
    /// Remember it for `take_noted`; interrupts reads.
    Note,
    /// Only wake a waiting call.
    Wake,
    /// End the process with 128 + signal, which the kernel does not do for process 1.
    Exit,
}

static NOTED: AtomicU64 = AtomicU64::new(0);

fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1)
        .ok()
        .and_then(|shift| 1_u64.checked_shl(shift))
        .unwrap_or(0)
}

extern "C" fn note(signal: c_int) {
    NOTED.fetch_or(bit(signal), Ordering::SeqCst);
}

extern "C" fn wake(_: c_int) {}

extern "C" fn exit_at_once(signal: c_int) {
    _exit(128 + signal);
}

pub(crate) fn set_disposition(number: i32, disposition: Disposition) -> io::Result<()> {
    type Handler = extern "C" fn(c_int);
    let handler = match disposition {
        Disposition::Default => SIG_DFL,
        Disposition::Ignore => SIG_IGN,
        Disposition::Note => note as Handler as usize,
        Disposition::Wake => wake as Handler as usize,
        Disposition::Exit => exit_at_once as Handler as usize,
    };
    // SAFETY: the handlers touch an atomic or call `_exit`, which signal handlers may.
    if unsafe { signal(number, handler) } == SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    if disposition == Disposition::Note {
        check(siginterrupt(number, 1))?;
    }
    Ok(())
}

pub(crate) fn has_noted() -> bool {
    NOTED.load(Ordering::SeqCst) != 0
}

/// The lowest signal that has been recorded and not taken.
pub(crate) fn first_noted() -> Option<i32> {
    let bits = NOTED.load(Ordering::SeqCst);
    (1..=LAST_SIGNAL).find(|signal| bits & bit(*signal) != 0)
}

/// The signals recorded since the last call, lowest first.
pub(crate) fn take_noted() -> Vec<i32> {
    let bits = NOTED.swap(0, Ordering::SeqCst);
    (1..=LAST_SIGNAL)
        .filter(|signal| bits & bit(*signal) != 0)
        .collect()
}

/// Sets the mask of permissions that new files do not get, and returns the one before.
pub(crate) fn set_umask(mask: u32) -> u32 {
    c_umask(mask)
}

/// Makes `to` the same open file as `from`; commands that are executed get it.
pub(crate) fn duplicate(from: i32, to: i32) -> io::Result<()> {
    check(c_dup2(from, to)).map(drop)
}

/// A copy of a descriptor out of the way of scripts, which may use 0 to 9; not for commands.
pub(crate) fn save_descriptor(descriptor: i32) -> io::Result<i32> {
    // SAFETY: this command of fcntl takes an integer.
    check(unsafe { fcntl(descriptor, F_DUPFD_CLOEXEC, 10) })
}

pub(crate) fn close(descriptor: i32) {
    c_close(descriptor);
}

pub(crate) fn read(descriptor: i32, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes no more than the length given.
    let count = unsafe { c_read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

pub(crate) fn write_all(descriptor: i32, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads no more than the length given.
        let count = unsafe { c_write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// What a file system holds, in blocks of `block_size` bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSystem {
    pub(crate) block_size: u64,
    pub(crate) blocks: u64,
    pub(crate) blocks_free: u64,
    pub(crate) blocks_available: u64,
    pub(crate) files: u64,
    pub(crate) files_free: u64,
}

pub(crate) fn file_system(path: &CString) -> io::Result<FileSystem> {
    let mut raw = RawFileSystem::default();
    // SAFETY: the path ends with NUL, and the result is at least as large as glibc's.
    check(unsafe { statvfs(path.as_ptr(), &raw mut raw) })?;
    Ok(FileSystem {
        block_size: raw.fragment_size,
        blocks: raw.blocks,
        blocks_free: raw.blocks_free,
        blocks_available: raw.blocks_available,
        files: raw.files,
        files_free: raw.files_free,
    })
}
