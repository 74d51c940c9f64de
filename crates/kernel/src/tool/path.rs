//! A path as a model writes it. Where it leads is found out when it is opened beneath the workspace.

use std::path::{Component, Path, PathBuf};

/// The longest path the system takes.
const PATH_BYTES: usize = 4_095;

/// The default is the workspace itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspacePath(PathBuf);

impl WorkspacePath {
    /// `.` and doubled slashes are left out; `..` stays, because what it means depends on the links before it.
    pub fn new(text: &str) -> Result<WorkspacePath, &'static str> {
        if text.is_empty() {
            return Err("give the path of a file, relative to the workspace");
        }
        if text.contains('\0') || text.len() > PATH_BYTES {
            return Err("a path has at most 4095 bytes, and none of them is zero");
        }
        let path = Path::new(text).components().filter(|component| *component != Component::CurDir);
        Ok(WorkspacePath(path.collect()))
    }

    #[must_use]
    pub fn join(&self, below: &Path) -> WorkspacePath {
        WorkspacePath(self.0.join(below))
    }

    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}
