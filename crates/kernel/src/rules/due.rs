//! Time has passed: a day's budget begins anew, holds end, deadlines decide, timers fire, rechecks remind. A stopped agent
//! is left alone.

use std::sync::Arc;

use crate::fact::{
    ApprovalDecided, BudgetRenewed, DiskHasRoom, MessageQueued, RecheckFired, TimerCheckStarted, TimerFired,
    TimerMissed,
};
use crate::id::{ApprovalId, TimerId, WorkItemId};
use crate::input::{Answer, Checked};
use crate::limits;
use crate::message::{Message, Origin, Subject};
use crate::rules::transaction::Transaction;
use crate::scheduler::ticks;
use crate::state::approval::Approval;
use crate::state::spending::Spending;
use crate::state::timer::{DueOccurrences, Timer};
use crate::time::Time;
use crate::vocabulary::{ApprovalDefault, ApprovalStatus, CatchUp, Maker, MissedReason, OriginKind};

use super::hold;

/// The length of a held-back tick's note: the word of the check that held it back.
const NOTE_BYTES: usize = 200;

pub(super) fn fire_due(tx: &mut Transaction<'_>) -> Answer {
    if !tx.state.lifecycle.is_runnable() {
        return Answer::Unchanged;
    }
    let now = tx.now;
    if tx.state.next_renewal().is_some_and(|midnight| midnight <= now) {
        tx.emit(BudgetRenewed { since: Spending::day_begins(now) });
    }
    if tx.state.lifecycle.disk_short.as_ref().is_some_and(|short| short.until <= now) {
        tx.emit(DiskHasRoom {});
    }
    hold::release_due(tx, now);
    let approvals: Vec<ApprovalId> =
        tx.state.planes.approvals.due_by(now).map(|approval| approval.approval_id.clone()).collect();
    for approval in &approvals {
        expire_approval(tx, approval);
    }
    let timers: Vec<TimerId> = tx.state.planes.timers.due_by(now).map(|timer| timer.timer_id.clone()).collect();
    for timer in &timers {
        fire_timer(tx, timer);
    }
    let rechecks: Vec<WorkItemId> =
        tx.state.planes.work.rechecks_due_by(now).map(|item| item.work_item_id.clone()).collect();
    for item in &rechecks {
        fire_recheck(tx, item);
    }
    Answer::Done
}

fn expire_approval(tx: &mut Transaction<'_>, id: &ApprovalId) {
    let Some(approval) = tx.state.planes.approvals.pending().get(id).cloned() else { return };
    let grant = approval.default == ApprovalDefault::Grant;
    tx.emit(ApprovalDecided {
        approval_id: id.clone(),
        status: ApprovalStatus::Expired,
        decided_by: "deadline".to_owned(),
        lets_call: grant && approval.call.is_some(),
    });
    let outcome = if grant { "granted by default" } else { "denied by default" };
    let text = format!("Nobody answered in time; {outcome}: {}", approval.summary);
    tell_decision(tx, &approval, grant, &text, Maker::Model);
}

/// The decision comes back as a message, and matches the wait that asked. One that no person made follows from the
/// model's own question.
pub(super) fn tell_decision(tx: &mut Transaction<'_>, approval: &Approval, grant: bool, text: &str, by: Maker) {
    let next = match (&approval.call, grant) {
        (None, _) => String::new(),
        (Some(_), true) => {
            let until = tx.now.plus_ms(limits::CALL_PERMIT_MS);
            format!("\nMake the very same call again: it may run once, until {until}.")
        }
        (Some(_), false) => "\nThe call was not made. Find another way, or say what can't be done.".to_owned(),
    };
    let (approval_id, work_item_id) = (approval.approval_id.clone(), approval.work_item_id.clone());
    let message = Message {
        text: Some(format!("{text}{next}")),
        self_caused: by == Maker::Model,
        ..Message::new(tx.fresh.message(), Subject::ApprovalDecided { approval_id, work_item_id })
    };
    tx.emit(MessageQueued { message: Arc::new(message) });
}

/// Accounts for every occurrence up to now: one becomes the tick, the others are told with it or skipped.
fn fire_timer(tx: &mut Transaction<'_>, id: &TimerId) {
    pass_over_fired(tx, id);
    let Some(timer) = tx.state.planes.timers.get(id).cloned() else { return };
    let Some(next) = timer.next_fire_at else { return };
    // Those that have fired are not told with those before them.
    let fired = timer.fired.as_ref().and_then(|told| told.first_streak_after(&timer.schedule, next));
    let until = fired.map_or(tx.now, |run| tx.now.min(Time::from_ms(run.first.as_ms() - 1)));
    let Some(due) = timer.schedule.due_occurrences(next, until) else { return };
    let late = tx.now.since_ms(due.last) > limits::LATE_GRACE_MS;
    match timer.catch_up {
        CatchUp::All => catch_up(tx, &timer, due),
        CatchUp::None if late => {
            missed(tx, id, Run { count: due.count, first: due.first, last: due.last }, MissedReason::Skipped, due.next);
        }
        CatchUp::Latest | CatchUp::None => {
            begin_occurrence(tx, &timer, due.last, due.next);
            if due.count > 1 {
                let reason = match timer.catch_up {
                    CatchUp::None => MissedReason::Skipped,
                    CatchUp::Latest | CatchUp::All => MissedReason::Coalesced,
                };
                let last = timer.schedule.occurrence_before(due.last).unwrap_or(due.first).max(due.first);
                missed(tx, id, Run { count: due.count - 1, first: due.first, last }, reason, due.next);
            }
        }
    }
}

/// Occurrences that have fired do not fire again because the clock was set back and shows their time once more.
fn pass_over_fired(tx: &mut Transaction<'_>, id: &TimerId) {
    loop {
        let Some(timer) = tx.state.planes.timers.get(id) else { return };
        let Some((next, told)) = timer.next_fire_at.zip(timer.fired.as_ref()) else { return };
        let Some(fired) = told.streak_with(&timer.schedule, next) else { return };
        let Some(due) = timer.schedule.due_occurrences(next, tx.now.min(fired.last)) else { return };
        let run = Run { count: due.count, first: due.first, last: due.last };
        missed(tx, id, run, MissedReason::FiredBefore, due.next);
    }
}

/// One occurrence after another, each with its own turn; but a backlog must not run for ever.
fn catch_up(tx: &mut Transaction<'_>, timer: &Timer, due: DueOccurrences) {
    let mut first = due.first;
    if let Some(dropped) = due.count.checked_sub(limits::CATCH_UP_ALL_MAX).filter(|dropped| *dropped > 0) {
        let before = |time: Time| timer.schedule.occurrence_before(time).unwrap_or(due.first).max(due.first);
        first = (1..limits::CATCH_UP_ALL_MAX).fold(due.last, |time, _| before(time));
        let run = Run { count: dropped, first: due.first, last: before(first) };
        missed(tx, &timer.timer_id, run, MissedReason::Coalesced, Some(first));
    }
    begin_occurrence(tx, timer, first, timer.schedule.occurrence_after(first));
}

/// An occurrence becomes a tick; where the timer has a check, that has a say first.
fn begin_occurrence(tx: &mut Transaction<'_>, timer: &Timer, due: Time, next_fire_at: Option<Time>) {
    match timer.check {
        None => queue_tick(tx, timer, due, next_fire_at, timer.summary.clone()),
        Some(_) => {
            let timer_id = timer.timer_id.clone();
            tx.emit(TimerCheckStarted { timer_id, due, next_fire_at, evidence: Vec::new() });
        }
    }
}

/// A check that could not be done must not hide what it was to look for: only its own word holds a tick back.
pub(super) fn finish_check(tx: &mut Transaction<'_>, id: &TimerId, due: Time, checked: Checked) -> Answer {
    let Some(timer) = tx.state.planes.timers.get(id).cloned() else { return Answer::Unchanged };
    if timer.checking.is_none_or(|checking| checking.due != due) {
        return Answer::Unchanged;
    }
    let next = timer.next_fire_at;
    let told = |said: String| format!("{}\n\n{said}", timer.summary);
    match checked {
        Checked::Exited { exit_code: 0, output } if output.trim().is_empty() => {
            queue_tick(tx, &timer, due, next, timer.summary.clone());
        }
        Checked::Exited { exit_code: 0, output } => {
            let output = limits::clip(&output, limits::LINE_BYTES);
            queue_tick(tx, &timer, due, next, told(format!("Its check said:\n{output}")));
        }
        Checked::Exited { exit_code, output } => {
            let said = output.lines().find(|line| !line.trim().is_empty()).map(|line| format!(": {}", line.trim()));
            let note = format!("exit code {exit_code}{}", said.unwrap_or_default());
            end_check(tx, id, MissedReason::CheckSaidNo, Some(limits::clip(&note, NOTE_BYTES).to_owned()));
        }
        Checked::NotDone { why } => {
            let why = limits::clip(&why, limits::LINE_BYTES);
            queue_tick(tx, &timer, due, next, told(format!("Its check could not be done, so look yourself: {why}")));
        }
    }
    Answer::Done
}

/// The occurrence that is being checked gets no tick.
pub(super) fn end_check(tx: &mut Transaction<'_>, id: &TimerId, reason: MissedReason, note: Option<String>) {
    let Some(timer) = tx.state.planes.timers.get(id) else { return };
    let Some(checking) = timer.checking else { return };
    let (next_fire_at, missed_count) = (timer.next_fire_at, timer.missed_count.saturating_add(1));
    let (timer_id, first, last) = (id.clone(), checking.due, checking.due);
    tx.emit(TimerMissed { timer_id, count: 1, first, last, reason, next_fire_at, missed_count, note });
}

/// The checks that are under way are cut: a stopped agent runs none.
pub(super) fn end_checks(tx: &mut Transaction<'_>) {
    for timer in tx.state.planes.timers.checking().clone() {
        end_check(tx, &timer, MissedReason::Stopped, None);
    }
}

/// Checks that ended with their process are done again, for the same occurrence.
pub(super) fn check_again(tx: &mut Transaction<'_>) {
    for timer_id in tx.state.planes.timers.checking().clone() {
        let Some(timer) = tx.state.planes.timers.get(&timer_id) else { continue };
        let Some(checking) = timer.checking else { continue };
        let (due, next_fire_at, evidence) = (checking.due, timer.next_fire_at, vec!["restart".to_owned()]);
        tx.emit(TimerCheckStarted { timer_id, due, next_fire_at, evidence });
    }
}

fn queue_tick(tx: &mut Transaction<'_>, timer: &Timer, due: Time, next_fire_at: Option<Time>, text: String) {
    let subject = Subject::TimerTick {
        timer_id: timer.timer_id.clone(),
        waiting_intent_id: timer.waiting_intent_id.clone(),
        work_item_id: timer.work_item_id.clone(),
    };
    let message = Message {
        origin: Origin::of(OriginKind::Timer, Some(timer.timer_id.as_str())),
        text: Some(text),
        self_caused: timer.made_by == Some(Maker::Model),
        ..Message::new(tx.fresh.message(), subject)
    };
    let message_id = message.message_id.clone();
    let fire_count = timer.fire_count + 1;
    tx.emit(MessageQueued { message: Arc::new(message) });
    tx.emit(TimerFired { timer_id: timer.timer_id.clone(), due, message_id, next_fire_at, fire_count });
}

/// Occurrences that get no tick of their own.
struct Run {
    count: u64,
    first: Time,
    last: Time,
}

fn missed(tx: &mut Transaction<'_>, id: &TimerId, run: Run, reason: MissedReason, next_fire_at: Option<Time>) {
    let Run { count, first, last } = run;
    let missed_count = tx.state.planes.timers.get(id).map_or(0, |timer| timer.missed_count).saturating_add(count);
    tx.emit(TimerMissed { timer_id: id.clone(), count, first, last, reason, next_fire_at, missed_count, note: None });
}

/// Occurrences that came due while the tick was waiting are told with it when it is taken.
pub(crate) fn account_for_waiting_tick(tx: &mut Transaction<'_>, id: &TimerId) {
    let Some(timer) = tx.state.planes.timers.get(id) else { return };
    if timer.catch_up == CatchUp::All {
        return;
    }
    let Some(next) = timer.next_fire_at else { return };
    let Some(due) = timer.schedule.due_occurrences(next, tx.now) else { return };
    let run = Run { count: due.count, first: due.first, last: due.last };
    missed(tx, id, run, MissedReason::Coalesced, due.next);
}

/// A recheck reminds; it unblocks nothing.
fn fire_recheck(tx: &mut Transaction<'_>, id: &WorkItemId) {
    let Some(item) = tx.state.planes.work.open(id) else { return };
    let Some(due) = item.recheck_at else { return };
    let message_id = tx.fresh.message();
    let message = ticks::make_recheck_tick(message_id.clone(), item);
    tx.emit(RecheckFired { work_item_id: id.clone(), due, message_id });
    tx.emit(MessageQueued { message: Arc::new(message) });
}
