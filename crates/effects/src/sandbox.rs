//! What keeps a command where it belongs, and what of that works on this machine. Each mechanism is tried once; what
//! does not work is kept with its reason and never passed over in silence. Starts no command.

mod bubblewrap;
mod closed;
mod confinement;
pub(crate) mod environment;
mod landlock;
mod places;
mod seccomp;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use abide_kernel::refusal::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};

pub(crate) use self::bubblewrap::SSH_AGENT_SOCKET;
use self::bubblewrap::{Scratch, View};
use self::closed::Closed;
pub(crate) use self::confinement::{Confinement, Prepared};
use self::landlock::{Ability, Files, Rules};
use self::places::Places;
use self::seccomp::{Modes, Reach, Sockets, SystemCalls};
use crate::limits;
use crate::process::Root;
use crate::process::mounts::OLDEST_KERNEL;
use crate::programs;

/// What the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The strongest that works; nothing where nothing works, and said so.
    #[default]
    Auto,
    /// No command without one.
    Required,
    Off,
}

impl Mode {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Required => "required",
            Mode::Off => "off",
        }
    }
}

/// What is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    Bubblewrap,
    Landlock,
    None,
}

impl Mechanism {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mechanism::Bubblewrap => "bubblewrap",
            Mechanism::Landlock => "landlock",
            Mechanism::None => "none",
        }
    }
}

/// The sandbox of this machine, as it was found.
#[derive(Debug, Clone)]
pub struct Sandbox {
    mode: Mode,
    mechanism: Mechanism,
    /// Bubblewrap can show one file system in memory in several places.
    one_scratch: bool,
    ability: Option<Ability>,
    seccomp: bool,
    problems: Vec<String>,
    home: PathBuf,
    person: PathBuf,
    path: String,
    /// Closed files among the system's programs. Nothing for an ordinary user.
    closed: Option<Closed>,
}

impl Sandbox {
    /// Tries what there is, the strongest first. `home` is the runtime's own, which no command may read.
    #[must_use]
    pub fn probe(mode: Mode, home: &Path) -> Sandbox {
        Sandbox::probe_among(mode, home, &[Mechanism::Bubblewrap, Mechanism::Landlock])
    }

    /// The same with fewer to choose from.
    #[must_use]
    pub fn probe_among(mode: Mode, home: &Path, among: &[Mechanism]) -> Sandbox {
        let home = home.canonicalize().unwrap_or_else(|_| home.to_path_buf());
        programs::serve_home(&home);
        let person = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/nonexistent"));
        // Whose home is everything has none.
        let person = person.canonicalize().ok().filter(|person| person.parent().is_some());
        let person = person.unwrap_or_else(|| PathBuf::from("/nonexistent"));
        let path = std::env::var("PATH").unwrap_or_else(|_| environment::PATH.to_owned());
        let mut sandbox = Sandbox {
            mode,
            mechanism: Mechanism::None,
            one_scratch: false,
            ability: None,
            seccomp: false,
            problems: Vec::new(),
            home,
            person,
            path,
            closed: None,
        };
        match mode {
            Mode::Off => sandbox.problems.push("the sandbox is off by setting".to_owned()),
            Mode::Auto | Mode::Required => sandbox.try_all(among),
        }
        sandbox
    }

    fn try_all(&mut self, among: &[Mechanism]) {
        if rustix::process::geteuid().is_root() {
            let closed = Closed::find(closed::PROGRAMS, limits::CLOSED_PROGRAMS_WALK_MS);
            if closed.is_partial {
                self.problems.push(
                    "files that only root can read are not all hidden: there are too many, or the search took too long"
                        .to_owned(),
                );
            }
            self.closed = Some(closed);
        }
        match landlock::probe() {
            Ok(ability) => self.ability = Some(ability),
            Err(problem) => self.problems.push(format!("landlock: {problem}")),
        }
        match seccomp::programs(SystemCalls {
            sockets: Sockets::None,
            reach: Reach::User,
            modes: Modes::of_this_user(),
        }) {
            Ok(_) => self.seccomp = true,
            Err(problem) => self.problems.push(format!("seccomp: {problem}")),
        }
        if among.contains(&Mechanism::Bubblewrap) {
            let one = self.try_bubblewrap(true);
            self.one_scratch = one.is_ok();
            match one.or_else(|_| self.try_bubblewrap(false)) {
                Ok(()) => {
                    self.mechanism = Mechanism::Bubblewrap;
                    if !self.protects_repositories() {
                        let (major, minor) = OLDEST_KERNEL;
                        let problem =
                            format!("bubblewrap: {REPOSITORIES_OPEN}, because Linux is older than {major}.{minor}");
                        self.problems.push(problem);
                    }
                    return;
                }
                Err(problem) => self.problems.push(format!("bubblewrap: {problem}")),
            }
        }
        // Landlock alone leaves every socket but TCP open, so it counts only with the filter.
        if among.contains(&Mechanism::Landlock) && self.ability.is_some() && self.seccomp {
            self.mechanism = Mechanism::Landlock;
            self.note_gaps();
            return;
        }
        self.problems.push("nothing confines commands: they can read and change what the daemon's user can".to_owned());
    }

    /// What bubblewrap would do and Landlock can't.
    fn note_gaps(&mut self) {
        let mut note = |gap: &str| self.problems.push(format!("landlock: {gap}"));
        note("modes of files outside of the workspace are not protected from their owner, except for the home's");
        note("names and arguments of other processes can be seen");
        note(REPOSITORIES_OPEN);
        if let Some(ability) = self.ability {
            if ability.version < 3 {
                note("this kernel's version can't keep files outside of the workspace from being truncated");
            }
            if !ability.peers() {
                note("this kernel's version can't keep signals from other processes of the same user");
            }
        }
    }

    fn try_bubblewrap(&self, one_scratch: bool) -> Result<(), String> {
        let program = programs::find(BUBBLEWRAP).map_err(|why| format!("{why}; install bubblewrap"))?;
        let scratch = if one_scratch { Scratch::One(PROBE_SCRATCH_BYTES) } else { Scratch::Each(PROBE_SCRATCH_BYTES) };
        let view = View {
            writable: &[],
            readable: &[],
            mounts_inside: false,
            network: false,
            foreign: false,
            ssh_agent: None,
            scratch,
        };
        let places = self.places();
        let script = format!("{KERNEL_FILES_OPEN}\n{}", bubblewrap::scratch_script(&places, scratch));
        let tried = Command::new(&program)
            .args(bubblewrap::arguments(&places, &view))
            .args(["--", "/bin/sh", "-c", &script])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let writable = String::from_utf8_lossy(&tried.stdout);
        if tried.status.success() && writable.is_empty() {
            return Ok(());
        }
        if tried.status.success() {
            let files = writable.split_ascii_whitespace().collect::<Vec<_>>().join(", ");
            return Err(format!("it leaves the kernel's files open for writing: {files}"));
        }
        let said = String::from_utf8_lossy(&tried.stderr);
        Err(said.trim().chars().take(limits::COMPLAINT_BYTES).collect())
    }

    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Why something is not enforced.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether no command may be started, for one is wanted and there is none.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.mode == Mode::Required && self.mechanism == Mechanism::None
    }

    /// Whether hooks and settings of repositories in a writable folder can be kept from commands.
    pub(crate) fn protects_repositories(&self) -> bool {
        self.mechanism == Mechanism::Bubblewrap && kernel() >= OLDEST_KERNEL
    }

    /// Whether commands can be given an ssh agent, and none of the other sockets of the machine.
    #[must_use]
    pub fn shows_sockets(&self) -> bool {
        self.mechanism == Mechanism::Bubblewrap
    }

    /// Why commands are given no ssh agent here.
    #[must_use]
    pub fn no_ssh_agent(&self) -> Refusal {
        let message = format!(
            "an ssh agent needs bubblewrap, and commands here run with {}: only bubblewrap can show a command this one \
             socket and no other",
            match self.mechanism {
                Mechanism::Bubblewrap => "bubblewrap",
                Mechanism::Landlock => "Landlock",
                Mechanism::None => "no sandbox",
            }
        );
        Refusal::new(ErrorCode::SshAgentNeedsBubblewrap, message)
    }

    /// What a command is really kept from, with or without network.
    #[must_use]
    pub fn enforced(&self, network: bool) -> Vec<&'static str> {
        // Their number and their memory are bounded whatever the sandbox is.
        let mut enforced = vec!["processes", "memory"];
        if self.mechanism == Mechanism::None {
            return enforced;
        }
        enforced.push("filesystem");
        if !network {
            enforced.push("network");
        }
        let peers = self.ability.is_some_and(Ability::peers);
        let abstract_sockets = match self.mechanism {
            Mechanism::Bubblewrap => {
                enforced.push("pid_namespace");
                !network || peers
            }
            Mechanism::Landlock => true,
            Mechanism::None => false,
        };
        if abstract_sockets {
            enforced.push("abstract_sockets");
        }
        if self.mechanism == Mechanism::Bubblewrap || peers {
            enforced.push("signals");
        }
        if self.mechanism == Mechanism::Landlock && !network && self.ability.is_some_and(Ability::ports) {
            enforced.push("tcp_ports");
        }
        if self.seccomp {
            enforced.push("seccomp");
        }
        enforced
    }

    pub(crate) fn person(&self) -> &Path {
        &self.person
    }

    /// As they are now: a secret may have been put down, and a toolchain taken away, since the last command.
    fn places(&self) -> Places {
        let mut places = Places::find(&self.home, &self.person, &self.path);
        if let Some(programs) = &self.closed {
            places.closed = Closed::find(closed::SETTINGS, limits::CLOSED_WALK_MS).paths;
            places.closed.extend(programs.paths.iter().cloned());
        }
        places
    }

    /// What is hidden from commands inside of `folder`, for those who open files without being confined.
    pub(crate) fn hidden_in(&self, folder: &Path) -> Vec<PathBuf> {
        match self.mechanism {
            Mechanism::Bubblewrap | Mechanism::Landlock => self.places().hidden_below(folder).cloned().collect(),
            Mechanism::None => Vec::new(),
        }
    }

    /// What commands can only read inside of `folder`, though they may write around it: folders of programs.
    pub(crate) fn read_only_in(&self, folder: &Path) -> Vec<PathBuf> {
        let inside = |path: &PathBuf| path.starts_with(folder) && path != folder;
        match self.mechanism {
            Mechanism::Bubblewrap | Mechanism::Landlock => self.places().readable.into_iter().filter(inside).collect(),
            Mechanism::None => Vec::new(),
        }
    }

    /// A hidden place below `folder` that this mechanism would have to show with it.
    pub(crate) fn exposes(&self, folder: &Path) -> Option<PathBuf> {
        match self.mechanism {
            Mechanism::Bubblewrap | Mechanism::None => None,
            Mechanism::Landlock => self.places().hidden_below(folder).next().cloned(),
        }
    }

    /// The program and arguments that come before the supervisor's own, if it is to be wrapped. The program is looked
    /// at each time: the folder that it was found in may have been given to an agent since.
    pub(crate) fn wrapping(&self, allowed: &Allowed) -> Result<Option<(PathBuf, Vec<std::ffi::OsString>)>, String> {
        if self.mechanism != Mechanism::Bubblewrap {
            return Ok(None);
        }
        let program = programs::find(BUBBLEWRAP)?;
        let view = View {
            writable: &allowed.write,
            readable: &allowed.read,
            mounts_inside: allowed.mounts_inside,
            network: allowed.network,
            foreign: allowed.foreign,
            ssh_agent: allowed.ssh_agent.as_deref(),
            scratch: match self.one_scratch {
                true => Scratch::One(allowed.scratch_bytes),
                false => Scratch::Each(allowed.scratch_bytes),
            },
        };
        Ok(Some((program, bubblewrap::arguments(&self.places(), &view))))
    }

    /// The private folders in memory, as a command sees them; one of each file system.
    pub(crate) fn scratch_folders(&self) -> Vec<PathBuf> {
        match (self.mechanism, self.one_scratch) {
            (Mechanism::Bubblewrap, true) => vec![PathBuf::from(bubblewrap::SCRATCH)],
            (Mechanism::Bubblewrap, false) => bubblewrap::private_folders(&self.person),
            (Mechanism::Landlock | Mechanism::None, _) => Vec::new(),
        }
    }

    /// What the supervisor lays upon the command.
    pub(crate) fn confinement(&self, allowed: &Allowed) -> Confinement {
        let files = || {
            let Places { readable, mut hidden, closed, .. } = self.places();
            // Folders that are given have rules of their own, which allow all of them.
            hidden.extend(closed);
            let mut read: Vec<PathBuf> = readable.iter().flat_map(|path| places::around(path, &hidden)).collect();
            // Landlock itself keeps what is private of other processes from being read there.
            read.push(PathBuf::from("/proc"));
            if let (true, Ok(real)) = (allowed.network, Path::new("/etc/resolv.conf").canonicalize()) {
                read.push(real);
            }
            Files { read, given: allowed.read.clone(), write: allowed.write.clone() }
        };
        let modes = Modes::of_this_user();
        match self.mechanism {
            Mechanism::Bubblewrap => Confinement {
                landlock: self.ability.is_some_and(Ability::peers).then_some(Rules { files: None, network: true }),
                calls: self.seccomp.then_some(SystemCalls { sockets: Sockets::Usual, reach: Reach::Namespace, modes }),
                unprivileged: true,
                powers_over_files: allowed.foreign,
            },
            Mechanism::Landlock => Confinement {
                landlock: Some(Rules { files: Some(files()), network: allowed.network }),
                calls: Some(SystemCalls {
                    sockets: if allowed.network { Sockets::Internet } else { Sockets::None },
                    reach: Reach::User,
                    modes,
                }),
                unprivileged: true,
                powers_over_files: false,
            },
            Mechanism::None => {
                Confinement { landlock: None, calls: None, unprivileged: false, powers_over_files: false }
            }
        }
    }
}

/// The name of bubblewrap's program.
const BUBBLEWRAP: &str = "bwrap";

const REPOSITORIES_OPEN: &str = "hooks and settings of repositories in a workspace are not protected; use worktrees";

/// The major and minor number of the running kernel.
fn kernel() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Names the kernel's files that can be opened for writing. Opening them changes nothing.
const KERNEL_FILES_OPEN: &str = "for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe \
    /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /proc/sysrq-trigger /proc/pressure/memory \
    /proc/irq/default_smp_affinity /proc/self/oom_score_adj /sys/devices/system/cpu/cpu1/online /dev/.probe; do
    ( exec 3>>\"$file\" ) 2>/dev/null && echo \"$file\"
done; true";

const PROBE_SCRATCH_BYTES: u64 = 1 << 20;

/// What one command may use.
#[derive(Debug)]
pub(crate) struct Allowed {
    pub read: Vec<Root>,
    pub write: Vec<Root>,
    /// Its supervisor protects parts of what is writable.
    pub mounts_inside: bool,
    pub network: bool,
    /// What its private folders in memory may hold together.
    pub scratch_bytes: u64,
    /// Some of it belongs to another user than the daemon's.
    pub foreign: bool,
    /// The socket of an ssh agent, on the machine.
    pub ssh_agent: Option<PathBuf>,
}
