//! Scheduler fixtures: a folder of records that says what an agent was, in a shape people can write by hand.
//!
//! `load` turns the files of a folder into a state, `files` turns a state into such files, and `projection` prints what
//! the scheduler sees. Reading and writing of folders is the caller's: nothing here touches a disk.

mod line;
mod load;
mod save;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::decision::Decision;
use crate::scheduler::decide::decide_idle;
use crate::scheduler::posture::compute_posture;
use crate::scheduler::projection::SchedulerProjection;
use crate::state::AgentState;
use crate::state::turn::checkpoint_holds;
use crate::time::Time;
use crate::vocabulary::{Scope, Standing, WaitKind};

pub use line::FixtureError;
pub use load::load;
pub use save::{History, files};

/// The files of a folder, by their path inside it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The ledger files a folder may have.
pub const LEDGER_FILES: &[&str] = &[
    "messages",
    "queue_entries",
    "events",
    "transcript",
    "tasks",
    "work_items",
    "waiting_intents",
    "timers",
    "tools",
    "briefs",
];

/// Whether a file of a folder is one of those.
#[must_use]
pub fn is_ledger_file(file: &str) -> bool {
    let name = file.strip_prefix("ledger/").and_then(|name| name.strip_suffix(".jsonl"));
    name.is_some_and(|name| LEDGER_FILES.contains(&name))
}

/// An agent as its records tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    pub state: AgentState,
    /// The latest time in the folder.
    pub now: Time,
    /// Event kinds that mean nothing to the scheduler, and how often each occurs.
    pub other_events: BTreeMap<String, u64>,
}

impl Fixture {
    /// The scheduler's decision at the idle boundary, with the queue left aside.
    #[must_use]
    pub fn decision(&self) -> Decision {
        let mut decision = decide_idle(&SchedulerProjection::of(&self.state, self.now));
        for (kind, count) in &self.other_events {
            decision = decision.because(format!("event {kind} {count}"));
        }
        decision
    }

    #[must_use]
    pub fn projection(&self) -> Value {
        projection(&self.state, &self.decision())
    }
}

/// The printed projection of a state.
#[must_use]
pub fn projection(state: &AgentState, decision: &Decision) -> Value {
    let current = state.planes.work.current();
    let current_runs =
        current.is_some_and(|item| state.planes.work.standing(&item.work_item_id) == Some(Standing::Runnable));
    let waits = |scope| -> usize {
        let counted = WaitKind::ALL.iter().filter(|kind| **kind != WaitKind::Sleep);
        counted.map(|kind| state.planes.waits.count(scope, *kind)).sum()
    };
    json!({
        "current_work_item_id": current.map(|item| &item.work_item_id),
        "current_work_item_revision": current.map(|item| item.revision),
        "queued_work_items": state.planes.work.count(Standing::Runnable) - usize::from(current_runs),
        "active_tasks": state.planes.tasks.open().len(),
        "has_blocking_active_tasks": state.planes.tasks.blocking() > 0,
        "pending_wake_hint": !state.planes.hints.pending().is_empty(),
        "pending_wake_hint_reasons": state.planes.hints.pending().values().map(|hint| &hint.reason).collect::<Vec<_>>(),
        "owed_results": state.planes.tasks.owed().keys().collect::<Vec<_>>(),
        "checkpoint_holds": state.turns.current.as_ref().filter(|turn| turn.checkpoint.is_some()).map(|turn| checkpoint_holds(state, turn)),
        "active_waiting_intents": waits(Scope::Agent) + waits(Scope::WorkItem),
        "active_work_item_waiting_intents": waits(Scope::WorkItem),
        "active_agent_waiting_intents": waits(Scope::Agent),
        "active_timers": state.planes.timers.active().len(),
        "runtime_error": state.lifecycle.runtime_error.is_some(),
        "turn_terminal_kind": state.turns.last_terminal.as_ref().map(|last| last.kind),
        "replay_message_ids": state.planes.queue.replay_ids(),
        "tool_executions": state.turns.tool_executions,
        "status": state.status(),
        "scheduling_posture": compute_posture(state),
        "decision": decision.kind,
        "decision_reason": decision.reason,
        "evidence": decision.evidence,
    })
}

/// The differences between what was expected and what came out, key by key.
#[must_use]
pub fn differences(expected: &Value, printed: &Value) -> Vec<String> {
    let Value::Object(expected) = expected else { return vec!["expected.json is not an object".to_owned()] };
    expected
        .iter()
        .filter(|(key, wanted)| printed.get(*key) != Some(wanted))
        .map(|(key, wanted)| match printed.get(key) {
            Some(got) => format!("{key}: expected {wanted}, got {got}"),
            None => format!("{key}: expected {wanted}, but no such key is printed"),
        })
        .collect()
}
