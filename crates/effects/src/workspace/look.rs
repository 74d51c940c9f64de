//! A worktree at one moment: its commits, what is staged, what is in its files. Two looks that agree say that nothing
//! happened in between.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;

use super::Repositories;
use super::baseline::Baseline;
use super::identity::REMOTE;
use super::making::Record;
use super::mirror::{Mirror, Refs};
use super::patch::{PatchHolds, Unsaved, plain_name};
use super::repository::{Repository, Settings, read_record};
use super::tree::Tree;
use super::view::View;
use super::worktree::{SHOWN_USER, Worktree, records_are_its_own};
use crate::limits;

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
    /// All refs but copies of other repositories' and the stash, by their whole names; `HEAD` where no branch is checked
    /// out, and `worktrees/NAME` of working trees that its agent linked to it.
    pub(super) refs: Refs,
    /// The commits of the stash, the newest first.
    pub(super) stashes: Vec<String>,
    /// Commits that only reflogs name, without those that lead to others of them.
    pub(super) logged: BTreeSet<String>,
    /// Why the worktree's own repository could not be read. Then the look compares the files with the first commit.
    pub(super) unreadable: Option<Refusal>,
}

const BEFORE: &str = "\
git rev-parse -q --verify 'HEAD^{commit}' || echo -
git symbolic-ref -q HEAD || echo -
git rev-parse -q --verify 'HEAD^{tree}' || git hash-object -t tree /dev/null
if git ls-files -u | grep -q .; then echo conflicts; echo -; else echo -; git write-tree; fi
";

/// Lists the refs, the stash, and the commits that only reflogs name, with their parents. git skips a ref that it can't
/// read, with a warning, which is made a failure.
const AFTER: &str = "\
git write-tree
git for-each-ref --format='%(objectname) %(refname)' > \"$GIT_DIR/refs-listed\" 2> \"$GIT_DIR/refs-warnings\"
if grep -q . \"$GIT_DIR/refs-warnings\"; then cat \"$GIT_DIR/refs-warnings\" >&2; exit 1; fi
cat \"$GIT_DIR/refs-listed\"
: > \"$GIT_DIR/stashes\"
if git rev-parse -q --verify refs/stash > /dev/null; then git rev-list -g refs/stash > \"$GIT_DIR/stashes\"; fi
sed 's/^/stash /' \"$GIT_DIR/stashes\"
if test -e \"$GIT_DIR/baseline\"; then
git rev-list -g --exclude='refs/remotes/*' --all > \"$GIT_DIR/asked\"
sed 's/^/^/; s/ .*//' \"$GIT_DIR/refs-listed\" \"$GIT_DIR/stashes\" \"$GIT_DIR/baseline\" >> \"$GIT_DIR/asked\"
if git rev-parse -q --verify HEAD > /dev/null; then echo ^HEAD >> \"$GIT_DIR/asked\"; fi
git rev-list --ignore-missing --parents --stdin < \"$GIT_DIR/asked\" > \"$GIT_DIR/logged\"
sed 's/^/logged /' \"$GIT_DIR/logged\"
fi
";

impl Look {
    /// Looks at the worktree that was recorded, in the folder where it is now. One that is part of the user's repository
    /// has no baseline of its own.
    pub(super) fn take(
        repositories: &Repositories,
        record: &Record,
        baseline: Option<&Baseline>,
        folder: &Path,
    ) -> Result<Look, Refusal> {
        let scratch = repositories.scratch();
        let Some(mirror) = record.mirror.as_deref().map(|id| Mirror::named(&repositories.home, id)) else {
            let view = View::reading(&own_repository(folder)?, &[], &scratch)?;
            return Look::of(repositories, view, baseline, folder);
        };
        let own = own_repository(folder).and_then(|repository| {
            records_are_its_own(&repository)?;
            let view = View::of_worktree(&repository, &[mirror.objects()], &scratch, &record.settings)?;
            let mut look = Look::of(repositories, view, baseline, folder)?;
            look.drop_copies(&repository, &mirror)?;
            look.refs.extend(linked_heads(&repository.common_dir));
            Ok(look)
        });
        own.or_else(|refusal| {
            // Another view would find no less.
            if [ErrorCode::TooMuchIgnored, ErrorCode::TooMuchUncommitted].contains(&refusal.code) {
                return Err(refusal);
            }
            let base = &record.worktree.base_commit;
            let view = View::of_commit(&mirror, base, folder, &scratch, &record.settings)?;
            let look = Look::of(repositories, view, baseline, folder)?;
            let unreadable = folder.join(".git").symlink_metadata().is_ok().then_some(refusal);
            Ok(Look { refs: Refs::new(), stashes: Vec::new(), logged: BTreeSet::new(), unreadable, ..look })
        })
    }

    fn of(
        repositories: &Repositories,
        view: View,
        baseline: Option<&Baseline>,
        folder: &Path,
    ) -> Result<Look, Refusal> {
        if let Some(baseline) = baseline {
            view.write("ignored", &baseline.ignored)?;
            view.list("baseline", baseline.commits.iter().cloned())?;
        }
        let tree = Tree::of(repositories, view, folder, BEFORE, AFTER)?;
        let mut lines = tree.lines.iter();
        let mut line = || lines.next().cloned().unwrap_or_default();
        let (head, branch, committed, conflicts, staged, files) = (line(), line(), line(), line(), line(), line());
        let given = |line: String| Some(line).filter(|line| line != "-" && !line.is_empty());
        let (mut refs, mut stashes, mut logged) = (Refs::new(), Vec::new(), Vec::new());
        for (first, rest) in lines.filter_map(|line| line.split_once(' ')) {
            match first {
                "stash" => stashes.push(rest.to_owned()),
                "logged" => logged.push(rest),
                id => drop(refs.insert(rest.to_owned(), id.to_owned())),
            }
        }
        let parents: BTreeSet<&str> = logged.iter().flat_map(|line| line.split(' ').skip(1)).collect();
        let tips = logged.iter().filter_map(|line| line.split(' ').next()).filter(|id| !parents.contains(id));
        let logged = tips.map(str::to_owned).collect();
        let head = given(head);
        if let (Some(head), None) = (&head, given(branch)) {
            refs.insert("HEAD".to_owned(), head.clone());
        }
        // A stash without a reflog is the ref alone.
        let stash = refs.remove("refs/stash");
        stashes.extend(stash.filter(|stash| !stashes.contains(stash)));
        let (conflicts, staged) = (given(conflicts).is_some(), given(staged));
        Ok(Look { tree, files, head, committed, conflicts, staged, refs, stashes, logged, unreadable: None })
    }

    /// Leaves out refs that are copies: of the remotes that are configured, and of the user's branches and of what was kept
    /// of other worktrees, as long as they are what the mirror has.
    fn drop_copies(&mut self, repository: &Repository, mirror: &Mirror) -> Result<(), Refusal> {
        let settings = Settings::read(repository)?;
        let remotes: BTreeSet<&str> = settings.all().filter_map(|(key, _)| remote_of(key)).collect();
        let in_mirror = mirror.present(&self.refs)?;
        self.refs.retain(|name, _| {
            let Some(copy) = name.strip_prefix("refs/remotes/") else { return true };
            let is_of = |remote: &str| copy.strip_prefix(remote).is_some_and(|rest| rest.starts_with('/'));
            let ours = is_of(SHOWN_USER) || is_of(REMOTE);
            let is_copy = remotes.iter().any(|remote| is_of(remote)) || (ours && in_mirror.contains_key(name));
            !is_copy
        });
        Ok(())
    }

    pub(super) fn same_as(&self, other: &Look) -> bool {
        let content = |look: &Look| (look.files.clone(), look.head.clone(), look.staged.clone());
        let commits = |look: &Look| (look.refs.clone(), look.stashes.clone(), look.logged.clone());
        content(self) == content(other) && commits(self) == commits(other)
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

/// The name of a remote, by the key of one of its settings.
fn remote_of(key: &str) -> Option<&str> {
    Some(key.strip_prefix("remote.")?.rsplit_once('.')?.0)
}

/// The commits that are checked out in working trees linked to a repository, where no branch is. All of them: those that
/// would be too many to keep are refused with the refs.
fn linked_heads(common_dir: &Path) -> Refs {
    let linked = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let mut heads = Refs::new();
    for entry in linked {
        let record = Path::new("worktrees").join(entry.file_name()).join("HEAD");
        let Ok(head) = read_record(common_dir, record, limits::GIT_WORDS_BYTES) else { continue };
        let id = String::from_utf8_lossy(&head).trim_end().to_owned();
        if !matches!(id.len(), 40 | 64) || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        // Two names may be the same once they are plain.
        let name = format!("worktrees/{}", plain_name(&entry.file_name().to_string_lossy()));
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !heads.contains_key(name));
        heads.insert(free.unwrap_or(name), id);
    }
    heads
}

/// The repository in a worktree's folder. Its records are the folder's own `.git`, or, of one that an older version
/// made, those of the user's repository.
pub(super) fn own_repository(folder: &Path) -> Result<Repository, Refusal> {
    let found = Repository::find(folder)?.filter(|repository| repository.toplevel == folder);
    found.ok_or_else(|| {
        let message = format!("{} has no repository of its own any more", folder.display());
        Refusal::new(ErrorCode::NotAWorktree, message)
    })
}
