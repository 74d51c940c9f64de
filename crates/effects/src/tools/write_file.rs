//! `WriteFile`: a whole file in the workspace, new or in place of the old one.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, FileCall, ToolCall, WriteFile};
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{CallSubject, RulesOn, Tool, Touches, object};
use crate::limits::FILE_BYTES;

pub(super) const TOOL: Tool = Tool {
    name: "WriteFile",
    description: "Write a whole file in the workspace; missing folders are made, an existing file is replaced.",
    schema,
    instead: &[("text", "say `content`."), ("file", "say `path`."), ("append", "use EditFile to add to a file.")],
    rules: RulesOn::Path,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::File(FileCall::Write(call)))),
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

fn parse(fields: &Fields<'_>) -> Result<WriteFile, Refusal> {
    let (path, content) = (fields.workspace_path("path")?, fields.get_text("content")?);
    if content.len() as u64 > FILE_BYTES {
        let hint = format!("give at most {FILE_BYTES} bytes; larger files are made with ExecCommand");
        return Err(invalid(format!("`content` of WriteFile has {} bytes", content.len()), hint));
    }
    Ok(WriteFile { path, content })
}

pub(super) fn subject(call: &WriteFile) -> CallSubject {
    CallSubject::of_paths(Touches::Writes, [(call.path.clone(), false)])
}
