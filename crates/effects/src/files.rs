//! Runs the file tools inside one workspace. All functions here block; async callers use a thread for blocking work.
//!
//! A call is parsed before (`tools`), which touches nothing, and then run here. A failure is a refusal that the model can
//! act on, and unless it says otherwise, nothing was changed.

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
use serde::Serialize;
use serde_json::Value;

pub(crate) use grep::{FileFilter, build_matcher as compile_regex};
pub(crate) use patch::parse as parse_patch;
pub(crate) use pattern::Pattern;
pub(crate) use root::OpenedFile;
pub use root::{ExcludesFiles, Root};

/// Runs a call of a file tool, and returns its result as JSON.
pub fn run_call(call: &FileCall, root: &Root) -> Result<Value, Refusal> {
    match call {
        FileCall::Read(call) => read::read_file(call, root).map(to_json),
        FileCall::Write(call) => write::write_file(call, root).map(to_json),
        FileCall::Edit(call) => edit::edit_file(call, root).map(to_json),
        FileCall::Patch(call) => patch::apply_patch(call, root).map(to_json),
        FileCall::Glob(call) => glob::find_files(call, root).map(to_json),
        FileCall::Grep(call) => grep::search(call, root).map(to_json),
    }
}

fn to_json(result: impl Serialize) -> Value {
    // The results of file tools all have a JSON form.
    serde_json::to_value(result).unwrap_or_default()
}
