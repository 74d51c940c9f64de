//! Folders that the policy's rules about paths begin at. An agent chooses its workspace among the folders below those
//! that its operator gave, and it must not choose its way around a rule: so a file is held against the rules by its path
//! from each of these folders.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleFolder {
    pub folder: String,
    /// Of a worktree: the folder of the user whose files it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
}

impl RuleFolder {
    #[must_use]
    pub fn plain(folder: &str) -> RuleFolder {
        RuleFolder { folder: folder.to_owned(), copy_of: None }
    }

    /// The place of a path in the user's folder, if it lies in this worktree of that.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        let inside = path.strip_prefix(&self.folder).ok()?;
        Some(Path::new(self.copy_of.as_ref()?).join(inside))
    }
}

/// A path, and those of the files that it is a copy of. The path itself comes first.
#[must_use]
pub fn locations(path: &Path, folders: &[RuleFolder]) -> Vec<PathBuf> {
    let mut known = vec![path.to_owned()];
    let mut next = 0;
    while let Some(path) = known.get(next) {
        let originals: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.original(path)).collect();
        for original in originals {
            if !known.contains(&original) {
                known.push(original);
            }
        }
        next += 1;
    }
    known
}
