//! Patches: uncommitted work of a worktree, saved so that `git am` and `git apply` put it back. A patch is worth
//! something only if it leads to what was there, so each is applied, apart from everything, and compared before it counts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use super::tree_size::check_tree;
use super::worktree::Worktree;
use super::{BRANCHES, durable, uncommitted};
use crate::limits;
use crate::transient;

/// A saved patch as it lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchRecord {
    pub name: String,
    pub patch: PathBuf,
    pub bytes: u64,
    /// None when the file beside the patch is missing or can't be read; the patch is there all the same.
    pub story: Option<PatchStory>,
}

/// What is written beside a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchStory {
    pub holds: PatchHolds,
    pub worktree: PathBuf,
    pub branch: String,
    pub base_commit: String,
    /// The commit that the patch applies to; none when there was none.
    pub applies_to: Option<String>,
    /// The tree that applying it leads to.
    pub tree: String,
    pub saved_at: Time,
    /// The first of the files that it changes, and how many there are.
    pub files: Vec<String>,
    pub files_total: usize,
    pub bytes: u64,
}

/// What of a worktree is in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchHolds {
    /// The files as they were in the folder.
    Files,
    /// The files as they were staged, where that was something else again.
    Staged,
    /// The commits of a branch, one mail each.
    Commits,
}

/// All patches in a folder, by name. A folder that does not exist has none.
pub fn list_patches(patches: &Path) -> Result<Vec<PatchRecord>, Refusal> {
    let entries = match fs::read_dir(patches) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_refusal(patches, &error)),
    };
    let mut records = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(|error| io_refusal(patches, &error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".patch")) else { continue };
        let bytes = fs::metadata(&path).map_err(|error| io_refusal(&path, &error))?.len();
        let story = fs::read(path.with_file_name(format!("{name}.json"))).ok();
        let story = story.and_then(|story| serde_json::from_slice(&story).ok());
        records.insert(name.to_owned(), PatchRecord { name: name.into(), patch: path, bytes, story });
    }
    Ok(records.into_values().collect())
}

/// What is to be saved of a worktree.
#[derive(Debug)]
pub(super) struct Unsaved<'a> {
    pub(super) worktree: &'a Worktree,
    /// The means to look at both trees.
    pub(super) tree: &'a Tree,
    pub(super) head: Option<&'a str>,
    pub(super) holds: PatchHolds,
    /// The trees that the patch leads from and to.
    pub(super) from: &'a str,
    pub(super) to: &'a str,
}

impl Unsaved<'_> {
    /// Returns once the patch is proven and on disk, with its story.
    pub(super) fn save(&self, patches: &Path, now: Time) -> Result<PathBuf, Refusal> {
        for tree in [self.from, self.to] {
            check_tree(&self.tree.git, tree).map_err(|refusal| self.keeps_folder(refusal))?;
        }
        if let Some(saved) = self.saved_before(patches)? {
            return Ok(saved);
        }
        let failed = |error: io::Error| io_refusal(patches, &error);
        let (files, files_total) = self.files()?;
        let mut partial = durable::partial(patches).map_err(failed)?;
        self.write(partial.as_file_mut(), files_total)?;
        self.prove(partial.path())?;
        let bytes = partial.as_file().metadata().map_err(failed)?.len();
        let story = PatchStory {
            holds: self.holds,
            worktree: self.worktree.path.clone(),
            branch: self.worktree.branch.clone(),
            base_commit: self.worktree.base_commit.clone(),
            applies_to: self.head.map(str::to_owned),
            tree: self.to.into(),
            saved_at: now,
            files,
            files_total,
            bytes,
        };
        publish(partial, patches, &self.name(), &story)
    }

    /// The same work may have been saved by a removal that was cut off.
    fn saved_before(&self, patches: &Path) -> Result<Option<PathBuf>, Refusal> {
        let same = |story: &PatchStory| {
            story.holds == self.holds
                && story.worktree == self.worktree.path
                && story.applies_to.as_deref() == self.head
                && story.tree == self.to
        };
        let saved = list_patches(patches)?
            .into_iter()
            .find(|record| record.story.as_ref().is_some_and(same) && self.prove(&record.patch).is_ok());
        Ok(saved.map(|record| record.patch))
    }

    /// A mail, as `git format-patch` writes it; the diff is git's.
    fn write(&self, file: &mut File, files: usize) -> Result<(), Refusal> {
        let failed = |error: io::Error| io_refusal(Path::new("the patch"), &error);
        let what = match self.holds {
            PatchHolds::Files => "Uncommitted",
            PatchHolds::Staged => "Staged",
            PatchHolds::Commits => "Committed",
        };
        let (branch, path) = (&self.worktree.branch, plain(&self.worktree.path.to_string_lossy()));
        let onto = self.head.unwrap_or("no commit");
        let zeros = "0".repeat(40);
        write!(
            file,
            "From {zeros} Mon Sep 17 00:00:00 2001\nFrom: Abide <abide@localhost>\nSubject: [PATCH] {what} work of {branch}\n\n\
             {files} files in {path}, onto {onto}.\nPut back with git am --keep-cr, or with git apply.\n---\n\n"
        )
        .map_err(failed)?;
        let git = self.tree.git.with_less_memory();
        // Every setting that changes what a diff looks like is overruled; exact renames alone cost nothing to find.
        let form: [&str; 11] = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "-M100%",
            "-U3",
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = form.iter().map(|arg| arg as _).collect();
        args.extend([&"--no-color" as &dyn AsRef<std::ffi::OsStr>, &"-O/dev/null", &self.from, &self.to]);
        if !git.run_into(&args, file, limits::UNCOMMITTED_PATCH_BYTES)? {
            let (path, most) = (self.worktree.path.display(), limits::UNCOMMITTED_PATCH_BYTES);
            let message = format!(
                "the patch of what is not committed in {path} has more than {most} bytes, or takes too much memory"
            );
            return Err(uncommitted::too_much(&self.worktree.path, &message));
        }
        file.write_all(b"-- \nabide\n").map_err(failed)
    }

    /// Applies the patch to what it is for, in an index of its own, and compares what comes out.
    fn prove(&self, patch: &Path) -> Result<(), Refusal> {
        let git = self.tree.with_index("proof", self.from)?;
        let file = File::open(patch).map_err(|error| io_refusal(patch, &error))?;
        git.run_holding(&[&"apply", &"--cached", &"--whitespace=nowarn", &"-"], &file)?;
        let reached = git.line(&[&"write-tree"])?;
        if reached == self.to {
            return Ok(());
        }
        let message = format!("the patch of {} leads to {reached}, not to {}", self.worktree.path.display(), self.to);
        Err(Refusal::new(ErrorCode::PatchUnproven, message))
    }

    fn keeps_folder(&self, refusal: Refusal) -> Refusal {
        let path = self.worktree.path.display();
        let hint = format!(
            "check out or commit a smaller tree in {path}; or give up all that is in it: abide workspace detach --discard; \
             nothing was removed"
        );
        Refusal { hint, ..refusal }
    }

    fn files(&self) -> Result<(Vec<String>, usize), Refusal> {
        let args: [&dyn AsRef<std::ffi::OsStr>; 7] =
            [&"diff-tree", &"-r", &"-z", &"--name-only", &"--no-renames", &self.from, &self.to];
        let out = self.tree.git.run(&args)?;
        let names = out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let total = names.clone().count();
        Ok((names.take(limits::PATCH_FILES).map(|name| String::from_utf8_lossy(name).into_owned()).collect(), total))
    }

    fn name(&self) -> String {
        let name = plain_name(&self.worktree.branch);
        match self.holds {
            PatchHolds::Files => name,
            PatchHolds::Staged => format!("{name}.staged"),
            PatchHolds::Commits => format!("{name}.commits"),
        }
    }
}

/// Puts a patch and its story in place under a name that is free.
pub(super) fn publish(
    mut partial: tempfile::NamedTempFile,
    patches: &Path,
    wanted: &str,
    story: &PatchStory,
) -> Result<PathBuf, Refusal> {
    let failed = |error: io::Error| io_refusal(patches, &error);
    loop {
        let taken = |name: &str| {
            [".patch", ".json"].iter().any(|end| patches.join(format!("{name}{end}")).symlink_metadata().is_ok())
        };
        let Some(name) = durable::free_name(wanted, taken) else {
            let message = format!("{} is full of patches named {wanted}", patches.display());
            return Err(Refusal::new(ErrorCode::TooManyPatches, message));
        };
        match durable::place(partial, patches, &format!("{name}.patch")).map_err(failed)? {
            Ok(patch) => {
                write_story(patches, &name, story)?;
                return Ok(patch);
            }
            // Somebody took the name since we looked.
            Err(again) => partial = again,
        }
    }
}

fn write_story(patches: &Path, name: &str, story: &PatchStory) -> Result<(), Refusal> {
    let failed = |error: io::Error| io_refusal(patches, &error);
    let mut partial = durable::partial(patches).map_err(failed)?;
    serde_json::to_writer_pretty(partial.as_file_mut(), story).map_err(|error| failed(error.into()))?;
    durable::place(partial, patches, &format!("{name}.json")).map_err(failed)?.map(drop).map_err(|_| {
        let message = format!("{name}.json appeared in {} by itself", patches.display());
        Refusal::new(ErrorCode::NameTaken, message)
    })
}

/// The name of a branch in letters that every file system takes.
pub(super) fn plain_name(branch: &str) -> String {
    let branch = branch.strip_prefix(BRANCHES).unwrap_or(branch);
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { c } else { '-' };
    let mut name: String = branch.chars().map(plain).take(120).collect();
    if name.starts_with('.') || name.starts_with('-') {
        name.insert(0, '_');
    }
    name
}

/// On one line, for the head of a mail.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

pub(super) fn io_refusal(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("{} could not be read or written: {error}", path.display());
    let usual = "see that there is room and the right to write there; nothing was removed";
    Refusal::new(ErrorCode::Io, message).with_hint(transient::hint(error, usual))
}
