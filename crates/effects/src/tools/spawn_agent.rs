//! `SpawnAgent`: hands a part of the work to a child, or brings a named agent into being.

use abide_kernel::id::WorkItemId;
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::{HostCall, RecordCall, SpawnAgent, ToolCall};
use abide_kernel::vocabulary::ChildWorkspace;
use serde_json::{Value, json};

use super::fields::{Fields, quoted};
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "SpawnAgent",
    description: "Hand a part of the work to an agent of your own, which works beside you: it is a task, and what it says last comes to you as that task's result. With a name it is nobody's child, and lives on by itself.",
    schema,
    instead: &[
        ("prompt", "say `message`."),
        ("task", "say `message`."),
        ("workspace", "a child works where you do: say `workspace_mode` for a worktree of it."),
    ],
    rules: RulesOn::Name,
    parse,
};

fn schema() -> Value {
    object(
        &["message"],
        json!({
            "message": { "type": "string", "description": "What it is to do, with all that it has to know." },
            "name": { "type": "string", "description": "For an agent that outlives you. Left out: a child." },
            "workspace_mode": {
                "type": "string", "enum": ["inherit", "worktree"],
                "description": "Where it works: where you do, or in a git worktree of that. Left out: inherit.",
            },
            "model": {
                "type": "string",
                "description": "One that the operator named; a wrong one is refused with the list. Left out: yours.",
            },
            "instructions": { "type": "string" },
            "work_item_id": { "type": "string", "description": "The item that it works on. Left out: the turn's." },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let message = fields.text("message")?;
    let workspace_mode = fields.word("workspace_mode", ChildWorkspace::ALL, ChildWorkspace::as_str)?;
    let (model, instructions) = (fields.optional_text("model")?, fields.optional_text("instructions")?);
    let work_item_id = fields.optional_text("work_item_id")?.map(WorkItemId::new);
    if let Some(name) = fields.optional_text("name")? {
        let spawned = SpawnAgent { message, name, workspace_mode, model, instructions };
        return Ok(ToolCall::Host(HostCall::SpawnAgent(spawned)));
    }
    let workspace_mode = workspace_mode.unwrap_or(ChildWorkspace::Inherit);
    Ok(ToolCall::Record(RecordCall::SpawnChild { message, workspace_mode, model, instructions, work_item_id }))
}

/// Refuses a call that gives an agent a model that no operator named. A name may lead anywhere: a script is a file of the
/// machine, and a provider costs money.
pub fn refuse_unoffered_model(call: &mut ToolCall, offered: &[String]) {
    let wanted = match call {
        ToolCall::Record(RecordCall::SpawnChild { model, .. })
        | ToolCall::Host(HostCall::SpawnAgent(SpawnAgent { model, .. })) => model.as_ref(),
        ToolCall::Record(_)
        | ToolCall::Host(_)
        | ToolCall::Executor(_)
        | ToolCall::Refused(_)
        | ToolCall::NeedsApproval(_) => None,
    };
    let Some(wanted) = wanted.filter(|wanted| !offered.contains(wanted)) else { return };
    let message = format!("{} is no model that the operator named", quoted(wanted));
    let hint = format!(
        "leave model out to use yours, or choose one of: {}; the operator names others in config.toml, with a table \
         [models.\"PROVIDER/MODEL\"]",
        offered.join(", ")
    );
    *call = ToolCall::Refused(Refusal::new(ErrorCode::ModelNotOffered, message).with_hint(hint));
}
