//! `ReadFile`: lines of a text file in the workspace, or an image.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, FileCall, ReadFile, ToolCall};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{CallSubject, RulesOn, Tool, Touches, object};
use crate::limits::{READ_LINES, READ_LINES_MAX};

pub(super) const TOOL: Tool = Tool {
    name: "ReadFile",
    description: "Read a text file in the workspace, or some of its lines; or look at an image (PNG, JPEG, GIF, WebP).",
    schema,
    instead: &[("line", "say `offset`."), ("lines", "say `limit`."), ("file", "say `path`.")],
    rules: RulesOn::Path,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::File(FileCall::Read(call)))),
};

fn schema() -> Value {
    object(
        &["path"],
        json!({
            "path": { "type": "string", "description": "Relative to the workspace." },
            "offset": { "type": "integer", "minimum": 0, "description": "The first line, counted from 1. Left out: 1." },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": READ_LINES_MAX,
                "description": format!("How many lines at most. Left out: {READ_LINES}."),
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ReadFile, Refusal> {
    let path = fields.workspace_path("path")?;
    // Who counts from 0 means the first line too.
    let offset = fields.number("offset", 0..=u64::from(u32::MAX))?.unwrap_or(1).max(1);
    let limit = fields.number("limit", 1..=READ_LINES_MAX)?.unwrap_or(READ_LINES);
    Ok(ReadFile { path, offset, limit })
}

pub(super) fn subject(call: &ReadFile) -> CallSubject {
    CallSubject { reads_content: true, ..CallSubject::of_paths(Touches::Reads, [(call.path.clone(), true)]) }
}
