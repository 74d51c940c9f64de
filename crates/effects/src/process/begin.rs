//! From a launch to a command that runs: what it may use is settled, a supervisor is started, counted and given its
//! orders. Until the orders are given nothing of the command exists, so it is confined and counted from its first step.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use abide_private::private_folder;
use rustix::event::EventfdFlags;
use tokio::sync::watch;

use super::family::Member;
use super::group::{Door, Group, Most};
use super::heads::Heads;
use super::mounts::Protection;
use super::orders::{self, Orders, Report, Root, SUPERVISE};
use super::output::Bounded;
use super::owner::Begun;
use super::{Bounds, Launch, Owner, Shared, Store, disk, family, kept, marker, ssh, sweep, wires};
use crate::limits;
use crate::programs;
use crate::sandbox::environment::{self, Given};
use crate::sandbox::{Allowed, Mechanism};
use crate::transient;
use abide_kernel::refusal::{ErrorCode, Refusal};

pub(super) fn begin(owner: &Owner, launch: &Launch) -> Result<Begun, Refusal> {
    if owner.sandbox.refuses() {
        let why = owner.sandbox.problems().join("; ");
        return Err(Refusal::new(ErrorCode::SandboxRequired, format!("no sandbox works here: {why}")));
    }
    if let Some(short) = owner.disks.shortage(&launch.agent) {
        let message = format!("a command of this agent was ended to keep room on the disk: {short}");
        return Err(Refusal::new(ErrorCode::DiskReserve, message));
    }
    if launch.ssh_agent.is_some() && owner.sandbox.mechanism() != Mechanism::Bubblewrap {
        return Err(owner.sandbox.no_ssh_agent());
    }
    let Protection { pinned, read_only, .. } = &launch.protection;
    if let Some(path) = pinned.iter().chain(read_only).find(|path| path.to_str().is_none()) {
        let message = format!("the repository at {} can't be protected: its path is not UTF-8", path.display());
        return Err(
            Refusal::new(ErrorCode::NameNotUtf8, message).with_hint("rename it, or move it out of the workspace")
        );
    }
    let began = SystemTime::now();
    let nth = owner.started.fetch_add(1, Ordering::Relaxed);
    let Places { mut allowed, roots, readable } = places(owner, launch)?;
    let cwd = folder(&launch.cwd)?;
    let shown = allowed.write.iter().chain(&allowed.read).any(|root| cwd.starts_with(&root.path));
    if owner.sandbox.mechanism() != Mechanism::None && !shown {
        return Err(bad_folder(&launch.cwd, &"it lies outside of the workspace"));
    }
    let private = Private::make(owner, nth, &mut allowed).map_err(|error| failed(&error))?;
    let marker = owner.marker.of(&launch.label);
    let group = match &owner.groups {
        Ok(groups) => {
            // With the label: of a process that is about to be gone, the environment can't be read any more.
            let (home, life, label) = (owner.marker.home(), owner.marker.life(), &launch.label);
            let agent = format!("abide-{home}-{life}.{}", launch.agent.replace('/', "_"));
            // The supervisor, its second thread and what wraps it are counted too.
            let processes = launch.processes_max.saturating_add(3);
            let most = Most { processes, memory_bytes: owner.bounds.memory_bytes };
            groups.create(&agent, &format!("{nth}.{label}"), most).ok()
        }
        Err(_) => None,
    };
    let kernel_bounds_memory =
        group.is_some() && owner.groups.as_ref().is_ok_and(|groups| groups.unbounded().is_none());
    let orders = Orders {
        program: owner.shell.clone(),
        arguments: vec!["-c".to_owned(), launch.command.clone()],
        cwd,
        readable: match owner.sandbox.mechanism() {
            Mechanism::Bubblewrap => readable,
            // Landlock's rules hold them, and nothing confines a command without a sandbox.
            Mechanism::Landlock | Mechanism::None => Vec::new(),
        },
        roots,
        environment: environment_of(owner, launch, &private, &marker),
        pinned: launch.protection.pinned.clone(),
        read_only: launch.protection.read_only.clone(),
        home_files: match owner.sandbox.mechanism() {
            Mechanism::Bubblewrap | Mechanism::Landlock => {
                let files = launch.home_files.iter().map(|(name, text)| (private.home.join(name), text.clone()));
                files.chain(ssh::known_hosts_file(launch.ssh_agent.as_ref())).collect()
            }
            Mechanism::None => Vec::new(),
        },
        open_home: match owner.sandbox.mechanism() {
            Mechanism::Landlock => Some(owner.home.clone()),
            Mechanism::Bubblewrap | Mechanism::None => None,
        },
        tty: launch.tty,
        namespace: owner.sandbox.mechanism() == Mechanism::Bubblewrap,
        confinement: owner.sandbox.confinement(&allowed),
        processes_max: group.is_none().then_some(launch.processes_max),
        user_processes_max: (group.is_none() && !rustix::process::getuid().is_root())
            .then(|| family::of_this_user() + u64::from(launch.processes_max) * limits::USER_PROCESSES_TIMES),
        memory_max: (!kernel_bounds_memory).then_some(owner.bounds.memory_bytes),
        open_files: owner.bounds.open_files,
        scratch: owner.sandbox.scratch_folders(),
        scratch_max: owner.bounds.scratch_bytes,
        grace_ms: limits::END_GRACE_MS,
    };
    let heads = Heads::record(&owner.home, owner.marker.life(), &launch.label, &launch.protection.git_dirs)
        .map_err(|error| failed(&error))?;
    let door = group.as_ref().and_then(Group::door);
    let (child, inside, control) = spawn(owner, &allowed, &marker, door).map_err(|error| failed(&error))?;
    let bounds = owner.bounds;
    let folders: Vec<PathBuf> = allowed.write.into_iter().map(|root| root.path).collect();
    let used_before = disk::used(&folders);
    let confined = owner.sandbox.mechanism() != Mechanism::None;
    let reach = Reach { folders, confined, began, used_before };
    let hired = Hired { child, inside, control, group, scratch: private.scratch, heads, marker, bounds, reach };
    hired.instruct(&orders, launch)
}

fn failed(error: &io::Error) -> Refusal {
    let hint = transient::hint(error, "look at the machine: memory, disk, open files, processes");
    Refusal::new(ErrorCode::System, format!("the command could not be started: {error}")).with_hint(hint)
}

fn bad_folder(path: &Path, why: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(ErrorCode::BadFolder, format!("{} can't be used: {why}", path.display()))
}

/// A folder that is there, by its real name.
fn folder(path: &Path) -> Result<PathBuf, Refusal> {
    let real = path.canonicalize().map_err(|error| bad_folder(path, &error))?;
    if !real.is_dir() {
        return Err(bad_folder(path, &"it is no folder"));
    }
    if real.to_str().is_none() {
        return Err(bad_folder(path, &"its name is not text"));
    }
    Ok(real)
}

/// A folder that a command may write to. One that is reached through a symbolic link is refused: whoever may write
/// where the link lies could turn it to any place, and have that place opened.
fn writable(owner: &Owner, path: &Path) -> Result<Root, Refusal> {
    let real = folder(path)?;
    if real != path {
        return Err(bad_folder(path, &format_args!("it leads through a symbolic link to {}", real.display())));
    }
    if owner.sandbox.mechanism() != Mechanism::None {
        let everything = real.parent().is_none() || real == owner.home;
        let exposed = if everything { Some(owner.home.clone()) } else { owner.sandbox.exposes(&real) };
        if let Some(secret) = exposed {
            return Err(too_wide(&real, &secret));
        }
    }
    Root::of(real).map_err(|error| match transient::is_transient(&error) {
        true => failed(&error),
        false => bad_folder(path, &error),
    })
}

/// What a command may use, and what that was when it was decided.
struct Places {
    allowed: Allowed,
    roots: Vec<Root>,
    readable: Vec<Root>,
}

fn places(owner: &Owner, launch: &Launch) -> Result<Places, Refusal> {
    let paths = std::iter::once(&launch.root).chain(&launch.extra_write);
    let roots: Vec<Root> = paths.map(|path| writable(owner, path)).collect::<Result<_, _>>()?;
    // What is gone, or is behind a link by now, is not shown.
    let readable: Vec<Root> = launch.extra_read.iter().filter_map(|path| Root::of(path.clone()).ok()).collect();
    let own = rustix::process::geteuid().as_raw();
    let allowed = Allowed {
        read: readable.clone(),
        write: roots.clone(),
        mounts_inside: !launch.protection.is_empty(),
        network: launch.network,
        scratch_bytes: owner.bounds.scratch_bytes,
        foreign: roots.iter().chain(&readable).any(|root| root.owner != own),
        ssh_agent: launch.ssh_agent.as_ref().and_then(|agent| agent.socket.clone()),
    };
    Ok(Places { allowed, roots, readable })
}

fn too_wide(path: &Path, secret: &Path) -> Refusal {
    Refusal::new(
        ErrorCode::WorkspaceTooWide,
        format!("{} can't be a workspace: {} lies in it, which no command may read", path.display(), secret.display()),
    )
}

/// Where a command's own home and temporary files are.
struct Private {
    home: PathBuf,
    temporary: PathBuf,
    scratch: Option<Scratch>,
}

/// A private folder on disk, for a command that can't have one in memory. Gone with the value.
pub(super) struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _kept = fs::remove_dir_all(&self.0);
    }
}

/// The folder of the home that holds them.
pub(super) const SCRATCH: &str = "scratch";

impl Private {
    fn make(owner: &Owner, nth: u64, allowed: &mut Allowed) -> io::Result<Private> {
        let person = owner.sandbox.person().to_path_buf();
        match owner.sandbox.mechanism() {
            Mechanism::Bubblewrap => Ok(Private { home: person, temporary: PathBuf::from("/tmp"), scratch: None }),
            Mechanism::Landlock => {
                let folder = owner.home.join(SCRATCH).join(format!("{}-{nth}", owner.marker.life()));
                let scratch = Scratch(folder.clone());
                let (home, temporary) = (folder.join("home"), folder.join("tmp"));
                private_folder(&home)?;
                private_folder(&temporary)?;
                allowed.write.push(Root::of(folder)?);
                Ok(Private { home, temporary, scratch: Some(scratch) })
            }
            Mechanism::None => Ok(Private { home: person, temporary: std::env::temp_dir(), scratch: None }),
        }
    }
}

fn environment_of(owner: &Owner, launch: &Launch, private: &Private, marker: &str) -> Vec<(String, String)> {
    let own: Vec<&Path> = std::iter::once(&launch.root).chain(&launch.extra_write).map(PathBuf::as_path).collect();
    let given = Given {
        person: owner.sandbox.person(),
        home: &private.home,
        temporary: &private.temporary,
        tty: launch.tty,
        network: launch.network,
        path: programs::command_path(&own),
        marker: (marker::VARIABLE, marker),
    };
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut environment = environment::build(std::env::vars_os().filter_map(text), &given);
    let secrets = launch.secrets.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    let given = ssh::environment(launch.ssh_agent.as_ref()).into_iter().chain(launch.environment.iter().cloned());
    let given: Vec<(String, String)> = given.chain(secrets).collect();
    environment.retain(|(name, _)| given.iter().all(|(set, _)| set != name));
    environment.extend(given);
    environment
}

/// The supervisor, wrapped or not. Its standard input is our connection to it. Its standard output is our own binary,
/// opened: so it can be started by that descriptor in any mount namespace, and needs none but the three descriptors
/// that every process has. Its standard error is what it, or its wrapping, has to say when it fails.
fn spawn(owner: &Owner, allowed: &Allowed, marker: &str, door: Option<Door>) -> io::Result<(Child, bool, UnixStream)> {
    const SELF: &str = "/proc/self/fd/1";
    let (control, theirs) = UnixStream::pair()?;
    rustix::net::sockopt::set_socket_passcred(&control, true)?;
    let mut command = match owner.sandbox.wrapping(allowed).map_err(io::Error::other)? {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg("--").arg(SELF);
            command
        }
        None => Command::new(SELF),
    };
    command.arg(SUPERVISE).arg(marker).env_clear().env(marker::VARIABLE, marker).current_dir("/");
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::from(owner.program.try_clone()?)).stderr(Stdio::piped());
    use std::os::unix::process::CommandExt;
    // Not in the daemon's group: a ^C at its terminal is the daemon's to hear.
    command.process_group(0);
    let (child, inside) = owner.spawner.spawn(command, door)?;
    Ok((child, inside, control))
}

/// When memory runs out it is the command that goes, not its supervisor. A process passes its score on to those that it
/// starts, so the supervisor has the command's until the command began; the command itself can't write it, for its
/// /proc is read-only. Not everywhere may this be said.
struct OomScore {
    file: fs::File,
    own: String,
}

impl OomScore {
    fn raise(pid: i32) -> Option<OomScore> {
        let mut file = fs::File::options().read(true).write(true).open(format!("/proc/{pid}/oom_score_adj")).ok()?;
        let mut own = String::new();
        file.read_to_string(&mut own).ok()?;
        file.write_all(b"500").ok()?;
        Some(OomScore { file, own })
    }

    fn restore(&mut self) {
        let _as_it_is = self.file.write_all(self.own.as_bytes());
    }
}

/// A supervisor that was started and has no orders yet.
struct Hired {
    child: Child,
    /// It is in its group already.
    inside: bool,
    control: UnixStream,
    group: Option<Group>,
    scratch: Option<Scratch>,
    heads: Heads,
    marker: String,
    bounds: Bounds,
    reach: Reach,
}

/// Where a command may write, and how things stood there before it began.
struct Reach {
    folders: Vec<PathBuf>,
    confined: bool,
    began: SystemTime,
    used_before: HashMap<disk::Disk, u64>,
}

impl Hired {
    fn instruct(mut self, orders: &Orders, launch: &Launch) -> Result<Begun, Refusal> {
        match self.exchange(orders, launch) {
            Ok((supervisor, wires, bell)) => Ok(self.begun(supervisor, wires, bell, launch)),
            Err(error) => Err(self.dismiss(&error)),
        }
    }

    fn exchange(&mut self, orders: &Orders, launch: &Launch) -> io::Result<(Member, wires::Ours, OwnedFd)> {
        let gone = || io::Error::other("its supervisor ended before it began");
        self.control.set_read_timeout(Some(Duration::from_millis(limits::START_TIMEOUT_MS)))?;
        let pid = orders::receive_hello(&self.control)?.ok_or_else(gone)?;
        if let (Some(group), false) = (&self.group, self.inside) {
            group.join(pid)?;
        }
        let mut victim = OomScore::raise(pid);
        let (ours, theirs) = wires::make(launch)?;
        orders::send_descriptors(&self.control, &theirs.each_ref().map(AsFd::as_fd))?;
        drop(theirs);
        orders::write_frame(&self.control, orders)?;
        match orders::read_frame(&self.control)?.ok_or_else(gone)? {
            Report::Started => {}
            Report::NotStarted { message } => return Err(io::Error::other(message)),
            Report::Ended { .. } => return Err(gone()),
        }
        if let Some(victim) = &mut victim {
            victim.restore();
        }
        self.control.set_read_timeout(None)?;
        let supervisor = family::stat(pid).map_or(Member { pid, began: 0 }, |stat| stat.member);
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok((supervisor, ours, bell))
    }

    fn dismiss(mut self, error: &io::Error) -> Refusal {
        let _gone = self.child.kill();
        let _status = self.child.wait();
        // Nothing, unless the command began and kept its supervisor from saying so.
        let _swept = sweep::sweep(|found| (found == self.marker).then(String::new));
        let mut said = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _partial = stderr.take(limits::COMPLAINT_BYTES as u64).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        let why = match (said.trim(), error.kind()) {
            ("", io::ErrorKind::WouldBlock) => "its supervisor did not answer in time".to_owned(),
            ("", _) => error.to_string(),
            (said, _) => said.to_owned(),
        };
        let hint = "`abide doctor` tries the sandbox and says what is wrong with it";
        Refusal::new(ErrorCode::NotStarted, format!("the command could not be started: {why}")).with_hint(hint)
    }

    fn begun(mut self, supervisor: Member, mut wires: wires::Ours, bell: OwnedFd, launch: &Launch) -> Begun {
        let combined = Bounded::combined();
        let (files, problem) = match launch.output.as_deref().map(|folder| kept::Files::create(folder, &combined)) {
            Some(Ok(files)) => (Some(files), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let masked = [launch.mask.stream(), launch.mask.stream()];
        let store = Store {
            combined,
            stdout: Bounded::stream(),
            stderr: Bounded::stream(),
            masked,
            settle_at: None,
            files,
            problem,
        };
        let shared = Arc::new(Shared {
            control: self.control,
            input: Mutex::new(wires.input.take()),
            store: Mutex::new(store),
            asked: AtomicU8::new(0),
            bell,
            ended: watch::Sender::new(None),
            over: Default::default(),
            recovery: format!("pid {} started {} marker {}", supervisor.pid, supervisor.began, self.marker),
            agent: launch.agent.clone(),
            folders: self.reach.folders,
            confined: self.reach.confined,
            began: self.reach.began,
            used_before: self.reach.used_before,
            supervisor,
            for_disk: Mutex::new(None),
        });
        // It speaks on its connection now. A full pipe that nobody reads must not hold it up.
        self.child.stderr = None;
        Begun {
            shared,
            supervisor,
            child: self.child,
            wires,
            group: self.group,
            scratch: self.scratch,
            marker: self.marker,
            heads: self.heads,
            processes_max: launch.processes_max,
            bounds: self.bounds,
            out_of_memory: false,
        }
    }
}
