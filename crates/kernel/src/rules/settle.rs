//! Rules that must hold after every transaction, whatever the transaction was, and that belong to no single input.

use std::sync::Arc;

use crate::fact::{
    Fact, MessageQueued, MessageRequeued, PostureChanged, TaskResultQueued, TimerCompleted, WorkTicksSpent,
};
use crate::id::{MessageId, WaitId};
use crate::limits;
use crate::message::{Message, Origin, Subject};
use crate::rules::transaction::Transaction;
use crate::scheduler::continuation::{Classification, classify};
use crate::state::task::Task;
use crate::vocabulary::{Boundary, BriefKind, Maker, OriginKind, RequeueReason, Standing, Status, TaskKind, WaitKind};

use super::children::go_on_leaving;
use super::turn::record_brief;
use super::waits::{cancel_wait, drop_if_waiting};
use super::workspace::let_go;

pub(crate) fn settle(tx: &mut Transaction<'_>, before: Status) {
    complete_finished_timers(tx);
    hold_endless_work(tx);
    end_hopeless_waits(tx);
    drop_stale_ticks(tx);
    queue_owed_results(tx);
    if tx.facts().iter().any(is_about_waits) {
        examine_parked(tx);
    }
    let_go(tx);
    go_on_leaving(tx);
    let after = tx.state.status();
    if before == Status::Asleep && after == Status::AwakeIdle {
        let evidence = woken_by(tx.facts());
        tx.emit(PostureChanged::by_scheduler(Boundary::MessageAdmission, before, after, evidence));
    }
}

/// The messages that ended a rest, or the facts that did.
fn woken_by(facts: &[Fact]) -> Vec<String> {
    #[allow(clippy::wildcard_enum_match_arm, reason = "only these bring a message")]
    let messages = facts.iter().filter_map(|fact| match fact {
        Fact::MessageQueued(queued) => Some(format!("message_queued {}", queued.message.message_id)),
        Fact::MessageRequeued(requeued) => Some(format!("message_requeued {}", requeued.message_id)),
        _ => None,
    });
    let messages: Vec<String> = messages.collect();
    if !messages.is_empty() {
        return messages;
    }
    let kinds: std::collections::BTreeSet<&str> = facts.iter().map(Fact::kind).collect();
    kinds.into_iter().map(|kind| format!("fact {kind}")).collect()
}

fn is_about_waits(fact: &Fact) -> bool {
    matches!(fact, Fact::WaitingIntentCreated(_) | Fact::WaitingIntentTriggered(_) | Fact::WaitingIntentCancelled(_))
}

/// A timer whose last occurrence was told and taken is done.
fn complete_finished_timers(tx: &mut Transaction<'_>) {
    let finished: Vec<_> = tx.state.planes.timers.finished().iter().cloned().collect();
    for timer_id in finished {
        let waits = super::waits::naming(tx, &crate::fact::Resource::Timer(timer_id.clone()));
        tx.emit(TimerCompleted { timer_id });
        for wait in waits {
            tell_agent(tx, &wait, "its timer ended without a tick for it", Maker::Model);
            cancel_wait(tx, &wait, "timer_completed");
        }
    }
}

/// Work that was offered again and again, and of which there is no less, waits for the operator, who is told.
fn hold_endless_work(tx: &mut Transaction<'_>) {
    let row = tx.state.planes.work.tick_row();
    if !row.is_too_long() {
        return;
    }
    let open = tx.state.planes.work.items().len();
    tx.emit(WorkTicksSpent { ticks: row.ticks, open_items: open as u64 });
    // A child has no person to ask: it fails, and says why.
    if tx.state.definition.identity.supervisor.is_none() {
        let text = crate::explain::endless_work(tx.state);
        record_brief(tx, BriefKind::Failure, text, None);
    }
}

/// A wait that nothing can end any more would be silence: it ends, and the agent is told.
fn end_hopeless_waits(tx: &mut Transaction<'_>) {
    let no_task = tx.state.planes.tasks.open().is_empty() && tx.state.planes.tasks.owed().is_empty();
    let no_timer = tx.state.planes.timers.active().is_empty();
    for (kind, hopeless, why) in
        [(WaitKind::Task, no_task, "no task is left"), (WaitKind::Timer, no_timer, "no timer is left")]
    {
        if !hopeless {
            continue;
        }
        let waits: Vec<WaitId> =
            tx.state.planes.waits.unnamed_waits(kind).map(|wait| wait.waiting_intent_id.clone()).collect();
        for wait in waits {
            tell_agent(tx, &wait, why, Maker::Model);
            cancel_wait(tx, &wait, why);
        }
    }
}

/// Tells the agent that a wait of its ended for another reason than what it waited for. Where no person ended it, the
/// agent's own doing did.
pub(super) fn tell_agent(tx: &mut Transaction<'_>, wait: &WaitId, why: &str, by: Maker) {
    let (work_item_id, answers) = match tx.state.planes.waits.get(wait) {
        Some(wait) => (wait.work_item_id.clone(), wait.answers.clone()),
        None => (None, None),
    };
    let subject = Subject::WaitEnded { waiting_intent_id: wait.clone(), work_item_id, answers };
    let message = Message {
        text: Some(format!("The wait {wait} ended: {why}.")),
        self_caused: by == Maker::Model,
        ..Message::new(tx.fresh.message(), subject)
    };
    tx.emit(MessageQueued { message: Arc::new(message) });
}

/// A tick that nobody took yet, for work that is no longer runnable, would only disturb what the item waits for.
fn drop_stale_ticks(tx: &mut Transaction<'_>) {
    let stale: Vec<MessageId> = tx
        .state
        .planes
        .work
        .items_by_tick()
        .iter()
        .filter(|(_, item)| {
            tx.state.planes.work.is_spent() || tx.state.planes.work.standing(item) != Some(Standing::Runnable)
        })
        .map(|(tick, _)| tick.clone())
        .collect();
    for tick in stale {
        drop_if_waiting(tx, &tick, "work_item_not_runnable");
    }
}

/// Every owed result that nothing carries gets a message, in the commit that made it owed.
fn queue_owed_results(tx: &mut Transaction<'_>) {
    let running = tx.state.turns.current.as_ref();
    let unsent: Vec<_> = tx
        .state
        .planes
        .tasks
        .unsent()
        .iter()
        .filter(|task| !running.is_some_and(|turn| turn.presents.contains(task)))
        .cloned()
        .collect();
    for task_id in unsent {
        let Some(task) = tx.state.planes.tasks.owed().get(&task_id) else { continue };
        let message_id = tx.fresh.message();
        let message = result_message(message_id.clone(), task);
        tx.emit(MessageQueued { message: Arc::new(message) });
        tx.emit(TaskResultQueued { task_id, message_id });
    }
}

fn result_message(message_id: MessageId, task: &Task) -> Message {
    let end = task.end.as_ref();
    let mut text = format!("Task {} ({}) is {}", task.task_id, task.summary, task.status);
    if let Some(code) = end.and_then(|end| end.exit_code) {
        text.push_str(&format!(", exit code {code}"));
    }
    if let Some(signal) = end.and_then(|end| end.signal) {
        text.push_str(&format!(", signal {signal}"));
    }
    if let Some(end) = end.filter(|end| !end.output_tail.is_empty()) {
        text.push_str(":\n");
        text.push_str(limits::clip(&end.output_tail, limits::LINE_BYTES));
    }
    let subject = Subject::TaskResult { task_id: task.task_id.clone(), work_item_id: task.work_item_id.clone() };
    Message {
        origin: Origin::of(OriginKind::Task, Some(task.task_id.as_str())),
        text: Some(text),
        self_caused: is_own(task),
        ..Message::new(message_id, subject)
    }
}

/// Whether the model started it. A person's command comes out of no call.
fn is_own(task: &Task) -> bool {
    task.kind == TaskKind::ChildAgent || task.exec_id.is_some()
}

/// Whenever a wait is registered or ends, what is parked is looked at again.
fn examine_parked(tx: &mut Transaction<'_>) {
    let free: Vec<MessageId> = tx
        .state
        .planes
        .queue
        .parked_entries()
        .filter(|entry| !matches!(classify(tx.state, &entry.message), Classification::Park { .. }))
        .map(|entry| entry.message.message_id.clone())
        .collect();
    for message_id in free {
        tx.emit(MessageRequeued { message_id, reason: RequeueReason::Unparked, not_before: None });
    }
}
