//! Applies a patch over several files: everything is worked out first, in memory, and then written, so that a hunk that
//! does not fit leaves every file as it was.

mod fit;
mod header;
mod parse;

use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::{ApplyPatch, FilePatch, Side, WorkspacePath};
use serde_json::Value;

use super::changes::{self, Change};
use super::near;
use super::root::{Root, shown};
use super::target::{Content, PLAIN, too_large};
use crate::limits;
use crate::secrets::Mask;
use fit::Why;
pub(crate) use parse::parse;

pub(super) fn run(call: &ApplyPatch, root: &Root) -> Result<Value, Refusal> {
    let mut draft = Draft { root, entries: Vec::new() };
    let drafted = call.files.iter().try_for_each(|file| draft.patch(file, &call.files));
    if let Err(refusal) = drafted {
        for entry in draft.entries.iter().rev() {
            root.unmake(&entry.change.target.made);
        }
        return Err(refusal);
    }
    let mut made: Vec<Change> = draft.entries.into_iter().map(|entry| entry.change).collect();
    // What goes, goes last: until everything new is written, nothing of the old is lost.
    made.sort_by_key(|change| change.after.is_none());
    changes::make(root, &made)
}

/// The files as they will be.
struct Draft<'a> {
    root: &'a Root,
    entries: Vec<Entry>,
}

struct Entry {
    change: Change,
    /// Another file was moved here: what this one was, is still to be had in `before`.
    moved_here: bool,
    /// The path is that of a link to the file.
    link: bool,
}

impl Draft<'_> {
    fn patch(&mut self, file: &FilePatch, all: &[FilePatch]) -> Result<(), Refusal> {
        let old = match &file.old {
            Some(old) => Some(self.entry(old)?),
            None => None,
        };
        let content = match old {
            Some(old) => self.source(old)?,
            None => Content { bytes: Vec::new(), mode: PLAIN },
        };
        if let Some(link) = old.filter(|old| self.entries[*old].link && (!file.keeps_old || file.new.is_none())) {
            let message = format!("{} is a link to a file", self.entries[link].change.path);
            return Err(Refusal::new(ErrorCode::NotAFile, message)
                .with_hint("patch the file itself; links are moved with ExecCommand"));
        }
        let name = file.new.as_ref().or(file.old.as_ref()).map(|path| shown(path.as_path())).unwrap_or_default();
        let bytes = fit::apply(&content.bytes, &file.hunks)
            .map_err(|misfit| refused(&name, &content.bytes, file, &misfit, self.root.mask()))?;
        let Some(new) = &file.new else {
            return match (old, bytes.is_empty()) {
                (Some(old), true) => {
                    self.entries[old].change.after = None;
                    Ok(())
                }
                (Some(_) | None, _) => Err(left_over(&name, &bytes)),
            };
        };
        let mode = match file.executable {
            None => content.mode,
            Some(true) => content.mode | (content.mode & 0o444) >> 2,
            Some(false) => content.mode & !0o111,
        };
        let target = self.entry(new)?;
        if old != Some(target) {
            let leaves = |other: &FilePatch| !other.keeps_old && other.old.as_ref() == Some(new);
            if self.entries[target].change.after.is_some() && !all.iter().any(leaves) {
                let message = format!("{} is already there", shown(new.as_path()));
                return Err(Refusal::new(ErrorCode::AlreadyThere, message));
            }
            self.entries[target].moved_here = true;
            if let Some(old) = old.filter(|old| !file.keeps_old && !self.entries[*old].moved_here) {
                self.entries[old].change.after = None;
            }
        }
        self.entries[target].change.after = Some(Content { bytes, mode });
        self.held()
    }

    /// The entry of a path; links are followed, so two names of one file have one entry.
    fn entry(&mut self, path: &WorkspacePath) -> Result<usize, Refusal> {
        let path: PathBuf = self.root.relative(path)?;
        let target = self.root.target(&path, true)?;
        if let Some(known) = self.entries.iter().position(|entry| entry.change.target.path == target.path) {
            return Ok(known);
        }
        let content = target.content();
        let link = target.path != path;
        let mut change = Change { target, before: None, after: None, path: shown(&path) };
        match content {
            Ok(content) => (change.before, change.after) = (content.clone(), content),
            Err(refusal) => {
                self.root.unmake(&change.target.made);
                return Err(refusal);
            }
        }
        self.entries.push(Entry { change, moved_here: false, link });
        self.held()?;
        Ok(self.entries.len() - 1)
    }

    /// What a change starts from.
    fn source(&self, entry: usize) -> Result<Content, Refusal> {
        let Entry { change, moved_here, .. } = &self.entries[entry];
        let content = if *moved_here && change.before.is_some() { &change.before } else { &change.after };
        content.clone().ok_or_else(|| self.root.refusal(Path::new(&change.path), rustix::io::Errno::NOENT))
    }

    /// All of it is in memory, so all of it is bounded.
    fn held(&self) -> Result<(), Refusal> {
        let len = |content: &Option<Content>| content.as_ref().map_or(0, |content| content.bytes.len());
        let held: usize = self.entries.iter().map(|entry| len(&entry.change.before) + len(&entry.change.after)).sum();
        if held <= limits::PATCH_HELD_BYTES {
            return Ok(());
        }
        let message = format!("the files of the patch are more than {} bytes together", limits::PATCH_HELD_BYTES);
        Err(Refusal::new(ErrorCode::FileTooLarge, message)
            .with_hint("give the patch in several parts; nothing was changed"))
    }
}

fn refused(name: &str, bytes: &[u8], file: &FilePatch, misfit: &fit::Misfit, mask: &Mask) -> Refusal {
    let Some(hunk) = file.hunks.get(misfit.number - 1) else { return too_large(name, bytes.len() as u64) };
    let which = format!("hunk {} of {name} ({})", misfit.number, hunk.header);
    let side = |leave_out: Side| -> Vec<u8> {
        hunk.lines.iter().filter(|line| line.side != leave_out).flat_map(|line| line.text.bytes()).collect()
    };
    let (old, new) = (side(Side::New), side(Side::Old));
    match misfit.why {
        Why::TooLarge => too_large(name, limits::FILE_BYTES + 1),
        Why::Ambiguous => {
            Refusal::new(ErrorCode::AmbiguousHunk, format!("{which} fits in several places, and not where it says"))
        }
        Why::NotThere => {
            let applied = old != new && !new.is_empty() && memchr::memmem::find(bytes, &new).is_some();
            let hint = if applied {
                "the new lines are there already: perhaps it was applied before. Read the file; nothing was changed"
            } else if memchr::memmem::find(bytes, old.strip_suffix(b"\n").unwrap_or(&old)).is_some() {
                "only the line end at the end of the file differs: write `\\ No newline at end of file` below the line"
            } else {
                "give the lines around the change exactly as the file has them; nothing was changed"
            };
            let near = near::nearest_lines(bytes, &old, mask).map(|near| format!(". {near}")).unwrap_or_default();
            Refusal::new(ErrorCode::NoMatch, format!("{which} does not fit{near}")).with_hint(hint)
        }
    }
}

fn left_over(name: &str, bytes: &[u8]) -> Refusal {
    let lines = memchr::memchr_iter(b'\n', bytes).count().max(1);
    let message = format!("the patch deletes {name}, but {lines} of its lines are not in the patch");
    Refusal::new(ErrorCode::NoMatch, message)
        .with_hint("give all of its lines as deleted ones, or delete it with ExecCommand")
}
