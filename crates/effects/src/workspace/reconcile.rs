//! What was recorded against what is there, by git's own list. Finds; changes nothing.

use std::path::Path;

use abide_kernel::input::Refusal;

use super::aside::own_place;
use super::check::canonical_as_far_as_it_exists;
use super::worktree::{Listed, Worktree, listed, repository};
use super::{BRANCHES, Workspace};

/// One thing that the caller has to know of, or act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Recorded and there.
    Present(Worktree),
    /// Recorded, and the folder is gone. Removing it finishes a removal that was cut off, or makes git forget it.
    Gone { worktree: Worktree, listed: bool },
    /// Recorded, and there is something at its path that git does not know as a worktree. Nobody may remove it.
    Unlinked(Worktree),
    /// Below our folder and not recorded: made just before a crash. To be saved and removed. `finished` tells whether
    /// git was done making it.
    Unrecorded { worktree: Worktree, finished: bool },
}

/// `recorded` may hold worktrees of other repositories; those are not looked at.
pub fn reconcile(repo: &Workspace, recorded: &[Worktree], worktrees_root: &Path) -> Result<Vec<Finding>, Refusal> {
    let (git, root) = repository(repo)?;
    let there = listed(&git)?.into_iter().map(|found| Listed { path: own_place(&found.path), ..found });
    let there: Vec<Listed> = there.filter(|found| !found.main).collect();
    let below = canonical_as_far_as_it_exists(worktrees_root)?;
    let mut findings = Vec::new();
    for worktree in recorded.iter().filter(|worktree| worktree.repo == root.toplevel) {
        let listed = there.iter().any(|found| found.path == worktree.path);
        findings.push(match (worktree.path.symlink_metadata().is_ok(), listed) {
            (true, true) => Finding::Present(worktree.clone()),
            (true, false) => Finding::Unlinked(worktree.clone()),
            (false, listed) => Finding::Gone { worktree: worktree.clone(), listed },
        });
    }
    let unknown = |found: &&Listed| {
        !found.main && found.path.starts_with(&below) && !recorded.iter().any(|worktree| worktree.path == found.path)
    };
    for found in there.iter().filter(unknown) {
        let base_commit = match (&root.head, &found.head) {
            // Where it left what the repository has checked out; if it never was there, where it is.
            (Some(ours), Some(theirs)) => {
                let said = git.ask(&[&"merge-base", ours, theirs])?;
                if said.ok { String::from_utf8_lossy(&said.out).trim().to_owned() } else { theirs.clone() }
            }
            (_, Some(theirs)) => theirs.clone(),
            (_, None) => String::new(),
        };
        // Without a branch it gets the name that it would have had, for what has to be kept of it.
        let unnamed = || format!("{BRANCHES}{}", found.path.file_name().unwrap_or_default().display());
        let branch = found.branch.clone().unwrap_or_else(unnamed);
        let (path, repo) = (found.path.clone(), root.toplevel.clone());
        let worktree = Worktree { path, branch, base_commit, repo, left_out: false };
        findings.push(Finding::Unrecorded { worktree, finished: !found.unfinished() });
    }
    Ok(findings)
}
