//! The user's branches as a worktree sees them: `refs/remotes/user/*`, brought up to date before a turn's first command,
//! and only where the user's refs changed since.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;

use super::Repositories;
use super::mirror::{Mirror, Refs, USER, parse_refs};
use super::repository::Repository;
use super::view::View;
use super::worktree::{require_own_records, worktree_ref};
use super::worktree_record::WorktreeRecord;
use super::worktree_state::own_repository;
use crate::limits;

impl Repositories {
    /// Brings the user's branches and tags in a worktree up to date. A repository that is gone changes nothing: the
    /// worktree has all that it needs.
    pub fn refresh_user_refs(&self, folder: &Path) -> Result<(), Refusal> {
        let _used = self.lock_mirrors();
        let Some(WorktreeRecord { worktree, mirror: Some(mirror), .. }) = WorktreeRecord::read(folder)? else {
            return Ok(());
        };
        let mirror = Mirror::by_id(&self.home, &mirror);
        let user = match Repository::find(&worktree.repo) {
            Ok(Some(user)) if user.toplevel == worktree.repo => user,
            Ok(_) | Err(_) => return Ok(()),
        };
        let stamp = refs_stamp(&user.common_dir);
        if stamp.is_some() && self.lock_stamps().get(folder) == stamp.as_ref() {
            return Ok(());
        }
        let source = self.read_source(&user)?;
        if let Some(head) = source.head.clone() {
            source.transfer_objects(&head)?;
        }
        let refs = mirror.filter_present(&source.refs)?;
        mirror.set_refs(USER, &refs)?;
        self.write_user_refs(folder, &mirror, &refs)?;
        if let Some(stamp) = stamp {
            self.lock_stamps().insert(folder.to_path_buf(), stamp);
        }
        Ok(())
    }

    /// Writes the user's refs into the worktree's own repository. A tag that its agent made is left as it is.
    fn write_user_refs(&self, folder: &Path, mirror: &Mirror, user: &Refs) -> Result<(), Refusal> {
        // Its agent may have put a link to another repository there.
        let own = own_repository(folder)?;
        require_own_records(&own)?;
        let view = View::for_owning(&own, &[mirror.objects()], &self.scratch_folder())?;
        let git = self.untrusted_git(&view)?;
        let args: [&dyn AsRef<std::ffi::OsStr>; 4] =
            [&"for-each-ref", &"--format=%(objectname) %(refname)", &"refs/remotes/user", &"refs/tags"];
        let there = parse_refs(&git.run(&args)?, "");
        let wanted: Refs = user.iter().map(|(name, id)| (worktree_ref(name), id.clone())).collect();
        let is_branch = |name: &&String| name.starts_with("refs/remotes/user/");
        let gone = there.keys().filter(is_branch).filter(|name| !wanted.contains_key(*name));
        let gone: String = gone.map(|name| format!("delete {name}\n")).collect();
        let new = wanted.iter().filter(|(name, id)| match there.get(*name) {
            Some(before) => is_branch(name) && before != *id,
            None => true,
        });
        let new: String = new.map(|(name, id)| format!("update {name} {id}\n")).collect();
        for lines in [gone, new].iter().filter(|lines| !lines.is_empty()) {
            // The agent may have made symbolic refs of them: its own branches are not written.
            git.run_with(&[&"update-ref", &"--no-deref", &"--stdin"], lines.as_bytes())?;
        }
        Ok(())
    }
}

/// A digest of the refs of a repository, by names, sizes and times. None where there are too many to look at.
fn refs_stamp(common_dir: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut looked_at = 0_usize;
    let mut places: Vec<PathBuf> =
        ["HEAD", "packed-refs", "refs", "reftable"].map(|name| common_dir.join(name)).into_iter().rev().collect();
    while let Some(place) = places.pop() {
        let Ok(found) = place.symlink_metadata() else { continue };
        looked_at += 1;
        if looked_at > limits::SCAN_ENTRIES {
            return None;
        }
        hasher.update(place.as_os_str().as_encoded_bytes());
        hasher.update(&found.len().to_le_bytes()).update(&found.ino().to_le_bytes());
        hasher.update(&found.mtime().to_le_bytes()).update(&found.mtime_nsec().to_le_bytes());
        if found.is_dir() {
            let mut inside: Vec<PathBuf> = fs::read_dir(&place).ok()?.flatten().map(|entry| entry.path()).collect();
            inside.sort_unstable_by(|a, b| b.cmp(a));
            places.extend(inside);
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}
