//! The end of a supervised child, as its own state.

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::fact::{ChildLeaving, TaskEnd, WorktreeRemoved};
use crate::id::TaskId;
use crate::limits;
use crate::vocabulary::TaskStatus;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Departure {
    pub status: TaskStatus,
    pub text: String,
    pub evidence: Vec<String>,
    /// For each of its worktrees, one sentence about the branch, the patch or the error that is left of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// Everything is released, and only the report to the supervisor is left.
    pub reporting: bool,
}

impl Departure {
    pub(super) fn from_fact(fact: &ChildLeaving) -> Departure {
        let ChildLeaving { status, text, evidence } = fact.clone();
        Departure { status, text, evidence, left: Vec::new(), reporting: false }
    }

    /// The end of the supervisor's task. The sentences about worktrees come last, because the end of a text is kept.
    #[must_use]
    pub fn task_end(&self, task_id: TaskId) -> TaskEnd {
        let told: usize = self.left.iter().map(|line| line.len() + 1).sum();
        let text = limits::clip(&self.text, limits::LINE_BYTES.saturating_sub(told));
        let truncated = text.len() < self.text.len();
        let lines = std::iter::once(text).filter(|text| !text.is_empty()).chain(self.left.iter().map(String::as_str));
        let output_tail = lines.collect::<Vec<_>>().join("\n");
        let output_bytes = self.text.len() as u64;
        let evidence = self.evidence.clone();
        TaskEnd { task_id, output_tail, output_bytes, truncated, evidence, ..TaskEnd::default() }
    }
}

impl AgentState {
    /// Children that it may still make at this moment.
    #[must_use]
    pub fn room_for_children(&self) -> usize {
        match self.definition.identity.depth() < limits::CHILD_DEPTH_MAX {
            true => limits::CHILDREN_MAX.saturating_sub(self.planes.tasks.children().count()),
            false => 0,
        }
    }

    /// Whether it is a child that still works: it has a supervisor, and has not begun to leave.
    #[must_use]
    pub fn is_working_child(&self) -> bool {
        self.definition.identity.supervisor.is_some() && self.lifecycle.leaving.is_none() && !self.lifecycle.archived
    }
}

/// Sentences for the supervisor about a removed worktree: its branches and its patch.
pub(super) fn describe_removed_worktree(fact: &WorktreeRemoved) -> Vec<String> {
    let branches = fact
        .branches
        .iter()
        .map(|branch| format!("Its commits are on the branch {branch}: git fetch abide, then git merge {branch}."));
    let patch = fact.patch.iter().map(|patch| format!("What it did not commit is in the patch {patch}."));
    branches.chain(patch).collect()
}
