//! The content of a working tree at this moment, as a tree of git's, without a trace in the repository: git works on a
//! view, whose index is a copy and whose new objects are thrown away with it.

use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};

use super::git::Git;
use super::repository::{Repository, read_record};
use super::untracked::{LIST, Untracked};
use super::view::View;
use super::worktree::repository;
use super::{Repositories, Workspace, scan, uncommitted};
use crate::{limits, transient};

/// Lists the tracked files that changed. Those that are marked as unchanged are looked at, too.
const LIST_CHANGED: &str = "\
if git ls-files -v | grep -q '^[a-z]'; then git ls-files -z | git update-index --no-assume-unchanged -z --stdin; fi
git ls-files -z -m -d > \"$GIT_DIR/changed\"
";

/// Lists the untracked files. A repository inside that is not recorded is left out.
const LIST_UNTRACKED: &str = "\
git ls-files -z -o --exclude-standard | { grep -zv '/$' || test $? = 1; } > \"$GIT_DIR/untracked\"
";

/// Puts the files of both lists as they are into the index. `git add` would start git in submodules, with their settings;
/// this does not.
const ADD: &str = "\
git update-index --replace --remove -z --stdin < \"$GIT_DIR/changed\"
git update-index --add --replace --remove -z --stdin < \"$GIT_DIR/untracked\"
";

impl Repositories {
    /// An identity of a workspace's content: the same as long as nothing changed. None when it can't be told.
    ///
    /// In git it is the hash of a tree with everything that is not ignored. It costs one look at every file, and reading
    /// those that differ from the index. Where those are too many or too large nobody knows.
    #[must_use]
    pub fn tree(&self, workspace: &Workspace) -> Option<String> {
        let Ok(repository) = repository(workspace) else { return scan::digest(&workspace.path) };
        self.tree_of(&repository, &workspace.path).ok()
    }

    fn tree_of(&self, repository: &Repository, folder: &Path) -> Result<String, Refusal> {
        let view = View::reading(repository, &self.alternates_of(repository)?, &self.scratch())?;
        let git = self.untrusted(&view)?.with_files(&repository.toplevel).with_patience(limits::TREE_PATIENCE);
        let inside = folder.strip_prefix(&repository.toplevel).unwrap_or(Path::new(""));
        let prefix = super::git::text(inside)?;
        let write = if prefix.is_empty() {
            "git write-tree".to_owned()
        } else {
            let prefix = prefix.replace('\'', r"'\''");
            // A folder without files is no entry of any tree.
            format!("git write-tree --prefix='{prefix}/' 2>/dev/null || git hash-object -t tree /dev/null")
        };
        // Without anything that is not committed, one sandbox is enough.
        let differs = "test -s \"$GIT_DIR/changed\" || test -s \"$GIT_DIR/untracked\"";
        let hash = git.script(&format!("{LIST_CHANGED}{LIST_UNTRACKED}if {differs}; then exit; fi\n{write}"))?;
        let hash = match hash.is_empty() {
            true => {
                let (changed, untracked) = (listed(&view, "changed")?, listed(&view, "untracked")?);
                uncommitted::check(&repository.toplevel, names(&changed).chain(names(&untracked)))?;
                git.script(&format!("{ADD}{write}"))?
            }
            false => hash,
        };
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
        let mut printed = git.script(&format!("{before}{LIST_CHANGED}{LIST}"))?;
        let (changed, untracked) = (listed(&view, "changed")?, Untracked::read(&view, folder)?);
        uncommitted::check(folder, names(&changed).chain(untracked.files.iter().map(Vec::as_slice)))?;
        view.write("untracked", untracked.joined())?;
        printed.extend(git.script(&format!("{ADD}{after}"))?);
        // Hashes, and names of refs: one that was changed here would be a ref that nobody has.
        let printed = String::from_utf8(printed).map_err(|_| {
            let message = format!("a ref in {} has a name that is not UTF-8", folder.display());
            Refusal::new(ErrorCode::NameNotUtf8, message)
                .with_hint("rename it: git branch -m OLD NEW; nothing was removed")
        })?;
        let lines = printed.lines().map(str::to_owned).collect();
        Ok(Tree { git, view, lines, repositories: untracked.repositories })
    }

    /// git with an index that holds `tree`, which has to be counted before, and the same objects.
    pub(super) fn with_index(&self, name: &str, tree: &str) -> Result<Git, Refusal> {
        let git = self.git.with_index(self.view.place(name)).with_less_memory();
        git.run(&[&"read-tree", &tree])?;
        Ok(git)
    }
}

/// A list of names that a script made in a view.
pub(super) fn listed(view: &View, list: &str) -> Result<Vec<u8>, Refusal> {
    match read_record(view.git_dir(), list, limits::GIT_OUTPUT_BYTES) {
        Ok(listed) => Ok(listed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            let message = format!("the list of {list} files could not be read: {error}");
            let usual = "delete files that are not needed; nothing was removed";
            Err(Refusal::new(ErrorCode::TooBig, message).with_hint(transient::hint(&error, usual)))
        }
    }
}

pub(super) fn names(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

pub(super) fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}
