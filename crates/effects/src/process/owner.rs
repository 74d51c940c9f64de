//! The thread that owns one command until nothing of it is left: it takes in the output and says how the command
//! ended. It must come to its end whatever the command and its supervisor do.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use abide_kernel::refusal::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::sync::oneshot;

use super::begin::{self, SCRATCH, Scratch};
use super::disk;
use super::family::Member;
use super::group::{Found, Group};
use super::heads::{self, Heads};
use super::orders::{self, Ask, Report};
use super::supervise::out_of_memory;
use super::sweep::{self, Swept};
use super::{Bounds, Ended, Handle, Launch, Owner, Process, Shared, Store, family, wires};
use crate::limits;
use crate::secrets::MaskedStream;

pub(super) fn own(owner: Arc<Owner>, launch: Launch, ready: oneshot::Sender<Result<Process, Refusal>>) {
    match begin::begin(&owner, &launch) {
        Ok(begun) => {
            // The command has streams of its own by now: who reads their other ends has to see it close them.
            drop(launch);
            owner.remember(&begun.shared);
            disk::watch(&owner, &begun.shared);
            // While it runs it must not keep its owner: the owner's end is its end.
            drop(owner);
            let process = Process(Arc::new(Handle(Arc::clone(&begun.shared))));
            // Whoever asked may be gone; then this drops the only handle, and that ends it.
            drop(ready.send(Ok(process)));
            begun.attend();
        }
        Err(error) => {
            let _gone = ready.send(Err(error));
        }
    }
}

/// A command that runs.
pub(super) struct Begun {
    pub shared: Arc<Shared>,
    pub supervisor: Member,
    pub child: Child,
    pub wires: wires::Ours,
    pub group: Option<Group>,
    pub scratch: Option<Scratch>,
    pub marker: String,
    /// Git directories to make valid again when it has ended.
    pub heads: Heads,
    pub processes_max: u32,
    pub bounds: Bounds,
    /// The kernel killed one of its processes for the memory of its agent.
    pub out_of_memory: bool,
}

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

/// How the supervisor says it ended.
struct Told {
    exit_code: Option<i32>,
    signal: Option<i32>,
    evidence: Vec<String>,
}

const KILLED: i32 = 9;

impl Begun {
    fn attend(mut self) {
        let told = self.take_in();
        let supervised = told.is_some();
        let Told { exit_code, signal, mut evidence } = told.unwrap_or(Told {
            exit_code: None,
            signal: Some(KILLED),
            evidence: vec!["supervisor_lost".to_owned()],
        });
        if !supervised {
            // Whatever the supervisor did not live to end. With a namespace it is nothing: that died with it.
            let left = sweep::sweep(|found| (found == self.marker).then(String::new));
            let count: usize = left.iter().map(|swept| swept.pids.len()).sum();
            evidence.push(format!("ended {count} by their marker"));
        }
        let _status = self.child.wait();
        if self.group.as_ref().is_some_and(Group::was_full) {
            evidence.push(format!("process_limit {}", self.processes_max));
        }
        self.look_at_memory();
        if self.out_of_memory {
            evidence.push(out_of_memory(self.bounds.memory_bytes, "all commands of this agent together"));
        }
        let for_disk = self.shared.for_disk().clone();
        let unasked = self.out_of_memory || for_disk.is_some();
        evidence.extend(for_disk);
        self.group = None;
        self.scratch = None;
        // Before anybody hears of the end: the user's next git may follow at once.
        evidence.extend(self.heads.restore());
        drop(std::mem::take(&mut self.heads));
        let mut guard = self.shared.store();
        evidence.extend(guard.end().map(|problem| format!("output_not_kept {problem}")));
        let stopped = self.shared.asked.load(Ordering::Relaxed) > 0 && !unasked;
        // Said while the store is held: who asks to keep the output either sees the end or is in time for it.
        self.shared.ended.send_replace(Some(Ended { exit_code, signal, evidence, stopped }));
        drop(guard);
        drop(self.shared.over.0.lock());
        self.shared.over.1.notify_all();
    }

    /// Reads until the supervisor said its last word and nobody is left who could write.
    fn take_in(&mut self) -> Option<Told> {
        let mut buffer = vec![0; limits::TAKEN_BYTES];
        let (mut told, mut drained_by, mut connected) = (None, None, true);
        let mut given_up_at = None;
        let every = Duration::from_millis(limits::MEMORY_TICK_MS);
        let mut look_at = self.group.is_some().then(|| Instant::now() + every);
        loop {
            let open = self.wires.output.is_some() || self.wires.error.is_some();
            let drained = drained_by.is_some_and(|by| Instant::now() >= by);
            if !connected && (!open || drained) {
                return told;
            }
            let ready = self.poll(connected, [drained_by, given_up_at, look_at.filter(|_| connected)]);
            self.shared.store().settle();
            if look_at.is_some_and(|at| connected && Instant::now() >= at) {
                self.look_at_memory();
                look_at = (!self.out_of_memory).then(|| Instant::now() + every);
            }
            if ready.asked {
                given_up_at = Some(self.patience());
            }
            if connected && given_up_at.is_some_and(|at| Instant::now() >= at) {
                given_up_at = None;
                self.give_up();
            }
            if ready.output {
                Self::read(&self.shared, &mut self.wires.output, Stream::Output, &mut buffer);
            }
            if ready.error {
                Self::read(&self.shared, &mut self.wires.error, Stream::Error, &mut buffer);
            }
            if ready.control {
                told = match orders::read_frame(&self.shared.control) {
                    Ok(Some(Report::Ended { exit_code, signal, evidence })) => {
                        Some(Told { exit_code, signal, evidence })
                    }
                    Ok(Some(Report::Started | Report::NotStarted { .. }) | None) | Err(_) => told,
                };
                connected = false;
                drained_by = Some(Instant::now() + Duration::from_millis(limits::DRAIN_MS));
            }
            self.shared.store().advance_files();
        }
    }

    /// The kernel killed one process; the rest of the command would hold on to its memory, and go on without it.
    fn look_at_memory(&mut self) {
        if !self.out_of_memory && self.group.as_ref().is_some_and(Group::ran_out_of_memory) {
            self.out_of_memory = true;
            self.shared.ask(Ask::Kill);
        }
    }

    /// Until when the supervisor may take to do what it was asked to.
    fn patience(&self) -> Instant {
        let mut count = [0; 8];
        let _rung = rustix::io::read(&self.shared.bell, &mut count);
        let gently = self.shared.asked.load(Ordering::Relaxed) < Ask::Kill.urgency();
        let grace = if gently { limits::END_GRACE_MS } else { 0 };
        Instant::now() + Duration::from_millis(grace + limits::SUPERVISOR_GRACE_MS)
    }

    /// The supervisor does not do its part: somebody stopped it, say. Its end is noticed as the end of its connection.
    fn give_up(&mut self) {
        family::signal(self.supervisor, Signal::KILL);
        let _gone = self.child.kill();
    }

    fn poll(&self, connected: bool, times: [Option<Instant>; 3]) -> Ready {
        let control = connected.then(|| self.shared.control.as_fd());
        let bell = connected.then(|| self.shared.bell.as_fd());
        let (output, error) = (self.wires.output.as_ref().map(AsFd::as_fd), self.wires.error.as_ref().map(AsFd::as_fd));
        let wires = [control, output, error, bell];
        let mut polled: Vec<PollFd<'_>> =
            wires.iter().flatten().map(|wire| PollFd::from_borrowed_fd(*wire, PollFlags::IN)).collect();
        let due = self.shared.store().due();
        let until = times.into_iter().chain(due).flatten().min();
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|wait| Timespec::try_from(wait).ok());
        if rustix::event::poll(&mut polled, timeout.as_ref()).is_err() {
            return Ready { control: false, output: false, error: false, asked: false };
        }
        let mut found = polled.iter().map(|one| !one.revents().is_empty());
        let [control, output, error, asked] = wires.map(|wire| wire.is_some() && found.next().unwrap_or_default());
        Ready { control, output, error, asked }
    }

    fn read(shared: &Shared, wire: &mut Option<OwnedFd>, stream: Stream, buffer: &mut [u8]) {
        let Some(open) = wire.as_ref() else { return };
        match rustix::io::read(open, &mut *buffer) {
            Ok(0) => {
                shared.store().close(stream);
                *wire = None;
            }
            Ok(count) => shared.store().push(stream, &buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A terminal that nobody has open any more answers with an error.
            Err(_) => *wire = None,
        }
    }
}

struct Ready {
    control: bool,
    output: bool,
    error: bool,
    asked: bool,
}

impl Store {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let masked = self.masked(stream).push(bytes);
        self.put(stream, &masked);
        self.plan_to_settle();
    }

    /// Shows the output that was held back for long enough.
    fn settle(&mut self) {
        if self.settle_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.settle_at = None;
        for stream in [Stream::Output, Stream::Error] {
            let settled = self.masked(stream).settle();
            self.put(stream, &settled);
        }
        self.plan_to_settle();
    }

    fn plan_to_settle(&mut self) {
        if self.settle_at.is_none() && self.masked.iter().any(MaskedStream::is_pending) {
            self.settle_at = Some(Instant::now() + limits::MASK_INTERVAL);
        }
    }

    /// The stream is over: the part that was held back is shown.
    fn close(&mut self, stream: Stream) {
        let rest = self.masked(stream).end();
        self.put(stream, &rest);
    }

    fn masked(&mut self, stream: Stream) -> &mut MaskedStream {
        let [output, error] = &mut self.masked;
        match stream {
            Stream::Output => output,
            Stream::Error => error,
        }
    }

    fn put(&mut self, stream: Stream, bytes: &[u8]) {
        self.combined.push(bytes);
        match stream {
            Stream::Output => self.stdout.push(bytes),
            Stream::Error => self.stderr.push(bytes),
        }
        // Under the same lock: a reader of the files finds no less than a reader of the memory found before it.
        self.advance_files();
    }

    fn advance_files(&mut self) {
        if let Some(files) = &mut self.files {
            files.advance(&self.combined);
        }
    }

    /// When the files, and the output that is held back, have to be looked after, if nothing else happens.
    fn due(&self) -> [Option<Instant>; 2] {
        [self.files.as_ref().and_then(|files| files.due(&self.combined)), self.settle_at]
    }

    /// The last of it is in the files; or what went wrong with them.
    fn end(&mut self) -> Option<String> {
        for stream in [Stream::Output, Stream::Error] {
            self.close(stream);
        }
        let files = self.files.as_mut();
        let late = files.and_then(|files| {
            files.end(&self.combined);
            files.problem().map(str::to_owned)
        });
        self.problem.take().or(late)
    }
}

/// What earlier lives left: what carries their marker, what sits in their groups, git directories that they
/// damaged, and their scratch folders.
pub(super) fn sweep(owner: &Owner) -> Vec<Swept> {
    let mut swept = sweep::sweep(|found| owner.marker.earlier(found).map(str::to_owned));
    if let Ok(groups) = &owner.groups {
        let (home, life) = (format!("abide-{}-", owner.marker.home()), format!("-{}.", owner.marker.life()));
        let alive = |pid: &i32| family::stat(*pid).is_some_and(|one| !one.is_over());
        for mut found in groups.named(&home).into_iter().filter(|found| !found.agent.contains(&life)) {
            found.pids.retain(alive);
            let same = |one: &Found| one.agent == found.agent && one.command == found.command;
            let members = || groups.named(&found.agent).into_iter().filter(same).flat_map(|one| one.pids);
            sweep::until_gone(|| members().filter_map(family::stat).collect());
            if let (Some(command), false) = (&found.command, found.pids.is_empty()) {
                let label = command.split_once('.').map_or(command.as_str(), |(_, label)| label);
                match swept.iter_mut().find(|one| one.label == label) {
                    Some(one) => one.pids.extend(&found.pids),
                    None => {
                        swept.push(Swept { label: label.to_owned(), pids: found.pids.clone(), evidence: Vec::new() })
                    }
                }
            }
            groups.remove(&found);
        }
    }
    for (label, evidence) in heads::restore_left(&owner.home, owner.marker.life()) {
        match swept.iter_mut().find(|one| one.label == label) {
            Some(one) => one.evidence.extend(evidence),
            None if evidence.is_empty() => {}
            None => swept.push(Swept { label, pids: Vec::new(), evidence }),
        }
    }
    for entry in fs::read_dir(owner.home.join(SCRATCH)).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(owner.marker.life()) {
            let _kept = fs::remove_dir_all(entry.path());
        }
    }
    swept
}
