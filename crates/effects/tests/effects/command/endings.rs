//! However a command ends, nothing of it is left.
use abide_kernel::refusal::ErrorCode;

use super::{World, until, with_and_without_sandbox};
use abide_effects::process::InputError;
use abide_effects::sandbox::{Mechanism, Mode, Sandbox};

with_and_without_sandbox!(
    says_how_it_ended,
    keeps_streams_apart,
    stop_reaches_those_that_left_the_session,
    one_that_ignores_the_signal_is_killed,
    force_kills_at_once,
    what_is_left_behind_is_ended,
    one_that_makes_itself_a_daemon_is_ended,
    one_that_closes_its_output_is_waited_for,
    a_stopped_one_is_ended,
    a_dropped_handle_ends_it,
    one_that_nobody_waits_for_any_more_is_ended,
    a_dropped_owner_ends_it,
    a_killed_supervisor_leaves_nothing,
    a_fork_bomb_is_bounded_and_stoppable,
    a_fork_bomb_is_bounded_by_looking,
    a_fork_bomb_of_sessions_is_bounded_by_looking,
    input_arrives,
    a_terminal_is_one,
    a_folder_that_is_not_there,
    the_environment_holds_no_credentials,
);

async fn one_that_nobody_waits_for_any_more_is_ended(world: World) {
    // Each command has a thread that lives as long as anything of it.
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    world.run("true").await;
    let before = threads();
    for _ in 0..3 {
        let mut start = Box::pin(world.processes.start(world.launch("sleep 1000")));
        tokio::select! {
            biased;
            _ = &mut start => panic!("it takes a thread, and that takes a moment"),
            () = std::future::ready(()) => {}
        }
    }
    until("nothing of them is left", || threads() <= before).await;
}

async fn says_how_it_ended(world: World) {
    let (ended, _) = world.run("exit 7").await;
    assert_eq!((ended.exit_code, ended.signal, ended.stopped), (Some(7), None, false));
    assert!(ended.evidence.is_empty(), "{:?}", ended.evidence);
    let (ended, _) = world.run("kill -9 $$").await;
    assert_eq!((ended.exit_code, ended.signal, ended.stopped), (None, Some(9), false));
}

async fn keeps_streams_apart(world: World) {
    let (ended, output) = world.run("echo one; echo two >&2; pwd").await;
    assert_eq!(ended.exit_code, Some(0));
    assert_eq!(output.stdout.whole().unwrap(), format!("one\n{}\n", world.path("root").display()).as_bytes());
    assert_eq!(output.stderr.whole().unwrap(), b"two\n");
    assert_eq!(output.combined.total, output.stdout.total + output.stderr.total);
}

async fn stop_reaches_those_that_left_the_session(world: World) {
    let process = world.start("setsid sleep 1000 & (setsid sh -c 'sleep 1000; true' &) ; touch up; sleep 1000").await;
    until("it runs", || world.path("root/up").exists() && world.alive(&process).len() >= 5).await;
    process.end(false);
    let ended = process.wait().await;
    assert!(ended.stopped);
    assert_eq!(ended.signal, Some(15));
    assert_eq!(ended.evidence, ["term_sent"]);
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn one_that_ignores_the_signal_is_killed(world: World) {
    let process = world.start("trap '' TERM; touch up; while :; do sleep 1; done").await;
    until("it runs", || world.path("root/up").exists()).await;
    process.end(false);
    let ended = process.wait().await;
    assert_eq!((ended.signal, ended.stopped), (Some(9), true));
    assert_eq!(ended.evidence, ["term_sent", "killed"]);
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn force_kills_at_once(world: World) {
    let process = world.start("trap '' TERM; setsid sleep 1000 & touch up; while :; do sleep 1; done").await;
    until("it runs", || world.path("root/up").exists()).await;
    process.end(true);
    let ended = process.wait().await;
    assert_eq!(ended.signal, Some(9));
    assert_eq!(ended.evidence, ["killed"]);
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn what_is_left_behind_is_ended(world: World) {
    let process = world.start("sleep 1000 & setsid sleep 1000 & exit 3").await;
    let ended = process.wait().await;
    assert_eq!((ended.exit_code, ended.stopped), (Some(3), false));
    assert_eq!(ended.evidence, ["ended 2 processes it left behind"]);
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn one_that_makes_itself_a_daemon_is_ended(world: World) {
    // Twice forked, in a session of its own, with a clean environment and nothing open.
    let process = world
        .start(
            "( ( env -i setsid sh -c 'echo $$ > pid; exec sleep 1000' </dev/null >/dev/null 2>&1 & ) & ); sleep 1000",
        )
        .await;
    until("the daemon runs", || world.path("root/pid").exists()).await;
    process.end(false);
    process.wait().await;
    let (left, _) = world.say("true").await;
    assert_eq!(left, "");
    let alive = super::carriers("sleep\x001000");
    let beneath = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == world.path("root"));
    assert_eq!(alive.into_iter().filter(beneath).count(), 0);
}

async fn one_that_closes_its_output_is_waited_for(world: World) {
    let (ended, output) = world.run("echo before; exec >&- 2>&-; sleep 0.3; touch after; exit 4").await;
    assert_eq!(ended.exit_code, Some(4));
    assert_eq!(output.combined.whole().unwrap(), b"before\n");
    assert!(world.path("root/after").exists());
}

async fn a_stopped_one_is_ended(world: World) {
    let process = world.start("sleep 1000 & kill -STOP $!; touch up; kill -STOP $$").await;
    until("it runs", || world.path("root/up").exists()).await;
    process.end(false);
    assert_eq!(process.wait().await.evidence, ["term_sent"]);
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn a_dropped_handle_ends_it(world: World) {
    let process = world.start("sleep 1000").await;
    let recovery = process.recovery();
    drop(process);
    until("it is gone", || super::carriers(super::marker_in(&recovery)).is_empty()).await;
}

async fn a_dropped_owner_ends_it(world: World) {
    let process = world.start("trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done").await;
    drop(world.processes);
    assert!(process.wait().await.stopped);
    assert_eq!(super::carriers(super::marker_in(&process.recovery())), [0; 0]);
}

async fn a_killed_supervisor_leaves_nothing(world: World) {
    let process = world.start("setsid sleep 1000 & touch up; sleep 1000").await;
    until("it runs", || world.path("root/up").exists()).await;
    let recovery = process.recovery();
    let pid: i32 = recovery.split(' ').nth(1).unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let ended = process.wait().await;
    assert!(ended.evidence.contains(&"supervisor_lost".to_owned()), "{:?}", ended.evidence);
    assert_eq!(world.alive(&process), [0; 0]);
}

/// It doubles eight times: far past any limit here, and the end of it where a limit fails.
const BOMB: &str =
    "bomb() { [ $1 = 0 ] && exec sleep 1000; bomb $(($1 - 1)) | bomb $(($1 - 1)) & wait; }; bomb 8; sleep 1000";

async fn a_fork_bomb_is_bounded_and_stoppable(world: World) {
    if world.processes.counted_by().is_err() {
        println!("not tested here: {:?}", world.processes.counted_by());
        return;
    }
    let process = world.start(BOMB).await;
    until("it is full", || world.alive(&process).len() >= 60).await;
    assert!(world.alive(&process).len() <= 70);
    process.end(true);
    let ended = process.wait().await;
    assert!(ended.stopped);
    assert_eq!(ended.evidence, ["killed", "process_limit 64"]);
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn a_fork_bomb_is_bounded_by_looking(world: World) {
    ends_by_its_limit(world.mechanism, BOMB).await;
}

async fn a_fork_bomb_of_sessions_is_bounded_by_looking(world: World) {
    // Each in a session of its own, so that no group holds them all.
    ends_by_its_limit(world.mechanism, "for i in $(seq 400); do setsid sleep 1000 & done; sleep 1000").await;
}

async fn ends_by_its_limit(mechanism: Mechanism, bomb: &str) {
    let world = World::build(mechanism, false).unwrap();
    assert!(world.processes.counted_by().is_err());
    let process = world.start(bomb).await;
    let ended = process.wait().await;
    assert_eq!(ended.evidence, ["process_limit 64"]);
    assert_eq!((ended.signal, ended.stopped), (Some(9), false));
    assert_eq!(world.alive(&process), [0; 0]);
}

async fn input_arrives(world: World) {
    let mut launch = world.launch("read line; echo \"got $line\"; cat");
    launch.accepts_input = true;
    let process = world.processes.start(launch).await.unwrap();
    assert_eq!(process.write(b"hello\nrest").await, Ok(10));
    process.close_input();
    assert_eq!(process.wait().await.exit_code, Some(0));
    assert_eq!(process.output().stdout.whole().unwrap(), b"got hello\nrest");
    assert_eq!(world.start("sleep 0.1").await.write(b"x").await, Err(InputError::NotAccepted));
}

async fn a_terminal_is_one(world: World) {
    let mut launch =
        world.launch("test -t 0 && test -t 1 && stty size; read line; echo got $line; read x < /dev/tty; echo $x");
    (launch.tty, launch.accepts_input) = (true, true);
    let process = world.processes.start(launch).await.unwrap();
    process.write(b"hello\nagain\n").await.unwrap();
    assert_eq!(process.wait().await.exit_code, Some(0));
    let text = String::from_utf8(process.output().combined.whole().unwrap()).unwrap();
    assert!(text.contains("40 120\r\n") && text.contains("got hello\r\n") && text.ends_with("again\r\n"), "{text:?}");
}

async fn a_folder_that_is_not_there(world: World) {
    let mut launch = world.launch("true");
    launch.root = world.path("nowhere");
    let error = world.processes.start(launch).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::BadFolder);
    std::os::unix::fs::symlink(world.path("outside"), world.path("turned")).unwrap();
    let mut launch = world.launch("true");
    launch.root = world.path("turned");
    let error = world.processes.start(launch).await.unwrap_err();
    assert!(error.message.contains("symbolic link"), "{error:?}");
}

async fn the_environment_holds_no_credentials(world: World) {
    let (names, _) = world.say("env | cut -d= -f1").await;
    let secret =
        |name: &&str| ["_KEY", "_TOKEN", "_SECRET"].iter().any(|end| name.ends_with(end)) || name.starts_with("SSH_");
    assert_eq!(names.lines().find(secret), None);
    let of_ours: Vec<&str> = names.lines().filter(|name| name.starts_with("ABIDE")).collect();
    assert_eq!(of_ours, ["ABIDE_PROCESS"]);
}

#[tokio::test]
async fn one_that_stops_its_supervisor_is_ended() {
    let world = World::new(Mechanism::None).unwrap();
    let process = world.start("sleep 0.5; kill -STOP $PPID; setsid sleep 1000 & touch up; sleep 1000").await;
    until("it runs", || world.path("root/up").exists()).await;
    process.end(true);
    let ended = process.wait().await;
    assert_eq!(ended.evidence.first().map(String::as_str), Some("supervisor_lost"));
    assert_eq!(world.alive(&process), [0; 0]);
}

#[tokio::test]
async fn required_refuses_where_nothing_works() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::probe_among(Mode::Required, dir.path(), &[]);
    assert!(sandbox.refuses() && sandbox.enforced(false) == ["processes", "memory"] && !sandbox.problems().is_empty());
    let world = World::new(Mechanism::Landlock).or_else(|| World::new(Mechanism::Bubblewrap)).unwrap();
    let options = abide_effects::process::Options {
        program: super::STAND_IN.into(),
        home: dir.path().to_path_buf(),
        sandbox,
        control_groups: true,
        bounds: abide_effects::process::Bounds::default(),
    };
    let processes = abide_effects::process::Processes::new(options).unwrap();
    assert_eq!(processes.start(world.launch("true")).await.unwrap_err().code, ErrorCode::SandboxRequired);
}
