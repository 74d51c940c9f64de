//! Runs git. No other module of the runtime starts it, and there are two ways.
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

mod pipes;
mod running;
mod user_settings;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use abide_kernel::refusal::{ErrorCode, Refusal};
use rustix::pipe::{PipeFlags, pipe_with};

pub(super) use self::pipes::TimedRead;
use self::pipes::{collect_messages, copy_until, feed_stdin, open_null, read_bounded};
pub(super) use self::running::GitProcess;
use self::running::ProcessKind;
pub(super) use self::user_settings::{user_setting, user_settings};
use super::stall::StallWatch;
use super::transfers::Progress;
use super::view::View;
use crate::limits;
use crate::process::{Launch, Processes, Spare, half_of_memory};
use crate::programs;
use crate::transient;

/// Settings that override every configuration of git.
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
    /// Receives the progress that git prints, which is no error message.
    progress: Option<Progress>,
}

#[derive(Debug, Clone)]
enum Runner {
    Direct,
    Sandboxed { processes: Processes, read: Vec<PathBuf>, write: Vec<PathBuf> },
}

/// The output of one run.
#[derive(Debug)]
pub(super) struct GitOutput {
    pub(super) succeeded: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
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
        let program = programs::find_program("git").map_err(|why| Refusal::new(ErrorCode::NoGitProgram, why))?;
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

    /// The room that may still be written to the disk of a folder, above the operator's reserve.
    pub(super) fn measure_spare(&self, folder: &Path) -> Spare {
        match &self.runner {
            Runner::Direct => Spare::measure(folder, None),
            Runner::Sandboxed { processes, .. } => processes.spare(folder),
        }
    }

    /// The same git, with its progress reported to this receiver.
    pub(super) fn reporting_to(&self, progress: Option<&Progress>) -> Git {
        Git { progress: progress.cloned(), ..self.clone() }
    }

    /// Runs git and returns its output, whether it succeeded or not.
    pub(super) fn run_unchecked(&self, args: Args<'_>) -> Result<GitOutput, Refusal> {
        self.run_unchecked_with(args, &[])
    }

    /// Runs git, which has to succeed.
    pub(super) fn run(&self, args: Args<'_>) -> Result<Vec<u8>, Refusal> {
        self.run_with(args, &[])
    }

    pub(super) fn run_with(&self, args: Args<'_>, input: &[u8]) -> Result<Vec<u8>, Refusal> {
        let output = self.run_unchecked_with(args, input)?;
        if output.succeeded { Ok(output.stdout) } else { Err(self.failure(&subcommand(args), &output.stderr)) }
    }

    /// Runs git with a file as its standard input. git holds the file's lock as long as it runs, also after us.
    pub(super) fn run_with_lock(&self, args: Args<'_>, held: &File) -> Result<Vec<u8>, Refusal> {
        let stdin = held.try_clone().map_err(|error| self.run_refusal(&error))?;
        let output = self.collect_output(&GitCommand::Args(args), stdin.into(), None)?;
        if output.succeeded { Ok(output.stdout) } else { Err(self.failure(&subcommand(args), &output.stderr)) }
    }

    /// Runs git, which has to succeed and print one line: a name, a hash, a path.
    pub(super) fn run_for_line(&self, args: Args<'_>) -> Result<String, Refusal> {
        let text = String::from_utf8(self.run(args)?).map_err(|_| {
            Refusal::new(ErrorCode::NameNotUtf8, "git named something that is not UTF-8")
                .with_hint("rename it in the repository")
        })?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Runs several gits as one shell script, which has to succeed. Only for a view: starting a sandbox costs more than
    /// starting git.
    pub(super) fn run_script(&self, script: &str) -> Result<Vec<u8>, Refusal> {
        let output = self.collect_output(
            &GitCommand::Script(script),
            open_null().map_err(|error| self.run_refusal(&error))?,
            None,
        )?;
        if output.succeeded { Ok(output.stdout) } else { Err(self.failure("script", &output.stderr)) }
    }

    /// Runs git with its output going to a file, up to `most` bytes. Says whether that was enough, and the memory.
    pub(super) fn run_into(&self, args: Args<'_>, file: &mut File, most: u64) -> Result<bool, Refusal> {
        self.write_into(&GitCommand::Args(args), file, most)
    }

    /// The same for a script.
    pub(super) fn run_script_into(&self, script: &str, file: &mut File, most: u64) -> Result<bool, Refusal> {
        self.write_into(&GitCommand::Script(script), file, most)
    }

    fn write_into(&self, words: &GitCommand<'_>, file: &mut File, most: u64) -> Result<bool, Refusal> {
        let unrunnable = |error: io::Error| self.run_refusal(&error);
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unrunnable(error.into()))?;
        let until = Instant::now() + self.patience;
        let running = self.spawn(words, open_null().map_err(unrunnable)?, writes)?;
        let copied = copy_until(File::from(reads), file, most, until);
        if !copied.as_ref().is_ok_and(|bytes| *bytes <= most) {
            running.kill();
        }
        let (succeeded, err) = running.finish(self, &words.subcommand(), until)?;
        match copied.map_err(|error| self.write_refusal(&error))? {
            bytes if bytes > most => Ok(false),
            _ if succeeded => Ok(true),
            _ if is_out_of_memory(&err) => Ok(false),
            _ => Err(self.failure(&words.subcommand(), &err)),
        }
    }

    /// Starts a git that answers one request after the other, until its requests end.
    pub(super) fn start_conversation(&self, args: Args<'_>) -> Result<(GitProcess, File, TimedRead, Instant), Refusal> {
        let unrunnable = |error: rustix::io::Errno| self.run_refusal(&error.into());
        let (stdin, requests) = pipe_with(PipeFlags::CLOEXEC).map_err(unrunnable)?;
        let (answers, stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(unrunnable)?;
        let until = Instant::now() + self.patience;
        let running = self.spawn(&GitCommand::Args(args), stdin, stdout)?;
        Ok((running, File::from(requests), TimedRead { from: File::from(answers), until }, until))
    }

    /// Runs two gits, the output of this one being the input of the other. Both have to succeed; the output is the
    /// other's.
    pub(super) fn pipe_script_into(
        &self,
        script: &str,
        input: &[u8],
        into: &Git,
        args: Args<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let unrunnable = |error: io::Error| self.run_refusal(&error);
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unrunnable(error.into()))?;
        let (stdin, feeder) = feed_stdin(input).map_err(unrunnable)?;
        let until = Instant::now() + self.patience;
        let source = self.spawn(&GitCommand::Script(script), stdin, writes)?;
        let received = into.collect_output(&GitCommand::Args(args), reads, Some(until));
        // A receiver that fails closes the pipe, which ends the sender.
        let (sent, sent_err) = source.finish(self, "pack-objects", until)?;
        drop(feeder.map(JoinHandle::join));
        let received = received?;
        if !sent && !sent_err.contains("Broken pipe") && !sent_err.trim().is_empty() {
            return Err(self.failure("pack-objects", &sent_err));
        }
        if !received.succeeded {
            return Err(into.failure(&subcommand(args), &received.stderr));
        }
        if !sent {
            return Err(self.failure("pack-objects", "it ended before everything was sent"));
        }
        Ok(received.stdout)
    }

    fn run_unchecked_with(&self, args: Args<'_>, input: &[u8]) -> Result<GitOutput, Refusal> {
        let (stdin, feeder) = feed_stdin(input).map_err(|error| self.run_refusal(&error))?;
        let output = self.collect_output(&GitCommand::Args(args), stdin, None);
        // A git that stops reading has failed, and says so by itself.
        drop(feeder.map(JoinHandle::join));
        output
    }

    fn collect_output(
        &self,
        words: &GitCommand<'_>,
        stdin: OwnedFd,
        until: Option<Instant>,
    ) -> Result<GitOutput, Refusal> {
        let unrunnable = |error: io::Error| self.run_refusal(&error);
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unrunnable(error.into()))?;
        let until = until.unwrap_or_else(|| Instant::now() + self.patience);
        let running = self.spawn(words, stdin, writes)?;
        let stdout = read_bounded(File::from(reads), until).map_err(unrunnable)?;
        if stdout.is_none() {
            running.kill();
        }
        let (succeeded, err) = running.finish(self, &words.subcommand(), until)?;
        let stdout = stdout.ok_or_else(|| {
            Refusal::new(
                ErrorCode::TooBig,
                format!("git {} printed more than {} bytes", words.subcommand(), limits::GIT_OUTPUT_BYTES),
            )
        })?;
        Ok(GitOutput { succeeded, stdout, stderr: err })
    }

    fn spawn(&self, words: &GitCommand<'_>, stdin: OwnedFd, stdout: OwnedFd) -> Result<GitProcess, Refusal> {
        match &self.runner {
            Runner::Direct => self.spawn_directly(words, stdin, stdout).map_err(|error| self.run_refusal(&error)),
            Runner::Sandboxed { processes, read, write } => {
                let (errors, stderr) =
                    pipe_with(PipeFlags::CLOEXEC).map_err(|error| self.run_refusal(&error.into()))?;
                let streams = [stdin, stdout, stderr];
                let launch = Launch {
                    environment: self.environment()?,
                    extra_read: read.clone(),
                    extra_write: write.clone(),
                    streams: Some(Arc::new(streams)),
                    cwd: self.work_tree.clone().unwrap_or_else(|| self.git_dir.clone()),
                    ..Launch::new(self.with_memory_bound(&words.shell_script(&self.program)), &self.git_dir, "git")
                };
                let process = processes.start_blocking(launch)?;
                let watched = process.clone();
                let stall = StallWatch::start(process.supervisor(), limits::GIT_STALL, move || watched.stop(true)).0;
                let errors = collect_messages(File::from(errors), self.progress.clone());
                Ok(GitProcess { kind: ProcessKind::Sandboxed(process, stall), errors })
            }
        }
    }

    fn spawn_directly(&self, words: &GitCommand<'_>, stdin: OwnedFd, stdout: OwnedFd) -> io::Result<GitProcess> {
        // Only a shell can bound a process before it runs.
        let mut command = Command::new("/bin/sh");
        command.arg("-c");
        match words {
            // Arguments need not be UTF-8.
            GitCommand::Args(args) => {
                command.arg(self.with_memory_bound("exec \"$0\" \"$@\"")).arg(&self.program);
                command.args(args.iter().map(|arg| arg.as_ref()));
            }
            GitCommand::Script(_) => drop(command.arg(self.with_memory_bound(&words.shell_script(&self.program)))),
        }
        let here = self.work_tree.as_deref().unwrap_or(Path::new("/"));
        command.env_clear().current_dir(here).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        // A ^C at the daemon's terminal is not meant for a git that is half done.
        command.process_group(0);
        command.envs(self.environment().map_err(|refusal| io::Error::other(refusal.message))?);
        let mut child = command.spawn()?;
        let errors = collect_messages(child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?, self.progress.clone());
        Ok(GitProcess { kind: ProcessKind::Direct(child), errors })
    }

    /// A script for a shell, with the bound on memory.
    fn with_memory_bound(&self, script: &str) -> String {
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
                variables.push((name.to_owned(), utf8_path(path)?.to_owned()));
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

    /// A refusal with git's own message, and a hint for the known causes.
    pub(super) fn failure(&self, verb: &str, err: &str) -> Refusal {
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

    /// The refusal of a truncated answer.
    pub(super) fn read_refusal(&self, error: &io::Error) -> Refusal {
        if error.kind() == io::ErrorKind::TimedOut {
            return self.stuck_refusal("cat-file");
        }
        self.failure("cat-file", &format!("its answer broke off: {error}"))
    }

    /// The refusal where git's output could not be written.
    fn write_refusal(&self, error: &io::Error) -> Refusal {
        let message = format!("the output of git on {} could not be written: {error}", self.git_dir.display());
        let usual = "make room in the home, and see that it can be written; nothing was removed";
        Refusal::new(ErrorCode::Io, message).with_hint(transient::hint(error, usual))
    }

    fn stuck_refusal(&self, verb: &str) -> Refusal {
        let folder = self.work_tree.as_ref().unwrap_or(&self.git_dir).display();
        let message = format!("git {verb} on {folder} waited for something that did not come, and was ended");
        Refusal::new(ErrorCode::GitStuck, message).fill("path", folder)
    }

    fn run_refusal(&self, error: &io::Error) -> Refusal {
        let message = format!("git could not be run on {}: {error}", self.git_dir.display());
        let usual = "see that the folder is there and that git can be executed";
        Refusal::new(ErrorCode::GitFailed, message).with_hint(transient::hint(error, usual))
    }
}

fn is_out_of_memory(words: &str) -> bool {
    words.contains("out of memory") || words.contains("Cannot allocate memory")
}

/// The command to run: one git, or a script of several.
enum GitCommand<'a> {
    Args(Args<'a>),
    Script(&'a str),
}

impl GitCommand<'_> {
    fn subcommand(&self) -> String {
        match self {
            GitCommand::Args(args) => subcommand(args),
            GitCommand::Script(_) => "script".to_owned(),
        }
    }

    /// For a shell. Inside of a script `git` is the program that was found.
    fn shell_script(&self, program: &Path) -> String {
        let program = quote_word(program.as_os_str());
        match self {
            GitCommand::Args(args) => {
                let args: Vec<String> = args.iter().map(|arg| quote_word(arg.as_ref())).collect();
                format!("exec {program} {}", args.join(" "))
            }
            GitCommand::Script(script) => format!("git() {{ {program} \"$@\"; }}\nset -e\n{script}"),
        }
    }
}

fn subcommand(args: Args<'_>) -> String {
    args.iter().take(2).map(|arg| arg.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ")
}

pub(super) fn utf8_path(path: &Path) -> Result<&str, Refusal> {
    path.to_str().ok_or_else(|| {
        let message = format!("{} is not UTF-8", path.display());
        Refusal::new(ErrorCode::NameNotUtf8, message)
    })
}

/// One word for a shell, whatever is in it.
fn quote_word(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
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
