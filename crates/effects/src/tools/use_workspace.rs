//! `UseWorkspace`: where to work from now on.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, ToolCall, UseWorkspace};
use abide_kernel::vocabulary::WorkspaceMode;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "UseWorkspace",
    description: "Work in another folder that is attached to you, or in a git worktree of it, from the next round on.",
    schema,
    instead: &[("workspace", "say `path`.")],
    rules: RulesOn::Name,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::UseWorkspace(call))),
};

fn schema() -> Value {
    object(
        &["path"],
        json!({
            "path": { "type": "string", "description": "A folder that is attached to you, or one below it." },
            "mode": {
                "type": "string", "enum": WorkspaceMode::ALL,
                "description": "direct: in the folder itself; worktree: in a new git worktree of it. Left out: direct.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<UseWorkspace, Refusal> {
    let mode = fields.parse_word("mode", WorkspaceMode::ALL, WorkspaceMode::as_str)?;
    Ok(UseWorkspace { path: fields.get_text("path")?, mode: mode.unwrap_or(WorkspaceMode::Direct) })
}
