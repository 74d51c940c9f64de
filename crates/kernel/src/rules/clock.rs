//! The clock was set back: whatever was recorded as a duration from now lies no further ahead than that duration.
//!
//! A time that a person named stays what it is. Every correction is a fact, in the commit of the one that says that the
//! clock was set back, and there is one such fact: from then on the last fact is no later than the clock.

use crate::fact::{ApprovalDeadlineMoved, ClockSetBack, MessageRequeued, RecheckMoved, TimerRescheduled};
use crate::input::Answer;
use crate::limits;
use crate::rules::step::Step;
use crate::state::clock::remaining;
use crate::time::Time;
use crate::vocabulary::{MovedReason, RequeueReason};

const REASON: MovedReason = MovedReason::ClockSetBack;

pub(super) fn follow(step: &mut Step<'_>) -> Answer {
    let (from, to) = (step.state.at, step.now);
    if !step.state.clock_was_set_back(to) {
        return Answer::Unchanged;
    }
    step.emit(ClockSetBack { from, to });
    reschedule_timers(step, from);
    move_rechecks(step);
    move_deadlines(step);
    shorten_backoffs(step, from);
    Answer::Done
}

fn reschedule_timers(step: &mut Step<'_>, clock_from: Time) {
    let repeats = clock_from.since_ms(step.now) > limits::CLOCK_REPEATS_MS;
    let moved = step.state.planes.timers.active().values().filter_map(|timer| {
        let (from, to) = (timer.next_fire_at?, timer.next_from(step.now, repeats)?);
        let (timer_id, repeats) = (timer.timer_id.clone(), repeats && timer.told.is_some());
        Some(TimerRescheduled { timer_id, from, to, reason: REASON, repeats })
    });
    for moved in moved.collect::<Vec<_>>() {
        step.emit(moved);
    }
}

fn move_rechecks(step: &mut Step<'_>) {
    let moved = step.state.planes.work.items().values().filter_map(|item| {
        let (from, to) = (item.recheck_at?, step.now.plus_ms(item.recheck_after_ms?));
        (to < from).then(|| RecheckMoved { work_item_id: item.work_item_id.clone(), from, to, reason: REASON })
    });
    for moved in moved.collect::<Vec<_>>() {
        step.emit(moved);
    }
}

fn move_deadlines(step: &mut Step<'_>) {
    let moved = step.state.planes.approvals.pending().values().filter_map(|approval| {
        let (from, to) = (approval.deadline?, step.now.plus_ms(approval.deadline_ms?));
        (to < from).then(|| ApprovalDeadlineMoved {
            approval_id: approval.approval_id.clone(),
            from,
            to,
            reason: REASON,
        })
    });
    for moved in moved.collect::<Vec<_>>() {
        step.emit(moved);
    }
}

fn shorten_backoffs(step: &mut Step<'_>, clock_from: Time) {
    let moved = step.state.planes.queue.delayed().filter_map(|entry| {
        let until = entry.not_before?;
        let left = remaining(until, clock_from, step.now);
        let (message_id, not_before) = (entry.message.message_id.clone(), Some(left));
        (left < until).then_some(MessageRequeued { message_id, reason: RequeueReason::ClockSetBack, not_before })
    });
    for moved in moved.collect::<Vec<_>>() {
        step.emit(moved);
    }
}
