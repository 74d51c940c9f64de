//! Running git. Nothing else in the runtime starts it, and there are two ways.
//!
//! *Trusted*: git works on records and folders that nobody but the runtime has written, such as a mirror, and is started
//! directly.
//!
//! *Untrusted*: git reads a folder or records that an agent may have written. Its git directory is a [`View`]: one that
//! the runtime made, with settings of its own, so no filter, hook, helper or other program that the repository names is
//! known to it. Where there is a sandbox it runs inside, without network, and sees only what the view names.
//!
//! In both, git gets an environment of our making: no settings of the system or of the user, no prompt, no pager, no
//! transport. It has a time limit, and an untrusted one is ended as soon as it has stopped for good, because a pipe among
//! the files that it reads would block it for ever.
//!
//! git has to be 2.36 or later.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags};

use super::stall::Stall;
use super::transfers::Progress;
use super::view::View;
use crate::limits;
use crate::process::{Launch, Process, Processes, Spare, half_of_memory};
use crate::programs;
use crate::transient;

/// What git is told whatever its configuration says.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
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
    ("diff.ignoreSubmodules", "all"),
    ("advice.detachedHead", "false"),
    ("apply.whitespace", "nowarn"),
    ("apply.ignoreWhitespace", "no"),
    ("status.showUntrackedFiles", "normal"),
];

/// Variables that every git gets. `GIT_ALLOW_PROTOCOL` names no protocol: objects are moved as packs, over pipes of ours.
const VARIABLES: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
];

pub(super) type Args<'a> = &'a [&'a dyn AsRef<OsStr>];

/// git on one git directory.
#[derive(Debug, Clone)]
pub(super) struct Git {
    program: PathBuf,
    runner: Runner,
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    index: Option<PathBuf>,
    patience: Duration,
    /// Memory of its own that each process may take. Inside of the sandbox there is also the bound of commands.
    memory_bytes: Option<u64>,
    /// Where progress that git prints is reported; none of it is taken for a complaint.
    progress: Option<Progress>,
}

#[derive(Debug, Clone)]
enum Runner {
    Direct,
    Sandboxed { processes: Processes, read: Vec<PathBuf>, write: Vec<PathBuf> },
}

/// The output of one run.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) ok: bool,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Git {
    /// git on a git directory that only the runtime writes.
    pub(super) fn trusted(git_dir: &Path) -> Result<Git, Refusal> {
        Git::new(Runner::Direct, git_dir)
    }

    /// git on a view of a repository that others write.
    pub(super) fn untrusted(view: &View, processes: &Processes) -> Result<Git, Refusal> {
        let (processes, read, write) = (processes.clone(), view.readable(), view.writable());
        Git::new(Runner::Sandboxed { processes, read, write }, view.git_dir())
    }

    fn new(runner: Runner, git_dir: &Path) -> Result<Git, Refusal> {
        let program = programs::find("git").map_err(|why| Refusal::new(ErrorCode::NoGitProgram, why))?;
        let git_dir = git_dir.to_path_buf();
        let memory_bytes = match runner {
            Runner::Direct => Some(limits::GIT_MEMORY_BYTES),
            Runner::Sandboxed { .. } => None,
        };
        let patience = limits::GIT_PATIENCE;
        Ok(Git { program, runner, git_dir, work_tree: None, index: None, patience, memory_bytes, progress: None })
    }

    /// The same git directory with the files of a folder.
    pub(super) fn with_files(&self, work_tree: &Path) -> Git {
        Git { work_tree: Some(work_tree.to_path_buf()), ..self.clone() }
    }

    /// The same git directory with another index.
    pub(super) fn with_index(&self, index: PathBuf) -> Git {
        Git { index: Some(index), ..self.clone() }
    }

    /// The same git with half of the machine's memory, for the history of a user's repository: it may be any size.
    pub(super) fn with_more_memory(&self) -> Git {
        Git { memory_bytes: Some(half_of_memory().max(limits::GIT_MEMORY_BYTES)), ..self.clone() }
    }

    /// The same git with the memory that one outside of a sandbox has. It says that it has too little, where the bound of
    /// commands would end it without a word.
    pub(super) fn with_less_memory(&self) -> Git {
        Git { memory_bytes: Some(limits::GIT_MEMORY_BYTES), ..self.clone() }
    }

    pub(super) fn with_patience(&self, patience: Duration) -> Git {
        Git { patience, ..self.clone() }
    }

    /// What may still be written to the disk of a folder, above the operator's reserve.
    pub(super) fn spare(&self, folder: &Path) -> Spare {
        match &self.runner {
            Runner::Direct => Spare::of(folder, None),
            Runner::Sandboxed { processes, .. } => processes.spare(folder),
        }
    }

    /// The same git, whose progress is reported there.
    pub(super) fn reporting_to(&self, progress: Option<&Progress>) -> Git {
        Git { progress: progress.cloned(), ..self.clone() }
    }

    /// Runs git and returns its output, whether it succeeded or not.
    pub(super) fn ask(&self, args: Args<'_>) -> Result<Said, Refusal> {
        self.ask_with(args, &[])
    }

    /// Runs git, which has to succeed.
    pub(super) fn run(&self, args: Args<'_>) -> Result<Vec<u8>, Refusal> {
        self.run_with(args, &[])
    }

    pub(super) fn run_with(&self, args: Args<'_>, input: &[u8]) -> Result<Vec<u8>, Refusal> {
        let said = self.ask_with(args, input)?;
        if said.ok { Ok(said.out) } else { Err(self.failed(&verb(args), &said.err)) }
    }

    /// Runs git with a file as its standard input. git holds the file's lock as long as it runs, also after us.
    pub(super) fn run_holding(&self, args: Args<'_>, held: &File) -> Result<Vec<u8>, Refusal> {
        let stdin = held.try_clone().map_err(|error| self.unrunnable(&error))?;
        let said = self.collect(&Words::Args(args), stdin.into(), None)?;
        if said.ok { Ok(said.out) } else { Err(self.failed(&verb(args), &said.err)) }
    }

    /// Runs git, which has to succeed and print one line: a name, a hash, a path.
    pub(super) fn line(&self, args: Args<'_>) -> Result<String, Refusal> {
        let text = String::from_utf8(self.run(args)?).map_err(|_| {
            Refusal::new(ErrorCode::NameNotUtf8, "git named something that is not UTF-8")
                .with_hint("rename it in the repository")
        })?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Runs several gits as one shell script, which has to succeed. Only for a view: starting a sandbox costs more than
    /// starting git.
    pub(super) fn script(&self, script: &str) -> Result<Vec<u8>, Refusal> {
        let said = self.collect(&Words::Script(script), nothing().map_err(|error| self.unrunnable(&error))?, None)?;
        if said.ok { Ok(said.out) } else { Err(self.failed("script", &said.err)) }
    }

    /// Runs git with its output going to a file, up to `most` bytes. Says whether that was enough, and the memory.
    pub(super) fn run_into(&self, args: Args<'_>, file: &mut File, most: u64) -> Result<bool, Refusal> {
        self.write_into(&Words::Args(args), file, most)
    }

    /// The same for a script.
    pub(super) fn script_into(&self, script: &str, file: &mut File, most: u64) -> Result<bool, Refusal> {
        self.write_into(&Words::Script(script), file, most)
    }

    fn write_into(&self, words: &Words<'_>, file: &mut File, most: u64) -> Result<bool, Refusal> {
        let unrunnable = |error: io::Error| self.unrunnable(&error);
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unrunnable(error.into()))?;
        let until = Instant::now() + self.patience;
        let running = self.spawn(words, nothing().map_err(unrunnable)?, writes)?;
        let copied = copy_until(File::from(reads), file, most, until);
        if !copied.as_ref().is_ok_and(|bytes| *bytes <= most) {
            running.kill();
        }
        let (ok, err) = running.finish(self, &words.verb(), until)?;
        match copied.map_err(|error| self.unwritten(&error))? {
            bytes if bytes > most => Ok(false),
            _ if ok => Ok(true),
            _ if is_out_of_memory(&err) => Ok(false),
            _ => Err(self.failed(&words.verb(), &err)),
        }
    }

    /// Starts a git that answers one request after the other, until its requests end.
    pub(super) fn converse(&self, args: Args<'_>) -> Result<(Running, File, TimedRead, Instant), Refusal> {
        let unrunnable = |error: rustix::io::Errno| self.unrunnable(&error.into());
        let (stdin, requests) = pipe_with(PipeFlags::CLOEXEC).map_err(unrunnable)?;
        let (answers, stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(unrunnable)?;
        let until = Instant::now() + self.patience;
        let running = self.spawn(&Words::Args(args), stdin, stdout)?;
        Ok((running, File::from(requests), TimedRead { from: File::from(answers), until }, until))
    }

    /// Runs two gits, the output of this one being the input of the other. Both have to succeed; the output is the
    /// other's.
    pub(super) fn pipe(&self, script: &str, input: &[u8], into: &Git, args: Args<'_>) -> Result<Vec<u8>, Refusal> {
        let unrunnable = |error: io::Error| self.unrunnable(&error);
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unrunnable(error.into()))?;
        let (stdin, feeder) = feed(input).map_err(unrunnable)?;
        let until = Instant::now() + self.patience;
        let source = self.spawn(&Words::Script(script), stdin, writes)?;
        let received = into.collect(&Words::Args(args), reads, Some(until));
        // A receiver that fails closes the pipe, which ends the sender.
        let (sent, sent_err) = source.finish(self, "pack-objects", until)?;
        drop(feeder.map(JoinHandle::join));
        let received = received?;
        if !sent && !sent_err.contains("Broken pipe") && !sent_err.trim().is_empty() {
            return Err(self.failed("pack-objects", &sent_err));
        }
        if !received.ok {
            return Err(into.failed(&verb(args), &received.err));
        }
        if !sent {
            return Err(self.failed("pack-objects", "it ended before everything was sent"));
        }
        Ok(received.out)
    }

    fn ask_with(&self, args: Args<'_>, input: &[u8]) -> Result<Said, Refusal> {
        let (stdin, feeder) = feed(input).map_err(|error| self.unrunnable(&error))?;
        let said = self.collect(&Words::Args(args), stdin, None);
        // A git that stops reading has failed, and says so by itself.
        drop(feeder.map(JoinHandle::join));
        said
    }

    fn collect(&self, words: &Words<'_>, stdin: OwnedFd, until: Option<Instant>) -> Result<Said, Refusal> {
        let unrunnable = |error: io::Error| self.unrunnable(&error);
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unrunnable(error.into()))?;
        let until = until.unwrap_or_else(|| Instant::now() + self.patience);
        let running = self.spawn(words, stdin, writes)?;
        let out = bounded(File::from(reads), until).map_err(unrunnable)?;
        if out.is_none() {
            running.kill();
        }
        let (ok, err) = running.finish(self, &words.verb(), until)?;
        let out = out.ok_or_else(|| {
            Refusal::new(
                ErrorCode::TooBig,
                format!("git {} printed more than {} bytes", words.verb(), limits::GIT_OUTPUT_BYTES),
            )
        })?;
        Ok(Said { ok, out, err })
    }

    fn spawn(&self, words: &Words<'_>, stdin: OwnedFd, stdout: OwnedFd) -> Result<Running, Refusal> {
        match &self.runner {
            Runner::Direct => self.spawn_here(words, stdin, stdout).map_err(|error| self.unrunnable(&error)),
            Runner::Sandboxed { processes, read, write } => {
                let (errors, stderr) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| self.unrunnable(&error.into()))?;
                let streams = [stdin, stdout, stderr];
                let launch = Launch {
                    environment: self.environment()?,
                    extra_read: read.clone(),
                    extra_write: write.clone(),
                    streams: Some(Arc::new(streams)),
                    cwd: self.work_tree.clone().unwrap_or_else(|| self.git_dir.clone()),
                    ..Launch::new(self.bounded(&words.script(&self.program)), &self.git_dir, "git")
                };
                let process = processes.start_blocking(launch)?;
                let watched = process.clone();
                let stall = Stall::watch(process.supervisor(), limits::GIT_STALL, move || watched.end(true)).0;
                let errors = drain(File::from(errors), self.progress.clone());
                Ok(Running { kind: Kind::Sandboxed(process, stall), errors })
            }
        }
    }

    fn spawn_here(&self, words: &Words<'_>, stdin: OwnedFd, stdout: OwnedFd) -> io::Result<Running> {
        // Only a shell can bound a process before it runs.
        let mut command = Command::new("/bin/sh");
        command.arg("-c");
        match words {
            // Arguments need not be UTF-8.
            Words::Args(args) => {
                command.arg(self.bounded("exec \"$0\" \"$@\"")).arg(&self.program);
                command.args(args.iter().map(|arg| arg.as_ref()));
            }
            Words::Script(_) => drop(command.arg(self.bounded(&words.script(&self.program)))),
        }
        let here = self.work_tree.as_deref().unwrap_or(Path::new("/"));
        command.env_clear().current_dir(here).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        // A ^C at the daemon's terminal is not meant for a git that is half done.
        command.process_group(0);
        command.envs(self.environment().map_err(|refusal| io::Error::other(refusal.message))?);
        let mut child = command.spawn()?;
        let errors = drain(child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?, self.progress.clone());
        Ok(Running { kind: Kind::Direct(child), errors })
    }

    /// A script for a shell, with the bound on memory.
    fn bounded(&self, script: &str) -> String {
        let bound = self.memory_bytes.map(|bytes| format!("ulimit -d {} || exit\n", bytes >> 10));
        format!("{}{script}", bound.unwrap_or_default())
    }

    fn environment(&self) -> Result<Vec<(String, String)>, Refusal> {
        let mut variables: Vec<(String, String)> =
            VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let paths = [
            ("GIT_DIR", Some(&self.git_dir)),
            ("GIT_WORK_TREE", self.work_tree.as_ref()),
            ("GIT_INDEX_FILE", self.index.as_ref()),
        ];
        for (name, path) in paths {
            if let Some(path) = path {
                variables.push((name.to_owned(), text(path)?.to_owned()));
            }
        }
        variables.push(("PATH".to_owned(), programs::safe_path_text()));
        for (number, (key, value)) in SETTINGS.iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{number}"), (*key).to_owned()));
            variables.push((format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned()));
        }
        variables.push(("GIT_CONFIG_COUNT".to_owned(), SETTINGS.len().to_string()));
        Ok(variables)
    }

    /// A refusal in git's own words, with what to do about the known causes.
    pub(super) fn failed(&self, verb: &str, err: &str) -> Refusal {
        let words = err.trim();
        let place = self.work_tree.as_ref().unwrap_or(&self.git_dir).display();
        let (code, hint) = if words.contains(".lock': File exists") {
            let hint = "another git is at work there; try again when it is done, or delete its lock if there is none";
            (ErrorCode::GitBusy, hint.into())
        } else if words.contains("Permission denied") {
            (ErrorCode::Unreadable, "give the daemon's user access to what git names, then try again".into())
        } else if is_out_of_memory(words) {
            (ErrorCode::GitMemory, ErrorCode::GitMemory.row().hint.into())
        } else if words.contains("No space left on device") || words.contains("maximum allowed size") {
            let home = self.git_dir.display();
            (
                ErrorCode::DiskFull,
                format!("make room on the disks of {place} and {home}, then try again; nothing was removed"),
            )
        } else {
            (ErrorCode::GitFailed, format!("repair what git names, in {place}, then try again"))
        };
        Refusal::new(code, format!("git {verb} for {place} failed: {words}")).with_hint(hint)
    }

    /// The refusal of an answer that broke off.
    pub(super) fn unreadable(&self, error: &io::Error) -> Refusal {
        if error.kind() == io::ErrorKind::TimedOut {
            return self.stuck("cat-file");
        }
        self.failed("cat-file", &format!("its answer broke off: {error}"))
    }

    /// The refusal where git's output could not be written.
    fn unwritten(&self, error: &io::Error) -> Refusal {
        let message = format!("the output of git on {} could not be written: {error}", self.git_dir.display());
        let usual = "make room in the home, and see that it can be written; nothing was removed";
        Refusal::new(ErrorCode::Io, message).with_hint(transient::hint(error, usual))
    }

    fn stuck(&self, verb: &str) -> Refusal {
        let folder = self.work_tree.as_ref().unwrap_or(&self.git_dir).display();
        let message = format!("git {verb} on {folder} waited for something that did not come, and was ended");
        Refusal::new(ErrorCode::GitStuck, message).fill("path", folder)
    }

    fn unrunnable(&self, error: &io::Error) -> Refusal {
        let message = format!("git could not be run on {}: {error}", self.git_dir.display());
        let usual = "see that the folder is there and that git can be executed";
        Refusal::new(ErrorCode::GitFailed, message).with_hint(transient::hint(error, usual))
    }
}

fn is_out_of_memory(words: &str) -> bool {
    words.contains("out of memory") || words.contains("Cannot allocate memory")
}

/// What is run: one git, or a script of several.
enum Words<'a> {
    Args(Args<'a>),
    Script(&'a str),
}

impl Words<'_> {
    fn verb(&self) -> String {
        match self {
            Words::Args(args) => verb(args),
            Words::Script(_) => "script".to_owned(),
        }
    }

    /// For a shell. Inside of a script `git` is the program that was found.
    fn script(&self, program: &Path) -> String {
        let program = quoted(program.as_os_str());
        match self {
            Words::Args(args) => {
                let args: Vec<String> = args.iter().map(|arg| quoted(arg.as_ref())).collect();
                format!("exec {program} {}", args.join(" "))
            }
            Words::Script(script) => format!("git() {{ {program} \"$@\"; }}\nset -e\n{script}"),
        }
    }
}

/// A git that runs.
pub(super) struct Running {
    kind: Kind,
    errors: JoinHandle<String>,
}

enum Kind {
    Direct(Child),
    Sandboxed(Process, Stall),
}

impl Running {
    pub(super) fn kill(&self) {
        match &self.kind {
            Kind::Direct(child) => kill_group(child),
            Kind::Sandboxed(process, _) => process.end(true),
        }
    }

    /// Whether it succeeded, and its complaints. One that takes too long is ended.
    pub(super) fn finish(self, git: &Git, verb: &str, until: Instant) -> Result<(bool, String), Refusal> {
        let ended = match self.kind {
            Kind::Direct(mut child) => {
                let ended = ends(&child, until).and_then(|in_time| {
                    if !in_time {
                        kill_group(&child);
                    }
                    Ok((child.wait()?, in_time))
                });
                let (status, in_time) = ended.map_err(|error| git.unrunnable(&error))?;
                in_time.then_some(ExitStatus::success(&status))
            }
            Kind::Sandboxed(process, stall) => {
                let ended = process.wait_until(until);
                if ended.is_none() {
                    process.end(true);
                }
                ended.filter(|_| !stall.was_seen()).map(|ended| ended.exit_code == Some(0))
            }
        };
        let errors = self.errors.join().unwrap_or_default();
        ended.map(|ok| (ok, errors)).ok_or_else(|| git.stuck(verb))
    }
}

/// A setting of the user's own configuration, which only the user writes. With `--type=path` a `~` is expanded.
pub(super) fn user_setting(key: &str, form: &[&str]) -> Option<String> {
    settings_of_user(key, form)?.pop()
}

/// All values of such a setting.
pub(super) fn user_settings(key: &str) -> Vec<String> {
    settings_of_user(key, &[]).unwrap_or_default()
}

fn settings_of_user(key: &str, form: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new(programs::find("git").ok()?);
    command.env_clear().current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    for name in ["HOME", "XDG_CONFIG_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let output = command.args(["config", "--global", "-z"]).args(form).args(["--get-all", key]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split('\0').filter(|value| !value.is_empty()).map(str::to_owned).collect())
}

fn verb(args: Args<'_>) -> String {
    args.iter().take(2).map(|arg| arg.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ")
}

pub(super) fn text(path: &Path) -> Result<&str, Refusal> {
    path.to_str().ok_or_else(|| {
        let message = format!("{} is not UTF-8", path.display());
        Refusal::new(ErrorCode::NameNotUtf8, message)
    })
}

/// One word for a shell, whatever is in it.
fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

/// A standard input with these bytes, and the thread that writes them: git may want to be read before it reads on.
fn feed(input: &[u8]) -> io::Result<(OwnedFd, Option<JoinHandle<()>>)> {
    if input.is_empty() {
        return Ok((nothing()?, None));
    }
    let (reads, writes) = pipe_with(PipeFlags::CLOEXEC)?;
    let bytes = input.to_vec();
    let thread = thread::Builder::new().name("git input".to_owned()).spawn(move || {
        let _reader_gone = File::from(writes).write_all(&bytes);
    })?;
    Ok((reads, Some(thread)))
}

/// The whole output, or none when that is more than is held or takes too long.
fn bounded(mut from: File, until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    let mut buffer = vec![0; limits::TAKEN_BYTES];
    while out.len() as u64 <= limits::GIT_OUTPUT_BYTES {
        if !comes(&from, until)? {
            return Ok(Some(out));
        }
        match from.read(&mut buffer)? {
            0 => return Ok(Some(out)),
            count => out.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(None)
}

/// Ends a child that was not waited for yet, so that its number is still its own, and the gits that its script started.
fn kill_group(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// Copies to the end, or until there is more than `most` or it takes too long. Says how many bytes came.
fn copy_until(mut from: File, into: &mut File, most: u64, until: Instant) -> io::Result<u64> {
    let mut buffer = vec![0; limits::TAKEN_BYTES];
    let mut copied = 0;
    while copied <= most && comes(&from, until)? {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        into.write_all(&buffer[..count])?;
        copied += count as u64;
    }
    Ok(copied)
}

/// Reads what comes until a time.
pub(super) struct TimedRead {
    from: File,
    until: Instant,
}

impl Read for TimedRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if comes(&self.from, self.until)? { self.from.read(buffer) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
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

/// Reads to the end, so that the child never blocks on a full pipe, and keeps the beginning of what is not progress.
/// git ends a line of progress with a carriage return, which is followed by the next.
fn drain(mut from: impl Read + Send + 'static, progress: Option<Progress>) -> JoinHandle<String> {
    const MOST: usize = limits::GIT_WORDS_BYTES as usize;
    thread::spawn(move || {
        let mut kept = String::new();
        let mut line = Vec::new();
        let mut keep = |line: &mut Vec<u8>| {
            let text = String::from_utf8_lossy(line);
            let is_progress = progress.as_ref().is_some_and(|progress| progress.read(&text));
            if !is_progress && kept.len() + text.len() <= MOST {
                kept.push_str(&text);
            }
            line.clear();
        };
        let mut buffer = [0; MOST];
        // An error here shortens a message, nothing else.
        while let Ok(count) = from.read(&mut buffer)
            && count > 0
        {
            for byte in &buffer[..count] {
                line.push(*byte);
                if matches!(byte, b'\r' | b'\n') || line.len() == MOST {
                    keep(&mut line);
                }
            }
        }
        keep(&mut line);
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here and not at the front door, because nobody would wait that long.
    #[test]
    fn a_git_that_waits_for_ever_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::trusted(folder.path()).unwrap();
        git.run(&[&"init", &"-q", &"--bare"]).unwrap();
        let config = folder.path().join("config");
        std::fs::remove_file(&config).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &config, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        // It never ends by itself, so that any patience comes to an end before it does.
        let git = Git { patience: Duration::from_millis(1), ..git };
        assert_eq!(git.run_with(&[&"status"], &[0; 1 << 20]).unwrap_err().code, ErrorCode::GitStuck);
        let mut file = File::create(folder.path().join("into")).unwrap();
        assert_eq!(git.run_into(&[&"status"], &mut file, 1).unwrap_err().code, ErrorCode::GitStuck);
    }
}
