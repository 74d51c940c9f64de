//! The file tools at work, inside one workspace. Everything here blocks; who calls it does so where blocking is fine.
//!
//! A call is parsed before (`tools`), which touches nothing, and then run here. Whatever goes wrong is a refusal that the model can act
//! on, and unless it says otherwise, nothing was changed.

mod changes;
mod edit;
mod glob;
mod grep;
mod near;
mod patch;
mod pattern;
mod read;
mod root;
mod target;
mod walk;
mod write;

use abide_kernel::refusal::Refusal;
use abide_kernel::tool::FileCall;
use serde_json::Value;

pub(crate) use grep::{FileFilter, build_matcher as compile_regex};
pub(crate) use patch::parse as parse_patch;
pub(crate) use pattern::Pattern;
pub(crate) use root::OpenedFile;
pub use root::{ExcludesFiles, Root};

/// Does what a call of a file tool asks for, and says what came of it.
pub fn run_call(call: &FileCall, root: &Root) -> Result<Value, Refusal> {
    match call {
        FileCall::Read(call) => read::read_file(call, root),
        FileCall::Write(call) => write::write_file(call, root),
        FileCall::Edit(call) => edit::edit_file(call, root),
        FileCall::Patch(call) => patch::apply_patch(call, root),
        FileCall::Glob(call) => glob::find_files(call, root),
        FileCall::Grep(call) => grep::search(call, root),
    }
}
