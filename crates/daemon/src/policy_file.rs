//! `policy.toml` of the home, as the daemon goes by it: read at the start and again whenever it changed. An edit that
//! does not read changes nothing: the rules before it hold on, and the log and `abide doctor` say what is wrong.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use abide_effects::policy::{CallPolicy, Caller, Policy};
use abide_effects::transient::is_transient;
use abide_kernel::id::{AgentId, CallId};
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::{Call, ToolCall};
use abide_private::read_regular;

/// Where a home keeps it.
pub fn path(home: &Path) -> PathBuf {
    home.join("policy.toml")
}

/// A home without one has no rules.
pub fn read(home: &Path) -> Result<Option<Policy>, PolicyError> {
    let path = path(home);
    let bytes = match read_regular(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(PolicyError::Unreadable { path, cause }),
    };
    let Ok(text) = String::from_utf8(bytes) else { return Err(PolicyError::NotUtf8 { path }) };
    Policy::parse(&text).map(Some).map_err(|fault| PolicyError::Faulty { path, fault: fault.to_string() })
}

/// Why `policy.toml` is not followed.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("can't read {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{} is not UTF-8", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("{}, {fault}", path.display())]
    Faulty { path: PathBuf, fault: String },
}

#[derive(Debug)]
pub struct PolicyFile {
    home: PathBuf,
    read: Mutex<LoadedPolicy>,
    /// The calls of each agent's last reply that a person has to be asked about, with their digests. One of them runs
    /// only if somebody said yes to it.
    asked: Mutex<HashMap<AgentId, HashMap<CallId, String>>>,
}

#[derive(Debug)]
struct LoadedPolicy {
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

impl PolicyFile {
    /// A policy that does not read is no reason to go on without one.
    pub fn start(home: &Path) -> Result<PolicyFile, PolicyError> {
        let stamp = stamp(&path(home));
        let policy = Arc::new(read(home)?.unwrap_or_default());
        tracing::debug!(rules = policy.len(), "read the policy");
        Ok(PolicyFile {
            home: home.to_owned(),
            read: Mutex::new(LoadedPolicy { stamp, policy }),
            asked: Mutex::default(),
        })
    }

    /// The calls of a reply, as far as the policy lets them be. `workspace` is where they would run.
    pub async fn judge(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
        workspace: PathBuf,
        calls: Vec<Call>,
    ) -> Vec<Call> {
        let judged = if calls.is_empty() { calls } else { self.judge_all(agent, place, workspace, calls).await };
        let asked = judged.iter().filter_map(|call| match &call.parsed {
            ToolCall::NeedsApproval(ask) => Some((call.call_id.clone(), ask.digest.clone())),
            ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::Refused(_) => None,
        });
        let asked: HashMap<CallId, String> = asked.collect();
        let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_empty() {
            all.remove(agent);
        } else {
            all.insert(agent.clone(), asked);
        }
        drop(all);
        judged
    }

    /// The rules that a call of the last reply runs under. One that had to be asked about runs because of a yes.
    pub fn of_call(&self, agent: &AgentId, call_id: &CallId) -> CallPolicy {
        let policy = self.current();
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        CallPolicy { policy, approved: asked.get(agent).and_then(|calls| calls.get(call_id).cloned()) }
    }

    /// No call of the agent runs any more.
    pub fn rests(&self, agent: &AgentId) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(agent);
    }

    async fn judge_all(
        &self,
        agent: &AgentId,
        place: &ToolPlacement,
        workspace: PathBuf,
        calls: Vec<Call>,
    ) -> Vec<Call> {
        let (policy, agent, makers, rule_folders) =
            (self.current(), agent.clone(), place.makers.clone(), place.rule_folders());
        let looks_at_files = policy.looks_at_files();
        let judge = move || {
            let (workspace, rule_folders) = (Some(workspace.as_path()), rule_folders.as_slice());
            // It is opened for each call, and again when the call runs: nothing is taken yet.
            let caller = Caller { agent: &agent, makers: &makers, workspace, root: None, rule_folders };
            let judged = |Call { call_id, tool, input, parsed }| {
                let parsed = policy.judge(&caller, &tool, &input, parsed);
                Call { call_id, tool, input, parsed }
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
            known.renew(stamp, read(&self.home));
        }
        Arc::clone(&known.policy)
    }
}

impl LoadedPolicy {
    /// Takes over what was read of a file that changed. What is wrong is said once for each version of the file. One that
    /// could not be read for the moment, for want of a file descriptor for example, is read again: its rules must not be
    /// passed over until the next edit.
    fn renew(&mut self, stamp: Option<Stamp>, read: Result<Option<Policy>, PolicyError>) {
        match read {
            Ok(Some(policy)) => {
                tracing::info!(rules = policy.len(), "read the policy again");
                self.policy = Arc::new(policy);
            }
            Ok(None) if self.policy.is_empty() => {}
            Ok(None) => tracing::error!(
                "policy.toml is gone; its rules hold until the daemon restarts: put it back, or leave an empty one"
            ),
            Err(PolicyError::Unreadable { cause, .. }) if is_transient(&cause) => {
                tracing::warn!(
                    error = %cause,
                    "the policy can't be read for the moment; the rules before it hold on until it can"
                );
                return;
            }
            Err(error) => tracing::error!(%error, "the policy does not read; the rules before it hold on"),
        }
        self.stamp = stamp;
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    match fs::metadata(path) {
        Ok(found) => {
            Some(Stamp { changed: (found.mtime(), found.mtime_nsec()), size: found.len(), inode: found.ino() })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // Reading the file gives a better error.
        Err(_) => Some(Stamp { changed: (0, 0), size: 0, inode: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_can_t_be_read_for_the_moment_is_read_again() {
        let rules = |text: &str| Ok(Some(Policy::parse(text).unwrap()));
        let deny = "[[rule]]\naction = \"deny\"\ncommand = \"*\"\n";
        let stamp = |size| Some(Stamp { changed: (0, 0), size, inode: 1 });
        let mut known = LoadedPolicy { stamp: stamp(1), policy: Arc::default() };
        let path = || PathBuf::from("policy.toml");
        let failed =
            |number| Err(PolicyError::Unreadable { path: path(), cause: io::Error::from_raw_os_error(number) });
        known.renew(stamp(2), failed(libc::EMFILE));
        assert_eq!((known.stamp, known.policy.len()), (stamp(1), 0), "it is looked at again");
        known.renew(stamp(2), rules(deny));
        assert_eq!((known.stamp, known.policy.len()), (stamp(2), 1));
        known.renew(stamp(3), failed(libc::EACCES));
        assert_eq!((known.stamp, known.policy.len()), (stamp(3), 1), "said once, and the rules hold on");
    }
}
