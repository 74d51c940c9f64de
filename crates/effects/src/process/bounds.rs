//! Bounds on the resources of commands.

use std::fs;

use crate::limits;

/// The operator's settings, or half of the machine's memory and a usual scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// All commands of one agent together, where a control group counts; else each command.
    pub memory_bytes: u64,
    /// Every private folder in memory of one command, together.
    pub scratch_bytes: u64,
    /// The room that stays free on the disks of commands and of the home. None: 512 MiB, or 3 % of a smaller disk.
    pub disk_reserve_bytes: Option<u64>,
    /// Files that a process of a command may have open, unless it asks for more: its soft limit. Nothing: that of this
    /// process.
    pub open_files: Option<u64>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            memory_bytes: half_of_memory(),
            scratch_bytes: limits::SCRATCH_BYTES,
            disk_reserve_bytes: None,
            open_files: None,
        }
    }
}

/// Of the memory that there is for this process: a container may have less than its machine.
#[must_use]
pub fn half_of_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine =
        machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    let machine = machine.map_or(limits::MEMORY_UNKNOWN_BYTES, |kib: u64| kib << 10);
    let contained = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let contained = contained.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).min();
    contained.map_or(machine, |most: u64| most.min(machine)) / 2
}
