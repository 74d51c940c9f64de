//! Commands: started under a supervisor, confined, owned and ended. Whoever holds a [`Process`] can wait for it, read
//! it and end it; when nobody holds it any more, it is ended. Nothing that was started here outlives its owner, not
//! even one that was killed: what a killed owner left is found by its marker. Nothing here decides what to run.

mod begin;
mod bounds;
mod disk;
pub(crate) mod family;
#[expect(clippy::disallowed_methods, reason = "control groups are files of the kernel's")]
mod group;
mod heads;
mod home;
mod kept;
mod marker;
mod memory;
pub(crate) mod mounts;
mod orders;
mod output;
mod owner;
mod spawner;
mod ssh;
mod supervise;
mod sweep;
mod wires;

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
use self::family::Member;
use self::group::Groups;
use self::marker::Marker;
use self::orders::Ask;
pub(crate) use self::orders::Root;
use self::output::Bounded;
use self::spawner::Spawner;
use crate::limits;
use crate::sandbox::Sandbox;
use crate::secrets::{Mask, MaskedStream, SecretValue};
use abide_kernel::refusal::{ErrorCode, Refusal};

pub use self::bounds::{Bounds, half_of_memory};
pub use self::disk::{Shortage, Spare};
pub(crate) use self::heads::settle;
pub use self::heads::unsettled_git_dirs;
pub use self::kept::read_kept;
pub use self::mounts::Protection;
pub use self::output::{Chunk, Kept, Output};
pub use self::supervise::{is_supervisor, supervise};
pub use self::sweep::Swept;

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

/// What is to be run, and how.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Whose commands share a bound on memory.
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
    /// Where its output is kept in files, from the start. Can be said later: [`Process::keep`].
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
    /// What is cut out of everything that the command writes.
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

/// How a command came to its end. Nothing of it runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// What was done to it, and what could not be: `term_sent`, `killed`, `process_limit 512`, `ended 2 processes it
    /// left behind` and the like.
    pub evidence: Vec<String>,
    /// It was our doing.
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
            shared.ask(Ask::Kill);
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
    pub fn counted_by(&self) -> Result<&'static str, &str> {
        self.0.groups.as_ref().map(|_| "control group").map_err(String::as_str)
    }

    /// How the memory of commands is bounded: by the kernel, or, for the reason given, by looking.
    pub fn memory_bounded_by(&self) -> Result<&'static str, &str> {
        memory_bounded_by(&self.0.groups)
    }

    /// Why an agent starts no command: one of its commands was ended to keep room on a disk, and there is none yet.
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

    /// Rung when one of these changes.
    #[must_use]
    pub fn shortage_changes(&self) -> watch::Receiver<()> {
        self.0.disks.changes()
    }

    /// Comes back when there is room on its disks, for an agent whose command was ended for it; else at once.
    pub async fn room(&self, agent: &str) {
        self.0.disks.room(agent).await;
    }

    /// What may still be taken of the disk of a folder, above the reserve.
    #[must_use]
    pub fn spare(&self, folder: &Path) -> Spare {
        Spare::of(folder, self.0.bounds.disk_reserve_bytes)
    }

    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// How processes are counted and memory is bounded on this machine, tried now.
    pub fn bounded_here() -> [Result<&'static str, String>; 2] {
        let groups = Groups::find();
        let memory = memory_bounded_by(&groups).map_err(str::to_owned);
        [groups.map(|_| "control group"), memory]
    }

    /// Runs once the command does. Dropping it before that ends the command.
    pub async fn start(&self, launch: Launch) -> Result<Process, Refusal> {
        self.begin(launch)?.await.map_err(|error| no_thread(&error))?
    }

    /// The same for a thread that may block.
    pub fn start_blocking(&self, launch: Launch) -> Result<Process, Refusal> {
        self.begin(launch)?.blocking_recv().map_err(|error| no_thread(&error))?
    }

    fn begin(&self, launch: Launch) -> Result<oneshot::Receiver<Result<Process, Refusal>>, Refusal> {
        let (ready, is_ready) = oneshot::channel();
        let owner = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("command".to_owned());
        thread.spawn(move || owner::own(owner, launch, ready)).map_err(|error| no_thread(&error))?;
        Ok(is_ready)
    }

    /// At boot: ends whatever an earlier life of this home left behind, and says what it was. Scratch folders go too.
    #[must_use]
    pub fn sweep(&self) -> Vec<Swept> {
        owner::sweep(&self.0)
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

/// What the holder of a command and the thread that owns it share.
#[derive(Debug)]
struct Shared {
    control: UnixStream,
    input: Mutex<Option<OwnedFd>>,
    store: Mutex<Store>,
    /// How far it was asked to end: not, gently, for certain.
    asked: AtomicU8,
    /// Rung when it is asked to end, so that its thread can see to it that this comes to something.
    bell: OwnedFd,
    ended: watch::Sender<Option<Ended>>,
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
    supervisor: Member,
    /// Why it was ended, if that was for room on a disk.
    for_disk: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Store {
    combined: Bounded,
    stdout: Bounded,
    stderr: Bounded,
    /// What the two streams are read through.
    masked: [MaskedStream; 2],
    /// When output that they hold back is shown.
    settle_at: Option<Instant>,
    files: Option<kept::Files>,
    /// Why there are no files, though there were to be.
    problem: Option<String>,
}

impl Shared {
    /// A thread that died while it held the store left it as whole as any other moment does.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn for_disk(&self) -> MutexGuard<'_, Option<String>> {
        self.for_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: Ask) {
        if self.ended.borrow().is_some() {
            return;
        }
        let urgency = ask.urgency();
        // Once each: a supervisor that is slow to listen must not hold up whoever repeats himself.
        if self.asked.fetch_max(urgency, Ordering::Relaxed) >= urgency {
            return;
        }
        let _rung = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        // Refused only by a supervisor that is gone, and with it everything there was to end.
        let _gone = orders::write_frame(&self.control, &ask);
    }
}

/// Whether a command still runs, for those who do not hold it.
#[derive(Debug, Clone)]
pub struct Running(watch::Receiver<Option<Ended>>);

impl Running {
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Comes back when nothing of the command runs.
    pub async fn over(&mut self) {
        // Whoever could have said so is gone only after everything of the command.
        let _over = self.0.wait_for(Option::is_some).await.is_ok();
    }
}

impl Process {
    /// The process below which all of the command's are.
    pub(crate) fn supervisor(&self) -> i32 {
        self.0.0.supervisor.pid
    }

    /// Keeps an eye on the command without keeping it.
    #[must_use]
    pub fn running(&self) -> Running {
        Running(self.0.0.ended.subscribe())
    }

    /// Comes back when nothing of the command runs; at once if that is so already.
    pub async fn wait(&self) -> Ended {
        let mut ended = self.0.0.ended.subscribe();
        loop {
            if let Some(ended) = ended.borrow_and_update().clone() {
                return ended;
            }
            // The sender is ours; it can't be gone.
            let _here = ended.changed().await;
        }
    }

    /// The same for a thread that may block: nothing where the time was over first.
    #[must_use]
    pub fn wait_until(&self, deadline: Instant) -> Option<Ended> {
        let mut bell = self.0.0.over.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ended) = self.ended() {
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
    pub fn ended(&self) -> Option<Ended> {
        self.0.0.ended.borrow().clone()
    }

    /// Every process of it is asked to end, and made to after a grace; or, forced, made to at once.
    pub fn end(&self, force: bool) {
        self.0.0.ask(if force { Ask::Kill } else { Ask::End });
    }

    /// To its standard input or terminal. Says how much was taken; all of it, unless the command does not read.
    pub async fn write(&self, bytes: &[u8]) -> Result<usize, InputError> {
        let mut taken = 0;
        for _ in 0..limits::INPUT_WAIT_MS / INPUT_PAUSE_MS {
            if self.ended().is_some() {
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

    /// No more input: the command reads the end of it. A terminal has none; send it a `^D`.
    pub fn close_input(&self) {
        self.0.0.input.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// From now on the output is in files there too, what came before included. What is there is replaced.
    pub fn keep(&self, folder: &Path) -> io::Result<()> {
        let mut store = self.0.0.store();
        let mut files = kept::Files::create(folder, &store.combined)?;
        if self.ended().is_some() {
            files.end(&store.combined);
        }
        store.files = Some(files);
        Ok(())
    }

    #[must_use]
    pub fn output(&self) -> Output {
        let store = self.0.0.store();
        Output { combined: store.combined.kept(), stdout: store.stdout.kept(), stderr: store.stderr.kept() }
    }

    /// Of both streams, as they came, from an absolute offset.
    #[must_use]
    pub fn read(&self, offset: u64, max: usize) -> Chunk {
        self.0.0.store().combined.read(offset, max)
    }

    /// How to find it again, in words.
    #[must_use]
    pub fn recovery(&self) -> String {
        self.0.0.recovery.clone()
    }
}

const INPUT_PAUSE_MS: u64 = 10;

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.ask(Ask::End);
    }
}
