//! The reserve of a disk, of bytes and of inodes: while commands run, their disks are looked at every second. Below the reserve the command that
//! took the most room lately is ended, one after the other until there is room, and its agent starts no command before.
//! The others go on. Where no command took a fair part of the room, none is ended.

mod blame;
mod measure;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use self::blame::{Accounts, MeasuredCommand};
use self::measure::{DiskRoom, FolderMeasurement, OpenFiles, Resource, WrittenBytes, device};
use super::orders::StopRequest;
use super::process_list::{self, ProcessIdentity, ProcessStat};
use super::{Owner, Shared};
use crate::limits;

/// A disk that has less room than its reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    pub folder: PathBuf,
    resource: Resource,
    free: u64,
    reserve: u64,
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shortage { folder, resource, free, reserve } = self;
        let unit = resource.as_str();
        write!(f, "{free} {unit} are free on the disk of {}, the reserve is {reserve}", folder.display())
    }
}

/// The room that may still be taken of a disk above its reserve, in bytes and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spare {
    pub bytes: u64,
    pub inodes: u64,
}

impl Spare {
    /// Measures the disk of a folder, or of its nearest ancestor that exists. A disk that reports no size has no bound.
    pub(crate) fn measure(folder: &Path, reserve: Option<u64>) -> Spare {
        let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
        let spare = |resource| {
            DiskRoom::measure(there, resource, reserve).map_or(u64::MAX, |room| room.free.saturating_sub(room.reserve))
        };
        Spare { bytes: spare(Resource::Bytes), inodes: spare(Resource::Inodes) }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Disks {
    state: Mutex<State>,
    /// Notified when a disk is short for an agent, and when there is room again.
    room: watch::Sender<()>,
}

/// A disk, by its device, and what of it may run out.
pub(super) type Disk = (u64, Resource);

#[derive(Debug, Default)]
struct State {
    /// A thread surveys the disks.
    watched: bool,
    /// Agents whose command was ended, until there is room.
    short: HashMap<String, Shortage>,
    /// Disks that are short and that no command is to blame for.
    unattributed: HashMap<Disk, Shortage>,
    /// Commands that began since the last survey, with their folders: they may have ended since, too.
    begun: Vec<(ProcessIdentity, Vec<PathBuf>)>,
}

impl Disks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every agent that waits for room.
    pub(crate) fn shortages(&self) -> HashMap<String, Shortage> {
        self.state().short.clone()
    }

    /// Every disk that is short although no command is to blame for it.
    pub(crate) fn unattributed(&self) -> Vec<Shortage> {
        self.state().unattributed.values().cloned().collect()
    }

    /// Rung when one of these changes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.room.subscribe()
    }

    pub(crate) fn shortage(&self, agent: &str) -> Option<Shortage> {
        self.state().short.get(agent).cloned()
    }

    /// Waits until no disk is short for this agent.
    pub(crate) async fn wait_for_room(&self, agent: &str) {
        let mut room = self.room.subscribe();
        while self.shortage(agent).is_some() {
            // The sender is ours; it can't be gone.
            let _here = room.changed().await;
        }
    }
}

/// Looks after the disks of a command that began, until nothing runs and nothing is short.
pub(super) fn watch(owner: &Arc<Owner>, began: &Shared) {
    let mut state = owner.disks.state();
    state.begun.push((began.supervisor, began.folders.clone()));
    if std::mem::replace(&mut state.watched, true) {
        return;
    }
    drop(state);
    let weak = Arc::downgrade(owner);
    let started = std::thread::Builder::new().name("disks".to_owned()).spawn(move || {
        let mut memory = PreviousSurvey::default();
        let mut rest = Duration::from_millis(limits::DISK_LOOK_MS);
        loop {
            std::thread::sleep(rest);
            let looked_at = Instant::now();
            if !survey_disks(&weak, &mut memory) {
                return;
            }
            // A disk with very many files must not keep a processor busy.
            rest = (looked_at.elapsed() * limits::DISK_REST_TIMES).max(Duration::from_millis(limits::DISK_LOOK_MS));
        }
    });
    if started.is_err() {
        owner.disks.state().watched = false;
    }
}

/// Surveys the disks once, and returns whether there is more to survey. It may measure for seconds, and holds neither a
/// lock nor the owner meanwhile: the owner's end is the end of all commands.
fn survey_disks(owner: &Weak<Owner>, memory: &mut PreviousSurvey) -> bool {
    let Some(scene) = owner.upgrade().and_then(|owner| DiskSurvey::take(&owner, memory)) else { return false };
    let verdicts = scene.find_shortages(&mut memory.disks);
    let Some(owner) = owner.upgrade() else { return false };
    apply_verdicts(&owner, &verdicts);
    true
}

/// The state that is kept from one survey to the next.
#[derive(Default)]
struct PreviousSurvey {
    disks: HashMap<Disk, Accounts>,
    /// The commands that ran, with their folders.
    running: Vec<(ProcessIdentity, Vec<PathBuf>)>,
}

/// The input of one survey of the disks.
struct DiskSurvey {
    running: Vec<Arc<Shared>>,
    /// The folders of the commands that ended since the last survey.
    gone: Vec<PathBuf>,
    /// A folder of each disk, and the room there.
    rooms: HashMap<Disk, (PathBuf, DiskRoom)>,
}

impl DiskSurvey {
    /// None if there is nothing to survey any more; the next command starts the survey again.
    fn take(owner: &Owner, memory: &mut PreviousSurvey) -> Option<DiskSurvey> {
        let reserve = owner.bounds.disk_reserve_bytes;
        let is_short = |short: &Shortage| {
            DiskRoom::measure(&short.folder, short.resource, reserve).is_some_and(|room| room.is_short())
        };
        let over: Vec<String> =
            owner.disks.shortages().into_iter().filter(|(_, short)| !is_short(short)).map(|(agent, _)| agent).collect();
        let mut state = owner.disks.state();
        state.short.retain(|agent, _| !over.contains(agent));
        if !over.is_empty() {
            owner.disks.room.send_replace(());
        }
        let running: Vec<Arc<Shared>> = {
            let running = owner.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.iter().filter_map(Weak::upgrade).filter(|shared| shared.ended.borrow().is_none()).collect()
        };
        memory.running.append(&mut state.begun);
        if running.is_empty() && state.short.is_empty() {
            state.watched = false;
            state.unattributed.clear();
            return None;
        }
        drop(state);
        memory.running.retain(|(id, _)| running.iter().all(|shared| shared.supervisor != *id));
        let gone = memory.running.drain(..).flat_map(|(_, folders)| folders).collect();
        memory.running = running.iter().map(|shared| (shared.supervisor, shared.folders.clone())).collect();
        let mut rooms = HashMap::new();
        let folders = running.iter().flat_map(|shared| &shared.folders).chain([&owner.home]);
        for folder in folders {
            let Some(device) = device(folder) else { continue };
            for resource in Resource::ALL {
                if let Some(room) = DiskRoom::measure(folder, resource, reserve) {
                    rooms.entry((device, resource)).or_insert_with(|| (folder.clone(), room));
                }
            }
        }
        Some(DiskSurvey { running, gone, rooms })
    }

    /// The disks that are short, each with the command to end, if there is one.
    fn find_shortages(&self, disks: &mut HashMap<Disk, Accounts>) -> Vec<DiskVerdict> {
        let now = SystemTime::now();
        disks.retain(|disk, _| self.rooms.contains_key(disk));
        let mut processes = None;
        let mut verdicts = Vec::new();
        for (disk, (folder, room)) in &self.rooms {
            let accounts = disks.entry(*disk).or_default();
            // With plenty of room it does not matter which command takes it.
            if !room.is_near() || !room.is_short() && accounts.are_old(now) {
                accounts.restart(now, room);
                continue;
            }
            let all = processes.get_or_insert_with(process_list::list_processes);
            let blame = self.find_blamed(*disk, room, accounts, all);
            if room.is_short() {
                let (folder, resource) = (folder.clone(), disk.1);
                let short = Shortage { folder, resource, free: room.free, reserve: room.reserve };
                verdicts.push(DiskVerdict { disk: *disk, short, blame });
            }
        }
        verdicts
    }

    fn find_blamed(&self, disk: Disk, room: &DiskRoom, accounts: &mut Accounts, all: &[ProcessStat]) -> Blame {
        let (device, resource) = disk;
        let near: Vec<(&Arc<Shared>, Vec<&Path>)> =
            self.running.iter().map(|shared| (shared, folders_on(device, shared))).collect();
        let near: Vec<_> = near.into_iter().filter(|(_, folders)| !folders.is_empty()).collect();
        let Some((first, _)) = near.iter().min_by_key(|(shared, _)| shared.began) else { return Blame::Nobody };
        let lost = accounts.used_more((first.began, first.used_before.get(&disk).copied().unwrap_or(room.used)), room);
        let walks = measure_folders(disk, accounts.since(first.began), near.iter().flat_map(|(_, folders)| folders));
        let found: Vec<MeasuredCommand<'_>> = near
            .iter()
            .map(|(shared, folders)| {
                let roots = [shared.supervisor.pid];
                let family = process_list::descendants(all, &roots.into()).into_iter().map(|one| one.identity.pid);
                let pids: Vec<i32> = roots.into_iter().chain(family).collect();
                let until = Instant::now() + Duration::from_millis(limits::DISK_WALK_MOST_MS);
                MeasuredCommand {
                    id: shared.supervisor,
                    agent: &shared.agent,
                    began: shared.began,
                    confined: shared.confined,
                    folders: folders.iter().map(|folder| (*folder, walks[folder].tree.as_ref())).collect(),
                    open: OpenFiles::measure(&pids, disk, accounts.since(shared.began), until),
                    written: match resource {
                        Resource::Bytes => WrittenBytes::of_processes(&pids),
                        Resource::Inodes => WrittenBytes::default(),
                    },
                    creates_uncounted: resource == Resource::Inodes
                        && folders.iter().any(|folder| walks[folder].tree.is_none() && walks[folder].creates),
                }
            })
            .collect();
        let taken = accounts.settle(&found, &self.gone, room, lost);
        if near.iter().any(|(shared, _)| shared.for_disk().is_some()) {
            return Blame::Ending;
        }
        match blame::choose_command(&found, &taken, room, lost) {
            Some((nth, amount)) => Blame::Command(Arc::clone(near[nth].0), amount),
            None => Blame::Nobody,
        }
    }
}

/// The used amount of each disk of these folders.
pub(super) fn used_amounts(folders: &[PathBuf]) -> HashMap<Disk, u64> {
    let of = |folder: &PathBuf, resource| {
        Some(((device(folder)?, resource), DiskRoom::measure(folder, resource, None)?.used))
    };
    folders.iter().flat_map(|folder| Resource::ALL.map(|resource| of(folder, resource))).flatten().collect()
}

/// The folders of a command that lie on this disk.
fn folders_on(device: u64, shared: &Shared) -> Vec<&Path> {
    shared.folders.iter().map(PathBuf::as_path).filter(|folder| self::device(folder) == Some(device)).collect()
}

/// Each folder measured once, with a fair part of the time for each.
fn measure_folders<'a>(
    disk: Disk,
    since: SystemTime,
    folders: impl Iterator<Item = &'a &'a Path>,
) -> HashMap<&'a Path, FolderMeasurement> {
    let mut walks: HashMap<&Path, FolderMeasurement> =
        folders.map(|folder| (*folder, FolderMeasurement::default())).collect();
    let part = limits::DISK_WALK_ALL_MS / (walks.len() as u64).max(1);
    let part = Duration::from_millis(part.clamp(limits::DISK_WALK_LEAST_MS, limits::DISK_WALK_MOST_MS));
    for (folder, walk) in &mut walks {
        *walk = measure::measure_folder(folder, disk, since, Instant::now() + part);
    }
    walks
}

/// A disk that is short.
struct DiskVerdict {
    disk: Disk,
    short: Shortage,
    blame: Blame,
}

enum Blame {
    /// It took that much, more than any other.
    Command(Arc<Shared>, u64),
    /// A command is about to end for this disk already.
    Ending,
    /// No command took a fair part of the room.
    Nobody,
}

/// Ends the commands that are to blame, and records the agents that wait for room.
fn apply_verdicts(owner: &Owner, verdicts: &[DiskVerdict]) {
    let mut state = owner.disks.state();
    let has_waiting: Vec<Disk> =
        state.short.values().filter_map(|short| Some((device(&short.folder)?, short.resource))).collect();
    let mut changed = false;
    state.unattributed.retain(|disk, _| verdicts.iter().any(|verdict| verdict.disk == *disk));
    for DiskVerdict { disk, short, blame } in verdicts {
        match blame {
            Blame::Command(shared, amount) => {
                let unit = short.resource.as_str();
                let evidence =
                    format!("disk_reserve: {short}; it took {amount} {unit} of it lately, more than any other command");
                *shared.for_disk() = Some(evidence);
                state.short.insert(shared.agent.clone(), short.clone());
                state.unattributed.remove(disk);
                shared.request_stop(StopRequest::Kill);
                changed = true;
            }
            Blame::Nobody if !has_waiting.contains(disk) && !state.unattributed.contains_key(disk) => {
                state.unattributed.insert(*disk, short.clone());
                changed = true;
            }
            Blame::Nobody | Blame::Ending => {}
        }
    }
    drop(state);
    if changed {
        owner.disks.room.send_replace(());
    }
}
