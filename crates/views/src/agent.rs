//! An agent: its line in a list, and the one picture of it that every surface shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalView;
use crate::budget::{BudgetView, LimitsView, UsageView, UsedView};
use crate::decision::{Closure, ContinuationView, DecisionView};
use crate::id::{AgentId, ExecId, TaskId, WorkItemId};
use crate::task::TaskView;
use crate::time::Time;
use crate::timer::TimerView;
use crate::trigger::TriggerView;
use crate::vocabulary::{AgentKind, Ownership, Posture, ProviderError, Role, Status, Visibility, WorkspaceMode};
use crate::wait::WaitView;
use crate::workspace::FolderHolderView;

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentItem {
    pub id: AgentId,
    pub status: Status,
    pub kind: AgentKind,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub role: Role,
    pub model: String,
    // Empty where its row can't be read.
    #[serde(with = "crate::time::or_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub created_at: Option<Time>,
    pub seq: u64,
}

/// The one picture of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentSummary {
    pub identity: IdentityView,
    pub agent: AgentPart,
    pub scheduling_posture: Posture,
    pub decision: DecisionView,
    pub closure: Closure,
    pub continuation: Option<ContinuationView>,
    pub lifecycle: Lifecycle,
    pub model: ModelPart,
    pub execution: Execution,
    pub active_children: Vec<TaskView>,
    pub active_waiting_intents: Vec<WaitView>,
    pub active_timers: Vec<TimerView>,
    pub active_external_triggers: Vec<TriggerView>,
    pub pending_approvals: Vec<ApprovalView>,
    pub owed_results: Vec<TaskView>,
    /// The last fact that this picture holds.
    pub at_seq: u64,
    /// Says what to use instead of a spelling that will go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// When it is made: that `abide.toml` of its workspace is not used, why, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Data that no agent's records hold and the daemon knows at this moment.
#[derive(Debug, Clone)]
pub struct Surrounding {
    /// The sandbox of its commands.
    pub sandbox: SandboxPart,
    /// The bytes that it takes on the disk; none where there is too much to look at.
    pub disk_bytes: Option<u64>,
    /// Who holds the folder that it works in.
    pub held_by: Option<FolderHolderView>,
    /// Whether its model has a price in the settings.
    pub priced: bool,
}

impl AgentSummary {
    pub fn surround(&mut self, by: Surrounding) {
        let Surrounding { sandbox, disk_bytes, held_by, priced } = by;
        self.execution.sandbox = Some(sandbox);
        self.execution.disk_bytes = disk_bytes;
        self.execution.held_by = held_by;
        self.model.priced = priced;
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Identity))]
pub struct IdentityView {
    pub id: AgentId,
    pub kind: AgentKind,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub role: Role,
    pub visibility: Visibility,
    pub ownership: Ownership,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    // In the daemon's answers and in results of tools. The document does not have it, and no client shows it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<SupervisorView>,
    /// The agents that made it, nearest first: the policy judges its calls as theirs, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<AgentId>,
    /// The folders of its makers that the policy's rules about paths begin at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule_folders: Vec<RuleFolderView>,
}

/// Whose task a child carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SupervisorView {
    pub agent_id: AgentId,
    pub task_id: TaskId,
    pub top: AgentId,
    pub depth: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RuleFolder))]
pub struct RuleFolderView {
    pub folder: String,
    /// Of a worktree: the folder of the user whose files it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentPart {
    pub status: Status,
    pub pending: u64,
    pub parked: u64,
    pub turn_index: u64,
    pub current_run_id: Option<ExecId>,
    pub current_work_item_id: Option<WorkItemId>,
    pub current_turn_work_item_id: Option<WorkItemId>,
    pub sleeping_until: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Lifecycle {
    pub accepts_messages: bool,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelPart {
    pub name: String,
    /// It has none of its own: this is the one of the settings.
    #[serde(default)]
    pub default: bool,
    /// The model that answered last, where it was one that has to be paid.
    #[serde(default)]
    pub answered_by: Option<String>,
    /// Its last answer is cut: the model had written as much as it may.
    #[serde(default)]
    pub cut: bool,
    /// Models that are tried, in this order, when it fails.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// The same of these.
    #[serde(default)]
    pub default_fallback: bool,
    /// Somebody knows what its model costs, or it costs nothing; else what it used adds nothing to the cost.
    #[serde(default)]
    pub priced: bool,
    /// The one that the running turn thinks with, or the next one.
    #[serde(default)]
    pub in_use: String,
    /// Its last failure, until it works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<TroubleView>,
    /// Models that failed lately, and until when they are left alone while another can be asked.
    #[serde(default)]
    pub rests: Vec<ModelRest>,
    /// Its own.
    pub usage: UsageView,
    pub budget: BudgetView,
    /// Time that it spent in turns.
    pub wall_ms: u64,
    /// What counts on the day that ends at `today_until`, children included.
    pub today: UsedView,
    pub today_until: Time,
    /// What its children used that are over.
    pub children: UsedView,
    /// What its children at work may use; it counts as used.
    pub granted: LimitsView,
}

/// A model that is left alone for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelRest {
    pub model: String,
    /// The class of its error.
    pub error: ProviderError,
    pub until: Time,
    /// How often it failed since it last answered.
    pub failures: u32,
}

/// A model that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Trouble))]
pub struct TroubleView {
    pub model: String,
    /// The class of its error.
    pub error: ProviderError,
    pub message: String,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Execution {
    pub workspace: Option<String>,
    /// Where commands run.
    pub cwd: Option<String>,
    /// direct or worktree
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub mode: Option<WorkspaceMode>,
    /// Of the worktree that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commands that run, or are about to.
    #[serde(default)]
    pub commands: u64,
    /// Where it writes, while it does.
    pub occupied: Option<String>,
    #[serde(default)]
    pub network: bool,
    pub sandbox: Option<SandboxPart>,
    /// What its worktrees, its own folder and the output of its tasks take on the disk; none where there is too much to
    /// look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// What its commands have besides the usual environment; none where that is nothing.
    #[serde(default)]
    pub credentials: Option<AgentCredentials>,
    /// Who keeps it from writing where it works, at this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<FolderHolderView>,
}

/// Secrets are named here; no answer has a value of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentCredentials {
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub secrets: Vec<String>,
    #[serde(default)]
    pub git_credentials: BTreeMap<String, String>,
    #[serde(default)]
    pub ssh_agent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_hosts: Option<String>,
    #[serde(default)]
    pub for_children: bool,
    /// The secrets among them that are not set, and `ssh-agent` where there is none: commands start without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub missing: Option<Vec<String>>,
}

/// What keeps its commands where they belong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SandboxPart {
    /// auto, required or off
    pub mode: String,
    /// bubblewrap, landlock or none
    pub mechanism: String,
    pub enforced: Vec<String>,
    pub problems: Vec<String>,
    /// What bounds the number of a command's processes.
    #[serde(default)]
    pub processes: String,
    /// What bounds the memory of commands, and to how much.
    #[serde(default)]
    pub memory: String,
}
