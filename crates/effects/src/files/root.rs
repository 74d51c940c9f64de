//! The workspace as the file tools see it: one open folder, below which everything is opened.
//!
//! Nothing is ever opened by a path of the whole system. The kernel resolves each path beneath the folder and refuses
//! one that leaves it, so there is no moment between a check and a use in which a command could swap a folder for a
//! link. Links that stay inside work; an absolute link is refused even where it leads back inside, because the kernel
//! can't tell.
//!
//! Some places inside may be closed: what the sandbox hides from commands is not to be had with a file tool either.
//! Where a path led is asked of what was opened, so no link and no name gets around that.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::WorkspacePath;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::target::Target;
use crate::git_dir::GitDirParts;
use crate::limits;
use crate::nearest::nearest;
use crate::secrets::Mask;
use crate::unlinked::open_folder;

/// Names looked at for one that is near a name there is none of.
const NAMES_LOOKED_AT: usize = 2_000;

/// Files that a call must not reach although it may run.
pub trait LeavesOut: std::fmt::Debug + Send + Sync {
    /// Whether the file at this path, from the workspace on and without links, is to be left out.
    fn leaves_out(&self, path: &Path) -> bool;
}

#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    /// As it was named, and as the system names the open folder: an absolute path that begins with either is meant from
    /// here.
    named: PathBuf,
    resolved: PathBuf,
    /// Not to be opened, though they lie inside. By their real names.
    closed: Vec<PathBuf>,
    /// Not to be written, though they lie inside. By their real names.
    read_only: Vec<PathBuf>,
    /// Files that the operator's policy keeps from this call.
    unseen: Option<Arc<dyn LeavesOut>>,
    mask: Mask,
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub(crate) struct Opened {
    pub file: File,
    pub bytes: u64,
}

impl Root {
    /// Opens a folder by its real path. A link in its place is refused as `moved`.
    pub fn open(workspace: &Path) -> Result<Root, Refusal> {
        Root::of(open_folder(workspace)?, workspace)
    }

    /// A folder that is open already, and was opened by this path.
    pub(crate) fn of(folder: OwnedFd, workspace: &Path) -> Result<Root, Refusal> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Asked once here, so that a system without it says so before anything is done.
        match beneath(&folder, Path::new("."), flags).and_then(|_| real_path(&folder)) {
            Ok(resolved) => {
                let (named, closed, read_only) = (workspace.to_owned(), Vec::new(), Vec::new());
                Ok(Root { folder, named, resolved, closed, read_only, unseen: None, mask: Mask::default() })
            }
            Err(Errno::NOSYS | Errno::PERM) => Err(Refusal::new(
                ErrorCode::NotConfined,
                "this system does not let a path be resolved beneath a folder (openat2), so no file is opened",
            )),
            Err(errno) => Err(Refusal::new(
                ErrorCode::NoWorkspace,
                format!("the workspace {} can't be opened: {}", workspace.display(), says(errno)),
            )
            .with_hint("ask the operator to attach a folder that is there: abide agent show says which one it is")),
        }
    }

    /// The same without these places, each by its path of the whole system.
    #[must_use]
    pub fn without(mut self, closed: impl IntoIterator<Item = PathBuf>) -> Root {
        // Of a place that is a link, where it leads is closed too.
        self.closed = closed.into_iter().flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect();
        self
    }

    /// The same with these places, which commands can only read, read-only for the file tools too.
    #[must_use]
    pub fn read_only_at(mut self, places: impl IntoIterator<Item = PathBuf>) -> Root {
        let real = places.into_iter().map(|path| path.canonicalize().unwrap_or(path));
        self.read_only = real.collect();
        self
    }

    /// The same without the files that the policy keeps from a call.
    #[must_use]
    pub fn without_unseen(mut self, unseen: Option<impl LeavesOut + 'static>) -> Root {
        self.unseen = unseen.map(|unseen| Arc::new(unseen) as Arc<dyn LeavesOut>);
        self
    }

    /// The same, for tools that truncate text of files: they mask it before.
    #[must_use]
    pub fn masked_by(mut self, mask: Mask) -> Root {
        self.mask = mask;
        self
    }

    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.closed.iter().any(|closed| path.starts_with(closed))
    }

    /// Whether the file at a real path must not be opened.
    fn is_closed(&self, path: &Path) -> bool {
        self.is_hidden(path) || path.strip_prefix(&self.resolved).is_ok_and(|inside| self.is_unseen(inside))
    }

    /// Whether the policy keeps the file at a real path from the call, from the workspace on.
    pub(super) fn is_unseen(&self, path: &Path) -> bool {
        self.unseen.as_ref().is_some_and(|unseen| unseen.leaves_out(path))
    }

    fn has_closed(&self) -> bool {
        !self.closed.is_empty() || self.unseen.is_some()
    }

    /// Where a path leads when all links are followed, from the workspace on. A file that is not there yet is where it
    /// would be made. None if it leads out.
    pub(crate) fn real(&self, path: &WorkspacePath) -> Option<PathBuf> {
        let path = self.relative(path).ok()?;
        match beneath(&self.folder, &path, OFlags::PATH) {
            Ok(opened) => return self.place_of(&opened),
            Err(Errno::NOENT) => {}
            Err(_) => return None,
        }
        if let Ok((folder, path)) = self.follow(&path, false, &mut Vec::new()) {
            return Some(self.place_of(&folder)?.join(path.file_name()?));
        }
        // Some of its folders are missing, too.
        let above = path.ancestors().skip(1);
        let opened = above.filter_map(|above| Some((above, beneath(&self.folder, above, OFlags::PATH).ok()?))).next();
        let (above, opened) = opened?;
        Some(self.place_of(&opened)?.join(path.strip_prefix(above).ok()?))
    }

    /// Where an open folder lies at this moment, from the workspace on.
    pub(super) fn place_of(&self, opened: &OwnedFd) -> Option<PathBuf> {
        real_path(opened).ok()?.strip_prefix(&self.resolved).ok().map(Path::to_owned)
    }

    /// Refuses what was opened, where it lies in a closed place.
    fn pass(&self, opened: OwnedFd) -> Result<OwnedFd, Errno> {
        if !self.has_closed() {
            return Ok(opened);
        }
        let path = real_path(&opened)?;
        // The policy is about files: a folder is walked, and its files are left out one by one.
        let is_folder = || fs::fstat(&opened).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        let closed = if self.unseen.is_some() && is_folder() { self.is_hidden(&path) } else { self.is_closed(&path) };
        if closed { Err(Errno::ACCESS) } else { Ok(opened) }
    }

    /// The path from here on. An absolute one inside the workspace is taken for what it means.
    pub(super) fn relative(&self, path: &WorkspacePath) -> Result<PathBuf, Refusal> {
        let path = path.as_path();
        if path.is_relative() {
            return Ok(path.to_owned());
        }
        match path.strip_prefix(&self.named).or_else(|_| path.strip_prefix(&self.resolved)) {
            Ok(inside) => Ok(inside.to_owned()),
            Err(_) => Err(outside(path)),
        }
    }

    /// Opens whatever is there. Links are followed as long as they stay inside.
    pub(crate) fn open_beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        beneath(&self.folder, path, flags).and_then(|opened| self.pass(opened))
    }

    /// Something in an open folder, which is no link.
    pub(crate) fn open_in(&self, folder: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(folder, name, flags, Mode::empty()).and_then(|opened| self.pass(opened))
    }

    /// A regular file, for reading. What it is, is looked at before it is opened: opening a device may do something, and
    /// opening a pipe may wait.
    pub(crate) fn open_file(&self, path: &Path) -> Result<Opened, Refusal> {
        let seen = self.open_beneath(path, OFlags::PATH).map_err(|errno| self.refusal(path, errno))?;
        regular(path, &stat(path, &seen)?)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.open_beneath(path, flags).map_err(|errno| self.refusal(path, errno))?;
        opened_file(path, opened)
    }

    /// Whether anything is there, whatever it is, and whether or not it can be opened.
    pub(crate) fn is_there(&self, path: &Path) -> bool {
        !matches!(self.open_beneath(path, OFlags::PATH), Err(Errno::NOENT | Errno::NOTDIR))
    }

    /// A regular file of this very folder, for reading. Of links only one is followed, to another name beside it.
    pub(crate) fn open_own(&self, name: &str) -> Result<Opened, Refusal> {
        let path = Path::new(name);
        let refused = |errno| self.refusal(path, errno);
        let link = match fs::readlinkat(&self.folder, path, Vec::new()) {
            Ok(link) => PathBuf::from(OsString::from_vec(link.into_bytes())),
            Err(Errno::INVAL) => path.to_owned(),
            Err(errno) => return Err(refused(errno)),
        };
        let mut parts = link.components().filter(|part| *part != Component::CurDir);
        let (Some(Component::Normal(own)), None) = (parts.next(), parts.next()) else { return Err(outside(path)) };
        let seen = self.open_in(&self.folder, own, OFlags::PATH).map_err(refused)?;
        regular(path, &stat(path, &seen)?)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        opened_file(path, self.open_in(&self.folder, own, flags).map_err(refused)?)
    }

    /// Where a file is, or would be: the folder it is in, open, and its name there. A link is followed to the file it
    /// names, so that writing changes the file and leaves the link. With `make`, missing folders are made.
    pub(super) fn target(&self, path: &Path, make: bool) -> Result<Target, Refusal> {
        let mut made = Vec::new();
        match self.follow(path, make, &mut made) {
            Ok((folder, path)) => match path.file_name() {
                Some(name) if self.is_of_git(&folder, name) => {
                    self.unmake(&made);
                    Err(of_git(&path))
                }
                Some(name) if self.is_read_only(&folder, name) => {
                    self.unmake(&made);
                    Err(of_programs(&path))
                }
                Some(name) => Ok(Target { folder, name: name.to_owned(), path, made }),
                None => Err(is_folder(&path)),
            },
            Err(errno) => {
                self.unmake(&made);
                Err(self.refusal(path, errno))
            }
        }
    }

    /// Whether a file is part of a repository's records. Hooks and settings are among them, which the next git that a
    /// person runs there would obey.
    ///
    /// Decided by the folder that is open, and by those around it as they are now, not by a path: records may have any
    /// name, and a name may be swapped.
    fn is_of_git(&self, folder: &OwnedFd, name: &OsStr) -> bool {
        let is_git = |name: &OsStr| name.eq_ignore_ascii_case(".git");
        let Ok(real) = real_path(folder) else { return true };
        let inside = real.strip_prefix(&self.resolved).unwrap_or(&real);
        is_git(name)
            || inside.components().any(|part| is_git(part.as_os_str()))
            || self.is_in_git_dir(folder).unwrap_or(true)
    }

    /// Whether an open folder is a git directory or lies in one, looking no further than the workspace.
    fn is_in_git_dir(&self, folder: &OwnedFd) -> Result<bool, Errno> {
        let identity = |folder: &OwnedFd| fs::fstat(folder).map(|stat| (stat.st_dev, stat.st_ino));
        let (root, mut at) = (identity(&self.folder)?, rustix::io::dup(folder)?);
        loop {
            if GitDirParts::in_folder(&at).is_git_dir() {
                return Ok(true);
            }
            let here = identity(&at)?;
            if here == root {
                return Ok(false);
            }
            at = fs::openat(&at, "..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            if identity(&at)? == here {
                // The top of the file system: the folder was moved out of the workspace.
                return Err(Errno::XDEV);
            }
        }
    }

    fn is_read_only(&self, folder: &OwnedFd, name: &OsStr) -> bool {
        let Ok(real) = real_path(folder) else { return true };
        let file = real.join(name);
        self.read_only.iter().any(|place| file.starts_with(place))
    }

    fn follow(&self, path: &Path, make: bool, made: &mut Vec<PathBuf>) -> Result<(OwnedFd, PathBuf), Errno> {
        let mut at = path.to_owned();
        for _ in 0..limits::LINKS_FOLLOWED {
            let Some(name) = at.file_name() else {
                // It ends in `..`: a folder, unless it leads out.
                return self.open_beneath(&at, OFlags::PATH).and(Err(Errno::ISDIR));
            };
            let parent = at.parent().unwrap_or(Path::new(""));
            let folder = self.folder_of(parent, make, made)?;
            match fs::readlinkat(&folder, name, Vec::new()) {
                Ok(link) => {
                    let link = PathBuf::from(OsString::from_vec(link.into_bytes()));
                    if link.is_absolute() {
                        return Err(Errno::XDEV);
                    }
                    at = parent.join(link);
                }
                // It is there and no link, or it is not there.
                Err(Errno::INVAL | Errno::NOENT) => {
                    let closed = self.has_closed() && self.is_closed(&real_path(&folder)?.join(name));
                    return if closed { Err(Errno::ACCESS) } else { Ok((folder, at)) };
                }
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::LOOP)
    }

    fn folder_of(&self, parent: &Path, make: bool, made: &mut Vec<PathBuf>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.open_beneath(parent, flags) {
            Err(Errno::NOENT) if make => {}
            done => return done,
        }
        let mut folder = self.open_beneath(Path::new(""), flags)?;
        let mut at = PathBuf::new();
        for component in parent.components() {
            at.push(component);
            folder = match self.open_beneath(&at, flags) {
                Err(Errno::NOENT) => {
                    let Component::Normal(name) = component else { return Err(Errno::NOENT) };
                    match fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755)) {
                        Ok(()) => made.push(at.clone()),
                        // Somebody else made it, or a link leads nowhere; opening it tells.
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    self.open_beneath(&at, flags)?
                }
                done => done?,
            };
        }
        Ok(folder)
    }

    /// Takes away folders that were made for a file that was not written after all. One that has something in it stays.
    pub(super) fn unmake(&self, made: &[PathBuf]) {
        for path in made.iter().rev() {
            self.remove_empty(path);
        }
    }

    pub(super) fn remove_empty(&self, path: &Path) -> bool {
        let (Some(name), parent) = (path.file_name(), path.parent().unwrap_or(Path::new(""))) else { return false };
        let Ok(folder) = self.open_beneath(parent, OFlags::PATH | OFlags::DIRECTORY) else { return false };
        fs::unlinkat(folder, name, AtFlags::REMOVEDIR).is_ok()
    }

    /// Why `path` could not be opened, for a model.
    pub(super) fn refusal(&self, path: &Path, errno: Errno) -> Refusal {
        if errno == Errno::NOENT {
            let hint = match self.near(path) {
                Some(near) => format!("did you mean {near}? Glob lists what is there"),
                None => "Glob lists what is there, for example {\"pattern\": \"**/*\"}".to_owned(),
            };
            return Refusal::new(ErrorCode::NotFound, format!("{} is not there", shown(path))).with_hint(hint);
        }
        failed(path, errno)
    }

    /// The path with its first wrong name put right, as far as one is near.
    fn near(&self, path: &Path) -> Option<String> {
        let mut at = PathBuf::new();
        let mut components = path.components();
        for component in components.by_ref() {
            let next = at.join(component);
            if self.open_beneath(&next, OFlags::PATH).is_err() {
                let folder = self.open_beneath(&at, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
                let entries = fs::Dir::new(folder).ok()?.take(NAMES_LOOKED_AT).flatten();
                let names: Vec<String> =
                    entries.filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned())).collect();
                let wanted = component.as_os_str().to_str()?;
                let known = names.iter().map(String::as_str).filter(|name| !matches!(*name, "." | ".."));
                at.push(nearest(wanted, known)?);
                at.extend(components);
                return Some(shown(&at));
            }
            at = next;
        }
        None
    }
}

fn beneath(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The system says "again" when something was renamed while it looked for `..`. Whoever renames for ever does not
    // keep us for ever.
    for _ in 0..limits::OPEN_TRIES {
        match fs::openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    Err(Errno::AGAIN)
}

/// Where something that is open lies at this moment.
fn real_path(opened: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = fs::readlink(format!("/proc/self/fd/{}", opened.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

pub(super) fn opened_file(path: &Path, opened: OwnedFd) -> Result<Opened, Refusal> {
    let stat = stat(path, &opened)?;
    regular(path, &stat)?;
    if made_up(&opened) {
        return Err(Refusal::new(
            ErrorCode::NotAFile,
            format!("{} is made up by the system as it is read", shown(path)),
        )
        .with_hint("read it with ExecCommand, if it has to be"));
    }
    Ok(Opened { file: File::from(opened), bytes: u64::try_from(stat.st_size).unwrap_or_default() })
}

/// Files of /proc, /sys and the like have no size and no end that one can rely on.
fn made_up(opened: &OwnedFd) -> bool {
    const KINDS: [u64; 7] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x0027_e0eb, 0x6367_7270, 0xcafe_4a11];
    fs::fstatfs(opened).is_ok_and(|of| u64::try_from(of.f_type).is_ok_and(|kind| KINDS.contains(&kind)))
}

fn stat(path: &Path, opened: impl AsFd) -> Result<Stat, Refusal> {
    fs::fstat(opened).map_err(|errno| failed(path, errno))
}

pub(super) fn regular(path: &Path, stat: &Stat) -> Result<(), Refusal> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(is_folder(path)),
        FileType::Symlink => "a link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "no regular file",
    };
    let message = format!("{} is {what}", shown(path));
    Err(Refusal::new(ErrorCode::NotAFile, message)
        .with_hint("name a regular file; ExecCommand can work with other kinds"))
}

fn is_folder(path: &Path) -> Refusal {
    let message = format!("{} is a folder", shown(path));
    Refusal::new(ErrorCode::IsAFolder, message)
}

fn of_git(path: &Path) -> Refusal {
    let message = format!("{} is part of a repository's own records", shown(path));
    Refusal::new(ErrorCode::GitRecords, message)
}

fn of_programs(path: &Path) -> Refusal {
    let message = format!("{} lies in a folder of PATH, which agents can only read", shown(path));
    Refusal::new(ErrorCode::ReadOnly, message)
}

pub(super) fn outside(path: &Path) -> Refusal {
    Refusal::new(ErrorCode::OutsideWorkspace, format!("{} leads out of the workspace", shown(path)))
}

/// The world said no to `path`.
pub(super) fn failed(path: &Path, errno: Errno) -> Refusal {
    let refusal = |code| Refusal::new(code, format!("{}: {}", shown(path), says(errno)));
    match errno {
        Errno::XDEV => outside(path),
        Errno::ISDIR => is_folder(path),
        Errno::NOENT => refusal(ErrorCode::NotFound).with_hint("Glob lists what is there"),
        Errno::NOTDIR => {
            refusal(ErrorCode::NotAFolder).with_hint("a file stands where the path has a folder: name another path")
        }
        Errno::LOOP => refusal(ErrorCode::TooManyLinks),
        Errno::ACCESS | Errno::PERM => refusal(ErrorCode::PermissionDenied),
        Errno::NOSPC | Errno::DQUOT => {
            refusal(ErrorCode::DiskFull).with_hint("nothing was changed: make room, then do it again")
        }
        Errno::ROFS => refusal(ErrorCode::ReadOnly)
            .with_hint("the file system can't be written to: name a path elsewhere in the workspace"),
        Errno::NAMETOOLONG => {
            refusal(ErrorCode::InvalidInput).with_hint("a name has at most 255 bytes: choose a shorter one")
        }
        Errno::AGAIN => refusal(ErrorCode::Busy),
        _ => refusal(ErrorCode::IoError),
    }
}

fn says(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

/// A path as refusals show it: on one line, and no longer than a line.
pub(super) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.is_empty() { ".".to_owned() } else { text };
    let plain = text.chars().take(limits::PATH_SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let plain: String = plain.collect();
    if plain.len() < text.len() { format!("{plain}…") } else { plain }
}
