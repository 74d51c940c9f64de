//! The part of `why` about an agent's hands: commands that run, results that no turn has read, where it works, and
//! failures there.

use super::{NAMED, WaitingOn, counted};
use crate::fact::Resource;
use crate::state::AgentState;
use crate::state::task::Task;
use crate::state::turn::Phase;
use crate::state::workspace::Workspace;
use crate::vocabulary::{TaskKind, TaskStatus};

/// As much of a command as tells it from others.
const WHAT_BYTES: usize = 80;

/// The tasks that run, and the results that no turn has read.
pub(super) fn tasks(state: &AgentState) -> Vec<WaitingOn> {
    let open = state.planes.tasks.open().values().take(NAMED).map(|task| {
        let what = format!("{}, {}: {}", named(task), task.status, what_follows(state, task));
        WaitingOn { what, since: Some(task.created_at), seq: task.seq }
    });
    let owed = state.planes.tasks.owed().values().take(NAMED).map(|task| {
        let how = if task.held {
            "it is held until you send a message"
        } else if !state.lifecycle.is_runnable() {
            "it is kept until the agent starts"
        } else if state.turns.current.as_ref().is_some_and(|turn| turn.presents.contains(&task.task_id)) {
            "the running turn shows it"
        } else {
            "it comes with the next turn"
        };
        let what = format!("the result of {}, {}, which no turn has read: {how}", named(task), task.status);
        WaitingOn { what, since: task.ended_at, seq: task.seq }
    });
    open.chain(owed).collect()
}

/// Checks that run: whether their timers' occurrences are worth a turn is not known yet.
pub(super) fn checks(state: &AgentState) -> Vec<WaitingOn> {
    let checking = state.planes.timers.checking().iter().take(NAMED).filter_map(|id| state.planes.timers.get(id));
    let checking = checking.filter_map(|timer| Some((timer, timer.check.as_ref()?, timer.checking?)));
    let on = checking.map(|(timer, check, checking)| {
        let check = crate::limits::clip(check, WHAT_BYTES);
        let what = format!("the check of {} ({check}), which was due then", timer.timer_id);
        WaitingOn { what, since: Some(checking.due), seq: timer.seq }
    });
    on.collect()
}

/// `the command t1 (make)`, `the child a.1 (look)`: a child is known by its own name, under which it can be asked.
pub(super) fn named(task: &Task) -> String {
    let (kind, id) = match task.kind {
        TaskKind::Command => ("command", task.task_id.as_str()),
        TaskKind::ChildAgent => ("child", task.child_agent_id.as_deref().unwrap_or(task.task_id.as_str())),
    };
    let what = if task.summary.is_empty() { task.command.as_deref().unwrap_or_default() } else { &task.summary };
    let kept = crate::limits::clip(what, WHAT_BYTES);
    let more = if kept.len() < what.len() { " …" } else { "" };
    let what = if what.is_empty() { String::new() } else { format!(" ({}{more})", kept.trim_end()) };
    format!("the {kind} {id}{what}")
}

/// The consequence of the task's end.
fn what_follows(state: &AgentState, task: &Task) -> &'static str {
    let awaited = state.planes.waits.open().values().any(|wait| match &wait.resource {
        Some(Resource::Task(id)) => *id == task.task_id,
        Some(Resource::Trigger(_) | Resource::Correlation(_) | Resource::Timer(_) | Resource::Approval(_)) | None => {
            false
        }
    });
    match (task.status, state.lifecycle.is_runnable()) {
        (TaskStatus::Cancelling, _) => "it was asked to end, and asked once more it is made to",
        (_, false) => "its result is kept until the agent starts",
        (_, true) if awaited => "its end wakes the agent",
        (_, true) => "its result comes as a message",
    }
}

/// The calls of a running turn that have no outcome yet.
pub(super) fn under_way(state: &AgentState) -> Option<String> {
    match &state.turns.current.as_ref()?.phase {
        Phase::Model | Phase::Safe { .. } => None,
        Phase::Tools { running, .. } => {
            let tools: Vec<&str> = running.values().map(|call| call.tool.as_str()).take(NAMED).collect();
            (!tools.is_empty()).then(|| tools.join(", "))
        }
    }
}

/// The tasks that an agent waits for that has nothing else to do.
pub(super) fn until_it_ends(state: &AgentState) -> Option<String> {
    let mut open = state.planes.tasks.open().values();
    let first = open.next()?;
    Some(match open.count() {
        0 => format!("{} ends", named(first)),
        more => format!("one of {} ends", counted(more + 1, "task")),
    })
}

/// Further notes for a person: where the agent works, and failures there.
pub(super) fn notes(state: &AgentState) -> Vec<String> {
    let id = state.id();
    let mut notes: Vec<String> = place(state).into_iter().collect();
    let attached = || state.planes.workspaces.attached().values().take(NAMED);
    notes.extend(attached().filter(|workspace| workspace.removing).map(|workspace| {
        format!("{} is being removed; what is not committed in it is saved as a patch first", worktree(workspace))
    }));
    notes.extend(attached().filter(|workspace| !workspace.removing).filter_map(|workspace| {
        let (why, root) = (workspace.kept.as_ref()?, &workspace.root);
        let again = format!("once that is mended: abide workspace detach --agent {id} {root}");
        Some(format!("{} could not be removed, and is as it was: {why}; {again}", worktree(workspace)))
    }));
    if let Some(error) = &state.lifecycle.runtime_error {
        let again = match state.planes.workspaces.occupied() {
            Some(_) if !state.lifecycle.is_runnable() => {
                format!("; `abide agent start {id}` and then stop, or `abide daemon restart`, tries again")
            }
            Some(_) | None => String::new(),
        };
        notes.push(format!("{error}{again}"));
    }
    notes.extend(state.turns.unknown_calls.iter().rev().take(NAMED).map(|call| {
        format!(
            "{} ({}) was cut off at {}; whether it did its work is unknown, and it is not run again: look before you \
             repeat it (seq {})",
            call.tool, call.call_id, call.at, call.seq
        )
    }));
    notes
}

fn place(state: &AgentState) -> Option<String> {
    let Some(active) = state.planes.workspaces.active() else {
        return state.definition.config.workspace.as_ref().map(|folder| format!("it is to work in {folder}"));
    };
    let of = match &active.worktree {
        Some(made) => format!(", a worktree of {} on branch {}", active.workspace, made.branch),
        None => String::new(),
    };
    let held = match state.planes.workspaces.occupied() {
        Some(root) if root == active.root => {
            ", and holds it: no other agent writes there until its turn and its tasks are over"
        }
        Some(_) | None => "",
    };
    let note = active.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    Some(format!("it works in {}{of}{held}{note}", active.root))
}

fn worktree(workspace: &Workspace) -> String {
    let branch = workspace.worktree.as_ref().map(|made| format!(" (branch {})", made.branch)).unwrap_or_default();
    format!("the worktree {}{branch}", workspace.root)
}
