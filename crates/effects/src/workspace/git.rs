//! Running git. It gets an environment of our making: no prompt, no pager, no hook, no file system monitor, nothing
//! inherited that would point it at another repository. Its own configuration for the user still counts, because what
//! is ignored and which folders are trusted is the user's to say.
//!
//! It has a time to answer in: what it reads can be written by an agent, and a pipe among it would keep it for ever.
//!
//! It has to be git 2.36 or later, which lists worktrees so that every path can be read.
//!
//! Programs that a repository's own configuration names are never run: an agent can write that file, and we run outside
//! of its sandbox. Filters of the user's configuration (large files, say) are.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use abide_kernel::input::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use crate::limits;
use crate::sandbox::environment;

/// What git is told whatever its configuration says.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    // A split index would put its shared half into the repository.
    ("core.splitIndex", "false"),
    // Mixed line ends are content like any other; they must not make saving fail.
    ("core.safecrlf", "false"),
    ("core.pager", "cat"),
    ("color.ui", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("add.ignoreErrors", "false"),
    ("advice.addEmbeddedRepo", "false"),
    ("advice.detachedHead", "false"),
    ("apply.whitespace", "nowarn"),
    ("apply.ignoreWhitespace", "no"),
    ("status.showUntrackedFiles", "normal"),
    ("worktree.guessRemote", "false"),
];

/// What speeds up objects that are thrown away, and must not be used for others.
const SCRATCH_SETTINGS: &[(&str, &str)] = &[("core.looseCompression", "0"), ("core.fsync", "none")];

/// git in one folder.
#[derive(Debug, Clone)]
pub(super) struct Git {
    program: PathBuf,
    pub(super) dir: PathBuf,
    settings: Vec<(String, String)>,
    scratch: Option<Scratch>,
    patience: Duration,
}

/// An index and an object store apart from the repository's, so that looking changes nothing in it.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    pub(super) index: PathBuf,
    pub(super) objects: PathBuf,
    /// The repository's own store, read only.
    pub(super) behind: PathBuf,
}

/// What came of one run.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) ok: bool,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Git {
    pub(super) fn at(dir: &Path) -> Result<Git, Refusal> {
        Git::patient(dir, limits::GIT_PATIENCE)
    }

    fn patient(dir: &Path, patience: Duration) -> Result<Git, Refusal> {
        let program = program().ok_or_else(|| {
            Refusal::new("no_git_program", "there is no git in PATH", "install git, or put it into the daemon's PATH")
        })?;
        let settings = SETTINGS.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let mut git = Git { program, dir: dir.into(), settings, scratch: None, patience };
        for filter in git.filters_of_repository()? {
            for (part, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                git.settings.push((format!("{filter}.{part}"), value.into()));
            }
        }
        Ok(git)
    }

    pub(super) fn with(&self, scratch: Scratch) -> Git {
        Git { scratch: Some(scratch), ..self.clone() }
    }

    /// The same objects, another index.
    pub(super) fn with_index(&self, index: PathBuf) -> Git {
        let scratch = self.scratch.clone().map(|scratch| Scratch { index, ..scratch });
        Git { scratch, ..self.clone() }
    }

    /// Runs git and hands back whatever it said; failing is one of the answers.
    pub(super) fn ask(&self, args: &[&dyn AsRef<OsStr>]) -> Result<Said, Refusal> {
        self.ask_with(args, &[])
    }

    /// Runs git, which has to succeed.
    pub(super) fn run(&self, args: &[&dyn AsRef<OsStr>]) -> Result<Vec<u8>, Refusal> {
        self.run_with(args, &[])
    }

    /// The same with a file that it holds as long as it runs, also when we are gone.
    pub(super) fn run_holding(&self, args: &[&dyn AsRef<OsStr>], held: &File) -> Result<Vec<u8>, Refusal> {
        let held = held.try_clone().map_err(|error| self.unrunnable(&error))?;
        let mut command = self.command(args);
        command.stdin(held);
        let said = self.said(args, command, &[])?;
        if said.ok { Ok(said.out) } else { Err(self.failed(args, &said.err)) }
    }

    pub(super) fn run_with(&self, args: &[&dyn AsRef<OsStr>], input: &[u8]) -> Result<Vec<u8>, Refusal> {
        let said = self.ask_with(args, input)?;
        if said.ok { Ok(said.out) } else { Err(self.failed(args, &said.err)) }
    }

    /// Runs git, which has to succeed and say one line: a name, a hash, a path (which may hold line ends itself).
    pub(super) fn line(&self, args: &[&dyn AsRef<OsStr>]) -> Result<String, Refusal> {
        let out = self.run(args)?;
        let text = String::from_utf8(out).map_err(|_| {
            Refusal::new("not_utf8", "git named something that is not UTF-8", "rename the folder of the repository")
        })?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Where things are. In one run, because starting git is most of what that costs, unless a path has line ends.
    pub(super) fn where_are<const N: usize>(&self, questions: [&str; N]) -> Result<[String; N], Refusal> {
        let start: [&dyn AsRef<OsStr>; 2] = [&"rev-parse", &"--path-format=absolute"];
        let all: Vec<&dyn AsRef<OsStr>> = start.into_iter().chain(questions.iter().map(|one| one as _)).collect();
        let together = self.line(&all)?;
        let mut lines = together.split('\n');
        if together.matches('\n').count() == N - 1 {
            return Ok(questions.map(|_| lines.next().unwrap_or_default().to_owned()));
        }
        let mut answers = questions.map(|_| String::new());
        for (answer, question) in answers.iter_mut().zip(questions) {
            *answer = self.line(&[start[0], start[1], &question])?;
        }
        Ok(answers)
    }

    /// Runs git with its output going to the end of a file, however long it is.
    pub(super) fn run_into(&self, args: &[&dyn AsRef<OsStr>], file: &File) -> Result<(), Refusal> {
        let stdout = file.try_clone().map_err(|error| self.unrunnable(&error))?;
        let mut child = self.command(args).stdout(stdout).spawn().map_err(|error| self.unrunnable(&error))?;
        let err = drain(child.stderr.take());
        let status = self.end_of(args, &mut child, Instant::now() + self.patience)?;
        let err = err.join().unwrap_or_default();
        if status.success() { Ok(()) } else { Err(self.failed(args, &err)) }
    }

    fn ask_with(&self, args: &[&dyn AsRef<OsStr>], input: &[u8]) -> Result<Said, Refusal> {
        let mut command = self.command(args);
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        self.said(args, command, input)
    }

    fn said(&self, args: &[&dyn AsRef<OsStr>], mut command: Command, input: &[u8]) -> Result<Said, Refusal> {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.unrunnable(&error))?;
        let err = drain(child.stderr.take());
        let until = Instant::now() + self.patience;
        let out = thread::scope(|scope| {
            // In a thread of its own, because git may want to be read before it reads on. One that stops reading has
            // failed, and says so by itself.
            if let Some(mut stdin) = child.stdin.take() {
                scope.spawn(move || stdin.write_all(input));
            }
            bounded(&mut child, until)
        });
        let status = self.end_of(args, &mut child, until)?;
        let err = err.join().unwrap_or_default();
        let out = out.map_err(|error| self.unrunnable(&error))?.ok_or_else(|| {
            Refusal::new(
                "too_big",
                format!("git {} said more than {} bytes", verb(args), limits::GIT_OUTPUT_BYTES),
                "use a smaller repository, or a folder without one",
            )
        })?;
        Ok(Said { ok: status.success(), out, err })
    }

    /// How it ended, by itself or because its time was over.
    fn end_of(&self, args: &[&dyn AsRef<OsStr>], child: &mut Child, until: Instant) -> Result<ExitStatus, Refusal> {
        let ended = ends(child, until).and_then(|ends| {
            if !ends {
                child.kill()?;
            }
            Ok((child.wait()?, ends))
        });
        let (status, ends) = ended.map_err(|error| self.unrunnable(&error))?;
        // Whoever listened to it may have ended it already.
        if ends && (status.signal().is_none() || Instant::now() < until) {
            return Ok(status);
        }
        let (dir, seconds) = (self.dir.display(), self.patience.as_secs());
        let message = format!("git {} in {dir} did not end within {seconds} seconds", verb(args));
        Err(Refusal::new("git_stuck", message, "see what it waits for: a pipe among its files, say, or a disk"))
    }

    fn command(&self, args: &[&dyn AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(&self.dir).stdin(Stdio::null()).stderr(Stdio::piped());
        // What a terminal sends to the daemon is not meant for a git that is half done.
        command.process_group(0);
        for name in ["HOME", "XDG_CONFIG_HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("PATH", std::env::join_paths(absolute_path()).unwrap_or_default());
        command.envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_ASKPASS", "true"), ("GIT_PAGER", "cat")]);
        command.envs([("GIT_EDITOR", "false"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1")]);
        let scratch = if self.scratch.is_some() { SCRATCH_SETTINGS } else { &[] };
        let own = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut count = 0;
        for (key, value) in own.chain(scratch.iter().copied()) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        if let Some(scratch) = &self.scratch {
            command.env("GIT_INDEX_FILE", &scratch.index).env("GIT_OBJECT_DIRECTORY", &scratch.objects);
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsStr::from_bytes(&in_a_list(&scratch.behind)));
        }
        command.args(args.iter().map(|arg| arg.as_ref()));
        command
    }

    /// The sections of filters that the repository itself configures, as `filter.NAME`.
    fn filters_of_repository(&self) -> Result<Vec<String>, Refusal> {
        let said = self.ask(&[&"config", &"--show-scope", &"-z", &"--name-only", &"--get-regexp", &r"^filter\."])?;
        let mut filters: Vec<String> = Vec::new();
        let mut fields = said.out.split(|byte| *byte == 0);
        while let (Some(scope), Some(key)) = (fields.next(), fields.next()) {
            let key = String::from_utf8_lossy(key);
            let Some((section, _)) = key.rsplit_once('.') else { continue };
            if matches!(scope, b"local" | b"worktree") && !filters.iter().any(|filter| filter == section) {
                filters.push(section.to_owned());
            }
        }
        Ok(filters)
    }

    /// A refusal in git's own words, with what to do about the causes that we know.
    pub(super) fn failed(&self, args: &[&dyn AsRef<OsStr>], err: &str) -> Refusal {
        let words = err.trim();
        let dir = self.dir.display();
        let (code, hint) = if words.contains("dubious ownership") {
            let hint = "the repository belongs to somebody else; make it yours, or trust it: git config --global --add safe.directory";
            ("git_unsafe", format!("{hint} '{dir}'"))
        } else if words.contains(".lock': File exists") {
            let hint = "another git is at work there; try again when it is done, or delete its lock if there is none";
            ("git_busy", hint.into())
        } else if words.contains("does not have a commit checked out") {
            (
                "nested_repository",
                "a repository inside has no commit yet: commit in it, move it away, or delete it".into(),
            )
        } else if words.contains("Permission denied") {
            ("unreadable", "give the daemon's user access to what git names, then try again".into())
        } else {
            ("git_failed", format!("repair what git names, in {dir}, then try again"))
        };
        Refusal::new(code, format!("git {} in {dir} failed: {words}", verb(args)), hint)
    }

    fn unrunnable(&self, error: &io::Error) -> Refusal {
        let message = format!("git could not be run in {}: {error}", self.dir.display());
        Refusal::new("git_failed", message, "see that the folder is there and that git can be executed")
    }
}

fn verb(args: &[&dyn AsRef<OsStr>]) -> String {
    args.iter().take(2).map(|arg| arg.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The places of PATH that mean the same from every folder: a relative one would find programs in the workspace. Where
/// there is no PATH, git is found where commands would find it.
fn absolute_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| environment::PATH.into());
    std::env::split_paths(&path).filter(|place| place.is_absolute()).collect()
}

fn program() -> Option<PathBuf> {
    absolute_path().into_iter().map(|place| place.join("git")).find(|program| program.is_file())
}

/// A path as an entry of a colon-separated list: quoted, because a path may have colons.
fn in_a_list(path: &Path) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Everything the child says in its time, or none when that is more than we hold; after either it is ended.
fn bounded(child: &mut Child, until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = vec![0; limits::TAKEN_BYTES];
        while out.len() as u64 <= limits::GIT_OUTPUT_BYTES {
            if !comes(&stdout, until)? {
                child.kill()?;
                break;
            }
            match stdout.read(&mut buffer)? {
                0 => break,
                count => out.extend_from_slice(&buffer[..count]),
            }
        }
    }
    if out.len() as u64 > limits::GIT_OUTPUT_BYTES {
        child.kill()?;
        return Ok(None);
    }
    Ok(Some(out))
}

/// Whether the child ends in time. Asked of the process itself: its number may be another's by then.
fn ends(child: &Child, until: Instant) -> io::Result<bool> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    comes(rustix::process::pidfd_open(pid, PidfdFlags::empty())?, until)
}

/// Whether there is something to be read in time, the end included.
fn comes(from: impl AsFd, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&from, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads to the end, so that the child is never stuck on a full pipe, and keeps the beginning.
fn drain(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut from) = from {
            // What can't be read any more is missing from a message, nothing else.
            let _ = from.by_ref().take(limits::GIT_WORDS_BYTES).read_to_end(&mut kept);
            let _ = io::copy(&mut from, &mut io::sink());
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here and not at the front door, because nobody would wait that long.
    #[test]
    fn a_git_that_waits_for_ever_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::at(folder.path()).unwrap();
        git.run(&[&"init", &"-q"]).unwrap();
        let config = folder.path().join(".git/config");
        std::fs::remove_file(&config).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &config, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        // It never ends by itself, so that any patience comes to an end before it does.
        let patience = Duration::from_millis(1);
        assert_eq!(Git::patient(folder.path(), patience).unwrap_err().code, "git_stuck");
        let git = Git { patience, ..git };
        assert_eq!(git.run_with(&[&"status"], &[0; 1 << 20]).unwrap_err().code, "git_stuck");
        let file = File::create(folder.path().join("into")).unwrap();
        assert_eq!(git.run_into(&[&"status"], &file).unwrap_err().code, "git_stuck");
    }
}
