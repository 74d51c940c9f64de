//! The place of an agent's tools: their folder, and how far they reach from there.

use std::path::Path;

use super::AgentState;
use super::workspace::Workspace;
use crate::credentials::Credentials;
use crate::id::AgentId;
use crate::rule_folder::{RuleFolder, locations};
use crate::vocabulary::WorkspaceMode;

/// Where an agent's tools run, and what they may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolPlacement {
    /// The binding it works in, where there is one.
    pub workspace: Option<Workspace>,
    /// Else the folder that its operator set; else it has one of its own.
    pub configured: Option<String>,
    /// Folders that are bound to it: it may choose among them.
    pub attached: Vec<String>,
    /// Folders of which worktrees are bound to it: it may have another, and not work in the folders themselves.
    pub branched: Vec<String>,
    pub network: bool,
    /// The agents that made it, nearest first: what the policy holds them back from, it is held back from.
    pub makers: Vec<AgentId>,
    /// Their folders, as far as rules about paths begin at them.
    pub maker_folders: Vec<RuleFolder>,
    /// Credentials that its own commands have besides the usual environment. Checks have none of them.
    pub credentials: Credentials,
}

impl ToolPlacement {
    #[must_use]
    pub fn of(state: &AgentState) -> ToolPlacement {
        let of = |mode: WorkspaceMode| {
            let bound = state.planes.workspaces.attached().values().filter(move |bound| bound.mode == mode);
            bound.map(|bound| bound.workspace.clone()).collect()
        };
        ToolPlacement {
            workspace: state.planes.workspaces.active().cloned(),
            configured: state.definition.config.workspace.clone(),
            attached: of(WorkspaceMode::Direct),
            branched: of(WorkspaceMode::Worktree),
            network: state.definition.config.network,
            makers: state.definition.identity.lineage(),
            maker_folders: state.definition.identity.rule_folders.clone(),
            credentials: state.definition.config.credentials.clone(),
        }
    }

    /// The folders that rules about paths begin at: those that the agent may work in, and those of its makers.
    #[must_use]
    pub fn rule_folders(&self) -> Vec<RuleFolder> {
        let own = self.attached.iter().chain(&self.configured).chain(&self.branched);
        let worktree = self.workspace.as_ref().and_then(|bound| {
            let repo = bound.worktree.as_ref()?.repo.clone();
            Some(RuleFolder { folder: bound.root.clone(), copy_of: Some(repo) })
        });
        let all = own.map(|folder| RuleFolder::plain(folder)).chain(worktree).chain(self.maker_folders.iter().cloned());
        let mut folders: Vec<RuleFolder> = Vec::new();
        for folder in all {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }
}

/// The folders of an agent that bind one it makes in `workspace`: those around that folder, and the outermost of the
/// others, because a worktree may show more of a repository than the folder that it was made of. A model binds folders
/// below these as it likes, so recording all of them would have no bound.
#[must_use]
pub fn folders_of_made(place: &ToolPlacement, workspace: Option<&str>) -> Vec<RuleFolder> {
    let Some(workspace) = workspace else { return Vec::new() };
    let all = place.rule_folders();
    let locations = locations(Path::new(workspace), &all);
    let is_around = |one: &RuleFolder| locations.iter().any(|location| location.starts_with(&one.folder));
    let is_outermost = |one: &RuleFolder| {
        let is_below =
            |other: &RuleFolder| other.folder != one.folder && Path::new(&one.folder).starts_with(&other.folder);
        one.copy_of.is_none() && !all.iter().any(is_below)
    };
    all.iter().filter(|one| is_around(one) || is_outermost(one)).cloned().collect()
}
