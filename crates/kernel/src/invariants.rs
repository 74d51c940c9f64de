//! The invariants of the scheduler contract as code: one named check each. Tests and the simulator run all of them
//! after every fact; a shipped build never does.

use crate::fact::{Fact, Resource};
use crate::id::{MessageId, TaskId};
use crate::message::Message;
use crate::state::AgentState;
use crate::state::lifecycle::Control;
use crate::state::waiting::Wait;
use crate::vocabulary::{
    Boundary, ContinuationClass, DecisionKind, MessageKind, PlanStatus, QueueStatus, Reason, Standing, Status,
    TickKind, WaitKind, WaitPolicy, WorkItemState,
};

/// A rule that does not hold, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub detail: String,
}

/// The input of an invariant: a state, the fact that led to it, and the state before that fact.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub before: &'a AgentState,
    pub fact: &'a Fact,
    pub after: &'a AgentState,
}

type Invariant = fn(Change<'_>) -> Result<(), String>;

/// The checklist, in its order, and after it what our own design adds.
pub const INVARIANTS: &[(&str, Invariant)] = &[
    ("stopped_runtime_processes_no_message", stopped_runtime_processes_no_message),
    ("paused_runtime_starts_no_turn", paused_runtime_starts_no_turn),
    ("run_id_only_while_a_run_is_active", run_id_only_while_a_run_is_active),
    ("terminal_tasks_are_not_active", terminal_tasks_are_not_active),
    ("stale_updates_reopen_no_task", stale_updates_reopen_no_task),
    ("blocking_is_counted_from_open_tasks", blocking_is_counted_from_open_tasks),
    ("completed_items_are_not_runnable", completed_items_are_not_runnable),
    ("focus_moves_only_by_pick", focus_moves_only_by_pick),
    ("needs_input_waits_for_the_operator", needs_input_waits_for_the_operator),
    ("one_tick_under_way_per_item", one_tick_under_way_per_item),
    ("wake_hints_are_liveness_signals", wake_hints_are_liveness_signals),
    ("mismatched_triggers_satisfy_nothing", mismatched_triggers_satisfy_nothing),
    ("only_real_turn_ends_touch_work_items", only_real_turn_ends_touch_work_items),
    ("compaction_rewrites_no_truth", compaction_rewrites_no_truth),
    ("records_explain_the_projection", records_explain_the_projection),
    ("no_wait_outlives_what_could_end_it", no_wait_outlives_what_could_end_it),
    ("every_owed_result_has_a_carrier", every_owed_result_has_a_carrier),
    ("undelivered_ticks_are_in_the_queue", undelivered_ticks_are_in_the_queue),
    ("settled_messages_stay_settled", settled_messages_stay_settled),
    ("put_off_answers_have_left_the_queue", put_off_answers_have_left_the_queue),
];

/// Every rule that this change breaks. Rules about what must hold between commits are checked only when `at_rest`.
#[must_use]
pub fn check_invariants(change: Change<'_>, at_rest: bool) -> Vec<Violation> {
    INVARIANTS
        .iter()
        .filter(|(name, _)| at_rest || !BETWEEN_COMMITS.contains(name))
        .filter_map(|(invariant, check)| check(change).err().map(|detail| Violation { invariant, detail }))
        .collect()
}

/// Rules that one commit may break and mend again, fact by fact.
const BETWEEN_COMMITS: &[&str] = &[
    "no_wait_outlives_what_could_end_it",
    "every_owed_result_has_a_carrier",
    "records_explain_the_projection",
    "undelivered_ticks_are_in_the_queue",
    "put_off_answers_have_left_the_queue",
];

fn ensure(holds: bool, detail: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(detail()) }
}

/// A message is settled once it has left the state. Only one that is in the queue has its answer put off.
fn settled_messages_stay_settled(change: Change<'_>) -> Result<(), String> {
    let before = change.before;
    let lived = |id: &MessageId| before.turns.unanswered.contains(id) || before.planes.queue.get(id).is_some();
    let revived = change.after.turns.unanswered.iter().find(|id| !lived(id));
    ensure(revived.is_none(), || format!("{revived:?} was settled"))
}

fn put_off_answers_have_left_the_queue(change: Change<'_>) -> Result<(), String> {
    let both = change.after.turns.unanswered.iter().find(|id| change.after.planes.queue.get(id).is_some());
    ensure(both.is_none(), || format!("{both:?} is in the queue, and its answer was put off"))
}

fn stopped_runtime_processes_no_message(change: Change<'_>) -> Result<(), String> {
    let processes =
        matches!(change.fact, Fact::MessageDequeued(_) | Fact::MessageProcessed(_) | Fact::MessageInterjected(_));
    let stopped = change.before.status() == Status::Stopped;
    ensure(!(processes && stopped), || format!("{} while stopped", change.fact.kind()))
}

fn paused_runtime_starts_no_turn(change: Change<'_>) -> Result<(), String> {
    let ticks = matches!(change.fact, Fact::MessageQueued(fact) if fact.message.tick().is_some());
    let acts = ticks || matches!(change.fact, Fact::TurnStarted(_) | Fact::RoundStarted(_));
    ensure(!acts || change.before.lifecycle.is_runnable(), || format!("{} while not runnable", change.fact.kind()))
}

fn run_id_only_while_a_run_is_active(change: Change<'_>) -> Result<(), String> {
    let state = change.after;
    let running = state.status() == Status::AwakeRunning;
    ensure(running == (state.turns.current.is_some() && state.lifecycle.control == Control::Runnable), || {
        format!("status {} but turn {:?}", state.status(), state.turns.current.as_ref().map(|turn| &turn.exec_id))
    })?;
    let Some(turn) = &state.turns.current else { return Ok(()) };
    let taken = state.planes.queue.get(&turn.message_id).map(|entry| entry.status);
    ensure(taken == Some(QueueStatus::Dequeued), || format!("the turn's message {} is {taken:?}", turn.message_id))
}

fn terminal_tasks_are_not_active(change: Change<'_>) -> Result<(), String> {
    let tasks = &change.after.planes.tasks;
    let active = tasks.open().values().find(|task| task.status.is_terminal());
    ensure(active.is_none(), || format!("{active:?} is active"))?;
    let owed = tasks.owed().values().find(|task| !task.status.is_terminal());
    ensure(owed.is_none(), || format!("{owed:?} is owed but not over"))
}

/// Whether its result was read or not: what has ended stays so.
fn stale_updates_reopen_no_task(change: Change<'_>) -> Result<(), String> {
    let before = &change.before.planes.tasks;
    let had_ended = |id: &TaskId| before.get(id).is_some_and(|task| task.status.is_terminal());
    let reopened = change.after.planes.tasks.open().keys().find(|id| had_ended(id));
    ensure(reopened.is_none(), || format!("{reopened:?} had ended and is open again"))?;
    // A report that comes late is ignored, with evidence.
    let Fact::TaskUpdateIgnored(fact) = change.fact else { return Ok(()) };
    ensure(change.before.planes.tasks == change.after.planes.tasks, || {
        format!("a late report changed {}", fact.task_id)
    })?;
    ensure(!fact.evidence.is_empty(), || format!("a late report on {} was ignored without evidence", fact.task_id))
}

fn blocking_is_counted_from_open_tasks(change: Change<'_>) -> Result<(), String> {
    let tasks = &change.after.planes.tasks;
    let blocking = tasks.open().values().filter(|task| task.wait_policy == WaitPolicy::Blocking).count();
    ensure(blocking == tasks.blocking(), || format!("{blocking} block, {} are counted", tasks.blocking()))
}

fn completed_items_are_not_runnable(change: Change<'_>) -> Result<(), String> {
    let work = &change.after.planes.work;
    let open = work.items().values().find(|item| item.state == WorkItemState::Completed);
    ensure(open.is_none(), || format!("{open:?} is completed and among the open items"))?;
    let current = work.current_id().filter(|id| work.open(id).is_none());
    ensure(current.is_none(), || format!("{current:?} is in focus and not open"))?;
    let wrong = work.of_standing(Standing::Runnable).find(|item| {
        item.blocked_by.is_some() || change.after.planes.waits.of_item(&item.work_item_id).next().is_some()
    });
    ensure(wrong.is_none(), || format!("{wrong:?} is held and counted as runnable"))
}

#[allow(clippy::wildcard_enum_match_arm, reason = "no other fact may move it")]
fn focus_moves_only_by_pick(change: Change<'_>) -> Result<(), String> {
    let (before, after) = (change.before.planes.work.current_id(), change.after.planes.work.current_id());
    let moved = before != after;
    let allowed = match change.fact {
        Fact::WorkItemPicked(fact) => after == Some(&fact.work_item_id),
        Fact::WorkItemCompleted(fact) => before == Some(&fact.work_item_id) && after.is_none(),
        _ => false,
    };
    ensure(!moved || allowed, || format!("{} moved the focus from {before:?} to {after:?}", change.fact.kind()))
}

fn needs_input_waits_for_the_operator(change: Change<'_>) -> Result<(), String> {
    let state = change.after;
    let wrong = state.planes.work.items().values().find(|item| {
        let standing = state.planes.work.standing(&item.work_item_id);
        (item.plan_status == PlanStatus::NeedsInput) != (standing == Some(Standing::NeedsInput))
    });
    ensure(wrong.is_none(), || format!("{wrong:?} needs input and stands elsewhere, or the reverse"))
}

fn one_tick_under_way_per_item(change: Change<'_>) -> Result<(), String> {
    let mut keys: Vec<&str> = Vec::new();
    let mut items = Vec::new();
    for entry in change.after.planes.queue.entries() {
        if let Some(key) = entry.message.idempotency_key().filter(|_| entry.message.tick().is_some()) {
            ensure(!keys.contains(&key), || format!("the key {key} is in the queue twice"))?;
            keys.push(key);
        }
        if entry.message.is_work_tick() {
            let item = entry.message.work_item_id();
            ensure(!items.contains(&item), || format!("{item:?} has two ticks under way"))?;
            items.push(item);
        }
    }
    tick_has_evidence(change)
}

/// A work tick follows a recorded decision that names its key; a decision that passes over the current item because its
/// tick is under way says so.
#[allow(clippy::wildcard_enum_match_arm, reason = "two of many facts are about ticks")]
fn tick_has_evidence(change: Change<'_>) -> Result<(), String> {
    match change.fact {
        Fact::MessageQueued(queued) if queued.message.is_work_tick() => {
            let key = queued.message.idempotency_key().unwrap_or_default();
            let named = change.before.decision().is_some_and(|decision| {
                decision.kind == DecisionKind::EmitSystemTick && decision.evidence.contains(&format!("key {key}"))
            });
            ensure(named, || format!("no decision names the tick {key}"))
        }
        // A decision about a message passes over no work.
        Fact::SchedulerDecided(fact) if fact.decision.boundary == Boundary::Idle => {
            let state = change.before;
            let held = state.spent_limit().is_some() || state.lifecycle.holds_turns();
            if !state.lifecycle.is_runnable() || state.turns.current.is_some() || held {
                return Ok(());
            }
            let current = state.planes.work.current().filter(|item| {
                let runs = state.planes.work.standing(&item.work_item_id) == Some(Standing::Runnable);
                runs && item.ticks.undelivered.is_some()
            });
            let Some(item) = current else { return Ok(()) };
            let said = format!("{} {}", Reason::DuplicateTick, item.work_item_id);
            ensure(fact.decision.ignored.contains(&said), || format!("{:?} is silent about {said}", fact.decision))
        }
        _ => Ok(()),
    }
}

fn wake_hints_are_liveness_signals(change: Change<'_>) -> Result<(), String> {
    let Fact::TurnStarted(turn) = change.fact else { return Ok(()) };
    let Some(entry) = change.before.planes.queue.get(&turn.message_id) else { return Ok(()) };
    let blank_hint = entry.message.tick() == Some(TickKind::WakeHint) && !entry.message.is_contentful();
    let resumes = turn.continuation.class == ContinuationClass::ResumeExpectedWait;
    ensure(!blank_hint || resumes, || format!("a blank hint started {}", turn.exec_id))
}

fn mismatched_triggers_satisfy_nothing(change: Change<'_>) -> Result<(), String> {
    let Fact::WaitingIntentTriggered(fact) = change.fact else { return Ok(()) };
    let Some(wait) = change.before.planes.waits.get(&fact.waiting_intent_id) else { return Ok(()) };
    let Some(entry) = fact.message_id.as_ref().and_then(|id| change.before.planes.queue.get(id)) else { return Ok(()) };
    ensure(could_satisfy(&entry.message, wait), || {
        format!("{} ({}) ended {wait:?}", entry.message.message_id, entry.message.kind())
    })
}

/// A second, blunter reading of what may end a wait: the right kind, and the very resource where one is named.
fn could_satisfy(message: &Message, wait: &Wait) -> bool {
    let kind_fits = match wait.kind {
        WaitKind::Operator => matches!(message.kind(), MessageKind::OperatorPrompt | MessageKind::InternalFollowup),
        WaitKind::Task => message.kind() == MessageKind::TaskResult,
        WaitKind::Timer | WaitKind::Sleep => message.kind() == MessageKind::TimerTick,
        WaitKind::External => matches!(
            message.kind(),
            MessageKind::ChannelEvent
                | MessageKind::WebhookEvent
                | MessageKind::CallbackEvent
                | MessageKind::SystemTick
                | MessageKind::InternalFollowup
        ),
    };
    let named = message.waiting_intent_id() == Some(&wait.waiting_intent_id);
    let resource_fits = match &wait.resource {
        None => true,
        Some(Resource::Task(id)) => message.task_id() == Some(id),
        Some(Resource::Timer(id)) => message.timer_id() == Some(id),
        Some(Resource::Trigger(id)) => message.trigger_id() == Some(id) || named,
        Some(Resource::Correlation(id)) => message.correlation_id() == Some(id) || named,
        Some(Resource::Approval(id)) => message.approval_id() == Some(id),
    };
    kind_fits && resource_fits
}

fn only_real_turn_ends_touch_work_items(change: Change<'_>) -> Result<(), String> {
    let reduces = matches!(
        change.fact,
        Fact::MessageDequeued(_) | Fact::MessageProcessed(_) | Fact::MessageParked(_) | Fact::SchedulerDecided(_)
    );
    if !reduces {
        return Ok(());
    }
    let record = |state: &AgentState| -> Vec<(u64, Option<String>)> {
        state.planes.work.items().values().map(|item| (item.revision, item.blocked_by.clone())).collect()
    };
    ensure(record(change.before) == record(change.after), || format!("{} changed a work item", change.fact.kind()))
}

fn compaction_rewrites_no_truth(change: Change<'_>) -> Result<(), String> {
    if !matches!(change.fact, Fact::ContextCompacted(_) | Fact::TurnCheckpointed(_)) {
        return Ok(());
    }
    let (before, after) = (change.before, change.after);
    let same = before.planes.waits == after.planes.waits
        && before.planes.tasks == after.planes.tasks
        && before.planes.work == after.planes.work
        && before.planes.queue == after.planes.queue
        && before.planes.timers == after.planes.timers
        && before.planes.hints == after.planes.hints
        && before.status() == after.status();
    ensure(same, || format!("{} changed what the scheduler reads", change.fact.kind()))
}

fn records_explain_the_projection(change: Change<'_>) -> Result<(), String> {
    let again = AgentState::from_snapshot(&change.after.snapshot()).map_err(|error| error.to_string())?;
    ensure(again == *change.after, || "the state read back from its records is another".to_owned())
}

fn no_wait_outlives_what_could_end_it(change: Change<'_>) -> Result<(), String> {
    let state = change.after;
    let hopeless = state.planes.waits.open().values().find(|wait| match (&wait.resource, wait.kind) {
        (Some(Resource::Task(id)), _) => {
            !state.planes.tasks.open().contains_key(id) && !state.planes.tasks.owed().contains_key(id)
        }
        (Some(Resource::Timer(id)), _) => state.planes.timers.get(id).is_none(),
        (Some(Resource::Trigger(id)), _) => !state.planes.triggers.contains_key(id),
        (Some(Resource::Approval(id)), _) => {
            let answered = || state.planes.queue.entries().any(|entry| entry.message.approval_id() == Some(id));
            !state.planes.approvals.pending().contains_key(id) && !answered()
        }
        (Some(Resource::Correlation(_)), _) | (None, WaitKind::Operator | WaitKind::External | WaitKind::Sleep) => {
            false
        }
        (None, WaitKind::Task) => state.planes.tasks.open().is_empty() && state.planes.tasks.owed().is_empty(),
        (None, WaitKind::Timer) => state.planes.timers.active().is_empty(),
    });
    ensure(hopeless.is_none(), || format!("nothing can end {hopeless:?}"))
}

fn every_owed_result_has_a_carrier(change: Change<'_>) -> Result<(), String> {
    let state = change.after;
    let lost = state.planes.tasks.owed().values().find(|task| {
        let carried = task.result_message.as_ref().is_some_and(|id| state.planes.queue.get(id).is_some());
        let shown = state.turns.current.as_ref().is_some_and(|turn| turn.presents.contains(&task.task_id));
        !carried && !shown && !task.held
    });
    ensure(lost.is_none(), || format!("nothing carries the result of {lost:?}"))
}

/// The ticks that items, timers and hints count as undelivered are the ticks in the queue.
fn undelivered_ticks_are_in_the_queue(change: Change<'_>) -> Result<(), String> {
    let state = change.after;
    let gone = |id: &crate::id::MessageId| state.planes.queue.get(id).is_none();
    let timer = state.planes.timers.active().values().find(|timer| timer.undelivered.as_ref().is_some_and(gone));
    ensure(timer.is_none(), || format!("the tick of {timer:?} is gone"))?;
    let item = state.planes.work.items().values().find(|item| item.ticks.undelivered.as_ref().is_some_and(gone));
    ensure(item.is_none(), || format!("the tick of {item:?} is gone"))?;
    let hint = state.planes.hints.undelivered().values().find(|id| gone(id));
    ensure(hint.is_none(), || format!("the wake tick {hint:?} is gone"))?;
    let orphan = state.planes.queue.entries().find(|entry| {
        let timer = entry.message.timer_id().filter(|_| entry.status == QueueStatus::Queued && entry.taken == 0);
        timer.is_some_and(|id| state.planes.timers.get(id).is_none())
    });
    ensure(orphan.is_none(), || format!("{orphan:?} is the tick of a timer that is gone"))
}
