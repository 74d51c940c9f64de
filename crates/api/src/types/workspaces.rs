//! Workspaces: folders that agents work in, and the files there that affect them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WorkspaceMode;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceAttach {
    /// An absolute path, below the daemon's `workspace_roots` unless the token is an admin's.
    #[schema(min_length = 1)]
    pub path: String,
    #[serde(default)]
    pub mode: WorkspaceMode,
    /// In a folder of the system, too. Takes an admin's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Detached {
    pub root: String,
    /// It is a worktree: it goes once what is in it is saved.
    pub removing: bool,
}

/// Which branch of a worktree is to be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceFetch {
    /// Left out: the one that is checked out; of worktrees that are gone, all that were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fetched {
    /// The top of the user's working tree.
    pub repository: String,
    pub branches: Vec<FetchedBranch>,
}

/// A branch of an agent that is in the user's repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FetchedBranch {
    /// `abide/AGENT/BRANCH`.
    pub branch: String,
    pub commit: String,
    /// Whether it was not there, or elsewhere, before.
    pub changed: bool,
}

/// What was not committed in a worktree that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Patch {
    pub name: String,
    pub path: String,
    pub bytes: u64,
    pub branch: Option<String>,
    pub base_commit: Option<String>,
    pub saved_at: Option<String>,
    pub files: Vec<String>,
    pub files_total: u64,
}

/// What lies around an agent that its model is told of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Surroundings {
    /// The one that lies nearest to where it works comes last.
    pub guides: Vec<Guide>,
    pub skills: Vec<Skill>,
    /// What was meant to be one of these, and is not.
    pub broken: Vec<Broken>,
    /// The folder of hooks that the user's git runs and that the agent can write, because `core.hooksPath` leads into the
    /// folder it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable_hooks: Option<String>,
    /// Files that the user's git reads settings from and that the agent can write, because the repository's or the
    /// user's configuration includes them from the folder it works in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable_settings: Vec<String>,
    /// Programs that the user's git runs and that the agent can write, because settings name them by a path in the folder it
    /// works in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable_programs: Vec<WritableProgram>,
    /// The folder it works in, where git can take that for a repository in the place of the user's: it has HEAD, objects and
    /// refs beside its .git. No command starts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<String>,
    /// Folders with a `.git` of their own, although the repository around them tracks files in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<String>,
}

/// A program that git's settings name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WritableProgram {
    /// The key of the setting.
    pub setting: String,
    pub path: String,
}

/// A transfer of objects into the mirror of a repository, while it is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transfer {
    /// The top of the working tree that the objects come from.
    pub repository: String,
    /// counting, receiving, resolving or checking
    pub phase: String,
    /// Objects of this phase that are done, of how many; both are 0 where the phase does not count.
    pub done: u64,
    pub total: u64,
}

/// An `AGENTS.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Guide {
    /// From where it works on.
    pub path: String,
    /// Of its text, how much the model is shown.
    pub bytes: u64,
    /// There is more of it than there is room for.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// The folder it lies in.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Broken {
    pub path: String,
    pub problem: String,
}
