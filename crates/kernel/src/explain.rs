//! `why`: what an agent does or waits for, since when, what would wake it, and which facts say so; in a sentence that
//! a person can act on.

pub(crate) mod budget;
mod disk;
mod folder;
mod model;
mod pace;
mod tasks;
mod waiting;

pub use folder::{FolderHolder, FolderUse, FolderWait, HeldFolder, add_folder_use};
pub(crate) use model::until_asked_again;
pub(crate) use pace::sentence as paced_turns;
pub(crate) use waiting::endless as endless_work;

use std::collections::BTreeMap;

pub use abide_views::why::{WaitingOn, Why};

use crate::decision::Decision;
use crate::fact::Resource;
use crate::id::WorkItemId;
use crate::scheduler::posture::compute_posture;
use crate::state::AgentState;
use crate::state::approval::Approval;
use crate::state::waiting::Wait;
use crate::visible::one_line;
use crate::vocabulary::{ApprovalDefault, DecisionKind, Reason, Scope, Status, TerminalKind, WaitKind};

/// How many records of one kind an explanation names.
const NAMED: usize = 20;

#[must_use]
pub fn why(state: &AgentState, decision: Decision) -> Why {
    let would_wake: Vec<String> = would_wake(state).iter().map(|wake| one_line(wake)).collect();
    // Text that somebody wrote is quoted in all of them, and people read them: in lists, notifications, terminals.
    let sentence = one_line(&sentence(state, &decision, &would_wake));
    let shown = |on: WaitingOn| WaitingOn { what: one_line(&on.what), ..on };
    Why {
        agent_id: state.id().to_string(),
        at_seq: state.seq,
        status: state.status(),
        scheduling_posture: compute_posture(state),
        waiting_on: waiting_on(state).into_iter().map(shown).collect(),
        would_wake,
        notes: tasks::notes(state)
            .into_iter()
            .chain(granted(state))
            .chain(budget::notes(state))
            .chain(pace::note(state))
            .chain(model::notes(state))
            .map(|note| one_line(&note))
            .collect(),
        sentence,
        decision: decision.into(),
    }
}

fn waiting_on(state: &AgentState) -> Vec<WaitingOn> {
    let mut on = Vec::new();
    if let Some(turn) = &state.turns.current {
        let what = format!("the running turn {}", turn.exec_id);
        on.push(WaitingOn { what, since: Some(turn.started_at), seq: turn.seq });
    }
    let parked = parked_by_item(state);
    for wait in state.planes.waits.open().values().take(NAMED) {
        let holder = wait.work_item_id.as_ref().map_or_else(|| "the agent".to_owned(), ToString::to_string);
        let reason = if wait.reason.is_empty() { String::new() } else { format!(": {}", wait.reason) };
        let behind = parked_behind(wait, &parked);
        let what = format!("{} for {holder}{behind}{reason}", awaited(wait.kind, wait.resource.as_ref()));
        on.push(WaitingOn { what, since: Some(wait.created_at), seq: wait.seq });
    }
    on.extend(tasks::tasks(state));
    on.extend(tasks::checks(state));
    for approval in state.planes.approvals.pending().values().take(NAMED) {
        let what = format!("the approval {}: {}{}", approval.approval_id, approval.summary, or_else(approval));
        on.push(WaitingOn { what, since: None, seq: approval.seq });
    }
    on.extend(waiting::held_items(state));
    on
}

/// The number of parked messages by the work item that they are about.
fn parked_by_item(state: &AgentState) -> BTreeMap<Option<&WorkItemId>, usize> {
    let mut parked = BTreeMap::new();
    for entry in state.planes.queue.parked_entries() {
        *parked.entry(entry.message.work_item_id()).or_default() += 1;
    }
    parked
}

/// ` (2 messages are parked behind it)`. A wait of the agent holds back what is about any item; a wait of an item, what is
/// about this one.
fn parked_behind(wait: &Wait, parked: &BTreeMap<Option<&WorkItemId>, usize>) -> String {
    let behind = match &wait.work_item_id {
        _ if !wait.parks() => 0,
        None => parked.values().sum(),
        item @ Some(_) => parked.get(&item.as_ref()).copied().unwrap_or(0),
    };
    match behind {
        0 => String::new(),
        1 => " (1 message is parked behind it)".to_owned(),
        count => format!(" ({count} messages are parked behind it)"),
    }
}

/// Calls that it may make once, and has not made.
fn granted(state: &AgentState) -> impl Iterator<Item = String> {
    let open = state.planes.approvals.permits().iter().filter(|grant| state.at < grant.until);
    let said = open
        .take(NAMED)
        .map(|grant| format!("it may do this once, until {}: {} ({})", grant.until, grant.summary, grant.approval_id));
    said.collect::<Vec<_>>().into_iter()
}

fn awaited(kind: WaitKind, resource: Option<&Resource>) -> String {
    let what = match kind {
        WaitKind::Operator => "an answer from the operator",
        WaitKind::Task => "a task's result",
        WaitKind::External => "an external event",
        WaitKind::Timer => "a timer",
        WaitKind::Sleep => "the end of a sleep",
    };
    resource.map_or_else(|| what.to_owned(), |resource| format!("{what} ({})", resource.as_str()))
}

fn would_wake(state: &AgentState) -> Vec<String> {
    if state.status() == Status::Stopped {
        return vec!["a start".to_owned()];
    }
    if state.lifecycle.shutdown {
        return vec!["the daemon, when it is back".to_owned()];
    }
    if let Some(spent) = state.spent_limit() {
        return budget::would_wake(state, &spent);
    }
    if let Some(held) = &state.lifecycle.turns_held {
        return model::would_wake(held);
    }
    if state.lifecycle.disk_short.is_some() {
        return vec!["room on the disk".to_owned()];
    }
    let mut wakes = Vec::new();
    let kinds = |kind| state.planes.waits.open().values().any(|wait| wait.kind == kind);
    if state.planes.queue.has_due_input(state.paced_until().is_some()) {
        wakes.push(format!("{}, now", counted(state.planes.queue.queued(), "queued message")));
    }
    if state.planes.hints.deliverable().is_some() {
        wakes.push("a pending wake hint, now".to_owned());
    }
    if state.planes.work.any_ready()
        && !state.planes.work.is_spent()
        && state.planes.waits.first(Scope::Agent, WaitKind::Sleep).is_none()
    {
        wakes.push("runnable work, now".to_owned());
    }
    if let Some(due) = state.next_due() {
        wakes.push(format!("the clock, at {due}"));
    }
    for task in state.planes.tasks.open().values().take(NAMED) {
        let summary = if task.summary.is_empty() { String::new() } else { format!(" ({})", task.summary) };
        wakes.push(format!("the end of the task {}{summary}", task.task_id));
    }
    if let Some(timer) = state.planes.timers.checking().first() {
        wakes.push(format!("the check of {timer}"));
    }
    if kinds(WaitKind::External) {
        wakes.push("the external event it waits for".to_owned());
    }
    for trigger in state.planes.triggers.values().take(NAMED) {
        wakes.push(format!("a delivery to the URL of its trigger {} ({})", trigger.name, trigger.trigger_id));
    }
    for approval in state.planes.approvals.pending().keys().take(NAMED) {
        wakes.push(format!("an answer to the approval {approval}"));
    }
    // A child hears its supervisor and no one else.
    wakes.push(match &state.definition.identity.supervisor {
        Some(supervisor) => format!("a message from {}", supervisor.agent_id),
        None if state.turns.current.is_none() && state.planes.queue.queued_delayed() > 0 => {
            "a message from the operator that is not put behind what waits (`abide send --priority next`)".to_owned()
        }
        None => "a message from the operator".to_owned(),
    });
    wakes
}

/// The sentence begins with what needs a person, whichever row of the table decided; then it says what the agent does.
fn sentence(state: &AgentState, decision: &Decision, would_wake: &[String]) -> String {
    let parked = match state.planes.queue.parked() {
        0 => String::new(),
        1 => " 1 message is parked behind what it waits for.".to_owned(),
        count => format!(" {count} messages are parked behind what it waits for."),
    };
    let body = match waiting::person_needed_besides(state, decision) {
        Some(need) => format!("{need} Meanwhile, {}", activity(state, decision)),
        None => activity(state, decision),
    };
    let failed = failure_besides(state, decision).map(|failure| format!(" {failure}")).unwrap_or_default();
    let hopeless = if would_wake.is_empty() { " Nothing will wake it by itself." } else { "" };
    let wrong =
        state.lifecycle.runtime_error.as_ref().map(|error| format!(" Not all went well: {error}.")).unwrap_or_default();
    let ending = match (decision.kind == DecisionKind::Stop, state.planes.tasks.open().len()) {
        (true, 1) => " 1 task of it is still ending.".to_owned(),
        (true, open) if open > 1 => format!(" {open} tasks of it are still ending."),
        (_, _) => String::new(),
    };
    format!("{body}{failed}{ending}{parked}{hopeless}{wrong}")
}

/// How the last turn failed, where the agent waits for something else since. A failure that the decision is about is in
/// its sentence already.
fn failure_besides(state: &AgentState, decision: &Decision) -> Option<String> {
    let waits = matches!(
        decision.kind,
        DecisionKind::WaitForOperator
            | DecisionKind::WaitForTask
            | DecisionKind::WaitForExternalChange
            | DecisionKind::WaitForTimer
    );
    let is_about_it = matches!(
        decision.reason,
        Reason::ProviderBackoff
            | Reason::BudgetSpent
            | Reason::HomeBudgetSpent
            | Reason::ModelKey
            | Reason::DiskReserve
    );
    let last = state.turns.last_failure().filter(|_| waits && !is_about_it)?;
    Some(match (last.kind, last.error.as_deref()) {
        (TerminalKind::Aborted, _) => "Its last turn was aborted.".to_owned(),
        (kind, Some(error)) => format!("Its last turn failed ({kind}): {}.", shorten(error)),
        (kind, None) => format!("Its last turn failed ({kind}); its briefs say why."),
    })
}

/// The agent's activity, or the object of its wait, by this decision.
fn activity(state: &AgentState, decision: &Decision) -> String {
    let id = state.id();
    let objective = waiting::objective_of(state, decision);
    match (decision.kind, decision.reason) {
        (DecisionKind::Stop, Reason::Quarantined) => {
            format!("{id} is quarantined because its records could not be trusted; `start` tries it again.")
        }
        (DecisionKind::Stop, Reason::ShutdownRequested) => {
            format!("{id} is shutting down; it goes on when the daemon is back.")
        }
        (DecisionKind::Stop, _) => match (state.planes.queue.pending(), state.planes.work.items().len()) {
            (0, 0) => format!("{id} is stopped, and no message waits. Start it when there is something to do."),
            (0, open) => {
                format!(
                    "{id} is stopped, with {}, and no message waits. Start it to go on.",
                    counted(open, "open work item")
                )
            }
            (waiting, _) => {
                format!("{id} is stopped; {} for it. Start it to go on.", waiting_messages(waiting))
            }
        },
        (DecisionKind::Noop, Reason::TurnInProgress) => match tasks::under_way(state) {
            None => model::until_it_answers(state).unwrap_or_else(|| format!("{id} is running a turn.")),
            Some(tools) => format!("{id} is running a turn; under way in it: {tools}."),
        },
        (DecisionKind::Noop, _) => format!("{id} has its next tick under way already."),
        (DecisionKind::StartModelTurn, _) => format!("{id} is about to run a turn for a queued message."),
        (DecisionKind::ReduceMessageOnly, _) => format!("{id} is about to take note of a message without a turn."),
        (DecisionKind::EmitSystemTick, Reason::WakeHint) => format!("{id} was asked to look, and is about to."),
        (DecisionKind::EmitSystemTick, _) => format!("{id} is about to work on{objective}."),
        (DecisionKind::WaitForOperator, _) => waiting::until_a_person_acts(state, decision, &objective),
        (DecisionKind::WaitForTask, _) => {
            let known = decision.task_id.as_ref().and_then(|task| state.planes.tasks.open().get(task));
            let task = match (known, &decision.task_id) {
                (Some(task), _) => tasks::named(task),
                (None, Some(id)) => id.to_string(),
                (None, None) => "a task".to_owned(),
            };
            let since = known.map(|task| format!("; it was started at {}", task.created_at)).unwrap_or_default();
            let child = known.and_then(|task| task.child_agent_id.as_ref());
            let ask = child.map(|child| format!(", and `abide why {child}` says what it does")).unwrap_or_default();
            format!("{id} sleeps until {task} ends{}{since}{ask}.", for_item(&objective))
        }
        (DecisionKind::WaitForExternalChange, _) => {
            let what = waiting::awaited(state, decision, WaitKind::External);
            format!("{id} sleeps until something outside happens{}{what}.", for_item(&objective))
        }
        (DecisionKind::WaitForTimer, _) => waiting::until_a_time(state, decision, &objective),
        (DecisionKind::Sleep | DecisionKind::StayIdle, _) => match state.turns.last_failure().map(|last| last.kind) {
            None => match tasks::until_it_ends(state) {
                None => format!("{id} has nothing to do; a message will wake it."),
                Some(end) => format!("{id} has nothing to do until {end}; a message will wake it too."),
            },
            Some(TerminalKind::Aborted) => {
                format!("{id} has nothing to do: its last turn was aborted; a message will wake it.")
            }
            Some(kind) => {
                let error = state.turns.last_failure().and_then(|last| last.error.as_deref());
                let error =
                    error.map_or_else(|| "; its briefs say why".to_owned(), |text| format!(": {}", shorten(text)));
                format!("{id} has nothing to do: its last turn failed ({kind}){error}. A message will wake it.")
            }
        },
    }
}

/// `1 thing`, `2 things`.
fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn waiting_messages(count: usize) -> String {
    if count == 1 { "1 message waits".to_owned() } else { format!("{count} messages wait") }
}

/// The beginning of what went wrong, on one line and without its full stop. A provider may have sent a page.
fn shorten(text: &str) -> String {
    const GIST_BYTES: usize = 320;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    waiting::beginning(&line, GIST_BYTES).trim_end_matches(['.', ':']).to_owned()
}

fn for_item(objective: &str) -> String {
    if objective.is_empty() { String::new() } else { format!(", for{objective}") }
}

/// The outcome if there is no answer, and its time.
fn or_else(approval: &Approval) -> String {
    let default = match approval.default {
        ApprovalDefault::Deny => "denied",
        ApprovalDefault::Grant => "granted",
    };
    approval.deadline.map(|deadline| format!(" (until {deadline}, then {default})")).unwrap_or_default()
}
