//! `UseWorkspace`: where to work from now on.

use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::{SideEffect, WorkspaceMode};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "UseWorkspace",
    description: "Work in another folder that is attached to you, or in a git worktree of it, from the next round on.",
    schema,
    instead: &[("workspace", "say `path`.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::WorkspaceMutation)),
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

pub(crate) fn call(input: &Value) -> Result<(String, WorkspaceMode), Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<(String, WorkspaceMode), Refusal> {
    let mode = fields.word("mode", WorkspaceMode::ALL, WorkspaceMode::as_str)?;
    Ok((fields.text("path")?, mode.unwrap_or(WorkspaceMode::Direct)))
}
