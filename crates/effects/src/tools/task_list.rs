//! `TaskList`: what runs, and what ended lately.

use abide_kernel::tool::{RecordCall, ToolCall};
use serde_json::{Value, json};

use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "TaskList",
    description: "List your tasks: those that run, those whose result you have not read, and the last that ended.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse: |_| Ok(ToolCall::Record(RecordCall::ListTasks)),
};

fn schema() -> Value {
    object(&[], json!({}))
}
