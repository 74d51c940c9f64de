//! `TaskList`: what runs, and what ended lately.

use abide_kernel::input::{Act, Does};
use serde_json::{Value, json};

use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "TaskList",
    description: "List your tasks: those that run, those whose result you have not read, and the last that ended.",
    schema,
    instead: &[],
    read: |_| Ok(Does::Act(Act::ListTasks)),
};

fn schema() -> Value {
    object(&[], json!({}))
}
