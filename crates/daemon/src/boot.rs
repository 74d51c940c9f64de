//! Booting a home: sweeps after whatever an earlier daemon left behind, in one order, and then the host. Start is recovery:
//! there is no other way to start.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_effects::executor::{ExecutorOptions, LeftWorktrees, ReconciledWorktree, recorded_folders};
use abide_effects::process::Bounds;
use abide_effects::{Executor, programs};
use abide_engine::{Clock, Deltas, Host};
use abide_kernel::config::{Choice, Config, ConfigChange, DefaultModels, Identity};
use abide_kernel::credentials::Credentials;
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::read_rows::WORKSPACE_PLANE;
use abide_kernel::vocabulary::AgentKind;
use abide_kernel::wake::HELD;
use abide_ledger::{Ledger, Upgraded};
use abide_private::{read_regular_text, write_private};
use abide_server::{Access, Hooks, Rate, fresh_token};

use crate::error::{Action, StartError};
use crate::home_budget::HomeBudget;
use crate::key_holds::KeyHolds;
use crate::notify::{self, Notifier};
use crate::open_files;
use crate::options::Options;
use crate::perform::{self, FollowedSettings};
use crate::policy_file::PolicyFile;
use crate::row_rebuild::RowRebuild;

/// The agent that a new home begins with.
pub const FIRST_AGENT: &str = "main";

/// A home whose agents run, before anybody outside can reach it.
pub(crate) struct Booted {
    pub host: Host,
    pub executor: Executor,
    pub hooks: Arc<Hooks>,
    pub policy: Arc<PolicyFile>,
    pub access: Access,
    pub deltas: Deltas,
    pub holds: KeyHolds,
    /// Whether the home had no agent before.
    pub is_new: bool,
    pub sweeps: Sweeps,
    pub notifier: Notifier,
    pub rebuild: RowRebuild,
}

/// The sweeps of a boot, in the order in which they were done, each with its duration.
#[derive(Default)]
pub(crate) struct Sweeps {
    pub done: Vec<(&'static str, Duration)>,
}

impl fmt::Debug for Sweeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.done.iter().map(|(name, took)| (name, took))).finish()
    }
}

impl Sweeps {
    fn record(&mut self, name: &'static str, began: Instant) {
        self.done.push((name, began.elapsed()));
    }
}

/// Sweeps, then starts the host, then reconciles worktrees with its records. Each sweep stands before the first step
/// that could meet what it clears away.
pub(crate) async fn boot(home: &Path, ledger: Ledger, token: &str, options: &Options) -> Result<Booted, StartError> {
    if let Some(Upgraded { from, to }) = ledger.upgraded() {
        tracing::info!(from, to, "upgraded the home to a newer format; older versions refuse it from now on");
    }
    let is_new = ledger.streams(None, 1).action(read_ledger)?.is_empty();
    let mut sweeps = Sweeps::default();

    // Before any program is looked up, by the policy or by the sandbox: none is run from a folder of an agent.
    let began = Instant::now();
    count_agent_folders(home, &ledger)?;
    sweeps.record("agent_folders", began);

    let policy = Arc::new(PolicyFile::start(home)?);
    let access = Access::read(ledger.clone(), token).action(|| "can't read the tokens of the home".to_owned())?;

    // Before any agent is read: it would take what still runs for what it may start.
    let began = Instant::now();
    let executor = start_executor(home, options).action(|| format!("can't prepare {} for commands", home.display()))?;
    sweeps.record("processes", began);

    // Before any agent makes another worktree.
    let began = Instant::now();
    let left_worktrees = executor.find_left_worktrees().await;
    sweeps.record("list_worktrees", began);

    let began = Instant::now();
    let hooks = Hooks::open(home, options.public_url.clone(), Rate::of(options.hook_rate));
    let hooks = Arc::new(hooks.action(|| "can't read what the home keeps for its triggers".to_owned())?);
    hooks.sweep(&ledger).action(read_ledger)?;
    sweeps.record("trigger_secrets", began);

    // Before any agent is awake: every fact from here on is followed.
    let since = ledger.end().action(read_ledger)?;
    let deltas = Deltas::default();
    let budget = HomeBudget::new(options.daily_micro_usd);
    budget.rebuild(&ledger, Clock::System.now()).action(read_ledger)?;
    let followed = FollowedSettings { models: &options.models, limits: options.limits, budget };
    let holds = KeyHolds::new(!ledger.wakes_because(HELD).action(read_ledger)?.is_empty());

    let began = Instant::now();
    let performer = perform::perform(&ledger, &executor, &hooks, &policy, followed, &deltas, &holds);
    let host = Host::start_with(ledger.clone(), performer, Clock::System, options.host);
    let host = host.action(|| "can't start the agents of the home".to_owned())?;
    sweeps.record("host", began);

    let began = Instant::now();
    let mut chosen = options.notify.clone();
    chosen.hidden.secrets = Some(executor.secrets().clone());
    let notifier = notify::start(home, &host, chosen, since)?;
    sweeps.record("notifications", began);

    let rebuild = RowRebuild::start(&ledger).action(|| "can't start a thread".to_owned())?;

    // After the host: the records of an agent say which worktrees are its own.
    let began = Instant::now();
    for left in left_worktrees {
        reconcile(&host, &executor, left).await;
    }
    sweeps.record("worktrees", began);

    first_agent(&host, &executor, options, is_new).await?;
    Ok(Booted { host, executor, hooks, policy, access, deltas, holds, is_new, sweeps, notifier, rebuild })
}

fn read_ledger() -> String {
    "can't read the ledger".to_owned()
}

/// Counts every folder that an agent of the home has or had as an agent's: no program in it is run. Folders that were
/// attached before such folders were recorded are in the ledger alone.
pub fn count_agent_folders(home: &Path, ledger: &Ledger) -> Result<(), StartError> {
    let home = home.canonicalize().action(|| format!("can't find {}", home.display()))?;
    let folders = ledger.row_ids(WORKSPACE_PLANE).action(read_ledger)?;
    if let Err(error) = programs::give_folders(&home, folders.into_iter().map(PathBuf::from)) {
        // They count all the same while this process lives; the next one reads them again.
        tracing::warn!(%error, "the folders of agents could not be recorded in {}", home.display());
    }
    Ok(())
}

/// Whatever an earlier daemon of this home left running has ended when this returns.
fn start_executor(home: &Path, options: &Options) -> std::io::Result<Executor> {
    let moment = || (Clock::System.now(), Clock::System.entropy());
    // The running program, also when another has taken its place on disk.
    let program = Path::new("/proc/self/exe").to_path_buf();
    let sandbox = options.sandbox;
    let bounds = Bounds { open_files: open_files::soft_for_programs(), ..options.bounds };
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let is_hidden = |name: &String| options.hidden_variables.contains(name);
    let environment = std::env::vars_os().filter_map(text).filter(|(name, _)| !is_hidden(name)).collect();
    let home = home.to_path_buf();
    let executor = Executor::new(ExecutorOptions { program, home, sandbox, bounds, environment, moment })?;
    let found = executor.sandbox();
    let mechanism = found.mechanism().as_str();
    match found.problems() {
        [] => tracing::debug!(mechanism, "commands are confined"),
        problems => tracing::warn!(mechanism, ?problems, "the sandbox is not all it could be"),
    }
    Ok(executor)
}

/// Saves and removes worktrees that were made at the moment of a crash, and warns of those that are gone.
async fn reconcile(host: &Host, executor: &Executor, left: LeftWorktrees) {
    let agent = left.agent.clone();
    let known = match host.look(&agent, |state, _| recorded_folders(state)).await {
        Ok(known) => known.unwrap_or_default(),
        Err(error) => {
            // Nobody knows which of them are its own.
            tracing::warn!(%agent, %error, "worktrees are left as they are");
            return;
        }
    };
    for reconciled in executor.reconcile_worktrees(left, known).await {
        match reconciled {
            ReconciledWorktree::Cleared { folder, removed } => {
                let (folder, patch) = (folder.display(), removed.patch.map(|patch| patch.display().to_string()));
                let (branches, evidence) = (removed.branches_kept, removed.evidence);
                tracing::info!(%agent, %folder, patch, ?branches, ?evidence, "removed a worktree that was not recorded");
            }
            ReconciledWorktree::Kept { folder, why } => {
                let (folder, why, hint) = (folder.display(), why.message, why.hint);
                tracing::warn!(%agent, %folder, why, hint, "kept a worktree that was not recorded");
            }
            ReconciledWorktree::Missing { folder } => {
                tracing::warn!(%agent, folder = %folder.display(), "a worktree's folder is gone");
            }
        }
    }
}

/// A new home gets its first agent. Another home starts also if its default model can't be used: its agents may have
/// others, and this one may be mended.
async fn first_agent(host: &Host, executor: &Executor, options: &Options, is_new: bool) -> Result<(), StartError> {
    let model = &options.models.default.name;
    match options.models.check(model) {
        Ok(()) if is_new => {
            create_first_agent(host, options.models.defaults(), first_credentials(executor, options)).await
        }
        Ok(()) => Ok(()),
        Err(problem) if is_new => Err(StartError::Setting(format!("{}: {problem}", options.model_origin))),
        Err(problem) => {
            tracing::warn!(%model, problem, "new agents can't use the default model");
            Ok(())
        }
    }
}

/// The credentials of the settings, or none if they can't be given yet: a secret may be set once the daemon is up.
fn first_credentials(executor: &Executor, options: &Options) -> Credentials {
    match executor.check_credentials(&options.credentials) {
        Ok(()) => options.credentials.clone(),
        Err(misfit) => {
            let problem = misfit.refusal.message;
            tracing::warn!(problem, "{FIRST_AGENT} is made without what the settings give to agents");
            Credentials::default()
        }
    }
}

async fn create_first_agent(host: &Host, models: DefaultModels, credentials: Credentials) -> Result<(), StartError> {
    let create = || "can't create the first agent".to_owned();
    let id = AgentId::new(FIRST_AGENT).action(create)?;
    let identity = Identity { kind: AgentKind::Default, ..Identity::named(id.clone()) };
    let (model, fallback) = (Choice::Default(models.model), Choice::Default(models.fallback));
    let models = ConfigChange { model: Some(model), fallback: Some(fallback), ..ConfigChange::default() };
    let config = Config { credentials, ..Config::default() }.with(models);
    host.ask(&id, Input::Create { identity, config, start: true }).await.action(create)?;
    Ok(())
}

/// The admin token of the home, made on the first start.
pub(crate) fn admin_token(home: &Path) -> Result<String, StartError> {
    let path = home.join("token");
    match read_regular_text(&path) {
        Ok(token) if token.trim().len() >= 16 => return Ok(token.trim().to_owned()),
        Ok(_) => return Err(StartError::NoToken(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).action(|| format!("can't read {}", path.display())),
    }
    let token = fresh_token().action(|| "the system gives no randomness".to_owned())?;
    // Whole or not at all: half a token would lock everybody out.
    write_private(&path, format!("{token}\n").as_bytes()).action(|| format!("can't write {}", path.display()))?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use abide_api::types::DefaultModel;
    use abide_effects::sandbox::Mode;
    use abide_engine::{HostOptions, PROGRAM};
    use abide_kernel::config::AgentLimits;
    use abide_server::{ReadWorkspaceSettings, WorkspaceSettings};

    use super::*;
    use crate::models::{ECHO, Models};
    use crate::notify::{Hidden, NotifyOptions};

    fn options(model: &str) -> Options {
        let (name, origin) = (model.to_owned(), "default".to_owned());
        let default = DefaultModel { name, origin, note: None, fallback: Vec::new() };
        let hidden = Hidden::default();
        Options {
            listen: ([127, 0, 0, 1], 0).into(),
            models: Arc::new(Models { providers: Arc::default(), default, is_chosen: false }),
            model_origin: "the setting model".to_owned(),
            sandbox: Mode::Auto,
            bounds: Bounds::default(),
            limits: AgentLimits::default(),
            credentials: Credentials::default(),
            hidden_variables: Vec::new(),
            daily_micro_usd: 0,
            host: HostOptions::default(),
            shutdown_grace: Duration::ZERO,
            notify: NotifyOptions { command: None, webhook: None, on: Vec::new(), hidden },
            public_url: None,
            hook_rate: 1,
            workspace_settings: ReadWorkspaceSettings::new(|_| Ok(WorkspaceSettings::default())),
            workspace_roots: Vec::new(),
            config_digest: String::new(),
        }
    }

    async fn boot_home(home: &Path, model: &str) -> Result<Booted, StartError> {
        let ledger = Ledger::open(home, abide_ledger::Options::default().by(PROGRAM)).unwrap();
        boot(home, ledger, "a token of the home", &options(model)).await
    }

    /// A later step would meet what an earlier sweep clears away, so the order is part of the behaviour.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_home_is_swept_in_order_before_its_agents_run() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        // The secret of a trigger that no agent has.
        fs::create_dir(home.join("triggers")).unwrap();
        let secret = home.join("triggers/trig_0190aaaa-0000-7000-8000-000000000000");
        fs::write(&secret, br#"{"agent_id":"main","secret":"long enough"}"#).unwrap();
        let booted = boot_home(home, ECHO).await.unwrap();
        let order: Vec<&str> = booted.sweeps.done.iter().map(|(name, _)| *name).collect();
        let expected =
            ["agent_folders", "processes", "list_worktrees", "trigger_secrets", "host", "notifications", "worktrees"];
        assert_eq!(order, expected);
        assert!(!secret.exists());
        assert!(booted.is_new);
        let first = booted.host.look(&AgentId::new(FIRST_AGENT).unwrap(), |state, _| state.seq).await;
        assert!(first.unwrap().is_some_and(|seq| seq > 0));
        booted.host.shutdown(Duration::ZERO, "test").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_new_home_needs_a_model_that_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let Err(StartError::Setting(problem)) = boot_home(folder.path(), "anthropic/claude").await else {
            panic!("it booted without a key");
        };
        assert!(problem.starts_with("the setting model: anthropic needs a key"), "{problem}");
    }
}
