//! Removes worktrees without losing work: uncommitted work is a verified patch on disk first, commits that the user
//! does not have are in the mirror, and if either is impossible nothing is removed and the refusal says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;
use serde::{Deserialize, Serialize};

use super::Repositories;
use super::baseline::Baseline;
use super::kept_refs;
use super::mirror::Mirror;
use super::staged_removal::StagedRemoval;
use super::tree::path_of;
use super::worktree::{Worktree, base_ref};
use super::worktree_record::WorktreeRecord;
use super::worktree_state::WorktreeState;
use crate::limits;
use crate::transient;

/// The outcome of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalReport {
    /// The patch of uncommitted work, if there was any.
    pub patch: Option<PathBuf>,
    /// Branches with commits that the user does not have, by the names that fetching gives them.
    pub branches_kept: Vec<String>,
    /// The findings and actions, in sentences.
    pub evidence: Vec<String>,
}

/// Whether unsaved work may be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsavedWork {
    Keep,
    /// On a person's word.
    Discard,
}

impl Repositories {
    /// Saves the work in a worktree into the folder `patches` and removes it. A folder that is gone already is refused
    /// as `missing`. An interrupted removal is resumed.
    pub fn remove_worktree(
        &self,
        worktree: &Worktree,
        unsaved: UnsavedWork,
        patches: &Path,
        now: Time,
    ) -> Result<RemovalReport, Refusal> {
        let _used = self.lock_mirrors();
        let staged = StagedRemoval::new(worktree);
        if let Some(removed) = staged.resume()? {
            return self.finish_removal(worktree, &staged, removed);
        }
        match fs::symlink_metadata(&worktree.path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(not_ours(&worktree.path, "it is no folder any more")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget_worktree(worktree)?;
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
        let mut removed = RemovalReport { patch: None, branches_kept: Vec::new(), evidence: Vec::new() };
        match unsaved {
            UnsavedWork::Keep => {
                let record = self.convert_if_linked(worktree, patches, now, &mut removed.evidence)?;
                let mirror = record.mirror.as_deref().map(|id| Mirror::by_id(&self.home, id));
                let baseline = mirror.as_ref().map(|mirror| Baseline::read(self, &record, mirror)).transpose()?;
                let saved = self.save_work(&record, baseline.as_ref(), patches, now, &mut removed)?;
                staged.move_aside()?;
                let same = WorktreeState::capture(self, &record, baseline.as_ref(), staged.folder())
                    .map(|state| state.is_same_as(&saved));
                if let Err(refusal) = require_unchanged(worktree, same).and_then(|()| staged.write_note(&removed)) {
                    staged.put_back()?;
                    return Err(refusal);
                }
            }
            UnsavedWork::Discard => {
                removed.evidence.push("what was in it was given up, on a person's word".to_owned());
                staged.move_aside()?;
                staged.write_note(&removed)?;
            }
        }
        staged.delete()?;
        self.finish_removal(worktree, &staged, removed)
    }

    /// Finishes a removal once the folder is gone.
    fn finish_removal(
        &self,
        worktree: &Worktree,
        staged: &StagedRemoval<'_>,
        mut removed: RemovalReport,
    ) -> Result<RemovalReport, Refusal> {
        self.forget_worktree(worktree)?;
        removed.evidence.push(format!("removed the worktree {}", worktree.path.display()));
        staged.delete_note()?;
        Ok(removed)
    }

    fn forget_worktree(&self, worktree: &Worktree) -> Result<(), Refusal> {
        if let Some(mirror) = WorktreeRecord::read(&worktree.path)?.and_then(|record| record.mirror) {
            Mirror::by_id(&self.home, &mirror).delete_ref(&base_ref(&worktree.path))?;
        }
        WorktreeRecord::delete(&worktree.path)
    }

    /// Saves the work until nothing changed between the state before and the state after, which is returned.
    fn save_work(
        &self,
        record: &WorktreeRecord,
        baseline: Option<&Baseline>,
        patches: &Path,
        now: Time,
        removed: &mut RemovalReport,
    ) -> Result<WorktreeState, Refusal> {
        let worktree = &record.worktree;
        let mut state = WorktreeState::capture(self, record, baseline, &worktree.path)?;
        for _ in 0..limits::SAVE_TRIES {
            kept_refs::refuse_under_way(worktree, state.conflicts)?;
            kept_refs::refuse_nested_repository(worktree, &state.tree)?;
            removed.patch = state.save_patches(worktree, patches, now, &mut removed.evidence)?;
            if let Some(refusal) = &state.unreadable {
                return Err(unreadable_refusal(worktree, refusal, removed.patch.as_deref()));
            }
            self.keep_refs(record, &state, patches, now, removed)?;
            note_ignored(worktree, &state, removed)?;
            let after = WorktreeState::capture(self, record, baseline, &worktree.path)?;
            if after.is_same_as(&state) {
                return Ok(after);
            }
            removed.evidence.push("it changed while it was saved".into());
            state = after;
        }
        let message = format!("{} kept changing while it was saved", worktree.path.display());
        let hint =
            format!("stop what writes there; what was saved is in {}, and nothing was removed", patches.display());
        Err(Refusal::new(ErrorCode::StillWritten, message).with_hint(hint))
    }

    fn keep_refs(
        &self,
        record: &WorktreeRecord,
        state: &WorktreeState,
        patches: &Path,
        now: Time,
        removed: &mut RemovalReport,
    ) -> Result<(), Refusal> {
        let Some(mirror) = record.mirror.as_deref().map(|id| Mirror::by_id(&self.home, id)) else { return Ok(()) };
        let kept = kept_refs::keep_commits(record, &mirror, state, patches, now).map_err(|refusal| {
            let hint = format!("{}; or give its commits up: abide workspace detach --discard", refusal.hint);
            Refusal { hint, ..refusal }
        })?;
        removed.branches_kept.clear();
        let more = kept.total - kept.refs.len();
        for kept_refs::KeptBranch { branch, holds, series } in kept.refs {
            let series = match series {
                kept_refs::PatchSeries::Saved(patch) => format!(", and as patches in {}", patch.display()),
                kept_refs::PatchSeries::TooLarge => ", and not as patches: they would be too large".to_owned(),
                kept_refs::PatchSeries::Empty => String::new(),
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

fn require_unchanged(worktree: &Worktree, same: Result<bool, Refusal>) -> Result<(), Refusal> {
    if same? {
        return Ok(());
    }
    let message = format!("{} changed after it was saved", worktree.path.display());
    Err(Refusal::new(ErrorCode::StillWritten, message))
}

fn unreadable_refusal(worktree: &Worktree, refusal: &Refusal, patch: Option<&Path>) -> Refusal {
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
fn note_ignored(worktree: &Worktree, state: &WorktreeState, removed: &mut RemovalReport) -> Result<(), Refusal> {
    let listed = state.tree.git.run(&[&"ls-files", &"-z", &"-o", &"--directory"])?;
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let is_empty = |name: &[u8]| name.ends_with(b"/") && !kept_refs::has_entries(&worktree.path.join(path_of(name)));
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
