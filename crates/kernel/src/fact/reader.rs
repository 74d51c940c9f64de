//! Since which reader a fact can be read.
//!
//! An older program fails on a kind, a field or a word that it does not know. So every shape that came after the first
//! reader has a row in `SHAPES`, and the ledger raises the home's `oldest_reader` in the commit that first writes one:
//! from then on older programs refuse the home by name, before they trip over a fact in it.
//!
//! To add a shape: raise `READER`, add its version to `READERS` (that version of the program must be newer than the one
//! before), add the row to `SHAPES`, and record the shape with `tests/shapes/` (a test of the kernel says how).

use serde_json::Value;

use crate::pack;

/// The reader that this program is.
pub const READER: u32 = READERS.len() as u32;

/// The first version of the program that had each reader, from the first reader on.
pub const READERS: &[&str] = &["0.1.0", "0.2.0", "0.3.0"];

/// A shape of stored facts that only a later reader can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub reader: u32,
    pub kind: &'static str,
    pub part: Part,
}

/// The part of a fact that is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The kind itself.
    Kind,
    /// A member, by its path: `origin.id`; `[]` steps into every element of an array.
    Field(&'static str),
    /// A value of a member that was there before.
    Word(&'static str, &'static str),
}

const SHAPES: &[Shape] = &[
    Shape { reader: 2, kind: "agent.created", part: Part::Field("identity.makers") },
    Shape { reader: 2, kind: "disk.short", part: Part::Kind },
    Shape { reader: 2, kind: "disk.has_room", part: Part::Kind },
    Shape { reader: 2, kind: "scheduler.decision", part: Part::Word("reason", "disk_reserve") },
    Shape { reader: 2, kind: "worktree.removing", part: Part::Field("discard") },
    Shape { reader: 3, kind: "agent.created", part: Part::Field("identity.rule_folders") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("process_ended") },
    Shape { reader: 3, kind: "turns.held", part: Part::Kind },
    Shape { reader: 3, kind: "turns.released", part: Part::Kind },
    Shape { reader: 3, kind: "scheduler.decision", part: Part::Word("reason", "home_budget_spent") },
    Shape { reader: 3, kind: "scheduler.decision", part: Part::Word("reason", "model_key") },
    Shape { reader: 3, kind: "message.requeued", part: Part::Word("reason", "turns_held") },
    Shape { reader: 3, kind: "turn.provider_round_failed", part: Part::Word("error", "home_budget_spent") },
    Shape { reader: 3, kind: "turn.provider_round_failed", part: Part::Word("error", "system") },
    Shape { reader: 3, kind: "turn.bound", part: Part::Kind },
    Shape { reader: 3, kind: "limits.changed", part: Part::Kind },
    Shape { reader: 3, kind: "self_turns.paced", part: Part::Kind },
    Shape { reader: 3, kind: "work.ticks_spent", part: Part::Kind },
    Shape { reader: 3, kind: "message.queued", part: Part::Field("self_caused") },
    Shape { reader: 3, kind: "timer.created", part: Part::Field("made_by") },
    Shape { reader: 3, kind: "timer.created", part: Part::Field("after_ms") },
    Shape { reader: 3, kind: "timer.rescheduled", part: Part::Kind },
    Shape { reader: 3, kind: "timer.missed", part: Part::Word("reason", "fired_before") },
    Shape { reader: 3, kind: "clock.set_back", part: Part::Kind },
    Shape { reader: 3, kind: "approval.deadline_moved", part: Part::Kind },
    Shape { reader: 3, kind: "work_item.recheck_moved", part: Part::Kind },
    Shape { reader: 3, kind: "message.requeued", part: Part::Word("reason", "clock_set_back") },
    Shape { reader: 3, kind: "work_item.created", part: Part::Field("made_by") },
    Shape { reader: 3, kind: "work_item.blocked", part: Part::Field("made_by") },
    Shape { reader: 3, kind: "scheduler.decision", part: Part::Word("reason", "work_ticks_spent") },
    Shape { reader: 3, kind: "scheduler.decision", part: Part::Word("reason", "self_turns_paced") },
    Shape { reader: 3, kind: "control.admitted", part: Part::Field("exec_id") },
    Shape { reader: 3, kind: "control.admitted", part: Part::Field("next_status") },
    Shape { reader: 3, kind: "control.admitted", part: Part::Field("task_ids") },
    Shape { reader: 3, kind: "control.admitted", part: Part::Field("workspace") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("action") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("boundary") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("next_status") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("previous_status") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("task_ids") },
    Shape { reader: 3, kind: "exec.aborted", part: Part::Field("workspace") },
    Shape { reader: 3, kind: "posture.changed", part: Part::Field("action") },
    Shape { reader: 3, kind: "posture.changed", part: Part::Field("evidence") },
    Shape { reader: 3, kind: "posture.changed", part: Part::Field("exec_id") },
    Shape { reader: 3, kind: "posture.changed", part: Part::Field("task_ids") },
    Shape { reader: 3, kind: "posture.changed", part: Part::Field("workspace") },
    Shape { reader: 3, kind: "workspace.released", part: Part::Field("action") },
    Shape { reader: 3, kind: "workspace.released", part: Part::Field("boundary") },
    Shape { reader: 3, kind: "workspace.released", part: Part::Field("exec_id") },
    Shape { reader: 3, kind: "workspace.released", part: Part::Field("next_status") },
    Shape { reader: 3, kind: "workspace.released", part: Part::Field("previous_status") },
    Shape { reader: 3, kind: "workspace.released", part: Part::Field("task_ids") },
    Shape { reader: 3, kind: "agent.created", part: Part::Field("config.credentials") },
    Shape { reader: 3, kind: "agent.configured", part: Part::Field("config.credentials") },
    Shape { reader: 3, kind: "task.created", part: Part::Field("child.credentials") },
    Shape { reader: 3, kind: "turn.terminal", part: Part::Field("settles") },
    Shape { reader: 3, kind: "message.aborted", part: Part::Field("answers") },
];

/// The reader that a stored fact needs. A payload that was redacted, or is none of ours, needs what its kind needs.
#[must_use]
pub fn reader_of(kind: &str, payload: &[u8]) -> u32 {
    reader_among(SHAPES, kind, payload)
}

/// The same by another table.
#[must_use]
pub fn reader_among(shapes: &[Shape], kind: &str, payload: &[u8]) -> u32 {
    let mut read: Option<Value> = None;
    let mut reader = 1;
    for shape in shapes.iter().filter(|shape| shape.kind == kind) {
        let mut holds = |path: &str, wanted: Option<&str>| {
            let value = read.get_or_insert_with(|| pack::read_stored(payload).unwrap_or_default());
            has_part(value, path, wanted)
        };
        let is_there = match shape.part {
            Part::Kind => true,
            Part::Field(path) => holds(path, None),
            Part::Word(path, word) => holds(path, Some(word)),
        };
        if is_there {
            reader = reader.max(shape.reader);
        }
    }
    reader
}

fn has_part(value: &Value, path: &str, wanted: Option<&str>) -> bool {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, every) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
    let Some(member) = value.get(name) else { return false };
    let holds = |value: &Value| match rest {
        "" => wanted.is_none_or(|word| value.as_str() == Some(word)),
        rest => has_part(value, rest, wanted),
    };
    match member.as_array() {
        Some(elements) if every => elements.iter().any(holds),
        Some(_) | None => holds(member),
    }
}
