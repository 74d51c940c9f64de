//! Calls of the file tools.

use super::WorkspacePath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCall {
    Read(ReadFile),
    Write(WriteFile),
    Edit(EditFile),
    Patch(ApplyPatch),
    Glob(Glob),
    Grep(Grep),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    pub path: WorkspacePath,
    /// The first line, counted from 1, as Grep and refusals count them.
    pub offset: u64,
    pub limit: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFile {
    pub path: WorkspacePath,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditFile {
    pub path: WorkspacePath,
    pub old: String,
    pub new: String,
    /// Every place is meant, not the only one.
    pub all: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyPatch {
    pub files: Vec<FilePatch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// A valid pattern of paths, as the model wrote it.
    pub pattern: String,
    /// The folder to look in; left out, the workspace.
    pub path: Option<WorkspacePath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grep {
    /// A valid regular expression.
    pub pattern: String,
    /// A folder or a file; left out, the workspace.
    pub path: Option<WorkspacePath>,
    /// A valid pattern of the files that are searched; with `!` in front, of those that are not.
    pub glob: Option<String>,
    pub context: usize,
    pub limit: usize,
}

/// The part of a patch that is about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// Nothing: the file is new.
    pub old: Option<WorkspacePath>,
    /// Nothing: the file goes.
    pub new: Option<WorkspacePath>,
    /// The old file stays: it is changed where it is, or copied.
    pub keeps_old: bool,
    /// Whether it can be run from now on, where that is said.
    pub executable: Option<bool>,
    pub hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// As it was written, for people.
    pub header: String,
    pub old_start: u64,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub side: Side,
    /// With its line end, unless it has none.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
    Both,
}

impl FileCall {
    /// Whether it may change a file.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            FileCall::Write(_) | FileCall::Edit(_) | FileCall::Patch(_) => true,
            FileCall::Read(_) | FileCall::Glob(_) | FileCall::Grep(_) => false,
        }
    }
}
