//! The command and the paths of a call, as the rules of the operator's policy match them. Each tool's own file makes them
//! for its calls.

use abide_kernel::tool::{ExecutorCall, FileCall, WorkspacePath};

use super::{apply_patch, edit_file, exec_command, glob, grep, read_file, task_input, write_file};

/// The default is that of a call that rules can only name.
#[derive(Debug, Default)]
pub(crate) struct CallSubject {
    /// For the shell, or for a task that reads it.
    pub command: Option<String>,
    /// Where the command runs, or who reads it.
    pub whereto: Option<String>,
    pub paths: Vec<NamedPath>,
    pub touches: Touches,
    /// The call shows or copies the content of files, or tells whether a text is in them: rules that hold back reading
    /// match it, too.
    pub reads_content: bool,
}

#[derive(Debug)]
pub(crate) struct NamedPath {
    pub path: WorkspacePath,
    /// The content of this file is read.
    pub is_read: bool,
}

/// The use that a call makes of the files it names.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touches {
    #[default]
    Reads,
    Writes,
    /// Everything below a folder, or one file.
    Searches,
}

impl CallSubject {
    /// Each path, and whether the content of its file is read.
    pub(super) fn of_paths(touches: Touches, paths: impl IntoIterator<Item = (WorkspacePath, bool)>) -> CallSubject {
        let paths = paths.into_iter().map(|(path, is_read)| NamedPath { path, is_read }).collect();
        CallSubject { paths, touches, ..CallSubject::default() }
    }

    pub(crate) fn new(call: &ExecutorCall) -> CallSubject {
        match call {
            ExecutorCall::ExecCommand(call) => exec_command::subject(call),
            ExecutorCall::TaskInput(call) => task_input::subject(call),
            ExecutorCall::File(call) => CallSubject::of_file(call),
            ExecutorCall::TaskOutput(_)
            | ExecutorCall::ReadSkill(_)
            | ExecutorCall::WebFetch(_)
            | ExecutorCall::UseWorkspace(_) => CallSubject::default(),
        }
    }

    pub(crate) fn of_file(call: &FileCall) -> CallSubject {
        match call {
            FileCall::Read(call) => read_file::subject(call),
            FileCall::Write(call) => write_file::subject(call),
            FileCall::Edit(call) => edit_file::subject(call),
            FileCall::Patch(call) => apply_patch::subject(call),
            FileCall::Glob(call) => glob::subject(call),
            FileCall::Grep(call) => grep::subject(call),
        }
    }
}
