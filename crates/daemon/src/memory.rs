//! Memory that nobody uses any more, given back to the system. The C library keeps what is freed between blocks that are
//! still in use, and after a burst (large answers, long queues) the process would stay as large as it ever was.

use std::time::Duration;

/// Between two looks. A trim that brings nothing makes the pauses longer.
const LOOK: Duration = Duration::from_secs(10);
const LOOK_MAX: Duration = Duration::from_secs(160);

/// A process this much larger than it began is worth a trim, and one that grew by this much since the last.
const WORTH: u64 = 32 << 20;

/// An allocation of this size or more is mapped by itself, and unmapped when it is freed.
#[cfg(target_env = "gnu")]
const MAPPED: i32 = 4 << 20;

/// The free memory that may stay at the end of an arena, where a trim does not reach.
#[cfg(target_env = "gnu")]
const ARENA_END: i32 = 8 << 20;

/// The growth of an arena: each growth is a system call that other threads wait for.
#[cfg(target_env = "gnu")]
const ARENA_GROWTH: i32 = 1 << 20;

/// Until it is dropped.
pub async fn give_back() {
    set_thresholds();
    let Some(smallest) = resident() else { return };
    let mut trims = TrimSchedule { smallest, last: smallest, pause: LOOK };
    loop {
        tokio::time::sleep(trims.pause).await;
        let Some(before) = resident() else { continue };
        if trims.is_due(before) {
            // It may take a while where there is much to look through.
            let trimmed = tokio::task::spawn_blocking(trim).await;
            let after = resident().filter(|_| trimmed.is_ok()).unwrap_or(before);
            tracing::debug!(before, after, "gave memory back");
            trims.record_trim(before, after);
        }
    }
}

/// When memory is worth a look.
#[derive(Debug, PartialEq)]
struct TrimSchedule {
    /// The smallest that the process has been.
    smallest: u64,
    /// How large it was after the last trim.
    last: u64,
    pause: Duration,
}

impl TrimSchedule {
    fn is_due(&mut self, resident: u64) -> bool {
        self.smallest = self.smallest.min(resident);
        let grown = resident >= self.last + WORTH;
        if grown {
            self.pause = LOOK;
        }
        self.last = self.last.min(resident);
        resident >= self.smallest + WORTH
    }

    fn record_trim(&mut self, before: u64, after: u64) {
        self.last = after;
        let brought = before.saturating_sub(after) >= WORTH / 4;
        self.pause = if brought { LOOK } else { (self.pause * 2).min(LOOK_MAX) };
    }
}

/// The memory of this process that is in RAM, in bytes.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "the C library has no other way to be asked, and the call takes no pointer")]
fn trim() {
    // SAFETY: it may be called at any time and from any thread; it moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The C library raises both with the largest allocation that it has freed: after a large answer, every arena would keep
/// twice that at its end, and there is an arena for each thread that was busy.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "the C library has no other way to be told, and the call takes no pointer")]
fn set_thresholds() {
    // SAFETY: it may be called at any time and from any thread; it changes what later calls do.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, ARENA_END);
        libc::mallopt(libc::M_TOP_PAD, ARENA_GROWTH);
    }
}

/// Other C libraries give memory back by themselves.
#[cfg(not(target_env = "gnu"))]
fn trim() {}

#[cfg(not(target_env = "gnu"))]
fn set_thresholds() {}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn trims(last: u64, pause: Duration) -> TrimSchedule {
        TrimSchedule { smallest: 30 * MIB, last: last * MIB, pause }
    }

    #[test]
    fn a_small_process_is_left_alone_and_a_large_one_is_trimmed_less_and_less_often() {
        let mut small = trims(30, LOOK);
        assert!(!small.is_due(50 * MIB));
        let mut large = trims(30, LOOK);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            assert!(large.is_due(200 * MIB));
            large.record_trim(200 * MIB, 199 * MIB);
            pauses.push(large.pause.as_secs());
        }
        assert_eq!(pauses, [20, 40, 80, 160, 160, 160]);
        // It grew, or a trim brought something: the next one comes soon.
        assert!(large.is_due(240 * MIB));
        assert_eq!(large.pause, LOOK);
        large.record_trim(240 * MIB, 60 * MIB);
        assert_eq!((large.last, large.pause), (60 * MIB, LOOK));
    }

    #[test]
    fn the_size_of_a_process_is_known() {
        assert!(resident().is_some_and(|bytes| bytes > MIB));
    }
}
