//! Attributes the loss of room on a disk to commands. It decides from measured figures alone, and prefers to blame no
//! command over the wrong one: ending a command gives no room back by itself, it only keeps the command from taking
//! more.
//!
//! A confined command can take room below its own folders only, however it does it: by writing, by allocating
//! (`fallocate`), through a mapping, or in files that it deleted and keeps open. So the growth of its folders is what it
//! took. That does not tell apart commands which share a folder, nor does it tell anything where the folders could not
//! be measured. There the bytes that processes wrote and the files that they have open say who it was; they never count
//! for more than there is to explain.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::measure::{DiskRoom, FolderUse, OpenFiles, WrittenBytes};
use crate::limits;
use crate::process::process_list::ProcessIdentity;

/// A command as it was measured in one survey of a disk.
#[derive(Debug)]
pub(super) struct MeasuredCommand<'a> {
    pub id: ProcessIdentity,
    pub agent: &'a str,
    pub began: SystemTime,
    /// It can write to its folders only.
    pub confined: bool,
    /// Its folders on this disk. Nothing for one that could not be measured.
    pub folders: Vec<(&'a Path, Option<&'a FolderUse>)>,
    pub open: OpenFiles,
    /// Bytes; inodes are not counted by anybody.
    pub written: WrittenBytes,
    /// In a folder that holds too many files to count them, files were seen that were created lately.
    pub creates_uncounted: bool,
}

/// The room that a command took, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoomTaken {
    pub amount: u64,
    /// The part of it that its own processes are known to have written or to hold.
    evident: u64,
}

/// One disk, since it had more room than anybody needs to look at, or since a while ago.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// The last look before: when it was, and how much of the disk was used.
    last: Option<(SystemTime, u64)>,
    commands: HashMap<ProcessIdentity, Account>,
}

/// The figures of a command when it was first measured; what it is known to have created by then is left out of them.
#[derive(Debug)]
struct Account {
    folders: HashMap<PathBuf, FolderLevel>,
    deleted: u64,
    named: HashMap<u64, u64>,
    written: WrittenBytes,
}

#[derive(Debug, Clone, Copy)]
struct FolderLevel {
    first: u64,
    /// The same when a command that shared the folder ended: growth up to then may have been that one's.
    excused: u64,
}

/// The clock that dates files is that much coarser than the one that dates commands.
const COARSE: Duration = Duration::from_millis(20);

impl Accounts {
    /// Starts anew: no earlier growth counts against a command.
    pub(super) fn restart(&mut self, now: SystemTime, room: &DiskRoom) {
        self.last = Some((now, room.used));
        self.commands.clear();
    }

    /// Whether the accounts go back too far for a disk that has its reserve: "lately" is meant.
    pub(super) fn are_old(&self, now: SystemTime) -> bool {
        let age = self.last.and_then(|(at, _)| now.duration_since(at).ok());
        age.is_some_and(|age| age > limits::DISK_LATELY)
    }

    /// From when on files count as created by a command that began then.
    pub(super) fn since(&self, began: SystemTime) -> SystemTime {
        let since = self.last.map_or(began, |(at, _)| at.max(began));
        since.checked_sub(COARSE).unwrap_or(since)
    }

    /// A disk that was never looked at is looked at from the moment its first command began. Says how much more of it is
    /// used than when the least was.
    pub(super) fn used_more(&mut self, first: (SystemTime, u64), room: &DiskRoom) -> u64 {
        let (_, used) = self.last.get_or_insert(first);
        *used = room.used.min(*used);
        room.used - *used
    }

    /// The amount that each command took. `gone` are the folders of the commands that ended since the last survey.
    pub(super) fn settle(
        &mut self,
        found: &[MeasuredCommand<'_>],
        gone: &[PathBuf],
        room: &DiskRoom,
        lost: u64,
    ) -> Vec<RoomTaken> {
        let running: HashSet<ProcessIdentity> = found.iter().map(|one| one.id).collect();
        self.commands.retain(|id, _| running.contains(id));
        for one in found {
            self.open_account(one, gone);
        }
        let written: Vec<WrittenBytes> =
            found.iter().map(|one| one.written.since(self.commands[&one.id].written)).collect();
        // File systems whose writes the kernel does not count.
        let by_calls = room.in_memory || written.iter().all(|written| written.stored == 0);
        let written: Vec<u64> =
            written.iter().map(|written| if by_calls { written.called } else { written.stored }).collect();
        let mut taken: Vec<RoomTaken> = found
            .iter()
            .zip(&written)
            .map(|(one, written)| self.commands[&one.id].taken(one, found, *written))
            .collect();
        let unexplained = lost.saturating_sub(explained_amount(found, &taken));
        for ((one, taken), written) in found.iter().zip(&mut taken).zip(written) {
            if !one.confined || one.folders.iter().any(|(_, tree)| tree.is_none()) {
                let elsewhere = if one.creates_uncounted { unexplained } else { written.min(unexplained) };
                *taken = RoomTaken { amount: taken.amount.max(elsewhere), evident: taken.evident.max(elsewhere) };
            }
        }
        taken
    }

    /// Opens an account where there is none, and excuses growth in the folders of commands that ended.
    fn open_account(&mut self, one: &MeasuredCommand<'_>, gone: &[PathBuf]) {
        let since = self.since(one.began);
        let is_new = self.last.is_none_or(|(at, _)| one.began >= at);
        let account = self.commands.entry(one.id).or_insert_with(|| Account {
            folders: HashMap::new(),
            deleted: one.open.deleted.values().filter(|file| !file.created_since(since)).map(|file| file.amount).sum(),
            named: HashMap::new(),
            written: if is_new { WrittenBytes::default() } else { one.written },
        });
        for (inode, file) in &one.open.named {
            let before = if file.created_since(since) { 0 } else { file.amount };
            account.named.entry(*inode).or_insert(before);
        }
        for (folder, tree) in one.folders.iter().filter_map(|(folder, tree)| Some((folder, (*tree)?))) {
            let first = tree.amount.saturating_sub(tree.created_since(since));
            let level = account.folders.entry(folder.to_path_buf()).or_insert(FolderLevel { first, excused: first });
            if gone.iter().any(|other| overlap(folder, other)) {
                level.excused = tree.amount;
            }
        }
    }
}

impl Account {
    fn taken(&self, one: &MeasuredCommand<'_>, all: &[MeasuredCommand<'_>], written: u64) -> RoomTaken {
        let deleted = one.open.deleted_amount();
        // Of all its folders, and of those that no other agent's command has.
        let (mut now, mut first) = (deleted, self.deleted);
        let (mut own_now, mut own_first) = (deleted, self.deleted);
        for (folder, tree) in &one.folders {
            let (Some(tree), Some(level)) = (tree, self.folders.get(*folder)) else { continue };
            now += tree.amount;
            first += level.first;
            let is_contested = |other: &&MeasuredCommand<'_>| {
                other.agent != one.agent && other.folders.iter().any(|(theirs, _)| overlap(folder, theirs))
            };
            if !all.iter().any(|other| is_contested(&other)) {
                own_now += tree.amount;
                own_first += level.excused;
            }
        }
        let held: u64 = one.open.named.iter().map(|(inode, file)| file.amount.saturating_sub(self.named[inode])).sum();
        let evident = held + deleted.saturating_sub(self.deleted) + written;
        let evident = evident.min(now.saturating_sub(first));
        RoomTaken { amount: evident.max(own_now.saturating_sub(own_first)), evident }
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The amount that all agents explain together: the commands of one agent see the same folders grow.
fn explained_amount(found: &[MeasuredCommand<'_>], taken: &[RoomTaken]) -> u64 {
    let mut agents: HashMap<&str, u64> = HashMap::new();
    for (one, taken) in found.iter().zip(taken) {
        let most = agents.entry(one.agent).or_default();
        *most = taken.amount.max(*most);
    }
    agents.values().sum()
}

/// The command to end, with the amount that it took. None if no command took a fair part of the missing room: then
/// another program did, and commands that took little are not ended.
pub(super) fn choose_command(
    found: &[MeasuredCommand<'_>],
    taken: &[RoomTaken],
    room: &DiskRoom,
    lost: u64,
) -> Option<(usize, u64)> {
    let missing = lost.max(room.reserve.saturating_sub(room.free));
    // Many that take little each may fill a disk, too.
    let filled_by_all = explained_amount(found, taken) >= missing / 2;
    let is_to_blame = |one: &RoomTaken| {
        one.amount >= room.least_blamed && (filled_by_all || one.amount >= missing / limits::DISK_BLAME_PART)
    };
    let (largest, _) = taken.iter().enumerate().max_by_key(|(_, one)| one.amount)?;
    // The commands of one agent see the same folders grow. Among them it is the one that is known to have written a fair
    // part of that, or else the last that began.
    let evident = |one: &RoomTaken| if one.evident >= one.amount / limits::DISK_BLAME_PART { one.evident } else { 0 };
    let of_agent = taken.iter().enumerate().filter(|(nth, _)| found[*nth].agent == found[largest].agent);
    let blamed = of_agent.filter(|(_, one)| is_to_blame(one));
    let (nth, one) = blamed.max_by_key(|(nth, one)| (evident(one), found[*nth].began))?;
    Some((nth, one.amount))
}
