//! The paths by which rules know a file of the workspace: from the workspace on, and from every other folder that rules
//! begin at. An agent chooses its workspace, so its paths alone would let it choose which rules bind it.

use std::path::{Path, PathBuf};

use abide_kernel::rule_folder::{RuleFolder, locations};

#[derive(Debug, Clone)]
pub(super) struct Spellings {
    /// The workspace as it is called from each folder around it; from itself, by nothing.
    around: Vec<PathBuf>,
    /// Folders that rules begin at within the repository that a worktree shows, from the worktree on: the agent may have
    /// chosen more of the repository than it was given.
    below: Vec<PathBuf>,
}

impl Spellings {
    pub(super) fn new(workspace: Option<&Path>, folders: &[RuleFolder]) -> Spellings {
        let (mut around, mut below) = (vec![PathBuf::new()], Vec::new());
        for (nth, location) in workspace.map(|path| locations(path, folders)).unwrap_or_default().iter().enumerate() {
            for RuleFolder { folder, .. } in folders {
                if let Ok(inside) = location.strip_prefix(folder) {
                    around.push(inside.to_owned());
                } else if nth > 0
                    && let Ok(inside) = Path::new(folder).strip_prefix(location)
                {
                    below.push(inside.to_owned());
                }
            }
        }
        around.sort();
        around.dedup();
        Spellings { around, below }
    }

    /// Whether a rule is about the file at this path of the workspace: one that holds back if it matches any spelling,
    /// one that lets pass if it matches all that begin around the workspace.
    pub(super) fn match_path(&self, path: &Path, lets_pass: bool, matches: impl Fn(&Path) -> bool) -> bool {
        let mut around = self.around.iter().map(|prefix| joined(prefix, path));
        if lets_pass {
            return around.all(|spelling| matches(&spelling));
        }
        let mut below = self.below.iter().filter_map(|folder| path.strip_prefix(folder).ok());
        around.any(|spelling| matches(&spelling)) || below.any(matches)
    }

    /// The path as a person is shown it, from the outermost folder on.
    pub(super) fn longest(&self, path: &Path) -> PathBuf {
        let outermost = self.around.iter().max_by_key(|prefix| prefix.components().count());
        outermost.map_or_else(|| path.to_owned(), |prefix| joined(prefix, path))
    }
}

/// Without the slash at the end that joining with nothing makes.
fn joined(prefix: &Path, path: &Path) -> PathBuf {
    prefix.components().chain(path.components()).collect()
}
