//! `Glob`: files of the workspace, by a pattern of their paths.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ExecutorCall, FileCall, Glob, ToolCall, WorkspacePath};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{CallSubject, RulesOn, Tool, Touches, object};
use crate::files::Pattern;

pub(super) const TOOL: Tool = Tool {
    name: "Glob",
    description: "List files of the workspace by a pattern such as src/**/*.rs; what .gitignore names is left out.",
    schema,
    instead: &[("glob", "say `pattern`."), ("limit", "search a smaller folder with `path`.")],
    rules: RulesOn::Path,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::File(FileCall::Glob(call)))),
};

fn schema() -> Value {
    object(
        &["pattern"],
        json!({
            "pattern": {
                "type": "string",
                "description": "`*` stays within a name, `**` goes through folders. Hidden files are meant only when it names them.",
            },
            "path": { "type": "string", "description": "The folder to look in. Left out: the workspace." },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<Glob, Refusal> {
    let (text, path) = (fields.get_text("pattern")?, fields.optional_path("path")?);
    match Pattern::new(&text) {
        Ok(_) => Ok(Glob { pattern: text, path }),
        Err(hint) => Err(fields.wrong("pattern", &Value::from(text), &hint)),
    }
}

pub(super) fn subject(call: &Glob) -> CallSubject {
    CallSubject::of_paths(Touches::Searches, [(start(call), false)])
}

/// The folder that is walked: the path, and the folders that the pattern begins with.
fn start(call: &Glob) -> WorkspacePath {
    let folders = Pattern::new(&call.pattern).map(|pattern| pattern.split().0).unwrap_or_default();
    call.path.clone().unwrap_or_default().join(&folders)
}
