//! The supervisor: our own binary, started once per command, between the daemon and the command. It starts the command
//! as it is ordered to, adopts whatever the command leaves behind, and ends all of it: when it is asked, when there are
//! too many, when the command itself is over, and when the daemon is gone. It says that a command ended only when
//! nothing of it is left. It keeps nothing, reads no settings, and never outlives its command.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, getrlimit, setrlimit,
};

use super::home_modes::HomeModes;
use super::memory;
use super::mounts;
use super::orders::{self, Orders, Report, SUPERVISE, StopRequest};
use super::process_list::{self, ProcessStat};
use crate::limits;
use crate::sandbox::{AllowedPath, PreparedConfinement};

/// Whether this process was started to be a supervisor.
pub fn is_supervisor() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == SUPERVISE)
}

/// Never returns: the process ends with its command.
pub fn supervise() -> ! {
    let code = match run_supervisor() {
        Ok(()) => 0,
        Err(error) => {
            // Standard error still goes to the daemon, which repeats it as the reason.
            let _unheard = writeln!(io::stderr(), "{error}");
            1
        }
    };
    std::process::exit(code)
}

fn run_supervisor() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    close_with_the_start();
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    // Standard output was our own binary, opened, so that it could be started under any name.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    (&control).write_all(b"h")?;
    let descriptors = orders::receive_descriptors(&control)?;
    let Some(orders) = orders::read_frame::<Orders>(&control)? else { return Ok(()) };
    verify_paths(&orders)?;
    let mount_changes = mounts::mount_protected(&orders)?;
    // Nothing that the command starts may look into this process or trace it, even as the same user. Not earlier: the
    // daemon sets how soon it dies when memory runs out, and that is a file of this process.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let child_exits = ChildExits::new()?;
    let home = orders.open_home.clone().map(HomeModes::record);
    let started = start(&orders, descriptors);
    rustix::stdio::dup2_stderr(&nothing)?;
    match started {
        Ok(main) => {
            orders::write_frame(&control, &Report::Started)?;
            Supervisor::new(control, orders, main, child_exits, home, mount_changes).run_until_over();
            Ok(())
        }
        Err(error) => orders::write_frame(&control, &Report::NotStarted { message: error.to_string() }),
    }
}

/// Descriptors that the daemon has open are not passed to the command, even without close-on-exec.
fn close_with_the_start() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    for descriptor in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if descriptor > 2 {
            #[allow(unsafe_code, reason = "these descriptors have no owner in this program, so no type for one fits")]
            // SAFETY: the flag changes nothing for this process; a number that is not open is refused.
            unsafe {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

fn start(orders: &Orders, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Result<i32> {
    for (path, text) in &orders.home_files {
        abide_private::private_file(path)?.write_all(text.as_bytes())?;
    }
    // A command that crashes leaves no image of its memory where it happens to stand.
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, nothing)?;
    // No real-time scheduling and no priority above the usual, whatever the daemon itself may have.
    setrlimit(Resource::Rtprio, nothing)?;
    setrlimit(Resource::Nice, nothing)?;
    let user_processes_max = orders.user_processes_max;
    let open_files = open_files(orders);
    // A bomb that this process must outrun gets less of the machine than this process does.
    let yields = orders.processes_max.is_some() && !orders.namespace;
    let mut prepared = Some(PreparedConfinement::new(&orders.confinement)?);
    let tty = orders.tty;
    let mut command = Command::new(&orders.program);
    command.args(&orders.arguments).current_dir(&orders.cwd);
    command.env_clear().envs(orders.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    #[allow(
        unsafe_code,
        reason = "nothing here holds a lock, so the child may do anything before it becomes the command"
    )]
    // SAFETY: the only other thread sleeps until the command has begun, and holds no lock at the moment of the fork.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            if tty {
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            }
            if let Some(most) = user_processes_max {
                let most = getrlimit(Resource::Nproc).maximum.map_or(most, |maximum| maximum.min(most));
                setrlimit(Resource::Nproc, Rlimit { current: Some(most), maximum: Some(most) })?;
            }
            setrlimit(Resource::Nofile, open_files)?;
            if yields {
                rustix::process::setpriority_process(None, LOWEST)?;
            }
            let confined = prepared.take().map_or(Ok(()), PreparedConfinement::confine);
            // After everything that changes who we are, for that would forget it.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            confined
        });
    }
    let child = command.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// The limits of open files of the command: the daemon has raised its own soft limit, and the command gets the usual one.
fn open_files(orders: &Orders) -> Rlimit {
    let limit = getrlimit(Resource::Nofile);
    let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
    let maximum = least(limit.maximum, orders.memory_max.map(open_files_max));
    let current = least(orders.open_files.or(limit.current), maximum);
    Rlimit { current, maximum }
}

/// How many files one process may have open where memory is bounded by looking at processes: a socket's buffers and
/// files that are on their way through one belong to no process, and this limits how many of them there are.
fn open_files_max(memory_bytes: u64) -> u64 {
    let most = |name| {
        let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let buffers = most("rmem_max").zip(most("wmem_max")).map_or(limits::SOCKET_BYTES, |(read, write)| read + write);
    (memory_bytes / buffers.max(1)).max(limits::OPEN_FILES_LEAST)
}

/// Whether the sandbox shows what was chosen. A folder may have been renamed or replaced between the moment it was chosen
/// and the moment it was mounted.
fn verify_paths(orders: &Orders) -> io::Result<()> {
    orders.roots.iter().chain(&orders.readable).try_for_each(AllowedPath::verify)
}

const LOWEST: i32 = 19;
const HIGHEST: i32 = -20;

/// The progress of ending everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    /// Asked to end; made to when the time is over.
    Gently {
        until: Instant,
    },
    Killing,
}

/// Reports when a child has ended, adopted ones included: a descriptor for that exists for one child, not for all. Its
/// thread starts before the command, which might leave no room for it.
struct ChildExits {
    bell: OwnedFd,
    next: SyncSender<()>,
}

impl ChildExits {
    fn new() -> io::Result<ChildExits> {
        let (bell, rung) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (next, wanted) = sync_channel(1);
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            while wanted.recv().is_ok() {
                let died = || rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
                // Having no child left is reported too.
                while died().is_err_and(|error| error == Errno::INTR) {}
                if rustix::io::write(&rung, b"x").is_err() {
                    return;
                }
            }
        })?;
        Ok(ChildExits { bell, next })
    }

    /// For the next death: those before it were dealt with.
    fn notify_next(&self) {
        let _gone = self.next.send(());
    }
}

struct Supervisor {
    control: UnixStream,
    daemon: bool,
    orders: Orders,
    main: i32,
    main_status: Option<(Option<i32>, Option<i32>)>,
    ending: Ending,
    evidence: Vec<String>,
    child_exits: ChildExits,
    /// Urgent when a mount of the namespace went or came.
    mount_changes: Option<File>,
    last_forked: Option<u64>,
    last_weighed: Option<Instant>,
    home: Option<HomeModes>,
    last_restored: Option<Instant>,
}

/// The events that woke a supervisor.
#[derive(Debug, Clone, Copy, Default)]
struct WakeReasons {
    asked: bool,
    died: bool,
    mounts_changed: bool,
}

/// The evidence that a command was ended for its memory.
pub(super) fn out_of_memory(most: u64, of: &str) -> String {
    format!("out of memory: limit {most} bytes for {of}")
}

impl Supervisor {
    fn new(
        control: UnixStream,
        orders: Orders,
        main: i32,
        child_exits: ChildExits,
        home: Option<HomeModes>,
        mount_changes: Option<File>,
    ) -> Supervisor {
        // Allowed to the superuser; to others the difference to their commands must do.
        let _as_it_is = rustix::process::setpriority_process(None, HIGHEST);
        child_exits.notify_next();
        Supervisor {
            control,
            daemon: true,
            orders,
            main,
            main_status: None,
            ending: Ending::No,
            evidence: Vec::new(),
            child_exits,
            mount_changes,
            last_forked: None,
            last_weighed: None,
            home,
            last_restored: None,
        }
    }

    /// Until nothing of the command is left.
    fn run_until_over(mut self) {
        loop {
            let reasons = self.wait_for_event();
            // First: until then the command can write.
            if reasons.mounts_changed {
                self.verify_mounts();
            }
            if reasons.asked {
                self.read_request();
            }
            if reasons.died && self.reap_children() {
                break;
            }
            self.enforce_limits();
            self.restore_home_modes();
        }
        // Nothing of the command is left that could change them again.
        if let Some(home) = &self.home {
            home.restore();
        }
        let (exit_code, signal) = self.main_status.unwrap_or_default();
        let report = Report::Ended { exit_code, signal, evidence: self.evidence };
        // A daemon that is gone finds nothing left to find.
        let _unheard = orders::write_frame(&self.control, &report);
    }

    /// Sleeps until something is said, something died, or it is time to look.
    fn wait_for_event(&self) -> WakeReasons {
        let tick = Duration::from_millis(limits::FAMILY_TICK_MS);
        let timeout = match self.ending {
            Ending::No if self.orders.processes_max.is_some() => Some(tick),
            Ending::No => self.bounds_memory().then_some(Duration::from_millis(limits::MEMORY_TICK_MS)),
            Ending::Gently { until } => Some(until.saturating_duration_since(Instant::now()).min(tick)),
            Ending::Killing => Some(tick),
        };
        let home = self.home.is_some().then_some(Duration::from_millis(limits::HOME_TICK_MS));
        let timeout = timeout.into_iter().chain(home).min();
        let timeout = timeout.and_then(|wait| Timespec::try_from(wait).ok());
        let control = if self.daemon { PollFlags::IN } else { PollFlags::empty() };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.child_exits.bell.as_fd(), PollFlags::IN),
            PollFd::new(&self.control, control),
        ];
        polled.extend(self.mount_changes.as_ref().map(|changes| PollFd::new(changes, PollFlags::PRI)));
        if rustix::event::poll(&mut polled, timeout.as_ref()).is_err() {
            return WakeReasons::default();
        }
        let happened = |nth: usize| polled.get(nth).is_some_and(|one| !one.revents().is_empty());
        WakeReasons { died: happened(0), asked: self.daemon && happened(1), mounts_changed: happened(2) }
    }

    /// A program outside may have replaced a protected file, and taken the mount on it away. A mount that is made anew
    /// would not hold a process that has the file open for writing by then, so the command ends.
    fn verify_mounts(&mut self) {
        self.signal_all(Signal::STOP);
        match mounts::verify_all(&self.orders) {
            Ok(()) => self.signal_all(Signal::CONT),
            Err(error) => self.kill_all(&format!(
                "unprotected: {error}; a program outside of the sandbox replaced or removed it while the command ran, and \
                 the command was ended; look at it before you run git there"
            )),
        }
    }

    fn read_request(&mut self) {
        match orders::read_frame(&self.control) {
            Ok(Some(StopRequest::End)) => self.end_gently("term_sent"),
            Ok(Some(StopRequest::Kill)) => self.kill_all("killed"),
            Ok(None) | Err(_) => {
                self.daemon = false;
                self.kill_all("daemon_gone");
            }
        }
    }

    /// Reaps children that ended. True when none is left: every process that still lives descends from a child of ours,
    /// because orphans are adopted.
    fn reap_children(&mut self) -> bool {
        let mut byte = [0];
        let _spent = rustix::io::read(&self.child_exits.bell, &mut byte);
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid.as_raw_nonzero().get() == self.main {
                        self.main_status = Some((status.exit_status(), status.terminating_signal()));
                    }
                }
                Ok(None) => break,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        if self.main_status.is_some() && self.ending == Ending::No {
            let left = self.list_descendants().iter().filter(|one| !one.is_over()).count();
            if left > 0 {
                let processes = if left == 1 { "process" } else { "processes" };
                self.end_gently(&format!("ended {left} {processes} it left behind"));
            }
        }
        self.child_exits.notify_next();
        false
    }

    fn enforce_limits(&mut self) {
        match self.ending {
            Ending::Gently { until } if Instant::now() >= until => self.kill_all("killed"),
            Ending::No | Ending::Gently { .. } => {
                self.enforce_process_limit();
                self.enforce_memory_limit();
            }
            // Processes that were started while the others ended.
            Ending::Killing => self.kill_remaining(),
        }
    }

    /// Less often than commands fork: it looks at each file in the home.
    fn restore_home_modes(&mut self) {
        let every = Duration::from_millis(limits::HOME_TICK_MS);
        let Some(home) = &self.home else { return };
        if self.last_restored.is_none_or(|at| at.elapsed() >= every) {
            home.restore();
            self.last_restored = Some(Instant::now());
        }
    }

    fn enforce_process_limit(&mut self) {
        let Some(max) = self.orders.processes_max else { return };
        // The last id that was given out: unless it moved, nobody was started, and nobody needs counting.
        let last_forked = std::fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split_ascii_whitespace().nth(4)?.parse().ok());
        if last_forked.is_some() && last_forked == self.last_forked {
            return;
        }
        self.last_forked = last_forked;
        if self.list_descendants().len() > usize::try_from(max).unwrap_or(usize::MAX) {
            self.kill_all(&format!("process_limit {max}"));
        }
    }

    fn bounds_memory(&self) -> bool {
        self.orders.memory_max.is_some() || self.orders.scratch.len() > 1
    }

    /// Whether there is too much in memory, where nothing else bounds it. Looked at less often than processes are
    /// counted: it takes longer, and memory does not grow as fast.
    fn enforce_memory_limit(&mut self) {
        let every = Duration::from_millis(limits::MEMORY_TICK_MS);
        if !self.bounds_memory() || self.last_weighed.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.last_weighed = Some(Instant::now());
        let (scratch, most) = (&self.orders.scratch, self.orders.scratch_max);
        if scratch.len() > 1 && memory::folder_bytes(scratch) > most {
            self.kill_all(&format!("scratch is full: limit {most} bytes in all private folders together"));
        }
        let Some(most) = self.orders.memory_max else { return };
        if memory::used_bytes(&self.list_descendants(), &self.orders.scratch, most) > most {
            self.kill_all(&out_of_memory(most, "this command"));
        }
    }

    fn end_gently(&mut self, why: &str) {
        if self.ending != Ending::No {
            return;
        }
        self.evidence.push(why.to_owned());
        self.ending = Ending::Gently { until: Instant::now() + Duration::from_millis(self.orders.grace_ms) };
        self.signal_all(Signal::TERM);
        // One that is stopped hears nothing before it goes on.
        self.signal_all(Signal::CONT);
    }

    fn kill_all(&mut self, why: &str) {
        if self.ending == Ending::Killing {
            return;
        }
        self.evidence.push(why.to_owned());
        self.ending = Ending::Killing;
        self.kill_remaining();
    }

    fn kill_remaining(&self) {
        if self.orders.namespace {
            self.signal_all(Signal::KILL);
            return;
        }
        // The command's own group at once, which stops the widest bombs; then each of the others. Its id can't belong
        // to anybody else while its leader was not taken leave of.
        if let (None, Some(group)) = (self.main_status, Pid::from_raw(self.main)) {
            let _gone = rustix::process::kill_process_group(group, Signal::STOP);
        }
        process_list::kill_frozen(|| self.list_descendants());
    }

    fn signal_all(&self, signal: Signal) {
        if self.orders.namespace {
            // The group of the first process stands for everybody in its namespace but itself.
            let _nobody = rustix::process::kill_process_group(Pid::INIT, signal);
            return;
        }
        for one in self.list_descendants() {
            process_list::send_signal(one.identity, signal);
        }
    }

    /// Everybody who descends from the command, the dead among them.
    fn list_descendants(&self) -> Vec<ProcessStat> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        process_list::descendants(&process_list::list_processes(), &HashSet::from([own]))
    }
}
