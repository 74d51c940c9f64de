//! The clock was set back: whatever was recorded as a duration from now lies no further ahead than that duration.
//!
//! A time that a person named stays what it is. Every correction is a fact, in the commit of the one that says that the
//! clock was set back, and there is one such fact: from then on the last fact is no later than the clock.

use crate::fact::{ApprovalDeadlineMoved, ClockSetBack, MessageRequeued, RecheckMoved, TimerRescheduled};
use crate::input::Answer;
use crate::limits;
use crate::rules::transaction::Transaction;
use crate::state::clock::remaining;
use crate::time::Time;
use crate::vocabulary::{MovedReason, RequeueReason};

const REASON: MovedReason = MovedReason::ClockSetBack;

pub(super) fn follow(tx: &mut Transaction<'_>) -> Answer {
    let (from, to) = (tx.state.at, tx.now);
    if !tx.state.clock_was_set_back(to) {
        return Answer::Unchanged;
    }
    tx.emit(ClockSetBack { from, to });
    reschedule_timers(tx, from);
    move_rechecks(tx);
    move_deadlines(tx);
    shorten_backoffs(tx, from);
    Answer::Done
}

fn reschedule_timers(tx: &mut Transaction<'_>, clock_from: Time) {
    let repeats = clock_from.since_ms(tx.now) > limits::CLOCK_REPEATS_MS;
    let moved = tx.state.planes.timers.active().values().filter_map(|timer| {
        let (from, to) = (timer.next_fire_at?, timer.next_fire_from(tx.now, repeats)?);
        let (timer_id, repeats) = (timer.timer_id.clone(), repeats && timer.fired.is_some());
        Some(TimerRescheduled { timer_id, from, to, reason: REASON, repeats })
    });
    for moved in moved.collect::<Vec<_>>() {
        tx.emit(moved);
    }
}

fn move_rechecks(tx: &mut Transaction<'_>) {
    let moved = tx.state.planes.work.items().values().filter_map(|item| {
        let (from, to) = (item.recheck_at?, tx.now.plus_ms(item.recheck_after_ms?));
        (to < from).then(|| RecheckMoved { work_item_id: item.work_item_id.clone(), from, to, reason: REASON })
    });
    for moved in moved.collect::<Vec<_>>() {
        tx.emit(moved);
    }
}

fn move_deadlines(tx: &mut Transaction<'_>) {
    let moved = tx.state.planes.approvals.pending().values().filter_map(|approval| {
        let (from, to) = (approval.deadline?, tx.now.plus_ms(approval.deadline_ms?));
        (to < from).then(|| ApprovalDeadlineMoved {
            approval_id: approval.approval_id.clone(),
            from,
            to,
            reason: REASON,
        })
    });
    for moved in moved.collect::<Vec<_>>() {
        tx.emit(moved);
    }
}

fn shorten_backoffs(tx: &mut Transaction<'_>, clock_from: Time) {
    let moved = tx.state.planes.queue.delayed().filter_map(|entry| {
        let until = entry.not_before?;
        let left = remaining(until, clock_from, tx.now);
        let (message_id, not_before) = (entry.message.message_id.clone(), Some(left));
        (left < until).then_some(MessageRequeued { message_id, reason: RequeueReason::ClockSetBack, not_before })
    });
    for moved in moved.collect::<Vec<_>>() {
        tx.emit(moved);
    }
}
