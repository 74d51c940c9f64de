//! System calls that a confined command may not make. A list of refusals: the calls that builds and tests need are too
//! many to list, the calls that they never need are not. Calls that are newer than this list are unknown to a command:
//! each new kernel brings some, and one of them may do what an older call is refused for. docs/sandbox.md has a table
//! of every call that was tried.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use serde::{Deserialize, Serialize};

/// The system calls of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SystemCalls {
    pub sockets: Sockets,
    pub reach: SignalReach,
    pub modes: FileModes,
}

/// Which sockets may be made. Connected pairs always may: they lead nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    /// Local ones and those of the internet: a network namespace or Landlock bounds where they lead. Not those of
    /// virtual machines (AF_VSOCK), which no namespace bounds, nor any other family.
    Usual,
    /// No local sockets: a socket with a path is not protected by rules on files, and it may belong to a service that
    /// does anything for any client.
    Internet,
    None,
}

/// Which processes a command can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SignalReach {
    /// Its own: it lives in namespaces of its own for processes and for shared memory.
    Namespace,
    /// Every process of its user, so calls that change another process are refused.
    User,
}

/// Bits of a file's mode that a command may not set. A program with them runs as its owner or its group for every user
/// who starts it: it would lend the daemon's user to every user of the machine that can reach the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileModes {
    /// Setuid. Setgid may be set: folders that a group shares have it, `chmod 755` keeps it there, and a filter can't
    /// tell a folder from a program.
    NoSetuid,
    /// Neither: the group of the superuser owns files of the system.
    NoSetuidNorSetgid,
}

impl FileModes {
    pub(crate) fn of_this_user() -> FileModes {
        if rustix::process::geteuid().is_root() { FileModes::NoSetuidNorSetgid } else { FileModes::NoSetuid }
    }

    fn refused_bits(self) -> Vec<u64> {
        match self {
            FileModes::NoSetuid => vec![libc::S_ISUID.into()],
            FileModes::NoSetuidNorSetgid => vec![libc::S_ISUID.into(), libc::S_ISGID.into()],
        }
    }
}

/// Calls that take a mode, and which argument it is. The kernel itself takes these bits from the mode of `mkdir`.
const TAKES_MODE: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that take a mode if their flags say that a file is made: the arguments of the flags and of the mode.
const OPENS: &[(libc::c_long, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Flags with which a file is made. The second is the bit of `O_TMPFILE` that is no other flag's.
const MAKES_FILE: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Numbers that the C library's bindings lack. Since number 424 every architecture has the same ones.
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;
const SYS_LSM_SET_SELF_ATTR: libc::c_long = 460;
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
const SYS_FILE_SETATTR: libc::c_long = 469;

/// The newest call that was looked at.
const NEWEST: libc::c_long = SYS_FILE_SETATTR;

/// The machine and its kernel belong to no workspace. io_uring makes sockets without asking this filter.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    // As the files in /proc/self/attr are read-only.
    SYS_LSM_SET_SELF_ATTR,
    // Mounts and namespaces: the kernel refuses most of these to a process without powers; a user namespace, in which
    // every process has all powers, is refused below.
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Calls that a command is told the kernel does not have, so that the C library and other programs use an older way.
const UNKNOWN: &[libc::c_long] = &[
    // Its flags lie in memory, where a filter can't read them; `clone` has them in an argument.
    libc::SYS_clone3,
    // The mode lies in memory, too; `openat` has it in an argument.
    libc::SYS_openat2,
    // Mounts, of other mount namespaces too; /proc/self/mountinfo has the command's own.
    SYS_LISTMOUNT,
    SYS_STATMOUNT,
    // Memory that nothing counts once it is not mapped any more.
    libc::SYS_memfd_secret,
];

/// Calls that change or watch others of the same user, where those can be named. System V objects are not files, so
/// rules on files do not protect them; inotify, fanotify and file_setattr take a path that a filter can't read.
const REFUSED_AMONG_OTHERS: &[libc::c_long] = &[
    SYS_FILE_SETATTR,
    libc::SYS_fanotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_kcmp,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
];

/// Calls whose first argument is a process, where 0 means the caller. A filter does not know the caller's own id, so
/// where others can be named any other number is refused.
const ON_A_PROCESS: &[libc::c_long] = &[
    libc::SYS_get_robust_list,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls whose first argument says of whom (a process, a group, a user) and whose second is an id; with the number that
/// says "all processes of a user".
const ON_A_GROUP: &[(libc::c_long, u64)] =
    &[(libc::SYS_setpriority, libc::PRIO_USER as u64), (libc::SYS_ioprio_set, IOPRIO_WHO_USER)];

const IOPRIO_WHO_USER: u64 = 3;

/// The supervisor in a namespace of its command.
const FIRST_PROCESS: u64 = 1;

/// Leases hold up others that open a file, and notices tell of changes in folders.
const REFUSED_FCNTL: [libc::c_int; 2] = [libc::F_SETLEASE, libc::F_NOTIFY];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, ready to be applied; nothing where this machine's kind is not known to it.
pub(crate) fn compile_programs(calls: SystemCalls) -> Result<Vec<BpfProgram>, String> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let socket = match calls.sockets {
        Sockets::Usual => outside_of(&[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?,
        Sockets::Internet => outside_of(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?,
        Sockets::None => Vec::new(),
    };
    rules.insert(libc::SYS_socket, socket);
    // In a user namespace of its own a process has all powers over new mounts, control groups among them.
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        let flag = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
        rules.insert(call, vec![make_rule([(0, SeccompCmpOp::MaskedEq(flag), flag)])?]);
    }
    let fcntl = REFUSED_FCNTL.map(|order| make_rule([(1, SeccompCmpOp::Eq, u64::from(order.unsigned_abs()))]));
    rules.insert(libc::SYS_fcntl, fcntl.into_iter().collect::<Result<_, _>>()?);
    // In a namespace too: its supervisor is the first process there.
    rules.insert(libc::SYS_prlimit64, vec![make_rule([(0, SeccompCmpOp::Ne, 0)])?]);
    let others = match calls.reach {
        SignalReach::Namespace => (SeccompCmpOp::Eq, FIRST_PROCESS),
        SignalReach::User => {
            rules.extend(REFUSED_AMONG_OTHERS.iter().map(|call| (*call, Vec::new())));
            (SeccompCmpOp::Ne, 0)
        }
    };
    refuse_on(&mut rules, others)?;
    refuse_modes(&mut rules, calls.modes)?;
    let unknown: Rules = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    Ok(vec![compile_program(rules, libc::EPERM)?, compile_program(unknown, libc::ENOSYS)?, newer_are_unknown()])
}

/// Refuses calls that change the scheduling or the pages of these processes, or of all processes of a user.
fn refuse_on(rules: &mut Rules, (comparison, id): (SeccompCmpOp, u64)) -> Result<(), String> {
    for call in ON_A_PROCESS {
        rules.insert(*call, vec![make_rule([(0, comparison.clone(), id)])?]);
    }
    for (call, user) in ON_A_GROUP {
        let refused = vec![make_rule([(1, comparison.clone(), id)])?, make_rule([(0, SeccompCmpOp::Eq, *user)])?];
        rules.insert(*call, refused);
    }
    Ok(())
}

fn refuse_modes(rules: &mut Rules, modes: FileModes) -> Result<(), String> {
    let bits = modes.refused_bits();
    let has = |argument: u8, bit: u64| (argument, SeccompCmpOp::MaskedEq(bit), bit);
    for (call, mode) in TAKES_MODE {
        let refused = bits.iter().map(|bit| make_rule([has(*mode, *bit)]));
        rules.insert(*call, refused.collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPENS {
        let makes = MAKES_FILE.map(|flag| u64::from(flag.unsigned_abs()));
        let refused =
            makes.iter().flat_map(|flag| bits.iter().map(|bit| make_rule([has(*flags, *flag), has(*mode, *bit)])));
        rules.insert(*call, refused.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Sockets of any family but these.
fn outside_of(families: &[i32]) -> Result<Vec<SeccompRule>, String> {
    let other = |family: &i32| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()));
    Ok(vec![make_rule(families.iter().map(other))?])
}

/// Refused where all of these hold of the arguments. Each of them is an int, so its upper half is not looked at.
fn make_rule(conditions: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>) -> Result<SeccompRule, String> {
    let condition = |(argument, comparison, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value).map_err(|error| error.to_string())
    };
    let conditions: Vec<_> = conditions.into_iter().map(condition).collect::<Result<_, _>>()?;
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn compile_program(rules: Rules, errno: i32) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// Every call with a number above the newest is unknown. The numbers of the x32 ABI are among them, which the kernel
/// counts to the same architecture: under those numbers the calls above could be made past their rules. Calls of other
/// architectures are no matter of this filter: the other filters end the process.
fn newer_are_unknown() -> BpfProgram {
    let statement = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let newest = sock_filter { jf: 1, ..statement(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, NEWEST as u32) };
    vec![
        // The call's number is the first member of what a filter is given.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        newest,
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ]
}
