//! `ApplyPatch`: a unified diff over files of the workspace, all of it or nothing.

use abide_kernel::input::{Does, Refusal};
use abide_kernel::vocabulary::SideEffect;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{Tool, object};
use crate::files::{FilePatch, parse_patch};
use crate::limits::PATCH_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub struct ApplyPatch {
    pub files: Vec<FilePatch>,
}

pub(super) const TOOL: Tool = Tool {
    name: "ApplyPatch",
    description: "Apply a unified diff to files of the workspace: change, create, delete or rename them, all or nothing.",
    schema,
    instead: &[("diff", "say `patch`."), ("path", "the patch names its files.")],
    read: |fields| parse(fields).map(|_| Does::World(SideEffect::WorkspaceMutation)),
};

fn schema() -> Value {
    let about = "As git diff or diff -u writes it: --- a/PATH, +++ b/PATH, then hunks; /dev/null for no file.";
    object(&["patch"], json!({ "patch": { "type": "string", "description": about } }))
}

pub(crate) fn call(input: &Value) -> Result<ApplyPatch, Refusal> {
    parse(&TOOL.fields(input)?)
}

fn parse(fields: &Fields<'_>) -> Result<ApplyPatch, Refusal> {
    let patch = fields.text("patch")?;
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
