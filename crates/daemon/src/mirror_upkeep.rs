//! Upkeep of the mirrors of repositories, apart from every turn: when the daemon starts, and once a day.

use std::time::Duration;

use abide_effects::Executor;
use abide_effects::workspace::UpkeepReport;

const AGAIN: Duration = Duration::from_secs(24 * 3_600);

/// Until it is dropped.
pub async fn tidy(executor: Executor) {
    loop {
        let UpkeepReport { repacked, removed, failed } = executor.tidy_mirrors().await;
        for mirror in repacked {
            tracing::debug!(mirror = %mirror.display(), "put the packs of a mirror together");
        }
        for mirror in removed {
            tracing::info!(mirror = %mirror.display(), "removed a mirror that no worktree was made of for long");
        }
        for (mirror, refusal) in failed {
            let (error, hint) = (refusal.message, refusal.hint);
            tracing::warn!(mirror = %mirror.display(), error, hint, "a mirror is left as it is");
        }
        tokio::time::sleep(AGAIN).await;
    }
}
