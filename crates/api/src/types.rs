//! Requests and answers. Records are shown as views, which the kernel makes. Requests refuse unknown fields; answers may get
//! new ones.

mod agent;
mod models;
mod planes;
mod rest;
mod tasks;
mod work;
mod workspaces;

pub use agent::*;
pub use models::*;
pub use planes::*;
pub use rest::*;
pub use tasks::*;
pub use work::*;
pub use workspaces::*;

pub use abide_views::agent::{
    AgentCredentials, AgentItem, AgentPart, AgentSummary, Execution, IdentityView, Lifecycle, ModelPart, ModelRest,
    RuleFolderView, SandboxPart, TroubleView,
};
pub use abide_views::approval::ApprovalView;
pub use abide_views::budget::{BudgetView, LimitsView, UsageView, UsedView};
pub use abide_views::decision::{Closure, ContinuationView, DecisionEntry, DecisionView};
pub use abide_views::ledger::{Forked, LedgerCompaction, LedgerStats, LedgerVerification};
pub use abide_views::message::{BriefView, MessageView, OriginView, TranscriptEntry};
pub use abide_views::outcome::{MessageDelay, MessageDetail, MessageOutcome};
pub use abide_views::task::{TaskOutput, TaskStopped, TaskTaken, TaskView};
pub use abide_views::timer::{TimerCreated, TimerView};
pub use abide_views::trigger::TriggerView;
pub use abide_views::vocabulary::{CatchUp, DeliveryMode, PlanStatus, Priority, Role, TodoState, WorkspaceMode};
pub use abide_views::wait::WaitView;
pub use abide_views::why::{WaitingOn, Why};
pub use abide_views::work_item::{TodoView, WorkItemView};
pub use abide_views::workspace::{FolderHolderView, WorkspaceView};

use abide_views::strict::object;
use serde::{Deserialize, Deserializer, Serialize};

/// A field that changes something where it is there. Null would be taken for one that is left out, and change nothing.
fn present_field<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    no_null(Option::<T>::deserialize(deserializer)?)
}

fn present_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    no_null(object(deserializer)?)
}

fn no_null<T, E: serde::de::Error>(read: Option<T>) -> Result<Option<T>, E> {
    let null = || E::custom("null changes nothing: leave the field out, or say what it should be");
    read.map(Some).ok_or_else(null)
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
}
