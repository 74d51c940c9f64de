//! Calls that the kernel answers itself, from the agent's own records.

use crate::budget::Limits;
use crate::id::{ApprovalId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::time::Time;
use crate::todo::Todo;
use crate::vocabulary::{ApprovalDefault, CatchUp, ChildWorkspace, DeliveryMode, PlanStatus, WaitKind, WorkItemFilter};

/// A change to the agent's own records, or a look at them, asked for by its model or by a person.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordCall {
    WaitFor {
        wake: WaitKind,
        resource: Option<String>,
        after_ms: Option<u64>,
        work_item_id: Option<WorkItemId>,
        reason: String,
    },
    CancelWait {
        waiting_intent_id: WaitId,
    },
    Sleep {
        reason: Option<String>,
        duration_ms: Option<u64>,
    },
    CreateTimer {
        summary: String,
        when: When,
        catch_up: CatchUp,
        work_item_id: Option<WorkItemId>,
        /// A command that says whether an occurrence is worth a turn.
        check: Option<String>,
    },
    CancelTimer {
        timer_id: TimerId,
    },
    CreateTrigger {
        name: String,
        delivery_mode: DeliveryMode,
        work_item_id: Option<WorkItemId>,
        /// Its secret is kept outside the ledger.
        signed: bool,
        address: Option<Address>,
    },
    /// A person replaces its URL.
    RotateTrigger {
        trigger_id: TriggerId,
    },
    RevokeTrigger {
        trigger_id: TriggerId,
    },
    CreateWorkItem {
        objective: String,
        plan: Option<String>,
        plan_status: Option<PlanStatus>,
        todo: Vec<Todo>,
        /// The budget of turns about it; only a person sets it.
        budget: Option<Limits>,
    },
    PickWorkItem {
        work_item_id: WorkItemId,
    },
    UpdateWorkItem {
        work_item_id: WorkItemId,
        change: Box<WorkItemChange>,
    },
    CompleteWorkItem {
        work_item_id: WorkItemId,
        report: String,
    },
    RequestApproval {
        summary: String,
        tool: Option<String>,
        deadline_ms: Option<u64>,
        default: ApprovalDefault,
    },
    DecideApproval {
        approval_id: ApprovalId,
        grant: bool,
    },
    NotifyOperator {
        text: String,
    },
    /// Hands a part of the work to a child, which is a task from here on.
    SpawnChild {
        message: String,
        workspace_mode: ChildWorkspace,
        model: Option<String>,
        instructions: Option<String>,
        work_item_id: Option<WorkItemId>,
    },
    StopTask {
        task_id: TaskId,
    },
    ListTasks,
    ShowTask {
        task_id: TaskId,
    },
    ListWorkItems {
        filter: WorkItemFilter,
    },
    ShowWorkItem {
        work_item_id: WorkItemId,
    },
    /// A person starts a command; a model has `ExecCommand`.
    RunCommand {
        command: String,
        workdir: Option<String>,
        tty: bool,
        accepts_input: bool,
    },
    /// The binding goes; a worktree goes with it, once its work is safe, or at once where a person gives that up.
    DetachWorkspace {
        folder: String,
        discard: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkItemChange {
    pub objective: Option<String>,
    pub plan: Option<String>,
    pub plan_status: Option<PlanStatus>,
    pub todo: Option<Vec<Todo>>,
    /// `Some(None)` clears the blocker.
    pub blocked_by: Option<Option<String>>,
    pub recheck_after_ms: Option<u64>,
    /// Replaces all of its limits; a person's to say.
    pub budget: Option<Limits>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    AfterMs(u64),
    At(Time),
    EveryMs(u64),
    Cron { cron: String, time_zone: String },
}

/// Where a new trigger is to be reached, where the asker has to know it beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub trigger_id: TriggerId,
    /// Told to the model that asked for the trigger. People are told by the surface they use.
    pub url: Option<String>,
}
