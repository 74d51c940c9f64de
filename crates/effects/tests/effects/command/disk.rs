//! The reserve of a disk, on a small file system of its own: a command that fills it is ended, the others go on, and its
//! agent starts none before there is room.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_effects::process::{Bounds, Ended, Launch, Process};
use abide_kernel::refusal::ErrorCode;

use super::{STAND_IN, World, in_each_sandbox, until};

in_each_sandbox!(
    the_command_that_fills_a_disk_is_ended,
    room_counts_however_it_is_taken,
    room_that_was_given_back_does_not_count,
    in_a_shared_folder_open_files_and_written_bytes_decide,
    a_command_is_not_blamed_for_another_that_ended,
    nobody_is_ended_for_a_disk_that_others_fill,
    the_command_that_takes_all_inodes_is_ended,
    nobody_is_ended_for_inodes_that_others_take,
);

const MIB: u64 = 1 << 20;

/// Gone with the value.
struct Mounted(PathBuf);

impl Mounted {
    fn at(folder: &Path) -> Option<Mounted> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m,nr_inodes=12000,mode=700", "tmpfs"]).arg(folder);
        let done = mount.output().is_ok_and(|done| done.status.success());
        done.then(|| Mounted(folder.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A disk of 64 MiB, of which 16 are to stay free, with a folder for each agent.
struct Disk {
    world: World,
    _mounted: Mounted,
}

impl Disk {
    /// Takes no more than an ordinary program does, and says each time that it goes on.
    const MODEST: &str = "while :; do head -c 4k /dev/urandom >> log; echo on; sleep 0.05; done 2>/dev/null";
    /// Writes without end, and takes nothing.
    const BUSY: &str = "while :; do head -c 4M /dev/urandom > again; rm again; echo on; done 2>/dev/null";

    fn new(world: &World) -> Option<Disk> {
        let bounds = Bounds { disk_reserve_bytes: Some(16 * MIB), ..Bounds::default() };
        let world = World::bounded(world.mechanism, true, bounds)?;
        let Some(mounted) = Mounted::at(&world.path("root")) else {
            println!("not tested here: no file system can be mounted");
            return None;
        };
        Some(Disk { world, _mounted: mounted })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.path("root").join(name)
    }

    async fn start_in(&self, folder: &str, agent: &str, command: &str) -> Process {
        let root = self.path(folder);
        fs::create_dir_all(&root).unwrap();
        let (agent, extra_read) = (agent.to_owned(), vec![STAND_IN.into()]);
        let launch = Launch { agent, extra_read, cwd: root.clone(), root, ..self.world.launch(command) };
        self.world.processes.start(launch).await.unwrap()
    }

    /// In a folder of the agent's own.
    async fn start(&self, agent: &str, command: &str) -> Process {
        self.start_in(agent, agent, command).await
    }
}

/// It does as much again as takes several looks at the disk.
async fn goes_on(process: &Process) {
    let lines = |process: &Process| process.read(0, usize::MAX).bytes.len() / "on\n".len();
    let before = lines(process);
    until("it goes on", || process.ended().is_some() || lines(process) > before + 60).await;
    assert_eq!(process.ended(), None);
}

fn assert_for_disk(ended: &Ended) {
    assert!(!ended.stopped, "nobody asked for it: {ended:?}");
    assert!(ended.evidence.iter().any(|line| line.starts_with("disk_reserve: ")), "{ended:?}");
}

/// So that nothing of them is left for the next boot of a home that is gone.
async fn end(processes: impl IntoIterator<Item = Process>) {
    for process in processes {
        process.end(true);
        process.wait().await;
    }
}

async fn the_command_that_fills_a_disk_is_ended(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    // All in one folder.
    let start = async |agent: &str, command: &str| disk.start_in("", agent, command).await;
    let other = start("other", Disk::MODEST).await;
    let idle = start("greedy", "touch idle; sleep 1000").await;
    let greedy = start("greedy", "head -c 52M /dev/zero > filler; touch full; cat /dev/zero > /dev/null").await;
    assert_for_disk(&greedy.wait().await);
    goes_on(&other).await;
    assert_eq!(idle.ended(), None, "those that write little go on");
    let processes = &disk.world.processes;
    let refused = processes.start(Launch { agent: "greedy".to_owned(), ..disk.world.launch("true") }).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::DiskReserve);
    let third = start("third", "true").await;
    assert_eq!(third.wait().await.exit_code, Some(0), "others begin as before");
    fs::remove_file(disk.path("filler")).unwrap();
    processes.room("greedy").await;
    assert_eq!(start("greedy", "true").await.wait().await.exit_code, Some(0));
    end([other, idle]).await;
}

async fn room_counts_however_it_is_taken(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let modest = disk.start("modest", Disk::MODEST).await;
    let ways = [
        "fallocate -l 52M filler; sleep 1000".to_owned(),
        format!("{STAND_IN} __mapped_file filler 52"),
        "exec 3<>filler; rm filler; head -c 52M /dev/zero >&3; sleep 1000".to_owned(),
        "exec 3<>filler; rm filler; fallocate -l 52M /proc/self/fd/3; sleep 1000".to_owned(),
        "head -c 52M /dev/zero > filler; sleep 1000".to_owned(),
        // A name more does not make it smaller.
        "touch filler; ln filler second; ln filler third; fallocate -l 52M filler; sleep 1000".to_owned(),
    ];
    for way in ways {
        let greedy = disk.start("greedy", &way).await;
        let ended = greedy.wait().await;
        assert!(ended.evidence.iter().any(|line| line.starts_with("disk_reserve: ")), "{way}: {ended:?}");
        goes_on(&modest).await;
        fs::remove_dir_all(disk.path("greedy")).unwrap();
        disk.world.processes.room("greedy").await;
    }
    end([modest]).await;
}

async fn room_that_was_given_back_does_not_count(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let busy = disk.start("busy", Disk::BUSY).await;
    let grows = "for mib in $(seq 1 52); do fallocate -l ${mib}M filler; sleep 0.05; done; sleep 1000";
    let grows = disk.start("grows", grows).await;
    assert_for_disk(&grows.wait().await);
    goes_on(&busy).await;
    end([busy]).await;
}

async fn in_a_shared_folder_open_files_and_written_bytes_decide(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let modest = disk.start_in("both", "modest", Disk::MODEST).await;
    let holds = "exec 3<>filler; fallocate -l 52M filler; sleep 1000";
    assert_for_disk(&disk.start_in("both", "holds", holds).await.wait().await);
    goes_on(&modest).await;
    end([modest]).await;
}

async fn a_command_is_not_blamed_for_another_that_ended(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let server = disk.start("agent", Disk::MODEST).await;
    let ended = disk.start("agent", "fallocate -l 52M filler").await.wait().await;
    assert_eq!((ended.exit_code, ended.evidence), (Some(0), Vec::new()));
    let processes = &disk.world.processes;
    until("the shortage is noticed", || !processes.unattributed_shortages().is_empty()).await;
    goes_on(&server).await;
    end([server]).await;
}

async fn nobody_is_ended_for_a_disk_that_others_fill(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let commands = [disk.start("modest", Disk::MODEST).await, disk.start("busy", Disk::BUSY).await];
    let fill = |name: &str, mib: u64| {
        let file = fs::File::create(disk.path(name)).unwrap();
        // As much as there is.
        let mut zeros = std::io::Read::take(std::io::repeat(0), mib * MIB);
        let _full = std::io::copy(&mut zeros, &mut &file);
    };
    let processes = &disk.world.processes;
    assert_eq!(processes.unattributed_shortages(), []);
    for (name, mib) in [("most", 50), ("rest", 64)] {
        fill(name, mib);
        until("the shortage is noticed", || !processes.unattributed_shortages().is_empty()).await;
        for command in &commands {
            goes_on(command).await;
        }
    }
    assert_eq!(processes.shortages(), [].into());
    for name in ["most", "rest"] {
        fs::remove_file(disk.path(name)).unwrap();
    }
    until("there is room", || processes.unattributed_shortages().is_empty()).await;
    end(commands).await;
}

/// Of the 12,000 inodes 360 are to stay free.
async fn the_command_that_takes_all_inodes_is_ended(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let modest = disk.start("modest", Disk::MODEST).await;
    let greedy = disk.start("greedy", "seq 11900 | xargs touch; while :; do sleep 1; done").await;
    let ended = greedy.wait().await;
    assert_for_disk(&ended);
    assert!(ended.evidence.iter().any(|line| line.contains(" inodes are free")), "{ended:?}");
    goes_on(&modest).await;
    let processes = &disk.world.processes;
    let refused = processes.start(Launch { agent: "greedy".to_owned(), ..disk.world.launch("true") }).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, ErrorCode::DiskReserve);
    assert!(refused.message.contains(" inodes are free"), "{refused:?}");
    fs::remove_dir_all(disk.path("greedy")).unwrap();
    processes.room("greedy").await;
    end([modest]).await;
}

async fn nobody_is_ended_for_inodes_that_others_take(world: World) {
    let Some(disk) = Disk::new(&world) else { return };
    let modest = disk.start("modest", Disk::MODEST).await;
    fs::create_dir(disk.path("theirs")).unwrap();
    for nth in 0..11_800 {
        fs::write(disk.path(&format!("theirs/{nth}")), "").unwrap();
    }
    let processes = &disk.world.processes;
    until("the shortage is noticed", || !processes.unattributed_shortages().is_empty()).await;
    goes_on(&modest).await;
    assert_eq!(processes.shortages(), [].into());
    end([modest]).await;
}
