//! How much memory commands may have: all of an agent's together where a control group counts, else each of them; with
//! what lies in their private folders.

use std::fs;
use std::path::PathBuf;

use abide_effects::process::{Bounds, Launch, Process, ProcessExit};
use abide_effects::sandbox::Mechanism;

use super::killed::Daemon;
use super::{STAND_IN, World, in_each_sandbox, marker_in, until};

in_each_sandbox!(large_reservations_are_free, nothing_is_left_of_a_group, leftover_groups_are_swept);

const MIB: u64 = 1 << 20;

fn world(mechanism: Mechanism, control_groups: bool, memory: u64, scratch: u64) -> Option<World> {
    let bounds = Bounds { memory_bytes: memory, scratch_bytes: scratch, ..Bounds::default() };
    let world = World::bounded(mechanism, control_groups, bounds)?;
    if control_groups && world.processes.memory_bounded_by().is_err() {
        println!("not tested here: {:?}", world.processes.memory_bounded_by());
        return None;
    }
    Some(world)
}

async fn start(world: &World, agent: &str, command: &str) -> Process {
    let agent = agent.to_owned();
    let launch = Launch { agent, extra_read: vec![STAND_IN.into()], ..world.launch(command) };
    world.processes.start(launch).await.unwrap()
}

/// So that nothing of them is left for the next boot of a home that is gone.
async fn end(processes: &[Process]) {
    for process in processes {
        process.stop(true);
        process.wait().await;
    }
}

fn ran_out(ended: &ProcessExit) -> bool {
    let said = ended.evidence.iter().any(|line| line.starts_with("out of memory: limit "));
    assert!(!said || !ended.stopped, "nobody asked for it: {ended:?}");
    said
}

/// Holds everything in memory: there is no end of a line in it.
fn hog(mib: u64) -> String {
    format!("head -c {mib}M /dev/zero | tail; echo done")
}

/// Each mechanism, with control groups and without.
const CASES: [(Mechanism, bool); 6] = [
    (Mechanism::Bubblewrap, true),
    (Mechanism::Bubblewrap, false),
    (Mechanism::Landlock, true),
    (Mechanism::Landlock, false),
    (Mechanism::None, true),
    (Mechanism::None, false),
];

#[tokio::test]
async fn a_command_that_takes_too_much_is_ended_alone() {
    for (mechanism, control_groups) in CASES {
        let Some(world) = world(mechanism, control_groups, 200 * MIB, 1 << 30) else { continue };
        let other = start(&world, "other", "sleep 1000").await;
        let ended = start(&world, "agent", &hog(600)).await.wait().await;
        assert!(ran_out(&ended), "{mechanism:?} {control_groups}: {ended:?}");
        assert!(ended.evidence.iter().any(|line| line.contains("limit 209715200 bytes")), "{ended:?}");
        assert_eq!(other.exit(), None, "nobody else is hurt");
        let fits = start(&world, "agent", &hog(60)).await.wait().await;
        assert_eq!((fits.exit_code, fits.evidence), (Some(0), Vec::new()), "there is room again");
        end(&[other]).await;
    }
}

#[tokio::test]
async fn private_folders_in_memory_count() {
    for control_groups in [true, false] {
        let Some(world) = world(Mechanism::Bubblewrap, control_groups, 200 * MIB, 1 << 30) else { continue };
        // No process owns what lies there: the command itself sleeps.
        let command = "for folder in /tmp /var/tmp /run $HOME /dev/shm; do head -c 100M /dev/zero > $folder/big; done; sleep 1000";
        let ended = start(&world, "agent", command).await.wait().await;
        assert!(ran_out(&ended), "{control_groups}: {ended:?}");
    }
}

#[tokio::test]
async fn memory_files_count() {
    for control_groups in [true, false] {
        let Some(world) = world(Mechanism::Bubblewrap, control_groups, 200 * MIB, 1 << 30) else { continue };
        let ended = start(&world, "agent", &format!("{STAND_IN} __memory_file 400")).await.wait().await;
        assert!(ran_out(&ended), "{control_groups}: {ended:?}");
    }
}

/// The buffers of sockets and files that are on their way through one belong to no process that could be looked at.
#[tokio::test]
async fn open_files_are_limited_where_only_processes_are_looked_at() {
    let ours = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    for (mechanism, control_groups) in CASES {
        let Some(world) = world(mechanism, control_groups, 200 * MIB, 1 << 30) else { continue };
        let process = start(&world, "agent", "ulimit -Hn; ulimit -n 1000000 2>/dev/null || echo refused").await;
        process.wait().await;
        let text = String::from_utf8(process.output().stdout.whole().unwrap()).unwrap();
        let bounded = !control_groups;
        if bounded && ours.is_none_or(|ours| ours > 1_024) {
            assert!(text.starts_with("1024\n"), "{mechanism:?}: {text}");
        } else if !bounded {
            assert!(!text.starts_with("1024\n") || ours == Some(1_024), "{mechanism:?}: {text}");
        }
        // An administrator may raise it; in a sandbox nobody is one.
        assert!(mechanism == Mechanism::None || text.ends_with("refused\n"), "{mechanism:?}: {text}");
    }
}

#[tokio::test]
async fn all_private_folders_share_one_bound() {
    let Some(world) = world(Mechanism::Bubblewrap, true, 1 << 30, 64 * MIB) else { return };
    let command = "for folder in /tmp /var/tmp /run $HOME /dev/shm; do
            head -c 30M /dev/zero > $folder/big; stat -c %s $folder/big; done 2>/dev/null
        touch /dev/file /.abide-scratch/file 2>/dev/null || echo no other";
    let process = start(&world, "agent", command).await;
    process.wait().await;
    let text = String::from_utf8(process.output().stdout.whole().unwrap()).unwrap();
    let (sizes, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.parse::<u64>().is_ok());
    let total: u64 = sizes.iter().map(|size| size.parse::<u64>().unwrap()).sum();
    assert_eq!(sizes.len(), 5, "{text}");
    assert!((60 * MIB..=64 * MIB).contains(&total), "{text}");
    assert_eq!(rest, ["no other"]);
}

#[tokio::test]
async fn the_commands_of_an_agent_share_one_bound() {
    let Some(world) = world(Mechanism::Bubblewrap, true, 200 * MIB, 1 << 30) else { return };
    let folder = |name: &str| format!("head -c 120M /dev/zero > /tmp/big; touch {name}; sleep 1000");
    let first = start(&world, "agent", &folder("first")).await;
    let other = start(&world, "other", &folder("other")).await;
    until("both hold it", || world.path("root/first").exists() && world.path("root/other").exists()).await;
    assert_eq!((first.exit(), other.exit()), (None, None), "each has room for its own");
    let second = start(&world, "agent", &folder("second")).await;
    until("one of the agent's has ended", || first.exit().or(second.exit()).is_some()).await;
    let ended = first.exit().or(second.exit()).unwrap();
    assert!(ran_out(&ended), "{ended:?}");
    assert_eq!(other.exit(), None);
    end(&[first, second, other]).await;
}

/// As Node, Go and the JVM do.
async fn large_reservations_are_free(world: World) {
    let mechanism = world.mechanism;
    for control_groups in [true, false] {
        let Some(world) = self::world(mechanism, control_groups, 400 * MIB, 1 << 30) else { continue };
        // 64 GiB of addresses; and 150 MiB that nine processes share.
        for what in ["__reserve", "__share 150"] {
            let process = start(&world, "agent", &format!("{STAND_IN} {what}")).await;
            let ended = process.wait().await;
            assert_eq!((ended.exit_code, &ended.evidence), (Some(0), &Vec::new()), "{what} {control_groups}");
        }
    }
}

/// The groups of this home that are there.
fn groups(recovery: &str) -> Vec<PathBuf> {
    let home = marker_in(recovery).split('.').next().unwrap();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut found = Vec::new();
    for line in own.lines() {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let base = PathBuf::from("/sys/fs/cgroup").join(controllers).join(path.trim_start_matches('/'));
        let entries = fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path());
        found.extend(entries.filter(|path| path.to_string_lossy().contains(&format!("abide-{home}-"))));
    }
    found
}

async fn nothing_is_left_of_a_group(world: World) {
    if world.processes.process_counter().is_err() {
        println!("not tested here: {:?}", world.processes.process_counter());
        return;
    }
    let process = start(&world, "agent", "sleep 1000").await;
    let second = start(&world, "agent", "true").await;
    second.wait().await;
    assert!(!groups(&process.recovery()).is_empty());
    process.stop(true);
    process.wait().await;
    assert_eq!(groups(&process.recovery()), Vec::<PathBuf>::new());
}

async fn leftover_groups_are_swept(world: World) {
    if world.processes.process_counter().is_err() {
        println!("not tested here: {:?}", world.processes.process_counter());
        return;
    }
    let mut daemon = Daemon::start(&world, "sleep 1000", true);
    let recovery = daemon.recovery.clone();
    assert!(!groups(&recovery).is_empty());
    daemon.kill_with_supervisor();
    let _swept = world.processes.sweep_earlier_lives();
    assert_eq!(groups(&recovery), Vec::<PathBuf>::new());
}
