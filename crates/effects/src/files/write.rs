//! Writes a whole file.

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::tool::WriteFile;

use super::changes::{self, Change, ChangeResult, ChangedFile};
use super::root::{Root, display_path};
use super::target::{Content, PLAIN};

pub(super) fn write_file(call: &WriteFile, root: &Root) -> Result<ChangeResult, Refusal> {
    let path = root.relative(&call.path)?;
    let target = root.target(&path, true)?;
    let before = match target.content() {
        Ok(before) => before,
        // Too much to compare with, but nothing speaks against replacing it.
        Err(refusal) if refusal.code == ErrorCode::FileTooLarge => {
            let mode = target.read_stat()?.map_or(PLAIN, |stat| stat.st_mode);
            target.write(call.content.as_bytes(), mode)?;
            let changed = vec![ChangedFile { path: display_path(&path), action: "updated" }];
            return Ok(ChangeResult { changed });
        }
        Err(refusal) => {
            root.unmake(&target.made);
            return Err(refusal);
        }
    };
    let mode = before.as_ref().map_or(PLAIN, |content| content.mode);
    let after = Some(Content { bytes: call.content.clone().into_bytes(), mode });
    changes::apply_changes(root, &[Change { target, before, after, path: display_path(&path) }])
}
