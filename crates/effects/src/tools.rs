//! Tools: what a model may ask for, and how its calls are parsed. Parsing changes nothing and touches nothing; a call that
//! makes no sense becomes a refusal that the model can act on.
//!
//! Each tool is one file: its schema, how its input is parsed, and what the policy's rules see of it. A tool's schema is what
//! providers are told about it and what its input is held against: one text, so that the two can't differ. What a call is
//! once it is parsed is a type of the kernel (`abide_kernel::tool`). No other code knows a tool by its name.

mod agent_get;
mod apply_patch;
mod cancel_timer;
mod cancel_wait;
mod complete_work_item;
mod create_timer;
mod create_trigger;
mod create_work_item;
mod edit_file;
mod exec_command;
mod fields;
mod get_work_item;
mod glob;
mod grep;
mod list_work_items;
mod notify_operator;
mod pick_work_item;
mod read_file;
mod read_skill;
mod request_approval;
mod revoke_trigger;
mod send_message;
mod set;
mod sleep;
mod spawn_agent;
mod subject;
mod task_input;
mod task_list;
mod task_output;
mod task_status;
mod task_stop;
mod todo;
mod update_work_item;
mod use_workspace;
mod wait_for;
mod web_fetch;
mod write_file;

use std::sync::LazyLock;

use abide_kernel::prompt::measure::tokens;
use abide_kernel::refusal::Refusal;
use abide_kernel::tool::ToolCall;
use serde_json::{Value, json};

pub use create_trigger::take_secret;
use fields::Fields;
pub(crate) use fields::quoted;
pub use set::ToolSet;
pub use spawn_agent::refuse_unoffered_model;
pub(crate) use subject::{CallSubject, Touches};

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

/// The tool for reading files. A rule that holds it back holds back whatever else reads what files say.
pub(crate) const READ_FILE: &str = read_file::TOOL.name;

/// One tool, as a model is told of it.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    /// Its description, in one line.
    pub description: &'static str,
    schema: fn() -> Value,
    /// Fields that callers reach for here and that there are none of, and what to do instead.
    instead: &'static [(&'static str, &'static str)],
    /// The part of its calls that a policy rule can match.
    pub(crate) rules: RulesOn,
    parse: fn(&Fields<'_>) -> Result<ToolCall, Refusal>,
}

/// The part of a call that a rule of the operator's policy can match besides the tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RulesOn {
    Name,
    Command,
    Path,
}

/// The description of a tool in a request to a model. Made once, because every request has that of every tool.
struct Told {
    schema: Value,
    tokens: u64,
}

impl Tool {
    /// The JSON Schema of its input.
    #[must_use]
    pub fn schema(&self) -> &'static Value {
        self.model_text().map_or(&Value::Null, |told| &told.schema)
    }

    /// Estimated tokens of its description in a request.
    fn tokens(&self) -> u64 {
        self.model_text().map_or(0, |told| told.tokens)
    }

    fn model_text(&self) -> Option<&'static Told> {
        static TOLD: LazyLock<Vec<Told>> = LazyLock::new(|| ALL.iter().map(Told::from_tool).collect());
        let place = ALL.iter().position(|tool| tool.name == self.name)?;
        TOLD.get(place)
    }

    fn parse(&self, input: &Value) -> Result<ToolCall, Refusal> {
        (self.parse)(&Fields::from_input(self.name, input, self.schema(), self.instead)?)
    }
}

impl Told {
    fn from_tool(tool: &Tool) -> Told {
        let schema = (tool.schema)();
        let tokens = tokens(tool.description) + tokens(&schema.to_string());
        Told { schema, tokens }
    }
}

/// The schema of an object that takes these fields and no others.
fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
