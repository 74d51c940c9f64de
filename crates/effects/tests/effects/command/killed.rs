//! The daemon is killed, alone or with its supervisors: nothing of its commands runs once it is back.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use super::{STAND_IN, World, carriers, marker_in, probe, until, with_and_without_sandbox};
use abide_effects::process::{Bounds, Options, Processes, read_output_files};

with_and_without_sandbox!(
    nothing_outlives_a_killed_daemon,
    nothing_outlives_daemon_and_supervisor_killed_together,
    output_outlives_both,
    others_are_not_touched,
    one_without_a_marker_is_found_by_its_group,
);

/// A daemon in another process, with one command that runs.
pub(super) struct Daemon {
    child: Child,
    pub(super) recovery: String,
}

impl Daemon {
    pub(super) fn start(world: &World, command: &str, control_groups: bool) -> Daemon {
        let mut start = Command::new(STAND_IN);
        start.arg(world.path("home")).arg(world.path("root")).arg(world.mechanism.as_str()).arg(command);
        if !control_groups {
            start.env("NO_CONTROL_GROUPS", "1");
        }
        let mut child = start.env("KEEP", world.path("kept")).stdout(Stdio::piped()).spawn().unwrap();
        let mut recovery = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut recovery).unwrap();
        Daemon { child, recovery: recovery.trim().to_owned() }
    }

    fn marker(&self) -> &str {
        marker_in(&self.recovery)
    }

    fn supervisor(&self) -> Pid {
        Pid::from_raw(self.recovery.split(' ').nth(1).unwrap().parse().unwrap()).unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Neither gets to notice that the other is gone.
    pub(super) fn kill_with_supervisor(&mut self) {
        let daemon = Pid::from_child(&self.child);
        rustix::process::kill_process(daemon, Signal::STOP).unwrap();
        rustix::process::kill_process(self.supervisor(), Signal::STOP).unwrap();
        rustix::process::kill_process(daemon, Signal::KILL).unwrap();
        rustix::process::kill_process(self.supervisor(), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

const STUBBORN: &str =
    "trap '' TERM HUP; (setsid sh -c \"trap '' TERM; sleep 1000; sleep 1000\" &) ; touch up; while :; do sleep 1; done";

async fn nothing_outlives_a_killed_daemon(world: World) {
    let mut daemon = Daemon::start(&world, STUBBORN, true);
    until("it runs", || world.path("root/up").exists() && carriers(daemon.marker()).len() >= 4).await;
    daemon.kill();
    until("nothing is left", || carriers(daemon.marker()).is_empty()).await;
    assert_eq!(world.processes.sweep_earlier_lives(), []);
}

async fn nothing_outlives_daemon_and_supervisor_killed_together(world: World) {
    for control_groups in [true, false] {
        let mut daemon = Daemon::start(&world, STUBBORN, control_groups);
        until("it runs", || world.path("root/up").exists() && carriers(daemon.marker()).len() >= 4).await;
        daemon.kill_with_supervisor();
        let swept = world.processes.sweep_earlier_lives();
        assert_eq!(carriers(daemon.marker()), [0; 0], "{swept:?}");
        assert!(swept.iter().all(|one| one.label == "stand_in"), "{swept:?}");
        std::fs::remove_file(world.path("root/up")).unwrap();
    }
    assert_eq!(std::fs::read_dir(world.path("home/scratch")).map_or(0, Iterator::count), 0);
}

async fn output_outlives_both(world: World) {
    let mut daemon = Daemon::start(&world, "echo early; sleep 1000", true);
    let read = || read_output_files(&world.path("kept"), 0, 100).map(|chunk| chunk.bytes).unwrap_or_default();
    until("it said something", || read() == b"early\n").await;
    daemon.kill_with_supervisor();
    let _swept = world.processes.sweep_earlier_lives();
    assert_eq!(read(), b"early\n");
}

async fn others_are_not_touched(world: World) {
    // The same command of another home, and one of this life.
    let other = World::new(world.mechanism).unwrap();
    let (theirs, ours) = (other.start("sleep 1000").await, world.start("sleep 1000").await);
    let mut daemon = Daemon::start(&world, "sleep 1000", true);
    daemon.kill_with_supervisor();
    let home = world.path("home");
    let sandbox = probe(world.mechanism, &home);
    let _swept = world.processes.sweep_earlier_lives();
    assert_eq!((theirs.exit(), ours.exit()), (None, None));
    // The next life of this home takes them for what they are not: its own past.
    let options = Options { program: STAND_IN.into(), home, sandbox, control_groups: true, bounds: Bounds::default() };
    let swept = Processes::new(options).unwrap().sweep_earlier_lives();
    assert!(swept.iter().any(|one| one.label == "label"), "{swept:?}");
    assert_eq!(theirs.exit(), None);
    ours.wait().await;
}

async fn one_without_a_marker_is_found_by_its_group(world: World) {
    if world.processes.process_counter().is_err() {
        println!("not tested here: {:?}", world.processes.process_counter());
        return;
    }
    let mut daemon = Daemon::start(&world, "(env -i setsid sh -c 'touch up; exec sleep 1000' &) ; sleep 1000", true);
    until("it runs", || world.path("root/up").exists()).await;
    daemon.kill_with_supervisor();
    let _swept = world.processes.sweep_earlier_lives();
    let in_root = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == world.path("root"));
    let left: Vec<i32> = carriers("sleep\x001000").into_iter().filter(in_root).collect();
    assert_eq!(left, [0; 0]);
}
