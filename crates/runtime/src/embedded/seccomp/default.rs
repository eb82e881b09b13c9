//! The profile of containers that request the runtime's own (`RuntimeDefault`): containerd's.
//!
//! A list of what is allowed; what touches the kernel beyond a process's own affairs is allowed with
//! the capability that is for it.

use libcontainer::oci_spec::OciSpecError;
use libcontainer::oci_spec::runtime::{
    Arch, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompArgBuilder,
    LinuxSeccompBuilder, LinuxSeccompOperator, LinuxSyscall, LinuxSyscallBuilder,
};

/// Allowed for all processes. Names that end in numbers are of 32-bit programs.
const ALWAYS: &str = "
_llseek _newselect accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown
chown32 clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old
eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate
fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr
flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate
ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list
get_thread_area getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32
getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid
getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday
getuid getuid32 getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel
io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit ioctl ioprio_get ioprio_set
ipc kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link
linkat listen listmount listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lsm_get_self_attr
lsm_list_modules lsm_set_self_attr lstat lstat64 madvise map_shadow_stack membarrier memfd_create
memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 mprotect mq_getsetattr
mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap
mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat
open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll
ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv
process_vm_writev pselect6 pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readlink
readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr removexattrat
rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr
sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop
semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list set_thread_area
set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer
setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32
setrlimit setsid setsockopt setuid setuid32 setxattr setxattrat shmat shmctl shmdt shmget shutdown
sigaltstack signalfd signalfd4 sigprocmask sigreturn socketcall socketpair splice stat stat64 statfs
statfs64 statmount statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create
timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create
timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate truncate64
ugetrlimit umask uname unlink unlinkat uretprobe utime utimensat utimensat_time64 utimes vfork vmsplice
wait4 waitid waitpid write writev
";

/// Allowed for all processes, on one architecture.
#[cfg(target_arch = "x86_64")]
const OF_MACHINE: &str = "arch_prctl modify_ldt";
#[cfg(target_arch = "aarch64")]
const OF_MACHINE: &str =
    "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2";

/// Allowed for processes with a capability.
const BY_CAPABILITY: [(&str, &str); 14] = [
    ("CAP_BPF", "bpf"),
    ("CAP_DAC_READ_SEARCH", "open_by_handle_at"),
    ("CAP_PERFMON", "perf_event_open"),
    (
        "CAP_SYS_ADMIN",
        "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr \
         move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog \
         umount umount2 unshare",
    ),
    ("CAP_SYS_BOOT", "reboot"),
    ("CAP_SYS_CHROOT", "chroot"),
    ("CAP_SYSLOG", "syslog"),
    ("CAP_SYS_MODULE", "delete_module finit_module init_module"),
    (
        "CAP_SYS_NICE",
        "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
    ),
    ("CAP_SYS_PACCT", "acct"),
    ("CAP_SYS_PTRACE", "kcmp pidfd_getfd process_madvise"),
    ("CAP_SYS_RAWIO", "ioperm iopl"),
    (
        "CAP_SYS_TIME",
        "clock_settime clock_settime64 settimeofday stime",
    ),
    ("CAP_SYS_TTY_CONFIG", "vhangup"),
];

/// Personalities: plain Linux, old releases, and the query for the current one.
const PERSONALITIES: [u64; 5] = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Address families that lead around the network of a pod, or into the kernel's ciphers.
const AF_ALG: u64 = 38;
const AF_VSOCK: u64 = 40;

/// All `CLONE_NEW*` but those of time and of the newest kernels, which `clone` cannot make.
const NEW_NAMESPACES: u64 = 0x7e02_0000;

/// The profile of a container that can have these capabilities.
pub(in super::super) fn profile(capabilities: &[&str]) -> Result<LinuxSeccomp, OciSpecError> {
    let mut calls = vec![allowed(ALWAYS, &[])?, allowed(OF_MACHINE, &[])?];
    // Both families fail all three.
    for (op, value) in [
        (LinuxSeccompOperator::ScmpCmpLt, AF_ALG),
        (LinuxSeccompOperator::ScmpCmpEq, AF_ALG + 1),
        (LinuxSeccompOperator::ScmpCmpGt, AF_VSOCK),
    ] {
        calls.push(allowed("socket", &[first(op, value, 0)?])?);
    }
    for personality in PERSONALITIES {
        let is_it = first(LinuxSeccompOperator::ScmpCmpEq, personality, 0)?;
        calls.push(allowed("personality", &[is_it])?);
    }
    for (capability, names) in BY_CAPABILITY {
        if capabilities.contains(&capability) {
            calls.push(allowed(names, &[])?);
        }
    }
    if !capabilities.contains(&"CAP_SYS_ADMIN") {
        let op = LinuxSeccompOperator::ScmpCmpMaskedEq;
        calls.push(allowed("clone", &[first(op, NEW_NAMESPACES, 0)?])?);
        // Its flags are behind a pointer. Programs that get ENOSYS use `clone`.
        let missing = LinuxSyscallBuilder::default()
            .names(names("clone3"))
            .action(LinuxSeccompAction::ScmpActErrno)
            .errno_ret(libc::ENOSYS.unsigned_abs());
        calls.push(missing.build()?);
    }
    LinuxSeccompBuilder::default()
        .default_action(LinuxSeccompAction::ScmpActErrno)
        .architectures(vec![
            Arch::ScmpArchX86_64,
            Arch::ScmpArchX86,
            Arch::ScmpArchAarch64,
            Arch::ScmpArchArm,
        ])
        .syscalls(calls)
        .build()
}

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn allowed(text: &str, conditions: &[LinuxSeccompArg]) -> Result<LinuxSyscall, OciSpecError> {
    LinuxSyscallBuilder::default()
        .names(names(text))
        .action(LinuxSeccompAction::ScmpActAllow)
        .args(conditions.to_vec())
        .build()
}

/// A condition on the first argument.
fn first(
    op: LinuxSeccompOperator,
    value: u64,
    value_two: u64,
) -> Result<LinuxSeccompArg, OciSpecError> {
    LinuxSeccompArgBuilder::default()
        .index(0_usize)
        .op(op)
        .value(value)
        .value_two(value_two)
        .build()
}
