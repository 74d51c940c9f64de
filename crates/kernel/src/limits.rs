//! Every bound of the kernel, in one place. Nothing grows without one.

/// Messages that are queued, parked or joined to a turn, per agent. More are refused before they are recorded.
pub const QUEUE_MAX: usize = 10_000;
/// Bytes of their bodies, per agent. Once they are reached, further messages are refused.
pub const QUEUE_BYTES: u64 = 1 << 30;
/// Messages that a queue takes whatever their size.
pub const QUEUE_MIN: usize = 1_000;
/// The part of a message's body that the state of an agent holds. The ledger has the whole body.
pub const EXCERPT_BYTES: usize = 240;
/// Messages in the state whose excerpt may be that long; the excerpts of further ones are `SHORT_EXCERPT_BYTES` long.
pub const LONG_EXCERPTS_MAX: usize = 1_000;
pub const SHORT_EXCERPT_BYTES: usize = 16;
/// The part of a message's body that lists show.
pub const LISTED_BODY_BYTES: usize = 4_096;
/// The text or JSON of one message.
pub const MESSAGE_BYTES: usize = 1 << 20;
/// One image that a model is shown, and the images of one message or result.
pub const IMAGE_BYTES: usize = 1 << 20;
pub const IMAGES_MAX: usize = 8;
/// The longer side of an image that a model is shown: what the strictest provider takes.
pub const IMAGE_SIDE_PX: u32 = 8_000;
/// Open records of one kind (work items, waits, timers, tasks, triggers, approvals), per agent.
pub const OPEN_RECORDS_MAX: usize = 131_072;
/// Wake hints from different sources, pending or on their way as a tick, per agent.
pub const HINT_SOURCES_MAX: usize = 256;
/// Bodies kept with one pending wake hint; further ones are counted.
pub const HINT_BODIES_MAX: usize = 16;
/// Bytes of the bodies kept with all pending wake hints of an agent; of further bodies an excerpt is kept.
pub const HINT_BYTES_MAX: usize = 1 << 20;
/// Names, summaries, reasons and other one-line texts.
pub const LINE_BYTES: usize = 4_096;
/// Plans, reports and other longer texts.
pub const TEXT_BYTES: usize = 256 * 1024;
/// A command. The system takes 32 pages as one argument of a program, with the zero at its end.
pub const COMMAND_BYTES: usize = 128 * 1024 - 1;
/// Entries of one todo list.
pub const TODO_MAX: usize = 256;
/// The part of the model's last text that a turn's terminal record keeps.
pub const LAST_ASSISTANT_BYTES: usize = 2_000;
/// Closed records of one kind that a state still remembers, newest last.
pub const RECENT_MAX: usize = 32;
/// Reasons for the cancellation of a task that the state keeps.
pub const CANCEL_REASONS_MAX: usize = 8;
/// The distance in facts up to which a reader of a turn looks for its message; a message farther back is referred to by seq.
pub const NEARBY_FACTS: u64 = 64;
/// Evidence lines of one decision.
pub const EVIDENCE_MAX: usize = 24;

/// Waits between the first tick of unchanged work and its retries. After the last of them the operator is asked.
pub const TICK_BACKOFF_MS: [u64; 3] = [30_000, 120_000, 600_000];
/// How many due retries a decision looks at to find the oldest item among them.
pub const DUE_LOOK_MAX: usize = 64;
/// Work ticks in a row of one agent during which it got no fewer open items; then it waits for the operator.
pub const WORK_TICKS_MAX: u32 = 50;

/// Crashes of one message with no newly committed round between them, before it is given up.
pub const CRASHES_WITHOUT_ROUND: u32 = 3;
/// Crashes of one message in all, before it is given up.
pub const CRASHES_MAX: u32 = 10;

/// How long turns are held for a key that does not work, before it is tried again.
pub const KEY_RETRY_MS: u64 = 600_000;
/// Waits after provider failures that name no time of their own; the last one repeats.
pub const PROVIDER_BACKOFF_MS: [u64; 5] = [2_000, 10_000, 60_000, 300_000, 600_000];

/// The longest wait that a provider may ask for; a message that waits longer looks lost.
pub const PROVIDER_RETRY_MAX_MS: u64 = 24 * 3_600_000;
/// The part of a model's error that the state keeps.
pub const MODEL_ERROR_BYTES: usize = 500;
/// Models that are tried after the first.
pub const FALLBACK_MAX: usize = 8;

/// A clock that is set back by no more than this is adjusted, and no time is recorded anew for it.
pub const CLOCK_SLACK_MS: u64 = 1_000;
/// A clock that is set back by more than this was wrong: occurrences of a calendar that have fired may fire again.
pub const CLOCK_REPEATS_MS: u64 = 48 * 3_600_000;
/// Runs of occurrences without a gap that a timer remembers to have fired.
pub const TIMER_STREAKS_MAX: usize = 32;
/// Occurrences ahead that are shown of one timer.
pub const UPCOMING_SHOWN: usize = 5;
/// The shortest interval of a repeating timer.
pub const TIMER_EVERY_MIN_MS: u64 = 100;
/// The farthest a timer, wait or deadline may lie ahead: a hundred years.
pub const TIMER_AHEAD_MAX_MS: u64 = 100 * 365 * 24 * 3_600_000;
/// An occurrence told within this span of its due time counts as on time for a timer that does not catch up.
pub const LATE_GRACE_MS: u64 = 5_000;
/// Missed occurrences that a timer which catches up with all of them still delivers; earlier ones are counted.
pub const CATCH_UP_ALL_MAX: u64 = 100;
/// How long a timer's check may take.
pub const CHECK_TIME_MS: u64 = 60_000;
/// The part of a tool result that a model is shown; the records have all of it.
pub const RESULT_SHOWN_BYTES: usize = 32 * 1024;
/// The same, where a turn has become too long for its model.
pub const RESULT_PREVIEW_BYTES: usize = 2 * 1024;
/// A summary of what is no longer shown.
pub const SUMMARY_BYTES: usize = 16 * 1024;
/// Times in a row that a call may come to the same result while one message is worked on; then it is not run.
pub const SAME_RESULT_MAX: u32 = 3;
/// Calls that are not run for that reason before the turn ends and the operator is asked.
pub const REPEATED_CALLS_MAX: u32 = 12;
/// Times in a row that a model is asked again because its answer was empty.
pub const SILENT_ROUNDS_ASKED: u32 = 1;
/// Calls in a row that may be cut off by the longest answer before the turn ends and its asker is told.
pub const CUT_CALLS_MAX: u32 = 3;
/// Different calls that are compared with earlier ones.
pub const GUARDED_CALLS_MAX: usize = 64;

/// The lifetime of a permit for a call that a person allowed.
pub const CALL_PERMIT_MS: u64 = 24 * 3_600_000;
/// Permits per agent; the oldest is dropped for a new one.
pub const CALL_PERMITS_MAX: usize = 64;

/// `text`, cut to at most `max` bytes at a character boundary.
#[must_use]
pub fn clip(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How long ago a moment may be that somebody names for a timer: on its way, a request takes time.
pub const JUST_PASSED_MS: u64 = 60_000;

/// Children of one agent that are at work at the same time.
pub const CHILDREN_MAX: usize = 32;
/// How far below the agent at the top children may have children.
pub const CHILD_DEPTH_MAX: u32 = 3;
/// Makers that a self-owned agent can have: every record of an agent names all of them.
pub const MAKERS_MAX: usize = 32;
/// The longest name of an agent.
pub const AGENT_ID_BYTES: usize = 64;
