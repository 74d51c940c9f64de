//! The one thread from which every supervisor is started. A death signal is sent when the thread that started a process
//! ends, not when the process does; so that thread must live as long as the owner does, and no shorter.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use super::group::GroupEntrance;

#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    requests: Sender<Request>,
}

#[derive(Debug)]
struct Request {
    command: Command,
    door: Option<GroupEntrance>,
    answer: SyncSender<io::Result<(Child, bool)>>,
}

impl Spawner {
    pub(crate) fn new() -> io::Result<Spawner> {
        // Unbounded: each entry belongs to a caller that waits for it.
        let (requests, inbox) = channel::<Request>();
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            for Request { mut command, door, answer } in inbox {
                let (spawned, inside) = match door {
                    Some(door) => door.run_inside(|| command.spawn()),
                    None => (command.spawn(), false),
                };
                // The daemon's copies of the descriptors are closed before the caller waits for their end.
                drop(command);
                let _gone = answer.send(spawned.map(|child| (child, inside)));
            }
        })?;
        Ok(Spawner { requests })
    }

    /// The child, and whether it started inside the groups.
    pub(crate) fn spawn(&self, command: Command, door: Option<GroupEntrance>) -> io::Result<(Child, bool)> {
        let gone = || io::Error::other("the owner of processes is gone");
        let (answer, answered) = sync_channel(1);
        self.requests.send(Request { command, door, answer }).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}
