//! Carrying a decision out: the decision, and what follows from it, as facts of one commit.

use std::sync::Arc;

use crate::budget::{Reached, Spent};
use crate::continuation::Continuation;
use crate::decision::Decision;
use crate::effect::Effect;
use crate::explain::{budget as budget_words, paced_turns};
use crate::fact::{
    BriefRecorded, BudgetReached, Fact, MessageDequeued, MessageParked, MessageProcessed, MessageQueued,
    PostureChanged, RoundStarted, SchedulerDecided, SelfTurnsPaced, TurnStarted,
};
use crate::id::{Fresh, MessageId, WorkItemId};
use crate::limits;
use crate::message::OfferedItem;
use crate::rules::transaction::Transaction;
use crate::rules::{account_for_waiting_tick, end_sleeps, leave_if_done, present, settle, trigger_wait};
use crate::scheduler::continuation::{Classification, classify_entry};
use crate::scheduler::ticks;
use crate::state::AgentState;
use crate::state::queue::Entry;
use crate::state::work::WorkItem;
use crate::time::Time;
use crate::vocabulary::{Boundary, BriefKind, DecisionKind, Reason, Standing, Status, TriggerKind};

/// The facts and effects of a decision. Empty when it says nothing new.
pub fn carry_out(
    state: &mut AgentState,
    decision: &Decision,
    now: Time,
    fresh: &mut Fresh,
) -> (Vec<Fact>, Vec<Effect>) {
    let before = state.status();
    let mut tx = Transaction::new(state, now, fresh);
    match decision.kind {
        DecisionKind::StartModelTurn => start_turn(&mut tx, decision),
        DecisionKind::ReduceMessageOnly => reduce(&mut tx, decision),
        DecisionKind::EmitSystemTick => emit_tick(&mut tx, decision),
        DecisionKind::WaitForTask
        | DecisionKind::WaitForExternalChange
        | DecisionKind::WaitForTimer
        | DecisionKind::WaitForOperator
        | DecisionKind::Sleep => fall_asleep(&mut tx, decision, before),
        DecisionKind::Stop => {
            if tx.state.decision() != Some(decision) {
                record(&mut tx, decision);
            }
        }
        DecisionKind::StayIdle => {
            // Already asleep, and what it slept for is gone: said once, so that the last decision is never stale.
            let last = tx.state.decision().map(|last| last.kind);
            if !matches!(last, Some(DecisionKind::Sleep | DecisionKind::StayIdle)) {
                record(&mut tx, decision);
            }
        }
        DecisionKind::Noop => {}
    }
    leave_if_done(&mut tx, decision);
    if !tx.facts().is_empty() {
        settle(&mut tx, before);
    }
    tx.finish()
}

fn record(tx: &mut Transaction<'_>, decision: &Decision) {
    tx.emit(SchedulerDecided { decision: decision.clone() });
}

fn start_turn(tx: &mut Transaction<'_>, decision: &Decision) {
    let Some(message_id) = decision.message_id.clone() else { return };
    let Some(entry) = tx.state.planes.queue.get(&message_id) else { return };
    let Classification::Reenter { continuation, matched } = classify_entry(tx.state, entry) else { return };
    let (replays, message, queued) = (entry.taken, entry.message.clone(), entry.seq);
    let answers = answers(tx.state, entry, &continuation, &matched);
    record(tx, decision);
    if let Some(timer) = message.timer_id() {
        account_for_waiting_tick(tx, timer);
    }
    tx.emit(MessageDequeued { message_id: message_id.clone(), replays });
    for wait in &matched {
        trigger_wait(tx, wait, Some(&message_id), Vec::new());
    }
    let work_item_id = binding(tx.state, message.work_item_id());
    end_sleeps(tx, work_item_id.as_ref());
    let (turn_id, exec_id) = (tx.fresh.turn(), tx.fresh.exec());
    let presents = present(tx.state, &message_id);
    tx.emit(TurnStarted {
        turn_id,
        exec_id: exec_id.clone(),
        turn_index: tx.state.turns.last_index + 1,
        message_id,
        work_item_id,
        continuation,
        answers,
        presents,
        message_seq: (tx.state.seq.saturating_sub(queued) > limits::NEARBY_FACTS).then_some(queued),
    });
    tx.emit(RoundStarted { exec_id, round: 1 });
}

/// The operator's message that a turn about this one owes an answer to: its own, or the one that was waited with. A
/// replay owes what it owed before.
fn answers(
    state: &AgentState,
    entry: &Entry,
    continuation: &Continuation,
    matched: &[crate::id::WaitId],
) -> Option<MessageId> {
    if continuation.trigger_kind == TriggerKind::OperatorInput {
        return Some(entry.message.message_id.clone());
    }
    let awaited = || matched.iter().find_map(|wait| state.planes.waits.get(wait)?.answers.clone());
    entry.answers.clone().or_else(|| entry.message.answers().cloned()).or_else(awaited)
}

/// A turn is about the item its message names, else about the one in focus. It moves no focus. An item whose budget is
/// spent pays for no turn: somebody who speaks to the agent is answered all the same, in a turn about no item.
fn binding(state: &AgentState, named: Option<&WorkItemId>) -> Option<WorkItemId> {
    let item = named.and_then(|id| state.planes.work.open(id)).or_else(|| state.planes.work.current())?;
    item.spent().is_none().then(|| item.work_item_id.clone())
}

fn reduce(tx: &mut Transaction<'_>, decision: &Decision) {
    let Some(message_id) = decision.message_id.clone() else { return };
    let Some(entry) = tx.state.planes.queue.get(&message_id) else { return };
    let (classified, replays) = (classify_entry(tx.state, entry), entry.taken);
    record(tx, decision);
    match classified {
        Classification::Park { behind, .. } => tx.emit(MessageParked { message_id, behind }),
        Classification::Reduce { continuation } | Classification::Reenter { continuation, .. } => {
            tx.emit(MessageDequeued { message_id: message_id.clone(), replays });
            tx.emit(MessageProcessed { message_id, ignored: continuation.evidence });
        }
    }
}

fn emit_tick(tx: &mut Transaction<'_>, decision: &Decision) {
    let message_id = tx.fresh.message();
    let Some(message) = make_tick(tx.state, decision, message_id) else { return };
    record(tx, decision);
    tx.emit(MessageQueued { message: Arc::new(message) });
}

#[allow(clippy::wildcard_enum_match_arm, reason = "no other reason emits a tick")]
fn make_tick(state: &AgentState, decision: &Decision, message_id: MessageId) -> Option<crate::message::Message> {
    let item = decision.work_item_id.as_ref().and_then(|id| state.planes.work.open(id));
    match decision.reason {
        Reason::ContinueActive => Some(ticks::make_work_tick(message_id, OfferedItem::Current, item?)),
        Reason::QueuedAvailable => Some(ticks::make_work_tick(message_id, OfferedItem::Queued, item?)),
        Reason::WakeHint => Some(ticks::make_hint_tick(state, message_id, state.planes.hints.deliverable()?)),
        _ => None,
    }
}

/// Puts the agent to rest, once; and tells the operator, once, of what only they can settle.
fn fall_asleep(tx: &mut Transaction<'_>, decision: &Decision, before: Status) {
    // Work may get stuck while the agent sleeps for something else.
    let same = before == Status::Asleep && tx.state.decision() == Some(decision);
    if same {
        return tell_what_waits(tx);
    }
    record(tx, decision);
    tell_what_waits(tx);
    let after = tx.state.status();
    if before != after {
        let evidence = vec![format!("decision {} {}", decision.kind, decision.reason)];
        tx.emit(PostureChanged::by_scheduler(Boundary::LifecycleSleep, before, after, evidence));
    }
}

/// Work that only a person can settle, and that no question stands for: each is told once.
fn tell_what_waits(tx: &mut Transaction<'_>) {
    tell_of_budget(tx);
    tell_of_pace(tx);
    let untold: Vec<WorkItem> = tx.state.planes.work.unreported_items().cloned().collect();
    for item in untold {
        let (id, objective) = (item.work_item_id.clone(), &item.objective);
        let spent = item.spent().filter(|_| tx.state.planes.work.standing(&id) == Some(Standing::BudgetSpent));
        let text = match spent {
            Some(Reached { measure, used, max }) => {
                let work_item_id = Some(id.clone());
                tx.emit(BudgetReached { work_item_id, measure, used, max, until: None });
                budget_words::of_item(tx.state.id(), &item)
            }
            None => {
                let blocker = item.blocked_by.as_deref().unwrap_or("something");
                format!("Nothing will wake the work item {id} ({objective}): it is blocked by {blocker}.")
            }
        };
        let brief_id = tx.fresh.brief();
        tx.emit(BriefRecorded {
            brief_id,
            kind: BriefKind::Failure,
            text,
            message_id: None,
            work_item_id: Some(id),
            cut: false,
        });
    }
}

/// A child's supervisor hears of it with its end; everybody else has an operator.
fn tell_of_budget(tx: &mut Transaction<'_>) {
    if tx.state.accounts.spending.told || tx.state.definition.identity.supervisor.is_some() {
        return;
    }
    let Some(Spent { reached: Reached { measure, used, max }, until }) = tx.state.spent_limit() else { return };
    let text = budget_words::of_agent(tx.state);
    tx.emit(BudgetReached { work_item_id: None, measure, used, max, until });
    let brief_id = tx.fresh.brief();
    tx.emit(BriefRecorded {
        brief_id,
        kind: BriefKind::Failure,
        text,
        message_id: None,
        work_item_id: None,
        cut: false,
    });
}

/// A child that waits for an hour is told of, too: it does not fail, so its supervisor does not hear of it.
fn tell_of_pace(tx: &mut Transaction<'_>) {
    if tx.state.accounts.pace.is_notified() {
        return;
    }
    let Some(not_before) = tx.state.pace_ends().filter(|until| *until > tx.now) else { return };
    let text = paced_turns(tx.state);
    tx.emit(SelfTurnsPaced { per_hour: tx.state.definition.limits.self_turns_per_hour, not_before });
    let brief_id = tx.fresh.brief();
    tx.emit(BriefRecorded {
        brief_id,
        kind: BriefKind::Failure,
        text,
        message_id: None,
        work_item_id: None,
        cut: false,
    });
}
