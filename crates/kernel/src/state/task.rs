//! Tasks: one monotonic reducer, and the results that are owed.
//!
//! A terminal task stays here while its result is owed: until a turn has read it. Then a bounded window remembers it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::budget::Limits;
use crate::fact::{ChildSpec, TaskCreated, TaskEnd};
use crate::id::{ExecId, MessageId, Seq, TaskId, WorkItemId};
use crate::limits;
use crate::time::Time;
use crate::vocabulary::{TaskKind, TaskStatus, WaitPolicy};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task_id: TaskId,
    pub kind: TaskKind,
    pub status: TaskStatus,
    pub wait_policy: WaitPolicy,
    pub summary: String,
    /// The execution whose call it came out of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    /// That call, as the loop guard knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_item_id: Option<WorkItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_agent_id: Option<String>,
    /// The specification of the child, until it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildSpec>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<String>,
    pub created_at: Time,
    pub seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// The reasons for its cancellation, repeated with its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The queued message that carries the owed result, where one is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_message: Option<MessageId>,
    /// The message that carried the result was given up: the operator's next message brings it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Whether this task hands its work item's work to a child.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delegated: bool,
    /// The part of its supervisor's budget that a child may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub granted: Limits,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    open: BTreeMap<TaskId, Task>,
    owed: BTreeMap<TaskId, Task>,
    recent: VecDeque<Task>,
    #[serde(default)]
    blocking: usize,
    #[serde(default)]
    children_made: u64,
    /// Owed results that no message carries, and that nobody holds back.
    #[serde(default)]
    unsent: BTreeSet<TaskId>,
}

/// Whether a task may go from one status to another. Nothing leaves a terminal status.
#[must_use]
pub fn may_become(from: TaskStatus, to: TaskStatus) -> bool {
    use TaskStatus::{Cancelled, Cancelling, Completed, Failed, Interrupted, Queued, Running};
    match (from, to) {
        (Queued, Running) | (Queued | Running | Cancelling, Cancelling) => true,
        (Queued | Running | Cancelling, Completed | Failed | Cancelled | Interrupted) => true,
        (Queued | Running | Cancelling, Queued) | (Running | Cancelling, Running) => false,
        (Completed | Failed | Cancelled | Interrupted, _) => false,
    }
}

impl Tasks {
    #[must_use]
    pub fn open(&self) -> &BTreeMap<TaskId, Task> {
        &self.open
    }

    /// Terminal tasks whose result no turn has read.
    #[must_use]
    pub fn owed(&self) -> &BTreeMap<TaskId, Task> {
        &self.owed
    }

    #[must_use]
    pub fn recent(&self) -> &VecDeque<Task> {
        &self.recent
    }

    /// Children that are open.
    pub fn children(&self) -> impl Iterator<Item = &Task> {
        self.open.values().filter(|task| task.kind == TaskKind::ChildAgent)
    }

    /// How many children were ever made.
    #[must_use]
    pub fn children_made(&self) -> u64 {
        self.children_made
    }

    /// Commands that are open.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.open.values().filter(|task| task.kind == TaskKind::Command).count()
    }

    #[must_use]
    pub fn blocking(&self) -> usize {
        self.blocking
    }

    #[must_use]
    pub fn get(&self, id: &TaskId) -> Option<&Task> {
        self.open
            .get(id)
            .or_else(|| self.owed.get(id))
            .or_else(|| self.recent.iter().rev().find(|task| task.task_id == *id))
    }

    pub(super) fn create(&mut self, fact: &TaskCreated, seq: Seq, at: Time) -> Result<(), String> {
        if self.get(&fact.task_id).is_some() {
            return Err(format!("{} exists already", fact.task_id));
        }
        self.blocking += usize::from(fact.wait_policy == WaitPolicy::Blocking);
        self.children_made += u64::from(fact.task_kind == TaskKind::ChildAgent);
        self.open.insert(
            fact.task_id.clone(),
            Task {
                task_id: fact.task_id.clone(),
                kind: fact.task_kind,
                status: TaskStatus::Queued,
                wait_policy: fact.wait_policy,
                summary: fact.summary.clone(),
                exec_id: fact.exec_id.clone(),
                call: None,
                command: fact.command.clone(),
                work_item_id: fact.work_item_id.clone(),
                child_agent_id: fact.child_agent_id.clone(),
                child: fact.child.clone(),
                recovery: fact.recovery.clone(),
                created_at: at,
                seq,
                ended_at: None,
                end: None,
                asked: Vec::new(),
                result_message: None,
                held: false,
                delegated: false,
                granted: fact.child.as_ref().map(|child| child.grant).unwrap_or_default(),
            },
        );
        Ok(())
    }

    /// A planted bug: a task that has ended is queued again.
    #[cfg(feature = "planted")]
    pub(super) fn reopen(&mut self, id: &TaskId) {
        if let Some(task) = self.owed.remove(id) {
            self.unsent.remove(id);
            self.open.insert(id.clone(), Task { status: TaskStatus::Queued, ..task });
        }
    }

    /// The one reducer: every change of a task's status goes through here.
    pub(super) fn transition(
        &mut self,
        id: &TaskId,
        to: TaskStatus,
        end: Option<&TaskEnd>,
        at: Time,
    ) -> Result<&Task, String> {
        let task = match self.open.get_mut(id) {
            Some(task) => task,
            None => {
                return Err(match self.get(id) {
                    Some(task) => format!("{id} is {} already", task.status),
                    None => format!("no task is called {id}"),
                });
            }
        };
        if !may_become(task.status, to) {
            return Err(format!("{id} can't go from {} to {to}", task.status));
        }
        task.status = to;
        if to != TaskStatus::Cancelling {
            task.child = None;
        }
        if !to.is_terminal() {
            return self.open.get(id).ok_or_else(|| format!("no task is called {id}"));
        }
        task.ended_at = Some(at);
        task.end = end.cloned();
        self.blocking -= usize::from(task.wait_policy == WaitPolicy::Blocking);
        let task = self.open.remove(id).ok_or_else(|| format!("no task is called {id}"))?;
        self.owed.insert(id.clone(), task);
        self.update_unsent(id);
        self.owed.get(id).ok_or_else(|| format!("no task is called {id}"))
    }

    pub(super) fn edit(&mut self, id: &TaskId, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.open.get_mut(id).or_else(|| self.owed.get_mut(id)) {
            change(task);
        }
        self.update_unsent(id);
    }

    /// The children with these budgets work for the original agent, not for its fork.
    pub(super) fn clear_allowances(&mut self) {
        self.open.values_mut().for_each(|task| task.granted = Limits::default());
    }

    fn update_unsent(&mut self, id: &TaskId) {
        if self.owed.get(id).is_some_and(|task| task.result_message.is_none() && !task.held) {
            self.unsent.insert(id.clone());
        } else {
            self.unsent.remove(id);
        }
    }

    /// Owed results that have to be queued.
    #[must_use]
    pub fn unsent(&self) -> &BTreeSet<TaskId> {
        &self.unsent
    }

    pub(super) fn settle_result(&mut self, id: &TaskId) -> Result<(), String> {
        let task = self.owed.remove(id).ok_or_else(|| format!("nothing is owed of {id}"))?;
        self.update_unsent(id);
        self.remember_ended(task);
        Ok(())
    }

    fn remember_ended(&mut self, task: Task) {
        if self.recent.len() == limits::RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(task);
    }

    /// A record from elsewhere. A terminal task is never reopened by a later record of it.
    pub(crate) fn restore(&mut self, task: Task, owed: bool) {
        let ended =
            self.owed.contains_key(&task.task_id) || self.recent.iter().any(|recent| recent.task_id == task.task_id);
        if ended && !task.status.is_terminal() {
            return;
        }
        if let Some(old) = self.open.remove(&task.task_id) {
            self.blocking -= usize::from(old.wait_policy == WaitPolicy::Blocking);
        }
        if !task.status.is_terminal() {
            self.blocking += usize::from(task.wait_policy == WaitPolicy::Blocking);
            self.open.insert(task.task_id.clone(), task);
        } else if owed {
            let id = task.task_id.clone();
            self.owed.insert(id.clone(), task);
            self.update_unsent(&id);
        } else if !ended {
            self.remember_ended(task);
        }
    }
}
