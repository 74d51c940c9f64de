//! `abide up`: the daemon in the foreground. It opens the home, serves it until it is told to end, and leaves nothing
//! running and nothing half written.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use abide_effects::Hands;
use abide_effects::hands::{Left, Reconciled, Setup, recorded};
use abide_effects::process::Bounds;
use abide_effects::sandbox::Mode;
use abide_engine::{Clock, Deltas, Host, HostOptions};
use abide_kernel::agent::config::{AgentLimits, Choice, Config, ConfigChange, DefaultModels, Identity};
use abide_kernel::agent::credentials::Credentials;
use abide_kernel::id::AgentId;
use abide_kernel::input::Input;
use abide_kernel::vocabulary::AgentKind;
use abide_kernel::wake::HELD;
use abide_ledger::{Ledger, Upgraded};
use abide_private::{is_open_to_others, private_folder, read_regular_text, write_private};
use abide_server::{Access, App, Hooks, Limits, Options, Rate, ReadWorkspaceSettings, Server, fresh_token};
use anyhow::Context;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::mind::holds::{self, Holds};
use crate::mind::home_budget::HomeBudget;
use crate::models::Models;
use crate::output::{Failed, Output};
use crate::outside::Outside;
use crate::perform::Followed;
use crate::policy::Watched;
use crate::roots::Roots;
use crate::row_rebuild::RowRebuild;
use crate::{disks, home, logs, memory, mirrors, notify, open_files, perform};

/// The agent that a new home begins with.
pub const FIRST_AGENT: &str = "main";

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct Daemon {
    pub listen: SocketAddr,
    pub models: Arc<Models>,
    /// Where the default model was chosen, for whoever has to mend it.
    pub model_place: String,
    pub sandbox: Mode,
    /// How much of the machine commands may have.
    pub bounds: Bounds,
    /// The limits of every agent, past which it waits or a person is asked.
    pub limits: AgentLimits,
    /// What the commands of agents are given that a person makes.
    pub credentials: Credentials,
    /// Variables of our environment that are no agent's business: the keys of models.
    pub hidden: Vec<String>,
    /// The spending limit of all agents together for a day, in millionths of a dollar; zero is no limit.
    pub daily_micro_usd: u64,
    pub host: HostOptions,
    pub grace: Duration,
    pub notify: notify::Chosen,
    /// Where the outside reaches the URLs of triggers, if not where it listens.
    pub public_url: Option<String>,
    /// Deliveries that each trigger takes in a second.
    pub hook_rate: u32,
    /// What `abide.toml` of a workspace sets for agents that are made there.
    pub workspace_settings: ReadWorkspaceSettings,
    /// The folders below which agents may work, as the setting names them.
    pub workspace_roots: Vec<String>,
    /// Which config.toml the settings were read from.
    pub config_digest: String,
}

pub fn run(home: &Path, ledger: Ledger, daemon: &Daemon, out: &Output) -> anyhow::Result<()> {
    // What commands wrote is there, for as long as the ledger speaks of it.
    let agents = home.join("agents");
    private_folder(&agents).with_context(|| format!("can't keep {} to ourselves", agents.display()))?;
    if is_open_to_others(home).unwrap_or(false) {
        let hint = format!("chmod 700 {}", home.display());
        tracing::warn!(home = %home.display(), hint, "other users of this machine can look into the home");
    }
    let token = admin_token(home)?;
    let limits = Limits::for_open_files(open_files::raise());
    tracing::debug!(connections = limits.connections, "connections leave room for other open files");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Requests have threads of their own: however many agents are at work, the kernel gives each thread its share.
    let requests =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("requests").enable_all().build()?;
    let served = runtime.block_on(serve(home, ledger, &token, limits, daemon, out, requests.handle()));
    requests.shutdown_timeout(Duration::from_millis(200));
    // Nothing is left that anybody waits for: what still runs are reads that nobody will see.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

async fn serve(
    home: &Path,
    ledger: Ledger,
    token: &str,
    limits: Limits,
    daemon: &Daemon,
    out: &Output,
    requests: &Handle,
) -> anyhow::Result<()> {
    // Asked for first, so that no signal falls into the gap before.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // By default this signal ends the process where a file would outgrow a limit on its size. Handled, the write fails
    // instead, as it does on a full disk.
    let _file_too_large = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
    if let Some(Upgraded { from, to }) = ledger.upgraded() {
        tracing::info!(from, to, "upgraded the home to a newer format; older versions refuse it from now on");
    }
    let empty = ledger.streams(None, 1)?.is_empty();
    // Before any program is looked up, by the policy's watcher or by the sandbox.
    home::count_agent_folders(home, &ledger)?;
    let policy = Arc::new(Watched::start(home)?);
    let access = Access::read(ledger.clone(), token)?;
    let hands = hands(home, daemon).with_context(|| format!("can't prepare {} for commands", home.display()))?;
    let left = hands.left_worktrees().await;
    let hooks = Hooks::open(home, daemon.public_url.clone(), Rate::of(daemon.hook_rate));
    let hooks = Arc::new(hooks.context("can't read what the home keeps for its triggers")?);
    hooks.sweep(&ledger)?;
    // Before any agent is awake: nothing that happens from here on may be missed.
    let since = ledger.end()?;
    let deltas = Deltas::default();
    let budget = HomeBudget::new(daemon.daily_micro_usd);
    budget.rebuild(&ledger, Clock::System.now())?;
    let followed = Followed { models: &daemon.models, limits: daemon.limits, budget };
    let holds = Holds::new(!ledger.wakes_because(HELD)?.is_empty());
    let performer = perform::perform(&ledger, &hands, &hooks, &policy, followed, &deltas, &holds);
    let host = Host::start_with(ledger.clone(), performer, Clock::System, daemon.host)?;
    let mut chosen = daemon.notify.clone();
    chosen.hidden.secrets = Some(hands.secrets().clone());
    let notifier = notify::start(home, &host, chosen, since)?;
    let rebuild = RowRebuild::start(&ledger).context("can't start a thread")?;
    let disks = tokio::spawn(disks::tell(host.clone(), hands.clone()));
    // All end when the daemon shuts down.
    let memory = tokio::spawn(memory::give_back());
    let upkeep = tokio::spawn(mirrors::tidy(hands.clone()));
    let releases = tokio::spawn(holds::release(host.clone(), holds.clone()));
    for left in left {
        reconcile(&host, &hands, left).await;
    }
    let model = &daemon.models.default.name;
    match daemon.models.check(model) {
        Ok(()) if empty => create_first(&host, daemon.models.defaults(), first_credentials(&hands, daemon)).await?,
        Ok(()) => {}
        Err(problem) if empty => return Err(Failed::Usage(format!("{}: {problem}", daemon.model_place)).into()),
        // Other agents may think with other models, and this one may be mended.
        Err(problem) => tracing::warn!(%model, problem, "new agents could not think with the default model"),
    }
    let (checked, priced) = (Arc::clone(&daemon.models), Arc::clone(&daemon.models));
    let roots = Roots::new(&daemon.workspace_roots, hands.person());
    let options = Options {
        limits,
        models: daemon.models.defaults(),
        credentials: daemon.credentials.clone(),
        check_model: Box::new(move |name| checked.check(name)),
        check_price: Box::new(move |name| priced.check_price(name)),
        workspace_settings: daemon.workspace_settings.clone(),
        world: Arc::new(Outside { hands, policy, models: Arc::clone(&daemon.models), roots, holds }),
        hooks: Arc::clone(&hooks),
        deltas,
        log_lines_lost: logs::lost_lines,
        loopback: daemon.listen.ip().is_loopback(),
    };
    let app = App::new(host.clone(), access, options);
    let server = {
        let _where_it_listens = requests.enter();
        Server::bind(daemon.listen, Arc::clone(&app))
    };
    let server = server.with_context(|| format!("can't listen on {}", daemon.listen))?;
    let url = format!("http://{}", server.address()?);
    hooks.listens_at(&url);
    let notice = Notice::post(home, &url, &daemon.config_digest)?;
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    let serving = requests.spawn(server.serve(async {
        // Dropped or sent, it means the same.
        let _told = closed.await;
    }));
    let ready = json!({ "event": "ready", "url": url, "pid": std::process::id() });
    tell(out, &ready, || welcome(&url, home, &daemon.models, empty));

    let first = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = first, "shutting down");
    app.close();
    disks.abort();
    memory.abort();
    upkeep.abort();
    releases.abort();
    let ending = async {
        host.shutdown(daemon.grace, first).await;
        drop(close);
        // The server only ends; it has no other outcome.
        let _ended = serving.await;
    };
    let second = tokio::select! {
        () = ending => None,
        _ = terminate.recv() => Some(143),
        _ = interrupt.recv() => Some(130),
    };
    if second.is_some() {
        // Turns are not waited for any more, but recorded as given back: a moment, unless the disk is slow or full.
        tokio::select! {
            () = host.shutdown(Duration::ZERO, "second_signal") => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    drop(notice);
    drop(notifier);
    drop(rebuild);
    tell(out, &json!({ "event": "stopped" }), || "abide has stopped\n".to_owned());
    if let Some(code) = second {
        // Whoever asks twice does not want to wait for anything else. What was answered is durable.
        std::process::exit(code);
    }
    Ok(())
}

/// A daemon does not end because nobody can be told that it began: its output may be on a full disk.
fn tell(out: &Output, event: &Value, text: impl FnOnce() -> String) {
    if let Err(error) = out.result(event, text) {
        tracing::warn!(error = format!("{error:#}"), "the standard output can't be written");
    }
}

/// Whatever an earlier life of this home left running is ended before any agent is read.
fn hands(home: &Path, daemon: &Daemon) -> anyhow::Result<Hands> {
    let moment = || (Clock::System.now(), Clock::System.entropy());
    // The running program, also when another has taken its place on disk.
    let program = Path::new("/proc/self/exe").to_path_buf();
    let sandbox = daemon.sandbox;
    let bounds = Bounds { open_files: open_files::soft_for_programs(), ..daemon.bounds };
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let environment = std::env::vars_os().filter_map(text).filter(|(name, _)| !daemon.hidden.contains(name)).collect();
    let home = home.to_path_buf();
    let hands = Hands::new(Setup { program, home, sandbox, bounds, environment, moment })?;
    let found = hands.sandbox();
    let mechanism = found.mechanism().as_str();
    match found.problems() {
        [] => tracing::debug!(mechanism, "commands are confined"),
        problems => tracing::warn!(mechanism, ?problems, "the sandbox is not all it could be"),
    }
    Ok(hands)
}

/// Worktrees that were made in the moment of a crash are saved and cleared away; those that are gone are told.
async fn reconcile(host: &Host, hands: &Hands, left: Left) {
    let agent = left.agent.clone();
    let known = match host.look(&agent, |state, _| recorded(state)).await {
        Ok(known) => known.unwrap_or_default(),
        Err(error) => {
            // Which of them are its own is not known.
            tracing::warn!(%agent, %error, "worktrees are left as they are");
            return;
        }
    };
    for reconciled in hands.reconcile(left, known).await {
        match reconciled {
            Reconciled::Cleared { folder, removed } => {
                let (folder, patch) = (folder.display(), removed.patch.map(|patch| patch.display().to_string()));
                let (branches, evidence) = (removed.branches_kept, removed.evidence);
                tracing::info!(%agent, %folder, patch, ?branches, ?evidence, "cleared away a worktree nobody recorded");
            }
            Reconciled::Kept { folder, why } => {
                let (folder, why, hint) = (folder.display(), why.message, why.hint);
                tracing::warn!(%agent, %folder, why, hint, "kept a worktree nobody recorded");
            }
            Reconciled::Missing { folder } => {
                tracing::warn!(%agent, folder = %folder.display(), "a worktree's folder is gone");
            }
        }
    }
}

/// Those of the settings. What can't be given yet, such as a secret that is to be set when the daemon is up, keeps no home
/// from having its first agent.
fn first_credentials(hands: &Hands, daemon: &Daemon) -> Credentials {
    match hands.check_credentials(&daemon.credentials) {
        Ok(()) => daemon.credentials.clone(),
        Err(misfit) => {
            let problem = misfit.refusal.message;
            tracing::warn!(problem, "{FIRST_AGENT} is made without what the settings give to agents");
            Credentials::default()
        }
    }
}

async fn create_first(host: &Host, models: DefaultModels, credentials: Credentials) -> anyhow::Result<()> {
    let id = AgentId::new(FIRST_AGENT)?;
    let identity = Identity { kind: AgentKind::Default, ..Identity::named(id.clone()) };
    let (model, fallback) = (Choice::Default(models.model), Choice::Default(models.fallback));
    let models = ConfigChange { model: Some(model), fallback: Some(fallback), ..ConfigChange::default() };
    let config = Config { credentials, ..Config::default() }.with(models);
    host.ask(&id, Input::Create { identity, config, start: true }).await.context("can't create the first agent")?;
    Ok(())
}

fn welcome(url: &str, home: &Path, models: &Models, first: bool) -> String {
    let mut text = format!("abide is up at {url}, home {}\n", home.display());
    if let Some(note) = &models.default.note {
        text.push_str(&format!("{note}\n"));
    }
    if first {
        text.push_str(&format!("try, in another terminal:  abide send {FIRST_AGENT} --wait \"hello\"\n"));
    }
    text.push_str("Ctrl-C ends it; agents go on where they were when it is back\n");
    text
}

/// The token of the home, made on the first start.
fn admin_token(home: &Path) -> anyhow::Result<String> {
    let path = home.join("token");
    match read_regular_text(&path) {
        Ok(token) if token.trim().len() >= 16 => return Ok(token.trim().to_owned()),
        Ok(_) => anyhow::bail!("{} holds no token; remove it, and a new one is made", path.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    }
    let token = fresh_token().context("the system gives no randomness")?;
    // Whole or not at all: half a token would lock everybody out.
    write_private(&path, format!("{token}\n").as_bytes()).with_context(|| format!("can't write {}", path.display()))?;
    Ok(token)
}

/// `daemon.json`: where this home is served. Gone when the daemon is.
struct Notice<'a>(&'a Path);

impl Notice<'_> {
    fn post<'a>(home: &'a Path, url: &str, config: &str) -> anyhow::Result<Notice<'a>> {
        // Commands send the home's token to the URL that stands here: nobody else may write it.
        let notice = json!({ "url": url, "pid": std::process::id(), "config_digest": config });
        let path = home.join("daemon.json");
        write_private(&path, notice.to_string().as_bytes())
            .with_context(|| format!("can't write {}", path.display()))?;
        Ok(Notice(home))
    }
}

impl Drop for Notice<'_> {
    fn drop(&mut self) {
        // A notice that stays names a process that is gone; readers check.
        let _left = fs::remove_file(self.0.join("daemon.json"));
    }
}
