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
    AgentArchived, AgentCreated, ChildLeaving, ChildReporting, MessageQueued, NewChild, TaskCreated, WorktreeRemoving,
};
use crate::id::{AgentId, WorkItemId};
use crate::input::{Answer, FirstDay, NewMessage, Refusal};
use crate::limits;
use crate::rules::step::Step;
use crate::state::place::Place;
use crate::vocabulary::{ChildWorkspace, ClosureOutcome, DecisionKind, MessageKind, Reason, TaskStatus};

use super::act::{Acted, Actor, done, line};
use super::{control, ingress, task, work, workspace};

/// What a model asks for when it hands on a part of its work.
pub(super) struct Wanted {
    pub message: String,
    pub workspace_mode: ChildWorkspace,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub work_item_id: Option<WorkItemId>,
}

pub(super) fn spawn(step: &mut Step<'_>, actor: &Actor, wanted: Wanted) -> Acted {
    if let Actor::Person(_) = actor {
        let hint = "create an agent of your own: abide agent create";
        return Err(Refusal::new("not_yours", "a child belongs to the agent that spawns it", hint));
    }
    let message = line(wanted.message, limits::TEXT_BYTES, "message")?;
    let instructions = wanted.instructions.map(|text| line(text, limits::TEXT_BYTES, "instructions")).transpose()?;
    let work_item_id = work::anchor(step, wanted.work_item_id)?;
    if step.state.definition.identity.depth() >= limits::CHILD_DEPTH_MAX {
        let detail = format!("you are {} below the agent at the top", step.state.definition.identity.depth());
        return Err(Refusal::new("too_deep", detail, "do it yourself, or report to your supervisor"));
    }
    let open = step.state.planes.tasks.children().count();
    if open >= limits::CHILDREN_MAX {
        let hint = "wait for one of them: WaitFor with wake task_result; or stop one: TaskStop";
        return Err(Refusal::new("too_many_children", format!("{open} children are at work"), hint));
    }
    let grant = step.state.grant().map_err(|short| {
        let detail = format!("of your budget, {} are used or granted: too little is left to share", short.in_words());
        Refusal::new("budget_too_small", detail, "do it yourself, or wait for a child that is at work")
    })?;
    let place = Place::of(step.state);
    let folder = place.workspace.map(|bound| bound.root).or(place.configured);
    if wanted.workspace_mode == ChildWorkspace::Worktree && folder.is_none() {
        let hint = "use a workspace first, or leave workspace_mode out";
        return Err(Refusal::new("no_workspace", "there is no folder to make a worktree of", hint));
    }
    let child = NewChild {
        message,
        workspace_mode: wanted.workspace_mode,
        folder,
        default_model: wanted.model.is_none() && step.state.definition.config.default_model,
        default_fallback: step.state.definition.config.default_fallback,
        model: wanted.model.unwrap_or_else(|| step.state.definition.config.model.clone()),
        fallback: step.state.definition.config.fallback.clone(),
        instructions,
        network: step.state.definition.config.network,
        grant,
        credentials: step.state.definition.config.credentials.of_child(),
    };
    let (agent_id, task_id) = (child_id(step), step.fresh.task());
    let created = TaskCreated::of_child(task_id.clone(), &agent_id, child);
    task::create(step, TaskCreated { work_item_id, ..created })?;
    done(&ChildSpawned { agent_id, task_handle: TaskHandle { task_id } })
}

/// A name below its supervisor's; numbers are not used twice.
fn child_id(step: &Step<'_>) -> AgentId {
    let number = format!(".{}", step.state.planes.tasks.children_made() + 1);
    let own = limits::clip(step.state.id().as_str(), limits::AGENT_ID_BYTES - number.len());
    AgentId::new(&format!("{own}{number}")).unwrap_or_else(|_| step.state.id().clone())
}

pub(super) fn create(step: &mut Step<'_>, first: FirstDay) -> Result<Answer, Refusal> {
    if step.state.seq > 0 {
        let detail = format!("an agent called {} exists already", step.state.id());
        return Err(Refusal::new("exists", detail, "choose another name"));
    }
    let FirstDay { identity, config, message, workspace } = first;
    let message = NewMessage {
        kind: Some(MessageKind::ChannelEvent),
        text: Some(message),
        from_agent: identity.supervisor.as_ref().map(|supervisor| supervisor.agent_id.clone()),
        same_tree: true,
        ..NewMessage::default()
    };
    let message = ingress::shape(step, message)?;
    begin(step, identity, config);
    if let Some(attached) = workspace {
        workspace::bind(step, attached);
    }
    step.emit(MessageQueued { message: std::sync::Arc::new(message) });
    Ok(Answer::Done)
}

fn begin(step: &mut Step<'_>, identity: Identity, config: Config) {
    let maker = identity.supervisor.as_ref().map(|supervisor| supervisor.agent_id.clone());
    step.emit(AgentCreated { identity, config, start: true });
    let evidence = maker.map_or_else(|| "created".to_owned(), |maker| format!("created_by {maker}"));
    control::start_created(step, evidence);
}

/// Its supervisor, or a person, wants it no longer.
pub(super) fn dismiss(step: &mut Step<'_>, evidence: Vec<String>) -> Result<Answer, Refusal> {
    if step.state.definition.identity.supervisor.is_none() {
        return Err(Refusal::new("not_a_child", "this agent has no supervisor", "stop it instead"));
    }
    if step.state.lifecycle.leaving.is_some() {
        return Ok(Answer::Unchanged);
    }
    let text = step.state.turns.last_text.clone().unwrap_or_default();
    leave(step, TaskStatus::Cancelled, text, evidence);
    Ok(Answer::Done)
}

fn leave(step: &mut Step<'_>, status: TaskStatus, text: String, evidence: Vec<String>) {
    control::halt(step);
    step.emit(ChildLeaving { status, text, evidence });
}

/// A child that has nothing left to do has its result. One that only a person could help is of no use to its
/// supervisor: nobody speaks to a child.
pub(crate) fn leave_if_done(step: &mut Step<'_>, decision: &Decision) {
    if !step.state.is_working_child() || !step.state.planes.tasks.open().is_empty() {
        return;
    }
    let evidence = vec![format!("decision {} {}", decision.kind, decision.reason)];
    let said = step.state.turns.last_text.clone().unwrap_or_default();
    match decision.kind {
        DecisionKind::Sleep => {
            let failed = crate::scheduler::closure::closure(step.state).outcome == Some(ClosureOutcome::Failed);
            let status = if failed { TaskStatus::Failed } else { TaskStatus::Completed };
            leave(step, status, said, evidence);
        }
        DecisionKind::WaitForOperator if !ends_by_itself(decision.reason) => {
            let why = match step.state.spent() {
                Some(spent) => format!("It used up what it was granted: {}.", spent.reached.in_words()),
                None => format!("It can't go on by itself ({}).", decision.reason),
            };
            let text = format!("{why} It said last: {said}");
            leave(step, TaskStatus::Failed, text, evidence);
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
pub(super) fn go_on_leaving(step: &mut Step<'_>) {
    let state = &*step.state;
    let waits = state.lifecycle.leaving.as_ref().is_none_or(|leaving| leaving.reporting)
        || state.lifecycle.archived
        || !state.planes.tasks.open().is_empty()
        // What could not be released is an error that every surface shows; it must not keep the child here.
        || (state.planes.workspaces.occupied().is_some() && state.lifecycle.runtime_error.is_none());
    if waits {
        return;
    }
    let worktrees = state.planes.workspaces.attached().values().filter(|bound| bound.worktree.is_some());
    let wanted = worktrees.clone().filter(|bound| !bound.removing && bound.kept.is_none());
    let wanted: Vec<String> = wanted.map(|bound| bound.root.clone()).collect();
    let removing = worktrees.clone().any(|bound| bound.removing);
    for root in &wanted {
        step.emit(WorktreeRemoving { root: root.clone(), evidence: vec!["child_leaving".to_owned()], discard: false });
    }
    if wanted.is_empty() && !removing {
        step.emit(ChildReporting {});
    }
}

/// Its supervisor knows: the child is gone.
pub(super) fn heard(step: &mut Step<'_>) -> Result<Answer, Refusal> {
    if !step.state.lifecycle.leaving.as_ref().is_some_and(|leaving| leaving.reporting) {
        return Err(Refusal::new("not_leaving", "this agent has nothing to report", "leave it at work"));
    }
    step.emit(AgentArchived {});
    Ok(Answer::Done)
}

/// After a cut: what was asked of the world about children is asked again.
pub(super) fn take_up_again(step: &mut Step<'_>) {
    let again: Vec<_> = step
        .state
        .planes
        .tasks
        .children()
        .filter_map(|task| match task.status {
            TaskStatus::Queued => spawn_of(task, step.state),
            TaskStatus::Cancelling => dismissal_of(task),
            TaskStatus::Running
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Cancelled
            | TaskStatus::Interrupted => None,
        })
        .collect();
    for effect in again {
        step.ask_again(effect);
    }
    if let Some(report) = crate::effect::report_of(step.state) {
        step.ask_again(report);
    }
}
