//! The alarm clock: one task that wakes whoever is due, from the wake index in the ledger.
//!
//! When it starts, and when the clock was set back, it also wakes agents whose last fact is later than the clock: what they
//! wait for was recorded while the clock was ahead, and they correct it (`Input::FollowClock`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use abide_kernel::time::Time;
use abide_ledger::{ReadError, StreamId};
use futures_util::FutureExt;

use super::{Closing, Shared, blocking};
use crate::clock::Look;

/// After a panic, and after the wake index could not be read.
const AGAIN_AFTER_MS: u64 = 1_000;

pub(super) fn spawn(shared: Arc<Shared>) {
    // It ends with the host: it looks at `closing` whenever it wakes, and the runtime drops it at the latest.
    tokio::spawn(async move {
        // All timers depend on this one task. After a panic it begins anew, with whoever is due by then.
        while AssertUnwindSafe(wake_who_is_due(&shared)).catch_unwind().await.is_err() {
            shared.clock.sleep_towards(shared.clock.now().plus_ms(AGAIN_AFTER_MS)).await;
        }
    });
}

/// Until the host closes.
async fn wake_who_is_due(shared: &Arc<Shared>) {
    let mut closing = shared.closing.subscribe();
    let mut last: Option<Look> = None;
    while *closing.borrow_and_update() == Closing::Open {
        let look = shared.clock.look();
        let now = look.at;
        // It may have been ahead between two looks, while an agent recorded something.
        let recorded_ahead = shared.latest_recorded.is_ahead_of(now);
        let set_back = recorded_ahead || last.is_none_or(|last| last.is_ahead_of(now));
        // A clock that was set back must not make us deaf until it is where it was.
        let told_until = last.map_or(Time::MIN, |last| last.at.min(now));
        let next = match ring(shared, told_until, now, set_back).await {
            Ok(next) => {
                last = Some(look);
                next
            }
            Err(error) => {
                tracing::error!(%error, "the wake index can't be read; timers wait");
                now.plus_ms(AGAIN_AFTER_MS)
            }
        };
        tokio::select! {
            biased;
            _ = closing.changed() => {}
            () = shared.due_changed.notified() => {}
            () = shared.clock.sleep_towards(next) => {}
        }
    }
}

/// Wakes who is due and, where the clock may have been set back, who has to hear of it. Says when the next one is due.
async fn ring(shared: &Arc<Shared>, after: Time, now: Time, set_back: bool) -> Result<Time, ReadError> {
    let reader = Arc::clone(shared);
    let (woken, next) = blocking(&shared.clock, move || {
        let mut woken: Vec<StreamId> =
            reader.ledger.due(after, now, usize::MAX)?.into_iter().map(|(stream, _)| stream).collect();
        if set_back {
            woken.extend(reader.ledger.waits_recorded_after(now)?);
        }
        let next = reader.ledger.due(now, Time::MAX, 1)?;
        Ok::<_, ReadError>((woken, next.first().map_or(Time::MAX, |(_, due)| *due)))
    })
    .await?;
    for stream in woken {
        shared.wake_stream(&stream);
    }
    Ok(next)
}
