//! Bugs that a test can switch on, to prove that the simulator finds them. Only in builds with the `planted` feature;
//! a shipped build has none of this.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A finished task's result is not queued.
    DroppedResult,
    /// A work tick does not mark its item as offered.
    MissingIdempotencyCheck,
    /// A stopped agent still offers its work.
    TickAfterStop,
    /// Parked messages are not looked at again when waits change.
    ForgottenParked,
    /// A late report reopens a task that has ended.
    ReopenedTask,
    /// Interjections of a message that was given up are not returned.
    LostInterjection,
    /// Reading a result does not end the waits that name it.
    WaitOutlivesTask,
    /// Ticks run in a row although an operator is waiting.
    UnfairTimer,
    /// A turn that changed nothing does not count.
    EndlessOffers,
    /// The wake index does not know about timers.
    UnindexedTimer,
    /// A stop loses the message that was being worked on.
    StopLosesMessage,
    /// Cancelling a timer leaves its tick in the queue.
    OrphanedTick,
    /// Offering a queued item moves the focus to it.
    FocusMovesByTick,
    /// A message is replayed after every crash, for ever.
    EndlessReplay,
    /// Compaction forgets what is awaited.
    CompactionEndsWaits,
    /// Turns that an agent causes itself are never paced.
    UnpacedTurns,
    /// Work is offered for ever, however little comes of it.
    EndlessWork,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Switches one bug on for this thread, or all off.
pub fn plant(bug: Option<Bug>) {
    PLANTED.with(|planted| planted.set(bug));
}

/// The bug that is switched on for this thread.
#[must_use]
pub fn planted() -> Option<Bug> {
    PLANTED.with(Cell::get)
}
