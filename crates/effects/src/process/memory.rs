//! Measures the memory of processes where no control group counts it. The size of the address space is never used:
//! runtimes reserve far more than they use.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::process_list::ProcessStat;

/// The memory of processes and of these folders, which are in memory too. It is exact only beyond `most`: below that an
/// upper bound is enough, and cheaper.
pub(crate) fn used_bytes(family: &[ProcessStat], folders: &[PathBuf], most: u64) -> u64 {
    let pids: Vec<i32> = family.iter().filter(|one| !one.is_over()).map(|one| one.identity.pid).collect();
    let files = folder_bytes(folders) + memory_file_bytes(&pids) + system_v_bytes();
    let resident: u64 = pids.iter().filter_map(|pid| resident_bytes(*pid)).sum();
    if resident + files <= most {
        return resident + files;
    }
    // Pages that several processes share were counted for each. Mapped files of the disk can be dropped by the kernel
    // and do not count; mapped memory files are among `files`.
    let shares = pids.iter().map(|pid| memory_share(*pid).unwrap_or_default());
    let (own, shared) = shares.fold((0, 0), |(own, shared), one| (own + one.own, shared + one.shared));
    own + files.max(shared)
}

/// The used part of file systems in memory, with something for each file: its name takes memory as well.
pub(crate) fn folder_bytes(folders: &[PathBuf]) -> u64 {
    let used = |folder: &PathBuf| {
        let found = rustix::fs::statvfs(folder).ok()?;
        let files = found.f_files.saturating_sub(found.f_ffree);
        Some(found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize + files * INODE_BYTES)
    };
    folders.iter().filter_map(used).sum()
}

const INODE_BYTES: u64 = 1 << 10;

fn resident_bytes(pid: i32) -> Option<u64> {
    bytes_in(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

/// A line of the kernel's that ends with a number of KiB.
fn bytes_in(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kib << 10)
}

#[derive(Default)]
struct MemoryShare {
    own: u64,
    shared: u64,
}

/// A process's part of its pages, each divided by those that have it.
fn memory_share(pid: i32) -> Option<MemoryShare> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let own = bytes_in(&text, "Pss_Anon:")? + bytes_in(&text, "Swap:").unwrap_or(0);
    Some(MemoryShare { own, shared: bytes_in(&text, "Pss_Shmem:")? })
}

/// Files that live in memory and have no name, each once.
fn memory_file_bytes(pids: &[i32]) -> u64 {
    let mut seen = HashSet::new();
    let mut total = 0;
    for pid in pids {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let unnamed = |link: PathBuf| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:");
            if !fs::read_link(entry.path()).is_ok_and(unnamed) {
                continue;
            }
            let Ok(found) = fs::metadata(entry.path()) else { continue };
            if seen.insert((found.dev(), found.ino())) {
                total += found.blocks() * 512;
            }
        }
    }
    total
}

/// Shared memory of System V in this process's namespace; with the machine's own namespace it is not a command's.
fn system_v_bytes() -> u64 {
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return 0;
    }
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(14)?.parse::<u64>().ok()).sum()
}
