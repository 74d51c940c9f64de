//! Upkeep of the mirrors. Each transfer adds a pack, and git gets slower with each; and a mirror of a repository
//! without worktrees takes room for nothing.
//!
//! Packs are put together without a look at what is reachable, so no object is ever dropped. git that reads a mirror
//! meanwhile looks for the packs anew where one that it knew is gone. A mirror goes only if no worktree began in it and
//! nothing is kept in it for the user, and if nothing was brought into it for a long time: filling one may take minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use abide_kernel::input::Refusal;

use super::Repositories;
use super::mirror::{BASE, KEPT, LOGGED, MIRRORS, Mirror};
use super::view::new_scratch;
use crate::limits;

/// The outcome of one round of upkeep.
#[derive(Debug, Default)]
pub struct UpkeepReport {
    /// Mirrors whose packs were put together.
    pub repacked: Vec<PathBuf>,
    pub removed: Vec<PathBuf>,
    /// The mirrors that are left as they were, with the reason.
    pub failed: Vec<(PathBuf, Refusal)>,
}

impl Repositories {
    /// Repacks all mirrors that need it, and removes unused ones. It takes as long as git does, and blocks no other
    /// work.
    #[must_use]
    pub fn tidy_mirrors(&self, now: SystemTime) -> UpkeepReport {
        let mut tidied = UpkeepReport::default();
        // Without the folder there are none.
        for entry in fs::read_dir(self.home.join(MIRRORS)).into_iter().flatten().flatten() {
            let Ok(id) = entry.file_name().into_string() else { continue };
            let mirror = Mirror::by_id(&self.home, &id);
            let dir = mirror.dir().to_path_buf();
            if !mirror.exists() {
                continue;
            }
            match self.remove_unused(&mirror, now).and_then(|gone| Ok((gone, !gone && repack(&mirror)?))) {
                Ok((true, _)) => tidied.removed.push(dir),
                Ok((false, true)) => tidied.repacked.push(dir),
                Ok((false, false)) => {}
                Err(refusal) => tidied.failed.push((dir, refusal)),
            }
        }
        tidied
    }

    /// Removes a mirror that is of no use. Its record of the object stores that a person agreed to stays.
    fn remove_unused(&self, mirror: &Mirror, now: SystemTime) -> Result<bool, Refusal> {
        // While anybody works with mirrors, one that looks unused may be about to be used.
        let Ok(_alone) = self.mirrors.try_write() else { return Ok(false) };
        if !is_old(&mirror.objects().join("pack"), now) {
            return Ok(false);
        }
        for prefix in [BASE, KEPT, LOGGED] {
            if !mirror.list_refs(prefix)?.is_empty() {
                return Ok(false);
            }
        }
        // Moved first: a folder that is half deleted would be taken for a mirror.
        let apart = new_scratch(&self.scratch_folder()).map_err(|error| mirror.failure(&error))?;
        let (repository, alternates) = (mirror.origin(), mirror.alternates());
        fs::rename(mirror.dir(), apart.path().join("mirror")).map_err(|error| mirror.failure(&error))?;
        if let Some(repository) = repository.filter(|_| !alternates.is_empty()) {
            mirror.record_origin(&repository, alternates)?;
        }
        Ok(true)
    }
}

/// Whether nothing was brought into a mirror for long. A time in the future says nothing.
fn is_old(packs: &Path, now: SystemTime) -> bool {
    let changed = packs.metadata().and_then(|found| found.modified());
    changed.is_ok_and(|changed| now.duration_since(changed).unwrap_or(Duration::ZERO) > limits::MIRROR_UNUSED)
}

/// Puts the packs of a mirror together, where there are many. Says whether there were.
fn repack(mirror: &Mirror) -> Result<bool, Refusal> {
    let entries = fs::read_dir(mirror.objects().join("pack")).into_iter().flatten().flatten();
    let packs = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack")).count();
    if packs <= limits::MIRROR_PACKS {
        return Ok(false);
    }
    let git = mirror.open_git()?.with_more_memory();
    git.run(&[&"-c", &"pack.threads=1", &"repack", &"-q", &"-d", &"-l", &"--geometric=2"])?;
    Ok(true)
}
