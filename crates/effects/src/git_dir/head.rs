//! Reading and replacing the `HEAD` of a git directory. One that a command left counts as valid only as git itself writes
//! it, which is stricter than git reads it: where two programs read the same text in two ways, an agent would find the
//! difference.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::random_name;

/// The longest one that counts as written by git. git reads 255 bytes to tell whether it is one.
const WRITTEN_BYTES: usize = 250;
const READ_BYTES: usize = 255;
/// The longest one that is recorded.
const HEAD_BYTES: usize = 1024;
/// Another command of the agent can put folders in the way meanwhile.
const TRIES: usize = 16;

/// A `HEAD` that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) content: Vec<u8>,
    /// Old versions of git made a symbolic link of it.
    pub(super) is_link: bool,
}

impl Head {
    pub(super) fn read(git_dir: &OwnedFd) -> Option<Head> {
        if let Ok(link) = fs::readlinkat(git_dir, "HEAD", Vec::new()) {
            let content = [b"ref: ", link.as_bytes(), b"\n"].concat();
            return Some(Head { content, is_link: true });
        }
        Some(Head { content: read_content(git_dir)?, is_link: false })
    }

    pub(super) fn is_as_git_writes(&self) -> bool {
        is_written(&self.content)
    }

    /// Whether git takes it for one.
    pub(super) fn is_as_git_reads(&self) -> bool {
        let read = &self.content[..self.content.len().min(READ_BYTES)];
        let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
        match read.strip_prefix(b"ref:") {
            Some(name) => {
                name.iter().position(|byte| !is_blank(byte)).is_some_and(|at| name[at..].starts_with(b"refs/"))
            }
            None => begins_with_id(read),
        }
    }

    /// Whether any version of git could take it for one.
    pub(super) fn may_be_one(&self) -> bool {
        self.is_link || self.content.starts_with(b"ref:") || begins_with_id(&self.content)
    }
}

fn begins_with_id(content: &[u8]) -> bool {
    content.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() >= 40
}

/// The content of the `HEAD`, or its start, if that is a file that its owner may read.
fn read_content(folder: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(fs::openat(folder, "HEAD", flags, Mode::empty()).ok()?);
    let found = fs::fstat(&file).ok()?;
    let is_open_to_owner = found.st_mode & 0o400 != 0;
    if !FileType::from_raw_mode(found.st_mode).is_file() || !is_open_to_owner {
        return None;
    }
    let mut content = Vec::new();
    file.take(HEAD_BYTES as u64).read_to_end(&mut content).ok()?;
    Some(content)
}

fn is_written(head: &[u8]) -> bool {
    let Some(line) = head.strip_suffix(b"\n").filter(|_| head.len() <= WRITTEN_BYTES) else { return false };
    match line.strip_prefix(b"ref: ") {
        Some(name) => is_ref_name(name),
        None => matches!(line.len(), 40 | 64) && line.iter().all(u8::is_ascii_hexdigit),
    }
}

/// As `git check-ref-format` has it, but that a part may begin with a dot: with refs in tables `HEAD` names
/// `refs/heads/.invalid`.
fn is_ref_name(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    let is_odd = |byte: &u8| *byte <= b' ' || *byte == 0x7f || b"~^:?*[\\".contains(byte);
    let ends_oddly = [&b"/"[..], b".", b".lock"].iter().any(|end| name.ends_with(end));
    name.starts_with(b"refs/")
        && !name.iter().any(is_odd)
        && ![&b".."[..], b"//", b"@{"].into_iter().any(has)
        && !ends_oddly
}

/// Puts a `HEAD` in place, whatever lies there. Says the name of what was in the way and could not be removed.
pub(super) fn replace_head(git_dir: &OwnedFd, content: &[u8]) -> Result<Option<String>, Errno> {
    let name = random_name("HEAD");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(fs::openat(git_dir, &name, flags, Mode::from_raw_mode(0o666))?);
    let written = file.write_all(content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let owner = fs::fstat(git_dir)?;
    // Only where the daemon may: for most users it is their own already.
    let _ours = fs::fchown(&file, Some(fs::Uid::from_raw(owner.st_uid)), Some(fs::Gid::from_raw(owner.st_gid)));
    let placed = written.and_then(|()| write_new(git_dir, &name));
    if placed.is_err() {
        let _left = fs::unlinkat(git_dir, &name, AtFlags::empty());
    }
    placed
}

fn write_new(git_dir: &OwnedFd, name: &str) -> Result<Option<String>, Errno> {
    let mut last = Errno::EXIST;
    for _ in 0..TRIES {
        let rename = |from: &str, to: &str| fs::renameat(git_dir, from, git_dir, to);
        let placed = match fs::renameat_with(git_dir, name, git_dir, "HEAD", RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(remove(git_dir, name)),
            Err(Errno::NOENT) => rename(name, "HEAD"),
            // A file system that can't exchange names.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let aside = random_name("HEAD");
                let moved = rename("HEAD", &aside);
                let placed = rename(name, "HEAD");
                if placed.is_ok() && moved.is_ok() {
                    return Ok(remove(git_dir, &aside));
                }
                placed
            }
            Err(errno) => Err(errno),
        };
        match placed {
            Ok(()) => return Ok(None),
            Err(errno @ (Errno::EXIST | Errno::ISDIR | Errno::NOTEMPTY | Errno::NOENT)) => last = errno,
            Err(errno) => return Err(errno),
        }
    }
    Err(last)
}

/// A folder with files in it stays: they may be somebody's.
fn remove(git_dir: &OwnedFd, name: &str) -> Option<String> {
    let gone =
        fs::unlinkat(git_dir, name, AtFlags::empty()).or_else(|_| fs::unlinkat(git_dir, name, AtFlags::REMOVEDIR));
    gone.is_err().then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_counts_as_git_writes_it() {
        let line = |text: &str| format!("{text}\n");
        let long = line(&format!("ref: refs/heads/{}", "x".repeat(233)));
        let refs = ["ref: refs/heads/main\n", "ref: refs/heads/ä/b@c\n", "ref: refs/heads/.invalid\n", &long];
        for valid in refs.map(str::to_owned).into_iter().chain([line(&"a1".repeat(20)), line(&"b".repeat(64))]) {
            assert!(is_written(valid.as_bytes()), "{valid}");
        }
        let too_long = line(&format!("ref: refs/heads/{}", "x".repeat(234)));
        let blanks = format!("ref:{}refs/heads/main", " ".repeat(247));
        for invalid in [
            "",
            "\n",
            "nonsense\n",
            "ref: heads/main\n",
            "refs/heads/main\n",
            "a1b2\n",
            "ref: refs/heads/main",
            "ref: refs/heads/main\n\n",
            "ref:refs/heads/main\n",
            "ref: \x0crefs/heads/main\n",
            "ref: \trefs/heads/main\n",
            "ref:  refs/heads/main\n",
            "ref: refs/heads/a b\n",
            "ref: refs/../../x\n",
            "ref: refs/heads/x.lock\n",
            &"a1".repeat(20),
            &line(&"c".repeat(41)),
            &too_long,
            &blanks,
        ] {
            assert!(!is_written(invalid.as_bytes()), "{invalid:?}");
        }
    }
    #[test]
    fn a_head_is_read_as_git_reads_it() {
        let is_read = |text: &str| Head { content: text.as_bytes().to_vec(), is_link: false }.is_as_git_reads();
        let blanks = |count: usize| format!("ref:{}refs/heads/main", " ".repeat(count));
        for valid in ["ref: refs/heads/main\n", "ref:refs/x", "ref: \t refs/heads/a", &blanks(246), &"a1".repeat(20)] {
            assert!(is_read(valid), "{valid:?}");
        }
        for invalid in ["", "nonsense", "ref: heads/main", "refs/heads/main", "a1b2", "ref: \x0crefs/x", &blanks(247)] {
            assert!(!is_read(invalid), "{invalid:?}");
        }
    }
}
