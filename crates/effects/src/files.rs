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

pub(crate) use grep::{FileFilter, matcher as check_regex};
pub(crate) use patch::parse as parse_patch;
pub(crate) use pattern::Pattern;
pub(crate) use root::Opened;
pub use root::{LeavesOut, Root};

/// Does what a call of a file tool asks for, and says what came of it.
pub fn run(call: &FileCall, root: &Root) -> Result<Value, Refusal> {
    match call {
        FileCall::Read(call) => read::run(call, root),
        FileCall::Write(call) => write::run(call, root),
        FileCall::Edit(call) => edit::run(call, root),
        FileCall::Patch(call) => patch::run(call, root),
        FileCall::Glob(call) => glob::run(call, root),
        FileCall::Grep(call) => grep::run(call, root),
    }
}
