//! What has to outlive a worktree's folder besides its files: every ref of its repository, and the commits that reflogs
//! name. And what stands in the way of removing one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::time::Time;

use super::look::Look;
use super::making::Record;
use super::mirror::{COMMIT, KEPT, LOGGED, Mirror, Owner, Refs, USER};
use super::patch::{PatchHolds, PatchStory, io_refusal, list_patches, plain_name, publish};
use super::tree::{Tree, path_of};
use super::tree_size::check_tree;
use super::worktree::Worktree;
use super::{BRANCHES, durable};
use crate::limits;

/// What git leaves in a repository's records while something is under way, and what that is.
const UNDER_WAY: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase, or git am,"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or a revert"),
    ("BISECT_LOG", "a bisect"),
];

/// Refuses when the worktree is in the middle of something that a patch can't hold.
pub(super) fn nothing_under_way(worktree: &Worktree, conflicts: bool) -> Result<(), Refusal> {
    let (path, git_dir) = (worktree.path.display(), worktree.path.join(".git"));
    if let Some((_, what)) = UNDER_WAY.iter().find(|(name, _)| git_dir.join(name).symlink_metadata().is_ok()) {
        let hint = format!("finish or abort it first, in {path}; nothing was removed");
        return Err(Refusal::new(ErrorCode::UnderWay, format!("{what} is under way in {path}")).with_hint(hint));
    }
    if git_dir.join("index.lock").symlink_metadata().is_ok() {
        let hint = "try again when it is done, or delete its index.lock if there is none; nothing was removed";
        return Err(Refusal::new(ErrorCode::GitBusy, format!("another git is at work in {path}")).with_hint(hint));
    }
    if conflicts {
        let hint = format!("resolve them first, in {path}; nothing was removed");
        return Err(Refusal::new(ErrorCode::UnderWay, format!("there are conflicts in {path}")).with_hint(hint));
    }
    Ok(())
}

/// Refuses when there is a repository inside: its files are not saved with those around it.
pub(super) fn no_repository_inside(worktree: &Worktree, tree: &Tree) -> Result<(), Refusal> {
    let refused = |what: &Path| {
        let message = format!("{} has a repository of its own inside: {}", worktree.path.display(), what.display());
        Err(Refusal::new(ErrorCode::NestedRepository, message))
    };
    let staged = tree.git.run(&[&"ls-files", &"--stage", &"-z"])?;
    for entry in staged.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
        let tab = entry.iter().position(|byte| *byte == b'\t').unwrap_or(0);
        let name = path_of(&entry[tab + 1..]);
        if has_entries(&worktree.path.join(&name)) {
            return refused(&name);
        }
    }
    if let Some(name) = tree.repositories.first() {
        return refused(name);
    }
    // A submodule that was put away keeps its commits in the records.
    let modules = worktree.path.join(".git/modules");
    if has_entries(&modules) { refused(&modules) } else { Ok(()) }
}

/// A folder that can't be looked into has something in it.
pub(super) fn has_entries(folder: &Path) -> bool {
    folder.is_dir() && fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some())
}

/// A ref that was kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// The name that it has once it is fetched.
    pub(super) branch: String,
    /// What it holds, in words.
    pub(super) holds: String,
    pub(super) series: Series,
}

/// The commits of a branch as patches.
#[derive(Debug)]
pub(super) enum Series {
    Saved(PathBuf),
    /// It would have been too long, or have taken too much memory.
    TooLarge,
    /// There is nothing that a patch could hold.
    Empty,
}

/// Everything that was kept of a worktree's repository.
#[derive(Debug, Default)]
pub(super) struct KeptRefs {
    /// The first of them, and how many there are.
    pub(super) refs: Vec<Kept>,
    pub(super) total: usize,
    /// The name by which commits that only reflogs named can be fetched, and how many of them lead to no other.
    pub(super) logged: Option<(String, usize)>,
}

/// The place of a worktree's refs in its mirror.
pub(super) fn kept_prefix(agent: &str) -> String {
    format!("{KEPT}{agent}/")
}

/// The place of the commits that only reflogs of its worktrees named, and what their names begin with when they are
/// asked for.
pub(super) fn logged_prefix(agent: &str) -> String {
    format!("{LOGGED}{agent}/")
}
pub(super) const REFLOG: &str = "reflog/";

/// The last part of a branch's name in the user's repository: without the prefix that tells worktrees apart.
pub(super) fn short_name(agent: &str, branch: &str) -> String {
    branch.strip_prefix(&format!("{BRANCHES}{agent}-")).unwrap_or(branch).to_owned()
}

/// The agent that a worktree is of, by its folder.
pub(super) fn agent_of(worktree: &Worktree) -> String {
    worktree.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Takes every commit of the worktree that the user does not have over into the mirror, where it stays until it is
/// fetched, and writes the commits of each branch as a series of patches.
pub(super) fn keep_commits(
    record: &Record,
    mirror: &Mirror,
    look: &Look,
    patches: &Path,
    now: Time,
) -> Result<KeptRefs, Refusal> {
    let worktree = &record.worktree;
    let agent = agent_of(worktree);
    let own = own_refs(mirror, worktree, look)?;
    let wanted: BTreeSet<String> = own.iter().map(|(_, id)| id.clone()).chain(look.logged.iter().cloned()).collect();
    if wanted.is_empty() {
        return Ok(KeptRefs::default());
    }
    mirror.take(&look.tree.view, &look.tree.git, &wanted, Owner::Agent)?;
    let own = with_work(mirror, worktree, own)?;
    let mut names = Names::below(mirror, kept_prefix(&agent))?;
    let mut kept = KeptRefs { total: own.len(), ..KeptRefs::default() };
    for OwnRef { name, id, is_commit } in own {
        let kind = RefKind::of(&name);
        let wanted = kind.kept_as(&agent, worktree);
        let free = names.add(&wanted, &id)?;
        if kept.refs.len() == limits::KEPT_NAMES {
            continue;
        }
        let series = match kind {
            // In a note or a stash, the files are not those of the work.
            RefKind::Branch(_) | RefKind::Detached => save_series(mirror, worktree, &wanted, &id, patches, now)?,
            RefKind::Other(_) => Series::Empty,
        };
        let holds = match is_commit {
            true => format!("{} commits are", count(mirror, worktree, &id)?),
            false => "an object that is no commit is".to_owned(),
        };
        kept.refs.push(Kept { branch: format!("{BRANCHES}{agent}/{free}"), holds, series });
    }
    names.write()?;
    kept.logged = keep_logged(mirror, worktree, &agent, &look.logged)?;
    Ok(kept)
}

/// What a ref of a worktree is to those who fetch it.
enum RefKind<'a> {
    Branch(&'a str),
    /// No branch is checked out, but this commit.
    Detached,
    /// A tag, a note, a commit of the stash, or of any other namespace, by its name there.
    Other(&'a str),
}

impl RefKind<'_> {
    fn of(name: &str) -> RefKind<'_> {
        match (name.strip_prefix("refs/heads/"), name) {
            (Some(branch), _) => RefKind::Branch(branch),
            (None, "HEAD") => RefKind::Detached,
            (None, name) => RefKind::Other(name.strip_prefix("refs/").unwrap_or(name)),
        }
    }

    fn kept_as(&self, agent: &str, worktree: &Worktree) -> String {
        match self {
            RefKind::Branch(branch) => short_name(agent, branch),
            RefKind::Detached => format!("{}-detached", short_name(agent, &worktree.branch)),
            RefKind::Other(name) => (*name).to_owned(),
        }
    }
}

/// The refs of a worktree that the user does not have, the stash's commits each by a name of its own.
fn own_refs(mirror: &Mirror, worktree: &Worktree, look: &Look) -> Result<Vec<(String, String)>, Refusal> {
    let user: BTreeSet<String> = mirror.refs(USER)?.into_values().collect();
    let stash_name = |number| if number == 0 { "stash".to_owned() } else { format!("stash@{number}") };
    let stashes = look.stashes.iter().enumerate().map(|(number, id)| (stash_name(number), id.clone()));
    let refs = look.refs.iter().map(|(name, id)| (name.clone(), id.clone())).chain(stashes);
    let own: Vec<_> = refs.filter(|(_, id)| *id != worktree.base_commit && !user.contains(id)).collect();
    if own.len() <= limits::KEPT_REFS {
        return Ok(own);
    }
    let message = format!("there are {} refs of its own in {}", own.len(), worktree.path.display());
    Err(Refusal::new(ErrorCode::TooManyBranches, message)
        .with_hint("delete those that are not needed; nothing was removed"))
}

/// A ref that is to be kept.
struct OwnRef {
    name: String,
    id: String,
    /// It may also name a tag with a message, or a file.
    is_commit: bool,
}

/// Those of the refs that lead to a commit of the agent's, or name an object that is no commit.
fn with_work(mirror: &Mirror, worktree: &Worktree, own: Vec<(String, String)>) -> Result<Vec<OwnRef>, Refusal> {
    let types = mirror.types(own.iter().map(|(_, id)| id))?;
    let is_commit = |id: &str| types.get(id).is_some_and(|kind| kind == COMMIT);
    let lines: String = own.iter().filter(|(_, id)| is_commit(id)).map(|(_, id)| format!("{id}\n")).collect();
    let (base, user) = (&worktree.base_commit, format!("--glob={USER}*"));
    let commits = mirror.git()?.run_with(&[&"rev-list", &"--stdin", &"--not", base, &user], lines.as_bytes())?;
    let commits = String::from_utf8_lossy(&commits).into_owned();
    let commits: BTreeSet<&str> = commits.lines().collect();
    let refs = own.into_iter().map(|(name, id)| OwnRef { is_commit: is_commit(&id), name, id });
    Ok(refs.filter(|one| !one.is_commit || commits.contains(one.id.as_str())).collect())
}

/// The refs of the mirror below a prefix, with those that are to be added: none takes another's place.
struct Names<'a> {
    mirror: &'a Mirror,
    prefix: String,
    there: Refs,
    added: Refs,
}

impl Names<'_> {
    fn below(mirror: &Mirror, prefix: String) -> Result<Names<'_>, Refusal> {
        let there = mirror.refs(&prefix)?;
        Ok(Names { mirror, prefix, there, added: Refs::new() })
    }

    /// The name under which an object is kept: the one that is wanted, if that is not in use for another one.
    fn add(&mut self, name: &str, id: &str) -> Result<String, Refusal> {
        let inside = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        let folders = |name: &str| name.match_indices('/').map(|(end, _)| end).collect::<Vec<_>>();
        let clashes = |wanted: &str| {
            let after = self.there.range(wanted.to_owned()..).take_while(|(other, _)| other.starts_with(wanted));
            let below = after.into_iter().any(|(other, _)| inside(other, wanted));
            let above = folders(wanted).into_iter().any(|end| self.there.contains_key(&wanted[..end]));
            below || above || self.there.get(wanted).is_some_and(|holds| holds != id)
        };
        let Some(free) = durable::free_name(name, clashes) else {
            let message = format!("there are too many kept branches named {name}");
            return Err(Refusal::new(ErrorCode::TooManyBranches, message)
                .with_hint("fetch or discard some of them; nothing was removed"));
        };
        self.there.insert(free.clone(), id.to_owned());
        self.added.insert(free.clone(), id.to_owned());
        Ok(free)
    }

    fn write(self) -> Result<(), Refusal> {
        let lines = self.added.iter().map(|(name, id)| format!("update {}{name} {id}\n", self.prefix));
        self.mirror.git()?.run_with(&[&"update-ref", &"--stdin"], lines.collect::<String>().as_bytes()).map(drop)
    }
}

/// Keeps commits that only reflogs named: an amended one, one that was checked out on no branch. They are gathered under
/// one commit, because there may be many and nobody may ever want them.
fn keep_logged(
    mirror: &Mirror,
    worktree: &Worktree,
    agent: &str,
    logged: &BTreeSet<String>,
) -> Result<Option<(String, usize)>, Refusal> {
    if logged.is_empty() {
        return Ok(None);
    }
    let id = gather(mirror, &worktree.branch, logged)?;
    let mut names = Names::below(mirror, logged_prefix(agent))?;
    let free = names.add(&short_name(agent, &worktree.branch), &id)?;
    names.write()?;
    Ok(Some((format!("{REFLOG}{free}"), logged.len())))
}

/// A commit without files whose parents are these. It is the same for the same ones.
fn gather(mirror: &Mirror, branch: &str, commits: &BTreeSet<String>) -> Result<String, Refusal> {
    let git = mirror.git()?;
    let line = |printed: Vec<u8>| String::from_utf8_lossy(&printed).trim_end().to_owned();
    let tree = line(git.run(&[&"hash-object", &"-t", &"tree", &"-w", &"/dev/null"])?);
    let asked: String = commits.iter().map(|id| format!("{id}\n")).collect();
    let newest: [&dyn AsRef<std::ffi::OsStr>; 5] =
        [&"rev-list", &"--no-walk=sorted", &"--timestamp", &"--max-count=1", &"--stdin"];
    let newest = line(git.run_with(&newest, asked.as_bytes())?);
    let time = newest.split(' ').next().unwrap_or("0");
    let mut gathered = None;
    let all: Vec<&String> = commits.iter().collect();
    for some in all.chunks(limits::GATHERED_PARENTS) {
        let parents: String = gathered.iter().chain(some.iter().copied()).map(|id| format!("parent {id}\n")).collect();
        let by = format!("Abide <abide@localhost> {time} +0000");
        let text = format!(
            "tree {tree}\n{parents}author {by}\ncommitter {by}\n\nCommits that only the reflogs of {branch} named\n"
        );
        gathered = Some(line(git.run_with(&[&"hash-object", &"-t", &"commit", &"-w", &"--stdin"], text.as_bytes())?));
    }
    Ok(gathered.unwrap_or_default())
}

fn count(mirror: &Mirror, worktree: &Worktree, id: &str) -> Result<String, Refusal> {
    let (base, user) = (&worktree.base_commit, format!("--glob={USER}*"));
    mirror.git()?.line(&[&"rev-list", &"--count", &id, &"--not", base, &user])
}

fn save_series(
    mirror: &Mirror,
    worktree: &Worktree,
    branch: &str,
    id: &str,
    patches: &Path,
    now: Time,
) -> Result<Series, Refusal> {
    let same = |story: &PatchStory| story.holds == PatchHolds::Commits && story.applies_to.as_deref() == Some(id);
    let before = list_patches(patches)?.into_iter().find(|record| record.story.as_ref().is_some_and(same));
    if let Some(saved) = before {
        return Ok(Series::Saved(saved.patch));
    }
    let git = mirror.git()?;
    match check_tree(&git, id) {
        Err(refusal) if refusal.code == ErrorCode::TreeTooLarge => return Ok(Series::TooLarge),
        checked => drop(checked?),
    }
    let (base, user) = (&worktree.base_commit, format!("--glob={USER}*"));
    let failed = |error: std::io::Error| io_refusal(patches, &error);
    let mut partial = durable::partial(patches).map_err(failed)?;
    // Text that is this long is compared as if it were no text, which takes less memory.
    let script = format!(
        "git -c core.bigFileThreshold=16m format-patch --stdout --binary --full-index --no-signature --no-ext-diff \
         --no-textconv {id} --not {base} '{user}'"
    );
    if !git.script_into(&script, partial.as_file_mut(), limits::SERIES_BYTES)? {
        return Ok(Series::TooLarge);
    }
    let bytes = partial.as_file().metadata().map_err(failed)?.len();
    if bytes == 0 {
        // Merges alone: they have no patch of their own.
        return Ok(Series::Empty);
    }
    let changed = git.run(&[&"diff-tree", &"-r", &"-z", &"--name-only", &"--no-renames", base, &id])?;
    let names = changed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files_total = names.clone().count();
    let files = names.take(limits::PATCH_FILES).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let story = PatchStory {
        holds: PatchHolds::Commits,
        worktree: worktree.path.clone(),
        branch: branch.to_owned(),
        base_commit: base.clone(),
        applies_to: Some(id.to_owned()),
        tree: git.line(&[&"rev-parse", &format!("{id}^{{tree}}")])?,
        saved_at: now,
        files,
        files_total,
        bytes,
    };
    let name = format!("{}.commits", plain_name(&format!("{}-{branch}", agent_of(worktree))));
    publish(partial, patches, &name, &story).map(Series::Saved)
}
