//! The alarm clock: one task that wakes whoever is due, from the wake index in the ledger.

use std::sync::Arc;

use abide_kernel::time::Time;
use abide_ledger::ReadError;

use super::{Closing, Shared, blocking};

pub(super) fn spawn(shared: Arc<Shared>) {
    // It ends with the host: it looks at `closing` whenever it wakes, and the runtime drops it at the latest.
    tokio::spawn(async move {
        let mut closing = shared.closing.subscribe();
        let mut told_until = Time::MIN;
        while *closing.borrow_and_update() == Closing::Open {
            let now = shared.clock.now();
            // A clock that was set back must not make us deaf until it is where it was.
            told_until = told_until.min(now);
            let next = match ring(&shared, told_until, now).await {
                Ok(next) => {
                    told_until = now;
                    next
                }
                Err(error) => {
                    tracing::error!(%error, "the wake index can't be read; timers wait");
                    now.plus_ms(1_000)
                }
            };
            tokio::select! {
                biased;
                _ = closing.changed() => {}
                () = shared.due_changed.notified() => {}
                () = shared.clock.sleep_towards(next) => {}
            }
        }
    });
}

/// Wakes who is due, and says when the next one is.
async fn ring(shared: &Arc<Shared>, after: Time, now: Time) -> Result<Time, ReadError> {
    let reader = Arc::clone(shared);
    let (due, next) = blocking(&shared.clock, move || {
        let due = reader.ledger.due(after, now, usize::MAX)?;
        let next = reader.ledger.due(now, Time::MAX, 1)?;
        Ok::<_, ReadError>((due, next.first().map_or(Time::MAX, |(_, due)| *due)))
    })
    .await?;
    for (stream, _) in due {
        shared.wake_stream(&stream);
    }
    Ok(next)
}
