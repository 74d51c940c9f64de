//! Choosing where to work, and worktrees made for it. A model chooses among the folders that its operator bound to it,
//! and what is below them; of a folder that was bound as a worktree it can have worktrees only. A person may bind any.

use std::path::{Path, PathBuf};

use abide_kernel::effect::Place;
use abide_kernel::fact::{self, WorkspaceAttached};
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};
use abide_kernel::vocabulary::WorkspaceMode;
use serde_json::{Value, json};

use super::{Hands, Outcome, blocking};
use crate::tools::use_workspace;
use crate::workspace::{Asker, BRANCHES, WORKTREES};

impl Hands {
    pub(super) async fn use_workspace(
        &self,
        agent: &AgentId,
        input: &Value,
        place: &Place,
    ) -> Result<Outcome, Refusal> {
        let (path, mode) = use_workspace::call(input)?;
        let (hands, agent, place) = (self.clone(), agent.clone(), place.clone());
        blocking(move || {
            let path = within(&path, mode, &place)?;
            let running = hands.0.tasks.of(&agent);
            if running > 0 {
                // They write where it is now; nobody else may until they are over.
                let hint = "wait for them or stop them first: TaskList";
                return Err(Refusal::new("in_use", format!("{running} commands still run where you are"), hint));
            }
            let bound = hands.bind(&agent, &path, mode, Asker::Model)?;
            let root = bound.root.clone();
            let folder = hands.0.repositories.check(Path::new(&root))?;
            hands.0.desks.take(&agent, place.top.as_ref(), &folder, &hands.0.repositories)?;
            let mut result = json!({ "workspace": bound.workspace, "cwd": root });
            if let Some(note) = &bound.note {
                result["note"] = json!(note);
            }
            let first = vec![Input::UseWorkspace(bound), Input::OccupyWorkspace { workspace: root }];
            Ok(Outcome::after(result, first))
        })
        .await
    }

    /// A person binds a folder to an agent: what has to be recorded.
    pub async fn attach(
        &self,
        agent: &AgentId,
        path: String,
        mode: WorkspaceMode,
    ) -> Result<WorkspaceAttached, Refusal> {
        let (hands, agent) = (self.clone(), agent.clone());
        blocking(move || hands.bind(&agent, Path::new(&path), mode, Asker::Person)).await
    }

    /// A worktree for an agent that a model makes.
    pub async fn worktree_for_child(&self, agent: &AgentId, path: String) -> Result<WorkspaceAttached, Refusal> {
        let (hands, agent) = (self.clone(), agent.clone());
        blocking(move || hands.bind(&agent, Path::new(&path), WorkspaceMode::Worktree, Asker::Model)).await
    }

    /// The folder by its real path, if it could be worked in at this moment. To be kept so: what a link leads to can be
    /// changed by whoever may write where the link lies.
    pub async fn check_workspace(&self, path: String) -> Result<String, Refusal> {
        let repositories = self.0.repositories.clone();
        blocking(move || {
            let folder = repositories.check(Path::new(&path))?;
            repositories.agree(&folder)?;
            Ok(folder.path.display().to_string())
        })
        .await
    }

    fn bind(
        &self,
        agent: &AgentId,
        path: &Path,
        mode: WorkspaceMode,
        asker: Asker,
    ) -> Result<WorkspaceAttached, Refusal> {
        let folder = self.0.repositories.check(path)?;
        let workspace = folder.path.display().to_string();
        match mode {
            WorkspaceMode::Direct => {
                if asker == Asker::Person {
                    self.0.repositories.agree(&folder)?;
                }
                let note = self.0.repositories.hooks_in_tree(&folder).map(|hooks| {
                    format!("git runs hooks from {}, which the agent can write; use a worktree", hooks.display())
                });
                Ok(WorkspaceAttached { root: workspace.clone(), workspace, mode, worktree: None, note })
            }
            WorkspaceMode::Worktree => {
                let name = self.fresh().task().to_string();
                let name = name.rsplit('-').next().unwrap_or("0").to_owned();
                let at = self.0.home.join(WORKTREES).join(agent.as_str()).join(&name);
                let branch = format!("{BRANCHES}{agent}-{name}");
                let made = self.0.repositories.create_worktree(&folder, &at, &branch, asker)?;
                let worktree = fact::Worktree {
                    branch: made.branch,
                    base_commit: made.base_commit,
                    repo: made.repo.display().to_string(),
                };
                let root = made.path.display().to_string();
                let note = Some(made.notes.join("; ")).filter(|note| !note.is_empty());
                Ok(WorkspaceAttached { workspace, root, mode, worktree: Some(worktree), note })
            }
        }
    }
}

/// The folder that a model names, if it may.
fn within(path: &str, mode: WorkspaceMode, place: &Place) -> Result<PathBuf, Refusal> {
    let root = place.workspace.as_ref().map(|bound| PathBuf::from(&bound.root));
    let root = root.or_else(|| place.configured.as_ref().map(PathBuf::from));
    let path = match (Path::new(path).is_absolute(), root) {
        (false, Some(root)) => root.join(path),
        (_, _) => PathBuf::from(path),
    };
    let refused = |why: String| {
        let hint = "choose a folder that is attached, or ask the operator to attach this one: abide workspace attach";
        Refusal::new("not_attached", why, hint)
    };
    let there = path.canonicalize().map_err(|error| refused(format!("{}: {error}", path.display())))?;
    // As they were recorded, by their real paths. One that has become a link since may have been turned by the model.
    let branched: &[String] = match mode {
        WorkspaceMode::Direct => &[],
        WorkspaceMode::Worktree => &place.branched,
    };
    if place.attached.iter().chain(&place.configured).chain(branched).any(|folder| there.starts_with(folder)) {
        return Ok(there);
    }
    Err(refused(format!("{} is in no folder that is attached to this agent", path.display())))
}
