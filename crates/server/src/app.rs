//! What every request shares.

use std::sync::Arc;
use std::time::Duration;

use abide_engine::{Deltas, Host};
use abide_kernel::config::DefaultModels;
use abide_kernel::credentials::Credentials;
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::answers::AnswerMemory;
use crate::connections::Connections;
use crate::hooks::Hooks;
use crate::metrics::Metrics;
use crate::services::Services;
use crate::shares::Shares;

/// Bounds of one server. All of them refuse, or close a connection that is idle; none of them drops what was accepted. Of
/// connections, requests, event streams and memory, any one token has at most half.
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
    /// For a process that may have so many files open: connections leave room for other files, and event streams leave
    /// room for requests.
    #[must_use]
    pub fn for_open_files(most: u64) -> Limits {
        // Where that is less, half is left.
        let connections = most.saturating_sub(DESCRIPTORS_LEFT).max(most / 2);
        let connections = usize::try_from(connections).unwrap_or(usize::MAX).clamp(1, CONNECTIONS_MAX);
        Limits { connections, streams: (connections / 2).max(1), ..Limits::default() }
    }
}

/// Says what is wrong with a model, by its name or because it is not there. It may read the disk.
pub type CheckModel = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What the `abide.toml` of a workspace, by its path, sets for agents that are made there; refuses a trusted one that is
/// wrong. It reads the disk.
#[derive(Clone)]
pub struct ReadWorkspaceSettings(Arc<ReadFolder>);

type ReadFolder = dyn Fn(&str) -> Result<WorkspaceSettings, String> + Send + Sync;

impl ReadWorkspaceSettings {
    pub fn new(read: impl Fn(&str) -> Result<WorkspaceSettings, String> + Send + Sync + 'static) -> Self {
        ReadWorkspaceSettings(Arc::new(read))
    }

    pub(crate) fn of(&self, workspace: &str) -> Result<WorkspaceSettings, String> {
        (self.0)(workspace)
    }
}

impl std::fmt::Debug for ReadWorkspaceSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadWorkspaceSettings").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSettings {
    pub model: Option<String>,
    pub fallback: Option<Vec<String>>,
    /// The file, for errors.
    pub file: String,
    /// There is a file, and nothing of it is used: why, and what to do.
    pub warning: Option<String>,
}

/// What the server is told by whoever starts it.
pub struct Options {
    pub limits: Limits,
    /// What agents have that were given no model of their own.
    pub models: DefaultModels,
    /// What the commands of agents are given that a person makes.
    pub credentials: Credentials,
    pub check_model: CheckModel,
    /// Refuses a model whose price nobody knows, where money is limited.
    pub check_price: CheckModel,
    pub workspace_settings: ReadWorkspaceSettings,
    pub services: Arc<dyn Services>,
    pub hooks: Arc<Hooks>,
    /// What models say while they say it.
    pub deltas: Deltas,
    /// Lines that could not be written to the log.
    pub log_lines_lost: fn() -> u64,
    /// Only names of this machine are taken in the `Host` header.
    pub loopback: bool,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("loopback", &self.loopback)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct App {
    pub host: Host,
    pub access: Access,
    pub options: Options,
    pub(crate) metrics: Metrics,
    pub(crate) connections: Arc<Connections>,
    pub(crate) requests: Shares,
    pub(crate) streams: Shares,
    /// In KiB.
    pub(crate) held: Shares,
    pub(crate) answers: AnswerMemory,
    /// One at a time: it holds all that it shows.
    pub(crate) exports: Semaphore,
    pub(crate) closing: watch::Sender<bool>,
}

impl App {
    #[must_use]
    pub fn new(host: Host, access: Access, options: Options) -> Arc<App> {
        let limits = &options.limits;
        Arc::new(App {
            connections: Connections::new(limits),
            requests: Shares::new(limits.requests),
            streams: Shares::new(limits.streams),
            held: Shares::new(limits.held_bytes / 1024),
            answers: AnswerMemory::new(limits.answer_bytes),
            exports: Semaphore::new(1),
            metrics: Metrics::default(),
            closing: watch::Sender::new(false),
            host,
            access,
            options,
        })
    }

    /// From here on nothing new is taken, and event streams end.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Whether the daemon is on its way out.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}
