//! Tools: what a model may ask for, and how its calls are read. Reading changes nothing and touches nothing; a call that
//! makes no sense becomes a refusal that the model can act on.
//!
//! A tool's schema is what providers are told about it and what its input is held against: one text, so that the two
//! can't differ.

mod agent_get;
pub(crate) mod apply_patch;
mod cancel_timer;
mod cancel_wait;
mod complete_work_item;
mod create_timer;
mod create_trigger;
mod create_work_item;
pub(crate) mod edit_file;
pub(crate) mod exec_command;
mod fields;
mod get_work_item;
pub(crate) mod glob;
pub(crate) mod grep;
mod list_work_items;
mod notify_operator;
mod pick_work_item;
pub(crate) mod read_file;
pub(crate) mod read_skill;
mod request_approval;
mod revoke_trigger;
mod send_message;
mod sleep;
mod spawn_agent;
pub(crate) mod task_input;
mod task_list;
pub(crate) mod task_output;
mod task_status;
mod task_stop;
mod todo;
mod update_work_item;
pub(crate) mod use_workspace;
mod wait_for;
pub(crate) mod web_fetch;
pub(crate) mod write_file;

use std::sync::LazyLock;

use abide_kernel::input::{Does, Refusal};
use serde_json::{Value, json};

use crate::nearest::nearest;
use fields::Fields;
pub(crate) use fields::quoted;
pub use spawn_agent::judge_model;

/// Every tool there is, in the order in which models are told of them.
pub const ALL: &[Tool] = &[
    exec_command::TOOL,
    task_list::TOOL,
    task_status::TOOL,
    task_output::TOOL,
    task_input::TOOL,
    task_stop::TOOL,
    read_file::TOOL,
    write_file::TOOL,
    edit_file::TOOL,
    apply_patch::TOOL,
    glob::TOOL,
    grep::TOOL,
    read_skill::TOOL,
    web_fetch::TOOL,
    wait_for::TOOL,
    cancel_wait::TOOL,
    sleep::TOOL,
    create_timer::TOOL,
    cancel_timer::TOOL,
    create_trigger::TOOL,
    revoke_trigger::TOOL,
    create_work_item::TOOL,
    pick_work_item::TOOL,
    get_work_item::TOOL,
    list_work_items::TOOL,
    update_work_item::TOOL,
    complete_work_item::TOOL,
    spawn_agent::TOOL,
    send_message::TOOL,
    agent_get::TOOL,
    use_workspace::TOOL,
    notify_operator::TOOL,
    request_approval::TOOL,
];

/// One tool, as a model is told of it.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    /// What it does, in one line.
    pub description: &'static str,
    schema: fn() -> Value,
    /// Fields that callers reach for here and that there are none of, and what to do instead.
    instead: &'static [(&'static str, &'static str)],
    read: fn(&Fields<'_>) -> Result<Does, Refusal>,
}

impl Tool {
    /// The JSON Schema of its input.
    #[must_use]
    pub fn schema(&self) -> &'static Value {
        // Every call to a model tells of all of them: made once.
        static SCHEMAS: LazyLock<Vec<Value>> = LazyLock::new(|| ALL.iter().map(|tool| (tool.schema)()).collect());
        let place = ALL.iter().position(|tool| tool.name == self.name);
        place.and_then(|place| SCHEMAS.get(place)).unwrap_or(&Value::Null)
    }

    fn read(&self, input: &Value) -> Result<Does, Refusal> {
        (self.read)(&self.fields(input)?)
    }

    fn fields<'a>(&self, input: &'a Value) -> Result<Fields<'a>, Refusal> {
        Fields::of(self.name, input, self.schema(), self.instead)
    }
}

/// What a model's call means.
#[must_use]
pub fn read(name: &str, input: &Value) -> Does {
    let tool = ALL.iter().find(|tool| tool.name == name);
    match tool.ok_or_else(|| unknown(name)).and_then(|tool| tool.read(input)) {
        Ok(does) => does,
        Err(refusal) => Does::Refused(refusal),
    }
}

fn unknown(name: &str) -> Refusal {
    let names: Vec<&str> = ALL.iter().map(|tool| tool.name).collect();
    let list = format!("the tools are: {}", names.join(", "));
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean {near}? {list}"),
        None => list,
    };
    Refusal::new("unknown_tool", format!("there is no tool {}", quoted(name)), hint)
}

/// The schema of an object that takes these fields and no others.
fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
