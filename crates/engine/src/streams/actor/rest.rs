//! How an actor rests, hibernates, and ends with the process.

use abide_kernel::time::Time;

use super::super::AskError;
use super::super::mailbox::refuse_all;
use super::Actor;
use super::recovery::ActorEnd;
use crate::engine::Closing;
use crate::machine::Machine;
use crate::streams::kind::StreamKind;

/// How long a stream that rests stays awake: long enough that a conversation does not read it anew each time.
const LINGER_MS: u64 = 1_000;
/// From this many actors on, a stream that rests hibernates at once.
const CROWD: usize = 4_096;

impl<K: StreamKind> Actor<K> {
    /// Whether anything is under way that only this process can see to its end.
    fn is_busy(&self) -> bool {
        self.core.state().is_busy() || !self.jobs.is_empty()
    }

    /// Waits until something happens. True when the stream fell asleep. What was due by `looked` has been seen to.
    pub(super) async fn rest(&mut self, looked: Time) -> Result<bool, ActorEnd> {
        if self.close()? {
            return Ok(false);
        }
        self.streams.directory.forget_crashes(&self.id);
        let busy = self.is_busy();
        let until = self.rests_until(looked, busy);
        tokio::select! {
            biased;
            _ = self.closing.changed() => Ok(false),
            () = K::gate_changed(&mut self.local) => Ok(false),
            envelope = self.mailbox.recv() => {
                if let Some(envelope) = envelope {
                    self.receive(envelope);
                }
                Ok(false)
            }
            Some(done) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => {
                self.take_outcome(done);
                Ok(false)
            }
            () = self.streams.engine.clock.sleep_towards(until) => Ok(!busy && self.fall_asleep()),
        }
    }

    /// Until something is due; where that is far off and nothing is under way, until it hibernates.
    fn rests_until(&self, looked: Time, busy: bool) -> Time {
        let now = self.streams.engine.clock.now();
        let due = self.core.state().next_due();
        let crowded = self.streams.engine.awake() > CROWD;
        let linger = if crowded || !self.core.exists() { 0 } else { LINGER_MS };
        // A due item that did not fire is a bug of ours; it must not become a loop that never rests.
        if due.is_some_and(|due| due <= looked) {
            tracing::error!(stream = %self.id, ?due, "something is due, and nothing came of it");
        }
        let due = due.map(|due| if due <= looked { now.plus_ms(LINGER_MS) } else { due });
        match due {
            Some(due) if busy || due < now.plus_ms(linger) => due,
            Some(_) | None if busy => Time::MAX,
            Some(_) | None => now.plus_ms(linger),
        }
    }

    /// True when the mailbox is empty and nothing is due.
    fn fall_asleep(&mut self) -> bool {
        let now = self.streams.engine.clock.now();
        if self.core.state().next_due().is_some_and(|due| due <= now) {
            return false;
        }
        let left = self.streams.directory.fall_asleep(&self.id, &mut self.mailbox);
        let sleeps = left.is_empty();
        if sleeps {
            self.streams.kind.hibernated(&self.id);
            self.streams.engine.due_changed.notify_one();
        }
        left.into_iter().for_each(|envelope| self.receive(envelope));
        sleeps
    }

    /// A shutdown lets the stream come to its next safe point. True when there is something to commit first.
    fn close(&mut self) -> Result<bool, ActorEnd> {
        let wanted = *self.closing.borrow_and_update();
        let Some(signal) = wanted.signal() else { return Ok(false) };
        if !self.is_busy() {
            refuse_all(&mut self.mailbox, &AskError::Closing);
            return Err(ActorEnd::Closed);
        }
        if self.told_to_close != Closing::Open && (self.told_to_close.is_at_once() || !wanted.is_at_once()) {
            return Ok(false);
        }
        self.told_to_close = wanted;
        self.report(vec![K::Machine::signal(signal)]);
        Ok(true)
    }
}
