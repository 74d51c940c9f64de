//! The daemon's hands and models, for requests that are about a command, a folder or a model and not about a turn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use abide_api::types::{
    Broken, Fetched, FetchedBranch, Guide, ModelList, ModelTested, Patch, SandboxPart, Skill, Surroundings, TaskTaken,
    Transfer, WritableProgram,
};
use abide_effects::Executor;
use abide_effects::executor::{AllowFolder, CredentialFault};
use abide_effects::process::Bounds;
use abide_effects::secrets::{SecretSource, SecretValue};
use abide_kernel::credentials::Credentials;
use abide_kernel::explain::FolderUse;
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::state::workspace::Workspace;
use abide_kernel::tool::{TaskInput, TaskOutput};
use abide_kernel::views::task::OutputRead;
use abide_kernel::vocabulary::WorkspaceMode;
use abide_server::{FolderScope, ServiceFuture, ServiceResult, Services};

use crate::key_holds::KeyHolds;
use crate::models::Models;
use crate::policy_file::PolicyFile;
use crate::text::grouped;
use crate::workspace_roots::WorkspaceRoots;

pub struct DaemonServices {
    pub executor: Executor,
    pub policy: Arc<PolicyFile>,
    pub models: Arc<Models>,
    pub roots: WorkspaceRoots,
    pub holds: KeyHolds,
}

impl DaemonServices {
    /// An answer about an agent's files: their names may have been chosen by a command that has a secret.
    fn masked(&self, text: String) -> String {
        self.executor.secrets().mask().masked_text(&text).unwrap_or(text)
    }
}

impl Services for DaemonServices {
    fn read_output<'a>(
        &'a self,
        agent: &'a AgentId,
        task_id: TaskId,
        offset: Option<u64>,
        wait_ms: u64,
    ) -> ServiceResult<'a, OutputRead> {
        Box::pin(async move {
            let wanted = TaskOutput { task_id, block: wait_ms > 0, timeout_ms: wait_ms, offset };
            Ok(self.executor.read_output(agent, &wanted).await?.0)
        })
    }

    fn write_input<'a>(
        &'a self,
        agent: &'a AgentId,
        task_id: TaskId,
        input: String,
        close: bool,
    ) -> ServiceResult<'a, TaskTaken> {
        Box::pin(async move { self.executor.write_input(agent, &TaskInput { task_id, input, close }).await })
    }

    fn attach<'a>(
        &'a self,
        agent: &'a AgentId,
        path: String,
        mode: WorkspaceMode,
        reach: FolderScope,
    ) -> ServiceResult<'a, WorkspaceAttached> {
        Box::pin(async move {
            self.check_named(&path, reach).await?;
            self.executor.attach_folder(agent, path, mode, self.allow(reach)).await
        })
    }

    fn fetch_branch<'a>(
        &'a self,
        agent: &'a AgentId,
        bound: Option<Workspace>,
        folder: String,
        branch: Option<String>,
    ) -> ServiceResult<'a, Fetched> {
        Box::pin(async move {
            let repo = bound.as_ref().and_then(|bound| Some(bound.worktree.as_ref()?.repo.clone()));
            let repository = repo.unwrap_or_else(|| folder.clone());
            let branches = self.executor.fetch_branch(agent, bound, folder, branch).await?;
            let branches = branches.into_iter().map(|branch| FetchedBranch {
                branch: self.masked(branch.branch),
                commit: self.masked(branch.commit),
                changed: branch.changed,
            });
            Ok(Fetched { repository: self.masked(repository), branches: branches.collect() })
        })
    }

    fn check_workspace(&self, path: String, reach: FolderScope) -> ServiceResult<'_, String> {
        Box::pin(async move {
            self.check_named(&path, reach).await?;
            self.executor.check_workspace(path, self.allow(reach)).await
        })
    }

    fn patches<'a>(&'a self, agent: &'a AgentId) -> ServiceResult<'a, Vec<Patch>> {
        Box::pin(async move {
            let patches = self.executor.list_patches(agent).await?;
            let shown = patches.into_iter().map(|patch| {
                let story = patch.story.as_ref();
                let files = story.map(|story| story.files.as_slice()).unwrap_or_default();
                Patch {
                    name: self.masked(patch.name),
                    path: self.masked(patch.patch.display().to_string()),
                    bytes: patch.bytes,
                    branch: story.map(|story| self.masked(story.branch.clone())),
                    base_commit: story.map(|story| self.masked(story.base_commit.clone())),
                    saved_at: story.map(|story| story.saved_at.to_string()),
                    files: files.iter().map(|file| self.masked(file.clone())).collect(),
                    files_total: story.map_or(0, |story| story.files_total as u64),
                }
            });
            Ok(shown.collect())
        })
    }

    fn surroundings<'a>(&'a self, agent: &'a AgentId, place: ToolPlacement) -> ServiceResult<'a, Surroundings> {
        Box::pin(async move {
            let around = self.executor.read_surroundings(agent, &place, self.policy.current()).await;
            let writable = self.executor.writable_settings(&place).await;
            let shown = |path: &std::path::Path| path.display().to_string();
            let guides = around.guides.iter().map(|guide| Guide {
                path: guide.path.clone(),
                bytes: guide.text.len() as u64,
                truncated: guide.truncated,
            });
            let skills = around.skills.iter().map(|skill| Skill {
                name: skill.name.clone(),
                description: skill.description.clone(),
                source: skill.source.clone(),
            });
            let broken = around
                .broken
                .iter()
                .map(|broken| Broken { path: broken.path.clone(), problem: broken.problem.clone() });
            let programs = writable
                .programs
                .iter()
                .map(|program| WritableProgram { setting: program.setting.clone(), path: shown(&program.path) });
            Ok(Surroundings {
                guides: guides.collect(),
                skills: skills.collect(),
                broken: broken.collect(),
                writable_hooks: writable.hooks.as_deref().map(shown),
                writable_settings: writable.files.iter().map(|file| shown(file)).collect(),
                writable_programs: programs.collect(),
                shadowing: writable.shadowing.as_deref().map(shown),
                nested: writable.nested.iter().map(|folder| shown(folder)).collect(),
            })
        })
    }

    fn folder_use<'a>(&'a self, agent: &'a AgentId, place: ToolPlacement) -> ServiceFuture<'a, FolderUse> {
        Box::pin(async move { self.executor.folder_use(agent, &place).await })
    }

    fn transfers(&self) -> Vec<Transfer> {
        let transfers = self.executor.transfers().into_iter();
        let shown = transfers.map(|it| Transfer {
            repository: it.repository.display().to_string(),
            phase: it.phase.as_str().to_owned(),
            done: it.done,
            total: it.total,
        });
        shown.collect()
    }

    fn check_credentials(&self, credentials: &Credentials) -> Result<(), (String, Refusal)> {
        self.executor.check_credentials(credentials).map_err(|CredentialFault { pointer, refusal }| (pointer, refusal))
    }

    fn missing_credentials(&self, credentials: &Credentials) -> Vec<String> {
        self.executor.missing_credentials(credentials)
    }

    fn secrets(&self) -> Vec<(String, String)> {
        let word = |source| match source {
            SecretSource::Home => "home",
            SecretSource::Environment => "environment",
        };
        self.executor.secrets().list().into_iter().map(|(name, source)| (name, word(source).to_owned())).collect()
    }

    fn set_secret(&self, name: &str, value: &str) -> Result<(), Refusal> {
        let wrong = |problem| Refusal::new(ErrorCode::WrongValue, problem);
        self.executor.secrets().set(name, SecretValue::new(value).map_err(wrong)?)
    }

    fn remove_secret(&self, name: &str) -> Result<bool, Refusal> {
        self.executor.secrets().remove(name)
    }

    fn disk_use<'a>(&'a self, agent: &'a AgentId) -> ServiceFuture<'a, Option<u64>> {
        Box::pin(self.executor.measure_disk_use(agent))
    }

    fn sandbox(&self, network: bool) -> SandboxPart {
        sandbox_view(&self.executor, network)
    }

    fn models(&self, used: &BTreeMap<String, Vec<String>>) -> ModelList {
        self.models.list(used)
    }

    fn find_models<'a>(
        &'a self,
        list: ModelList,
        used: &'a BTreeMap<String, Vec<String>>,
    ) -> ServiceFuture<'a, ModelList> {
        Box::pin(self.models.find(list, used))
    }

    fn sees_images(&self, model: &str) -> Option<bool> {
        self.models.sees_images(model)
    }

    fn test_model(&self, name: String) -> ServiceResult<'_, ModelTested> {
        Box::pin(async move {
            let began = Instant::now();
            let tested = self.models.test(&name).await?;
            // It answered, also where the answer is empty: its key works.
            if tested.usage.is_some()
                && let Ok(model) = self.models.providers.model(&name)
            {
                self.holds.worked(&model, began);
            }
            Ok(tested)
        })
    }
}

impl DaemonServices {
    /// Refuses a path that the caller may not choose before the folder is looked at: nothing is told about folders that
    /// are none of the caller's business.
    async fn check_named(&self, path: &str, reach: FolderScope) -> Result<(), Refusal> {
        let (roots, named) = (self.roots.clone(), PathBuf::from(path));
        let allowed = tokio::task::spawn_blocking(move || match named.canonicalize() {
            Ok(real) => roots.check(&real, reach),
            Err(_) if named.is_absolute() => roots.check(&named, reach),
            Err(_) => Ok(()),
        });
        let lost =
            |_| Refusal::new(ErrorCode::Closing, "the daemon is stopping").with_hint("ask again when it is back");
        allowed.await.map_err(lost)?
    }

    /// Judges the folder that is bound in the end, by its real path, and all that its repository leads to.
    fn allow(&self, reach: FolderScope) -> AllowFolder {
        let roots = self.roots.clone();
        Box::new(move |folder, stores| {
            roots.check(&folder.path, reach)?;
            roots.check_repository(folder, stores, reach)
        })
    }
}

/// How the processes of a command are counted, in words.
pub fn counted_by(how: Result<&str, &str>) -> String {
    match how {
        Ok(how) => format!("counted by a {how}"),
        Err(why) => format!("counted by looking, because {why}"),
    }
}

/// How the memory of commands is bounded, in words.
pub fn memory_bounded_by(how: Result<&str, &str>, bounds: Bounds) -> String {
    let (memory, scratch) = (grouped(bounds.memory_bytes >> 20), grouped(bounds.scratch_bytes >> 20));
    let scratch = format!("{scratch} MiB in the private folders of a command");
    match how {
        Ok(how) => format!("bounded by a {how}: {memory} MiB for all commands of an agent, {scratch}"),
        Err(why) => format!("bounded by looking: {memory} MiB for each command, {scratch}, because {why}"),
    }
}

/// The sandbox of commands, as summaries show it.
pub fn sandbox_view(executor: &Executor, network: bool) -> SandboxPart {
    let sandbox = executor.sandbox();
    SandboxPart {
        mode: sandbox.mode().as_str().to_owned(),
        mechanism: sandbox.mechanism().as_str().to_owned(),
        enforced: sandbox.enforced(network).into_iter().map(Into::into).collect(),
        problems: sandbox.problems().to_vec(),
        processes: counted_by(executor.process_counter()),
        memory: memory_bounded_by(executor.memory_bounded_by(), executor.bounds()),
    }
}
