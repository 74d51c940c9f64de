//! Parsed tool calls. The text of a call is parsed once, when the model's answer is read
//! (`effects/src/tools`); the policy, the kernel, the host and the executor use the parsed value. Facts keep the name and
//! the JSON as the model wrote them.
//!
//! Nothing here parses JSON, and nothing here matches on a tool's name.

mod executor;
mod file;
mod host;
mod path;
mod record;

use crate::id::CallId;
use crate::open_json::ToolInput;
use crate::refusal::Refusal;
use crate::vocabulary::{ApprovalDefault, SideEffect};

pub use executor::{Command, ExecCommand, ExecutorCall, ReadSkill, TaskInput, TaskOutput, UseWorkspace, WebFetch};
pub use file::{ApplyPatch, EditFile, FileCall, FilePatch, Glob, Grep, Hunk, Line, ReadFile, Side, WriteFile};
pub use host::{AgentGet, HostCall, SendMessage, SpawnAgent};
pub use path::WorkspacePath;
pub use record::{Address, RecordCall, When, WorkItemChange};

/// A tool call of a model's answer: its text and its parsed form.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub call_id: CallId,
    /// As the model wrote it; it need not be the name of any tool.
    pub tool: String,
    pub input: ToolInput,
    pub parsed: ToolCall,
}

/// A parsed call. The groups say who answers it.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    /// The kernel, from the agent's own records.
    Record(RecordCall),
    /// The engine's host, which reaches other agents.
    Host(HostCall),
    /// The executor: commands, files, skills, the web.
    Executor(ExecutorCall),
    /// Not run: the tool is unknown or the input is invalid. The model is told so.
    Refused(Refusal),
    /// Not run until a person approves it.
    NeedsApproval(Box<ApprovalNeeded>),
}

/// A call that the operator's policy holds back until a person approves it, once.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalNeeded {
    /// Names the call: the tool and all of its input. Another call has another digest.
    pub digest: String,
    /// The text that a person decides by.
    pub summary: String,
    pub deadline_ms: Option<u64>,
    pub default: ApprovalDefault,
    /// The call that runs once it is approved.
    pub call: ToolCall,
}

impl ToolCall {
    /// The most that it may change outside of the agent's records. None for a call that reaches nothing outside.
    #[must_use]
    pub fn side_effect(&self) -> Option<SideEffect> {
        match self {
            ToolCall::Host(call) => Some(call.side_effect()),
            ToolCall::Executor(call) => Some(call.side_effect()),
            ToolCall::Record(_) | ToolCall::Refused(_) | ToolCall::NeedsApproval(_) => None,
        }
    }
}
