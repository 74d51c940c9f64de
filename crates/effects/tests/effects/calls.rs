//! Calls as a model writes them, parsed as those of every turn are.

use abide_effects::executor::{Executor, Job};
use abide_effects::policy::CallPolicy;
use abide_effects::tools::ToolSet;
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::id::{AgentId, CallId, ExecId};
use abide_kernel::input::{Input, Refusal};
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::{ExecutorCall, FileCall, ToolCall};
use abide_kernel::vocabulary::ToolStatus;
use serde_json::Value;

pub fn parse(tool: &str, input: &Value) -> ToolCall {
    ToolSet::every().parse(tool, input)
}

pub fn executor_call(tool: &str, input: &Value) -> Result<ExecutorCall, Refusal> {
    match parse(tool, input) {
        ToolCall::Executor(call) => Ok(call),
        ToolCall::Refused(refusal) => Err(refusal),
        other @ (ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::NeedsApproval(_)) => panic!("{other:?}"),
    }
}

pub fn file_call(tool: &str, input: &Value) -> Result<FileCall, Refusal> {
    let call = executor_call(tool, input)?;
    let ExecutorCall::File(call) = call else { panic!("{call:?}") };
    Ok(call)
}

/// Whose call it is, and where it runs.
pub struct Run<'a> {
    pub executor: &'a Executor,
    pub agent: &'a AgentId,
    pub exec: &'a str,
    pub call: &'a str,
    pub place: ToolPlacement,
    pub policy: CallPolicy,
}

impl Run<'_> {
    /// The call, handed out; it runs when the job does. One that is refused comes to its refusal, as in a turn.
    pub fn job(self, tool: &str, input: Value) -> Job {
        let (exec_id, call_id) = (ExecId::new(self.exec), CallId::new(self.call));
        match executor_call(tool, &input) {
            Ok(call) => {
                let (tool, call, place) = (tool.to_owned(), Box::new(call), Box::new(self.place));
                let effect =
                    Effect::Turn(TurnEffect::RunTool { exec_id, call_id, tool, input: input.into(), call, place });
                self.executor.perform_under(self.policy, self.agent, effect).unwrap()
            }
            Err(refusal) => {
                let (status, result) = (ToolStatus::Failed, refusal.into_result());
                Box::pin(async move { vec![Input::FinishTool { exec_id, call_id, status, result, reads: None }] })
            }
        }
    }
}

/// A call of an agent's turn that no policy holds back.
pub fn run<'a>(
    executor: &'a Executor,
    agent: &'a AgentId,
    exec: &'a str,
    call: &'a str,
    place: ToolPlacement,
) -> Run<'a> {
    Run { executor, agent, exec, call, place, policy: CallPolicy::default() }
}
