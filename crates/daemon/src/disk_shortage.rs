//! Disks without room: agents whose command was ended for it are told to wait, again and again while it is so, and told
//! when there is room. A disk that no command is to blame for is logged once. A daemon that is gone says nothing, and the
//! wait ends by itself.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use abide_effects::Executor;
use abide_engine::{Clock, Host};
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;

/// How long an agent waits once it was told, and how often it is told.
const HOLD_MS: u64 = 60_000;
const AGAIN: Duration = Duration::from_secs(30);

/// Until it is dropped.
pub async fn report(host: Host, executor: Executor) {
    let mut changes = executor.shortage_changes();
    let mut told: HashSet<AgentId> = HashSet::new();
    let mut logged: HashSet<PathBuf> = HashSet::new();
    loop {
        let unattributed = executor.unattributed_shortages();
        for (_, short) in unattributed.iter().filter(|(folder, _)| !logged.contains(folder)) {
            tracing::warn!("{short}; no command took much of it, so none is ended: make room on this disk");
        }
        logged = unattributed.into_iter().map(|(folder, _)| folder).collect();
        let short = executor.shortages();
        for agent in told.iter().filter(|agent| !short.contains_key(*agent)) {
            ask(&host, agent, Input::DiskHasRoom).await;
        }
        for (agent, evidence) in &short {
            let until = Clock::System.now().plus_ms(HOLD_MS);
            ask(&host, agent, Input::HoldForDisk { until, evidence: evidence.clone() }).await;
        }
        told = short.into_keys().collect();
        // With nobody to tell again, only a change is worth a look.
        let again = async {
            match told.is_empty() {
                true => std::future::pending().await,
                false => tokio::time::sleep(AGAIN).await,
            }
        };
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = again => {}
        }
    }
}

async fn ask(host: &Host, agent: &AgentId, input: Input) {
    // An agent that is gone waits for nothing.
    if let Err(error) = host.ask(agent, input).await {
        tracing::debug!(%agent, %error, "the agent was not told of its disk");
    }
}
