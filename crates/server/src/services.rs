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

pub type Done<'a, T> = BoxFuture<'a, Result<T, Refusal>>;
/// What comes of looking: something, always.
pub type Seen<'a, T> = BoxFuture<'a, T>;

/// How far a caller may reach who names a folder for agents to work in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Below the configured roots.
    Roots,
    /// Anywhere but in folders of the system.
    Beyond,
    /// There, too.
    System,
}

pub trait Services: Send + Sync {
    /// What a task wrote, from an offset or the newest, once it ended or the time is up.
    fn read_output<'a>(
        &'a self,
        agent: &'a AgentId,
        task: TaskId,
        offset: Option<u64>,
        wait_ms: u64,
    ) -> Done<'a, OutputRead>;

    /// Says how much was taken. With `close`, nothing comes after it.
    fn write_input<'a>(&'a self, agent: &'a AgentId, task: TaskId, input: String, close: bool) -> Done<'a, TaskTaken>;

    /// A folder that may be bound. A worktree is made here.
    fn attach<'a>(
        &'a self,
        agent: &'a AgentId,
        path: String,
        mode: WorkspaceMode,
        reach: Reach,
    ) -> Done<'a, WorkspaceAttached>;

    /// Brings a branch of an agent's worktree into the user's repository. `bound` is the worktree, where it is there;
    /// else `folder` names the repository.
    fn fetch_branch<'a>(
        &'a self,
        agent: &'a AgentId,
        bound: Option<Workspace>,
        folder: String,
        branch: Option<String>,
    ) -> Done<'a, Fetched>;

    /// The folder by its real path, if it could be worked in at this moment.
    fn check_workspace(&self, path: String, reach: Reach) -> Done<'_, String>;

    fn patches<'a>(&'a self, agent: &'a AgentId) -> Done<'a, Vec<Patch>>;

    /// Guides and skills of where an agent works, and hooks and settings of the user's git that it can write.
    fn surroundings<'a>(&'a self, agent: &'a AgentId, place: ToolPlacement) -> Done<'a, Surroundings>;

    /// How an agent stands to the folder that it works in, at this moment: it may hold it, wait for it, or find it held.
    fn folder_use<'a>(&'a self, _agent: &'a AgentId, _place: ToolPlacement) -> Seen<'a, FolderUse> {
        Box::pin(std::future::ready(FolderUse::default()))
    }

    /// Repositories whose objects are being copied into the home.
    fn transfers(&self) -> Vec<Transfer>;

    /// Whether an agent can be given these here and now; else what is wrong, with its place in the request.
    fn check_credentials(&self, credentials: &Credentials) -> Result<(), (String, Refusal)>;

    /// The names of what of these is not set.
    fn missing_credentials(&self, credentials: &Credentials) -> Vec<String>;

    /// Names of secrets, and where each is: home, environment.
    fn secrets(&self) -> Vec<(String, String)>;

    /// Durable when this returns. It writes to the disk.
    fn set_secret(&self, name: &str, value: &str) -> Result<(), Refusal>;

    /// Whether there was one.
    fn remove_secret(&self, name: &str) -> Result<bool, Refusal>;

    /// The bytes that an agent's own folders take on the disk. None where there is too much to look at.
    fn disk_use<'a>(&'a self, agent: &'a AgentId) -> Seen<'a, Option<u64>>;

    /// What keeps commands where they belong, with or without network.
    fn sandbox(&self, network: bool) -> SandboxPart;

    /// Models that can be named, with the agents that think with each. It may read the disk.
    fn models(&self, used: &BTreeMap<String, Vec<String>>) -> ModelList;

    /// The list with what those providers say that can be asked which models they have. It waits for nobody for long.
    fn find_models<'a>(&'a self, list: ModelList, used: &'a BTreeMap<String, Vec<String>>) -> Seen<'a, ModelList>;

    /// Whether a model can look at pictures; none where nobody knows, as of a script.
    fn sees_images(&self, model: &str) -> Option<bool>;

    /// One small call. A name that is no model's is refused; a call that comes to nothing is an answer.
    fn test_model(&self, name: String) -> Done<'_, ModelTested>;
}
