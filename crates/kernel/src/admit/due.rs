//! Time has passed: deadlines decide, timers fire, rechecks remind. A stopped agent is left alone.

use std::sync::Arc;

use crate::agent::approval::Approval;
use crate::agent::timer::{Due, Timer};
use crate::fact::{ApprovalDecided, MessageQueued, RecheckFired, TimerFired, TimerMissed};
use crate::id::{ApprovalId, TimerId, WorkItemId};
use crate::input::Answer;
use crate::limits;
use crate::message::{Message, Origin};
use crate::scheduler::ticks;
use crate::step::Step;
use crate::time::Time;
use crate::vocabulary::{ApprovalDefault, ApprovalStatus, CatchUp, MessageKind, MissedReason, OriginKind};

pub(super) fn fire_due(step: &mut Step<'_>) -> Answer {
    if !step.state.is_runnable() {
        return Answer::Unchanged;
    }
    let now = step.now;
    let approvals: Vec<ApprovalId> =
        step.state.approvals.due_by(now).map(|approval| approval.approval_id.clone()).collect();
    for approval in &approvals {
        expire_approval(step, approval);
    }
    let timers: Vec<TimerId> = step.state.timers.due_by(now).map(|timer| timer.timer_id.clone()).collect();
    for timer in &timers {
        fire_timer(step, timer);
    }
    let rechecks: Vec<WorkItemId> =
        step.state.work.rechecks_due_by(now).map(|item| item.work_item_id.clone()).collect();
    for item in &rechecks {
        fire_recheck(step, item);
    }
    Answer::Done
}

fn expire_approval(step: &mut Step<'_>, id: &ApprovalId) {
    let Some(approval) = step.state.approvals.pending().get(id).cloned() else { return };
    let grant = approval.default == ApprovalDefault::Grant;
    step.emit(ApprovalDecided {
        approval_id: id.clone(),
        status: ApprovalStatus::Expired,
        decided_by: "deadline".to_owned(),
        lets_call: grant && approval.call.is_some(),
    });
    let outcome = if grant { "granted by default" } else { "denied by default" };
    tell_decision(step, &approval, grant, &format!("Nobody answered in time; {outcome}: {}", approval.summary));
}

/// The decision comes back as a message, and matches the wait that asked.
pub(super) fn tell_decision(step: &mut Step<'_>, approval: &Approval, grant: bool, text: &str) {
    let next = match (&approval.call, grant) {
        (None, _) => String::new(),
        (Some(_), true) => {
            let until = step.now.plus_ms(limits::GRANT_MS);
            format!("\nMake the very same call again: it may run once, until {until}.")
        }
        (Some(_), false) => "\nThe call was not made. Find another way, or say what can't be done.".to_owned(),
    };
    let message = Message {
        text: Some(format!("{text}{next}")),
        approval_id: Some(approval.approval_id.clone()),
        work_item_id: approval.work_item_id.clone(),
        ..Message::bare(step.fresh.message(), MessageKind::InternalFollowup)
    };
    step.emit(MessageQueued { message: Arc::new(message) });
}

/// Accounts for every occurrence up to now: one becomes the tick, the others are told with it or skipped.
fn fire_timer(step: &mut Step<'_>, id: &TimerId) {
    let Some(timer) = step.state.timers.get(id).cloned() else { return };
    let Some(next) = timer.next_fire_at else { return };
    let Some(due) = timer.schedule.due(next, step.now) else { return };
    let late = step.now.since_ms(due.last) > limits::LATE_GRACE_MS;
    match timer.catch_up {
        CatchUp::All => catch_up(step, &timer, due),
        CatchUp::None if late => {
            let (count, first, last) = (due.count, due.first, due.last);
            missed(step, id, count, first, last, MissedReason::Skipped, due.next);
        }
        CatchUp::Latest | CatchUp::None => {
            tick(step, &timer, due.last, due.next);
            if due.count > 1 {
                let reason = match timer.catch_up {
                    CatchUp::None => MissedReason::Skipped,
                    CatchUp::Latest | CatchUp::All => MissedReason::Coalesced,
                };
                let before_last = Time::from_ms(due.last.as_ms() - interval(due.first, due.last, due.count));
                missed(step, id, due.count - 1, due.first, before_last, reason, due.next);
            }
        }
    }
}

/// One occurrence after another, each with its own turn; but a backlog must not run for ever.
fn catch_up(step: &mut Step<'_>, timer: &Timer, due: Due) {
    let mut first = due.first;
    if let Some(dropped) = due.count.checked_sub(limits::CATCH_UP_ALL_MAX).filter(|dropped| *dropped > 0) {
        let every = interval(due.first, due.last, due.count);
        let after = |count: u64| {
            let span = every.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
            Time::from_ms(due.first.as_ms().saturating_add(span))
        };
        first = after(dropped);
        missed(step, &timer.timer_id, dropped, due.first, after(dropped - 1), MissedReason::Coalesced, Some(first));
    }
    tick(step, timer, first, timer.schedule.after(first));
}

fn interval(first: Time, last: Time, count: u64) -> i64 {
    let span = last.as_ms() - first.as_ms();
    span / i64::try_from(count.saturating_sub(1).max(1)).unwrap_or(i64::MAX)
}

fn tick(step: &mut Step<'_>, timer: &Timer, due: Time, next_fire_at: Option<Time>) {
    let message = Message {
        origin: Origin::of(OriginKind::Timer, Some(timer.timer_id.as_str())),
        text: Some(timer.summary.clone()),
        timer_id: Some(timer.timer_id.clone()),
        waiting_intent_id: timer.waiting_intent_id.clone(),
        work_item_id: timer.work_item_id.clone(),
        ..Message::bare(step.fresh.message(), MessageKind::TimerTick)
    };
    let message_id = message.message_id.clone();
    let fire_count = timer.fire_count + 1;
    step.emit(MessageQueued { message: Arc::new(message) });
    step.emit(TimerFired { timer_id: timer.timer_id.clone(), due, message_id, next_fire_at, fire_count });
}

fn missed(
    step: &mut Step<'_>,
    id: &TimerId,
    count: u64,
    first: Time,
    last: Time,
    reason: MissedReason,
    next_fire_at: Option<Time>,
) {
    let missed_count = step.state.timers.get(id).map_or(0, |timer| timer.missed_count).saturating_add(count);
    step.emit(TimerMissed { timer_id: id.clone(), count, first, last, reason, next_fire_at, missed_count });
}

/// Occurrences that came due while the tick was waiting are told with it when it is taken.
pub(crate) fn account_for_waiting_tick(step: &mut Step<'_>, id: &TimerId) {
    let Some(timer) = step.state.timers.get(id) else { return };
    if timer.catch_up == CatchUp::All {
        return;
    }
    let Some(next) = timer.next_fire_at else { return };
    let Some(due) = timer.schedule.due(next, step.now) else { return };
    missed(step, id, due.count, due.first, due.last, MissedReason::Coalesced, due.next);
}

/// A recheck reminds; it unblocks nothing.
fn fire_recheck(step: &mut Step<'_>, id: &WorkItemId) {
    let Some(item) = step.state.work.open(id) else { return };
    let Some(due) = item.recheck_at else { return };
    let message_id = step.fresh.message();
    let message = ticks::recheck_tick(message_id.clone(), item);
    step.emit(RecheckFired { work_item_id: id.clone(), due, message_id });
    step.emit(MessageQueued { message: Arc::new(message) });
}
