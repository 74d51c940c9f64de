//! The sentences of `why` for agents that wait: for a time, for something outside, or for a person; which item or question
//! that is about, and what a person can do. Budgets, models, the pace and the disk have files of their own.

use super::{NAMED, WaitingOn, budget, counted, disk, for_item, model, pace};
use crate::decision::Decision;
use crate::limits::{self, clip};
use crate::scheduler::decide::decide_person_needed;
use crate::scheduler::projection::SchedulerProjection;
use crate::scheduler::timed::Timed;
use crate::state::AgentState;
use crate::state::timer::Timer;
use crate::state::work::WorkItem;
use crate::vocabulary::{ApprovalDefault, DecisionKind, Reason, Standing, WaitKind};

/// As much of what somebody wrote as a sentence takes.
const QUOTED_BYTES: usize = 200;

/// Items that are held by no wait of their own, and the one that is tried again later.
pub(super) fn held_items(state: &AgentState) -> Vec<WaitingOn> {
    let standings = [
        Standing::NeedsInput,
        Standing::ProgressSpent,
        Standing::BudgetSpent,
        Standing::BlockedUntilRecheck,
        Standing::Stuck,
    ];
    let of =
        |standing| state.planes.work.of_standing(standing).take(NAMED).map(move |item| (standing.to_string(), item));
    let held = standings.into_iter().flat_map(of).map(|(standing, item)| {
        let blocker = item.blocked_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let recheck = item.recheck_at.map(|at| format!(", recheck at {at}")).unwrap_or_default();
        about(item, &format!("{standing}{blocker}{recheck}"))
    });
    let later = state.planes.work.first_later().map(|(due, item)| about(item, &format!("tried again at {due}")));
    held.chain(later).collect()
}

fn about(item: &WorkItem, how: &str) -> WaitingOn {
    let what = format!("the work item {} ({}), {how}", item.work_item_id, quoted(&item.objective));
    WaitingOn { what, since: None, seq: item.seq }
}

/// The object of the wait behind a decision: ` (c1): the review`.
pub(super) fn awaited(state: &AgentState, decision: &Decision, kind: WaitKind) -> String {
    let mut waits = state.planes.waits.open().values();
    let wait = waits.find(|wait| wait.kind == kind && wait.work_item_id == decision.work_item_id);
    let Some(wait) = wait else { return String::new() };
    let named = wait.resource.as_ref().map(|resource| format!(" ({})", resource.as_str())).unwrap_or_default();
    let reason = if wait.reason.is_empty() { String::new() } else { format!(": {}", quoted(&wait.reason)) };
    format!("{named}{reason}")
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the other reasons are all timers")]
pub(super) fn until_a_time(state: &AgentState, decision: &Decision, objective: &str) -> String {
    let id = state.id();
    let item = decision.work_item_id.as_ref().and_then(|item| state.planes.work.open(item));
    if decision.reason == Reason::ProviderBackoff
        && let Some(again) = model::until_tried_again(state, decision)
    {
        return again;
    }
    if decision.reason == Reason::SelfTurnsPaced {
        return pace::sentence(state);
    }
    if let (Reason::DiskReserve, Some(short)) = (decision.reason, &state.lifecycle.disk_short) {
        return disk::waits_for_room(state, short);
    }
    match (decision.reason, item) {
        (Reason::RecheckPending, Some(WorkItem { recheck_at: Some(at), blocked_by: Some(by), .. })) => {
            format!("{id} sleeps until {at}, when it looks again at what blocks{objective}: {}.", quoted(by))
        }
        (Reason::TickBackoff, Some(WorkItem { ticks, .. })) if ticks.due_at().is_some() => {
            let due = ticks.due_at().map(|due| due.to_string()).unwrap_or_default();
            format!(
                "{id} worked on{objective} and nothing changed; it tries again at {due}, or when you send a message."
            )
        }
        _ => format!("{id} sleeps until {}{}.", timer_end(state), for_item(objective)),
    }
}

/// The end of the timer wait or sleep that is due first, else of the standing timer: the fact that the decision names.
fn timer_end(state: &AgentState) -> String {
    let timer = match Timed::first(state) {
        Some(Timed::Wait(_, timer)) => timer,
        Some(Timed::Recheck(_) | Timed::Backoff(_) | Timed::Retry(_)) | None => state.planes.timers.first_due(),
    };
    match timer {
        Some(Timer { checking: Some(_), timer_id, .. }) => format!("the check of {timer_id} is over"),
        Some(timer) => timer.next_time().map_or_else(|| "a timer fires".to_owned(), |due| due.to_string()),
        None => "a timer fires".to_owned(),
    }
}

/// ` "the objective"` of the item that a decision is about.
pub(super) fn objective_of(state: &AgentState, decision: &Decision) -> String {
    let item = decision.work_item_id.as_ref().and_then(|item| state.planes.work.open(item));
    item.map(|item| format!(" \"{}\"", quoted(&item.objective))).unwrap_or_default()
}

/// The sentence about what needs a person, where the decision is about something else. To a stopped agent everything needs
/// a person, and its sentence says so.
pub(super) fn person_needed_besides(state: &AgentState, decision: &Decision) -> Option<String> {
    if matches!(decision.kind, DecisionKind::WaitForOperator | DecisionKind::Stop) {
        return None;
    }
    let need = decide_person_needed(&SchedulerProjection::of(state, state.at))?;
    let sentence = until_a_person_acts(state, &need, &objective_of(state, &need));
    let stop = if sentence.ends_with(['.', '?', '!', '…']) { "" } else { "." };
    Some(format!("{sentence}{stop}"))
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the other reasons are all questions")]
pub(super) fn until_a_person_acts(state: &AgentState, decision: &Decision, objective: &str) -> String {
    let id = state.id();
    let item = decision.work_item_id.as_ref().and_then(|item| state.planes.work.open(item));
    match decision.reason {
        Reason::BudgetSpent => match item {
            Some(item) => budget::of_item(id, item),
            None => budget::of_agent(state),
        },
        Reason::HomeBudgetSpent | Reason::ModelKey => model::until_released(state).unwrap_or_default(),
        Reason::WorkItemNeedsInput => format!("{id} needs your input on{objective}; send it a message."),
        Reason::ApprovalPending => approval(state, objective),
        Reason::NoProgressBudgetSpent => {
            format!("{id} tried{objective} several times and nothing changed; send it a message to go on.")
        }
        Reason::WorkTicksSpent => endless(state),
        Reason::WorkItemBlocked => {
            let by = item.and_then(|item| item.blocked_by.as_ref()).map(|by| format!(" by {}", quoted(by)));
            let unblock = item.map(|item| format!("`abide work update --agent {id} {} --unblock`", item.work_item_id));
            format!(
                "{id} is blocked on{objective}{}, and nothing will unblock it by itself: {} when that is settled, or send it a message.",
                by.unwrap_or_default(),
                unblock.unwrap_or_else(|| "unblock the item".to_owned()),
            )
        }
        _ => {
            let asked = state.planes.waits.unnamed_waits(WaitKind::Operator).next().map(|wait| wait.reason.clone());
            format!("{id} waits for your answer: {}", asked.unwrap_or_else(|| "it asked something".to_owned()))
        }
    }
}

/// The sentence about work that is offered again and again, and of which there is no less.
pub(crate) fn endless(state: &AgentState) -> String {
    let (id, turns) = (state.id(), limits::WORK_TICKS_MAX);
    let open = counted(state.planes.work.items().len(), "work item");
    format!(
        "{id} worked on its own for {turns} turns in a row and has no fewer open work items than before ({open}): its work \
         waits for you. Look at what it does (`abide work list --agent {id}`), and send it a message to go on."
    )
}

/// The oldest question, and how to decide it.
fn approval(state: &AgentState, objective: &str) -> String {
    let id = state.id();
    let mut pending = state.planes.approvals.pending().values();
    let Some(first) = pending.next() else { return format!("{id} waits for your approval; grant or deny it.") };
    let unanswered = first.deadline.map(|at| match first.default {
        ApprovalDefault::Deny => format!(" Unanswered, it is denied at {at}."),
        ApprovalDefault::Grant => format!(" Unanswered, it is granted at {at}."),
    });
    let more = match pending.count() {
        0 => String::new(),
        1 => " 1 more is pending.".to_owned(),
        more => format!(" {more} more are pending."),
    };
    let (summary, approval) = (quoted(&first.summary), &first.approval_id);
    let stop = if summary.ends_with(['.', '?', '!', '…']) { "" } else { "." };
    format!(
        "{id} waits for your approval{}: {summary}{stop} `abide approval grant --agent {id} {approval}`, or deny.{}{more}",
        for_item(objective),
        unanswered.unwrap_or_default(),
    )
}

pub(super) fn quoted(text: &str) -> String {
    beginning(text, QUOTED_BYTES)
}

pub(super) fn beginning(text: &str, bytes: usize) -> String {
    let kept = clip(text, bytes);
    if kept.len() < text.len() { format!("{} …", kept.trim_end()) } else { kept.to_owned() }
}
