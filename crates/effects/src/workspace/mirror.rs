//! Mirrors: for every repository that agents have worktrees of, one bare repository in the home that only the runtime
//! writes. Worktrees take their objects from it, so nothing that happens in the user's repository (a rebase, a deleted
//! branch, `git gc --prune=now`) can break an agent, and no agent can break the user's repository.
//!
//! Objects come in as packs whose hashes are computed anew and whose history is checked to be complete. Nothing in a
//! mirror is ever pruned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};

use super::durable;
use super::git::Git;
use super::repository::{Repository, Settings};
use super::transfers::{Phase, Progress};
use super::view::View;
use crate::transient;

/// Where in a home the mirrors are.
pub const MIRRORS: &str = "mirrors";

/// Refs of a mirror: the commit that each worktree began with, the branches and tags of the user, and commits of
/// worktrees that are gone.
pub(super) const BASE: &str = "refs/abide/base/";
pub(super) const USER: &str = "refs/abide/user/";
pub(super) const KEPT: &str = "refs/abide/kept/";
/// Commits that only the reflogs of a worktree named, gathered under one commit for each worktree. Apart from the others,
/// because they come only when they are asked for.
pub(super) const LOGGED: &str = "refs/abide/logged/";

/// Faults of old commits and trees that do no harm and that histories of real projects have.
const HARMLESS: &str = "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,\
                        missingEmail=ignore,badEmail=ignore,missingNameBeforeEmail=ignore,badDate=ignore";

/// The type of an object that is a commit.
pub(super) const COMMIT: &str = "commit";

/// Refs by name, with the object that each names.
pub(super) type Refs = BTreeMap<String, String>;

#[derive(Debug, Clone)]
pub(super) struct Mirror {
    pub(super) id: String,
    dir: PathBuf,
}

/// Whose repository objects are taken from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'a> {
    /// Which may take a while.
    User(&'a Progress),
    Agent,
}

/// What is known of the repository that a mirror is of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Origin {
    repository: PathBuf,
    /// The object stores that the repository took objects from when a person attached it.
    alternates: Vec<PathBuf>,
}

const ORIGIN: &str = "abide.json";

impl Mirror {
    /// The mirror of the repository with these records, made or not.
    pub(super) fn of(home: &Path, common_dir: &Path) -> Mirror {
        let digest = blake3::hash(common_dir.as_os_str().as_encoded_bytes()).to_hex();
        Mirror::named(home, &digest[..32])
    }

    pub(super) fn named(home: &Path, id: &str) -> Mirror {
        Mirror { id: id.to_owned(), dir: home.join(MIRRORS).join(id) }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    pub(super) fn exists(&self) -> bool {
        self.dir.join("HEAD").is_file()
    }

    pub(super) fn git(&self) -> Result<Git, Refusal> {
        Git::trusted(&self.dir)
    }

    /// The records of the repository that this is a mirror of.
    pub(super) fn origin(&self) -> Option<PathBuf> {
        self.read_origin().map(|origin| origin.repository)
    }

    /// The object stores outside of the repository that a person agreed to.
    pub(super) fn alternates(&self) -> Vec<PathBuf> {
        self.read_origin().unwrap_or_default().alternates
    }

    fn read_origin(&self) -> Option<Origin> {
        serde_json::from_slice(&fs::read(self.dir.join(ORIGIN)).ok()?).ok()
    }

    /// Records which object stores the repository takes objects from, on a person's word.
    pub(super) fn record(&self, repository: &Path, alternates: Vec<PathBuf>) -> Result<(), Refusal> {
        let origin = Origin { repository: repository.to_path_buf(), alternates };
        let text = serde_json::to_vec_pretty(&origin).map_err(|error| self.failed(&error.into()))?;
        durable::replace(&self.dir, ORIGIN, &text).map_err(|error| self.failed(&error))
    }

    /// Makes the mirror unless it is there.
    pub(super) fn prepare(&self, repository: &Repository, settings: &Settings) -> Result<(), Refusal> {
        let format = settings.object_format();
        if self.exists() {
            let own = self.git()?.line(&[&"rev-parse", &"--show-object-format"])?;
            if own == format {
                return Ok(());
            }
            let message =
                format!("{} has objects of {format} by now, its mirror of {own}", repository.toplevel.display());
            return Err(Refusal::new(ErrorCode::MirrorDiffers, message).fill("mirror", self.dir.display()));
        }
        abide_private::private_folder(&self.dir).map_err(|error| self.failed(&error))?;
        let git = self.git()?;
        let format = format!("--object-format={format}");
        git.run(&[&"init", &"-q", &"--bare", &"--template=", &"--initial-branch=main", &format])?;
        git.run(&[&"config", &"gc.auto", &"0"])?;
        if !self.dir.join(ORIGIN).exists() {
            self.record(&repository.common_dir, Vec::new())?;
        }
        Ok(())
    }

    /// Leads git-lfs, which looks beside the objects that a repository borrows, to the user's large files.
    pub(super) fn link_large_files(&self, common_dir: &Path) -> Result<(), Refusal> {
        let (theirs, ours) = (common_dir.join("lfs"), self.dir.join("lfs"));
        if !theirs.join("objects").is_dir() || ours.symlink_metadata().is_ok() {
            return Ok(());
        }
        std::os::unix::fs::symlink(theirs, ours).map_err(|error| self.failed(&error))
    }

    /// Takes over the history of `wanted`, from a repository that others may write. What is there already is not sent.
    pub(super) fn take(
        &self,
        view: &View,
        source: &Git,
        wanted: &BTreeSet<String>,
        owner: Owner<'_>,
    ) -> Result<(), Refusal> {
        let progress = match owner {
            Owner::User(progress) => Some(progress),
            Owner::Agent => None,
        };
        let git = match owner {
            Owner::User(_) => self.git()?.with_more_memory(),
            Owner::Agent => self.git()?,
        };
        let lines: String = wanted.iter().map(|id| format!("{id}\n")).collect();
        if self.check_history(&git, &lines).is_ok() {
            return Ok(());
        }
        let known = git.run(&[&"for-each-ref", &"--format=%(objectname)", &"refs/abide"])?;
        let file =
            |name: &str, text: &[u8]| durable::write(&view.place(name), text).map_err(|error| self.failed(&error));
        file("wanted", lines.as_bytes())?;
        file("known", &known)?;
        if matches!(owner, Owner::User(_)) {
            self.take_shallow(view)?;
        }
        // Objects that the source lacks are neither asked for nor taken for known.
        let types = "git cat-file --batch-check='%(objecttype) %(objectname)'";
        let script = format!(
            "{{ {types} <\"$GIT_DIR/wanted\" | sed -n 's/^[a-z]* \\([0-9a-f]*\\)$/\\1/p'\n\
               {types} <\"$GIT_DIR/known\" | sed -n 's/^commit /^/p; s/^tag /^/p'; }} |\n\
             git pack-objects --revs --stdout --thin --delta-base-offset -q"
        );
        let most = format!("--max-input-size={}", source.spare(&self.dir).bytes.max(1));
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"index-pack", &"--stdin", &"--fix-thin", &HARMLESS, &most];
        if progress.is_some() {
            args.push(&"-v");
        }
        let received = source.pipe(&script, &[], &git.reporting_to(progress), &args);
        received.map_err(|refusal| {
            // The receiver's words: what was sent is not a history.
            let is_damaged = refusal.code == ErrorCode::GitFailed && refusal.message.starts_with("git index-pack");
            if is_damaged { damaged(&refusal) } else { refusal }
        })?;
        if let Some(progress) = progress {
            progress.begin(Phase::Checking);
        }
        self.check_history(&git, &lines)
    }

    /// Whether everything that the commits lead to is here. An object whose content does not match its name in the source
    /// has another name here, so that it is missing under its own.
    fn check_history(&self, git: &Git, wanted: &str) -> Result<(), Refusal> {
        let args: [&dyn AsRef<std::ffi::OsStr>; 6] =
            [&"rev-list", &"--objects", &"--quiet", &"--stdin", &"--not", &"--all"];
        git.run_with(&args, wanted.as_bytes()).map(drop).map_err(|refusal| damaged(&refusal))
    }

    /// Commits whose history the user does not have. An agent's list is not taken over: it would cut the history that
    /// others see.
    fn take_shallow(&self, view: &View) -> Result<(), Refusal> {
        let theirs = fs::read(view.place("shallow")).unwrap_or_default();
        let ours = fs::read(self.dir.join("shallow")).unwrap_or_default();
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let (before, mut all) = (lines(&ours), lines(&theirs));
        all.extend(before.iter().cloned());
        if all == before {
            return Ok(());
        }
        let text: String = all.iter().map(|id| format!("{id}\n")).collect();
        durable::replace(&self.dir, "shallow", text.as_bytes()).map_err(|error| self.failed(&error))
    }

    /// The commits at which the history in this mirror begins, as a file of git's; empty where it is whole.
    pub(super) fn shallow(&self) -> Vec<u8> {
        fs::read(self.dir.join("shallow")).unwrap_or_default()
    }

    /// The refs below a prefix, without it.
    pub(super) fn refs(&self, prefix: &str) -> Result<Refs, Refusal> {
        let listed = self.git()?.run(&[&"for-each-ref", &"--format=%(objectname) %(refname)", &prefix])?;
        Ok(parse_refs(&listed, prefix))
    }

    /// Makes the refs below a prefix those. Deletions come first: a branch `a` may have given way to `a/b`.
    pub(super) fn set_refs(&self, prefix: &str, refs: &Refs) -> Result<(), Refusal> {
        let before = self.refs(prefix)?;
        let gone = before.keys().filter(|name| !refs.contains_key(*name));
        let gone: String = gone.map(|name| format!("delete {prefix}{name}\n")).collect();
        let new = refs.iter().filter(|(name, id)| before.get(*name) != Some(id));
        let new: String = new.map(|(name, id)| format!("update {prefix}{name} {id}\n")).collect();
        let git = self.git()?;
        for lines in [gone, new].iter().filter(|lines| !lines.is_empty()) {
            git.run_with(&[&"update-ref", &"--stdin"], lines.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn set_ref(&self, name: &str, id: &str) -> Result<(), Refusal> {
        self.git()?.run(&[&"update-ref", &name, &id]).map(drop)
    }

    pub(super) fn delete_ref(&self, name: &str) -> Result<(), Refusal> {
        self.git()?.run(&[&"update-ref", &"-d", &name]).map(drop)
    }

    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, Refusal> {
        Ok(self.git()?.ask(&[&"merge-base", &"--is-ancestor", &old, &new])?.ok)
    }

    /// Deletes a ref that was fetched. One that holds something else stays: another worktree had a branch of that name.
    pub(super) fn forget_fetched(&self, name: &str, id: &str) -> Result<(), Refusal> {
        let holds = self.git()?.ask(&[&"rev-parse", &"-q", &"--verify", &name])?;
        let holds = String::from_utf8_lossy(&holds.out).trim_end().to_owned();
        if holds.is_empty() || (holds != id && !self.is_ancestor(&holds, id)?) {
            return Ok(());
        }
        self.delete_ref(name)
    }

    /// Those of the refs whose objects are here.
    pub(super) fn present(&self, refs: &Refs) -> Result<Refs, Refusal> {
        let there = self.types(refs.values())?;
        Ok(refs.iter().filter(|(_, id)| there.contains_key(*id)).map(|(n, id)| (n.clone(), id.clone())).collect())
    }

    /// The types of those of the objects that are here, by their names.
    pub(super) fn types<'a>(&self, ids: impl Iterator<Item = &'a String>) -> Result<BTreeMap<String, String>, Refusal> {
        let ids: String = ids.map(|id| format!("{id}\n")).collect();
        let form = "--batch-check=%(objectname) %(objecttype)";
        let found = self.git()?.run_with(&[&"cat-file", &form], ids.as_bytes())?;
        let found = String::from_utf8_lossy(&found).into_owned();
        let known = found.lines().filter_map(|line| line.split_once(' ')).filter(|(_, kind)| *kind != "missing");
        Ok(known.map(|(id, kind)| (id.to_owned(), kind.to_owned())).collect())
    }

    pub(super) fn failed(&self, error: &io::Error) -> Refusal {
        let message = format!("the mirror {} could not be read or written: {error}", self.dir.display());
        Refusal::new(ErrorCode::Io, message)
            .with_hint(transient::hint(error, "see that there is room and the right to write in the home"))
    }
}

fn damaged(refusal: &Refusal) -> Refusal {
    let message = format!("objects are missing, or do not match their names: {}", refusal.message);
    Refusal::new(ErrorCode::DamagedObjects, message)
}

/// Lines of an object's name, a blank, and the name of a ref.
pub(super) fn parse_refs(listed: &[u8], prefix: &str) -> Refs {
    let text = String::from_utf8_lossy(listed);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(id, name)| Some((name.strip_prefix(prefix)?.to_owned(), id.to_owned()))).collect()
}
