//! Marks on folders by which the daemons of one machine, each with a home of its own, see that the other has an agent in
//! the same folder, inside it or around it.
//!
//! A mark is a read lock of the operating system's kernel on a byte of the opened folder. Read locks exclude no
//! process, and programs that lock the folder with `flock` are not blocked by them; but a query whether a write lock
//! would be possible reports them. So a daemon sets its marks first and looks afterwards: of two that come at the same
//! time at least one sees the other. Nothing is written, and the marks go with the process that set them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::file_identity::open_unlinked;

/// Bytes below this one say that an agent works in this folder.
const INSIDE: i64 = 1 << 40;
/// A process has this many names, so that two homes in one process, or in two containers, differ.
const NAMES: i64 = 1 << 16;

/// The owner of marks: a process, and one of its homes.
#[derive(Debug, Clone, Copy)]
pub struct MarkOwner(i64);

/// The marks of one folder that is worked in. Dropping them takes them away.
#[derive(Debug)]
pub struct FolderMarks(Vec<Mark>);

/// Another daemon's agent is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignHolder {
    /// The folder that both of them mean, or the one of them that lies around the other.
    pub folder: PathBuf,
    /// The daemon's process, by the number that it has itself.
    pub pid: u32,
}

#[derive(Debug)]
struct Mark {
    file: File,
    byte: i64,
}

impl MarkOwner {
    /// `salt` distinguishes owners with the same process id.
    #[must_use]
    pub fn new(salt: u64) -> MarkOwner {
        let salt = i64::try_from(salt % NAMES.unsigned_abs()).unwrap_or_default();
        MarkOwner(i64::from(std::process::id()) * NAMES + salt)
    }

    /// Marks the folder, and everything around it as having one inside. Blocks for a moment.
    pub fn mark_folder(self, folder: &Path) -> io::Result<Result<FolderMarks, ForeignHolder>> {
        let mut marks = FolderMarks(Vec::new());
        for (depth, at) in folder.ancestors().enumerate() {
            let Some(file) = open_markable(at)? else { continue };
            let byte = if depth == 0 { self.0 } else { INSIDE + self.0 };
            // Not every file system has locks on folders. Where there are none, the daemons do not see each other.
            if !set_lock(&file, libc::F_RDLCK, byte) {
                continue;
            }
            let mark = Mark { file, byte };
            let found = self.find_others(&mark.file, depth);
            marks.0.push(mark);
            if let Some(pid) = found {
                return Ok(Err(ForeignHolder { folder: at.to_path_buf(), pid }));
            }
        }
        Ok(Ok(marks))
    }

    /// The other daemon that is in the folder, inside it or around it, as far as can be seen without a mark. Blocks for
    /// a moment.
    #[must_use]
    pub fn find_foreign_holder(self, folder: &Path) -> Option<ForeignHolder> {
        folder.ancestors().enumerate().find_map(|(depth, at)| {
            let file = open_markable(at).ok()??;
            self.find_others(&file, depth).map(|pid| ForeignHolder { folder: at.to_path_buf(), pid })
        })
    }

    /// In the folder itself, both kinds of marks conflict; around it, only those of a daemon that works there.
    fn find_others(self, file: &File, depth: usize) -> Option<u32> {
        let there = self.find_other(file, 0, INSIDE);
        if depth == 0 { there.or_else(|| self.find_other(file, INSIDE, 2 * INSIDE)) } else { there }
    }

    /// The process of another owner with a mark in this range.
    fn find_other(self, file: &File, from: i64, to: i64) -> Option<u32> {
        let own = from + self.0;
        let byte = first_mark(file, from, own).or_else(|| first_mark(file, own + 1, to))?;
        u32::try_from((byte % INSIDE) / NAMES).ok()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Unlocked explicitly, because a process that is just being started has the folder open for a moment as well. A failure
        // leaves the mark until the file is closed, which is next.
        let _taken_away = set_lock(&self.file, libc::F_UNLCK, self.byte);
    }
}

/// Through no link. None where there is nothing that could be marked: it is gone, or not ours to open.
fn open_markable(folder: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open_unlinked(folder).and_then(|at| rustix::fs::openat(at, ".", flags, Mode::empty()));
    match opened {
        Ok(opened) => Ok(Some(File::from(opened))),
        Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(errno.into()),
        Err(_) => Ok(None),
    }
}

fn lock_range(kind: i32, start: i64, len: i64) -> libc::flock {
    let kind = libc::c_short::try_from(kind).unwrap_or_default();
    let whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    libc::flock { l_type: kind, l_whence: whence, l_start: start, l_len: len, l_pid: 0 }
}

/// False where the file system has no such locks.
fn set_lock(file: &File, kind: i32, byte: i64) -> bool {
    lock_command(file, libc::F_OFD_SETLK, &mut lock_range(kind, byte, 1)).is_ok()
}

/// A mark in this range. None, too, where the file system has no such locks.
fn first_mark(file: &File, from: i64, to: i64) -> Option<i64> {
    let mut asked = lock_range(libc::F_WRLCK, from, to - from);
    lock_command(file, libc::F_OFD_GETLK, &mut asked).ok()?;
    (i32::from(asked.l_type) != libc::F_UNLCK).then_some(asked.l_start)
}

#[allow(unsafe_code, reason = "no library has these locks")]
fn lock_command(file: &File, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the structure is the one that these commands read and write.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
