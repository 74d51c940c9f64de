//! `policy.toml` of the home, as the daemon goes by it: read at the start and again whenever it changed. An edit that
//! does not read changes nothing: the rules before it hold on, and the log and `abide doctor` say what is wrong.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use abide_effects::policy::{Caller, Policy};
use abide_kernel::id::AgentId;
use abide_kernel::input::Call;
use anyhow::anyhow;

/// Where a home keeps it.
pub fn path(home: &Path) -> PathBuf {
    home.join("policy.toml")
}

/// A home without one has no rules.
pub fn read(home: &Path) -> anyhow::Result<Option<Policy>> {
    let path = path(home);
    let Some(bytes) = crate::folder::read_if_there(&path)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8", path.display()))?;
    Policy::parse(&text).map(Some).map_err(|fault| anyhow!("{}, {fault}", path.display()))
}

#[derive(Debug)]
pub struct Watched {
    home: PathBuf,
    read: Mutex<Read>,
}

#[derive(Debug)]
struct Read {
    stamp: Option<Stamp>,
    policy: Arc<Policy>,
}

/// Tells one version of the file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

impl Watched {
    /// A policy that does not read is no reason to go on without one.
    pub fn start(home: &Path) -> anyhow::Result<Watched> {
        let stamp = stamp(&path(home));
        let policy = Arc::new(read(home)?.unwrap_or_default());
        tracing::debug!(rules = policy.len(), "read the policy");
        Ok(Watched { home: home.to_owned(), read: Mutex::new(Read { stamp, policy }) })
    }

    /// The calls of a reply, as far as the policy lets them be. `workspace` is where they would run.
    pub async fn judge(&self, agent: &AgentId, makers: &[AgentId], workspace: PathBuf, calls: Vec<Call>) -> Vec<Call> {
        if calls.is_empty() {
            return calls;
        }
        let (policy, agent, makers) = (self.current(), agent.clone(), makers.to_vec());
        let looks_at_files = policy.looks_at_files();
        let judge = move || {
            let caller = Caller { agent: &agent, makers: &makers, workspace: Some(&workspace) };
            let judged = |Call { call_id, tool, input, does }| {
                let does = policy.judge(&caller, &tool, &input, does);
                Call { call_id, tool, input, does }
            };
            calls.into_iter().map(judged).collect()
        };
        if !looks_at_files {
            return judge();
        }
        match tokio::task::spawn_blocking(judge).await {
            Ok(judged) => judged,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is going down, and so is the agent that waits for this.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// The rules as they are now.
    pub fn current(&self) -> Arc<Policy> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&path(&self.home));
        if known.stamp != stamp {
            // Said once for each version of the file.
            known.stamp = stamp;
            match read(&self.home) {
                Ok(Some(policy)) => {
                    tracing::info!(rules = policy.len(), "read the policy again");
                    known.policy = Arc::new(policy);
                }
                Ok(None) if known.policy.is_empty() => {}
                Ok(None) => tracing::error!(
                    "policy.toml is gone; its rules hold until the daemon restarts: put it back, or leave an empty one"
                ),
                Err(error) => tracing::error!(%error, "the policy does not read; the rules before it hold on"),
            }
        }
        Arc::clone(&known.policy)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    match fs::metadata(path) {
        Ok(found) => {
            Some(Stamp { changed: (found.mtime(), found.mtime_nsec()), size: found.len(), inode: found.ino() })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // Whatever it is, reading it says more.
        Err(_) => Some(Stamp { changed: (0, 0), size: 0, inode: 0 }),
    }
}
