//! `ApplyPatch`: a unified diff over files of the workspace, all of it or nothing.

use abide_kernel::input::Refusal;
use abide_kernel::tool::{ApplyPatch, ExecutorCall, FileCall, FilePatch, ToolCall, WorkspacePath};
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{CallSubject, RulesOn, Tool, Touches, object};
use crate::files::parse_patch;
use crate::limits::PATCH_BYTES;

pub(super) const TOOL: Tool = Tool {
    name: "ApplyPatch",
    description: "Apply a unified diff to files of the workspace: change, create, delete or rename them, all or nothing.",
    schema,
    instead: &[("diff", "say `patch`."), ("path", "the patch names its files.")],
    rules: RulesOn::Path,
    parse: |fields| parse(fields).map(|call| ToolCall::Executor(ExecutorCall::File(FileCall::Patch(call)))),
};

fn schema() -> Value {
    let about = "As git diff or diff -u writes it: --- a/PATH, +++ b/PATH, then hunks; /dev/null for no file.";
    object(&["patch"], json!({ "patch": { "type": "string", "description": about } }))
}

fn parse(fields: &Fields<'_>) -> Result<ApplyPatch, Refusal> {
    let patch = fields.get_text("patch")?;
    if patch.len() > PATCH_BYTES {
        let hint = format!("give at most {PATCH_BYTES} bytes, in several parts");
        return Err(invalid(format!("`patch` of ApplyPatch has {} bytes", patch.len()), hint));
    }
    if patch.trim_start().starts_with("*** Begin Patch") {
        let hint = "give a unified diff: --- a/PATH, +++ b/PATH, then hunks that begin with @@ -1,3 +1,4 @@";
        return Err(invalid("`patch` of ApplyPatch is no unified diff", hint));
    }
    let files = parse_patch(&patch).map_err(|fault| invalid(fault.message, fault.hint))?;
    Ok(ApplyPatch { files })
}

pub(super) fn subject(call: &ApplyPatch) -> CallSubject {
    let paths = call.files.iter().flat_map(named);
    CallSubject { reads_content: true, ..CallSubject::of_paths(Touches::Writes, paths) }
}

/// The files of a patch. The old one is read: it is copied or renamed, or its lines are compared.
fn named(file: &FilePatch) -> Vec<(WorkspacePath, bool)> {
    let (old, new) = (file.old.as_ref(), file.new.as_ref());
    let new = new.filter(|new| Some(*new) != old).map(|new| (new.clone(), false));
    old.map(|old| (old.clone(), true)).into_iter().chain(new).collect()
}
