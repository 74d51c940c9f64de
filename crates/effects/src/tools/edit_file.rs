//! `EditFile`: a text in a file of the workspace is replaced by another.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{EditFile, ExecutorCall, FileCall, ToolCall};
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{CallSubject, RulesOn, Tool, Touches, object};
use crate::limits::FILE_BYTES;

pub(super) const TOOL: Tool = Tool {
    name: "EditFile",
    description: "Replace a text in a file of the workspace; it has to be there once, or `all` of them are meant.",
    schema,
    instead: &[
        ("old_string", "say `old`."),
        ("new_string", "say `new`."),
        ("replace_all", "say `all`."),
        ("file", "say `path`."),
    ],
    rules: RulesOn::Path,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::File(FileCall::Edit(call)))),
};

fn schema() -> Value {
    object(
        &["path", "old", "new"],
        json!({
            "path": { "type": "string", "description": "Relative to the workspace." },
            "old": { "type": "string", "description": "Exactly as the file has it, with enough around it to be the only one." },
            "new": { "type": "string", "description": "What stands there afterwards; empty to remove it." },
            "all": { "type": "boolean", "description": "Replace every occurrence. Left out: false." },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<EditFile, Refusal> {
    let (path, old, new) = (fields.workspace_path("path")?, fields.get_text("old")?, fields.get_text("new")?);
    let all = fields.get_flag("all")?.unwrap_or(false);
    if old.is_empty() {
        let hint = "give the text that is to be replaced; WriteFile writes a whole file";
        return Err(invalid("`old` of EditFile is empty", hint));
    }
    if old == new {
        let hint = "give what shall stand there in `new`; if the file is right already, leave it";
        return Err(invalid("`old` and `new` of EditFile are the same", hint));
    }
    if new.len() as u64 > FILE_BYTES {
        let hint = format!("give at most {FILE_BYTES} bytes");
        return Err(invalid(format!("`new` of EditFile has {} bytes", new.len()), hint));
    }
    Ok(EditFile { path, old, new, all })
}

/// It tells whether a text stands in the file.
pub(super) fn subject(call: &EditFile) -> CallSubject {
    CallSubject { reads_content: true, ..CallSubject::of_paths(Touches::Writes, [(call.path.clone(), true)]) }
}
