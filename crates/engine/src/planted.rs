//! Bugs of the loop that a test can switch on. Only in builds with the `planted` feature.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Answers go out before what they answer is durable.
    AnswersBeforeCommit,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Switches one bug on for this thread, or all off.
pub fn plant(bug: Option<Bug>) {
    PLANTED.with(|planted| planted.set(bug));
}

#[must_use]
pub fn is_on(bug: Bug) -> bool {
    PLANTED.with(|planted| planted.get() == Some(bug))
}
