//! System calls that a confined command may not make. A list of refusals: the calls that builds and tests need are too
//! many to list, the calls that they never need are not. docs/sandbox.md has a table of every call that was tried.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use serde::{Deserialize, Serialize};

/// The system calls of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SystemCalls {
    pub sockets: Sockets,
    pub reach: Reach,
}

/// Which sockets may be made. Connected pairs always may: they lead nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    /// Local ones and those of the internet: a network namespace or Landlock bounds where they lead. Not those of
    /// virtual machines (AF_VSOCK), which no namespace bounds, nor any other family.
    Usual,
    /// No local ones: a socket with a path is not a file that rules on files protect, and one of them may belong to a
    /// service that does anything for whoever asks.
    Internet,
    None,
}

/// Which processes a command can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reach {
    /// Its own: it lives in namespaces of its own for processes and for shared memory.
    Namespace,
    /// Every process of its user, so calls that change another process are refused.
    User,
}

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
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Calls that change or watch others of the same user, where those can be named. System V objects are not files, so
/// rules on files do not protect them; inotify and fanotify take a path that a filter can't read.
const REFUSED_AMONG_OTHERS: &[libc::c_long] = &[
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
/// any other number is refused.
const ONLY_ON_ITSELF: &[libc::c_long] = &[
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
const ONLY_ON_ITS_GROUP: &[(libc::c_long, u64)] =
    &[(libc::SYS_setpriority, libc::PRIO_USER as u64), (libc::SYS_ioprio_set, IOPRIO_WHO_USER)];

const IOPRIO_WHO_USER: u64 = 3;

/// Leases hold up others that open a file, and notices tell of changes in folders.
const REFUSED_FCNTL: [libc::c_int; 2] = [libc::F_SETLEASE, libc::F_NOTIFY];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, ready to be applied; nothing where this machine's kind is not known to it.
pub(crate) fn programs(calls: SystemCalls) -> Result<Vec<BpfProgram>, String> {
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
        rules.insert(call, vec![rule([(0, SeccompCmpOp::MaskedEq(flag), flag)])?]);
    }
    let fcntl = REFUSED_FCNTL.map(|order| rule([(1, SeccompCmpOp::Eq, u64::from(order.unsigned_abs()))]));
    rules.insert(libc::SYS_fcntl, fcntl.into_iter().collect::<Result<_, _>>()?);
    // In a namespace too: its supervisor is the first process there.
    rules.insert(libc::SYS_prlimit64, vec![rule([(0, SeccompCmpOp::Ne, 0)])?]);
    match calls.reach {
        Reach::Namespace => {}
        Reach::User => refuse_others(&mut rules)?,
    }
    // The flags of clone3 lie in memory, where a filter can't read them. Told that the kernel does not have this call,
    // the C library uses clone.
    let unknown: Rules = [(libc::SYS_clone3, Vec::new())].into();
    Ok(vec![program(rules, libc::EPERM)?, program(unknown, libc::ENOSYS)?])
}

fn refuse_others(rules: &mut Rules) -> Result<(), String> {
    rules.extend(REFUSED_AMONG_OTHERS.iter().map(|call| (*call, Vec::new())));
    for call in ONLY_ON_ITSELF {
        rules.insert(*call, vec![rule([(0, SeccompCmpOp::Ne, 0)])?]);
    }
    for (call, user) in ONLY_ON_ITS_GROUP {
        let refused = vec![rule([(1, SeccompCmpOp::Ne, 0)])?, rule([(0, SeccompCmpOp::Eq, *user)])?];
        rules.insert(*call, refused);
    }
    Ok(())
}

/// Sockets of any family but these.
fn outside_of(families: &[i32]) -> Result<Vec<SeccompRule>, String> {
    let other = |family: &i32| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()));
    Ok(vec![rule(families.iter().map(other))?])
}

/// Refused where all of these hold of the arguments. Each of them is an int, so its upper half is not looked at.
fn rule(conditions: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>) -> Result<SeccompRule, String> {
    let condition = |(argument, comparison, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value).map_err(|error| error.to_string())
    };
    let conditions: Vec<_> = conditions.into_iter().map(condition).collect::<Result<_, _>>()?;
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn program(mut rules: Rules, errno: i32) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    // The same calls once more under the numbers of the x32 ABI, which the kernel counts to the same architecture.
    if cfg!(target_arch = "x86_64") {
        let again: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(again);
    }
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

const X32: i64 = 0x4000_0000;
