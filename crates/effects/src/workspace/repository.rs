//! Finding the repository of a folder, without running git: the folder and the repository's records may have been
//! written by an agent, and git would follow them wherever they lead.
//!
//! The link from a folder to its records lies in the folder, so it could name any repository of this machine. It counts
//! only where the records lead back to the folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;

use super::git::{Git, user_settings};
use crate::limits;

/// A working tree and its records, by their real paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) toplevel: PathBuf,
    /// The records of this working tree: `HEAD`, the index.
    pub(super) git_dir: PathBuf,
    /// The records that all working trees of the repository share: objects, refs, settings.
    pub(super) common_dir: PathBuf,
}

impl Repository {
    /// The repository that a folder is part of, where that repository knows the folder.
    pub(super) fn find(folder: &Path) -> Result<Option<Repository>, Refusal> {
        for toplevel in folder.ancestors() {
            if is_git_dir(toplevel) {
                return Err(inside_git(folder));
            }
            let dot = toplevel.join(".git");
            let Ok(found) = dot.symlink_metadata() else { continue };
            if found.is_dir() {
                if !is_git_dir(&dot) {
                    continue;
                }
                // Records that take the place of their shared part from elsewhere.
                if named_in(&dot.join("commondir"), &dot).is_some_and(|common_dir| common_dir != dot) {
                    return Ok(None);
                }
                let whole = Repository { toplevel: toplevel.into(), git_dir: dot.clone(), common_dir: dot };
                return whole.checked(folder).map(Some);
            }
            if !found.is_file() {
                return Ok(None);
            }
            let Some(linked) = linked(toplevel, &dot)? else { return Ok(None) };
            return linked.checked(folder).map(Some);
        }
        Ok(None)
    }

    /// Its records lie apart from those of the repository: a linked worktree.
    pub(super) fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }

    fn checked(self, folder: &Path) -> Result<Repository, Refusal> {
        let own = rustix::process::geteuid().as_raw();
        let foreign = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.uid() != own);
        if (foreign(&self.toplevel) || foreign(&self.common_dir)) && !is_trusted(&self.toplevel) {
            let path = self.toplevel.display();
            let message = format!("the repository {path} belongs to another user");
            let hint = format!("make it yours, or trust it: git config --global --add safe.directory '{path}'");
            return Err(Refusal::new("git_unsafe", message, hint));
        }
        let settings = Settings::read(&self)?;
        if settings.get("core.bare") == Some("true") && settings.get("core.worktree").is_none() {
            return Err(inside_git(folder));
        }
        let files = settings.get("core.worktree").map(|path| self.common_dir.join(path).canonicalize());
        match files {
            Some(Ok(files)) if files != self.toplevel => {
                let message = format!("the files of {} are in {}", folder.display(), files.display());
                let hint = "remove core.worktree from the repository's configuration";
                Err(Refusal::new("git_elsewhere", message, hint))
            }
            Some(_) | None => Ok(self),
        }
    }
}

fn inside_git(folder: &Path) -> Refusal {
    let message = format!("{} is where git keeps its own records", folder.display());
    Refusal::new("inside_git", message, "give the folder with the files, or clone the repository first")
}

fn is_git_dir(path: &Path) -> bool {
    let is_dir = |name: &str| path.join(name).is_dir();
    path.join("HEAD").symlink_metadata().is_ok() && is_dir("objects") && is_dir("refs")
}

/// The user's word that a repository of somebody else may be used.
fn is_trusted(toplevel: &Path) -> bool {
    let trusted = user_settings("safe.directory");
    trusted.iter().any(|trusted| trusted == "*" || Path::new(trusted) == toplevel)
}

/// A `.git` that is a file: of a linked worktree, or of a module of the repository around it.
fn linked(toplevel: &Path, dot: &Path) -> Result<Option<Repository>, Refusal> {
    let Some(git_dir) = named_in(dot, toplevel) else {
        let message = format!("{} names a repository that is not there", dot.display());
        return Err(Refusal::new("git_failed", message, "repair or delete that file, then try again"));
    };
    let common_dir = named_in(&git_dir.join("commondir"), &git_dir).unwrap_or_else(|| git_dir.clone());
    let known = if git_dir == common_dir {
        // A module's records say where its files are.
        let records =
            Repository { toplevel: toplevel.into(), git_dir: git_dir.clone(), common_dir: common_dir.clone() };
        let files = Settings::read(&records)?.get("core.worktree").map(|path| common_dir.join(path).canonicalize());
        is_git_dir(&git_dir) && matches!(files, Some(Ok(files)) if files == toplevel)
    } else {
        let back = named_in(&git_dir.join("gitdir"), &git_dir);
        git_dir.parent() == Some(&common_dir.join("worktrees")) && back.as_deref() == Some(dot)
    };
    Ok(known.then(|| Repository { toplevel: toplevel.into(), git_dir, common_dir }))
}

/// The path that a file of git's holds, by its real name. It may be relative to the folder that the file is in.
fn named_in(file: &Path, folder: &Path) -> Option<PathBuf> {
    let text = read(file, limits::GIT_WORDS_BYTES).ok()?;
    let text = String::from_utf8(text).ok()?;
    let name = text.trim_end_matches('\n');
    folder.join(name.strip_prefix("gitdir: ").unwrap_or(name)).canonicalize().ok()
}

/// The content of a regular file that others may have written: a pipe or a device in its place is not waited for.
pub(super) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > most {
        return Err(io::Error::other(format!("{} is no file of at most {most} bytes", path.display())));
    }
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content)?;
    Ok(content)
}

/// Object stores outside of the repository that it takes objects from. Who may write its records could name any.
pub(super) fn borrows_from(common_dir: &Path) -> Vec<PathBuf> {
    let objects = common_dir.join("objects");
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let entries = fs::read_dir(&objects).into_iter().flatten().flatten().map(|entry| entry.path());
    let links = [objects.clone()].into_iter().chain(entries).filter(is_link);
    let mut outside: Vec<PathBuf> = links.map(|link| link.canonicalize().unwrap_or(link)).collect();
    let listed = read(&objects.join("info/alternates"), limits::GIT_SETTINGS_BYTES).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    for line in listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let path = objects.join(line);
        outside.push(path.canonicalize().unwrap_or(path));
    }
    outside.sort();
    outside.dedup();
    outside
}

/// The settings of a repository, without any file that they include.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    pub(super) fn read(repository: &Repository) -> Result<Settings, Refusal> {
        let mut settings = Settings::default();
        let own = repository.git_dir.join("config.worktree");
        for file in [repository.common_dir.join("config"), own] {
            if !file.symlink_metadata().is_ok_and(|found| found.len() > 0) {
                continue;
            }
            let text = read(&file, limits::GIT_SETTINGS_BYTES).map_err(|error| {
                let message = format!("the settings {} can't be read: {error}", file.display());
                Refusal::new("git_failed", message, "repair that file, then try again")
            })?;
            settings.parse(&text)?;
        }
        Ok(settings)
    }

    fn parse(&mut self, text: &[u8]) -> Result<(), Refusal> {
        // git parses text that it gets on its standard input: it opens nothing.
        let nowhere = Git::trusted(Path::new("/dev/null"))?;
        let args: [&dyn AsRef<std::ffi::OsStr>; 6] = [&"config", &"--file", &"-", &"--no-includes", &"-z", &"--list"];
        let listed = if text.is_empty() { Vec::new() } else { nowhere.run_with(&args, text)? };
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let entry = String::from_utf8_lossy(entry);
            // A key without a value means yes.
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            self.0.push((key.to_owned(), value.to_owned()));
        }
        Ok(())
    }

    /// The last value counts.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Some objects are not there and would be fetched when they are needed.
    pub(super) fn is_partial(&self) -> bool {
        let promised = |(key, value): (&str, &str)| key.ends_with(".promisor") && value == "true";
        self.get("extensions.partialclone").is_some() || self.all().any(promised)
    }

    pub(super) fn object_format(&self) -> &str {
        self.get("extensions.objectformat").unwrap_or("sha1")
    }
}
