//! The baseline of a worktree: the commit that it began with, and the user's commits that came into it since.
//! Everything else in it is the agent's work. The baseline is read from records that no agent can write.

use std::collections::BTreeSet;

use abide_kernel::input::Refusal;

use super::Repositories;
use super::ignore;
use super::mirror::{COMMIT, Mirror, USER};
use super::repository::Repository;
use super::view::{View, user_ignored};
use super::worktree_record::WorktreeRecord;
use crate::limits;

/// The part of a worktree that is not its agent's.
#[derive(Debug)]
pub(super) struct Baseline {
    /// The commit that it began with, and the tips of the user's branches and tags.
    pub(super) commits: BTreeSet<String>,
    /// Patterns of files that the user ignores: by the user's own ignore file, and by those of the commits that the agent
    /// works on. Files that match are generated, and no work.
    pub(super) ignored: Vec<u8>,
}

impl Baseline {
    pub(super) fn read(
        repositories: &Repositories,
        record: &WorktreeRecord,
        mirror: &Mirror,
    ) -> Result<Baseline, Refusal> {
        let base = record.worktree.base_commit.clone();
        let mut commits: BTreeSet<String> = mirror.list_refs(USER)?.into_values().collect();
        commits.insert(base.clone());
        let mut ignoring = BTreeSet::from([base]);
        // A repository that can't be read is reported when it is looked at.
        ignoring.extend(find_base_commits(repositories, record, mirror, &commits).unwrap_or_default());
        let mut ignored = user_ignored();
        ignored.push(b'\n');
        ignored.extend(ignore::collect_patterns(mirror, &ignoring)?);
        Ok(Baseline { commits, ignored })
    }
}

/// The commits of the user's that the agent's commits are made on. The user's ignore files may have changed since the
/// worktree was made, and its agent may have taken those changes over.
fn find_base_commits(
    repositories: &Repositories,
    record: &WorktreeRecord,
    mirror: &Mirror,
    known: &BTreeSet<String>,
) -> Result<Vec<String>, Refusal> {
    let folder = &record.worktree.path;
    let Some(own) = Repository::find(folder)?.filter(|own| own.toplevel == *folder) else { return Ok(Vec::new()) };
    let view = View::of_worktree(&own, &[mirror.objects()], &repositories.scratch_folder(), &record.settings)?;
    view.write_lines("known", known.iter().map(|id| format!("^{id}")))?;
    let printed = repositories.untrusted_git(&view)?.run_script(
        "{ echo HEAD; cat \"$GIT_DIR/known\"; } > \"$GIT_DIR/asked\"\n\
         git rev-list --ignore-missing --boundary --stdin < \"$GIT_DIR/asked\" > \"$GIT_DIR/own\"\n\
         if grep -q '^[^-]' \"$GIT_DIR/own\"; then sed -n 's/^-//p' \"$GIT_DIR/own\"; else git rev-parse HEAD; fi",
    )?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let ids: Vec<String> = printed.lines().take(limits::IGNORING_COMMITS).map(str::to_owned).collect();
    let types = mirror.object_types(ids.iter())?;
    Ok(ids.into_iter().filter(|id| types.get(id).is_some_and(|kind| kind == COMMIT)).collect())
}
