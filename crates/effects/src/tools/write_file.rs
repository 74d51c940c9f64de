//! `WriteFile`: a whole file in the workspace, new or in place of the old one.

use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{Tool, object};
use crate::files::WorkspacePath;
use crate::limits::FILE_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub struct WriteFile {
    pub path: WorkspacePath,
    pub content: String,
}

pub(super) const TOOL: Tool = Tool {
    name: "WriteFile",
    description: "Write a whole file in the workspace; missing folders are made, an existing file is replaced.",
    schema,
    instead: &[("text", "say `content`."), ("file", "say `path`."), ("append", "use EditFile to add to a file.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::WorkspaceMutation)),
};

fn schema() -> Value {
    object(
        &["path", "content"],
        json!({
            "path": { "type": "string", "description": "Relative to the workspace." },
            "content": { "type": "string", "description": "All of it." },
        }),
    )
}

pub(crate) fn call(input: &Value) -> Result<WriteFile, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<WriteFile, Refusal> {
    let (path, content) = (fields.path("path")?, fields.text("content")?);
    if content.len() as u64 > FILE_BYTES {
        let hint = format!("give at most {FILE_BYTES} bytes; larger files are made with ExecCommand");
        return Err(invalid(format!("`content` of WriteFile has {} bytes", content.len()), hint));
    }
    Ok(WriteFile { path, content })
}
