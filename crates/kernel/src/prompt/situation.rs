//! Where an agent stands when its model is called: what the records say, in words, and what the assembly of the prompt
//! has to know. Bounded, whatever the state holds; and outside of what is ever summarised, so that no goal, plan, task or
//! wait can be lost by it.

use std::fmt::Write;

use super::quote::{barred, quote_line};
use crate::id::{AgentId, ExecId, Seq};
use crate::limits::{self, LINE_BYTES};
use crate::state::AgentState;
use crate::state::task::Task;
use crate::state::token_calibration::TokenCalibration;
use crate::state::tool_placement::ToolPlacement;
use crate::state::turn::Turn;
use crate::state::turn::checkpoint_holds;
use crate::state::work::WorkItem;
use crate::time::Time;
use crate::todo::Todo;
use crate::vocabulary::{Role, Standing};

/// Records of one kind that are listed; the tools show the rest.
const LISTED: usize = 12;
/// A record on one line.
const LISTED_BYTES: usize = 240;
/// The part of a plan that is shown: more than people read.
const PLAN_BYTES: usize = 32 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    pub agent_id: AgentId,
    pub role: Role,
    /// Whose child it is.
    pub supervisor: Option<AgentId>,
    pub instructions: Option<String>,
    /// The present content of the records.
    pub records: String,
    /// Results that this turn brings beside its message.
    pub presented: Option<String>,
    pub summary: Option<Summary>,
    pub checkpoint: Option<Checkpoint>,
    pub measure: TokenCalibration,
    pub exec_id: ExecId,
    /// Where its tools run.
    pub place: Box<ToolPlacement>,
    /// The round that the model is called for.
    pub round: u32,
    /// The last fact that it knows of.
    pub seq: Seq,
}

/// The text that stands for the turns that are no longer shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    pub messages: u64,
    pub through: Seq,
}

/// The text that stands for the first rounds of the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub through_round: u32,
    pub recap: String,
}

impl Situation {
    /// Nothing where no turn runs.
    #[must_use]
    pub fn of(state: &AgentState) -> Option<Situation> {
        let turn = state.turns.current.as_ref()?;
        let summary = state.turns.compaction.as_ref().and_then(|last| {
            Some(Summary { text: last.summary.clone()?, messages: last.compacted_messages, through: last.through? })
        });
        let checkpoint = turn
            .checkpoint
            .as_ref()
            .filter(|_| checkpoint_holds(state, turn))
            .and_then(|made| Some(Checkpoint { through_round: made.through_round?, recap: made.recap.clone() }));
        Some(Situation {
            agent_id: state.id().clone(),
            role: state.definition.identity.role,
            supervisor: state.definition.identity.supervisor.as_ref().map(|supervisor| supervisor.agent_id.clone()),
            instructions: state.definition.config.instructions.clone(),
            records: records(state, turn),
            presented: presented(state, turn),
            summary,
            checkpoint,
            measure: state.models.calibration.clone(),
            exec_id: turn.exec_id.clone(),
            place: Box::new(ToolPlacement::of(state)),
            round: turn.round,
            seq: state.seq,
        })
    }
}

/// Writing to a text can't fail.
macro_rules! tell {
    ($text:expr, $($arg:tt)*) => {{
        let written = writeln!($text, $($arg)*);
        debug_assert!(written.is_ok());
    }};
}

fn records(state: &AgentState, turn: &Turn) -> String {
    let mut text = String::new();
    tell!(text, "[abide records at {}]", state.at);
    tell!(text, "Turn {} of {}. This is the runtime's view, not a message to answer.", turn.turn_index, state.id());
    tell_work(&mut text, state, turn);
    let tasks = state.planes.tasks.open().values();
    tell_list(&mut text, "Running tasks", tasks.len(), tasks.map(|task| open_task(task, state.at)));
    let owed = state.planes.tasks.owed().values().filter(|task| !turn.presents.contains(&task.task_id));
    let count = state.planes.tasks.owed().len().saturating_sub(turn.presents.len());
    tell_list(&mut text, "Ended tasks whose results are on their way to you", count, owed.map(ended_task));
    let waits = state.planes.waits.open().values();
    let waiting = |wait: &crate::state::waiting::Wait| {
        format!("{} for {}: {}", wait.waiting_intent_id, wait.kind, quote_line(&wait.reason, LISTED_BYTES))
    };
    tell_list(&mut text, "Open waits", waits.len(), waits.map(waiting));
    let timers = state.planes.timers.active().values();
    let timer = |timer: &crate::state::timer::Timer| {
        let next = timer.next_fire_at.map_or_else(|| "no more".to_owned(), |at| at.to_string());
        format!("{} next at {next}: {}", timer.timer_id, quote_line(&timer.summary, LISTED_BYTES))
    };
    tell_list(&mut text, "Timers", timers.len(), timers.map(timer));
    let approvals = state.planes.approvals.pending().values();
    let question = |question: &crate::state::approval::Approval| {
        format!("{}: {}", question.approval_id, quote_line(&question.summary, LISTED_BYTES))
    };
    tell_list(&mut text, "Questions to a person that are open", approvals.len(), approvals.map(question));
    let triggers = state.planes.triggers.values();
    let trigger = |trigger: &crate::state::hint::Trigger| {
        format!("{} {}", trigger.trigger_id, quote_line(&trigger.name, LISTED_BYTES))
    };
    tell_list(&mut text, "Triggers", triggers.len(), triggers.map(trigger));
    let unknown = state.turns.unknown_calls.iter();
    let cut = |call: &crate::state::turn::UnknownCall| format!("{} {} at {}", call.tool, call.call_id, call.at);
    tell_list(
        &mut text,
        "Calls that were cut off: whether they did their work is not known",
        unknown.len(),
        unknown.map(cut),
    );
    let behind = state.planes.queue.queued();
    if behind > 0 {
        tell!(text, "{behind} more messages wait in the queue; each gets a turn of its own.");
    }
    text.truncate(text.trim_end().len());
    text
}

fn tell_list(text: &mut String, title: &str, count: usize, records: impl Iterator<Item = String>) {
    if count == 0 {
        return;
    }
    tell!(text, "{title}:");
    for record in records.take(LISTED) {
        tell!(text, "- {record}");
    }
    if count > LISTED {
        tell!(text, "- and {} more", count - LISTED);
    }
}

fn tell_work(text: &mut String, state: &AgentState, turn: &Turn) {
    let current = state.planes.work.current_id();
    let about = turn.work_item_id().or(current).and_then(|id| state.planes.work.open(id));
    if let Some(item) = about {
        let focus = if current == Some(&item.work_item_id) { ", in focus" } else { "" };
        tell!(text, "This turn is about the work item {}{focus}:", item.work_item_id);
        whole_item(text, state, item);
    }
    let focus = current.and_then(|id| state.planes.work.open(id)).filter(|item| Some(item) != about.as_ref());
    if let Some(item) = focus {
        tell!(text, "In focus is another one, {}:", item.work_item_id);
        whole_item(text, state, item);
    }
    let shown = |item: &&WorkItem| Some(*item) == about || Some(*item) == focus;
    let others: Vec<&WorkItem> =
        state.planes.work.items().values().take(LISTED * 4).filter(|item| !shown(item)).collect();
    let count = state.planes.work.items().len() - usize::from(about.is_some()) - usize::from(focus.is_some());
    let brief = |item: &&WorkItem| {
        let standing = state.planes.work.standing(&item.work_item_id).unwrap_or(Standing::Completed);
        format!("{} ({standing}): {}", item.work_item_id, quote_line(&item.objective, LISTED_BYTES))
    };
    tell_list(text, "Other open work items", count, others.iter().map(brief));
}

/// Word for word, but for a plan of absurd length.
fn whole_item(text: &mut String, state: &AgentState, item: &WorkItem) {
    let standing = state.planes.work.standing(&item.work_item_id).unwrap_or(Standing::Completed);
    tell!(text, "objective:\n{}", barred(&item.objective));
    tell!(text, "state: {standing}, plan {}, revision {}", item.plan_status, item.revision);
    if let Some(plan) = &item.plan {
        let shown = limits::clip(plan, PLAN_BYTES);
        tell!(text, "plan:\n{}", barred(shown));
        if shown.len() < plan.len() {
            tell!(text, "(the plan goes on; GetWorkItem has all of it)");
        }
    }
    if !item.todo.is_empty() {
        tell!(text, "todo:\n{}", barred(&describe_todo(&item.todo)));
    }
    if let Some(blocker) = &item.blocked_by {
        tell!(text, "blocked by: {}", quote_line(blocker, LINE_BYTES));
    }
    if let Some(at) = item.recheck_at {
        tell!(text, "to be looked at again at {at}");
    }
}

fn describe_todo(list: &[Todo]) -> String {
    list.iter().map(|todo| format!("[{}] {}", todo.state, todo.text)).collect::<Vec<_>>().join("\n")
}

fn open_task(task: &Task, now: Time) -> String {
    let seconds = now.since_ms(task.created_at) / 1_000;
    format!("{} ({}, {seconds} s): {}", task.task_id, task.status, quote_line(&task.summary, LISTED_BYTES))
}

fn ended_task(task: &Task) -> String {
    format!("{} ({}): {}", task.task_id, task.status, quote_line(&task.summary, LISTED_BYTES))
}

/// Results that a turn shows although its message is about something else.
fn presented(state: &AgentState, turn: &Turn) -> Option<String> {
    let about = state.planes.queue.get(&turn.message_id).and_then(|entry| entry.message.task_id().cloned());
    let tasks = turn.presents.iter().filter(|task| Some(*task) != about.as_ref());
    let mut text = String::new();
    for task in tasks.filter_map(|id| state.planes.tasks.get(id)) {
        tell!(
            text,
            "[abide result of {} ({}), {}]",
            task.task_id,
            quote_line(&task.summary, LISTED_BYTES),
            task.status
        );
        if let Some(end) = &task.end {
            let code = end.exit_code.map(|code| format!("exit code {code}\n")).unwrap_or_default();
            tell!(text, "{}", barred(&format!("{code}{}", end.output_tail)));
        }
    }
    (!text.is_empty()).then(|| text.trim_end().to_owned())
}
