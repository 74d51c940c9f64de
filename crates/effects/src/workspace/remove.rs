//! Removing a worktree. Never loses work: what is not committed is a proven patch on disk first, commits that the user
//! does not have are in the mirror, and where either can't be had nothing is removed and the refusal says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use serde::{Deserialize, Serialize};

use super::Repositories;
use super::aside::Aside;
use super::keep;
use super::look::Look;
use super::making::Record;
use super::mirror::Mirror;
use super::worktree::{Worktree, base_ref};
use crate::limits;

/// The outcome of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// What was not committed, when there was any.
    pub patch: Option<PathBuf>,
    /// Branches with commits that the user does not have, by the names that fetching gives them.
    pub branches_kept: Vec<String>,
    /// What was found and done, in sentences.
    pub evidence: Vec<String>,
}

/// Whether unsaved work may be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsaved {
    Keep,
    /// On a person's word.
    Discard,
}

impl Repositories {
    /// Saves what is in a worktree into the folder `patches` and removes it. A folder that is gone already is refused as
    /// `missing`. A removal that was cut off is picked up.
    pub fn remove_worktree(
        &self,
        worktree: &Worktree,
        unsaved: Unsaved,
        patches: &Path,
        now: Time,
    ) -> Result<Removed, Refusal> {
        let aside = Aside::of(worktree);
        if let Some(removed) = aside.pick_up()? {
            return self.finish(worktree, &aside, removed);
        }
        match fs::symlink_metadata(&worktree.path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(not_ours(&worktree.path, "it is no folder any more")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget(worktree)?;
                let message = format!("the worktree {} is missing: its folder was removed", worktree.path.display());
                return Err(Refusal::new("missing", message, "what was fetched of it is in the repository"));
            }
            Err(error) => {
                let message = format!("{} can't be looked at: {error}", worktree.path.display());
                let hint = "give the daemon's user access to it; nothing was removed";
                return Err(Refusal::new("unreadable", message, hint));
            }
        }
        let mut removed = Removed { patch: None, branches_kept: Vec::new(), evidence: Vec::new() };
        match unsaved {
            Unsaved::Keep => {
                let record = self.converted(worktree, patches, now, &mut removed.evidence)?;
                let saved = self.save(&record, patches, now, &mut removed)?;
                aside.move_there()?;
                let same = Look::take(self, &record, aside.folder()).map(|look| look.same_as(&saved));
                if let Err(refusal) = unchanged(worktree, same).and_then(|()| aside.write_note(&removed)) {
                    aside.put_back()?;
                    return Err(refusal);
                }
            }
            Unsaved::Discard => {
                removed.evidence.push("what was in it was given up, on a person's word".to_owned());
                aside.move_there()?;
                aside.write_note(&removed)?;
            }
        }
        aside.delete()?;
        self.finish(worktree, &aside, removed)
    }

    /// What is left to do once the folder is gone.
    fn finish(&self, worktree: &Worktree, aside: &Aside<'_>, mut removed: Removed) -> Result<Removed, Refusal> {
        self.forget(worktree)?;
        removed.evidence.push(format!("removed the worktree {}", worktree.path.display()));
        aside.done()?;
        Ok(removed)
    }

    fn forget(&self, worktree: &Worktree) -> Result<(), Refusal> {
        if let Some(mirror) = Record::of(&worktree.path)?.and_then(|record| record.mirror) {
            Mirror::named(&self.home, &mirror).delete_ref(&base_ref(&worktree.path))?;
        }
        Record::delete(&worktree.path)
    }

    /// Saves until nothing changed between the look before and the look after, which is returned.
    fn save(&self, record: &Record, patches: &Path, now: Time, removed: &mut Removed) -> Result<Look, Refusal> {
        let worktree = &record.worktree;
        let mut look = Look::take(self, record, &worktree.path)?;
        for _ in 0..limits::SAVE_TRIES {
            keep::nothing_under_way(worktree, look.conflicts)?;
            keep::no_repository_inside(worktree, &look.tree)?;
            removed.patch = look.save(worktree, patches, now, &mut removed.evidence)?;
            if let Some(refusal) = &look.unreadable {
                return Err(unreadable(worktree, refusal, removed.patch.as_deref()));
            }
            self.keep(record, &look, patches, now, removed)?;
            note_ignored(&look, removed)?;
            let after = Look::take(self, record, &worktree.path)?;
            if after.same_as(&look) {
                return Ok(after);
            }
            removed.evidence.push("it changed while it was saved".into());
            look = after;
        }
        let message = format!("{} kept changing while it was saved", worktree.path.display());
        let hint =
            format!("stop what writes there; what was saved is in {}, and nothing was removed", patches.display());
        Err(Refusal::new("still_written", message, hint))
    }

    fn keep(
        &self,
        record: &Record,
        look: &Look,
        patches: &Path,
        now: Time,
        removed: &mut Removed,
    ) -> Result<(), Refusal> {
        let Some(mirror) = record.mirror.as_deref().map(|id| Mirror::named(&self.home, id)) else { return Ok(()) };
        let kept = keep::keep_commits(record, &mirror, look, patches, now).map_err(|refusal| {
            let hint = format!("{}; or give its commits up: abide workspace detach --discard", refusal.hint);
            Refusal { hint, ..refusal }
        })?;
        removed.branches_kept.clear();
        for keep::Kept { branch, commits, patch } in kept {
            let series = patch.map(|patch| format!(", and as patches in {}", patch.display())).unwrap_or_default();
            removed.evidence.push(format!("{commits} commits are kept for {branch}{series}"));
            removed.branches_kept.push(branch);
        }
        Ok(())
    }
}

fn unchanged(worktree: &Worktree, same: Result<bool, Refusal>) -> Result<(), Refusal> {
    if same? {
        return Ok(());
    }
    let message = format!("{} changed after it was saved", worktree.path.display());
    Err(Refusal::new("still_written", message, "stop what writes there; nothing was removed"))
}

fn unreadable(worktree: &Worktree, refusal: &Refusal, patch: Option<&Path>) -> Refusal {
    let path = worktree.path.display();
    let saved = patch.map_or_else(
        || "its files are those of the commit it began with".to_owned(),
        |patch| format!("its files are saved in {}", patch.display()),
    );
    let message =
        format!("the repository in {path} can't be read, so that commits in it can't be kept: {}", refusal.message);
    let hint = format!("{saved}; repair {path}/.git, or give it up: abide workspace detach --discard");
    Refusal::new("damaged_repository", message, hint)
}

/// Ignored files are not work, by the user's own word; those that go with the folder are named all the same.
fn note_ignored(look: &Look, removed: &mut Removed) -> Result<(), Refusal> {
    let args: [&dyn AsRef<std::ffi::OsStr>; 6] =
        [&"status", &"--porcelain", &"-z", &"--no-renames", &"--ignored=traditional", &"--ignore-submodules=all"];
    let status = look.tree.git.run(&args)?;
    let ignored = status.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"!! "));
    let total = ignored.clone().count();
    if total > 0 {
        let names = ignored.take(limits::EVIDENCE_NAMES).map(String::from_utf8_lossy).collect::<Vec<_>>().join(", ");
        removed.evidence.push(format!("{total} entries that git ignores go with it, unsaved: {names}"));
    }
    Ok(())
}

pub(super) fn not_ours(folder: &Path, why: &str) -> Refusal {
    let message = format!("{} is not the worktree that was made there: {why}", folder.display());
    Refusal::new("not_a_worktree", message, "look at the folder and move what is in it; nothing was removed")
}
