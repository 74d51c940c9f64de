//! Choosing where to work, and worktrees made for it. A model chooses among the folders that its operator bound to it,
//! and what is below them; of a folder that was bound as a worktree it can have worktrees only. A person may bind any.

use std::path::{Path, PathBuf};

use abide_kernel::fact::{self, WorkspaceAttached};
use abide_kernel::id::AgentId;
use abide_kernel::input::{Input, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::tool::UseWorkspace;
use abide_kernel::vocabulary::WorkspaceMode;
use serde_json::json;

use super::{Executor, ToolOutcome, ToolRun, run_blocking};
use crate::git_dir::shadows;
use crate::workspace::{BRANCHES, WORKTREES, Workspace, WritableSettings, apart_from_reserved};

/// Judges a folder that a person names for agents to work in, with the object stores that its repository takes objects
/// from.
pub type AllowFolder = Box<dyn FnOnce(&Workspace, &[PathBuf]) -> Result<(), Refusal> + Send>;

/// The one who asks for a folder to be bound. A model may have written to the repository's records.
enum FolderRequester<'a> {
    Person(AllowFolder),
    /// A model that names a folder, among those that its agent was given.
    Model(&'a ToolPlacement),
    /// A model that makes an agent: the folder is the one that is recorded for the model's own agent.
    Maker,
}

impl Executor {
    pub(super) async fn use_workspace(&self, run: &ToolRun, call: UseWorkspace) -> Result<ToolOutcome, Refusal> {
        let UseWorkspace { path, mode } = call;
        let (executor, owner, place) = (self.clone(), run.agent.clone(), run.place.clone());
        let bound = run_blocking(move || {
            let path = resolve_named(&path, &place);
            let running = executor.0.tasks.count_of(&owner);
            if running > 0 {
                // They write where it is now; nobody else may until they are over.
                let hint = "wait for them or stop them first: TaskList";
                return Err(Refusal::new(ErrorCode::InUse, format!("{running} commands still run where you are"))
                    .with_hint(hint));
            }
            let (bound, folder) = executor.bind_folder(&owner, &path, mode, FolderRequester::Model(&place))?;
            executor.0.known_folders.choose(&owner, &folder.path, folder.identity);
            Ok(bound)
        })
        .await?;
        // Choosing a folder is not writing in it.
        let holder = self.folder_holder(&run.agent, Path::new(&bound.root)).await;
        let holder = holder.map(|holder| format!("{}; until it lets go, writing there waits", holder.sentence()));
        let mut result = json!({ "workspace": bound.workspace, "cwd": bound.root });
        if let Some(note) = join_sentences(bound.note.iter().cloned().chain(holder)) {
            result["note"] = json!(note);
        }
        Ok(ToolOutcome::with_inputs(result, vec![Input::UseWorkspace(bound)]))
    }

    /// A person binds a folder to an agent, if `allow` lets it pass: what has to be recorded.
    pub async fn attach_folder(
        &self,
        agent: &AgentId,
        path: String,
        mode: WorkspaceMode,
        allow: AllowFolder,
    ) -> Result<WorkspaceAttached, Refusal> {
        let (executor, agent) = (self.clone(), agent.clone());
        run_blocking(move || {
            let (bound, folder) =
                executor.bind_folder(&agent, Path::new(&path), mode, FolderRequester::Person(allow))?;
            executor.0.known_folders.choose(&agent, &folder.path, folder.identity);
            Ok(bound)
        })
        .await
    }

    /// A worktree for an agent that a model makes, of the folder that is recorded for the maker.
    pub async fn worktree_for_child(&self, agent: &AgentId, path: String) -> Result<WorkspaceAttached, Refusal> {
        let (executor, agent) = (self.clone(), agent.clone());
        run_blocking(move || {
            Ok(executor.bind_folder(&agent, Path::new(&path), WorkspaceMode::Worktree, FolderRequester::Maker)?.0)
        })
        .await
    }

    /// The folder by its real path, if it could be worked in at this moment and `allow` lets it pass. To be kept so: the
    /// target of a link can be changed by everybody who may write where the link lies.
    pub async fn check_workspace(&self, path: String, allow: AllowFolder) -> Result<String, Refusal> {
        let repositories = self.0.repositories.clone();
        run_blocking(move || {
            let folder = repositories.validate(Path::new(&path))?;
            repositories.record_agreement(&folder, allow)?;
            Ok(folder.path.display().to_string())
        })
        .await
    }

    /// The places from which the user's git takes settings and hooks, and that commands of the agent can write.
    pub async fn writable_settings(&self, place: &ToolPlacement) -> WritableSettings {
        let bound = place.workspace.as_ref().map(|bound| bound.root.clone());
        let Some(root) = bound.or_else(|| place.configured.clone()) else { return WritableSettings::default() };
        let repositories = self.0.repositories.clone();
        run_blocking(move || match repositories.validate_recorded(Path::new(&root)) {
            Ok(folder) => repositories.writable_settings(&folder),
            // That is refused as a workspace; it is named all the same.
            Err(_) => WritableSettings { shadowing: shadowing(Path::new(&root)), ..WritableSettings::default() },
        })
        .await
    }

    /// Binds a folder: what has to be recorded, and the folder to be worked in. The path is resolved once, and that very
    /// value is judged and bound: nothing that changes on the disk comes in between.
    fn bind_folder(
        &self,
        agent: &AgentId,
        path: &Path,
        mode: WorkspaceMode,
        asker: FolderRequester<'_>,
    ) -> Result<(WorkspaceAttached, Workspace), Refusal> {
        let repositories = &self.0.repositories;
        let folder = match asker {
            FolderRequester::Person(allow) => {
                let folder = repositories.validate(path)?;
                repositories.record_agreement(&folder, allow)?;
                folder
            }
            FolderRequester::Model(place) => repositories.validate_judged(path, |real| {
                require_attached(real, mode, place)?;
                apart_from_reserved(real, self.person())
            })?,
            FolderRequester::Maker => {
                let folder = repositories.validate_recorded(path)?;
                apart_from_reserved(&folder.path, self.person())?;
                self.0.known_folders.require_known(&folder)?;
                folder
            }
        };
        let workspace = folder.path.display().to_string();
        match mode {
            WorkspaceMode::Direct => {
                let writable = repositories.writable_settings(&folder).warnings();
                let borrows = repositories.borrows_note(&folder)?;
                let read_only = self.sandbox().read_only_in(&folder.path);
                let read_only = (!read_only.is_empty()).then(|| {
                    let folders: Vec<String> = read_only.iter().map(|folder| folder.display().to_string()).collect();
                    format!(
                        "commands and file tools can only read {}, because PATH or a toolchain of the daemon's user leads \
                         there",
                        folders.join(", ")
                    )
                });
                let note = join_sentences(writable.into_iter().chain(borrows).chain(read_only));
                let bound = WorkspaceAttached { root: workspace.clone(), workspace, mode, worktree: None, note };
                Ok((bound, folder))
            }
            WorkspaceMode::Worktree => {
                let name = self.new_task_id().to_string();
                let name = name.rsplit('-').next().unwrap_or("0").to_owned();
                let at = self.0.home.join(WORKTREES).join(agent.as_str()).join(&name);
                let branch = format!("{BRANCHES}{agent}-{name}");
                let made = repositories.create_worktree(&folder, &at, &branch)?;
                let worktree = fact::Worktree {
                    branch: made.branch,
                    base_commit: made.base_commit,
                    repo: made.repo.display().to_string(),
                };
                let root = made.path.display().to_string();
                let note = join_sentences(made.notes.into_iter());
                let bound = WorkspaceAttached { workspace, root, mode, worktree: Some(worktree), note };
                // No agent can write where it lies, so this is the folder that was made.
                Ok((bound, repositories.validate_recorded(&made.path)?))
            }
        }
    }
}

/// The folder, if git could take it for a repository in the place of its own.
fn shadowing(root: &Path) -> Option<PathBuf> {
    (root.join(".git").symlink_metadata().is_ok() && shadows(root)).then(|| root.to_path_buf())
}

/// The sentences for a person about a folder that was bound, in one line.
fn join_sentences(sentences: impl Iterator<Item = String>) -> Option<String> {
    let sentences: Vec<String> = sentences.collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// The path that a model names, from the folder that its agent works in.
fn resolve_named(path: &str, place: &ToolPlacement) -> PathBuf {
    let root = place.workspace.as_ref().map(|bound| &bound.root).or(place.configured.as_ref());
    root.map_or_else(|| PathBuf::from(path), |root| Path::new(root).join(path))
}

/// Refuses a folder that does not lie in one that the agent was given. Those are held against it as they were recorded, by
/// their real paths: one that has become a link since may have been turned by the model.
fn require_attached(there: &Path, mode: WorkspaceMode, place: &ToolPlacement) -> Result<(), Refusal> {
    let branched: &[String] = match mode {
        WorkspaceMode::Direct => &[],
        WorkspaceMode::Worktree => &place.branched,
    };
    if place.attached.iter().chain(&place.configured).chain(branched).any(|folder| there.starts_with(folder)) {
        return Ok(());
    }
    let message = format!("{} is in no folder that is attached to this agent", there.display());
    Err(Refusal::new(ErrorCode::NotAttached, message))
}
