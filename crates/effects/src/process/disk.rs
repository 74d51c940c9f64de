//! The reserve of a disk: while commands run, their disks are looked at every second. Below the reserve the command that
//! wrote the most lately is ended, one after the other until there is room, and its agent starts no command before. The
//! others go on.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::orders::Ask;
use super::{Owner, Shared, family};
use crate::limits;

/// A disk that has less room than its reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    pub folder: PathBuf,
    pub free_bytes: u64,
    pub reserve_bytes: u64,
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shortage { folder, free_bytes, reserve_bytes } = self;
        write!(f, "{free_bytes} bytes are free on the disk of {}, the reserve is {reserve_bytes}", folder.display())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Disks {
    state: Mutex<State>,
    /// Rung when a disk is short for somebody, and when there is room again.
    room: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// A thread looks.
    watched: bool,
    /// Agents whose command was ended, until there is room.
    short: HashMap<String, Shortage>,
    /// What each process had written when it was last looked at.
    written: HashMap<i32, Written>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// To disks, as the kernel counts it.
    stored: u64,
    /// By calls that write, to pipes too: for file systems that the kernel does not count.
    called: u64,
}

impl Disks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every agent that waits for room.
    pub(crate) fn shortages(&self) -> HashMap<String, Shortage> {
        self.state().short.clone()
    }

    /// Rung when that changes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.room.subscribe()
    }

    pub(crate) fn shortage(&self, agent: &str) -> Option<Shortage> {
        self.state().short.get(agent).cloned()
    }

    /// Comes back when nothing is short for this agent; at once where nothing is.
    pub(crate) async fn room(&self, agent: &str) {
        let mut room = self.room.subscribe();
        while self.shortage(agent).is_some() {
            // The sender is ours; it can't be gone.
            let _here = room.changed().await;
        }
    }
}

/// From now on until nothing runs and nothing is short.
pub(super) fn watch(owner: &Arc<Owner>) {
    if std::mem::replace(&mut owner.disks.state().watched, true) {
        return;
    }
    let weak = Arc::downgrade(owner);
    let started = std::thread::Builder::new().name("disks".to_owned()).spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(limits::DISK_LOOK_MS));
            let Some(owner) = weak.upgrade() else { return };
            if !look(&owner) {
                return;
            }
        }
    });
    if started.is_err() {
        owner.disks.state().watched = false;
    }
}

/// Whether there is more to look at.
fn look(owner: &Owner) -> bool {
    let running: Vec<Arc<Shared>> = {
        let running = owner.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().filter_map(Weak::upgrade).filter(|shared| shared.ended.borrow().is_none()).collect()
    };
    let mut state = owner.disks.state();
    let before = state.short.len();
    let reserve = owner.bounds.disk_reserve_bytes;
    state.short.retain(|_, short| Room::of(&short.folder, reserve).is_some_and(|room| room.free < room.reserve));
    if state.short.len() < before {
        owner.disks.room.send_replace(());
    }
    if running.is_empty() && state.short.is_empty() {
        state.watched = false;
        return false;
    }
    let mut rooms: HashMap<u64, (PathBuf, Room)> = HashMap::new();
    let folders = running.iter().map(|shared| shared.root.as_path()).chain([owner.home.as_path()]);
    for folder in folders {
        if let (Some(device), Some(room)) = (device(folder), Room::of(folder, reserve)) {
            rooms.entry(device).or_insert_with(|| (folder.to_path_buf(), room));
        }
    }
    // With plenty of room nobody needs to know who writes.
    if rooms.values().all(|(_, room)| room.free > room.reserve.saturating_mul(limits::DISK_NEAR_TIMES)) {
        state.written.clear();
        return true;
    }
    let lately = lately(&mut state, &running);
    let before = state.short.len();
    for (device, (folder, room)) in rooms.into_iter().filter(|(_, (_, room))| room.free < room.reserve) {
        let short = Shortage { folder, free_bytes: room.free, reserve_bytes: room.reserve };
        end_one(&mut state, &running, &lately, device, &short);
    }
    if state.short.len() > before {
        owner.disks.room.send_replace(());
    }
    true
}

/// The one that wrote the most, unless one is about to end already.
fn end_one(state: &mut State, running: &[Arc<Shared>], lately: &[Written], device: u64, short: &Shortage) {
    let near: Vec<(&Arc<Shared>, Written)> = running
        .iter()
        .zip(lately.iter().copied())
        .filter(|(shared, _)| self::device(&shared.root) == Some(device))
        .collect();
    if near.iter().any(|(shared, _)| shared.for_disk().is_some()) {
        return;
    }
    let counted = near.iter().any(|(_, written)| written.stored > 0);
    let amount = |written: &Written| if counted { written.stored } else { written.called };
    let Some((shared, written)) = near.iter().max_by_key(|(_, written)| amount(written)) else { return };
    let bytes = amount(written);
    if bytes == 0 {
        return;
    }
    let evidence = format!("disk_reserve: {short}; it wrote {bytes} bytes lately, more than any other command");
    *shared.for_disk() = Some(evidence);
    state.short.insert(shared.agent.clone(), short.clone());
    shared.ask(Ask::Kill);
}

/// What each command wrote since it was last looked at.
fn lately(state: &mut State, running: &[Arc<Shared>]) -> Vec<Written> {
    let all = family::everyone();
    let mut seen = HashMap::new();
    let written = running.iter().map(|shared| {
        let family = family::descendants(&all, &[shared.supervisor.pid].into());
        family.iter().fold(Written::default(), |sum, one| {
            let pid = one.member.pid;
            let now = written_by(pid).unwrap_or_default();
            let before = state.written.get(&pid).copied().unwrap_or_default();
            seen.insert(pid, now);
            Written {
                stored: sum.stored + now.stored.saturating_sub(before.stored),
                called: sum.called + now.called.saturating_sub(before.called),
            }
        })
    });
    let written = written.collect();
    state.written = seen;
    written
}

fn written_by(pid: i32) -> Option<Written> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Written { stored: number("write_bytes:")?, called: number("wchar:")? })
}

fn device(folder: &Path) -> Option<u64> {
    fs::metadata(folder).ok().map(|found| found.dev())
}

#[derive(Debug, Clone, Copy)]
struct Room {
    free: u64,
    reserve: u64,
}

impl Room {
    /// Nothing where the folder is gone.
    fn of(folder: &Path, reserve: Option<u64>) -> Option<Room> {
        let found = rustix::fs::statvfs(folder).ok()?;
        let total = found.f_blocks.saturating_mul(found.f_frsize);
        let usual = limits::DISK_RESERVE_BYTES.min(total / 100 * limits::DISK_RESERVE_PERCENT);
        Some(Room { free: found.f_bavail.saturating_mul(found.f_frsize), reserve: reserve.unwrap_or(usual) })
    }
}
