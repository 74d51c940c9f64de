//! A worktree at one moment: what is committed, what is staged, what is in its files. Two looks that agree say that
//! nothing happened in between.

use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::check::head;
use super::git::Git;
use super::patch::{PatchHolds, Unsaved};
use super::remove::not_ours;
use super::tree::Tree;
use super::worktree::Worktree;

/// Everything uncommitted in a worktree at one moment.
#[derive(Debug)]
pub(super) struct Look {
    /// What is in the files.
    pub(super) tree: Tree,
    head: Option<String>,
    /// The tree of the commit that is checked out.
    committed: String,
    /// Conflicts can't be written as a tree, and are refused.
    pub(super) conflicts: bool,
    staged: Option<String>,
}

impl Look {
    pub(super) fn take(folder: &Path) -> Result<Look, Refusal> {
        let own = Git::at(folder)?;
        // A folder whose link to the repository is lost may lie in another repository's working tree.
        let top = own.line(&[&"rev-parse", &"--show-toplevel"])?;
        if Path::new(&top) != folder {
            return Err(not_ours(folder, &format!("git takes it for part of {top}")));
        }
        let head = head(&own)?;
        let tree = Tree::of(folder)?;
        let committed = match &head {
            Some(head) => own.line(&[&"rev-parse", &format!("{head}^{{tree}}")])?,
            None => tree.git.line(&[&"hash-object", &"-t", &"tree", &"/dev/null"])?,
        };
        let conflicts = !own.run(&[&"ls-files", &"--unmerged", &"-z"])?.is_empty();
        let staged = if conflicts { None } else { tree.staged()? };
        Ok(Look { tree, head, committed, conflicts, staged })
    }

    pub(super) fn same_as(&self, other: &Look) -> bool {
        self.tree.hash == other.tree.hash && self.head == other.head && self.staged == other.staged
    }

    pub(super) fn save(
        &self,
        worktree: &Worktree,
        patches: &Path,
        now: Time,
        evidence: &mut Vec<String>,
    ) -> Result<Option<PathBuf>, Refusal> {
        let files = self.unsaved(worktree, PatchHolds::Files, &self.tree.hash);
        let staged = self.staged.as_deref().filter(|staged| *staged != self.tree.hash);
        let staged = staged.and_then(|staged| self.unsaved(worktree, PatchHolds::Staged, staged));
        if let Some(staged) = &staged {
            let patch = staged.save(patches, now)?;
            evidence.push(format!("what was staged, and not in the files, is in {}", patch.display()));
        }
        let Some(files) = files else {
            evidence.push("there was nothing uncommitted in its files".into());
            return Ok(None);
        };
        let patch = files.save(patches, now)?;
        evidence.push(format!("what was not committed is in {}, which was applied to prove it", patch.display()));
        Ok(Some(patch))
    }

    fn unsaved<'a>(&'a self, worktree: &'a Worktree, holds: PatchHolds, to: &'a str) -> Option<Unsaved<'a>> {
        let (tree, from) = (&self.tree, self.committed.as_str());
        let head = self.head.as_deref();
        (to != from).then_some(Unsaved { worktree, tree, head, holds, from, to })
    }

    /// Whether the files are some of those that are committed, unchanged: a checkout that was cut off.
    pub(super) fn only_lacks_files(&self) -> Result<bool, Refusal> {
        let args: [&dyn AsRef<std::ffi::OsStr>; 6] =
            [&"diff-tree", &"-r", &"--no-renames", &"--diff-filter=d", &self.committed, &self.tree.hash];
        Ok(self.tree.git.run(&args)?.is_empty())
    }
}
