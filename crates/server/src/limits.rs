//! The limits of one server: on what it takes in, holds and waits for.

use std::time::Duration;

/// Bounds of one server. All of them refuse, or close a connection that is idle; none of them drops what was accepted. Of
/// connections, requests, those that wait, event streams and memory, any one token has at most half.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The body of a request.
    pub body_bytes: usize,
    /// Bodies that are held at the same time, in all.
    pub held_bytes: usize,
    /// Answers that are made or not yet taken at the same time, in all.
    pub answer_bytes: usize,
    /// Open connections, each with a file descriptor.
    pub connections: usize,
    /// Those of them that have shown no good token: past this the oldest idle one is closed.
    pub anonymous: usize,
    /// Requests that are worked on at the same time.
    pub requests: usize,
    /// Event streams that are open at the same time.
    pub streams: usize,
    /// Requests that wait for the outcome of a message at the same time. They take no place among the others.
    pub waits: usize,
    /// For a connection that has shown no good token to send the head of a request.
    pub head: Duration,
    /// To send the head of a request on another connection, or the body of one.
    pub read: Duration,
    /// To work on one.
    pub work: Duration,
    /// For a reader to take anything at all of what it asked for.
    pub stall: Duration,
    /// Between two signs of life on an event stream.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 1 << 20,
            held_bytes: 64 << 20,
            answer_bytes: 64 << 20,
            connections: CONNECTIONS_MAX,
            anonymous: 256,
            requests: 2_048,
            streams: CONNECTIONS_MAX / 2,
            waits: CONNECTIONS_MAX / 4,
            head: Duration::from_secs(5),
            read: Duration::from_secs(20),
            work: Duration::from_secs(30),
            stall: Duration::from_secs(20),
            heartbeat: Duration::from_secs(15),
        }
    }
}

const CONNECTIONS_MAX: usize = 4_096;

/// File descriptors that are left for everything else: the ledger, commands, workspaces, calls of models.
const DESCRIPTORS_LEFT: u64 = 512;

impl Limits {
    /// For a process that may have so many files open: connections leave room for other files; event streams and requests
    /// that wait leave room for other requests.
    #[must_use]
    pub fn for_open_files(most: u64) -> Limits {
        // Where that is less, half is left.
        let connections = most.saturating_sub(DESCRIPTORS_LEFT).max(most / 2);
        let connections = usize::try_from(connections).unwrap_or(usize::MAX).clamp(1, CONNECTIONS_MAX);
        let (streams, waits) = ((connections / 2).max(1), (connections / 4).max(1));
        Limits { connections, streams, waits, ..Limits::default() }
    }
}
