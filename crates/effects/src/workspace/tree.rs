//! What a working tree holds at this moment, as a tree of git's, without a trace in the repository: the index is a copy
//! and new objects go into a folder that is thrown away.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use tempfile::TempDir;

use super::Workspace;
use super::git::{Git, Scratch};
use super::scan;

/// An identity of what is in the workspace: the same as long as nothing changed. None when it can't be told.
///
/// In git it is the hash of a tree with everything that is not ignored. What it costs is one look at every file, and
/// reading those that differ from the index.
#[must_use]
pub fn tree(workspace: &Workspace) -> Option<String> {
    match &workspace.git {
        Some(_) => Tree::of(&workspace.path).ok().map(|tree| tree.hash),
        None => scan::digest(&workspace.path),
    }
}

/// A tree and the means to look into it.
#[derive(Debug)]
pub(super) struct Tree {
    /// Of everything below the folder.
    pub(super) hash: String,
    /// Sees the repository's objects and those made here; its index holds the tree.
    pub(super) git: Git,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    scratch: TempDir,
}

impl Tree {
    pub(super) fn of(folder: &Path) -> Result<Tree, Refusal> {
        let git = Git::at(folder)?;
        let [git_dir, common_dir, prefix] =
            git.where_are(["--absolute-git-dir", "--git-common-dir", "--show-prefix"])?;
        let (git_dir, common_dir) = (PathBuf::from(git_dir), PathBuf::from(common_dir));
        let scratch = scratch().map_err(|error| no_room(&error))?;
        let index = scratch.path().join("index");
        let objects = scratch.path().join("objects");
        abide_private::private_folder(&objects).map_err(|error| no_room(&error))?;
        copy_index(&git_dir.join("index"), &index).map_err(|error| no_room(&error))?;
        let git = git.with(Scratch { index, objects, behind: common_dir.join("objects") });
        show_everything(&git)?;
        git.run(&[&"add", &"-A", &"--sparse", &"--", &"."])?;
        let hash = write_tree(&git, &prefix)?;
        Ok(Tree { hash, git, git_dir, common_dir, scratch })
    }

    /// git with an index that holds `tree`, and the same objects.
    pub(super) fn with_index(&self, name: &str, tree: &str) -> Result<Git, Refusal> {
        let git = self.git.with_index(self.scratch.path().join(name));
        git.run(&[&"read-tree", &tree])?;
        Ok(git)
    }

    /// The tree that is staged in the worktree's own index, which is not the one here.
    pub(super) fn staged(&self) -> Result<Option<String>, Refusal> {
        let own = self.git_dir.join("index");
        if !own.try_exists().map_err(|error| no_room(&error))? {
            return Ok(None);
        }
        let copy = self.scratch.path().join("staged");
        copy_index(&own, &copy).map_err(|error| no_room(&error))?;
        self.git.with_index(copy).line(&[&"write-tree"]).map(Some)
    }
}

const SCRATCH: &str = "abide-tree-";

/// For nobody else's eyes: it holds whatever was changed in the working tree. Its name says whose it is.
fn scratch() -> io::Result<TempDir> {
    let prefix = format!("{SCRATCH}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).permissions(Permissions::from_mode(0o700)).tempdir()
}

/// Throws away what processes left behind that were killed while they looked.
pub fn sweep_scratch(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(SCRATCH)?.split_once('-'));
        let Some(pid) = owner.and_then(|(pid, _)| pid.parse::<u32>().ok()) else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            // Another user's is not ours to remove, and another daemon may have been faster.
            let _left = fs::remove_dir_all(entry.path());
        }
    }
}

/// With its time, because git takes a file that is younger than the index for one that may have changed since.
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match File::open(from) {
        Ok(source) => source,
        // Nothing was ever added.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let time = source.metadata()?.modified()?;
    let mut copy = abide_private::private_file(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_modified(time)
}

/// Files can be marked so that git does not look at them. A change in one is a change.
fn show_everything(git: &Git) -> Result<(), Refusal> {
    let listed = git.run(&[&"ls-files", &"-v", &"-z"])?;
    let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
    for entry in listed.split(|byte| *byte == 0).filter(|entry| entry.len() > 2) {
        let (mark, name) = (entry[0], &entry[2..]);
        if mark.is_ascii_lowercase() {
            assumed.extend_from_slice(name);
            assumed.push(0);
        }
        // A sparse checkout leaves files out; those are not gone.
        if mark.eq_ignore_ascii_case(&b'S') && fs::symlink_metadata(git.dir.join(path_of(name))).is_ok() {
            skipped.extend_from_slice(name);
            skipped.push(0);
        }
    }
    for (option, names) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
        if !names.is_empty() {
            git.run_with(&[&"update-index", &option, &"-z", &"--stdin"], &names)?;
        }
    }
    Ok(())
}

pub(super) fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}

fn write_tree(git: &Git, prefix: &str) -> Result<String, Refusal> {
    if prefix.is_empty() {
        return git.line(&[&"write-tree"]);
    }
    let option = format!("--prefix={prefix}");
    let said = git.ask(&[&"write-tree", &option])?;
    if said.ok {
        return Ok(String::from_utf8_lossy(&said.out).trim().to_owned());
    }
    // A folder without files is no entry of any tree.
    if said.err.contains("not found") {
        return git.line(&[&"hash-object", &"-t", &"tree", &"/dev/null"]);
    }
    Err(git.failed(&[&"write-tree"], &said.err))
}

fn no_room(error: &io::Error) -> Refusal {
    let message = format!("the working tree could not be looked at: {error}");
    Refusal::new("io", message, "see that there is room and the right to write in the folder for temporary files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_look_needs_is_for_its_own_eyes() {
        let made = scratch().unwrap();
        assert_eq!(fs::metadata(made.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let name = made.path().file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with(&format!("{SCRATCH}{}-", std::process::id())),
            "{name}: nobody could tell whose it is"
        );
        sweep_scratch(made.path().parent().unwrap());
        assert!(made.path().exists(), "whoever lives still needs it");
    }

    #[test]
    fn what_the_dead_left_behind_is_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        // More than any process is called.
        let dead = format!("{SCRATCH}4194305-x");
        let others = [format!("{SCRATCH}{}-x", std::process::id()), format!("{SCRATCH}x"), "mine".to_owned()];
        for name in std::iter::once(&dead).chain(&others) {
            fs::create_dir_all(folder.path().join(name).join("objects")).unwrap();
        }
        sweep_scratch(folder.path());
        assert!(!folder.path().join(dead).exists());
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
        sweep_scratch(&folder.path().join("nowhere"));
    }
}
