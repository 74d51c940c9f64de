//! State that every request shares.

use std::sync::Arc;

use abide_engine::{Deltas, Host};
use abide_kernel::config::DefaultModels;
use abide_kernel::credentials::Credentials;
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::answers::AnswerMemory;
use crate::connections::Connections;
use crate::hooks::Hooks;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::services::Services;
use crate::shares::Shares;

/// Says what is wrong with a model, by its name or because it is not there. It may read the disk.
pub type ModelValidator = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Reads the settings in `abide.toml` of a workspace, by its path, for agents that are made there; refuses a trusted file
/// with mistakes. It reads the disk.
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

/// Options of the server.
pub struct Options {
    pub limits: Limits,
    /// The models of agents that were given none of their own.
    pub models: DefaultModels,
    /// The credentials of agents that a person makes.
    pub credentials: Credentials,
    pub check_model: ModelValidator,
    /// Refuses a model whose price nobody knows, where money is limited.
    pub check_price: ModelValidator,
    pub workspace_settings: ReadWorkspaceSettings,
    pub services: Arc<dyn Services>,
    pub hooks: Arc<Hooks>,
    /// Streamed text of models.
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
    pub(crate) waits: Shares,
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
            waits: Shares::new(limits.waits),
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
