//! Worktrees that an older version made: linked to the user's repository, whose objects and refs their agents could
//! write. At its next use each gets a repository of its own; its files stay as they are, and what is not committed is
//! saved first.
//!
//! An agent can make the `.git` of any worktree look like one of an older version. So only a worktree that has no record
//! of this version is converted, and only where it is linked to the very repository that it was recorded to be made of.
//! No object store is agreed to here: that takes a person.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::Repositories;
use super::look::Look;
use super::making::Record;
use super::mirror::USER;
use super::repository::Repository;
use super::tree_size::check_tree;
use super::view::new_scratch;
use super::worktree::{Worktree, base_ref};
use crate::transient;

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
        let source = self.source(&repository)?;
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
        if let Some(record) = recorded.clone().filter(|record| record.mirror.is_some() && !record.converting) {
            return Ok(record);
        }
        let Some(repository) = linked_repository(&worktree.path)? else {
            return match recorded {
                // The last conversion ended between its two steps.
                Some(record) if record.converting => record.finish_conversion(),
                Some(record) => Ok(record),
                None => Ok(Record::linked(worktree)),
            };
        };
        is_of_recorded(worktree, &repository)?;
        Look::take(self, &Record::linked(worktree), None, &worktree.path)?.save(worktree, patches, now, evidence)?;
        let record = self.convert(worktree, &repository)?;
        evidence.push(format!("{} has a repository of its own now", worktree.path.display()));
        Ok(record)
    }

    fn convert(&self, worktree: &Worktree, repository: &Repository) -> Result<Record, Refusal> {
        let failed = |error: io::Error| {
            let message = format!("{} could not be converted: {error}", worktree.path.display());
            Refusal::new(ErrorCode::Io, message)
                .with_hint(transient::hint(&error, "see that there is room and the right to write in the home"))
        };
        let source = self.source(repository)?;
        let Some(head) = source.head.clone() else {
            let message = format!("no commit is checked out in {}", worktree.path.display());
            return Err(Refusal::new(ErrorCode::UnbornHead, message)
                .with_hint("commit something there, or detach it with --discard"));
        };
        source.transfer(&head)?;
        check_tree(&source.mirror.git()?, &head)?;
        let refs = source.mirror.present(&source.refs)?;
        source.mirror.set_refs(USER, &refs)?;
        source.mirror.set_ref(&base_ref(&worktree.path), &head)?;
        // Made apart, so that a crash leaves either repository whole.
        let apart = new_scratch(&self.scratch()).map_err(failed)?;
        let branch = head_branch(&repository.git_dir).unwrap_or_else(|| worktree.branch.clone());
        let new = Worktree { path: apart.path().to_path_buf(), branch, base_commit: head, ..worktree.clone() };
        source.init(&new, &refs)?.run(&[&"read-tree", &"HEAD"])?;
        let record = Record { converting: true, ..source.record(worktree.clone()) };
        record.write()?;
        exchange(&apart.path().join(".git"), &worktree.path.join(".git")).map_err(failed)?;
        let record = record.finish_conversion()?;
        // The user's repository forgets the folder; the branch stays in it.
        fs::remove_dir_all(&repository.git_dir).map_err(failed)?;
        Ok(record)
    }
}

impl Record {
    /// The same, of a worktree that has its own repository.
    fn finish_conversion(self) -> Result<Record, Refusal> {
        let record = Record { converting: false, ..self };
        record.write()?;
        Ok(record)
    }
}

/// Refuses a worktree that is linked to another repository than the one that it was made of.
fn is_of_recorded(worktree: &Worktree, linked: &Repository) -> Result<(), Refusal> {
    let made_of = Repository::find(&worktree.repo)?;
    if made_of.is_some_and(|made_of| made_of.common_dir == linked.common_dir) {
        return Ok(());
    }
    let (path, repo) = (worktree.path.display(), worktree.repo.display());
    let message = format!("{path} is linked to {}, and was made of {repo}", linked.common_dir.display());
    let hint = format!("repair it: git -C '{repo}' worktree repair '{path}'; or detach it with --discard");
    Err(Refusal::new(ErrorCode::NotAWorktree, message).with_hint(hint))
}

/// Puts the new repository in the place of the file that led to the user's, in one step where the file system can.
fn exchange(new: &Path, dot: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, new, CWD, dot, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::remove_file(dot)?;
            fs::rename(new, dot)
        }
        done => Ok(done?),
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
