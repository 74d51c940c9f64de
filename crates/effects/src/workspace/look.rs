//! A worktree at one moment: its commits, what is staged, what is in its files. Two looks that agree say that nothing
//! happened in between.

use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::Repositories;
use super::making::Record;
use super::mirror::{Mirror, Refs, parse_refs};
use super::patch::{PatchHolds, Unsaved};
use super::repository::Repository;
use super::tree::Tree;
use super::view::View;
use super::worktree::Worktree;

/// Everything in a worktree at one moment.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) tree: Tree,
    /// Of the files.
    pub(super) files: String,
    pub(super) head: Option<String>,
    /// The tree of the commit that is checked out.
    committed: String,
    /// Conflicts can't be written as a tree, and are refused.
    pub(super) conflicts: bool,
    staged: Option<String>,
    /// Branches, tags and the stash, by their whole names; `HEAD` where no branch is checked out.
    pub(super) refs: Refs,
    /// Why the worktree's own repository could not be read. Then the look compares the files with the first commit.
    pub(super) unreadable: Option<Refusal>,
}

const BEFORE: &str = "\
git rev-parse -q --verify 'HEAD^{commit}' || echo -
git symbolic-ref -q HEAD || echo -
git rev-parse -q --verify 'HEAD^{tree}' || git hash-object -t tree /dev/null
if git ls-files -u | grep -q .; then echo conflicts; echo -; else echo -; git write-tree; fi
";
const AFTER: &str = "\
git write-tree
git for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags refs/stash
";

impl Look {
    /// Looks at the worktree that was recorded, in the folder where it is now.
    pub(super) fn take(repositories: &Repositories, record: &Record, folder: &Path) -> Result<Look, Refusal> {
        let mirror = record.mirror.as_deref().map(|id| Mirror::named(&repositories.home, id));
        let alternates = mirror.as_ref().map(|mirror| vec![mirror.objects()]).unwrap_or_default();
        let own = own_repository(folder).and_then(|repository| {
            let view = View::reading(&repository, &alternates, &repositories.scratch())?;
            Look::of(repositories, view, folder)
        });
        match (own, mirror) {
            (Ok(look), _) => Ok(look),
            (Err(refusal), None) => Err(refusal),
            (Err(refusal), Some(mirror)) => {
                let view = View::of_commit(&mirror, &record.worktree.base_commit, folder, &repositories.scratch())?;
                let look = Look::of(repositories, view, folder)?;
                let unreadable = folder.join(".git").symlink_metadata().is_ok().then_some(refusal);
                Ok(Look { refs: Refs::new(), unreadable, ..look })
            }
        }
    }

    fn of(repositories: &Repositories, view: View, folder: &Path) -> Result<Look, Refusal> {
        let tree = Tree::of(repositories, view, folder, BEFORE, AFTER)?;
        let mut lines = tree.lines.iter();
        let mut line = || lines.next().cloned().unwrap_or_default();
        let (head, branch, committed, conflicts, staged, files) = (line(), line(), line(), line(), line(), line());
        let given = |line: String| Some(line).filter(|line| line != "-" && !line.is_empty());
        let listed: String = lines.map(|line| format!("{line}\n")).collect();
        let mut refs = parse_refs(listed.as_bytes(), "");
        let head = given(head);
        if let (Some(head), None) = (&head, given(branch)) {
            refs.insert("HEAD".to_owned(), head.clone());
        }
        let (conflicts, staged) = (given(conflicts).is_some(), given(staged));
        Ok(Look { tree, files, head, committed, conflicts, staged, refs, unreadable: None })
    }

    pub(super) fn same_as(&self, other: &Look) -> bool {
        self.files == other.files && self.head == other.head && self.staged == other.staged && self.refs == other.refs
    }

    pub(super) fn save(
        &self,
        worktree: &Worktree,
        patches: &Path,
        now: Time,
        evidence: &mut Vec<String>,
    ) -> Result<Option<PathBuf>, Refusal> {
        let files = self.unsaved(worktree, PatchHolds::Files, &self.files);
        let staged = self.staged.as_deref().filter(|staged| *staged != self.files);
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
}

/// The repository in a worktree's folder. Its records are the folder's own `.git`, or, of one that an older version
/// made, those of the user's repository.
fn own_repository(folder: &Path) -> Result<Repository, Refusal> {
    let found = Repository::find(folder)?.filter(|repository| repository.toplevel == folder);
    found.ok_or_else(|| {
        let message = format!("{} has no repository of its own any more", folder.display());
        Refusal::new("not_a_worktree", message, "look at the folder and move what is in it; nothing was removed")
    })
}
