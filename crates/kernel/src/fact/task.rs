//! Facts about tasks. The reducer that accepts or refuses these is `state::task`.

use serde::{Deserialize, Serialize};

use crate::budget::{Limits, Used};
use crate::credentials::Credentials;
use crate::id::{AgentId, CallId, ExecId, MessageId, TaskId, WorkItemId};
use crate::limits;
use crate::tool::Command;
use crate::vocabulary::{ChildWorkspace, TaskKind, TaskStatus, WaitPolicy};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskCreated {
    pub task_id: TaskId,
    pub task_kind: TaskKind,
    pub wait_policy: WaitPolicy,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Below the workspace's root; left out, the root itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tty: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_input: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_agent_id: Option<String>,
    /// The specification of the child, for a task that is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildSpec>>,
    /// How to find it again after a crash, in the words of the component that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// The specification of a child: all that has to be known to make it, also after a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildSpec {
    pub message: String,
    pub workspace_mode: ChildWorkspace,
    /// The folder it inherits, or that its worktree is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    pub model: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Its supervisor has no model of its own, and neither has it; the same of those that are tried after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_model: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_fallback: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// The share of its supervisor's budget that it may use; it counts as used there while the child works.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub grant: Limits,
    #[serde(default, skip_serializing_if = "Credentials::is_empty")]
    pub credentials: Credentials,
}

/// The length of the text that stands for a command in lists.
const SUMMARY_BYTES: usize = 200;

impl TaskCreated {
    /// A child as a task.
    #[must_use]
    pub fn of_child(task_id: TaskId, child_agent_id: &AgentId, child: ChildSpec) -> TaskCreated {
        let line = child.message.lines().next().unwrap_or_default();
        TaskCreated {
            task_kind: TaskKind::ChildAgent,
            summary: limits::clip(line, SUMMARY_BYTES).to_owned(),
            command: None,
            child_agent_id: Some(child_agent_id.to_string()),
            child: Some(Box::new(child)),
            ..TaskCreated::of_command(task_id, Command::default())
        }
    }

    /// A command as a task, in the background, of no call and no work item.
    #[must_use]
    pub fn of_command(task_id: TaskId, command: Command) -> TaskCreated {
        let line = command.command.lines().next().unwrap_or_default();
        TaskCreated {
            task_id,
            task_kind: TaskKind::Command,
            wait_policy: WaitPolicy::Background,
            summary: limits::clip(line, SUMMARY_BYTES).to_owned(),
            command: Some(command.command),
            workdir: command.workdir,
            tty: command.tty,
            accepts_input: command.accepts_input,
            work_item_id: None,
            child_agent_id: None,
            child: None,
            recovery: None,
            exec_id: None,
            call_id: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRunning {
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskCancelling {
    pub task_id: TaskId,
    /// Asked before, to no avail: now for certain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    pub evidence: Vec<String>,
}

/// How a task ended, in detail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEnd {
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// A bounded tail of the output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output_tail: String,
    #[serde(default, skip_serializing_if = "is_none_written")]
    pub output_bytes: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The actual use of a child, its own children included. Where a child's end leaves it out, the use is unknown, and
    /// all that it was granted counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none_written(bytes: &u64) -> bool {
    *bytes == 0
}

macro_rules! task_ends {
    ($($name:ident),*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name {
            pub end: TaskEnd,
        }
    )*};
}

task_ends!(TaskCompleted, TaskFailed, TaskCancelled, TaskInterrupted);

/// An update that came too late or out of order: kept as evidence, changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskUpdateIgnored {
    pub task_id: TaskId,
    pub reported: TaskStatus,
    pub evidence: Vec<String>,
}

/// The result of a terminal task was put into the queue as this message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskResultQueued {
    pub task_id: TaskId,
    pub message_id: MessageId,
}

/// A round that contained the result was committed, or the model asked for it and got it: it is no longer owed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskResultDelivered {
    pub task_id: TaskId,
    pub exec_id: ExecId,
    pub evidence: Vec<String>,
}
