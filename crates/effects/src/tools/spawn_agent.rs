//! `SpawnAgent`: hands a part of the work to a child, or brings a named agent into being.

use abide_kernel::id::WorkItemId;
use abide_kernel::input::{Act, Does, Refusal};
use abide_kernel::vocabulary::{ChildWorkspace, SideEffect};
use serde_json::{Value, json};

use super::fields::{Fields, quoted};
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "SpawnAgent",
    description: "Hand a part of the work to an agent of your own, which works beside you: it is a task, and what it says last comes to you as that task's result. With a name it is nobody's child, and lives on by itself.",
    schema,
    instead: &[
        ("prompt", "say `message`."),
        ("task", "say `message`."),
        ("workspace", "a child works where you do: say `workspace_mode` for a worktree of it."),
    ],
    read,
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

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let message = fields.text("message")?;
    let workspace_mode = fields.word("workspace_mode", ChildWorkspace::ALL, ChildWorkspace::as_str)?;
    let (model, instructions) = (fields.optional_text("model")?, fields.optional_text("instructions")?);
    let work_item_id = fields.optional_text("work_item_id")?.map(WorkItemId::new);
    if fields.optional_text("name")?.is_some() {
        return Ok(Does::World(SideEffect::ExternalMutation));
    }
    let workspace_mode = workspace_mode.unwrap_or(ChildWorkspace::Inherit);
    Ok(Does::Act(Act::SpawnChild { message, workspace_mode, model, instructions, work_item_id }))
}

/// Refuses a model that no operator named. A name may lead anywhere: a script is a file of the machine, and a provider
/// costs money.
#[must_use]
pub fn judge_model(input: &Value, offered: &[String], does: Does) -> Does {
    let Some(wanted) = input["model"].as_str() else { return does };
    if matches!(does, Does::Refused(_)) || offered.iter().any(|name| name == wanted) {
        return does;
    }
    let message = format!("{} is no model that the operator named", quoted(wanted));
    let hint = format!(
        "leave model out to use yours, or choose one of: {}; the operator names others in config.toml, with a table \
         [models.\"PROVIDER/MODEL\"]",
        offered.join(", ")
    );
    Does::Refused(Refusal::new("model_not_offered", message, hint))
}
