//! The reserve of a disk, on a small file system of its own: a command that fills it is ended, the others go on, and its
//! agent starts none before there is room.

use std::path::{Path, PathBuf};
use std::process::Command;

use abide_effects::process::{Bounds, Launch, Process};

use super::{World, in_each_sandbox, until};

in_each_sandbox!(the_command_that_fills_a_disk_is_ended);

const MIB: u64 = 1 << 20;

/// Gone with the value.
struct Mounted(PathBuf);

impl Mounted {
    fn at(folder: &Path) -> Option<Mounted> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs"]).arg(folder);
        let done = mount.output().is_ok_and(|done| done.status.success());
        done.then(|| Mounted(folder.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

async fn the_command_that_fills_a_disk_is_ended(world: World) {
    let mechanism = world.mechanism;
    let bounds = Bounds { disk_reserve_bytes: Some(16 * MIB), ..Bounds::default() };
    let Some(world) = World::bounded(mechanism, true, bounds) else { return };
    let Some(_mounted) = Mounted::at(&world.path("root")) else {
        println!("not tested here: no file system can be mounted");
        return;
    };
    let start = async |agent: &str, command: &str| -> Process {
        let launch = Launch { agent: agent.to_owned(), ..world.launch(command) };
        world.processes.start(launch).await.unwrap()
    };
    let other = start("other", "while :; do echo line >> log; sleep 0.1; done").await;
    let idle = start("greedy", "touch idle; sleep 1000").await;
    let greedy = start("greedy", "head -c 52M /dev/zero > filler; touch full; cat /dev/zero > /dev/null").await;
    let ended = greedy.wait().await;
    assert!(!ended.stopped, "nobody asked for it: {ended:?}");
    assert!(ended.evidence.iter().any(|line| line.starts_with("disk_reserve: ")), "{ended:?}");
    assert_eq!((other.ended(), idle.ended()), (None, None), "those that write little go on");
    let refused = world.processes.start(Launch { agent: "greedy".to_owned(), ..world.launch("true") }).await;
    assert_eq!(refused.unwrap_err().code, "disk_reserve");
    let third = start("third", "true").await;
    assert_eq!(third.wait().await.exit_code, Some(0), "others begin as before");
    std::fs::remove_file(world.path("root/filler")).unwrap();
    world.processes.room("greedy").await;
    assert_eq!(start("greedy", "true").await.wait().await.exit_code, Some(0));
    until("the other still writes", || world.path("root/log").exists()).await;
    for process in [other, idle] {
        process.end(true);
        process.wait().await;
    }
}
