//! The one thread from which every supervisor is started. A death signal is sent when the thread that started a process
//! ends, not when the process does; so that thread must live as long as the owner does, and no shorter.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    requests: Sender<Request>,
}

#[derive(Debug)]
struct Request {
    command: Command,
    answer: SyncSender<io::Result<Child>>,
}

impl Spawner {
    pub(crate) fn new() -> io::Result<Spawner> {
        // Unbounded: each entry belongs to a caller that waits for it.
        let (requests, inbox) = channel::<Request>();
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            for Request { mut command, answer } in inbox {
                let spawned = command.spawn();
                // Ours of the descriptors that it was given are closed before the caller listens for theirs.
                drop(command);
                let _gone = answer.send(spawned);
            }
        })?;
        Ok(Spawner { requests })
    }

    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the owner of processes is gone");
        let (answer, answered) = sync_channel(1);
        self.requests.send(Request { command, answer }).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}
