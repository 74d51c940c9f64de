//! The file tools at work, inside one workspace. Everything here blocks; who calls it does so where blocking is fine.
//!
//! A call is read first, which touches nothing, and then run. Whatever goes wrong is a refusal that the model can act
//! on, and unless it says otherwise, nothing was changed.

mod changes;
mod edit;
mod glob;
mod grep;
mod near;
mod patch;
mod path;
mod pattern;
mod read;
mod root;
mod target;
mod walk;
mod write;

use abide_kernel::input::Refusal;
use serde_json::Value;

use crate::tools;
pub use crate::tools::apply_patch::ApplyPatch;
pub use crate::tools::edit_file::EditFile;
pub use crate::tools::glob::Glob;
pub use crate::tools::grep::Grep;
pub use crate::tools::read_file::ReadFile;
pub use crate::tools::write_file::WriteFile;
pub(crate) use grep::matcher as check_regex;
pub(crate) use patch::parse as parse_patch;
pub use patch::{FilePatch, Hunk, Line, Side};
pub use path::WorkspacePath;
pub(crate) use pattern::Pattern;
pub(crate) use root::Opened;
pub use root::Root;

/// One call of a file tool, whose input makes sense.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    Read(ReadFile),
    Write(WriteFile),
    Edit(EditFile),
    Patch(ApplyPatch),
    Glob(Glob),
    Grep(Grep),
}

impl Call {
    /// What a model's call means, or nothing if the tool is none of these.
    #[must_use]
    pub fn read(tool: &str, input: &Value) -> Option<Result<Call, Refusal>> {
        Some(match tool {
            "ReadFile" => tools::read_file::call(input).map(Call::Read),
            "WriteFile" => tools::write_file::call(input).map(Call::Write),
            "EditFile" => tools::edit_file::call(input).map(Call::Edit),
            "ApplyPatch" => tools::apply_patch::call(input).map(Call::Patch),
            "Glob" => tools::glob::call(input).map(Call::Glob),
            "Grep" => tools::grep::call(input).map(Call::Grep),
            _ => return None,
        })
    }

    /// Whether it may change a file.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Call::Write(_) | Call::Edit(_) | Call::Patch(_) => true,
            Call::Read(_) | Call::Glob(_) | Call::Grep(_) => false,
        }
    }

    /// Does it, and says what came of it.
    pub fn run(&self, root: &Root) -> Result<Value, Refusal> {
        match self {
            Call::Read(call) => read::run(call, root),
            Call::Write(call) => write::run(call, root),
            Call::Edit(call) => edit::run(call, root),
            Call::Patch(call) => patch::run(call, root),
            Call::Glob(call) => glob::run(call, root),
            Call::Grep(call) => grep::run(call, root),
        }
    }
}
