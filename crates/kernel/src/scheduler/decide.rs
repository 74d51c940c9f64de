//! `decide`: the table of decisions, row by row. The first row that holds is the decision.

use super::continuation::Classification;
use super::projection::SchedulerProjection;
use super::ticks;
use super::timed::{Timed, describe_next_fire};
use crate::decision::Decision;
use crate::fact::Resource;
use crate::limits;
use crate::message::OfferedItem;
use crate::state::AgentState;
#[cfg(feature = "planted")]
use crate::state::planted;
use crate::state::waiting::Wait;
use crate::state::work::WorkItem;
use crate::time::Time;
use crate::vocabulary::{Boundary, DecisionKind, HoldCause, Reason, Scope, Standing, Status, WaitKind};

/// Decides the next action of an agent.
#[must_use]
pub fn decide(state: &AgentState, now: Time) -> Decision {
    #[cfg(feature = "planted")]
    let state = &*planted::state_of_scheduler(state);
    decide_next_action(&SchedulerProjection::of(state, now))
}

#[must_use]
pub fn decide_next_action(p: &SchedulerProjection<'_>) -> Decision {
    decide_gated(p)
        .or_else(|| if p.work_first { decide_work(p) } else { None })
        .or_else(|| decide_message(p))
        .unwrap_or_else(|| decide_idle(p))
}

/// The decision with the queue left aside, as if the agent had no messages.
#[must_use]
pub fn decide_idle(p: &SchedulerProjection<'_>) -> Decision {
    let decision = decide_gated(p)
        .or_else(|| decide_hint(p))
        .or_else(|| decide_work(p))
        .or_else(|| decide_operator_wait(p))
        .or_else(|| decide_pace(p))
        .or_else(|| decide_task_wait(p))
        .or_else(|| decide_external_wait(p))
        .or_else(|| decide_timed_wait(p))
        .or_else(|| decide_stuck(p))
        .or_else(|| decide_standing_timer(p))
        .unwrap_or_else(|| decide_rest(p));
    add_ignored(p, decision)
}

/// Rows 1 to 3: control, a running turn, a spent budget (its own or the home's), no key that works, a disk without room.
fn decide_gated(p: &SchedulerProjection<'_>) -> Option<Decision> {
    if let Some((reason, evidence)) = &p.gate {
        return Some(Decision::new(DecisionKind::Stop, *reason).because(evidence.clone()));
    }
    if let Some(exec) = p.running {
        let mut decision = Decision::new(DecisionKind::Noop, Reason::TurnInProgress).because(format!("turn {exec}"));
        decision.boundary = Boundary::Turn;
        return Some(decision);
    }
    if let Some(spent) = &p.budget_spent {
        return Some(Decision::new(DecisionKind::WaitForOperator, Reason::BudgetSpent).because(spent.clone()));
    }
    if let Some(held) = &p.state.lifecycle.turns_held {
        let reason = match held.cause {
            HoldCause::HomeBudget => Reason::HomeBudgetSpent,
            HoldCause::ModelKey => Reason::ModelKey,
        };
        let decision = Decision::new(DecisionKind::WaitForOperator, reason).because(held.evidence.clone());
        return Some(decision.because(format!("until {}", held.until)));
    }
    let short = p.state.lifecycle.disk_short.as_ref()?;
    Some(Decision::new(DecisionKind::WaitForTimer, Reason::DiskReserve).because(short.evidence.clone()))
}

/// Row 4: a queued message that is due.
fn decide_message(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let (entry, classified) = p.message.as_ref()?;
    let (kind, reason) = match classified {
        Classification::Reenter { .. } => (DecisionKind::StartModelTurn, Reason::ModelReentryMessage),
        Classification::Reduce { .. } => (DecisionKind::ReduceMessageOnly, Reason::LivenessOnlyMessage),
        Classification::Park { .. } => (DecisionKind::ReduceMessageOnly, Reason::MessageParked),
    };
    let continuation = classified.continuation();
    let message = &entry.message;
    let mut decision = Decision::new(kind, reason)
        .because(format!("message_{} {} seq {}", entry.status, message.message_id, entry.seq))
        .because(continuation.class.to_string());
    decision.evidence.extend(continuation.evidence.iter().cloned());
    decision.boundary = Boundary::Message;
    decision.model_reentry = kind == DecisionKind::StartModelTurn;
    decision.liveness_only = !decision.model_reentry;
    decision.message_id = Some(message.message_id.clone());
    decision.work_item_id = message.work_item_id().cloned();
    decision.task_id = message.task_id().cloned();
    Some(decision)
}

/// Row 5: a wake hint whose source has no tick under way.
fn decide_hint(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let hint = p.hint?;
    let decision = Decision::new(DecisionKind::EmitSystemTick, Reason::WakeHint)
        .because("runtime_idle")
        .because(format!("pending_wake_hint {} seq {}", hint.source, hint.seq))
        .because(format!("key {}", ticks::hint_tick_key(hint)));
    Some(Decision { liveness_only: !hint.is_contentful(), ..decision })
}

/// Rows 6 and 7: runnable work whose tick is due.
fn decide_work(p: &SchedulerProjection<'_>) -> Option<Decision> {
    if !p.may_offer_work() {
        return None;
    }
    let (item, offer, reason, what) = match (p.current, p.oldest_due_item()) {
        (Some((item, true)), _) => (item, OfferedItem::Current, Reason::ContinueActive, "current_work_item_runnable"),
        (_, Some(item)) => (item, OfferedItem::Queued, Reason::QueuedAvailable, "queued_work_item_runnable"),
        (_, None) => return None,
    };
    let decision = Decision::new(DecisionKind::EmitSystemTick, reason)
        .because("runtime_idle")
        .because(what)
        .because("no_duplicate_tick_for_generation")
        .because(format!("work_item {} revision {} seq {}", item.work_item_id, item.revision, item.seq))
        .because(format!("key {}", ticks::work_tick_key(offer, item)));
    Some(Decision { work_item_id: Some(item.work_item_id.clone()), ..decision })
}

pub(super) fn about_item(kind: DecisionKind, reason: Reason, item: &WorkItem) -> Decision {
    let evidence = format!("work_item {} {} seq {}", item.work_item_id, reason, item.seq);
    Decision { work_item_id: Some(item.work_item_id.clone()), ..Decision::new(kind, reason) }.because(evidence)
}

pub(super) fn about_wait(kind: DecisionKind, reason: Reason, wait: &Wait) -> Decision {
    let task_id = match &wait.resource {
        Some(Resource::Task(task)) => Some(task.clone()),
        Some(Resource::Trigger(_) | Resource::Correlation(_) | Resource::Timer(_) | Resource::Approval(_)) | None => {
            None
        }
    };
    let named = wait.resource.as_ref().map(|resource| format!(" on {}", resource.as_str())).unwrap_or_default();
    Decision { work_item_id: wait.work_item_id.clone(), task_id, ..Decision::new(kind, reason) }
        .because(format!("wait {} {}{named} seq {}", wait.waiting_intent_id, wait.kind, wait.seq))
}

/// Row 8: a question that only a person can settle.
fn decide_operator_wait(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let kind = DecisionKind::WaitForOperator;
    if let Some(item) = p.oldest_item(Standing::NeedsInput) {
        return Some(about_item(kind, Reason::WorkItemNeedsInput, item));
    }
    if let Some(wait) = p.open_question() {
        return Some(about_wait(kind, Reason::ActiveOperatorWait, wait));
    }
    if let Some(approval) = p.state.planes.approvals.pending().values().next() {
        let decision = Decision::new(kind, Reason::ApprovalPending)
            .because(format!("approval {} seq {}", approval.approval_id, approval.seq));
        return Some(Decision { work_item_id: approval.work_item_id.clone(), ..decision });
    }
    if let Some(item) = p.oldest_item(Standing::BudgetSpent) {
        let spent = item.spent().map(|spent| spent.evidence()).unwrap_or_default();
        return Some(about_item(kind, Reason::BudgetSpent, item).because(spent));
    }
    if let Some(item) = p.oldest_item(Standing::ProgressSpent) {
        return Some(about_item(kind, Reason::NoProgressBudgetSpent, item));
    }
    let held = p.state.planes.work.held_back();
    (held > 0).then(|| {
        Decision::new(kind, Reason::WorkTicksSpent)
            .because(format!("work_ticks_in_a_row {}", limits::WORK_TICKS_MAX))
            .because(format!("runnable_work_items {held}"))
    })
}

/// Before rows 9 to 11: messages that the agent caused itself are there, and wait because it did so too often. Waits and
/// timers that they belong to are over, as far as anything outside is concerned.
fn decide_pace(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let until = p.state.pace_ends().filter(|_| p.paced)?;
    let entry = p.state.planes.queue.first_own()?;
    let per_hour = p.state.definition.limits.self_turns_per_hour;
    let decision = Decision::new(DecisionKind::WaitForTimer, Reason::SelfTurnsPaced)
        .because(format!("self_turns_per_hour {per_hour}"))
        .because(format!("message {} not_before {until} seq {}", entry.message.message_id, entry.seq));
    Some(Decision { message_id: Some(entry.message.message_id.clone()), ..decision })
}

/// Row 9: a task wait.
fn decide_task_wait(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let of = |scope, reason| {
        p.first_wait(scope, WaitKind::Task).map(|wait| about_wait(DecisionKind::WaitForTask, reason, wait))
    };
    of(Scope::WorkItem, Reason::WorkItemTaskWait).or_else(|| of(Scope::Agent, Reason::ActiveTaskWait))
}

/// Row 10: an external wait.
fn decide_external_wait(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let of = |scope, reason| {
        p.first_wait(scope, WaitKind::External)
            .map(|wait| about_wait(DecisionKind::WaitForExternalChange, reason, wait))
    };
    of(Scope::WorkItem, Reason::WorkItemExternalWait).or_else(|| of(Scope::Agent, Reason::ActiveAgentWaitingIntents))
}

/// Row 11: a timer wait, a sleep, a recheck, a backoff; the one that is due first.
fn decide_timed_wait(p: &SchedulerProjection<'_>) -> Option<Decision> {
    Timed::first(p.state).map(|timed| timed.decision())
}

/// Row 12: a blocked item that nothing above will ever wake.
fn decide_stuck(p: &SchedulerProjection<'_>) -> Option<Decision> {
    p.oldest_item(Standing::Stuck).map(|item| about_item(DecisionKind::WaitForOperator, Reason::WorkItemBlocked, item))
}

/// Row 13: a standing timer. Nothing waits for it, and it wakes the agent all the same.
fn decide_standing_timer(p: &SchedulerProjection<'_>) -> Option<Decision> {
    let timer = p.state.planes.timers.first_due()?;
    Some(Decision::new(DecisionKind::WaitForTimer, Reason::ActiveTimers).because(describe_next_fire(timer)))
}

/// Rows 8 and 12: the questions that only a person can settle, whichever row decides.
#[must_use]
pub fn decide_person_needed(p: &SchedulerProjection<'_>) -> Option<Decision> {
    decide_operator_wait(p).or_else(|| decide_stuck(p))
}

/// Row 14: nothing; unless the only thing there is already under way.
fn decide_rest(p: &SchedulerProjection<'_>) -> Decision {
    if p.state.planes.work.count(Standing::Runnable) > 0 && !p.state.planes.work.items_by_tick().is_empty() {
        return Decision::new(DecisionKind::Noop, Reason::DuplicateTick).because("tick_under_way");
    }
    if !p.state.planes.hints.pending().is_empty() {
        return Decision::new(DecisionKind::Noop, Reason::DuplicateWakeHint).because("wake_tick_under_way");
    }
    if p.state.status() == Status::Asleep {
        return Decision::new(DecisionKind::StayIdle, Reason::AlreadyAsleep).because("nothing_pending");
    }
    Decision::new(DecisionKind::Sleep, Reason::NoPendingSchedulerFacts).because("nothing_pending")
}

/// Lists the records that did not count for this decision, so that a suppressed one is visible.
fn add_ignored(p: &SchedulerProjection<'_>, mut decision: Decision) -> Decision {
    let held = p.state.lifecycle.holds_turns();
    if p.gate.is_some() || p.running.is_some() || p.budget_spent.is_some() || held {
        return decision;
    }
    if let Some((item, false)) = p.current {
        let why = if item.ticks.undelivered.is_some() || item.ticks.attempts > 0 {
            Reason::DuplicateTick
        } else {
            Reason::SuppressedAfterReentry
        };
        decision.ignored.push(format!("{why} {}", item.work_item_id));
    }
    if p.hint.is_none() && !p.state.planes.hints.pending().is_empty() {
        decision.ignored.push(format!("{} {}", Reason::DuplicateWakeHint, p.state.planes.hints.pending().len()));
    }
    if let Some(sleep) = p.agent_sleep() {
        decision.ignored.push(format!("held_by_sleep {}", sleep.waiting_intent_id));
    }
    decision
}
