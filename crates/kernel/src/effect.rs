//! Effects: what is to be done in the world, as data. Each follows from a fact that is already durable, and what it
//! does comes back as an input.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::AgentState;
use crate::agent::turn::Phase;
use crate::fact::{CallRecord, Fact};
use crate::id::{CallId, ExecId, Seq, TaskId};
use crate::message::Message;
use crate::vocabulary::ControlAction;

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    CallModel {
        exec_id: ExecId,
        round: u32,
        call: Box<ModelCall>,
    },
    RunTool {
        exec_id: ExecId,
        call_id: CallId,
        tool: String,
        input: Value,
    },
    /// End whatever this execution still has under way: the model call, tools that run inline.
    EndExec {
        exec_id: ExecId,
    },
    EndTask {
        task_id: TaskId,
        force: bool,
    },
    ReleaseWorkspace {
        workspace: String,
    },
    /// Tell the operator, at least once, under this id.
    Notify {
        brief_id: crate::id::BriefId,
        text: String,
    },
}

/// What a call to the model is about. What was said before is in the ledger, for models that want to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    pub model: String,
    pub message: Arc<Message>,
    /// What joined the turn, in order.
    pub interjections: Vec<Arc<Message>>,
    /// What the provider asked to be given back.
    pub carry: Option<Value>,
    /// The fact that started the turn.
    pub turn_seq: Seq,
}

/// What a fact asks to be done. `state` is the state it has just been applied to.
#[must_use]
#[allow(clippy::wildcard_enum_match_arm, reason = "most facts ask for nothing")]
pub fn effects_of(fact: &Fact, state: &AgentState) -> Vec<Effect> {
    match fact {
        Fact::RoundStarted(fact) => model_call(state)
            .map(|call| Effect::CallModel { exec_id: fact.exec_id.clone(), round: fact.round, call: Box::new(call) })
            .into_iter()
            .collect(),
        Fact::ToolStarted(fact) => running_call(state, &fact.call_id)
            .map(|call| Effect::RunTool {
                exec_id: fact.exec_id.clone(),
                call_id: call.call_id.clone(),
                tool: call.tool.clone(),
                input: call.input.clone(),
            })
            .into_iter()
            .collect(),
        Fact::TurnAborted(fact) => vec![Effect::EndExec { exec_id: fact.exec_id.clone() }],
        Fact::TaskCancelling(fact) => {
            vec![Effect::EndTask { task_id: fact.task_id.clone(), force: fact.force }]
        }
        Fact::ControlApplied(fact) if fact.action == ControlAction::Stop => {
            fact.workspace.iter().map(|workspace| Effect::ReleaseWorkspace { workspace: workspace.clone() }).collect()
        }
        Fact::BriefRecorded(fact) => {
            vec![Effect::Notify { brief_id: fact.brief_id.clone(), text: fact.text.clone() }]
        }
        _ => Vec::new(),
    }
}

fn model_call(state: &AgentState) -> Option<ModelCall> {
    let turn = state.turn.as_ref()?;
    let joined = state.queue.joined_to(&turn.message_id);
    Some(ModelCall {
        model: state.config.model.clone(),
        message: state.queue.get(&turn.message_id)?.message.clone(),
        interjections: joined.iter().filter_map(|id| Some(state.queue.get(id)?.message.clone())).collect(),
        carry: state.carry.clone(),
        turn_seq: turn.seq,
    })
}

/// A call whose outcome is outstanding. Calls that only changed records have theirs already.
fn running_call<'a>(state: &'a AgentState, id: &CallId) -> Option<&'a CallRecord> {
    match &state.turn.as_ref()?.phase {
        Phase::Tools { running, .. } => running.get(id),
        Phase::Model | Phase::Safe => None,
    }
}
