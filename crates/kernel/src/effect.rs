//! Effects: what is to be done in the world, as data. Each follows from a fact that is already durable, and what it
//! does comes back as an input.

use std::sync::Arc;

use crate::budget::Budget;
use crate::config::{Config, Identity, Supervisor};
use crate::fact::{Fact, TaskCreated, TaskEnd};
use crate::id::{AgentId, CallId, ExecId, Seq, TaskId, TimerId, TriggerId};
use crate::message::Message;
use crate::open_json::{ProviderState, ToolInput};
use crate::prompt::situation::Situation;
use crate::state::AgentState;
use crate::state::queue::Entry;
use crate::state::task::Task;
use crate::state::tool_placement::{ToolPlacement, folders_of_made};
use crate::state::workspace::Workspace;
use crate::time::Time;
use crate::tool::{Command, ExecutorCall, HostCall};
use crate::vocabulary::{
    AgentKind, ChildWorkspace, ControlAction, MissedReason, Ownership, Role, TaskKind, TaskStatus, Visibility,
};

/// The groups follow the components that perform them, so that code that has nothing to do with a group says so once.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Turn(TurnEffect),
    Command(CommandEffect),
    Workspace(WorkspaceEffect),
    Child(ChildEffect),
    TimerCheck(TimerCheckEffect),
    Trigger(TriggerEffect),
}

/// The model and the tools of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEffect {
    CallModel {
        exec_id: ExecId,
        round: u32,
        call: Box<ModelCall>,
    },
    /// Have the executor run a tool.
    RunTool {
        exec_id: ExecId,
        call_id: CallId,
        /// The call as the model wrote it: rules name tools, and an approval is for one text.
        tool: String,
        input: ToolInput,
        call: Box<ExecutorCall>,
        place: Box<ToolPlacement>,
    },
    /// Have the engine's host answer a call that reaches another agent.
    AnswerCall {
        exec_id: ExecId,
        call_id: CallId,
        call: Box<HostCall>,
        place: Box<ToolPlacement>,
    },
    /// End whatever this execution still has under way: the model call, tools that run inline.
    EndExec {
        exec_id: ExecId,
    },
}

/// The command of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandEffect {
    /// Start the command of a task that is queued.
    Start {
        task_id: TaskId,
        command: Box<Command>,
        place: Box<ToolPlacement>,
    },
    /// Report the end of a command that runs.
    Await {
        task_id: TaskId,
    },
    End {
        task_id: TaskId,
        force: bool,
    },
    /// The end of a command is durable: see to it that nothing of it is left, and let go of it.
    Close {
        task_id: TaskId,
    },
}

/// The folder that an agent works in.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkspaceEffect {
    /// Let go of a folder once nothing of the agent uses it.
    Release {
        workspace: String,
        /// The action of control that it follows from; none where the last turn or command in it ended.
        action: Option<ControlAction>,
    },
    /// Save what is not committed in a worktree, and remove it.
    RemoveWorktree { workspace: Box<Workspace> },
}

/// The child of a task, and the supervisor of a child.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEffect {
    /// Make the child of a task that is queued. Doing it twice makes one.
    Spawn { task_id: TaskId, child: Box<SpawnChild> },
    /// The child of a task is no longer wanted.
    Dismiss { task_id: TaskId, child_agent_id: String, evidence: Vec<String> },
    /// A child has left: its supervisor is to be told how its task ended, until it has heard.
    ReportToSupervisor { supervisor: AgentId, status: TaskStatus, end: Box<TaskEnd> },
}

/// The command that says whether an occurrence of a timer is worth a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerCheckEffect {
    /// Run the check of a timer's occurrence.
    Run { timer_id: TimerId, due: Time, command: String, place: Box<ToolPlacement> },
    /// End the check of a timer that is under way; its result is no longer wanted.
    End { timer_id: TimerId },
}

#[derive(Debug, Clone, PartialEq)]
pub enum TriggerEffect {
    /// A trigger has ended: what its deliveries were signed with is not kept.
    ForgetSecret { trigger_id: TriggerId },
}

/// The subject of a call to the model. Earlier messages and rounds are in the ledger, for models that want to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    pub model: String,
    pub message: Arc<Message>,
    /// The messages that joined the turn, in order.
    pub interjections: Vec<Arc<Message>>,
    /// Those of these messages that are excerpts: the facts that queued them have them whole.
    pub excerpts: Vec<Seq>,
    /// State that the provider asked to be given back.
    pub carry: Option<ProviderState>,
    /// The fact that started the turn.
    pub turn_seq: Seq,
    /// Where the agent stands, for models that are told. A script knows its part without.
    pub situation: Option<Box<Situation>>,
    /// Where its tools run, if it holds the folder: whether a turn got anywhere shows in the files, too.
    pub place: Option<Box<ToolPlacement>>,
    /// The agent's money is limited: a model of unknown price must not be called.
    pub money_limited: bool,
    /// The agent's role: which tools its turn may use follows from it.
    pub role: Role,
    /// Whose calls the answer will hold.
    pub author: Box<Author>,
}

/// The agent whose model answers, as far as the calls of the answer are judged by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    /// Where its calls run, and who made it.
    pub place: ToolPlacement,
    /// Its own model and those it falls back on: what it makes may think with them.
    pub models: Vec<String>,
}

/// A child as it is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnChild {
    pub identity: Identity,
    pub config: Config,
    pub message: String,
    /// The folder of which a worktree is made for it.
    pub worktree_of: Option<String>,
}

/// The effects that a fact asks for. `state` is the state it has just been applied to. The effect of a tool call is not
/// among these: the fact has the call's text, and the rule that records it has the parsed call (`rules/turn.rs`).
#[must_use]
#[allow(clippy::wildcard_enum_match_arm, reason = "most facts ask for nothing")]
pub fn effects_of(fact: &Fact, state: &AgentState) -> Vec<Effect> {
    match fact {
        Fact::RoundStarted(fact) => model_call(state)
            .map(|call| {
                Effect::Turn(TurnEffect::CallModel {
                    exec_id: fact.exec_id.clone(),
                    round: fact.round,
                    call: Box::new(call),
                })
            })
            .into_iter()
            .collect(),
        Fact::TurnAborted(fact) => vec![Effect::Turn(TurnEffect::EndExec { exec_id: fact.exec_id.clone() })],
        Fact::TaskCreated(fact) if fact.task_kind == TaskKind::ChildAgent => {
            state.planes.tasks.open().get(&fact.task_id).and_then(|task| spawn_of(task, state)).into_iter().collect()
        }
        Fact::TaskCreated(fact) => start_of(fact, state).into_iter().collect(),
        Fact::TaskRunning(fact) if is_command(state, &fact.task_id) => {
            vec![Effect::Command(CommandEffect::Await { task_id: fact.task_id.clone() })]
        }
        Fact::TaskUpdateIgnored(fact) if fact.reported == TaskStatus::Running => late_start(state, &fact.task_id),
        Fact::TaskCancelling(fact) => match state.planes.tasks.open().get(&fact.task_id).and_then(dismissal_of) {
            Some(dismissal) => vec![dismissal],
            None => vec![Effect::Command(CommandEffect::End { task_id: fact.task_id.clone(), force: fact.force })],
        },
        Fact::ChildReporting(_) => report_of(state).into_iter().collect(),
        Fact::TaskCompleted(fact) => close_of(&fact.end, state),
        Fact::TaskFailed(fact) => close_of(&fact.end, state),
        Fact::TaskCancelled(fact) => close_of(&fact.end, state),
        Fact::TaskInterrupted(fact) => close_of(&fact.end, state),
        Fact::WorktreeRemoving(fact) => state
            .planes
            .workspaces
            .attached()
            .get(&fact.root)
            .map(|workspace| {
                Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace: Box::new(workspace.clone()) })
            })
            .into_iter()
            .collect(),
        Fact::ControlApplied(fact) if fact.action == ControlAction::Stop => {
            let release = |workspace: &String| {
                let (workspace, action) = (workspace.clone(), Some(ControlAction::Stop));
                Effect::Workspace(WorkspaceEffect::Release { workspace, action })
            };
            fact.workspace.iter().map(release).collect()
        }
        // It is run again at the next boot.
        Fact::ControlApplied(fact) if fact.action == ControlAction::Shutdown => state
            .planes
            .timers
            .checking()
            .iter()
            .map(|timer| Effect::TimerCheck(TimerCheckEffect::End { timer_id: timer.clone() }))
            .collect(),
        Fact::TimerCheckStarted(fact) => {
            let check = state.planes.timers.get(&fact.timer_id).and_then(|timer| timer.check.clone());
            let (timer_id, due, place) = (&fact.timer_id, fact.due, Box::new(ToolPlacement::of(state)));
            check
                .map(|command| {
                    Effect::TimerCheck(TimerCheckEffect::Run { timer_id: timer_id.clone(), due, command, place })
                })
                .into_iter()
                .collect()
        }
        Fact::TimerMissed(fact) if matches!(fact.reason, MissedReason::Stopped | MissedReason::Cancelled) => {
            vec![Effect::TimerCheck(TimerCheckEffect::End { timer_id: fact.timer_id.clone() })]
        }
        Fact::TriggerRevoked(fact) => {
            vec![Effect::Trigger(TriggerEffect::ForgetSecret { trigger_id: fact.trigger_id.clone() })]
        }
        Fact::AgentArchived(_) => {
            let signed = state.planes.triggers.values().filter(|trigger| trigger.signed);
            signed
                .map(|trigger| Effect::Trigger(TriggerEffect::ForgetSecret { trigger_id: trigger.trigger_id.clone() }))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn is_command(state: &AgentState, task: &TaskId) -> bool {
    state.planes.tasks.get(task).is_some_and(|task| task.kind == TaskKind::Command)
}

/// The effect that makes the child of a queued task.
#[must_use]
pub fn spawn_of(task: &Task, state: &AgentState) -> Option<Effect> {
    let child = task.child.as_deref()?;
    let (task_id, supervisor) = (task.task_id.clone(), state.id());
    let identity = Identity {
        id: AgentId::new(task.child_agent_id.as_deref()?).ok()?,
        kind: AgentKind::Child,
        role: Role::Execution,
        visibility: Visibility::Private,
        ownership: Ownership::ParentSupervised,
        parent: Some(supervisor.clone()),
        supervisor: Some(Supervisor {
            agent_id: supervisor.clone(),
            task_id: task_id.clone(),
            top: state.definition.identity.top().clone(),
            depth: state.definition.identity.depth() + 1,
        }),
        makers: state.definition.identity.makers_of_made(),
        rule_folders: folders_of_made(&ToolPlacement::of(state), child.folder.as_deref()),
    };
    let (workspace, worktree_of) = match child.workspace_mode {
        ChildWorkspace::Inherit => (child.folder.clone(), None),
        ChildWorkspace::Worktree => (None, child.folder.clone()),
    };
    let config = Config {
        model: child.model.clone(),
        workspace,
        instructions: child.instructions.clone(),
        network: child.network,
        budget: Budget::from(child.grant),
        fallback: child.fallback.clone(),
        default_model: child.default_model,
        default_fallback: child.default_fallback,
        credentials: child.credentials.clone(),
    };
    let child = SpawnChild { identity, config, message: child.message.clone(), worktree_of };
    Some(Effect::Child(ChildEffect::Spawn { task_id, child: Box::new(child) }))
}

/// The effect that ends the child of a task.
#[must_use]
pub fn dismissal_of(task: &Task) -> Option<Effect> {
    if task.kind != TaskKind::ChildAgent {
        return None;
    }
    let (task_id, child_agent_id) = (task.task_id.clone(), task.child_agent_id.clone()?);
    Some(Effect::Child(ChildEffect::Dismiss { task_id, child_agent_id, evidence: task.asked.clone() }))
}

/// The effect that tells a supervisor of the end of a child that has let go of everything.
#[must_use]
pub fn report_of(state: &AgentState) -> Option<Effect> {
    let supervisor = state.definition.identity.supervisor.as_ref().filter(|_| !state.lifecycle.archived)?;
    let leaving = state.lifecycle.leaving.as_ref().filter(|leaving| leaving.reporting)?;
    let end = TaskEnd { used: Some(state.used_with_children()), ..leaving.task_end(supervisor.task_id.clone()) };
    let (status, supervisor) = (leaving.status, supervisor.agent_id.clone());
    Some(Effect::Child(ChildEffect::ReportToSupervisor { supervisor, status, end: Box::new(end) }))
}

/// A task that came out of a tool call runs already.
fn start_of(task: &TaskCreated, state: &AgentState) -> Option<Effect> {
    if task.task_kind != TaskKind::Command || task.call_id.is_some() {
        return None;
    }
    let command = Command {
        command: task.command.clone()?,
        workdir: task.workdir.clone(),
        tty: task.tty,
        accepts_input: task.accepts_input,
    };
    let (task_id, place) = (task.task_id.clone(), Box::new(ToolPlacement::of(state)));
    Some(Effect::Command(CommandEffect::Start { task_id, command: Box::new(command), place }))
}

/// A command came to run after it was asked to end. Somebody has to hear its end all the same; where that is recorded
/// already, nothing of it may go on.
fn late_start(state: &AgentState, task: &TaskId) -> Vec<Effect> {
    let task_id = task.clone();
    match state.planes.tasks.get(task).filter(|task| task.kind == TaskKind::Command).map(|task| task.status) {
        Some(TaskStatus::Cancelling) => vec![Effect::Command(CommandEffect::Await { task_id })],
        Some(TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Interrupted) | None => {
            vec![Effect::Command(CommandEffect::Close { task_id })]
        }
        Some(TaskStatus::Queued | TaskStatus::Running) => Vec::new(),
    }
}

fn close_of(end: &TaskEnd, state: &AgentState) -> Vec<Effect> {
    let command = is_command(state, &end.task_id);
    command.then(|| Effect::Command(CommandEffect::Close { task_id: end.task_id.clone() })).into_iter().collect()
}

fn model_call(state: &AgentState) -> Option<ModelCall> {
    let turn = state.turns.current.as_ref()?;
    let about = state.planes.queue.get(&turn.message_id)?;
    let joined = state.planes.queue.joined_to(&turn.message_id);
    let joined: Vec<&Entry> = joined.iter().filter_map(|id| state.planes.queue.get(id)).collect();
    let excerpts = std::iter::once(&about).chain(&joined).filter(|entry| entry.is_excerpt());
    Some(ModelCall {
        model: turn.model.clone(),
        message: about.message.clone(),
        excerpts: excerpts.map(|entry| entry.seq).collect(),
        interjections: joined.iter().map(|entry| entry.message.clone()).collect(),
        carry: state.models.carry.clone(),
        turn_seq: turn.seq,
        situation: (!turn.model.starts_with("script/")).then(|| Situation::of(state)).flatten().map(Box::new),
        place: (turn.work_item_id().is_some() && state.planes.workspaces.occupied().is_some())
            .then(|| Box::new(ToolPlacement::of(state))),
        money_limited: state.is_money_limited(),
        role: state.definition.identity.role,
        author: Box::new(Author {
            place: ToolPlacement::of(state),
            models: std::iter::once(&state.definition.config.model)
                .chain(&state.definition.config.fallback)
                .cloned()
                .collect(),
        }),
    })
}
