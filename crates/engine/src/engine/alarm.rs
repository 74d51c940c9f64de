//! The alarm clock: one task that wakes streams when they are due, from the wake index in the ledger.
//!
//! When it starts, and when the clock was set back, it also wakes streams whose last fact is later than the clock: what they
//! wait for was recorded while the clock was ahead, and they correct it (`Signal::FollowClock`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use abide_kernel::time::Time;
use abide_ledger::{ReadError, StreamId};
use futures_util::FutureExt;

use super::{Closing, Engine, Wakeable, blocking, wake};
use crate::clock::ClockReading;

/// After a panic, and after the wake index could not be read.
const AGAIN_AFTER_MS: u64 = 1_000;

pub(crate) fn spawn(engine: Arc<Engine>, kinds: Vec<Box<dyn Wakeable>>) {
    // It ends with the host: it looks at `closing` whenever it wakes, and the runtime drops it at the latest.
    tokio::spawn(async move {
        // All timers depend on this one task. After a panic it begins anew, with the streams that are due by then.
        while AssertUnwindSafe(run_until_closing(&engine, &kinds)).catch_unwind().await.is_err() {
            engine.clock.sleep_towards(engine.clock.now().plus_ms(AGAIN_AFTER_MS)).await;
        }
    });
}

/// Until the host closes.
async fn run_until_closing(engine: &Arc<Engine>, kinds: &[Box<dyn Wakeable>]) {
    let mut closing = engine.closing.subscribe();
    let mut last: Option<ClockReading> = None;
    while *closing.borrow_and_update() == Closing::Open {
        let look = engine.clock.look();
        let now = look.at;
        // It may have been ahead between two looks, while a stream recorded something.
        let recorded_ahead = engine.latest_recorded.is_ahead_of(now);
        let set_back = recorded_ahead || last.is_none_or(|last| last.is_ahead_of(now));
        // A clock that was set back must not make us deaf until it is where it was.
        let told_until = last.map_or(Time::MIN, |last| last.at.min(now));
        let next = match wake_streams_due(engine, kinds, told_until, now, set_back).await {
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
            () = engine.due_changed.notified() => {}
            () = engine.clock.sleep_towards(next) => {}
        }
    }
}

/// Wakes who is due and, where the clock may have been set back, who has to hear of it. Says when the next one is due.
async fn wake_streams_due(
    engine: &Arc<Engine>,
    kinds: &[Box<dyn Wakeable>],
    after: Time,
    now: Time,
    set_back: bool,
) -> Result<Time, ReadError> {
    let reader = Arc::clone(engine);
    let (woken, next) = blocking(&engine.clock, move || {
        let mut woken: Vec<StreamId> =
            reader.ledger.due(after, now, usize::MAX)?.into_iter().map(|(stream, _)| stream).collect();
        if set_back {
            woken.extend(reader.ledger.waits_recorded_after(now)?);
        }
        let next = reader.ledger.due(now, Time::MAX, 1)?;
        Ok::<_, ReadError>((woken, next.first().map_or(Time::MAX, |(_, due)| *due)))
    })
    .await?;
    woken.iter().for_each(|stream| wake(kinds, stream));
    Ok(next)
}
