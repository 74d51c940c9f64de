//! System calls that a confined command may not make, whichever way it is confined. A list of refusals: what a build or
//! a test needs is too much to list, what they never need is not.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use serde::{Deserialize, Serialize};

/// Which sockets may be made. Pairs of connected ones always may: they lead nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    /// Something else bounds where they lead.
    Any,
    /// No local ones: a socket with a path is not a file that rules on files protect, and one of them may belong to a
    /// service that does anything for whoever asks.
    Internet,
    None,
}

/// The machine and its kernel are nobody's workspace; io_uring makes sockets without asking this filter.
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
];

/// The filter, ready to be applied; nothing where this machine's kind is not known to it.
pub(crate) fn program(sockets: Sockets) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    match sockets {
        Sockets::Any => {}
        Sockets::Internet => {
            let other = |family: i32| {
                let family = u64::try_from(family).unwrap_or(u64::MAX);
                SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
            };
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
            let others: Result<Vec<_>, _> = families.into_iter().map(other).collect();
            let rule = others.and_then(SeccompRule::new).map_err(|error| error.to_string())?;
            rules.insert(libc::SYS_socket, vec![rule]);
        }
        Sockets::None => {
            rules.insert(libc::SYS_socket, Vec::new());
        }
    }
    // The same calls once more under the numbers of the x32 ABI, which the kernel counts to the same architecture.
    if cfg!(target_arch = "x86_64") {
        let again: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(again);
    }
    let refuse = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

const X32: i64 = 0x4000_0000;
