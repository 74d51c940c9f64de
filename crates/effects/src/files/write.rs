//! Writes a whole file.

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::WriteFile;
use serde_json::{Value, json};

use super::changes::{self, Change};
use super::root::{Root, shown};
use super::target::{Content, PLAIN};

pub(super) fn run(call: &WriteFile, root: &Root) -> Result<Value, Refusal> {
    let path = root.relative(&call.path)?;
    let target = root.target(&path, true)?;
    let before = match target.content() {
        Ok(before) => before,
        // Too much to compare with, but nothing speaks against replacing it.
        Err(refusal) if refusal.code == ErrorCode::FileTooLarge => {
            let mode = target.stat()?.map_or(PLAIN, |stat| stat.st_mode);
            target.write(call.content.as_bytes(), mode)?;
            return Ok(json!({ "changed": [{ "path": shown(&path), "action": "updated" }] }));
        }
        Err(refusal) => {
            root.unmake(&target.made);
            return Err(refusal);
        }
    };
    let mode = before.as_ref().map_or(PLAIN, |content| content.mode);
    let after = Some(Content { bytes: call.content.clone().into_bytes(), mode });
    changes::make(root, &[Change { target, before, after, path: shown(&path) }])
}
