//! Bringing an agent's branch into the user's repository, on the user's word: as `abide/AGENT/BRANCH`, and only ahead.
//! Objects go through the mirror, which computes their hashes anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};

use super::git::Git;
use super::keep::{REFLOG, kept_prefix, logged_prefix, short_name};
use super::making::Record;
use super::mirror::{COMMIT, Mirror, Owner, Refs, parse_refs};
use super::repository::{Repository, read};
use super::tree_size::check_tree;
use super::view::{View, head_of};
use super::{BRANCHES, Repositories};
use crate::limits;

/// A branch that was brought into the user's repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    pub branch: String,
    pub commit: String,
    /// Whether the branch was not there, or elsewhere, before.
    pub changed: bool,
}

impl Repositories {
    /// Fetches a branch of an agent's worktree, or what was kept of worktrees that are gone. `repo` is the top of the
    /// user's working tree; without a branch, it is the one that is checked out, or all that were kept.
    pub fn fetch(
        &self,
        agent: &str,
        repo: &Path,
        worktree: Option<&Path>,
        branch: Option<&str>,
    ) -> Result<Vec<Fetched>, Refusal> {
        let _used = self.using_mirrors();
        let user = Repository::find(repo)?.filter(|user| user.toplevel == repo).ok_or_else(|| {
            let message = format!("the repository {} is not there any more", repo.display());
            let hint = "put it back where it was; the commits are kept, and as patches: abide workspace patches";
            Refusal::new(ErrorCode::Missing, message).with_hint(hint)
        })?;
        let record = worktree.map(Record::of).transpose()?.flatten();
        let mirror = record.as_ref().and_then(|record| record.mirror.as_deref());
        let mirror =
            mirror.map_or_else(|| Mirror::of(&self.home, &user.common_dir), |id| Mirror::named(&self.home, id));
        let live = match &record {
            Some(record) => self.take_branch(agent, record, &mirror, branch)?,
            None => None,
        };
        let wanted = match live {
            Some((name, id)) => vec![KeptRef { place: format!("{}{name}", kept_prefix(agent)), name, id }],
            None => kept(agent, &mirror, branch)?,
        };
        let types = mirror.types(wanted.iter().map(|one| &one.id))?;
        let mut fetched = Vec::new();
        for one in wanted {
            let is_commit = types.get(&one.id).is_some_and(|kind| kind == COMMIT);
            let space = if is_commit { Space::Branches } else { Space::Tags };
            fetched.push(self.bring(agent, &user, &mirror, space, &one)?);
            mirror.forget_fetched(&one.place, &one.id)?;
        }
        Ok(fetched)
    }

    /// Takes the newest commit of a worktree's branch over into the mirror. None where the worktree has no such branch.
    fn take_branch(
        &self,
        agent: &str,
        record: &Record,
        mirror: &Mirror,
        branch: Option<&str>,
    ) -> Result<Option<(String, String)>, Refusal> {
        let folder = &record.worktree.path;
        let Some(own) = Repository::find(folder)?.filter(|own| own.toplevel == *folder) else { return Ok(None) };
        let view = View::reading(&own, &[mirror.objects()], &self.scratch())?;
        let git = self.untrusted(&view)?;
        let printed = git.script(
            "git symbolic-ref -q HEAD || echo\n\
             git for-each-ref --format='%(objectname) %(refname)' refs/heads",
        )?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let (head, listed) = printed.split_once('\n').unwrap_or_default();
        let branches = parse_refs(listed.as_bytes(), "refs/heads/");
        let checked_out = head.strip_prefix("refs/heads/");
        let found = match branch {
            Some(wanted) => branches.iter().find(|(name, _)| *name == wanted || short_name(agent, name) == wanted),
            None => branches.iter().find(|(name, _)| Some(name.as_str()) == checked_out),
        };
        let Some((name, id)) = found else { return Ok(None) };
        mirror.take(&view, &git, &BTreeSet::from([id.clone()]), Owner::Agent)?;
        Ok(Some((short_name(agent, name), id.clone())))
    }

    fn bring(
        &self,
        agent: &str,
        user: &Repository,
        mirror: &Mirror,
        space: Space,
        one: &KeptRef,
    ) -> Result<Fetched, Refusal> {
        let id = one.id.as_str();
        let branch = format!("{BRANCHES}{agent}/{}", one.name);
        let reference = format!("{}{branch}", space.prefix());
        let view = View::writing(user, &mirror.alternates(), &self.scratch())?;
        let git = self.untrusted(&view)?;
        let theirs = UserRefs::read(&git)?;
        let before = theirs.ids.get(&reference).cloned();
        stands_for_itself(user, &git, space, &branch)?;
        if before.as_deref() == Some(id) {
            return Ok(Fetched { branch, commit: id.to_owned(), changed: false });
        }
        not_checked_out(user, &theirs, &reference)?;
        let own = mirror.git()?;
        if space == Space::Branches {
            // Somebody will check it out.
            check_tree(&own, id).map_err(|refusal| by_hand(refusal, mirror, &one.id))?;
        }
        if let Some(before) = &before
            && !mirror.is_ancestor(before, id)?
        {
            let message = format!("{branch} has commits that the agent's branch does not have");
            let command = format!("{} {branch} NAME", space.rename());
            return Err(Refusal::new(ErrorCode::NotFastForward, message).fill("command", command));
        }
        let known: String = mirror.present(&theirs.ids)?.values().map(|id| format!("^{id}\n")).collect();
        let revs = format!("{id}\n{known}");
        let send = "git pack-objects --revs --stdout --thin --delta-base-offset -q";
        own.pipe(send, revs.as_bytes(), &git, &[&"index-pack", &"--stdin", &"--fix-thin"])?;
        let old = before.unwrap_or_else(|| "0".repeat(id.len()));
        // Should somebody have made a symbolic ref of it by now, that one is replaced, and not the branch it stands for.
        git.run(&[&"update-ref", &"--no-deref", &"-m", &"abide: fetched", &reference, &id, &old])?;
        Ok(Fetched { branch, commit: id.to_owned(), changed: true })
    }
}

/// A person may have a tree that is too large all the same, without its files.
fn by_hand(refusal: Refusal, mirror: &Mirror, id: &str) -> Refusal {
    let take = format!("git fetch '{}' {id}", mirror.dir().display());
    let hint = format!("have the agent commit a smaller tree; or take the commit, and do not check it out: {take}");
    Refusal { hint, ..refusal }
}

/// A ref that is to be fetched, with the place in the mirror where it was kept, if it was.
struct KeptRef {
    name: String,
    id: String,
    place: String,
}

/// Where in the user's repository something is brought to. Only a commit can be a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Branches,
    Tags,
}

impl Space {
    fn prefix(self) -> &'static str {
        match self {
            Space::Branches => "refs/heads/",
            Space::Tags => "refs/tags/",
        }
    }

    /// How a person keeps one under another name.
    fn rename(self) -> &'static str {
        match self {
            Space::Branches => "git branch -m",
            Space::Tags => "git tag -d, after git tag NAME",
        }
    }
}

/// What was kept under a name; without a name, everything but the commits that only reflogs named.
fn kept(agent: &str, mirror: &Mirror, branch: Option<&str>) -> Result<Vec<KeptRef>, Refusal> {
    let below = |prefix: String, shown: &str| -> Result<Vec<KeptRef>, Refusal> {
        let all = if mirror.exists() { mirror.refs(&prefix)? } else { Refs::new() };
        let one = |(name, id)| KeptRef { place: format!("{prefix}{name}"), name: format!("{shown}{name}"), id };
        Ok(all.into_iter().map(one).collect())
    };
    let (all, logged) = (below(kept_prefix(agent), "")?, below(logged_prefix(agent), REFLOG)?);
    let only_logged = all.is_empty() && !logged.is_empty();
    let named = |one: &KeptRef, branch: &str| one.name == branch || short_name(agent, branch) == one.name;
    let found: Vec<KeptRef> = match branch {
        Some(branch) => all.into_iter().chain(logged).filter(|one| named(one, branch)).take(1).collect(),
        None => all,
    };
    if !found.is_empty() {
        return Ok(found);
    }
    let what = branch.map_or_else(|| "no branch with commits to fetch".to_owned(), |name| format!("no branch {name}"));
    let hint = match only_logged {
        true => "commits that only reflogs named are kept, and come by name: --branch reflog/NAME, as the removal said",
        false => "see which there are: abide workspace list, or git branch in the worktree",
    };
    Err(Refusal::new(ErrorCode::NoBranch, format!("{agent} has {what}")).with_hint(hint))
}

/// The branches and tags of the user's repository.
struct UserRefs {
    ids: Refs,
    /// Those that stand for another one, by the name of that.
    symbolic: BTreeMap<String, String>,
}

impl UserRefs {
    fn read(git: &Git) -> Result<UserRefs, Refusal> {
        let form = "--format=%(objectname) %(refname) %(symref)";
        let listed = git.run(&[&"for-each-ref", &form, &"refs/heads", &"refs/tags"])?;
        let mut refs = UserRefs { ids: Refs::new(), symbolic: BTreeMap::new() };
        for (id, rest) in String::from_utf8_lossy(&listed).lines().filter_map(|line| line.split_once(' ')) {
            let (name, target) = rest.split_once(' ').unwrap_or((rest, ""));
            refs.ids.insert(name.to_owned(), id.to_owned());
            if !target.is_empty() {
                refs.symbolic.insert(name.to_owned(), target.to_owned());
            }
        }
        Ok(refs)
    }

    /// The names that a ref has and stands for, itself first.
    fn followed<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        // git follows five of them.
        std::iter::successors(Some(name), |name| self.symbolic.get(*name).map(String::as_str)).take(6)
    }
}

/// Refuses a ref that stands for another one, symbolically or because a folder on the way to it is a link. Commands of an
/// agent that works in the user's folder can make one, and moving it would move the other.
fn stands_for_itself(user: &Repository, git: &Git, space: Space, name: &str) -> Result<(), Refusal> {
    let prefix = space.prefix();
    let reference = format!("{prefix}{name}");
    let symbolic = git.ask(&[&"symbolic-ref", &"-q", &reference])?;
    if symbolic.ok {
        let target = String::from_utf8_lossy(&symbolic.out).trim_end().to_owned();
        let message = format!("{name} is a symbolic ref in the user's repository: it stands for {target}");
        let hint = format!("delete it, if you did not make it: git symbolic-ref -d {reference}; then fetch again");
        return Err(Refusal::new(ErrorCode::SymbolicRef, message).with_hint(hint));
    }
    for top in ["", "logs"] {
        // Only a ref below the folder of all branches, or of all tags, could be another one.
        let mut place = user.common_dir.join(top).join(prefix);
        for part in name.split('/') {
            place.push(part);
            if place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                let message = format!("{} is a link, so that {name} may be another branch", place.display());
                return Err(Refusal::new(ErrorCode::SymbolicRef, message));
            }
        }
    }
    Ok(())
}

/// Where the records of a working tree name the branch that is being rebased, while another commit is checked out.
const REBASED: &[&str] = &["rebase-merge/head-name", "rebase-apply/head-name"];

/// Refuses to move a branch under somebody who works on it.
fn not_checked_out(user: &Repository, theirs: &UserRefs, reference: &str) -> Result<(), Refusal> {
    let linked = fs::read_dir(user.common_dir.join("worktrees")).into_iter().flatten().flatten();
    let trees = linked.map(|entry| entry.path()).chain([user.common_dir.clone()]);
    let is_here = |tree: &PathBuf| {
        let rebased = REBASED.iter().filter_map(|name| read(&tree.join(name), limits::GIT_WORDS_BYTES).ok());
        head_of(tree).into_iter().chain(rebased).any(|text| {
            let text = String::from_utf8_lossy(&text);
            let name = text.trim_end();
            theirs.followed(name.strip_prefix("ref: ").unwrap_or(name)).any(|name| name == reference)
        })
    };
    let mut here = trees.filter(is_here);
    if here.next().is_none() {
        return Ok(());
    }
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
    let message = format!("{branch} is checked out in the user's repository");
    Err(Refusal::new(ErrorCode::CheckedOut, message))
}
