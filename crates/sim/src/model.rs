//! The reference model: a second, naive reading of the specification, to compare the kernel with.
//!
//! It folds the same facts, keeps plain lists of everything that ever was, and answers by scanning them. It must never
//! call the kernel's state, scheduler or admission: it shares with them the definitions of facts, messages and words,
//! and nothing else, so that both being wrong in the same way is unlikely. Speed is of no interest here.

mod budget;
mod clock;
mod continuation;
mod decide;
mod loops;
mod observe;
mod rest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_kernel::agent::budget::Budget;
use abide_kernel::agent::config::AgentLimits;
use abide_kernel::budget::Limits;
use abide_kernel::fact::Resource;
use abide_kernel::id::{AgentId, ApprovalId, ExecId, MessageId, Seq, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::message::Message;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{
    DecisionKind, DeliveryMode, HoldCause, PlanStatus, QueueStatus, Reason, TriggerKind, WaitKind, WaitSource,
};

pub use continuation::Verdict;

/// The decision that is expected of the kernel.
///
/// The specification fixes kind and reason everywhere, the message of `StartModelTurn` and `ReduceMessageOnly`, and the
/// item of the two work ticks. The ids of all other decisions are the model's own guess at what is involved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedDecision {
    pub kind: DecisionKind,
    pub reason: Reason,
    pub message_id: Option<MessageId>,
    pub work_item_id: Option<WorkItemId>,
}

/// Where everything is that was ever accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Every message ever queued, and its whereabouts.
    pub messages: BTreeMap<MessageId, QueueStatus>,
    /// Every result that is still owed, and the last message that was queued to deliver it.
    pub owed: BTreeMap<TaskId, Option<MessageId>>,
}

impl Accounts {
    #[must_use]
    pub fn count(&self, status: QueueStatus) -> usize {
        self.messages.values().filter(|whereabouts| **whereabouts == status).count()
    }
}

#[derive(Debug, Clone)]
pub struct Model {
    pub agent_id: AgentId,
    gate: Gate,
    shutdown: bool,
    resting: bool,
    budget: Budget,
    limits: AgentLimits,
    /// When each turn began that the agent caused itself.
    own_turns: Vec<Time>,
    row: loops::Row,
    /// Everything that was ever used, and the day on which it was. A day goes back only if it was not even tomorrow.
    expenses: Vec<budget::Expense>,
    /// An entry for each turn that was about another item, or none, before it was about this one.
    joined_turns: Vec<WorkItemId>,
    day: i64,
    /// Why no turn starts, and until when, where that is not the agent's own budget.
    held: Option<(HoldCause, Time)>,
    runtime_error: bool,
    /// The last turn failed or was interrupted, and nothing newer was admitted or awaited.
    failed: bool,
    turn: Option<Turn>,
    last_turn: Option<LastTurn>,
    last_tree: Option<String>,
    focus: Option<WorkItemId>,
    messages: Vec<Entry>,
    items: Vec<Item>,
    waits: Vec<Wait>,
    timers: Vec<Timer>,
    hints: Vec<Hint>,
    tasks: Vec<Task>,
    approvals: Vec<Approval>,
    triggers: Vec<Trigger>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Booting,
    Open,
    Stopped,
    Quarantined,
}

/// Where a message stands in its lane. The second number makes room in front of what is there.
type QueuePosition = (Seq, i64);

#[derive(Debug, Clone)]
struct Entry {
    message: Arc<Message>,
    place: QueuePosition,
    status: QueueStatus,
    not_before: Option<Time>,
    /// Turns that were started for it.
    taken: u32,
}

#[derive(Debug, Clone)]
struct Turn {
    exec_id: ExecId,
    message_id: MessageId,
    work_item_id: Option<WorkItemId>,
    /// Up to here its time is among the expenses.
    counted_to: Time,
    /// The turn itself, among the expenses.
    expense: usize,
    /// Items that were made in it.
    made: Vec<WorkItemId>,
}

#[derive(Debug, Clone, Copy)]
struct LastTurn {
    trigger: TriggerKind,
    work_tick: bool,
}

#[derive(Debug, Clone)]
struct Item {
    id: WorkItemId,
    completed: bool,
    plan_status: PlanStatus,
    blocked: bool,
    recheck_at: Option<Time>,
    /// Turns in a row that changed nothing.
    idle: u32,
    /// Before this, no tick; `None` is at once.
    not_before: Option<Time>,
    /// Something about it changed since its turn began.
    changed: bool,
    budget: Limits,
}

#[derive(Debug, Clone)]
struct Wait {
    id: WaitId,
    kind: WaitKind,
    work_item_id: Option<WorkItemId>,
    source: WaitSource,
    resource: Option<Resource>,
    open: bool,
}

#[derive(Debug, Clone)]
struct Timer {
    id: TimerId,
    active: bool,
    next_fire_at: Option<Time>,
    tick: Option<MessageId>,
    /// The occurrence of which a command is looking whether it is worth a turn.
    checking: Option<Time>,
}

#[derive(Debug, Clone)]
struct Hint {
    source: String,
    contentful: bool,
}

#[derive(Debug, Clone)]
struct Task {
    id: TaskId,
    work_item_id: Option<WorkItemId>,
    terminal: bool,
    delivered: bool,
    result: Option<MessageId>,
    child: bool,
    grant: Limits,
}

#[derive(Debug, Clone)]
struct Approval {
    id: ApprovalId,
    work_item_id: Option<WorkItemId>,
    deadline: Option<Time>,
    pending: bool,
}

#[derive(Debug, Clone)]
struct Trigger {
    id: TriggerId,
    delivery_mode: DeliveryMode,
}

impl Model {
    #[must_use]
    pub fn new(agent_id: AgentId) -> Model {
        Model {
            agent_id,
            gate: Gate::Booting,
            shutdown: false,
            resting: false,
            budget: Budget::default(),
            limits: AgentLimits::default(),
            own_turns: Vec::new(),
            row: loops::Row::default(),
            expenses: Vec::new(),
            joined_turns: Vec::new(),
            day: 0,
            held: None,
            runtime_error: false,
            failed: false,
            turn: None,
            last_turn: None,
            last_tree: None,
            focus: None,
            messages: Vec::new(),
            items: Vec::new(),
            waits: Vec::new(),
            timers: Vec::new(),
            hints: Vec::new(),
            tasks: Vec::new(),
            approvals: Vec::new(),
            triggers: Vec::new(),
        }
    }

    #[must_use]
    pub fn accounts(&self) -> Accounts {
        Accounts {
            messages: self.messages.iter().map(|entry| (entry.message.message_id.clone(), entry.status)).collect(),
            owed: self
                .tasks
                .iter()
                .filter(|task| task.terminal && !task.delivered)
                .map(|task| (task.id.clone(), task.result.clone()))
                .collect(),
        }
    }

    fn entry(&self, id: &MessageId) -> Option<&Entry> {
        self.messages.iter().find(|entry| entry.message.message_id == *id)
    }

    /// Queued or under way, whatever happens to it next.
    fn is_undelivered(&self, id: &MessageId) -> bool {
        self.entry(id).is_some_and(Entry::is_undelivered)
    }

    fn open_items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !item.completed)
    }

    fn open_waits(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(|wait| wait.open)
    }

    fn pending_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.iter().filter(|approval| approval.pending)
    }
}

impl Entry {
    fn is_undelivered(&self) -> bool {
        match self.status {
            QueueStatus::Queued | QueueStatus::Dequeued | QueueStatus::Parked | QueueStatus::Interjected => true,
            QueueStatus::Processed | QueueStatus::Aborted | QueueStatus::Dropped => false,
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.not_before.is_none_or(|not_before| not_before <= now)
    }
}

/// Whether there is anything to read in a message.
fn contentful(message: &Message) -> bool {
    let text = message.text.as_ref().is_some_and(|text| text.chars().any(|c| !c.is_whitespace()));
    let json = message.json.as_ref().is_some_and(|json| !json.is_null());
    text || json
}
