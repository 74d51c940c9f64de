//! Tools that reach other agents. What they say is durable where it was said before the call has its outcome.

use std::sync::Arc;

use abide_kernel::AgentState;
use abide_kernel::act_result::told;
use abide_kernel::config::{Choice, Config, ConfigChange, Identity};
use abide_kernel::credentials::Credentials;
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::id::{AgentId, CallId, ExecId, MessageId};
use abide_kernel::input::{Answer, Input, NewMessage, Refusal};
use abide_kernel::limits;
use abide_kernel::open_json::ToolOutput;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::state::tool_placement::folders_of_made;
use abide_kernel::summary::agent_summary;
use abide_kernel::tool::{AgentGet, HostCall, SendMessage, SpawnAgent};
use abide_kernel::vocabulary::{ChildWorkspace, MessageKind, ToolStatus};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Map;

use super::Agents;
use super::ticket_queue::TicketQueue;
use crate::core::Request;
use crate::streams::{AskError, Streams};

/// The result of `SendMessage`.
#[derive(Serialize)]
struct MessageSent {
    message_id: MessageId,
}

/// The result of `SpawnAgent` for a named agent.
#[derive(Serialize)]
struct AgentSpawned {
    agent_id: AgentId,
}

/// The agent whose model made the call.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub identity: Identity,
    pub config: Config,
    /// Its turn was started by something from outside.
    pub from_outside: bool,
}

impl Caller {
    pub(super) fn of(state: &AgentState) -> Caller {
        let message = state.turns.current.as_ref().and_then(|turn| state.planes.queue.get(&turn.message_id));
        let from_outside = message.is_some_and(|entry| entry.message.is_from_outside());
        Caller { identity: state.definition.identity.clone(), config: state.definition.config.clone(), from_outside }
    }
}

/// The job of a call that reaches another agent; gives the effect back if it does not. Calls of one agent are made in
/// order: what it says first is heard first.
pub(super) fn job(
    agents: &Arc<Streams<Agents>>,
    caller: impl FnOnce() -> Caller,
    effect: Effect,
    queue: &mut TicketQueue,
) -> Result<(ExecId, CallId, BoxFuture<'static, Vec<Input>>), Effect> {
    let Effect::Turn(TurnEffect::AnswerCall { exec_id, call_id, call, place }) = effect else { return Err(effect) };
    let (agents, caller, mut turn) = (Arc::clone(agents), caller(), queue.take_ticket());
    let (exec, id) = (exec_id.clone(), call_id.clone());
    let job = async move {
        turn.wait_turn().await;
        let came_to = match *call {
            HostCall::SendMessage(call) => send(&agents, &caller, call).await,
            HostCall::AgentGet(call) => get(&agents, &caller, call).await,
            HostCall::SpawnAgent(call) => spawn_named(&agents, &caller, call, *place).await,
        };
        vec![finished(exec, id, came_to)]
    };
    Ok((exec_id, call_id, Box::pin(job)))
}

fn finished(exec_id: ExecId, call_id: CallId, came_to: Result<ToolOutput, Refusal>) -> Input {
    let (status, result) = match came_to {
        Ok(result) => (ToolStatus::Completed, result),
        Err(refusal) => (ToolStatus::Failed, refusal.into_result()),
    };
    Input::FinishTool { exec_id, call_id, status, result, reads: None }
}

async fn send(agents: &Arc<Streams<Agents>>, caller: &Caller, call: SendMessage) -> Result<ToolOutput, Refusal> {
    let SendMessage { agent_id, text, correlation_id } = call;
    let to = name(&agent_id)?;
    if text.trim().is_empty() {
        return Err(Refusal::new(ErrorCode::Empty, "there is nothing in the text, and it would wake nobody"));
    }
    if to == caller.identity.id {
        return Err(Refusal::new(ErrorCode::ThatIsYou, "a message to yourself would only wake you"));
    }
    let receiver =
        agents.inspect(&to, |state, _| (!state.lifecycle.archived).then(|| state.definition.identity.clone())).await;
    let Some(receiver) = receiver.map_err(|error| unreached(&to, error))?.flatten() else {
        return Err(Refusal::new(ErrorCode::NotFound, format!("there is no agent called {to}"))
            .with_hint("AgentGet shows your own"));
    };
    tell(agents, caller, &to, text, correlation_id, receiver.top() == caller.identity.top()).await
}

async fn tell(
    agents: &Arc<Streams<Agents>>,
    caller: &Caller,
    to: &AgentId,
    text: String,
    correlation_id: Option<String>,
    same_tree: bool,
) -> Result<ToolOutput, Refusal> {
    let message = NewMessage {
        kind: Some(MessageKind::ChannelEvent),
        text: Some(text),
        from_agent: Some(caller.identity.id.clone()),
        same_tree,
        from_outside: caller.from_outside,
        correlation_id,
        ..NewMessage::default()
    };
    match agents.ask(to, Input::Queue(message)).await.map_err(|error| unreached(to, error))?.answer {
        Answer::Queued { message_id } => Ok(told(&MessageSent { message_id })),
        Answer::Done | Answer::Unchanged | Answer::Woken { .. } | Answer::Acted(_) => Ok(ToolOutput(Map::new().into())),
    }
}

/// The summary of an agent, as the operator sees it; the caller's own where none is named. Reading wakes nobody.
async fn get(agents: &Arc<Streams<Agents>>, caller: &Caller, call: AgentGet) -> Result<ToolOutput, Refusal> {
    let id = call.agent_id.unwrap_or_else(|| caller.identity.id.clone());
    let seen = agents.inspect(&id, |state, now| (!state.lifecycle.archived).then(|| agent_summary(state, now))).await;
    let missing = || {
        Refusal::new(ErrorCode::NotFound, format!("no agent is called {id}"))
            .with_hint("go on without it, or ask the operator")
    };
    let summary = seen.map_err(|error| unreached(&id, error))?.flatten().ok_or_else(missing)?;
    Ok(told(&agents.kind.perform.with_world(&id, summary).await))
}

/// A named agent belongs to the operator, not to who asked for it: it is told what to do, and lives on.
async fn spawn_named(
    agents: &Arc<Streams<Agents>>,
    caller: &Caller,
    call: SpawnAgent,
    place: ToolPlacement,
) -> Result<ToolOutput, Refusal> {
    let SpawnAgent { message, name: wanted, workspace_mode, model, instructions } = call;
    let id = name(&wanted)?;
    if is_name_of_child(&id) {
        let detail = format!("{id} is a name as the runtime gives it to children: a dot and a number at its end");
        return Err(Refusal::new(ErrorCode::ReservedName, detail));
    }
    if !caller.config.budget.is_none() {
        let detail = "you have a budget, and an agent that belongs to nobody would not be bound by it";
        return Err(Refusal::new(ErrorCode::BudgetBound, detail));
    }
    let makers = caller.identity.makers_of_made();
    if makers.len() > limits::MAKERS_MAX {
        let detail = format!("{} agents made each other, one after the other, down to you", makers.len());
        return Err(
            Refusal::new(ErrorCode::TooDeep, detail).with_hint("leave name out, or ask the operator to make the agent")
        );
    }
    let known = agents.inspect(&id, |_, _| ()).await.map_err(|error| unreached(&id, error))?;
    if known.is_some() {
        let hint = "choose another name, or say it to that one with SendMessage";
        return Err(Refusal::new(ErrorCode::Exists, format!("an agent called {id} exists already")).with_hint(hint));
    }
    let parent = Some(caller.identity.id.clone());
    let identity = Identity { parent, makers, ..Identity::named(id.clone()) };
    let reservation = agents.kind.tree_quota.reserve(agents, &identity).await?;
    let folder = place.workspace.as_ref().map(|bound| bound.root.clone()).or(place.configured.clone());
    let rule_folders = folders_of_made(&place, folder.as_deref().filter(|_| workspace_mode.is_some()));
    let (workspace, worktree) = match (workspace_mode, folder) {
        (None, _) => (None, None),
        (Some(_), None) => {
            return Err(Refusal::new(ErrorCode::NoWorkspace, "there is no folder to hand on"));
        }
        (Some(ChildWorkspace::Inherit), folder) => (folder, None),
        (Some(ChildWorkspace::Worktree), Some(folder)) => {
            (None, Some(agents.kind.perform.worktree(&id, folder).await?))
        }
    };
    // Credentials are an operator's to give, and nobody asked one.
    let credentials = Credentials::default();
    let like_caller = Config { workspace, instructions, credentials, ..caller.config.clone() };
    let config = like_caller.with(ConfigChange { model: model.map(Choice::Own), ..ConfigChange::default() });
    let ask = async |input| agents.ask(&id, input).await.map_err(|error| unreached(&id, error));
    let makers = std::iter::once(caller.identity.id.clone()).chain(caller.identity.supervisors()).collect();
    let identity = Identity { rule_folders, ..identity };
    reservation.keep();
    let made = agents.submit(&id, Request::new(0, Input::Create { identity, config, start: false }), makers).await;
    made.map_err(|error| {
        agents.kind.tree_quota.remove(&id);
        unreached(&id, error)
    })?;
    if let Some(worktree) = worktree {
        ask(Input::UseWorkspace(worktree)).await?;
    }
    tell(agents, caller, &id, message, None, false).await?;
    ask(Input::Start).await?;
    Ok(told(&AgentSpawned { agent_id: id }))
}

/// A model that took such a name would keep another agent from making its child. An operator may choose it.
fn is_name_of_child(id: &AgentId) -> bool {
    let number = id.as_str().rsplit_once('.').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn name(text: &str) -> Result<AgentId, Refusal> {
    AgentId::new(text)
        .map_err(|error| Refusal::new(ErrorCode::InvalidInput, error.to_string()).with_hint("name an agent"))
}

fn unreached(id: &AgentId, error: AskError) -> Refusal {
    match error {
        AskError::Refused(refusal) => refusal,
        AskError::Busy | AskError::Damaged(_) | AskError::Store(_) | AskError::Closing | AskError::Crashed => {
            Refusal::new(ErrorCode::NotReached, format!("{id} could not be reached: {error}"))
        }
    }
}
