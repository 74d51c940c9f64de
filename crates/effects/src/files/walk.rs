//! Goes through the folders of a workspace, in the order of their names, and shows what is to be seen there: not what
//! `.gitignore` and `.ignore` name, not what is hidden unless it is asked for, and never the inside of `.git`.
//!
//! Each folder is opened from the one above it, which is held open, and no link is followed: a folder that is swapped
//! for a link is not there. `.gitignore` counts whether or not the workspace is the top of a repository.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{self, AtFlags, FileType, OFlags};

use super::root::{Opened, Root, opened_file, shown};
use super::target::is_temporary;
use crate::limits;

/// How a walk went.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Walked {
    /// There was more than one walk goes through.
    pub cut: bool,
    /// Something was left out because an ignore file names it.
    pub ignored: bool,
    /// Something was left out because the operator's policy keeps it from the call.
    pub held_back: bool,
}

/// Said beside the results of such a walk.
pub(super) const HELD_BACK: &str = "files that the operator's policy keeps from you were left out: name one in `path` to see whether you may ask for it";

/// Something that is no folder, on a walk.
pub(super) struct Seen<'a> {
    root: &'a Root,
    folder: &'a OwnedFd,
    name: &'a OsStr,
    /// From the workspace on, and from where the walk began.
    pub path: PathBuf,
    pub from_start: &'a Path,
    pub is_file: bool,
}

impl Seen<'_> {
    /// Opens it as a regular file; whatever else it has become is none.
    pub(super) fn open(&self) -> Option<Opened> {
        open_in(self.root, self.folder, self.name)
    }
}

struct Frame {
    folder: OwnedFd,
    /// From where the walk began.
    path: PathBuf,
    entries: std::vec::IntoIter<(OsString, FileType)>,
}

struct Rules {
    /// The folder whose rules they are, from the workspace on.
    of: PathBuf,
    rules: Gitignore,
}

/// Shows everything below `start` until it is told to stop.
pub(super) fn walk(
    root: &Root,
    start: &Path,
    hidden: bool,
    mut show: impl FnMut(&Seen<'_>) -> ControlFlow<()>,
) -> Result<Walked, Refusal> {
    if start.components().any(|part| part == Component::Normal(OsStr::new(".git"))) {
        let message = format!("{} is git's own, and not searched", shown(start));
        return Err(Refusal::new(ErrorCode::NotSearched, message));
    }
    let open = |path: &Path| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        root.open_beneath(path, flags).map_err(|errno| root.refusal(path, errno))
    };
    let mut walked = Walked::default();
    let mut left = limits::WALK_ENTRIES;
    let mut rules = Vec::new();
    let above: Vec<&Path> = start.ancestors().skip(1).collect();
    for path in above.into_iter().rev() {
        rules.push(Rules { of: path.to_owned(), rules: rules_of(root, &open(path)?) });
    }
    let folder = open(start)?;
    let real_start = root.place_of(&folder).unwrap_or_else(|| start.to_owned());
    rules.push(Rules { of: start.to_owned(), rules: rules_of(root, &folder) });
    let entries = entries(&folder, hidden, &mut left, &mut walked.cut);
    let mut frames = vec![Frame { folder, path: PathBuf::new(), entries }];
    loop {
        let deep = frames.len() >= limits::WALK_DEPTH;
        let Some(frame) = frames.last_mut() else { return Ok(walked) };
        let Some((name, kind)) = frame.entries.next() else {
            frames.pop();
            rules.pop();
            continue;
        };
        let from_start = frame.path.join(&name);
        let path = start.join(&from_start);
        let is_folder = kind == FileType::Directory;
        if is_ignored(&rules, &path, is_folder) {
            walked.ignored = true;
        } else if !is_folder && root.is_unseen(&real_start.join(&from_start)) {
            walked.held_back = true;
        } else if is_folder {
            if deep {
                walked.cut = true;
                continue;
            }
            // Swapped, gone or closed to us meanwhile: it is not there.
            let Some(folder) = folder_in(root, &frame.folder, &name) else { continue };
            rules.push(Rules { of: path, rules: rules_of(root, &folder) });
            let entries = self::entries(&folder, hidden, &mut left, &mut walked.cut);
            frames.push(Frame { folder, path: from_start, entries });
        } else {
            let is_file = kind == FileType::RegularFile;
            let seen = Seen { root, folder: &frame.folder, name: &name, path, from_start: &from_start, is_file };
            if show(&seen).is_break() {
                return Ok(walked);
            }
        }
    }
}

/// What is in a folder, by name.
fn entries(
    folder: &OwnedFd,
    hidden: bool,
    left: &mut usize,
    cut: &mut bool,
) -> std::vec::IntoIter<(OsString, FileType)> {
    let mut entries = Vec::new();
    for entry in fs::Dir::read_from(folder).into_iter().flatten().flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let skipped = matches!(name.as_bytes(), b"." | b".." | b".git") || is_temporary(name);
        if skipped || !hidden && name.as_bytes().starts_with(b".") {
            continue;
        }
        if *left == 0 {
            *cut = true;
            break;
        }
        *left -= 1;
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            kind = stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
        }
        entries.push((OsString::from_vec(name.as_bytes().to_vec()), kind));
    }
    entries.sort_by(|(a, _), (b, _)| OsString::cmp(a, b));
    entries.into_iter()
}

fn folder_in(root: &Root, folder: &OwnedFd, name: &OsStr) -> Option<OwnedFd> {
    root.open_in(folder, name, OFlags::RDONLY | OFlags::DIRECTORY).ok()
}

fn open_in(root: &Root, folder: &OwnedFd, name: &OsStr) -> Option<Opened> {
    let opened = root.open_in(folder, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
    opened_file(Path::new(name), opened).ok()
}

/// The deepest folder that has anything to say about a path decides.
fn is_ignored(rules: &[Rules], path: &Path, is_folder: bool) -> bool {
    for Rules { of, rules } in rules.iter().rev().filter(|rules| !rules.rules.is_empty()) {
        let Ok(inside) = path.strip_prefix(of) else { continue };
        let matched = rules.matched(inside, is_folder);
        if !matched.is_none() {
            return matched.is_ignore();
        }
    }
    false
}

/// What one folder's files say. The later ones win.
fn rules_of(root: &Root, folder: &OwnedFd) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    if let Some(git) = folder_in(root, folder, OsStr::new(".git"))
        && let Some(info) = folder_in(root, &git, OsStr::new("info"))
    {
        add(root, &mut builder, &info, "exclude");
    }
    add(root, &mut builder, folder, ".gitignore");
    add(root, &mut builder, folder, ".ignore");
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn add(root: &Root, builder: &mut GitignoreBuilder, folder: &OwnedFd, name: &str) {
    let Some(opened) = open_in(root, folder, OsStr::new(name)) else { return };
    let mut bytes = Vec::new();
    if opened.file.take(limits::IGNORE_FILE_BYTES).read_to_end(&mut bytes).is_err() {
        return;
    }
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern names nothing.
        let _ = builder.add_line(None, line);
    }
}
