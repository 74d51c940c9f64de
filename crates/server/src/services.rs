//! The services that requests use outside of any turn: commands, folders, models, secrets. The daemon provides them.

use std::collections::BTreeMap;

use abide_api::types::{Fetched, ModelList, ModelTested, Patch, SandboxPart, Surroundings, TaskTaken, Transfer};
use abide_kernel::credentials::Credentials;
use abide_kernel::explain::FolderUse;
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::input::Refusal;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::state::workspace::Workspace;
use abide_kernel::views::task::OutputRead;
use abide_kernel::vocabulary::WorkspaceMode;
use futures_util::future::BoxFuture;

pub type ServiceResult<'a, T> = BoxFuture<'a, Result<T, Refusal>>;
/// The result of a service that can't fail.
pub type ServiceFuture<'a, T> = BoxFuture<'a, T>;

/// The folders that a caller may name as workspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderScope {
    /// Below the configured roots.
    Roots,
    /// Anywhere but in folders of the system.
    Beyond,
    /// Folders of the system as well.
    System,
}

pub trait Services: Send + Sync {
    /// The output of a task, from an offset or the newest, after it ended or the time is over.
    fn read_output<'a>(
        &'a self,
        agent: &'a AgentId,
        task: TaskId,
        offset: Option<u64>,
        wait_ms: u64,
    ) -> ServiceResult<'a, OutputRead>;

    /// Returns the number of bytes that were written. `close` ends the input.
    fn write_input<'a>(
        &'a self,
        agent: &'a AgentId,
        task: TaskId,
        input: String,
        close: bool,
    ) -> ServiceResult<'a, TaskTaken>;

    /// A folder that may be bound. A worktree is made here.
    fn attach<'a>(
        &'a self,
        agent: &'a AgentId,
        path: String,
        mode: WorkspaceMode,
        reach: FolderScope,
    ) -> ServiceResult<'a, WorkspaceAttached>;

    /// Brings a branch of an agent's worktree into the user's repository. `bound` is the worktree, where it is there;
    /// else `folder` names the repository.
    fn fetch_branch<'a>(
        &'a self,
        agent: &'a AgentId,
        bound: Option<Workspace>,
        folder: String,
        branch: Option<String>,
    ) -> ServiceResult<'a, Fetched>;

    /// The folder by its real path, if it could be worked in at this moment.
    fn check_workspace(&self, path: String, reach: FolderScope) -> ServiceResult<'_, String>;

    fn patches<'a>(&'a self, agent: &'a AgentId) -> ServiceResult<'a, Vec<Patch>>;

    /// Guides and skills of where an agent works, and hooks and settings of the user's git that it can write.
    fn surroundings<'a>(&'a self, agent: &'a AgentId, place: ToolPlacement) -> ServiceResult<'a, Surroundings>;

    /// How an agent stands to the folder that it works in, at this moment: it may hold it, wait for it, or find it held.
    fn folder_use<'a>(&'a self, _agent: &'a AgentId, _place: ToolPlacement) -> ServiceFuture<'a, FolderUse> {
        Box::pin(std::future::ready(FolderUse::default()))
    }

    /// Repositories whose objects are being copied into the home.
    fn transfers(&self) -> Vec<Transfer>;

    /// Whether an agent can be given these now. An error has a pointer to its place in the request.
    fn check_credentials(&self, credentials: &Credentials) -> Result<(), (String, Refusal)>;

    /// The names of credentials that are not set.
    fn missing_credentials(&self, credentials: &Credentials) -> Vec<String>;

    /// Names of secrets, and where each is: home, environment.
    fn secrets(&self) -> Vec<(String, String)>;

    /// Durable when this returns. It writes to the disk.
    fn set_secret(&self, name: &str, value: &str) -> Result<(), Refusal>;

    /// Whether there was one.
    fn remove_secret(&self, name: &str) -> Result<bool, Refusal>;

    /// The bytes that an agent's own folders take on the disk. None where there is too much to look at.
    fn disk_use<'a>(&'a self, agent: &'a AgentId) -> ServiceFuture<'a, Option<u64>>;

    /// The sandbox of commands, with or without network.
    fn sandbox(&self, network: bool) -> SandboxPart;

    /// Models that can be named, with the agents that think with each. It may read the disk.
    fn models(&self, used: &BTreeMap<String, Vec<String>>) -> ModelList;

    /// The list, with the models that providers report themselves. Slow providers are left out.
    fn find_models<'a>(
        &'a self,
        list: ModelList,
        used: &'a BTreeMap<String, Vec<String>>,
    ) -> ServiceFuture<'a, ModelList>;

    /// Whether a model takes images. None if it is unknown, as for a script.
    fn sees_images(&self, model: &str) -> Option<bool>;

    /// Makes one small call. An unknown name is refused; a failed call is a result.
    fn test_model(&self, name: String) -> ServiceResult<'_, ModelTested>;
}
