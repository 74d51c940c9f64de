//! Messages between agents: a supervisor makes and dismisses its children, a child tells its supervisor how it ended, and
//! any agent writes to any other. All of it goes through the other agent's mailbox.

use std::sync::Arc;
use std::time::Duration;

use abide_kernel::AgentState;
use abide_kernel::budget::Used;
use abide_kernel::config::{Identity, Supervisor};
use abide_kernel::effect::{ChildEffect, Effect, SpawnChild, WorkspaceEffect};
use abide_kernel::fact::{Fact, TaskEnd, WorkspaceAttached};
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::{CreateChild, Input, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::workspace::Workspace;
use abide_kernel::vocabulary::TaskStatus;
use abide_ledger::StreamId;
use futures_util::future::{BoxFuture, join_all};

use super::Agents;
use super::spawn_queue::{SpawnQueue, SpawnTicket};
use super::tree_quota::Reservation;
use crate::core::Request;
use crate::engine::Closing;
use crate::fold::decode;
use crate::streams::{AskError, Streams};

/// Waits between attempts to reach another agent; the last one repeats.
const RETRY_MS: [u64; 5] = [50, 250, 1_000, 5_000, 30_000];

/// The job of an effect that is about another agent; gives the effect back if it is about something else. Children are
/// made one after the other, and dismissed side by side.
pub(super) fn job(
    agents: &Arc<Streams<Agents>>,
    agent: &AgentId,
    effect: Effect,
    queue: &mut SpawnQueue,
) -> Result<BoxFuture<'static, Vec<Input>>, Effect> {
    let agents = Arc::clone(agents);
    match effect {
        Effect::Child(ChildEffect::Spawn { task_id, child }) => {
            let ticket = queue.enter(&task_id);
            Ok(Box::pin(async move { spawn_child(&agents, ticket, task_id, *child).await }))
        }
        Effect::Child(ChildEffect::Dismiss { task_id, child_agent_id, evidence }) => {
            let not_being_made = queue.withdraw(&task_id);
            Ok(Box::pin(async move {
                not_being_made.await;
                dismiss_child(&agents, task_id, &child_agent_id, evidence).await
            }))
        }
        Effect::Child(ChildEffect::ReportToSupervisor { supervisor, status, end }) => {
            let child = agent.clone();
            Ok(Box::pin(async move { report_to_supervisor(&agents, &child, &supervisor, status, *end).await }))
        }
        Effect::Turn(_) | Effect::Command(_) | Effect::Workspace(_) | Effect::TimerCheck(_) | Effect::Trigger(_) => {
            Err(effect)
        }
    }
}

async fn spawn_child(
    agents: &Arc<Streams<Agents>>,
    mut ticket: SpawnTicket,
    task_id: TaskId,
    child: SpawnChild,
) -> Vec<Input> {
    // The place is reserved before the child waits its turn, so that no other request counts on it.
    let reservation = match agents.kind.tree_quota.reserve(agents, &child.identity).await {
        Ok(reservation) => reservation,
        Err(refusal) if ticket.is_wanted() => {
            return task_failed(task_id, format!("{}; {}", refusal.message, refusal.hint));
        }
        Err(_) => return Vec::new(),
    };
    if !ticket.wait_turn().await {
        // Its dismissal says that it was never made.
        return Vec::new();
    }
    create_child(agents, reservation, task_id, child).await
}

async fn create_child(
    agents: &Arc<Streams<Agents>>,
    reservation: Reservation,
    task_id: TaskId,
    child: SpawnChild,
) -> Vec<Input> {
    let SpawnChild { identity, config, message, worktree_of } = child;
    let (id, supervisors) = (identity.id.clone(), identity.supervisors());
    match identity_of(agents, &id).await {
        // Made before a cut, and not told yet.
        Ok(Some(known)) if is_ours(&known, &task_id) => {
            reservation.keep();
            return task_running(task_id);
        }
        Ok(Some(_)) => return task_failed(task_id, format!("an agent called {id} exists already; spawn another")),
        Ok(None) => {}
        Err(error) => return task_failed(task_id, error.to_string()),
    }
    let workspace = match worktree_of {
        None => None,
        Some(folder) => match agents.kind.perform.worktree(&id, folder).await {
            Ok(attached) => Some(attached),
            Err(refusal) => return task_failed(task_id, format!("{}; {}", refusal.message, refusal.hint)),
        },
    };
    let first = CreateChild { identity, config, message, workspace: workspace.clone() };
    reservation.keep();
    let made = ask_until_answered_under(agents, &id, Input::CreateChild(Box::new(first)), supervisors).await;
    let refusal = match made {
        None => return Vec::new(),
        Some(Ok(())) => return task_running(task_id),
        Some(Err(refusal)) => refusal,
    };
    agents.kind.tree_quota.remove(&id);
    if let Some(attached) = workspace {
        remove_worktree(agents, &id, &attached).await;
    }
    // The dismissal that follows says that it was never made.
    if refusal.code == ErrorCode::SupervisorEnded {
        return Vec::new();
    }
    task_failed(task_id, refusal.to_string())
}

/// Removes the worktree of a child that was not made: nobody else would.
async fn remove_worktree(agents: &Arc<Streams<Agents>>, child: &AgentId, attached: &WorkspaceAttached) {
    let workspace = Box::new(Workspace::of(attached, 0, agents.engine.clock.now()));
    if let Some(removal) =
        agents.kind.perform.perform(child, Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }))
    {
        // If it stays, the next start of the daemon finds it.
        let _outcome = removal.await;
    }
}

fn is_ours(identity: &Identity, task: &TaskId) -> bool {
    identity.supervisor.as_ref().is_some_and(|supervisor| supervisor.task_id == *task)
}

/// Who an agent is, if there is one.
async fn identity_of(agents: &Arc<Streams<Agents>>, id: &AgentId) -> Result<Option<Identity>, AskError> {
    agents.inspect(id, |state, _| state.definition.identity.clone()).await
}

async fn dismiss_child(
    agents: &Arc<Streams<Agents>>,
    task_id: TaskId,
    child: &str,
    evidence: Vec<String>,
) -> Vec<Input> {
    let Ok(id) = AgentId::new(child) else { return task_failed(task_id, format!("{child} is no agent's name")) };
    match identity_of(agents, &id).await {
        Ok(Some(known)) if is_ours(&known, &task_id) => {}
        // It was never made; an agent of that name is somebody else's.
        Ok(other) => {
            if other.is_none() {
                agents.kind.tree_quota.remove(&id);
            }
            return task_ended(task_id, TaskStatus::Cancelled, "never_made".to_owned(), Some(Used::default()));
        }
        Err(error) => return task_ended(task_id, TaskStatus::Interrupted, format!("child_unreadable {error}"), None),
    }
    match ask_until_answered(agents, &id, Input::Dismiss { evidence }).await {
        // It says how it ended when it has let go of everything.
        None | Some(Ok(())) => Vec::new(),
        Some(Err(error)) => task_ended(task_id, TaskStatus::Interrupted, format!("child_gone {error}"), None),
    }
}

async fn report_to_supervisor(
    agents: &Arc<Streams<Agents>>,
    child: &AgentId,
    supervisor: &AgentId,
    status: TaskStatus,
    mut end: TaskEnd,
) -> Vec<Input> {
    end.evidence.push(format!("child {child}"));
    match ask_until_answered(agents, supervisor, Input::EndTask { status, end }).await {
        None => Vec::new(),
        Some(Ok(())) => vec![Input::SupervisorHeard],
        // The supervisor is gone.
        Some(Err(error)) => {
            tracing::warn!(%child, %supervisor, %error, "a child's supervisor took no report");
            vec![Input::SupervisorHeard]
        }
    }
}

/// Dismisses the children of an agent that has no actor to do it: it was quarantined.
pub(super) async fn dismiss_children_of(agents: Arc<Streams<Agents>>, agent: AgentId, effects: Vec<Effect>) {
    let mut queue = SpawnQueue::default();
    let jobs = effects.into_iter().filter_map(|effect| job(&agents, &agent, effect, &mut queue).ok());
    for input in join_all(jobs).await.into_iter().flatten() {
        ask_until_answered(&agents, &agent, input).await;
    }
}

/// The records of an agent can't be read. If it is a child, somebody waits for it; who, its first fact says.
pub(super) async fn report_damage(agents: Arc<Streams<Agents>>, child: AgentId) {
    let stream = StreamId::agent(&child);
    // One row, once in the life of a disk.
    let first = agents.engine.ledger.read(&stream, 0, 1).ok().and_then(|facts| facts.into_iter().next());
    if let Some(Ok(Fact::AgentCreated(created))) = first.map(|first| decode::<AgentState>(&stream, &first))
        // A fork begins with the facts of another.
        && created.identity.id == child
        && let Some(supervisor) = created.identity.supervisor
    {
        report_quarantine(agents, child, supervisor).await;
    }
}

/// A child was quarantined: its supervisor's task is over.
pub(super) async fn report_quarantine(agents: Arc<Streams<Agents>>, child: AgentId, supervisor: Supervisor) {
    let evidence = vec![format!("child_quarantined {child}")];
    let end = TaskEnd { task_id: supervisor.task_id, evidence, ..TaskEnd::default() };
    let input = Input::EndTask { status: TaskStatus::Interrupted, end };
    // If this process ends first, the task stays open, and the process that stops it learns that the child is quarantined.
    ask_until_answered(&agents, &supervisor.agent_id, input).await;
}

/// Asks until the other agent has answered. None when this process is about to end: the next process asks again.
async fn ask_until_answered(agents: &Arc<Streams<Agents>>, id: &AgentId, input: Input) -> Option<Result<(), Refusal>> {
    ask_until_answered_under(agents, id, input, Vec::new()).await
}

async fn ask_until_answered_under(
    agents: &Arc<Streams<Agents>>,
    id: &AgentId,
    input: Input,
    under: Vec<AgentId>,
) -> Option<Result<(), Refusal>> {
    for attempt in 0.. {
        let error = match agents.submit(id, Request::new(0, input.clone()), under.clone()).await {
            Ok(_) => return Some(Ok(())),
            Err(AskError::Refused(refusal)) => return Some(Err(refusal)),
            Err(AskError::Closing) => return None,
            Err(error @ (AskError::Busy | AskError::Damaged(_) | AskError::Store(_) | AskError::Crashed)) => error,
        };
        tracing::debug!(agent = %id, %error, attempt, "an agent could not be reached");
        let wait = RETRY_MS[attempt.min(RETRY_MS.len() - 1)];
        let mut closing = agents.engine.closing.subscribe();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            _ = closing.wait_for(|closing| *closing != Closing::Open) => return None,
        }
    }
    None
}

fn task_running(task_id: TaskId) -> Vec<Input> {
    vec![Input::RunTask { task_id, recovery: None }]
}

fn task_failed(task_id: TaskId, why: String) -> Vec<Input> {
    let (evidence, used) = (vec!["not_made".to_owned()], Some(Used::default()));
    let end = TaskEnd { task_id, output_tail: why, evidence, used, ..TaskEnd::default() };
    vec![Input::EndTask { status: TaskStatus::Failed, end }]
}

fn task_ended(task_id: TaskId, status: TaskStatus, evidence: String, used: Option<Used>) -> Vec<Input> {
    let end = TaskEnd { task_id, evidence: vec![evidence], used, ..TaskEnd::default() };
    vec![Input::EndTask { status, end }]
}

/// A worktree that nobody here can make.
pub(super) fn no_worktrees() -> Result<WorkspaceAttached, Refusal> {
    Err(Refusal::new(ErrorCode::NoWorktrees, "nothing here makes worktrees"))
}
