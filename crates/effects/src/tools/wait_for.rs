//! `WaitFor`: the turn ends, and what is awaited starts the next one.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::Refusal;
use abide_kernel::limits::TIMER_AHEAD_MAX_MS;
use abide_kernel::tool::{RecordCall, ToolCall};
use abide_kernel::vocabulary::WaitKind;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "WaitFor",
    description: "End this turn and wait for the operator, a task's result, something from outside, or a time.",
    schema,
    instead: &[
        ("timeout_ms", "a wait has no timeout: create a timer as well, and it will wake you."),
        ("task_id", "name the task in `resource`."),
        ("timer_id", "name the timer in `resource`."),
        ("trigger_id", "name the trigger in `resource`."),
    ],
    rules: RulesOn::Name,
    parse,
};

/// The conditions that can be waited for by name; a sleep has a tool of its own.
const WAKES: [WaitKind; 4] = [WaitKind::Operator, WaitKind::Task, WaitKind::External, WaitKind::Timer];

fn schema() -> Value {
    object(
        &["wake", "reason"],
        json!({
            "wake": { "type": "string", "enum": WAKES.map(WaitKind::as_str), "description": "What ends the wait." },
            "resource": {
                "type": "string",
                "description": "Which one: a task_id, a timer_id, a trigger_id or a correlation_id. Left out: any of its kind.",
            },
            "after_ms": {
                "type": "integer", "minimum": 0, "maximum": TIMER_AHEAD_MAX_MS,
                "description": "With wake timer: how long to wait, instead of a timer in resource.",
            },
            "work_item_id": { "type": "string", "description": "The work item that waits. Left out: the current one." },
            "reason": { "type": "string", "description": "What you wait for, in words for the operator." },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let wake = fields.required("wake", fields.parse_word("wake", &WAKES, WaitKind::as_str)?)?;
    let resource = fields.optional_text("resource")?;
    let after_ms = fields.duration_ms("after_ms", 0..=TIMER_AHEAD_MAX_MS)?;
    if after_ms.is_some() && wake != WaitKind::Timer {
        let hint = "leave `after_ms` out; to be woken in any case, create a timer as well";
        return Err(invalid(format!("`after_ms` of WaitFor goes with wake timer, not {wake}"), hint));
    }
    if after_ms.is_some() && resource.is_some() {
        let hint = "give `after_ms` for a time of its own, or `resource` for a timer there is";
        return Err(invalid("WaitFor has both `after_ms` and `resource`", hint));
    }
    let work_item_id = fields.optional_text("work_item_id")?.map(WorkItemId::new);
    let reason = fields.get_text("reason")?;
    Ok(ToolCall::Record(RecordCall::WaitFor { wake, resource, after_ms, work_item_id, reason }))
}
