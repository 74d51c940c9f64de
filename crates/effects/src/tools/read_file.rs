//! `ReadFile`: lines of a text file in the workspace, or an image.

use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Tool, object};
use crate::files::WorkspacePath;
use crate::limits::{READ_LINES, READ_LINES_MAX};

#[derive(Debug, Clone, PartialEq)]
pub struct ReadFile {
    pub path: WorkspacePath,
    /// The first line, counted from 1, as Grep and refusals count them.
    pub offset: u64,
    pub limit: u64,
}

pub(super) const TOOL: Tool = Tool {
    name: "ReadFile",
    description: "Read a text file in the workspace, or some of its lines; or look at an image (PNG, JPEG, GIF, WebP).",
    schema,
    instead: &[("line", "say `offset`."), ("lines", "say `limit`."), ("file", "say `path`.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::ReadOnly)),
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

pub(crate) fn call(input: &Value) -> Result<ReadFile, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<ReadFile, Refusal> {
    let path = fields.path("path")?;
    // Who counts from 0 means the first line too.
    let offset = fields.number("offset", 0..=u64::from(u32::MAX))?.unwrap_or(1).max(1);
    let limit = fields.number("limit", 1..=READ_LINES_MAX)?.unwrap_or(READ_LINES);
    Ok(ReadFile { path, offset, limit })
}
