//! Measures the use of a disk by a command: the blocks or the inodes below its folders, those of its open files, and
//! the bytes that its processes wrote. Files may change while they are measured, so every figure is an estimate.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use crate::limits;

/// The size of a file in the unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;
/// The owner's right to write, in the mode of a link below `/proc/PID/fd`: the file is open for writing.
const OPEN_FOR_WRITING: u32 = 0o200;

/// A disk runs out of either, and no write of one byte succeeds on a disk that lacks inodes for a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::process) enum Resource {
    Bytes,
    /// Files and folders. File systems that make inodes as they need them, as btrfs does, report none and have no bound.
    Inodes,
}

impl Resource {
    pub(super) const ALL: [Resource; 2] = [Resource::Bytes, Resource::Inodes];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Resource::Bytes => "bytes",
            Resource::Inodes => "inodes",
        }
    }
}

/// A folder, measured.
#[derive(Debug, Default)]
pub(super) struct FolderMeasurement {
    /// Nothing where there is too much to look at, or where a part can't be read: half a sum can't be compared.
    pub tree: Option<FolderUse>,
    /// A share of the entries that were seen, worth mentioning, was created lately.
    pub creates: bool,
}

/// Everything below a folder, in bytes or inodes.
#[derive(Debug, Default)]
pub(super) struct FolderUse {
    pub amount: u64,
    /// Files that were created lately, with the amount of each.
    created: Vec<(SystemTime, u64)>,
}

impl FolderUse {
    pub(super) fn created_since(&self, since: SystemTime) -> u64 {
        self.created.iter().filter(|(at, _)| *at >= since).map(|(_, amount)| amount).sum()
    }
}

/// Everything below a folder that lies on this device.
pub(super) fn measure_folder(
    folder: &Path,
    disk: (u64, Resource),
    since: SystemTime,
    until: Instant,
) -> FolderMeasurement {
    let (mut tree, mut entries) = (FolderUse::default(), 0);
    let whole = add_below(&mut tree, &mut entries, folder, disk, since, until).is_some();
    let created = tree.created.len();
    let creates = created > 0 && created >= entries / limits::DISK_CREATED_PART;
    FolderMeasurement { tree: whole.then_some(tree), creates }
}

/// None where it had to stop.
fn add_below(
    tree: &mut FolderUse,
    entries: &mut usize,
    folder: &Path,
    (device, resource): (u64, Resource),
    since: SystemTime,
    until: Instant,
) -> Option<()> {
    // A file that is renamed meanwhile turns up twice.
    let mut seen = HashSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in present(fs::read_dir(&folder))?.into_iter().flatten() {
            *entries += 1;
            if *entries > limits::DISK_WALK_ENTRIES || Instant::now() >= until {
                return None;
            }
            let Some(found) = present(entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))))? else { continue };
            let (path, found) = found;
            // The names of a file share its blocks, and have one inode together.
            let counts_once = resource == Resource::Inodes || found.nlink() == 1 || found.is_dir();
            if found.dev() != device || counts_once && !seen.insert(found.ino()) {
                continue;
            }
            let amount = match resource {
                Resource::Bytes => share_of_link(&found),
                Resource::Inodes => 1,
            };
            tree.amount += amount;
            if let Some(at) = found.created().ok().filter(|at| *at >= since) {
                tree.created.push((at, amount));
            }
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    Some(())
}

/// The inner `None`: the file is gone by now, and so are its blocks.
fn present<T>(found: io::Result<T>) -> Option<Option<T>> {
    match found {
        Ok(found) => Some(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

/// Each name of a file has its share of the blocks, so that all of them together count once.
fn share_of_link(found: &Metadata) -> u64 {
    let links = if found.is_dir() { 1 } else { found.nlink().max(1) };
    found.blocks() * BLOCK_BYTES / links
}

/// Files of one device that processes have open for writing or have mapped.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// Those that have a name, by inode.
    pub named: HashMap<u64, OpenFile>,
    /// Those that were deleted: no folder shows them, and their blocks are free only when the last process closes them.
    pub deleted: HashMap<u64, OpenFile>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFile {
    pub amount: u64,
    created: Option<SystemTime>,
}

impl OpenFile {
    pub(super) fn created_since(&self, since: SystemTime) -> bool {
        self.created.is_some_and(|at| at >= since)
    }
}

impl OpenFiles {
    pub(super) fn measure(pids: &[i32], disk: (u64, Resource), since: SystemTime, until: Instant) -> OpenFiles {
        let mut files = OpenFiles::default();
        for pid in pids {
            for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
                if Instant::now() >= until {
                    return files;
                }
                let writes = entry.metadata().is_ok_and(|link| link.mode() & OPEN_FOR_WRITING != 0);
                files.add_file(&entry.path(), disk, writes, since);
            }
            for mapped in shared_mappings(*pid) {
                files.add_file(&mapped, disk, true, since);
            }
        }
        files
    }

    /// A file that was there before and is only read is not the command's, even if somebody deleted it.
    fn add_file(&mut self, link: &Path, (device, resource): (u64, Resource), writes: bool, since: SystemTime) {
        let Ok(found) = fs::metadata(link) else { return };
        let amount = match resource {
            Resource::Bytes => found.blocks() * BLOCK_BYTES,
            Resource::Inodes => 1,
        };
        let file = OpenFile { amount, created: found.created().ok() };
        if !found.is_file() || found.dev() != device || !(writes || file.created_since(since)) {
            return;
        }
        let files = if found.nlink() == 0 { &mut self.deleted } else { &mut self.named };
        files.insert(found.ino(), file);
    }

    pub(super) fn deleted_amount(&self) -> u64 {
        self.deleted.values().map(|file| file.amount).sum()
    }
}

/// Links to the files that a process has mapped to write to them. Only the superuser can follow them.
fn shared_mappings(pid: i32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let shared = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let inode = words.nth(2)?;
        let writes = rights.as_bytes().get(1) == Some(&b'w') && rights.ends_with('s');
        (writes && inode != "0").then(|| PathBuf::from(format!("/proc/{pid}/map_files/{range}")))
    });
    shared.collect()
}

/// Bytes that processes wrote, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrittenBytes {
    /// To disks.
    pub stored: u64,
    /// By calls that write, to pipes too: for file systems that the kernel does not count.
    pub called: u64,
}

impl WrittenBytes {
    /// A process that ended is counted with the one that waited for it, so only the sum of all of them says anything.
    pub(super) fn of_processes(pids: &[i32]) -> WrittenBytes {
        pids.iter().filter_map(|pid| written_by(*pid)).fold(WrittenBytes::default(), |sum, one| WrittenBytes {
            stored: sum.stored + one.stored,
            called: sum.called + one.called,
        })
    }

    pub(super) fn since(self, before: WrittenBytes) -> WrittenBytes {
        WrittenBytes {
            stored: self.stored.saturating_sub(before.stored),
            called: self.called.saturating_sub(before.called),
        }
    }
}

fn written_by(pid: i32) -> Option<WrittenBytes> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(WrittenBytes { stored: number("write_bytes:")?, called: number("wchar:")? })
}

/// The size and the free room of a disk, in bytes or inodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskRoom {
    pub free: u64,
    pub used: u64,
    pub reserve: u64,
    /// No command is blamed for less.
    pub least_blamed: u64,
    /// In memory: the kernel counts no bytes that are written to it.
    pub in_memory: bool,
}

impl DiskRoom {
    /// Nothing where the folder is gone, or where its file system has no such bound. `reserve` is the operator's, in
    /// bytes; of inodes the usual part is kept, and none where no bytes are.
    pub(super) fn measure(folder: &Path, resource: Resource, reserve: Option<u64>) -> Option<DiskRoom> {
        const TMPFS: i64 = 0x0102_1994;
        let found = rustix::fs::statvfs(folder).ok()?;
        let (unit, total, available, unused, most) = match resource {
            Resource::Bytes => {
                (found.f_frsize, found.f_blocks, found.f_bavail, found.f_bfree, limits::DISK_RESERVE_BYTES)
            }
            Resource::Inodes if found.f_files == 0 => return None,
            Resource::Inodes => (1, found.f_files, found.f_favail, found.f_ffree, limits::DISK_RESERVE_INODES),
        };
        let usual = most.min(total.saturating_mul(unit) / 100 * limits::DISK_RESERVE_PERCENT);
        let reserve = match (resource, reserve) {
            (Resource::Bytes, Some(reserve)) => reserve,
            (Resource::Inodes, Some(0)) => 0,
            (Resource::Bytes, None) | (Resource::Inodes, Some(_) | None) => usual,
        };
        Some(DiskRoom {
            free: available.saturating_mul(unit),
            used: total.saturating_sub(unused).saturating_mul(unit),
            reserve,
            least_blamed: reserve.min(most) / limits::DISK_BLAME_LEAST_PART,
            #[allow(clippy::useless_conversion, reason = "the type differs between architectures")]
            in_memory: rustix::fs::statfs(folder).is_ok_and(|found| i64::from(found.f_type) == TMPFS),
        })
    }

    pub(super) fn is_short(&self) -> bool {
        self.free < self.reserve
    }

    /// Whether there is so little room that its use is worth measuring.
    pub(super) fn is_near(&self) -> bool {
        self.free <= self.reserve.saturating_mul(limits::DISK_NEAR_TIMES)
    }
}

pub(super) fn device(folder: &Path) -> Option<u64> {
    fs::metadata(folder).ok().map(|found| found.dev())
}
