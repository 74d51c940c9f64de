//! Probes: each tries one system call or one file of the kernel from inside a command, and says whether it was refused.
//! The names are the rows of the table in docs/sandbox.md. None of them does harm where it is not refused: arguments
//! are empty or name nothing, and each runs in a process of its own.
#![allow(unsafe_code, reason = "system calls are tried as a command could make them, past every library")]

use std::ffi::CString;
use std::io::{Error, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use libc::{c_int, c_long};

/// The facts that a probe knows of the outside: a process of the same user, and its files.
#[derive(Clone, Copy)]
pub struct Outside {
    pub victim: c_long,
    pub shared_memory_key: c_long,
}

type Probe = (&'static str, fn(Outside) -> c_long);

macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        let number: c_long = $number;
        // SAFETY: pointers among the arguments are null, wrong on purpose, or to memory that outlives the call.
        unsafe { libc::syscall(number $(, $argument as c_long)*) }
    }};
}

const NOWHERE: c_long = 0;
/// An address that nothing is mapped at: the kernel gets as far as reading its arguments, and no farther.
const BAD: c_long = 8;
/// A user that has no processes.
const NOBODY: c_long = 54_321;

const SIMPLE: &[(&str, c_long, [c_long; 5])] = &[
    ("acct", libc::SYS_acct, [BAD, 0, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [BAD, BAD, 0, 0, 0]),
    ("adjtimex", libc::SYS_adjtimex, [BAD, 0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [0, BAD, 0, 0, 0]),
    ("clock_adjtime", libc::SYS_clock_adjtime, [0, BAD, 0, 0, 0]),
    ("clock_settime", libc::SYS_clock_settime, [0, BAD, 0, 0, 0]),
    ("clone3", libc::SYS_clone3, [BAD, 0, 0, 0, 0]),
    ("delete_module", libc::SYS_delete_module, [BAD, 0, 0, 0, 0]),
    ("finit_module", libc::SYS_finit_module, [-1, BAD, 0, 0, 0]),
    ("fsconfig", libc::SYS_fsconfig, [-1, 0, 0, 0, 0]),
    ("fsmount", libc::SYS_fsmount, [-1, 0, 0, 0, 0]),
    ("fsopen", libc::SYS_fsopen, [BAD, 0, 0, 0, 0]),
    ("fspick", libc::SYS_fspick, [-1, BAD, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, [BAD, 0, BAD, 0, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, [-1, 0, 0, 0, 0]),
    ("io_uring_register", libc::SYS_io_uring_register, [-1, 0, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [1, BAD, 0, 0, 0]),
    ("kexec_file_load", libc::SYS_kexec_file_load, [-1, -1, 0, 0, 0]),
    ("kexec_load", libc::SYS_kexec_load, [0, 99, 0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [0, -3, 0, 0, 0]),
    ("mount", libc::SYS_mount, [BAD, BAD, BAD, 0, 0]),
    ("mount_setattr", libc::SYS_mount_setattr, [-1, BAD, 0, BAD, 0]),
    ("move_mount", libc::SYS_move_mount, [-1, BAD, -1, BAD, 0]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [-1, BAD, 0, 0, 0]),
    ("open_tree", libc::SYS_open_tree, [-1, BAD, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [BAD, 0, -1, -1, 0]),
    ("pivot_root", libc::SYS_pivot_root, [BAD, BAD, 0, 0, 0]),
    ("quotactl", libc::SYS_quotactl, [-1, BAD, 0, 0, 0]),
    ("quotactl_fd", libc::SYS_quotactl_fd, [-1, 0, 0, 0, 0]),
    ("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0]),
    ("request_key", libc::SYS_request_key, [BAD, BAD, BAD, 0, 0]),
    ("setdomainname", libc::SYS_setdomainname, [BAD, 4, 0, 0, 0]),
    ("sethostname", libc::SYS_sethostname, [BAD, 4, 0, 0, 0]),
    ("setns", libc::SYS_setns, [-1, 0, 0, 0, 0]),
    ("settimeofday", libc::SYS_settimeofday, [BAD, 0, 0, 0, 0]),
    ("swapoff", libc::SYS_swapoff, [BAD, 0, 0, 0, 0]),
    ("swapon", libc::SYS_swapon, [BAD, 0, 0, 0, 0]),
    ("syslog", libc::SYS_syslog, [10, 0, 0, 0, 0]),
    ("umount2", libc::SYS_umount2, [BAD, 0, 0, 0, 0]),
    ("unshare, mount namespace", libc::SYS_unshare, [libc::CLONE_NEWNS as c_long, 0, 0, 0, 0]),
    ("unshare, user namespace", libc::SYS_unshare, [libc::CLONE_NEWUSER as c_long, 0, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [1, 0, 0, 0, 0]),
    ("vhangup", libc::SYS_vhangup, [0, 0, 0, 0, 0]),
    // Modes that make a program run as its owner or its group.
    ("fchmod with setuid", libc::SYS_fchmod, [-1, 0o4755, 0, 0, 0]),
    ("fchmod with setgid", libc::SYS_fchmod, [-1, 0o2755, 0, 0, 0]),
    ("fchmod with sticky", libc::SYS_fchmod, [-1, 0o1777, 0, 0, 0]),
    ("fchmodat with setuid", libc::SYS_fchmodat, [-1, BAD, 0o4755, 0, 0]),
    ("fchmodat with setgid", libc::SYS_fchmodat, [-1, BAD, 0o2755, 0, 0]),
    ("fchmodat without them", libc::SYS_fchmodat, [-1, BAD, 0o755, 0, 0]),
    ("mknodat with setuid", libc::SYS_mknodat, [-1, BAD, 0o104_755, 0, 0]),
    ("mknodat with setgid", libc::SYS_mknodat, [-1, BAD, 0o102_755, 0, 0]),
    ("openat with setuid", libc::SYS_openat, [-1, BAD, libc::O_CREAT as c_long, 0o4755, 0]),
    ("openat with setgid", libc::SYS_openat, [-1, BAD, libc::O_CREAT as c_long, 0o2755, 0]),
    (
        "openat with setuid, without a name",
        libc::SYS_openat,
        [-1, BAD, (libc::O_TMPFILE | libc::O_RDWR) as c_long, 0o4755, 0],
    ),
    ("openat that makes nothing", libc::SYS_openat, [-1, BAD, 0, 0o4755, 0]),
    ("openat2", libc::SYS_openat2, [-1, BAD, BAD, 24, 0]),
    // System V and POSIX objects, and watching.
    ("shmat", libc::SYS_shmat, [-1, 0, 0, 0, 0]),
    ("shmctl", libc::SYS_shmctl, [-1, 2, BAD, 0, 0]),
    ("msgget of another process", libc::SYS_msgget, [0x0abe_de01, 0, 0, 0, 0]),
    ("msgsnd", libc::SYS_msgsnd, [-1, BAD, 0, 0, 0]),
    ("msgrcv", libc::SYS_msgrcv, [-1, BAD, 0, 0, 0]),
    ("msgctl", libc::SYS_msgctl, [-1, 2, BAD, 0, 0]),
    ("semget of another process", libc::SYS_semget, [0x0abe_de01, 0, 0, 0, 0]),
    ("semop", libc::SYS_semop, [-1, BAD, 1, 0, 0]),
    ("semtimedop", libc::SYS_semtimedop, [-1, BAD, 1, 0, 0]),
    ("semctl", libc::SYS_semctl, [-1, 0, 2, BAD, 0]),
    ("fanotify_init", libc::SYS_fanotify_init, [0x200, 0, 0, 0, 0]),
    ("inotify_init1", libc::SYS_inotify_init1, [0, 0, 0, 0, 0]),
    // As any call of a kernel to come.
    ("a call that is newer than this list", 999, [0, 0, 0, 0, 0]),
    // Harmless ones that change the caller alone.
    ("landlock_create_ruleset", libc::SYS_landlock_create_ruleset, [0, 0, 1, 0, 0]),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, [-1, BAD, BAD, BAD, 0]),
    ("personality", libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0]),
    ("seccomp", libc::SYS_seccomp, [2, 0, BAD, 0, 0]),
];

/// Calls that not every kernel that is in use has; [`unknown`] names those that this one has not. The C library's
/// bindings lack most of them; every architecture has the same numbers.
const NEW: &[(&str, c_long, [c_long; 5])] = &[
    ("memfd_secret", libc::SYS_memfd_secret, [0, 0, 0, 0, 0]),
    ("futex_waitv", libc::SYS_futex_waitv, [BAD, 0, 0, 0, 0]),
    ("set_mempolicy_home_node", libc::SYS_set_mempolicy_home_node, [1, 0, 0, 1, 0]),
    ("cachestat", 451, [-1, BAD, BAD, 0, 0]),
    ("fchmodat2", 452, [-1, BAD, 0, 0, 0]),
    ("fchmodat2 with setuid", 452, [-1, BAD, 0o4755, 0, 0]),
    ("fchmodat2 with setgid", 452, [-1, BAD, 0o2755, 0, 0]),
    ("map_shadow_stack", 453, [1, 0, -1, 0, 0]),
    ("futex_wake", 454, [BAD, 0, 0, 0, 0]),
    ("futex_wait", 455, [BAD, 0, 0, 0, 0]),
    ("futex_requeue", 456, [BAD, 0, 0, 0, 0]),
    ("statmount", 457, [BAD, BAD, 0, 0, 0]),
    ("listmount", 458, [BAD, BAD, 0, 0, 0]),
    ("lsm_get_self_attr", 459, [100, BAD, BAD, 0, 0]),
    ("lsm_set_self_attr", 460, [100, BAD, 0, 0, 0]),
    ("lsm_list_modules", 461, [BAD, BAD, 0, 0, 0]),
    ("mseal", 462, [1, 0, 0, 0, 0]),
    ("setxattrat", 463, [-1, BAD, 0, BAD, BAD]),
    ("getxattrat", 464, [-1, BAD, 0, BAD, BAD]),
    ("listxattrat", 465, [-1, BAD, 0, BAD, 0]),
    ("removexattrat", 466, [-1, BAD, 0, BAD, 0]),
    ("open_tree_attr", 467, [-1, BAD, 0, 0, 0]),
    ("file_getattr", 468, [-1, BAD, BAD, 0, 0]),
    ("file_setattr", 469, [-1, BAD, BAD, 0, 0]),
    ("listns", 470, [BAD, BAD, 0, 0, 0]),
];

/// The names of new calls that this kernel does not have, a line for each.
pub fn unknown() -> String {
    let tried = NEW.iter().map(|(name, number, [a, b, c, d, e])| (name, apart(|| call!(*number, *a, *b, *c, *d, *e))));
    tried.filter(|(_, error)| *error == libc::ENOSYS).map(|(name, _)| format!("{name}\n")).collect()
}

#[cfg(target_arch = "x86_64")]
const SIMPLE_X86: &[(&str, c_long, [c_long; 5])] = &[
    ("chmod with setuid", libc::SYS_chmod, [BAD, 0o4755, 0, 0, 0]),
    ("chmod with setgid", libc::SYS_chmod, [BAD, 0o2755, 0, 0, 0]),
    ("creat with setuid", libc::SYS_creat, [BAD, 0o4755, 0, 0, 0]),
    ("creat with setgid", libc::SYS_creat, [BAD, 0o2755, 0, 0, 0]),
    ("mknod with setuid", libc::SYS_mknod, [BAD, 0o104_755, 0, 0, 0]),
    ("mknod with setgid", libc::SYS_mknod, [BAD, 0o102_755, 0, 0, 0]),
    ("open with setuid", libc::SYS_open, [BAD, libc::O_CREAT as c_long, 0o4755, 0, 0]),
    ("open with setgid", libc::SYS_open, [BAD, libc::O_CREAT as c_long, 0o2755, 0, 0]),
    ("inotify_init", libc::SYS_inotify_init, [0, 0, 0, 0, 0]),
    ("ioperm", libc::SYS_ioperm, [0x80, 1, 1, 0, 0]),
    ("iopl", libc::SYS_iopl, [3, 0, 0, 0, 0]),
    ("modify_ldt", libc::SYS_modify_ldt, [0, BAD, 0, 0, 0]),
    ("x32 mount", libc::SYS_mount | 0x4000_0000, [BAD, BAD, BAD, 0, 0]),
    ("x32 unshare, user namespace", libc::SYS_unshare | 0x4000_0000, [libc::CLONE_NEWUSER as c_long, 0, 0, 0, 0]),
];
#[cfg(not(target_arch = "x86_64"))]
const SIMPLE_X86: &[(&str, c_long, [c_long; 5])] = &[];

const SOCKETS: &[(&str, c_int, c_int)] = &[
    ("socket AF_UNIX", libc::AF_UNIX, libc::SOCK_STREAM),
    ("socket AF_INET", libc::AF_INET, libc::SOCK_DGRAM),
    ("socket AF_INET6", libc::AF_INET6, libc::SOCK_DGRAM),
    ("socket AF_NETLINK", libc::AF_NETLINK, libc::SOCK_RAW),
    ("socket AF_ALG", libc::AF_ALG, libc::SOCK_SEQPACKET),
    ("socket AF_BLUETOOTH", libc::AF_BLUETOOTH, libc::SOCK_RAW),
    ("socket AF_CAN", libc::AF_CAN, libc::SOCK_RAW),
    ("socket AF_KEY", libc::AF_KEY, libc::SOCK_RAW),
    ("socket AF_PACKET", libc::AF_PACKET, libc::SOCK_RAW),
    ("socket AF_RDS", libc::AF_RDS, libc::SOCK_SEQPACKET),
    ("socket AF_TIPC", libc::AF_TIPC, libc::SOCK_RDM),
    ("socket AF_VSOCK", libc::AF_VSOCK, libc::SOCK_STREAM),
    ("socket AF_XDP", libc::AF_XDP, libc::SOCK_RAW),
];

const OTHERS: &[Probe] = &[
    ("prlimit64 of another process", |outside| call!(libc::SYS_prlimit64, outside.victim, 7, NOWHERE, NOWHERE)),
    ("prlimit64 of its supervisor", |_| call!(libc::SYS_prlimit64, parent_of_parent(), 7, NOWHERE, NOWHERE)),
    ("prlimit64 of itself", |_| call!(libc::SYS_prlimit64, 0, 7, NOWHERE, NOWHERE)),
    ("setpriority of another process", |outside| call!(libc::SYS_setpriority, libc::PRIO_PROCESS, outside.victim, 0)),
    ("setpriority of a user's processes", |_| looked_at(call!(libc::SYS_setpriority, libc::PRIO_USER, NOBODY, 0))),
    ("setpriority of its supervisor", |_| call!(libc::SYS_setpriority, libc::PRIO_PROCESS, parent_of_parent(), 19)),
    ("setpriority of itself, lower", |_| call!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, 19)),
    ("setpriority of itself, above the usual", |_| call!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, -5)),
    ("ioprio_set of another process", |outside| call!(libc::SYS_ioprio_set, 1, outside.victim, 0)),
    ("ioprio_set of a user's processes", |_| looked_at(call!(libc::SYS_ioprio_set, 3, NOBODY, 0))),
    ("ioprio_set of its supervisor", |_| call!(libc::SYS_ioprio_set, 1, parent_of_parent(), 3 << 13)),
    ("ioprio_set of itself, idle", |_| call!(libc::SYS_ioprio_set, 1, 0, 3 << 13)),
    ("ioprio_set of itself, real-time", |_| call!(libc::SYS_ioprio_set, 1, 0, 1 << 13)),
    ("sched_setaffinity of another process", |outside| {
        call!(libc::SYS_sched_setaffinity, outside.victim, 8, (&raw const ALL_CPUS))
    }),
    ("sched_setaffinity of its supervisor", |_| {
        call!(libc::SYS_sched_setaffinity, parent_of_parent(), 8, (&raw const ALL_CPUS))
    }),
    ("sched_setaffinity of itself", |_| call!(libc::SYS_sched_setaffinity, 0, 8, (&raw const ALL_CPUS))),
    ("sched_setattr of another process", |outside| {
        call!(libc::SYS_sched_setattr, outside.victim, (&raw const USUAL_SCHEDULING), 0)
    }),
    ("sched_setparam of another process", |outside| {
        call!(libc::SYS_sched_setparam, outside.victim, (&raw const PRIORITY_0))
    }),
    ("sched_setscheduler of another process", |outside| {
        call!(libc::SYS_sched_setscheduler, outside.victim, libc::SCHED_OTHER, (&raw const PRIORITY_0))
    }),
    ("sched_setscheduler of its supervisor", |_| {
        call!(libc::SYS_sched_setscheduler, parent_of_parent(), libc::SCHED_IDLE, (&raw const PRIORITY_0))
    }),
    ("sched_setscheduler of itself, real-time", |_| {
        call!(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, (&raw const PRIORITY_1))
    }),
    ("migrate_pages of another process", |outside| {
        call!(libc::SYS_migrate_pages, outside.victim, 64, (&raw const ALL_CPUS), (&raw const ALL_CPUS))
    }),
    ("move_pages of another process", |outside| call!(libc::SYS_move_pages, outside.victim, 0, 0, 0, 0, 0)),
    ("get_robust_list of another process", |outside| {
        let (mut head, mut length) = (0_usize, 0_usize);
        call!(libc::SYS_get_robust_list, outside.victim, (&raw mut head), (&raw mut length))
    }),
    ("kcmp with another process", |outside| call!(libc::SYS_kcmp, outside.victim, outside.victim, 1, 0, 0)),
    ("kill of another process", |outside| call!(libc::SYS_kill, outside.victim, 0)),
    ("tkill of another process", |outside| call!(libc::SYS_tkill, outside.victim, libc::SIGCONT)),
    ("pidfd_open of another process", |outside| call!(libc::SYS_pidfd_open, outside.victim, 0)),
    ("pidfd_send_signal to another process", |outside| {
        on_pidfd(outside, |pidfd| call!(libc::SYS_pidfd_send_signal, pidfd, 0, 0, 0))
    }),
    ("pidfd_getfd of another process", |outside| on_pidfd(outside, |pidfd| call!(libc::SYS_pidfd_getfd, pidfd, 0, 0))),
    ("process_madvise of another process", |outside| {
        on_pidfd(outside, |pidfd| call!(libc::SYS_process_madvise, pidfd, 0, 0, 20, 0))
    }),
    ("process_mrelease of another process", |outside| {
        on_pidfd(outside, |pidfd| call!(libc::SYS_process_mrelease, pidfd, 0))
    }),
    ("process_vm_readv of another process", |outside| vm(libc::SYS_process_vm_readv, outside)),
    ("process_vm_writev of another process", |outside| vm(libc::SYS_process_vm_writev, outside)),
    ("ptrace of another process", |outside| call!(libc::SYS_ptrace, PTRACE_SEIZE, outside.victim, 0, 0)),
    ("shmget of another process", |outside| call!(libc::SYS_shmget, outside.shared_memory_key, 0, 0)),
    ("shmget of its own", |_| {
        let id = call!(libc::SYS_shmget, 0, 4096, 0o600);
        if id >= 0 {
            call!(libc::SYS_shmctl, id, 0, 0);
        }
        id
    }),
    ("mq_open of another process", |outside| {
        let name = queue_name(outside.shared_memory_key);
        call!(libc::SYS_mq_open, name.as_ptr(), libc::O_RDONLY, 0, 0)
    }),
    ("clone, user namespace", |_| {
        let id = call!(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0);
        if id == 0 {
            // SAFETY: ends the process that was just made, and nothing of it needs cleaning up.
            unsafe { libc::_exit(0) }
        }
        id
    }),
    ("chroot", |_| call!(libc::SYS_chroot, c"/".as_ptr())),
    ("fcntl F_SETLEASE", |_| on_file(|file| call!(libc::SYS_fcntl, file, libc::F_SETLEASE, libc::F_RDLCK))),
    ("fcntl F_NOTIFY", |_| on_file(|file| call!(libc::SYS_fcntl, file, libc::F_NOTIFY, 1))),
    ("setxattr security.capability", |_| set_capability()),
    ("socketpair AF_UNIX", |_| {
        let mut pair = [0_i32; 2];
        call!(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, (&raw mut pair))
    }),
    ("a file of the machine in /proc or /sys, for writing", |outside| any_writable(outside)),
];

static ALL_CPUS: u64 = u64::MAX;
/// The size of the structure, then policy, flags and the rest: all 0.
static USUAL_SCHEDULING: [u32; 12] = [48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
static PRIORITY_0: c_int = 0;
static PRIORITY_1: c_int = 1;
const PTRACE_SEIZE: c_long = 0x4206;

/// Files of the kernel: name, and whether it is opened for reading instead of for writing.
const FILES: &[(&str, bool)] = &[
    ("/dev/fuse", false),
    ("/dev/kmsg", false),
    ("/dev/kvm", false),
    ("/dev/loop-control", false),
    ("/dev/mem", false),
    ("/dev/net/tun", false),
    ("/dev/null", false),
    ("/dev/ptmx", false),
    ("/dev/tty0", false),
    ("/dev/vhost-vsock", false),
    ("/proc/1/environ", true),
    ("/proc/1/mem", true),
    ("/proc/1/oom_score_adj", false),
    ("/proc/acpi/wakeup", false),
    ("/proc/irq/default_smp_affinity", false),
    ("/proc/kcore", true),
    ("/proc/kmsg", true),
    ("/proc/mtrr", false),
    ("/proc/pressure/cpu", false),
    ("/proc/pressure/io", false),
    ("/proc/pressure/memory", false),
    ("/proc/scsi/scsi", false),
    ("/proc/self/attr/current", false),
    ("/proc/self/comm", false),
    ("/proc/self/coredump_filter", false),
    ("/proc/self/gid_map", false),
    ("/proc/self/loginuid", false),
    ("/proc/self/mem", false),
    ("/proc/self/oom_score_adj", false),
    ("/proc/self/setgroups", false),
    ("/proc/self/uid_map", false),
    ("/proc/sys/fs/binfmt_misc/register", false),
    ("/proc/sys/fs/file-max", false),
    ("/proc/sys/kernel/core_pattern", false),
    ("/proc/sys/kernel/hostname", false),
    ("/proc/sys/kernel/modprobe", false),
    ("/proc/sys/kernel/ns_last_pid", false),
    ("/proc/sys/kernel/poweroff_cmd", false),
    ("/proc/sys/net/ipv4/ip_forward", false),
    ("/proc/sys/user/max_user_namespaces", false),
    ("/proc/sys/vm/drop_caches", false),
    ("/proc/sys/vm/overcommit_memory", false),
    ("/proc/sysrq-trigger", false),
    ("/sys/devices/system/cpu/cpu1/online", false),
    ("/sys/fs/cgroup/cgroup.procs", false),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", false),
    ("/sys/kernel/mm/transparent_hugepage/enabled", false),
    ("/sys/kernel/tracing/trace_marker", false),
    ("/sys/kernel/uevent_helper", false),
    ("/sys/power/state", false),
];

/// Tries everything; a line for each: its name, whether it was refused, and the error.
pub fn report(outside: Outside) -> String {
    let mut lines = String::new();
    let mut say = |name: &str, error: c_int| {
        let word = if is_refusal(error) { "refused" } else { "allowed" };
        lines.push_str(&format!("{name}\t{word}\terror {error}\n"));
    };
    for (name, number, [a, b, c, d, e]) in SIMPLE.iter().chain(NEW).chain(SIMPLE_X86) {
        say(name, apart(|| call!(*number, *a, *b, *c, *d, *e)));
    }
    for (name, family, kind) in SOCKETS {
        say(name, apart(|| call!(libc::SYS_socket, *family, *kind, 0)));
    }
    for (name, probe) in OTHERS {
        say(name, apart(|| probe(outside)));
    }
    for (name, reading) in FILES {
        let what = if *reading { format!("{name}, for reading") } else { format!("{name}, for writing") };
        say(&what, apart(|| open(Path::new(name), *reading)));
    }
    lines
}

/// Not permitted, not there, or unknown to this kernel: a command that is told "unknown" can't tell by whom.
fn is_refusal(error: c_int) -> bool {
    [libc::EPERM, libc::EACCES, libc::EROFS, libc::ENOSYS, libc::ENOENT, libc::ESRCH, libc::ENXIO, libc::ENODEV]
        .contains(&error)
        || error == libc::EAFNOSUPPORT
}

/// In a process of its own; its error, or 0.
fn apart(probe: impl FnOnce() -> c_long) -> c_int {
    // SAFETY: this program has one thread, and the child only makes system calls and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let error = if probe() < 0 { Error::last_os_error().raw_os_error().unwrap_or(255) } else { 0 };
        // SAFETY: ends the child at once, without running what the parent would run at its end.
        unsafe { libc::_exit(error) }
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the status outlives the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 255 }
}

fn on_pidfd(outside: Outside, act: impl FnOnce(c_long) -> c_long) -> c_long {
    let pidfd = call!(libc::SYS_pidfd_open, outside.victim, 0);
    if pidfd < 0 { pidfd } else { act(pidfd) }
}

fn on_file(act: impl FnOnce(c_long) -> c_long) -> c_long {
    let path = c"/etc/passwd";
    // SAFETY: the path ends with a zero byte and outlives the call.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) };
    if file < 0 { -1 } else { act(file.into()) }
}

/// On a file of the command's own: the power over all files, as version 2 of the attribute has it.
fn set_capability() -> c_long {
    const VERSION_2_EFFECTIVE: u32 = 0x0200_0001;
    const DAC_OVERRIDE: u32 = 1 << 1;
    let path = c"abide-probe-capability";
    let attribute = [VERSION_2_EFFECTIVE, DAC_OVERRIDE, 0, 0, 0];
    if std::fs::write("abide-probe-capability", "").is_err() {
        return 0;
    }
    let name = c"security.capability";
    let result = call!(libc::SYS_setxattr, path.as_ptr(), name.as_ptr(), attribute.as_ptr(), 20, 0);
    let error = Error::last_os_error().raw_os_error().unwrap_or(0);
    let _gone = std::fs::remove_file("abide-probe-capability");
    // SAFETY: the C library's own variable, set back to what the call left in it.
    unsafe { *libc::__errno_location() = error };
    result
}

fn vm(number: c_long, outside: Outside) -> c_long {
    let mut byte = 0_u8;
    let vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    call!(number, outside.victim, (&raw const vector), 1, (&raw const vector), 1, 0)
}

/// The supervisor is the parent of the command's shell, which is this process's parent, and this is a child of that.
fn parent_of_parent() -> c_long {
    let parent = |pid: &str| -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1).map(str::to_owned)
    };
    let shell = parent("self").and_then(|probes| parent(&probes));
    shell.and_then(|shell| parent(&shell)?.parse().ok()).unwrap_or(1)
}

/// The processes of the caller's own user are too many to try it with. A kernel that looked for those of a user that has
/// none would have found the others.
fn looked_at(result: c_long) -> c_long {
    if result < 0 && Error::last_os_error().raw_os_error() == Some(libc::ESRCH) { 0 } else { result }
}

fn open(path: &Path, reading: bool) -> c_long {
    let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return 0 };
    let how = if reading { libc::O_RDONLY } else { libc::O_WRONLY };
    // SAFETY: the path ends with a zero byte and outlives the call.
    unsafe { libc::open(path.as_ptr(), how | libc::O_NONBLOCK | libc::O_NOCTTY).into() }
}

/// Succeeds if any file there can be opened for writing; names it on standard error.
fn any_writable(outside: Outside) -> c_long {
    let others = [std::process::id().to_string(), outside.victim.to_string(), "1".to_owned()];
    let mut folders = vec![Path::new("/proc").to_path_buf(), Path::new("/sys").to_path_buf()];
    let mut found = -1;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let process = folder == Path::new("/proc") && name.parse::<u32>().is_ok();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && (!process || others.contains(&name)) {
                folders.push(entry.path());
            } else if (kind.is_file() || kind.is_char_device()) && open(&entry.path(), false) >= 0 {
                eprintln!("{} can be opened for writing", entry.path().display());
                found = 0;
            }
        }
    }
    // The error of the last file that was tried may be any.
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = libc::EROFS };
    found
}

fn queue_name(key: c_long) -> CString {
    CString::new(format!("abide-probe-{key}")).unwrap_or_default()
}

/// Stands for any other process of the user: has shared memory and a queue until its input ends.
pub fn be_victim() {
    let key = c_long::from(std::process::id()) | 0x0ab1_0000_0000;
    let key = key & 0x7fff_ffff;
    let id = call!(libc::SYS_shmget, key, 4096, libc::IPC_CREAT | 0o600);
    assert!(id >= 0, "{}", Error::last_os_error());
    let name = queue_name(key);
    let queue = call!(libc::SYS_mq_open, name.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, 0);
    println!("{} {key}", std::process::id());
    if queue < 0 {
        eprintln!("there are no message queues here: {}", Error::last_os_error());
    }
    let _ended = std::io::stdin().read(&mut [0]);
    call!(libc::SYS_shmctl, id, 0, 0);
    call!(libc::SYS_mq_unlink, name.as_ptr());
}

/// Addresses without memory behind them, as runtimes reserve them.
pub fn reserve() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, at no address of ours, that is never touched.
    let reserved = unsafe { libc::mmap(std::ptr::null_mut(), 64 << 30, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(reserved, libc::MAP_FAILED, "{}", Error::last_os_error());
    std::thread::sleep(LONG_ENOUGH);
}

/// Memory that nine processes share, as a server that forks has it.
pub fn share(mib: usize) {
    let shared = vec![1_u8; mib << 20];
    for _ in 0..8 {
        // SAFETY: this program has one thread, and the child only sleeps and ends.
        if unsafe { libc::fork() } == 0 {
            std::thread::sleep(LONG_ENOUGH);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(shared[7]) - 1) }
        }
    }
    std::thread::sleep(LONG_ENOUGH);
    // SAFETY: the children are ours; their status is not wanted.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// A file in memory that has no name and is not mapped.
pub fn memory_file(mib: usize) {
    use std::io::Write;
    // SAFETY: the name ends with a zero byte and outlives the call.
    let file = unsafe { libc::memfd_create(c"probe".as_ptr(), 0) };
    // SAFETY: the descriptor was just made and has no other owner.
    let mut file = unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(file) };
    let block = vec![0_u8; 1 << 20];
    for _ in 0..mib {
        file.write_all(&block).unwrap_or_else(|error| panic!("{error}"));
    }
    std::thread::sleep(std::time::Duration::from_secs(1_000));
}

/// A file that takes its room through a mapping, after which nothing has it open.
pub fn mapped_file(path: &str, mib: usize) {
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len((mib as u64) << 20).unwrap();
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: a new mapping, at no address of ours, of a file that is as long as it.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), mib << 20, rights, libc::MAP_SHARED, descriptor, 0) };
    assert_ne!(mapped, libc::MAP_FAILED, "{}", Error::last_os_error());
    drop(file);
    for page in (0..mib << 20).step_by(4_096) {
        // SAFETY: the page lies in the mapping, which nothing else uses.
        unsafe { mapped.cast::<u8>().add(page).write_volatile(1) };
    }
    std::thread::sleep(std::time::Duration::from_secs(1_000));
}

/// For its supervisor to look more than once.
const LONG_ENOUGH: std::time::Duration = std::time::Duration::from_millis(1_200);
