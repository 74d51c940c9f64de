//! Supervised children. A child is a task of its supervisor, and the task ends only when the child says how: there is
//! no child that nobody waits for, and no task of a child that is gone.
//!
//! A child leaves when it has nothing left to do, or when nobody wants it any more. It stops, lets go of its folder and
//! its worktrees, tells its supervisor, and is archived once that is recorded there. Each of these is asked for again
//! after a cut, and none does harm twice.

use crate::act_result::{ChildSpawned, TaskHandle};
use crate::config::{Config, Identity};
use crate::decision::Decision;
use crate::effect::{dismissal_of, spawn_of};
use crate::fact::{
    AgentArchived, AgentCreated, ChildLeaving, ChildReporting, ChildSpec, MessageQueued, TaskCreated, WorktreeRemoving,
};
use crate::id::{AgentId, WorkItemId};
use crate::input::{Answer, CreateChild, NewMessage, Refusal};
use crate::limits;
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::state::tool_placement::ToolPlacement;
use crate::vocabulary::{ChildWorkspace, ClosureOutcome, DecisionKind, MessageKind, Reason, TaskStatus};

use super::act::{Acted, Actor, answer_with, require_text};
use super::{control, ingress, task, work, workspace};

/// A model's request when it hands on a part of its work.
pub(super) struct Wanted {
    pub message: String,
    pub workspace_mode: ChildWorkspace,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub work_item_id: Option<WorkItemId>,
}

pub(super) fn spawn(tx: &mut Transaction<'_>, actor: &Actor, wanted: Wanted) -> Acted {
    if let Actor::Person(_) = actor {
        let hint = "create an agent of your own: abide agent create";
        return Err(Refusal::new(ErrorCode::NotYours, "a child belongs to the agent that spawns it").with_hint(hint));
    }
    let message = require_text(wanted.message, limits::TEXT_BYTES, "message")?;
    let instructions =
        wanted.instructions.map(|text| require_text(text, limits::TEXT_BYTES, "instructions")).transpose()?;
    let work_item_id = work::anchor(tx, wanted.work_item_id)?;
    if tx.state.definition.identity.depth() >= limits::CHILD_DEPTH_MAX {
        let detail = format!("you are {} below the agent at the top", tx.state.definition.identity.depth());
        return Err(Refusal::new(ErrorCode::TooDeep, detail).with_hint("do it yourself, or report to your supervisor"));
    }
    let open = tx.state.planes.tasks.children().count();
    if open >= limits::CHILDREN_MAX {
        return Err(Refusal::new(ErrorCode::TooManyChildren, format!("{open} children are at work")));
    }
    let grant = tx.state.allowance_for_child().map_err(|short| {
        let detail = format!("of your budget, {} are used or granted: too little is left to share", short.in_words());
        Refusal::new(ErrorCode::BudgetTooSmall, detail)
    })?;
    let place = ToolPlacement::of(tx.state);
    let folder = place.workspace.map(|bound| bound.root).or(place.configured);
    if wanted.workspace_mode == ChildWorkspace::Worktree && folder.is_none() {
        return Err(Refusal::new(ErrorCode::NoWorkspace, "there is no folder to make a worktree of"));
    }
    let child = ChildSpec {
        message,
        workspace_mode: wanted.workspace_mode,
        folder,
        default_model: wanted.model.is_none() && tx.state.definition.config.default_model,
        default_fallback: tx.state.definition.config.default_fallback,
        model: wanted.model.unwrap_or_else(|| tx.state.definition.config.model.clone()),
        fallback: tx.state.definition.config.fallback.clone(),
        instructions,
        network: tx.state.definition.config.network,
        grant,
        credentials: tx.state.definition.config.credentials.of_child(),
    };
    let (agent_id, task_id) = (child_id(tx), tx.fresh.task());
    let created = TaskCreated::of_child(task_id.clone(), &agent_id, child);
    task::create(tx, TaskCreated { work_item_id, ..created })?;
    answer_with(&ChildSpawned { agent_id, task_handle: TaskHandle { task_id } })
}

/// A name below its supervisor's; numbers are not used twice.
fn child_id(tx: &Transaction<'_>) -> AgentId {
    let number = format!(".{}", tx.state.planes.tasks.children_made() + 1);
    let own = limits::clip(tx.state.id().as_str(), limits::AGENT_ID_BYTES - number.len());
    AgentId::new(&format!("{own}{number}")).unwrap_or_else(|_| tx.state.id().clone())
}

pub(super) fn create(tx: &mut Transaction<'_>, first: CreateChild) -> Result<Answer, Refusal> {
    if tx.state.seq > 0 {
        let detail = format!("an agent called {} exists already", tx.state.id());
        return Err(Refusal::new(ErrorCode::Exists, detail));
    }
    let CreateChild { identity, config, message, workspace } = first;
    let message = NewMessage {
        kind: Some(MessageKind::ChannelEvent),
        text: Some(message),
        from_agent: identity.supervisor.as_ref().map(|supervisor| supervisor.agent_id.clone()),
        same_tree: true,
        ..NewMessage::default()
    };
    let message = ingress::shape(tx, message)?;
    begin(tx, identity, config);
    if let Some(attached) = workspace {
        workspace::bind_workspace(tx, attached);
    }
    tx.emit(MessageQueued { message: std::sync::Arc::new(message) });
    Ok(Answer::Done)
}

fn begin(tx: &mut Transaction<'_>, identity: Identity, config: Config) {
    let maker = identity.supervisor.as_ref().map(|supervisor| supervisor.agent_id.clone());
    tx.emit(AgentCreated { identity, config, start: true });
    let evidence = maker.map_or_else(|| "created".to_owned(), |maker| format!("created_by {maker}"));
    control::start_created(tx, evidence);
}

/// Its supervisor, or a person, wants it no longer.
pub(super) fn dismiss(tx: &mut Transaction<'_>, evidence: Vec<String>) -> Result<Answer, Refusal> {
    if tx.state.definition.identity.supervisor.is_none() {
        return Err(Refusal::new(ErrorCode::NotAChild, "this agent has no supervisor"));
    }
    if tx.state.lifecycle.leaving.is_some() {
        return Ok(Answer::Unchanged);
    }
    let text = tx.state.turns.last_text.clone().unwrap_or_default();
    leave(tx, TaskStatus::Cancelled, text, evidence);
    Ok(Answer::Done)
}

fn leave(tx: &mut Transaction<'_>, status: TaskStatus, text: String, evidence: Vec<String>) {
    control::halt(tx);
    tx.emit(ChildLeaving { status, text, evidence });
}

/// A child that has nothing left to do has its result. One that only a person could help is of no use to its
/// supervisor: nobody speaks to a child.
pub(crate) fn leave_if_done(tx: &mut Transaction<'_>, decision: &Decision) {
    if !tx.state.is_working_child() || !tx.state.planes.tasks.open().is_empty() {
        return;
    }
    let evidence = vec![format!("decision {} {}", decision.kind, decision.reason)];
    let said = tx.state.turns.last_text.clone().unwrap_or_default();
    match decision.kind {
        DecisionKind::Sleep => {
            let failed = crate::scheduler::closure::compute_closure(tx.state).outcome == Some(ClosureOutcome::Failed);
            let status = if failed { TaskStatus::Failed } else { TaskStatus::Completed };
            leave(tx, status, said, evidence);
        }
        DecisionKind::WaitForOperator if !ends_by_itself(decision.reason) => {
            let why = match tx.state.spent_limit() {
                Some(spent) => format!("It used up what it was granted: {}.", spent.reached.in_words()),
                None => format!("It can't go on by itself ({}).", decision.reason),
            };
            let text = format!("{why} It said last: {said}");
            leave(tx, TaskStatus::Failed, text, evidence);
        }
        DecisionKind::WaitForOperator
        | DecisionKind::StartModelTurn
        | DecisionKind::ReduceMessageOnly
        | DecisionKind::EmitSystemTick
        | DecisionKind::WaitForTask
        | DecisionKind::WaitForExternalChange
        | DecisionKind::WaitForTimer
        | DecisionKind::Stop
        | DecisionKind::StayIdle
        | DecisionKind::Noop => {}
    }
}

/// Whether a wait for a person ends without anybody speaking to the child: a person decides an approval, raises the
/// home's budget or mends a key.
fn ends_by_itself(reason: Reason) -> bool {
    matches!(reason, Reason::ApprovalPending | Reason::HomeBudgetSpent | Reason::ModelKey)
}

/// The next thing that a leaving child lets go of.
pub(super) fn go_on_leaving(tx: &mut Transaction<'_>) {
    let state = &*tx.state;
    let waits = state.lifecycle.leaving.as_ref().is_none_or(|leaving| leaving.reporting)
        || state.lifecycle.archived
        || !state.planes.tasks.open().is_empty()
        // A folder that could not be released is an error that every surface shows; it must not keep the child here.
        || (state.planes.workspaces.occupied().is_some() && state.lifecycle.runtime_error.is_none());
    if waits {
        return;
    }
    let worktrees = state.planes.workspaces.attached().values().filter(|bound| bound.worktree.is_some());
    let wanted = worktrees.clone().filter(|bound| !bound.removing && bound.kept.is_none());
    let wanted: Vec<String> = wanted.map(|bound| bound.root.clone()).collect();
    let removing = worktrees.clone().any(|bound| bound.removing);
    for root in &wanted {
        tx.emit(WorktreeRemoving { root: root.clone(), evidence: vec!["child_leaving".to_owned()], discard: false });
    }
    if wanted.is_empty() && !removing {
        tx.emit(ChildReporting {});
    }
}

/// Its supervisor knows: the child is gone.
pub(super) fn heard(tx: &mut Transaction<'_>) -> Result<Answer, Refusal> {
    if !tx.state.lifecycle.leaving.as_ref().is_some_and(|leaving| leaving.reporting) {
        return Err(Refusal::new(ErrorCode::NotLeaving, "this agent has nothing to report"));
    }
    tx.emit(AgentArchived {});
    Ok(Answer::Done)
}

/// After a cut: what was asked of the world about children is asked again.
pub(super) fn take_up_again(tx: &mut Transaction<'_>) {
    let again: Vec<_> = tx
        .state
        .planes
        .tasks
        .children()
        .filter_map(|task| match task.status {
            TaskStatus::Queued => spawn_of(task, tx.state),
            TaskStatus::Cancelling => dismissal_of(task),
            TaskStatus::Running
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Cancelled
            | TaskStatus::Interrupted => None,
        })
        .collect();
    for effect in again {
        tx.ask_again(effect);
    }
    if let Some(report) = crate::effect::report_of(tx.state) {
        tx.ask_again(report);
    }
}
