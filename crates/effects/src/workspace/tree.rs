//! The content of a working tree at this moment, as a tree of git's, without a trace in the repository: git works on a
//! view, whose index is a copy and whose new objects are thrown away with it.

use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;

use super::git::Git;
use super::repository::Repository;
use super::untracked::{LIST, Untracked};
use super::view::View;
use super::worktree::repository;
use super::{Repositories, Workspace, scan};

/// Puts the tracked files as they are into the index. `git add` would start git in submodules, with their settings; this
/// does not. Files that are marked as unchanged are looked at, too.
const ADD_TRACKED: &str = "\
if git ls-files -v | grep -q '^[a-z]'; then git ls-files -z | git update-index --no-assume-unchanged -z --stdin; fi
git ls-files -z -m -d > \"$GIT_DIR/changed\"
git update-index --replace --remove -z --stdin < \"$GIT_DIR/changed\"
";

/// The same for untracked files. A repository inside that is not recorded is left out.
const ADD_UNTRACKED: &str = "\
git ls-files -z -o --exclude-standard | { grep -zv '/$' || test $? = 1; } | git update-index --add --replace --remove -z --stdin
";

impl Repositories {
    /// An identity of a workspace's content: the same as long as nothing changed. None when it can't be told.
    ///
    /// In git it is the hash of a tree with everything that is not ignored. It costs one look at every file, and reading
    /// those that differ from the index.
    #[must_use]
    pub fn tree(&self, workspace: &Workspace) -> Option<String> {
        let Ok(repository) = repository(workspace) else { return scan::digest(&workspace.path) };
        self.tree_of(&repository, &workspace.path).ok()
    }

    fn tree_of(&self, repository: &Repository, folder: &Path) -> Result<String, Refusal> {
        let view = View::reading(repository, &self.alternates_of(repository)?, &self.scratch())?;
        let git = self.untrusted(&view)?.with_files(&repository.toplevel);
        let inside = folder.strip_prefix(&repository.toplevel).unwrap_or(Path::new(""));
        let prefix = super::git::text(inside)?;
        let write = if prefix.is_empty() {
            "git write-tree".to_owned()
        } else {
            let prefix = prefix.replace('\'', r"'\''");
            // A folder without files is no entry of any tree.
            format!("git write-tree --prefix='{prefix}/' 2>/dev/null || git hash-object -t tree /dev/null")
        };
        let hash = git.script(&format!("{ADD_TRACKED}{ADD_UNTRACKED}{write}"))?;
        Ok(String::from_utf8_lossy(&hash).trim().to_owned())
    }
}

/// A working tree and the means to look into it.
#[derive(Debug)]
pub(super) struct Tree {
    /// Sees the repository's objects and those made here; its index holds the files.
    pub(super) git: Git,
    pub(super) view: View,
    /// The lines that the scripts printed.
    pub(super) lines: Vec<String>,
    /// Repositories inside that are not recorded.
    pub(super) repositories: Vec<PathBuf>,
}

impl Tree {
    /// Runs a script before the files are put into the index, and one after.
    pub(super) fn of(
        repositories: &Repositories,
        view: View,
        folder: &Path,
        before: &str,
        after: &str,
    ) -> Result<Tree, Refusal> {
        let git = repositories.untrusted(&view)?.with_files(folder);
        let mut printed = git.script(&format!("{before}{ADD_TRACKED}{LIST}"))?;
        let untracked = Untracked::read(&view, folder)?;
        view.write("untracked", untracked.joined())?;
        let add = "git update-index --add --replace --remove -z --stdin < \"$GIT_DIR/untracked\"\n";
        printed.extend(git.script(&format!("{add}{after}"))?);
        // Hashes, and names of refs: one that was changed here would be a ref that nobody has.
        let printed = String::from_utf8(printed).map_err(|_| {
            let message = format!("a ref in {} has a name that is not UTF-8", folder.display());
            Refusal::new("not_utf8", message, "rename it: git branch -m OLD NEW; nothing was removed")
        })?;
        let lines = printed.lines().map(str::to_owned).collect();
        Ok(Tree { git, view, lines, repositories: untracked.repositories })
    }

    /// git with an index that holds `tree`, and the same objects.
    pub(super) fn with_index(&self, name: &str, tree: &str) -> Result<Git, Refusal> {
        let git = self.git.with_index(self.view.place(name));
        git.run(&[&"read-tree", &tree])?;
        Ok(git)
    }
}

pub(super) fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}
