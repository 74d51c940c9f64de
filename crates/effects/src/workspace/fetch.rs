//! Bringing an agent's branch into the user's repository, on the user's word: as `abide/AGENT/BRANCH`, and only ahead.
//! Objects go through the mirror, which computes their hashes anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use abide_kernel::input::Refusal;
use serde::{Deserialize, Serialize};

use super::keep::{kept_prefix, short_name};
use super::making::Record;
use super::mirror::{Mirror, Refs, parse_refs};
use super::repository::{Repository, read};
use super::view::View;
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
        let user = Repository::find(repo)?.filter(|user| user.toplevel == repo).ok_or_else(|| {
            let message = format!("the repository {} is not there any more", repo.display());
            let hint = "put it back where it was; the commits are kept, and as patches: abide workspace patches";
            Refusal::new("missing", message, hint)
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
            Some(one) => Refs::from([one]),
            None => kept(agent, &mirror, branch)?,
        };
        let mut fetched = Vec::new();
        for (name, id) in wanted {
            fetched.push(self.bring(agent, &user, &mirror, &name, &id)?);
            mirror.delete_ref(&format!("{}{name}", kept_prefix(agent)))?;
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
        mirror.take(&view, &git, &BTreeSet::from([id.clone()]))?;
        Ok(Some((short_name(agent, name), id.clone())))
    }

    fn bring(&self, agent: &str, user: &Repository, mirror: &Mirror, name: &str, id: &str) -> Result<Fetched, Refusal> {
        let branch = format!("{BRANCHES}{agent}/{name}");
        let reference = format!("refs/heads/{branch}");
        let view = View::writing(user, &mirror.alternates(), &self.scratch())?;
        let git = self.untrusted(&view)?;
        let listed = git.run(&[&"for-each-ref", &"--format=%(objectname) %(refname)", &"refs/heads", &"refs/tags"])?;
        let theirs = parse_refs(&listed, "");
        let before = theirs.get(&reference).cloned();
        if before.as_deref() == Some(id) {
            return Ok(Fetched { branch, commit: id.to_owned(), changed: false });
        }
        not_checked_out(user, &reference)?;
        let own = mirror.git()?;
        if let Some(before) = &before
            && !own.ask(&[&"merge-base", &"--is-ancestor", before, &id])?.ok
        {
            let message = format!("{branch} has commits that the agent's branch does not have");
            let hint = format!("keep them under another name first: git branch -m {branch} NAME");
            return Err(Refusal::new("not_fast_forward", message, hint));
        }
        let known: String = mirror.present(&theirs)?.values().map(|id| format!("^{id}\n")).collect();
        let revs = format!("{id}\n{known}");
        let send = "git pack-objects --revs --stdout --thin --delta-base-offset -q";
        own.pipe(send, revs.as_bytes(), &git, &[&"index-pack", &"--stdin", &"--fix-thin"])?;
        let old = before.unwrap_or_else(|| "0".repeat(id.len()));
        git.run(&[&"update-ref", &"-m", &"abide: fetched", &reference, &id, &old])?;
        Ok(Fetched { branch, commit: id.to_owned(), changed: true })
    }
}

fn kept(agent: &str, mirror: &Mirror, branch: Option<&str>) -> Result<Refs, Refusal> {
    let all = if mirror.exists() { mirror.refs(&kept_prefix(agent))? } else { Refs::new() };
    let named = |name: &String| branch.is_none_or(|branch| name == branch || short_name(agent, branch) == *name);
    let found: Refs = all.into_iter().filter(|(name, _)| named(name)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let what = branch.map_or_else(|| "no branch with commits to fetch".to_owned(), |name| format!("no branch {name}"));
    let hint = "see which there are: abide workspace list, or git branch in the worktree";
    Err(Refusal::new("no_branch", format!("{agent} has {what}"), hint))
}

/// Refuses to move a branch under somebody who works on it.
fn not_checked_out(user: &Repository, reference: &str) -> Result<(), Refusal> {
    let linked = fs::read_dir(user.common_dir.join("worktrees")).into_iter().flatten().flatten();
    let heads = linked.map(|entry| entry.path().join("HEAD")).chain([user.common_dir.join("HEAD")]);
    let line = format!("ref: {reference}");
    let is_here = |head: &std::path::PathBuf| {
        read(head, limits::GIT_WORDS_BYTES).is_ok_and(|head| String::from_utf8_lossy(&head).trim_end() == line)
    };
    let mut here = heads.filter(is_here);
    if here.next().is_none() {
        return Ok(());
    }
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
    let message = format!("{branch} is checked out in the user's repository");
    Err(Refusal::new("checked_out", message, "switch to another branch there first, then fetch again"))
}
