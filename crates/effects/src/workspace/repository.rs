//! Finding the repository of a folder, without running git: the folder and the repository's records may have been
//! written by an agent, and git would follow them wherever they lead.
//!
//! The link from a folder to its records lies in the folder, so it could name any repository of this machine. It counts
//! only where the records lead back to the folder.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::check::canonical_as_far_as_it_exists;
use super::git::{Git, user_settings};
use super::tree::path_of;
use crate::git_dir::{shadow, shadows};
use crate::limits;
use crate::transient;
use crate::unlinked::open_unlinked;

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
    ///
    /// The search ends at the first `.git`. git itself goes on past a folder of that name that is no git directory, and
    /// uses a repository further up. An agent that deletes `.git/HEAD` would so get the records of a repository around the
    /// folder, which nobody attached.
    pub(super) fn find(folder: &Path) -> Result<Option<Repository>, Refusal> {
        for toplevel in folder.ancestors() {
            let dot = toplevel.join(".git");
            if shadows(toplevel) {
                return Err(if dot.symlink_metadata().is_ok() { shadowed(toplevel) } else { inside_git(folder) });
            }
            let Ok(found) = dot.symlink_metadata() else { continue };
            if found.is_dir() {
                if !is_git_dir(&dot) {
                    return Err(damaged(&dot));
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
            return Err(Refusal::new(ErrorCode::GitUnsafe, message).fill("path", path));
        }
        let settings = Settings::read(&self)?;
        if settings.get("core.bare") == Some("true") && settings.get("core.worktree").is_none() {
            return Err(inside_git(folder));
        }
        let files = settings.get("core.worktree").map(|path| self.common_dir.join(path).canonicalize());
        match files {
            Some(Ok(files)) if files != self.toplevel => {
                let message = format!("the files of {} are in {}", folder.display(), files.display());
                Err(Refusal::new(ErrorCode::GitElsewhere, message))
            }
            Some(_) | None => Ok(self),
        }
    }
}

fn inside_git(folder: &Path) -> Refusal {
    let message = format!("{} is where git keeps its own records", folder.display());
    Refusal::new(ErrorCode::InsideGit, message)
}

/// A folder with a repository that is itself one: an agent may have made it so.
pub(super) fn shadowed(folder: &Path) -> Refusal {
    let hint = "the operator has to do that; no command starts there before";
    Refusal::new(ErrorCode::Unprotected, shadow(folder)).with_hint(hint)
}

fn damaged(dot: &Path) -> Refusal {
    let message = format!("{} is no git directory: HEAD, objects or refs is missing in it", dot.display());
    let hint = "repair it, or delete it if it is no repository; git itself would use a repository further up, which is \
        not the one that was named";
    Refusal::new(ErrorCode::DamagedRepository, message).with_hint(hint)
}

pub(super) fn is_git_dir(path: &Path) -> bool {
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
        return Err(Refusal::new(ErrorCode::GitFailed, message).with_hint("repair or delete that file, then try again"));
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
    read_regular(File::options().read(true).custom_flags(flags).open(path)?, path, most)
}

/// The same for a file whose content is shown to others. It is not read where it, or a folder on the way to it, is a
/// link: agents may write these records, and could have any file of this machine shown to them.
pub(super) fn read_record(records: &Path, name: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    read_regular(open_record(records, name.as_ref())?, &records.join(name), most)
}

/// Such a file, open. It may be of any kind and size.
pub(super) fn open_record(records: &Path, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(rustix::fs::openat2(open_unlinked(records)?, name, flags, Mode::empty(), resolve)?.into())
}

fn read_regular(file: File, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() > most {
        return Err(io::Error::other(format!("{} is no file of at most {most} bytes", path.display())));
    }
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content)?;
    Ok(content)
}

/// Object stores outside of the repository that it takes objects from, those that they take objects from included. Who
/// may write its records could name any.
pub(super) fn borrows_from(common_dir: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut outside = BTreeSet::new();
    let mut stores = vec![common_dir.join("objects")];
    while let Some(store) = stores.pop() {
        stores.extend(named_by(&store).into_iter().filter(|other| outside.insert(other.clone())));
        if outside.len() > limits::ALTERNATES {
            let message = format!("the repository {} takes objects from too many others", common_dir.display());
            let hint = "have it hold its objects itself: git repack -a -d, then delete objects/info/alternates";
            return Err(Refusal::new(ErrorCode::BorrowedObjects, message).with_hint(hint));
        }
    }
    Ok(outside.into_iter().collect())
}

/// The places outside of an object store that its links and its list of alternates name.
fn named_by(objects: &Path) -> Vec<PathBuf> {
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let links = [objects.to_path_buf(), objects.join("info/alternates")].into_iter();
    let links = links.chain(inside(objects.to_path_buf())).chain(inside(objects.join("pack"))).filter(is_link);
    let mut named: Vec<PathBuf> = links.collect();
    let listed = read_record(objects, "info/alternates", limits::GIT_SETTINGS_BYTES).unwrap_or_default();
    let listed = listed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    named.extend(listed.map(|line| objects.join(path_of(&unquoted(line)))));
    // A store that is not there is named by where it would be.
    let real = |path: PathBuf| path.canonicalize().or_else(|_| canonical_as_far_as_it_exists(&path)).unwrap_or(path);
    named.into_iter().map(real).collect()
}

/// A path as a line of a list of alternates has it: git reads one that begins with a quote as a string of C.
fn unquoted(line: &[u8]) -> Vec<u8> {
    line.strip_prefix(b"\"").and_then(string_of_c).unwrap_or_else(|| line.to_vec())
}

/// The text of a string without its first quote. None where it is none.
fn string_of_c(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut rest = quoted.iter().copied();
    loop {
        let byte = rest.next()?;
        text.push(match byte {
            b'"' => return Some(text),
            b'\\' => match rest.next()? {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                plain @ (b'"' | b'\\') => plain,
                first @ b'0'..=b'3' => {
                    let octal = |digit: Option<u8>| digit.filter(|digit| matches!(digit, b'0'..=b'7'));
                    let (second, third) = (octal(rest.next())?, octal(rest.next())?);
                    (first - b'0') * 64 + (second - b'0') * 8 + (third - b'0')
                }
                _ => return None,
            },
            other => other,
        });
    }
}

/// The settings of a repository, without any file that they include.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    pub(super) fn read(repository: &Repository) -> Result<Settings, Refusal> {
        let mut settings = Settings::default();
        for (records, name) in [(&repository.common_dir, "config"), (&repository.git_dir, "config.worktree")] {
            let file = records.join(name);
            let Ok(found) = file.symlink_metadata() else { continue };
            if found.is_symlink() {
                let message = format!("the settings {} are a link", file.display());
                return Err(Refusal::new(ErrorCode::DamagedRepository, message)
                    .with_hint("replace the link by a file, then try again"));
            }
            // Not through a link: settings hold addresses with tokens, and a worktree is shown those of its repository.
            let text = read_record(records, name, limits::GIT_SETTINGS_BYTES).map_err(|error| {
                let message = format!("the settings {} can't be read: {error}", file.display());
                Refusal::new(ErrorCode::GitFailed, message)
                    .with_hint(transient::hint(&error, "repair that file, then try again"))
            })?;
            settings.parse(&text)?;
        }
        Ok(settings)
    }

    /// Adds the settings of one file's text.
    pub(super) fn parse(&mut self, text: &[u8]) -> Result<(), Refusal> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_alternates_is_read_as_git_reads_it() {
        for (line, path) in [
            (&b"/a/b"[..], &b"/a/b"[..]),
            (b"\"/a \\\"b\\\" \\\\ \\t\\303\\274\"", b"/a \"b\" \\ \t\xc3\xbc"),
            (b"\"/a\" and more", b"/a"),
            // No string of C, and so a path that begins with a quote.
            (b"\"/a", b"\"/a"),
            (b"\"/a\\x\"", b"\"/a\\x\""),
            (b"\"/a\\389\"", b"\"/a\\389\""),
        ] {
            assert_eq!(unquoted(line), path, "{}", String::from_utf8_lossy(line));
        }
    }
}
