//! Worktrees that an older version made: linked to the user's repository, whose objects and refs their agents could
//! write. At its next use each gets a repository of its own; its files stay as they are, and what is not committed is
//! saved first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_kernel::time::Time;

use super::Repositories;
use super::look::Look;
use super::making::Record;
use super::mirror::USER;
use super::repository::Repository;
use super::view::new_scratch;
use super::worktree::{Asker, Worktree, base_ref};

/// A worktree that is part of the user's repository.
pub(super) struct Linked {
    /// The top of the user's working tree.
    pub(super) user: PathBuf,
    pub(super) base: String,
    pub(super) branch: Option<String>,
}

impl Repositories {
    /// The repository that a folder is linked to as a worktree; none where the folder has a repository of its own.
    pub(super) fn linked_to(&self, folder: &Path) -> Result<Option<Linked>, Refusal> {
        let Some(repository) = linked_repository(folder)? else { return Ok(None) };
        let source = self.source(&repository, Asker::Model)?;
        let user = repository.common_dir.parent().unwrap_or(Path::new("/")).to_path_buf();
        let branch = head_branch(&repository.git_dir);
        Ok(source.head.clone().map(|base| Linked { user, base, branch }))
    }

    /// The record of a worktree, once it has a repository of its own.
    pub(super) fn converted(
        &self,
        worktree: &Worktree,
        patches: &Path,
        now: Time,
        evidence: &mut Vec<String>,
    ) -> Result<Record, Refusal> {
        let recorded = Record::of(&worktree.path)?;
        let Some(repository) = linked_repository(&worktree.path)? else {
            return Ok(recorded.unwrap_or_else(|| Record { worktree: worktree.clone(), mirror: None }));
        };
        let old = Record { worktree: worktree.clone(), mirror: None };
        Look::take(self, &old, &worktree.path)?.save(worktree, patches, now, evidence)?;
        let record = self.convert(worktree, &repository)?;
        evidence.push(format!("{} has a repository of its own now", worktree.path.display()));
        Ok(record)
    }

    fn convert(&self, worktree: &Worktree, repository: &Repository) -> Result<Record, Refusal> {
        let failed = |error: io::Error| {
            let message = format!("{} could not be converted: {error}", worktree.path.display());
            Refusal::new("io", message, "see that there is room and the right to write in the home")
        };
        let source = self.source(repository, Asker::Person)?;
        let Some(head) = source.head.clone() else {
            let message = format!("no commit is checked out in {}", worktree.path.display());
            return Err(Refusal::new("unborn_head", message, "commit something there, or detach it with --discard"));
        };
        source.transfer(&head)?;
        let refs = source.mirror.present(&source.refs)?;
        source.mirror.set_refs(USER, &refs)?;
        source.mirror.set_ref(&base_ref(&worktree.path), &head)?;
        // Made apart, so that a crash leaves either repository whole.
        let apart = new_scratch(&self.scratch()).map_err(failed)?;
        let branch = head_branch(&repository.git_dir).unwrap_or_else(|| worktree.branch.clone());
        let new = Worktree { path: apart.path().to_path_buf(), branch, base_commit: head, ..worktree.clone() };
        source.init(&new, &refs)?.run(&[&"read-tree", &"HEAD"])?;
        let record = Record { worktree: worktree.clone(), mirror: Some(source.mirror.id.clone()) };
        record.write()?;
        let dot = worktree.path.join(".git");
        fs::remove_file(&dot).map_err(failed)?;
        fs::rename(apart.path().join(".git"), &dot).map_err(failed)?;
        // The user's repository forgets the folder; the branch stays in it.
        fs::remove_dir_all(&repository.git_dir).map_err(failed)?;
        Ok(record)
    }
}

fn linked_repository(folder: &Path) -> Result<Option<Repository>, Refusal> {
    if !folder.join(".git").symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    // One that leads nowhere, or to a repository that does not know the folder, is not ours to follow.
    let found = Repository::find(folder).ok().flatten();
    Ok(found.filter(|repository| repository.toplevel == folder && repository.is_linked()))
}

fn head_branch(git_dir: &Path) -> Option<String> {
    let head = super::repository::read(&git_dir.join("HEAD"), crate::limits::GIT_WORDS_BYTES).ok()?;
    let head = String::from_utf8(head).ok()?;
    Some(head.trim_end().strip_prefix("ref: refs/heads/")?.to_owned())
}
