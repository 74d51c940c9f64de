//! Removing a worktree. Never loses work: what is not committed is a proven patch on disk first, commits that the user
//! does not have are in the mirror, and where either can't be had nothing is removed and the refusal says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;
use serde::{Deserialize, Serialize};

use super::Repositories;
use super::aside::Aside;
use super::baseline::Baseline;
use super::keep;
use super::look::Look;
use super::making::Record;
use super::mirror::Mirror;
use super::tree::path_of;
use super::worktree::{Worktree, base_ref};
use crate::limits;
use crate::transient;

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
        let _used = self.using_mirrors();
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
                return Err(
                    Refusal::new(ErrorCode::Missing, message).with_hint("what was fetched of it is in the repository")
                );
            }
            Err(error) => {
                let message = format!("{} can't be looked at: {error}", worktree.path.display());
                let hint = transient::hint(&error, "give the daemon's user access to it; nothing was removed");
                return Err(Refusal::new(ErrorCode::Unreadable, message).with_hint(hint));
            }
        }
        let mut removed = Removed { patch: None, branches_kept: Vec::new(), evidence: Vec::new() };
        match unsaved {
            Unsaved::Keep => {
                let record = self.converted(worktree, patches, now, &mut removed.evidence)?;
                let mirror = record.mirror.as_deref().map(|id| Mirror::named(&self.home, id));
                let baseline = mirror.as_ref().map(|mirror| Baseline::of(self, &record, mirror)).transpose()?;
                let saved = self.save(&record, baseline.as_ref(), patches, now, &mut removed)?;
                aside.move_there()?;
                let same =
                    Look::take(self, &record, baseline.as_ref(), aside.folder()).map(|look| look.same_as(&saved));
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
    fn save(
        &self,
        record: &Record,
        baseline: Option<&Baseline>,
        patches: &Path,
        now: Time,
        removed: &mut Removed,
    ) -> Result<Look, Refusal> {
        let worktree = &record.worktree;
        let mut look = Look::take(self, record, baseline, &worktree.path)?;
        for _ in 0..limits::SAVE_TRIES {
            keep::nothing_under_way(worktree, look.conflicts)?;
            keep::no_repository_inside(worktree, &look.tree)?;
            removed.patch = look.save(worktree, patches, now, &mut removed.evidence)?;
            if let Some(refusal) = &look.unreadable {
                return Err(unreadable(worktree, refusal, removed.patch.as_deref()));
            }
            self.keep(record, &look, patches, now, removed)?;
            note_ignored(worktree, &look, removed)?;
            let after = Look::take(self, record, baseline, &worktree.path)?;
            if after.same_as(&look) {
                return Ok(after);
            }
            removed.evidence.push("it changed while it was saved".into());
            look = after;
        }
        let message = format!("{} kept changing while it was saved", worktree.path.display());
        let hint =
            format!("stop what writes there; what was saved is in {}, and nothing was removed", patches.display());
        Err(Refusal::new(ErrorCode::StillWritten, message).with_hint(hint))
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
        let more = kept.total - kept.refs.len();
        for keep::Kept { branch, holds, series } in kept.refs {
            let series = match series {
                keep::Series::Saved(patch) => format!(", and as patches in {}", patch.display()),
                keep::Series::TooLarge => ", and not as patches: they would be too large".to_owned(),
                keep::Series::Empty => String::new(),
            };
            removed.evidence.push(format!("{holds} kept for {branch}{series}"));
            removed.branches_kept.push(branch);
        }
        if more > 0 {
            removed.evidence.push(format!("{more} more refs are kept"));
        }
        if let Some((name, commits)) = kept.logged {
            removed.evidence.push(format!(
                "{commits} commits that only reflogs named are kept, with those that they lead to: abide workspace fetch \
                 --branch {name}"
            ));
        }
        Ok(())
    }
}

fn unchanged(worktree: &Worktree, same: Result<bool, Refusal>) -> Result<(), Refusal> {
    if same? {
        return Ok(());
    }
    let message = format!("{} changed after it was saved", worktree.path.display());
    Err(Refusal::new(ErrorCode::StillWritten, message))
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
    Refusal::new(ErrorCode::DamagedRepository, message).with_hint(hint)
}

/// The entries that are neither committed nor saved go with the folder, and are named. They are generated files: ignored
/// by the user, or by the agent in a folder that a tool fills.
fn note_ignored(worktree: &Worktree, look: &Look, removed: &mut Removed) -> Result<(), Refusal> {
    let listed = look.tree.git.run(&[&"ls-files", &"-z", &"-o", &"--directory"])?;
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let is_empty = |name: &[u8]| name.ends_with(b"/") && !keep::has_entries(&worktree.path.join(path_of(name)));
    let ignored: Vec<&[u8]> = names.filter(|name| !is_empty(name)).collect();
    if !ignored.is_empty() {
        let names = ignored.iter().take(limits::EVIDENCE_NAMES).map(|name| String::from_utf8_lossy(name));
        let (total, names) = (ignored.len(), names.collect::<Vec<_>>().join(", "));
        removed.evidence.push(format!("{total} entries that git ignores go with it, unsaved: {names}"));
    }
    Ok(())
}

pub(super) fn not_ours(folder: &Path, why: &str) -> Refusal {
    let message = format!("{} is not the worktree that was made there: {why}", folder.display());
    Refusal::new(ErrorCode::NotAWorktree, message)
}
