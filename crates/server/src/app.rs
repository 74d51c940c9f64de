//! What every request shares.

use std::sync::Arc;
use std::time::Duration;

use abide_engine::{Deltas, Host};
use abide_kernel::agent::config::DefaultModels;
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::hooks::Hooks;
use crate::metrics::Metrics;
use crate::world::World;

/// Bounds of one server. All of them refuse; none of them drops what was accepted.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The body of a request.
    pub body_bytes: usize,
    /// Bodies that are held at the same time, in all.
    pub held_bytes: usize,
    pub connections: usize,
    /// Requests that are worked on at the same time.
    pub requests: usize,
    /// Event streams that are open at the same time.
    pub streams: usize,
    /// To send the head or the body of a request.
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
            connections: 4_096,
            requests: 1_024,
            streams: 1_024,
            read: Duration::from_secs(20),
            work: Duration::from_secs(30),
            stall: Duration::from_secs(20),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// Says what is wrong with a model, by its name or because it is not there. It may read the disk.
pub type CheckModel = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What the server is told by whoever starts it.
pub struct Options {
    pub limits: Limits,
    /// What agents have that were given no model of their own.
    pub models: DefaultModels,
    pub check_model: CheckModel,
    /// Refuses a model whose price nobody knows, where money is limited.
    pub check_price: CheckModel,
    pub world: Arc<dyn World>,
    pub hooks: Arc<Hooks>,
    /// What models say while they say it.
    pub deltas: Deltas,
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
    pub(crate) requests: Semaphore,
    pub(crate) streams: Arc<Semaphore>,
    /// In KiB.
    pub(crate) held: Arc<Semaphore>,
    pub(crate) closing: watch::Sender<bool>,
}

impl App {
    #[must_use]
    pub fn new(host: Host, access: Access, options: Options) -> Arc<App> {
        let limits = &options.limits;
        Arc::new(App {
            requests: Semaphore::new(limits.requests),
            streams: Arc::new(Semaphore::new(limits.streams)),
            held: Arc::new(Semaphore::new(limits.held_bytes / 1024)),
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
