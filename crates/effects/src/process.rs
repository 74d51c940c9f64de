//! Runs commands: starts them under a supervisor, confines and owns them, and ends them. The holder of a [`Process`]
//! can wait for it, read its output and stop it; when the last handle is dropped, it is stopped. No command outlives
//! its owner: the commands of a killed owner are found by their marker. This module does not decide what to run.

mod begin;
mod bounds;
mod disk;
mod git_dir_records;
#[expect(clippy::disallowed_methods, reason = "control groups are files of the kernel's")]
mod group;
mod home_modes;
mod marker;
mod memory;
mod mounts;
mod orders;
mod output;
mod output_files;
mod owner;
pub(crate) mod process_list;
mod spawner;
mod ssh;
mod standard_streams;
mod supervise;
mod sweep;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use rustix::io::Errno;
use tokio::sync::{oneshot, watch};

use self::disk::Disks;
use self::group::Groups;
use self::marker::Marker;
use self::orders::StopRequest;
use self::output::BoundedOutput;
use self::process_list::ProcessIdentity;
use self::spawner::Spawner;
use crate::limits;
use crate::sandbox::Sandbox;
use crate::secrets::{Mask, MaskedStream, SecretValue};
use abide_kernel::refusal::{ErrorCode, Refusal};

pub use self::bounds::{Bounds, half_of_memory};
pub use self::disk::{Shortage, Spare};
pub(crate) use self::git_dir_records::restore_unsettled;
pub use self::git_dir_records::unsettled_git_dirs;
pub use self::mounts::Protection;
pub use self::output::{Chunk, Output, OutputExcerpt};
pub use self::output_files::read_output_files;
pub use self::supervise::{is_supervisor, supervise};
pub use self::sweep::SweptCommand;

#[derive(Debug)]
pub struct Options {
    /// A binary that calls [`supervise`] when [`is_supervisor`] says so: ourselves.
    pub program: PathBuf,
    /// The runtime's home. It names the marker, and holds the scratch folders of commands.
    pub home: PathBuf,
    pub sandbox: Sandbox,
    /// Let the kernel count the processes of a command where it can. Otherwise, and without this, its supervisor does.
    pub control_groups: bool,
    pub bounds: Bounds,
}

/// A command to run, and how to run it.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The agent whose commands share a bound on memory.
    pub agent: String,
    /// For the shell: bash where there is one.
    pub command: String,
    /// The workspace: it may be changed. By its real path: one that leads through a symbolic link is refused.
    pub root: PathBuf,
    pub cwd: PathBuf,
    pub network: bool,
    /// On a terminal of its own, with one stream of output.
    pub tty: bool,
    pub accepts_input: bool,
    /// The task's or call's id. Goes into the marker.
    pub label: String,
    /// Where its output is kept in files, from the start. Can be said later: [`Process::keep_output_in`].
    pub output: Option<PathBuf>,
    /// More processes than this are refused to it, or end it; which one, its evidence says.
    pub processes_max: u32,
    /// Readable besides the system and the workspace.
    pub extra_read: Vec<PathBuf>,
    /// Writable besides the workspace: the git folder of a worktree, say.
    pub extra_write: Vec<PathBuf>,
    /// Parts of the writable folders that the command may not change. For bubblewrap only: Landlock can't forbid below a
    /// folder that it allows.
    pub protection: Protection,
    /// Variables besides those that every command gets.
    pub environment: Vec<(String, String)>,
    /// The same, where the values are secrets.
    pub secrets: Vec<(String, SecretValue)>,
    /// The values that are masked in everything that the command writes.
    pub mask: Mask,
    /// Keys that its ssh may sign with. For bubblewrap only: Landlock would have to open every socket with a path.
    pub ssh_agent: Option<SshAgent>,
    /// Files of the command's private home, by name, with their content. Without a sandbox there is no private home,
    /// and none is written.
    pub home_files: Vec<(String, String)>,
    /// Standard input, output and error, where the caller provides them; nothing is captured then.
    pub streams: Option<Arc<[OwnedFd; 3]>>,
}

impl Launch {
    /// A command in a folder, without network, input or a terminal.
    #[must_use]
    pub fn new(command: impl Into<String>, root: &Path, label: impl Into<String>) -> Launch {
        let label = label.into();
        Launch {
            agent: label.clone(),
            command: command.into(),
            root: root.to_path_buf(),
            cwd: root.to_path_buf(),
            network: false,
            tty: false,
            accepts_input: false,
            label,
            output: None,
            processes_max: limits::PROCESSES_MAX,
            extra_read: Vec::new(),
            extra_write: Vec::new(),
            protection: Protection::default(),
            environment: Vec::new(),
            secrets: Vec::new(),
            mask: Mask::default(),
            ssh_agent: None,
            home_files: Vec::new(),
            streams: None,
        }
    }
}

/// An ssh agent that a command may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshAgent {
    /// Where it listens. Without one, ssh has no keys and says so.
    pub socket: Option<PathBuf>,
    /// The host keys that ssh accepts; nothing: those that the machine knows.
    pub known_hosts: Option<String>,
}

/// Why input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("the command was not started to take input")]
    NotAccepted,
    #[error("the command takes no more input")]
    Closed,
    #[error("the command does not read its input")]
    Full,
}

/// The end of a command: nothing of it runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// The actions that were taken on it and their failures: `term_sent`, `killed`, `process_limit 512`, `ended 2
    /// processes it left behind` and the like.
    pub evidence: Vec<String>,
    /// The command was stopped on request.
    pub stopped: bool,
}

/// All commands of one owner. Cheap to clone; when the last clone is gone, so are the commands.
#[derive(Debug, Clone)]
pub struct Processes(Arc<Owner>);

#[derive(Debug)]
struct Owner {
    program: File,
    home: PathBuf,
    sandbox: Sandbox,
    marker: Marker,
    spawner: Spawner,
    groups: Result<Groups, String>,
    bounds: Bounds,
    disks: Disks,
    shell: PathBuf,
    started: AtomicU64,
    running: Mutex<Vec<Weak<Shared>>>,
}

impl Owner {
    fn remember(&self, shared: &Arc<Shared>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|one| one.strong_count() > 0);
        running.push(Arc::downgrade(shared));
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        for shared in running.iter().filter_map(Weak::upgrade) {
            shared.request_stop(StopRequest::Kill);
        }
    }
}

impl Processes {
    pub fn new(options: Options) -> io::Result<Processes> {
        let home = options.home.canonicalize()?;
        let shells = ["/bin/bash", "/usr/bin/bash", "/bin/sh"].map(PathBuf::from);
        Ok(Processes(Arc::new(Owner {
            // Open, so that it is the same program even after an upgrade took its place.
            program: File::open(&options.program)?,
            marker: Marker::new(&home),
            home,
            sandbox: options.sandbox,
            spawner: Spawner::new()?,
            groups: match options.control_groups {
                true => Groups::take_over(),
                false => Err("control groups are not used, by setting".to_owned()),
            },
            bounds: options.bounds,
            disks: Disks::default(),
            shell: shells.into_iter().find(|shell| shell.exists()).unwrap_or_else(|| PathBuf::from("/bin/sh")),
            started: AtomicU64::new(0),
            running: Mutex::new(Vec::new()),
        })))
    }

    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// How the number of processes is bounded: by the kernel, or, for the reason given, by looking.
    pub fn process_counter(&self) -> Result<&'static str, &str> {
        self.0.groups.as_ref().map(|_| "control group").map_err(String::as_str)
    }

    /// How the memory of commands is bounded: by the kernel, or, for the reason given, by looking.
    pub fn memory_bounded_by(&self) -> Result<&'static str, &str> {
        memory_bounded_by(&self.0.groups)
    }

    /// The shortage because of which an agent starts no command: one of its commands was ended to keep room on a disk.
    #[must_use]
    pub fn shortage(&self, agent: &str) -> Option<Shortage> {
        self.0.disks.shortage(agent)
    }

    /// Every agent that waits for room on a disk.
    #[must_use]
    pub fn shortages(&self) -> HashMap<String, Shortage> {
        self.0.disks.shortages()
    }

    /// Every disk that is short although no command took a fair part of its room: no command is ended for it.
    #[must_use]
    pub fn unattributed_shortages(&self) -> Vec<Shortage> {
        self.0.disks.unattributed()
    }

    /// Notified when one of these changes.
    #[must_use]
    pub fn shortage_changes(&self) -> watch::Receiver<()> {
        self.0.disks.changes()
    }

    /// Waits until there is room on the disks of an agent whose command was ended for it.
    pub async fn wait_for_room(&self, agent: &str) {
        self.0.disks.wait_for_room(agent).await;
    }

    /// The room that may still be taken of the disk of a folder, above the reserve.
    #[must_use]
    pub fn spare(&self, folder: &Path) -> Spare {
        Spare::measure(folder, self.0.bounds.disk_reserve_bytes)
    }

    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// How processes are counted and memory is bounded on this machine, tried now.
    pub fn bounded_here() -> [Result<&'static str, String>; 2] {
        let groups = Groups::detect();
        let memory = memory_bounded_by(&groups).map_err(str::to_owned);
        [groups.map(|_| "control group"), memory]
    }

    /// Returns once the command runs. Dropping the future before that ends the command.
    pub async fn start(&self, launch: Launch) -> Result<Process, Refusal> {
        self.spawn_owner(launch)?.await.map_err(|error| no_thread(&error))?
    }

    /// The same for a thread that may block.
    pub fn start_blocking(&self, launch: Launch) -> Result<Process, Refusal> {
        self.spawn_owner(launch)?.blocking_recv().map_err(|error| no_thread(&error))?
    }

    fn spawn_owner(&self, launch: Launch) -> Result<oneshot::Receiver<Result<Process, Refusal>>, Refusal> {
        let (ready, is_ready) = oneshot::channel();
        let owner = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("command".to_owned());
        thread.spawn(move || owner::own_command(owner, launch, ready)).map_err(|error| no_thread(&error))?;
        Ok(is_ready)
    }

    /// Ends everything that an earlier life of this home left running, and reports it. Scratch folders are deleted too.
    /// Called at boot.
    #[must_use]
    pub fn sweep_earlier_lives(&self) -> Vec<SweptCommand> {
        owner::sweep_earlier_lives(&self.0)
    }
}

fn no_thread(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(ErrorCode::System, format!("no thread for the command: {error}"))
}

fn memory_bounded_by(groups: &Result<Groups, String>) -> Result<&'static str, &str> {
    match groups.as_ref().map(Groups::unbounded) {
        Ok(None) => Ok("control group"),
        Ok(Some(why)) => Err(why),
        Err(why) => Err(why),
    }
}

/// One command. Cheap to clone; the last clone ends it, if it still runs.
#[derive(Debug, Clone)]
pub struct Process(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

/// The state that the holder of a command and the thread that owns it share.
#[derive(Debug)]
struct Shared {
    control: UnixStream,
    input: Mutex<Option<OwnedFd>>,
    store: Mutex<OutputStore>,
    /// The urgency of the last stop request: none, gentle, forced.
    asked: AtomicU8,
    /// Signalled when it is asked to end, so that the owning thread can enforce the request.
    bell: OwnedFd,
    ended: watch::Sender<Option<ProcessExit>>,
    /// Notified after `ended` is set, for threads that wait.
    over: (Mutex<()>, Condvar),
    recovery: String,
    agent: String,
    /// Where it may write, by real paths.
    folders: Vec<PathBuf>,
    /// It can write nowhere else on a disk.
    confined: bool,
    /// A moment before it did, and how much of its disks was used then, by device.
    began: SystemTime,
    used_before: HashMap<disk::Disk, u64>,
    supervisor: ProcessIdentity,
    /// The reason, if it was ended to keep room on a disk.
    for_disk: Mutex<Option<String>>,
}

#[derive(Debug)]
struct OutputStore {
    combined: BoundedOutput,
    stdout: BoundedOutput,
    stderr: BoundedOutput,
    /// The masks through which the two streams are read.
    masked: [MaskedStream; 2],
    /// The time at which output that they hold back is shown.
    settle_at: Option<Instant>,
    files: Option<output_files::OutputFiles>,
    /// The reason why the output files are missing.
    problem: Option<String>,
}

impl Shared {
    /// A thread that panicked while it held the store left it consistent.
    fn store(&self) -> MutexGuard<'_, OutputStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn for_disk(&self) -> MutexGuard<'_, Option<String>> {
        self.for_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request_stop(&self, ask: StopRequest) {
        if self.ended.borrow().is_some() {
            return;
        }
        let urgency = ask.urgency();
        // Each request is sent once: a slow supervisor must not block a caller that repeats itself.
        if self.asked.fetch_max(urgency, Ordering::Relaxed) >= urgency {
            return;
        }
        let _rung = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        // Refused only by a supervisor that is gone, and with it everything there was to end.
        let _gone = orders::write_frame(&self.control, &ask);
    }
}

/// Tells whether a command still runs, without holding it.
#[derive(Debug, Clone)]
pub struct ProcessWatch(watch::Receiver<Option<ProcessExit>>);

impl ProcessWatch {
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until nothing of the command runs.
    pub async fn wait(&mut self) {
        // The sender is dropped only after everything of the command has ended.
        let _over = self.0.wait_for(Option::is_some).await.is_ok();
    }
}

impl Process {
    /// The process below which all of the command's are.
    pub(crate) fn supervisor(&self) -> i32 {
        self.0.0.supervisor.pid
    }

    /// Watches the command without holding it.
    #[must_use]
    pub fn watch(&self) -> ProcessWatch {
        ProcessWatch(self.0.0.ended.subscribe())
    }

    /// Waits until nothing of the command runs.
    pub async fn wait(&self) -> ProcessExit {
        let mut ended = self.0.0.ended.subscribe();
        loop {
            if let Some(ended) = ended.borrow_and_update().clone() {
                return ended;
            }
            // The sender is ours; it can't be gone.
            let _here = ended.changed().await;
        }
    }

    /// The same for a thread that may block: none if the deadline passed first.
    #[must_use]
    pub fn wait_until(&self, deadline: Instant) -> Option<ProcessExit> {
        let mut bell = self.0.0.over.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ended) = self.exit() {
                return Some(ended);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            bell = self.0.0.over.1.wait_timeout(bell, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn exit(&self) -> Option<ProcessExit> {
        self.0.0.ended.borrow().clone()
    }

    /// Asks every process of it to end, and kills them after a grace period, or at once if forced.
    pub fn stop(&self, force: bool) {
        self.0.0.request_stop(if force { StopRequest::Kill } else { StopRequest::End });
    }

    /// Writes to its standard input or terminal, and returns how much was taken: all of it, unless the command does not
    /// read.
    pub async fn write(&self, bytes: &[u8]) -> Result<usize, InputError> {
        let mut taken = 0;
        for _ in 0..limits::INPUT_WAIT_MS / INPUT_PAUSE_MS {
            if self.exit().is_some() {
                return Err(InputError::Closed);
            }
            match self.write_some(&bytes[taken..])? {
                Some(count) => taken += count,
                None => tokio::time::sleep(Duration::from_millis(INPUT_PAUSE_MS)).await,
            }
            if taken == bytes.len() {
                return Ok(taken);
            }
        }
        if taken > 0 { Ok(taken) } else { Err(InputError::Full) }
    }

    fn write_some(&self, bytes: &[u8]) -> Result<Option<usize>, InputError> {
        let input = self.0.0.input.lock().unwrap_or_else(PoisonError::into_inner);
        match rustix::io::write(input.as_ref().ok_or(InputError::NotAccepted)?, bytes) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(_) => Err(InputError::Closed),
        }
    }

    /// Closes the input: the command reads its end. A terminal has none; send it a `^D`.
    pub fn close_input(&self) {
        self.0.0.input.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Keeps the output in files of this folder from now on, including the output so far. Existing files are replaced.
    pub fn keep_output_in(&self, folder: &Path) -> io::Result<()> {
        let mut store = self.0.0.store();
        let mut files = output_files::OutputFiles::create(folder, &store.combined)?;
        if self.exit().is_some() {
            files.finish(&store.combined);
        }
        store.files = Some(files);
        Ok(())
    }

    #[must_use]
    pub fn output(&self) -> Output {
        let store = self.0.0.store();
        Output { combined: store.combined.excerpt(), stdout: store.stdout.excerpt(), stderr: store.stderr.excerpt() }
    }

    /// Reads both streams in the order of arrival, from an absolute offset.
    #[must_use]
    pub fn read(&self, offset: u64, max: usize) -> Chunk {
        self.0.0.store().combined.read(offset, max)
    }

    /// A sentence that says how to find the command again.
    #[must_use]
    pub fn recovery(&self) -> String {
        self.0.0.recovery.clone()
    }
}

const INPUT_PAUSE_MS: u64 = 10;

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.request_stop(StopRequest::End);
    }
}
