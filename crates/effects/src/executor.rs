//! The executor of all agents of one home: it performs the effects that reach into the world. Each effect is one job
//! that returns its results as inputs; dropping a job ends its work.
//!
//! Commands that outlive their call are held here until their end is durable. Nothing here decides anything about an
//! agent, and nothing here is remembered for it: after a restart there are its records, and what was swept up.

mod call_order;
mod command;
mod credentials;
mod files;
mod folder_lease;
mod folder_lock;
mod known_folder;
mod left_worktrees;
mod surroundings;
mod task_io;
mod tasks;
mod timer_check;
mod use_workspace;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use abide_kernel::effect::{CommandEffect, Effect, TimerCheckEffect, TurnEffect, WorkspaceEffect};
use abide_kernel::id::{AgentId, CallId, ExecId, Fresh, TaskId};
use abide_kernel::input::{BootContext, Input, Reads, Refusal, Removal};
use abide_kernel::open_json::{ToolInput, ToolOutput};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::time::Time;
use abide_kernel::tool::ExecutorCall;
use abide_kernel::vocabulary::ToolStatus;
use tokio::sync::watch;

use crate::limits;
use crate::policy::CallPolicy;
use crate::process::{Bounds, Options, Processes};
use crate::sandbox::{Mode, Sandbox};
use crate::secrets::Secrets;
use crate::workspace::{self, FetchedBranch, Repositories, Transfer, UnsavedWork, UpkeepReport, WORKTREES};

pub use credentials::CredentialFault;
pub use left_worktrees::{LeftWorktrees, ReconciledWorktree, recorded_folders};
pub use use_workspace::AllowFolder;

pub type Job = Pin<Box<dyn Future<Output = Vec<Input>> + Send>>;

/// The options of a home's executor.
#[derive(Debug)]
pub struct ExecutorOptions {
    /// The daemon's own binary, which is run again to supervise a command.
    pub program: PathBuf,
    pub home: PathBuf,
    pub sandbox: Mode,
    pub bounds: Bounds,
    /// The daemon's variables, without those that agents must not have: a secret may be one of them.
    pub environment: Vec<(String, String)>,
    /// Returns the time, and a number that no two calls share. The executor has no clock of its own.
    pub moment: fn() -> (Time, u64),
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    home: PathBuf,
    processes: Processes,
    repositories: Repositories,
    secrets: Secrets,
    /// Where the daemon's ssh agent listens.
    ssh_socket: Option<PathBuf>,
    moment: fn() -> (Time, u64),
    fresh: Mutex<Fresh>,
    tasks: tasks::Tasks,
    folders: folder_lock::FolderLocks,
    known_folders: known_folder::KnownFolders,
    order: call_order::CallOrder,
    /// Commands that an earlier life of this home left running, with the evidence of their end, until their agent is
    /// read.
    swept: Mutex<HashMap<TaskId, Vec<String>>>,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("home", &self.0.home).finish_non_exhaustive()
    }
}

/// The outcome of a tool: the result, inputs that have to be recorded before it, and the task whose output it contains.
struct ToolOutcome {
    result: ToolOutput,
    first: Vec<Input>,
    reads: Option<Reads>,
}

/// A tool call that runs: its caller and its place. `tool` and `input` are its text: rules name tools, and an approval is
/// for one text.
struct ToolRun {
    agent: AgentId,
    exec_id: ExecId,
    call_id: CallId,
    tool: String,
    input: ToolInput,
    place: ToolPlacement,
    policy: CallPolicy,
}

impl ToolOutcome {
    fn new(result: impl Into<ToolOutput>) -> ToolOutcome {
        ToolOutcome { result: result.into(), first: Vec::new(), reads: None }
    }

    fn with_inputs(result: impl Into<ToolOutput>, first: Vec<Input>) -> ToolOutcome {
        ToolOutcome { result: result.into(), first, reads: None }
    }
}

impl Executor {
    /// Tries the sandbox, and ends whatever an earlier life of this home left running.
    pub fn new(setup: ExecutorOptions) -> io::Result<Executor> {
        // One name, wherever the daemon was started from: folders are held against it, and processes are found by it.
        let home = setup.home.canonicalize()?;
        let sandbox = Sandbox::probe(setup.sandbox, &home);
        let options =
            Options { program: setup.program, home: home.clone(), sandbox, control_groups: true, bounds: setup.bounds };
        let processes = Processes::new(options)?;
        let repositories = Repositories::new(&home, processes.clone());
        let socket = setup.environment.iter().find(|(name, value)| name == "SSH_AUTH_SOCK" && !value.is_empty());
        let ssh_socket = socket.map(|(_, path)| PathBuf::from(path));
        let secrets = Secrets::open(&home, setup.environment)?;
        let swept = processes.sweep_earlier_lives().into_iter().map(|swept| {
            let pids: Vec<String> = swept.pids.iter().map(ToString::to_string).collect();
            let ended = (!pids.is_empty()).then(|| format!("ended_at_boot pids {}", pids.join(" ")));
            (TaskId::new(swept.label), ended.into_iter().chain(swept.evidence).collect())
        });
        Ok(Executor(Arc::new(Inner {
            home,
            swept: Mutex::new(swept.collect()),
            processes,
            repositories,
            secrets,
            ssh_socket,
            moment: setup.moment,
            fresh: Mutex::new(Fresh::new(Time::EPOCH, 0)),
            tasks: tasks::Tasks::default(),
            known_folders: known_folder::KnownFolders::default(),
            folders: folder_lock::FolderLocks::new((setup.moment)().1),
            order: call_order::CallOrder::default(),
        })))
    }

    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        self.0.processes.sandbox()
    }

    /// The home folder of the user that this runs as.
    #[must_use]
    pub fn person(&self) -> &Path {
        self.sandbox().user_home()
    }

    /// The mechanism that bounds the number of a command's processes; in the error, the reason why the kernel does not.
    pub fn process_counter(&self) -> Result<&'static str, &str> {
        self.0.processes.process_counter()
    }

    /// The mechanism that bounds the memory of commands; in the error, the reason why the kernel does not.
    pub fn memory_bounded_by(&self) -> Result<&'static str, &str> {
        self.0.processes.memory_bounded_by()
    }

    /// Every agent that waits for room on a disk, because a command of it was ended for that.
    #[must_use]
    pub fn shortages(&self) -> HashMap<AgentId, String> {
        let short = self.0.processes.shortages().into_iter();
        short.filter_map(|(agent, short)| Some((AgentId::new(&agent).ok()?, short.to_string()))).collect()
    }

    /// Every disk that is short although no command took a fair part of its room, in words.
    #[must_use]
    pub fn unattributed_shortages(&self) -> Vec<(PathBuf, String)> {
        let short = self.0.processes.unattributed_shortages().into_iter();
        short.map(|short| (short.folder.clone(), short.to_string())).collect()
    }

    /// Notified when one of these changes.
    #[must_use]
    pub fn shortage_changes(&self) -> watch::Receiver<()> {
        self.0.processes.shortage_changes()
    }

    /// The transfers of objects into mirrors that are under way.
    #[must_use]
    pub fn transfers(&self) -> Vec<Transfer> {
        self.0.repositories.transfers()
    }

    /// Puts the packs of mirrors together, and removes mirrors that are of no use.
    pub async fn tidy_mirrors(&self) -> UpkeepReport {
        let repositories = self.0.repositories.clone();
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis((self.0.moment)().0.as_ms().unsigned_abs());
        run_blocking(move || repositories.tidy_mirrors(now)).await
    }

    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.0.processes.bounds()
    }

    /// The job of an effect, if the executor performs it.
    #[must_use]
    pub fn perform(&self, agent: &AgentId, effect: Effect) -> Option<Job> {
        self.perform_under(CallPolicy::default(), agent, effect)
    }

    /// The same, where the file tools reach no file that the policy keeps from the call.
    #[must_use]
    pub fn perform_under(&self, policy: CallPolicy, agent: &AgentId, effect: Effect) -> Option<Job> {
        let (job, secrets) = (self.start_job(policy, agent, effect)?, self.0.secrets.clone());
        Some(Box::pin(async move {
            let outcomes = job.await;
            secrets.mask().mask_inputs(outcomes)
        }))
    }

    fn start_job(&self, policy: CallPolicy, agent: &AgentId, effect: Effect) -> Option<Job> {
        let (executor, agent) = (self.clone(), agent.clone());
        match effect {
            Effect::Turn(TurnEffect::RunTool { exec_id, call_id, tool, input, call, place }) => {
                let mut slot = self.0.order.enqueue(&exec_id, call.side_effect());
                Some(Box::pin(async move {
                    slot.wait().await;
                    let run = ToolRun { agent, exec_id, call_id, tool, input, place: *place, policy };
                    let came_to = executor.run_tool(&run, *call).await;
                    tool_inputs(run.exec_id, run.call_id, came_to)
                }))
            }
            Effect::Command(CommandEffect::Start { task_id, command, place }) => {
                // Registered before the command runs, so that a stop that comes first is not lost.
                self.0.tasks.begin_start(&agent, &task_id);
                Some(Box::pin(async move {
                    let came_of_it = executor.start_task(&agent, task_id.clone(), *command, &place).await;
                    executor.0.tasks.finish_start(&agent, &task_id);
                    came_of_it
                }))
            }
            Effect::Command(CommandEffect::Await { task_id }) => {
                Some(Box::pin(async move { vec![executor.0.tasks.wait_for_end(&agent, task_id).await] }))
            }
            Effect::Command(CommandEffect::End { task_id, force }) => {
                let unknown = self.0.tasks.request_end(&agent, &task_id, force);
                Some(Box::pin(async move { unknown.into_iter().collect() }))
            }
            Effect::Command(CommandEffect::Close { task_id }) => {
                self.0.tasks.close(&agent, &task_id);
                None
            }
            Effect::Workspace(WorkspaceEffect::Release { workspace, action }) => {
                // From now on, not from when the job begins: waiting callers are served before the agent's next turn.
                self.0.folders.end_holds(&agent);
                Some(Box::pin(async move {
                    executor.release_folders(&agent).await;
                    // It may have gone back to work there.
                    let held = executor.0.folders.holds(&agent, Path::new(&workspace));
                    let released = Input::ReleaseWorkspace { workspace, action, error: None };
                    (!held).then_some(released).into_iter().collect()
                }))
            }
            Effect::Workspace(WorkspaceEffect::RemoveWorktree { workspace }) => Some(Box::pin(async move {
                let root = workspace.root.clone();
                let removal = run_blocking(move || executor.remove_worktree(&agent, &workspace)).await;
                vec![Input::FinishRemoval { root, removal: removal.map_err(|refusal| refusal.message) }]
            })),
            Effect::TimerCheck(TimerCheckEffect::Run { timer_id, due, command, place }) => {
                Some(Box::pin(async move { executor.run_timer_check(&agent, timer_id, due, command, &place).await }))
            }
            Effect::Child(_)
            | Effect::Turn(TurnEffect::AnswerCall { .. } | TurnEffect::CallModel { .. } | TurnEffect::EndExec { .. })
            | Effect::TimerCheck(TimerCheckEffect::End { .. })
            | Effect::Trigger(_) => None,
        }
    }

    /// The leftovers of an agent that is read from its records. A loop that lives never loses a command, so commands
    /// that are still held for an agent that is read anew belong to a call that was cut off: they are ended.
    #[must_use]
    pub fn collect_leftovers(&self, agent: &AgentId) -> BootContext {
        let mut ended: BTreeMap<TaskId, Vec<String>> = self.0.tasks.drop_all(agent);
        ended.extend(self.0.swept.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let mask = self.0.secrets.mask();
        ended.values_mut().for_each(|evidence| mask.mask_strings(evidence));
        BootContext { ended, occupied: self.0.folders.recorded_folder(agent), ..BootContext::default() }
    }

    /// Releases a folder that the agent still holds when it comes to rest: it has no turn and no command.
    pub fn release_at_rest(&self, agent: &AgentId) {
        if self.0.folders.held_folder(agent).is_none() {
            return;
        }
        self.0.folders.end_holds(agent);
        let (executor, agent) = (self.clone(), agent.clone());
        tokio::spawn(async move { executor.release_folders(&agent).await });
    }

    /// Drops the folders of an agent that was deleted.
    pub fn forget_agent(&self, agent: &AgentId) {
        self.0.known_folders.forget_agent(agent);
    }

    async fn run_tool(&self, run: &ToolRun, call: ExecutorCall) -> Result<ToolOutcome, Refusal> {
        match call {
            ExecutorCall::ExecCommand(call) => self.exec_command(run, call).await,
            ExecutorCall::TaskOutput(call) => self.task_output(run, call).await,
            ExecutorCall::TaskInput(call) => self.task_input(run, call).await,
            ExecutorCall::File(call) => self.file_tool(run, call).await,
            ExecutorCall::ReadSkill(call) => self.read_skill(run, call).await,
            ExecutorCall::WebFetch(call) => self.web_fetch(run, call).await,
            ExecutorCall::UseWorkspace(call) => self.use_workspace(run, call).await,
        }
    }

    fn new_task_id(&self) -> TaskId {
        let mut fresh = self.0.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, entropy) = (self.0.moment)();
        fresh.renew(now, entropy);
        fresh.task()
    }

    /// Where the output of a task is kept.
    fn output_folder(&self, agent: &AgentId, task: &TaskId) -> PathBuf {
        self.0.home.join("agents").join(agent.as_str()).join("tasks").join(task.as_str())
    }

    /// Deletes the output of the oldest tasks, to make room for one more, so that output never fills a disk. Ids sort
    /// by the time they were made. Folders that can't be removed are tried again with the next task.
    fn forget_old_output(&self, agent: &AgentId) {
        let folder = self.0.home.join("agents").join(agent.as_str()).join("tasks");
        let Ok(entries) = std::fs::read_dir(&folder) else { return };
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        let surplus = names.len().saturating_sub(limits::OUTPUTS_KEPT);
        for name in names.iter().take(surplus).filter(|name| !self.0.tasks.contains(agent, name)) {
            let _left = std::fs::remove_dir_all(folder.join(name));
        }
    }

    fn patches_folder(&self, agent: &AgentId) -> PathBuf {
        self.0.home.join("agents").join(agent.as_str()).join("patches")
    }

    /// The patches that were saved of an agent's worktrees.
    pub async fn list_patches(&self, agent: &AgentId) -> Result<Vec<workspace::PatchRecord>, Refusal> {
        let folder = self.patches_folder(agent);
        run_blocking(move || workspace::list_patches(&folder)).await
    }

    fn remove_worktree(
        &self,
        agent: &AgentId,
        bound: &abide_kernel::state::workspace::Workspace,
    ) -> Result<Removal, Refusal> {
        self.0.folders.release_folder(agent, Path::new(&bound.root));
        let Some(worktree) = &bound.worktree else {
            return Err(Refusal::new(ErrorCode::NoWorktree, format!("{} is no worktree", bound.root)));
        };
        let worktree = to_worktree(&bound.root, worktree);
        let unsaved = if bound.discard { UnsavedWork::Discard } else { UnsavedWork::Keep };
        let (patches, now) = (self.patches_folder(agent), (self.0.moment)().0);
        let removal = match self.0.repositories.remove_worktree(&worktree, unsaved, &patches, now) {
            Ok(removed) => Removal {
                patch: removed.patch.map(|patch| patch.display().to_string()),
                branches: removed.branches_kept,
                evidence: removed.evidence,
            },
            // The folder was removed before the process that removed it could say so, or by somebody else: it is gone.
            Err(refusal) if refusal.code == ErrorCode::Missing => {
                Removal { evidence: vec![refusal.message], ..Removal::default() }
            }
            Err(refusal) => {
                return Err(Refusal { message: format!("{}; {}", refusal.message, refusal.hint), ..refusal });
            }
        };
        self.0.known_folders.forget_folder(agent, Path::new(&bound.root));
        Ok(removal)
    }

    /// A hash of the content of the folder that an agent works in, to detect changes.
    pub async fn tree_hash(&self, place: ToolPlacement) -> Option<String> {
        let root = place.workspace?.root;
        let repositories = self.0.repositories.clone();
        run_blocking(move || repositories.tree_hash(&repositories.validate_recorded(Path::new(&root)).ok()?)).await
    }

    /// The bytes that an agent's worktrees, its own folder and the output of its tasks take on the disk. None if there
    /// are too many files to measure.
    pub async fn measure_disk_use(&self, agent: &AgentId) -> Option<u64> {
        let own = ["agents", WORKTREES].map(|folder| self.0.home.join(folder).join(agent.as_str()));
        run_blocking(move || own.iter().map(|folder| measure_folder(folder)).sum()).await
    }

    /// Fetches a branch of an agent's worktree, or the kept branches of its worktrees, into the user's repository.
    /// `folder` is the repository's folder if no worktree is bound any more.
    pub async fn fetch_branch(
        &self,
        agent: &AgentId,
        bound: Option<abide_kernel::state::workspace::Workspace>,
        folder: String,
        branch: Option<String>,
    ) -> Result<Vec<FetchedBranch>, Refusal> {
        let (repositories, agent) = (self.0.repositories.clone(), agent.clone());
        run_blocking(move || {
            let worktree = bound.as_ref().and_then(|bound| bound.worktree.as_ref());
            let repo = worktree.map_or(folder, |worktree| worktree.repo.clone());
            let root = bound.as_ref().filter(|bound| bound.worktree.is_some()).map(|bound| PathBuf::from(&bound.root));
            repositories.fetch(agent.as_str(), Path::new(&repo), root.as_deref(), branch.as_deref())
        })
        .await
    }
}

fn measure_folder(folder: &Path) -> Option<u64> {
    let (mut bytes, mut looked_at) = (0, 0_usize);
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            looked_at += 1;
            if looked_at > limits::WALK_ENTRIES {
                return None;
            }
            // Blocks of 512 bytes: a sparse file counts by its blocks, not by its length.
            bytes += found.blocks() * 512;
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Some(bytes)
}

/// A recorded worktree as `workspace` knows it.
fn to_worktree(root: &str, worktree: &abide_kernel::fact::Worktree) -> workspace::Worktree {
    workspace::Worktree {
        path: PathBuf::from(root),
        branch: worktree.branch.clone(),
        base_commit: worktree.base_commit.clone(),
        repo: PathBuf::from(&worktree.repo),
        notes: Vec::new(),
    }
}

fn tool_inputs(exec_id: ExecId, call_id: CallId, came_to: Result<ToolOutcome, Refusal>) -> Vec<Input> {
    match came_to {
        Ok(ToolOutcome { result, mut first, reads }) => {
            first.push(Input::FinishTool { exec_id, call_id, status: ToolStatus::Completed, result, reads });
            first
        }
        Err(refusal) => {
            let result = refusal.into_result();
            vec![Input::FinishTool { exec_id, call_id, status: ToolStatus::Failed, result, reads: None }]
        }
    }
}

/// Runs blocking work (a disk, another program) on a thread for it.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and so is the caller.
            Err(_) => std::future::pending().await,
        },
    }
}
