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

use super::root::{OpenedFile, Root, display_path, opened_file};
use super::target::is_temporary;
use crate::limits;

/// The summary of a walk.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct WalkSummary {
    /// There were more entries than one walk visits.
    pub cut: bool,
    /// Something was left out because an ignore file names it.
    pub ignored: bool,
    /// Something was left out because the operator's policy keeps it from the call.
    pub held_back: bool,
}

/// Said beside the results of such a walk.
pub(super) const HELD_BACK: &str = "files that the operator's policy keeps from you were left out: name one in `path` to see whether you may ask for it";

/// An entry that is not a folder, on a walk.
pub(super) struct WalkEntry<'a> {
    root: &'a Root,
    folder: &'a OwnedFd,
    name: &'a OsStr,
    /// From the workspace on, and from where the walk began.
    pub path: PathBuf,
    pub from_start: &'a Path,
    pub is_file: bool,
}

impl WalkEntry<'_> {
    /// Opens it as a regular file; None if it is anything else by now.
    pub(super) fn open_file(&self) -> Option<OpenedFile> {
        open_file_in(self.root, self.folder, self.name)
    }
}

struct Frame {
    folder: OwnedFd,
    /// From where the walk began.
    path: PathBuf,
    entries: std::vec::IntoIter<(OsString, FileType)>,
}

struct IgnoreRules {
    /// The folder whose rules they are, from the workspace on.
    of: PathBuf,
    rules: Gitignore,
}

/// Calls `show` for everything below `start` until it breaks.
pub(super) fn walk_folder(
    root: &Root,
    start: &Path,
    hidden: bool,
    mut show: impl FnMut(&WalkEntry<'_>) -> ControlFlow<()>,
) -> Result<WalkSummary, Refusal> {
    if start.components().any(|part| part == Component::Normal(OsStr::new(".git"))) {
        let message = format!("{} is git's own, and not searched", display_path(start));
        return Err(Refusal::new(ErrorCode::NotSearched, message));
    }
    let open = |path: &Path| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        root.open_beneath(path, flags).map_err(|errno| root.refusal(path, errno))
    };
    let mut walked = WalkSummary::default();
    let mut left = limits::WALK_ENTRIES;
    let mut rules = Vec::new();
    let above: Vec<&Path> = start.ancestors().skip(1).collect();
    for path in above.into_iter().rev() {
        rules.push(IgnoreRules { of: path.to_owned(), rules: read_rules(root, &open(path)?) });
    }
    let folder = open(start)?;
    let real_start = root.place_of(&folder).unwrap_or_else(|| start.to_owned());
    rules.push(IgnoreRules { of: start.to_owned(), rules: read_rules(root, &folder) });
    let entries = read_entries(&folder, hidden, &mut left, &mut walked.cut);
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
            let Some(folder) = open_folder_in(root, &frame.folder, &name) else { continue };
            rules.push(IgnoreRules { of: path, rules: read_rules(root, &folder) });
            let entries = self::read_entries(&folder, hidden, &mut left, &mut walked.cut);
            frames.push(Frame { folder, path: from_start, entries });
        } else {
            let is_file = kind == FileType::RegularFile;
            let seen = WalkEntry { root, folder: &frame.folder, name: &name, path, from_start: &from_start, is_file };
            if show(&seen).is_break() {
                return Ok(walked);
            }
        }
    }
}

/// The entries of a folder, by name.
fn read_entries(
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

fn open_folder_in(root: &Root, folder: &OwnedFd, name: &OsStr) -> Option<OwnedFd> {
    root.open_in(folder, name, OFlags::RDONLY | OFlags::DIRECTORY).ok()
}

fn open_file_in(root: &Root, folder: &OwnedFd, name: &OsStr) -> Option<OpenedFile> {
    let opened = root.open_in(folder, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
    opened_file(Path::new(name), opened).ok()
}

/// The rules of the deepest folder that match a path decide.
fn is_ignored(rules: &[IgnoreRules], path: &Path, is_folder: bool) -> bool {
    for IgnoreRules { of, rules } in rules.iter().rev().filter(|rules| !rules.rules.is_empty()) {
        let Ok(inside) = path.strip_prefix(of) else { continue };
        let matched = rules.matched(inside, is_folder);
        if !matched.is_none() {
            return matched.is_ignore();
        }
    }
    false
}

/// The rules of one folder's ignore files. Later ones win.
fn read_rules(root: &Root, folder: &OwnedFd) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    if let Some(git) = open_folder_in(root, folder, OsStr::new(".git"))
        && let Some(info) = open_folder_in(root, &git, OsStr::new("info"))
    {
        add_rules(root, &mut builder, &info, "exclude");
    }
    add_rules(root, &mut builder, folder, ".gitignore");
    add_rules(root, &mut builder, folder, ".ignore");
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn add_rules(root: &Root, builder: &mut GitignoreBuilder, folder: &OwnedFd, name: &str) {
    let Some(opened) = open_file_in(root, folder, OsStr::new(name)) else { return };
    let mut bytes = Vec::new();
    if opened.file.take(limits::IGNORE_FILE_BYTES).read_to_end(&mut bytes).is_err() {
        return;
    }
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern names nothing.
        let _ = builder.add_line(None, line);
    }
}
