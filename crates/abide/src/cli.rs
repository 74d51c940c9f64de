//! The words of the command line. Names here are a contract: add to them, do not rename.

use std::path::PathBuf;
use std::time::Duration;

use abide_api::types::{CatchUp, DeliveryMode, PlanStatus, PostKind, Priority, Role, Scope};
use abide_engine::upkeep::OLDER_THAN_DAYS;
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::limits::TIMER_EVERY_MIN_MS;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::WorkItemFilter;
use clap::{Args, Parser, Subcommand};

use crate::budget::{BudgetArgs, LimitArgs};
use crate::span;

#[derive(Debug, Parser)]
#[command(
    name = "abide",
    version,
    about = "A runtime for AI agents that stay",
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print one JSON document on stdout (streams: one a line), and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    /// In a session of its own, so that no terminal ends it: how `daemon start` starts `up`
    #[arg(long, hide = true)]
    pub detached: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// Where things are: a home, and the daemon that serves it or another one.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The folder that holds everything [default: $ABIDE_HOME, else $XDG_DATA_HOME/abide]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Talk to the daemon at this address [default: $ABIDE_URL, else the one that serves the home]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// What it knows us by [default: $ABIDE_TOKEN, else the home's token]
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, see, start, stop and delete agents
    #[command(subcommand, arg_required_else_help = true)]
    Agent(AgentCommand),
    /// Send an agent a message
    Send(SendArgs),
    /// What an agent does or waits for, which facts say so, what would wake it
    Why(WhyArgs),
    /// What happens, as it happens
    Watch(WatchArgs),
    /// What was said and done
    Transcript(LastArgs),
    /// What an agent told you
    Briefs(LastArgs),
    /// Goals that an agent works on
    #[command(subcommand, arg_required_else_help = true)]
    Work(WorkCommand),
    /// Commands and children that an agent runs
    #[command(subcommand, arg_required_else_help = true)]
    Task(TaskCommand),
    /// Schedules that wake an agent
    #[command(subcommand, arg_required_else_help = true)]
    Timer(TimerCommand),
    /// What an agent waits for
    #[command(subcommand, arg_required_else_help = true)]
    Wait(WaitCommand),
    /// Ways in from outside
    #[command(subcommand, arg_required_else_help = true)]
    Trigger(TriggerCommand),
    /// Folders that an agent works in
    #[command(subcommand, arg_required_else_help = true)]
    Workspace(WorkspaceCommand),
    /// Questions that an agent asked
    #[command(subcommand, arg_required_else_help = true)]
    Approval(ApprovalCommand),
    /// The daemon in the foreground, with everything in the home
    Up(UpArgs),
    /// The daemon in the background
    #[command(subcommand, arg_required_else_help = true)]
    Daemon(DaemonCommand),
    /// Look after the ledger: the one place where everything is
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
    /// Settings, and where each came from
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// What agents can think with
    #[command(subcommand, arg_required_else_help = true)]
    Model(ModelCommand),
    /// Who may talk to the daemon
    #[command(subcommand, arg_required_else_help = true)]
    Token(TokenCommand),
    /// Check that everything is in order, and say what to do where it is not
    Doctor,
    /// Print a script that completes these words in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What the daemon is started with; each of them outranks the environment and config.toml.
#[derive(Debug, Default, Args)]
pub struct UpArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Where the ledger is kept: sqlite, in the home
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// What agents think with unless they say otherwise: PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Make an agent, and start it
    Create(CreateArgs),
    /// All agents
    List,
    /// The whole picture of one agent
    Show {
        /// The agent
        id: AgentId,
    },
    /// Change what it thinks with, where it works, what it may reach and use, and what it always knows
    Set(SetArgs),
    /// Hand it to the scheduler
    Start {
        /// The agent
        id: AgentId,
    },
    /// Stop it; messages are kept, and it can be started again
    Stop {
        /// The agent
        id: AgentId,
    },
    /// End what it is doing right now; the agent goes on
    Abort {
        /// The agent
        id: AgentId,
        /// Only this execution; another one that runs by then is left alone
        #[arg(long, value_name = "EXEC")]
        exec: Option<String>,
    },
    /// Archive a stopped agent; its id is not used again
    Delete {
        /// The agent
        id: AgentId,
    },
    /// Deprecated: start
    #[command(hide = true)]
    Resume {
        /// The agent
        id: AgentId,
    },
    /// Deprecated: stop
    #[command(hide = true)]
    Pause {
        /// The agent
        id: AgentId,
    },
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name: 1 to 64 of a-z, 0-9, '.', '_' and '-'
    pub id: AgentId,
    /// What it thinks with: PROVIDER/MODEL [default: the daemon's]
    #[arg(long, value_name = "MODEL", value_parser = crate::config::model)]
    pub model: Option<String>,
    /// The folder it works in
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// What it is for
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Option<Role>,
    /// What it should always know, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    /// Let it reach the network
    #[arg(long)]
    pub network: bool,
    #[command(flatten)]
    pub budget: BudgetArgs,
    /// Leave it stopped
    #[arg(long)]
    pub no_start: bool,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// The agent
    pub id: AgentId,
    /// What it thinks with: PROVIDER/MODEL
    #[arg(long, value_name = "MODEL", value_parser = crate::config::model)]
    pub model: Option<String>,
    /// The folder it works in, from its next command on
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Whether it may reach the network: on or off
    #[arg(long, value_name = "on|off", value_parser = switch)]
    pub network: Option<bool>,
    /// What it should always know, from this file; - reads stdin, and an empty one takes away what was there
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,
    #[command(flatten)]
    pub budget: BudgetArgs,
}

#[derive(Debug, Args)]
pub struct SendArgs {
    /// The agent
    pub id: AgentId,
    /// What to say; - reads stdin
    pub text: String,
    /// A PNG, JPEG, GIF or WebP to send with it; may be said several times
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// Wait for the answer and print it; exits 4 when the agent waits for a person instead, 5 when its budget is spent
    #[arg(long)]
    pub wait: bool,
    /// How long to wait: 30, 30s, 5m
    #[arg(long, value_name = "S", requires = "wait", value_parser = span::seconds)]
    pub timeout: Option<Duration>,
    /// interject joins a running turn; next, normal and background are queued
    #[arg(long, value_name = "P", value_parser = priority)]
    pub priority: Option<Priority>,
    /// operator_prompt, channel_event, webhook_event or callback_event
    #[arg(long, value_name = "K", value_parser = post_kind)]
    pub kind: Option<PostKind>,
}

#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The agent; all of them, a line each, where none is named
    pub id: Option<AgentId>,
    /// As it was right after this fact
    #[arg(long, value_name = "SEQ", requires = "id", value_parser = seq, allow_negative_numbers = true)]
    pub at: Option<Seq>,
    /// Write its records into this folder too, so that anybody can replay them
    #[arg(long, value_name = "DIR", requires = "id", conflicts_with = "at")]
    pub export: Option<PathBuf>,
    /// Explain the agent in this folder of records: an agent.json and ledger/*.jsonl
    #[arg(long, value_name = "DIR", conflicts_with_all = ["id", "at", "export"])]
    pub fixture: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The agent; all of them where none is named
    pub id: Option<AgentId>,
    /// Begin after this fact; where no agent is named, after this cursor
    #[arg(long, value_name = "SEQ")]
    pub after: Option<String>,
}

#[derive(Debug, Args)]
pub struct LastArgs {
    /// The agent
    pub id: AgentId,
    /// Only the newest so many
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
}

/// The plane of one agent.
#[derive(Debug, Args)]
pub struct OfAgent {
    /// The agent
    #[arg(long, value_name = "ID")]
    pub agent: AgentId,
}

#[derive(Debug, Subcommand)]
pub enum WorkCommand {
    /// All of them, newest last
    List {
        #[command(flatten)]
        of: OfAgent,
        /// Only these: open, completed, current, queued, blocked or waiting
        #[arg(long, value_name = "WHICH", value_parser = work_filter)]
        filter: Option<WorkItemFilter>,
    },
    /// One of them, with its plan, todo list and report
    Show(OneItem),
    /// Give the agent something to work on
    Create(WorkCreateArgs),
    /// Give one the focus
    Pick(OneItem),
    /// Change what is said of one; what is left out stays
    Update(WorkUpdateArgs),
    /// Say what keeps one from going on
    Block {
        #[command(flatten)]
        one: OneItem,
        /// What keeps it from going on
        #[arg(long, value_name = "TEXT")]
        by: String,
        /// Remind the agent of it after this long: 30s, 5m, 2h, 1d
        #[arg(long, value_name = "DURATION", value_parser = span::duration)]
        recheck: Option<Duration>,
    },
    /// Say that its objective is reached; it can't be reopened
    Complete {
        #[command(flatten)]
        one: OneItem,
        /// What was done, and how one knows that it works; - reads stdin
        #[arg(long, value_name = "TEXT")]
        report: String,
    },
}

#[derive(Debug, Args)]
pub struct OneItem {
    #[command(flatten)]
    pub of: OfAgent,
    /// The work item, or the end of its id
    pub item: String,
}

#[derive(Debug, Args)]
pub struct WorkCreateArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// What is to be reached, in one line
    pub objective: String,
    /// How, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// draft, ready, or needs_input: a person has to say something first
    #[arg(long, value_name = "STATUS", value_parser = plan_status)]
    pub plan_status: Option<PlanStatus>,
    /// An entry of its todo list; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub todo: Vec<String>,
    #[command(flatten)]
    pub budget: LimitArgs,
}

#[derive(Debug, Args)]
pub struct WorkUpdateArgs {
    #[command(flatten)]
    pub one: OneItem,
    /// What is to be reached, in one line
    #[arg(long, value_name = "TEXT")]
    pub objective: Option<String>,
    /// How, from this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// draft, ready, or needs_input: a person has to say something first
    #[arg(long, value_name = "STATUS", value_parser = plan_status)]
    pub plan_status: Option<PlanStatus>,
    /// Add an entry to its todo list; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub todo: Vec<String>,
    /// This entry of its todo list is done, counted from 1; may be repeated
    #[arg(long, value_name = "N")]
    pub done: Vec<usize>,
    /// This entry is what is worked on
    #[arg(long, value_name = "N")]
    pub doing: Option<usize>,
    /// Nothing blocks it any more
    #[arg(long)]
    pub unblock: bool,
    #[command(flatten)]
    pub budget: LimitArgs,
}

#[derive(Debug, Subcommand)]
pub enum ApprovalCommand {
    /// All of them, newest last
    List(OfAgent),
    /// Say yes
    Grant(OneApproval),
    /// Say no
    Deny(OneApproval),
}

#[derive(Debug, Args)]
pub struct OneApproval {
    #[command(flatten)]
    pub of: OfAgent,
    /// The approval, or the end of its id
    pub approval: String,
}

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// All of them, newest last
    List(OfAgent),
    /// One of them
    Show(OneTask),
    /// What it wrote
    Output {
        #[command(flatten)]
        task: OneTask,
        /// From this byte on, instead of the newest
        #[arg(long, value_name = "BYTE")]
        offset: Option<u64>,
        /// Go on as it writes, until it ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Write to it, if it accepts input
    Input {
        #[command(flatten)]
        task: OneTask,
        /// What to write, with a line end; - reads stdin and adds none
        text: String,
        /// Nothing comes after it: the task reads the end of its input
        #[arg(long)]
        close: bool,
    },
    /// Ask it to end, with everything it started; the second time it is forced
    Stop(OneTask),
    /// Run a command in the agent's workspace
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub struct OneTask {
    #[command(flatten)]
    pub of: OfAgent,
    /// The task, or the end of its id
    pub task: String,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// The command, for a shell; several words are joined, and what begins with - goes after --
    #[arg(required = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// Where, below the workspace
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// On a terminal of its own
    #[arg(long)]
    pub tty: bool,
    /// Let `task input` write to it
    #[arg(long)]
    pub accepts_input: bool,
    /// Print what it writes until it ends, and exit 1 if it fails
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// All that are or were attached
    List(OfAgent),
    /// Bind a folder, and have the agent work there
    Attach {
        #[command(flatten)]
        of: OfAgent,
        /// The folder
        path: PathBuf,
        /// In a new git worktree of it
        #[arg(long)]
        worktree: bool,
    },
    /// End a binding; files stay, and what is not committed in a worktree is saved as a patch before it goes
    Detach {
        #[command(flatten)]
        of: OfAgent,
        /// The folder, or the root of a worktree
        path: PathBuf,
    },
    /// What was saved of worktrees that went
    Patches(OfAgent),
}

#[derive(Debug, Subcommand)]
pub enum TimerCommand {
    /// Make a timer
    Create(TimerArgs),
    /// All of them, newest last
    List(OfAgent),
    /// One of them, and when it fires next
    Show {
        #[command(flatten)]
        of: OfAgent,
        /// The timer, or the end of its id
        timer: String,
    },
    /// End one
    Cancel {
        #[command(flatten)]
        of: OfAgent,
        /// The timer, or the end of its id
        timer: String,
    },
}

#[derive(Debug, Args)]
#[group(id = "when", required = true, multiple = false, args = ["after", "at", "every", "cron"])]
pub struct TimerArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// What the agent is told when it fires
    pub summary: String,
    /// Once, after this long: 500ms, 30s, 5m, 2h, 1d
    #[arg(long = "in", id = "after", value_name = "DURATION", value_parser = span::duration)]
    pub after: Option<Duration>,
    /// Once, at this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = time)]
    pub at: Option<Time>,
    /// Again and again, this far apart: 100ms or more
    #[arg(long, value_name = "DURATION", value_parser = every)]
    pub every: Option<Duration>,
    /// By the calendar: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "FIELDS")]
    pub cron: Option<String>,
    /// Whose clocks --cron is read off, such as Europe/Berlin; UTC where it is left out
    #[arg(long, value_name = "ZONE", requires = "cron")]
    pub time_zone: Option<String>,
    /// What becomes of occurrences that were missed: latest, none or all
    #[arg(long, value_name = "HOW", value_parser = catch_up)]
    pub catch_up: Option<CatchUp>,
    /// A command that says whether it is worth a turn: 0 wakes the agent, any other exit code skips that time
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum TriggerCommand {
    /// Make a trigger; its URL is shown now, and not again
    Create(TriggerArgs),
    /// All of them, newest last
    List(OfAgent),
    /// Give one another URL; the one before opens nothing any more
    Rotate {
        #[command(flatten)]
        of: OfAgent,
        /// The trigger, or the end of its id
        trigger: String,
    },
    /// End one; its URL opens nothing any more
    Revoke {
        #[command(flatten)]
        of: OfAgent,
        /// The trigger, or the end of its id
        trigger: String,
    },
}

#[derive(Debug, Args)]
#[group(id = "secret", multiple = false, args = ["secret_env", "secret_file"])]
pub struct TriggerArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// What will come in by it
    pub name: String,
    /// What a delivery is: enqueue_message or wake_hint
    #[arg(long, value_name = "MODE", value_parser = delivery_mode)]
    pub mode: Option<DeliveryMode>,
    /// The work item that it is about
    #[arg(long, value_name = "ITEM")]
    pub work_item: Option<String>,
    /// Deliveries must be signed with the secret in this variable
    #[arg(long, value_name = "VAR")]
    pub secret_env: Option<String>,
    /// Deliveries must be signed with the secret in this file; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum WaitCommand {
    /// All of them, newest last
    List(OfAgent),
    /// End one, as if nothing had been waited for
    Cancel {
        #[command(flatten)]
        of: OfAgent,
        /// The wait, or the end of its id
        wait: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start it; returns when it is ready
    Start(UpArgs),
    /// Stop it; agents go on where they were when it starts again
    Stop,
    /// Stop it if it runs, and start it
    Restart(UpArgs),
    /// Whether it runs, and where
    Status,
    /// What it wrote
    Logs {
        /// Go on as it writes more
        #[arg(long, short)]
        follow: bool,
        /// Only the newest so many lines
        #[arg(long, value_name = "N", default_value_t = 200)]
        last: usize,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Every setting
    Show {
        /// Say where each came from
        #[arg(long)]
        origin: bool,
    },
    /// One setting
    Get {
        /// Its name
        key: String,
    },
    /// Write one into config.toml; the rest of the file stays as it is
    Set {
        /// Its name
        key: String,
        /// What it should be
        value: String,
    },
    /// Take one out of config.toml
    Unset {
        /// Its name
        key: String,
    },
    /// A JSON schema of config.toml
    Schema,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Every model that is known here: whether a key is set, its window, its prices, who thinks with it
    List,
    /// One small call, to see whether a model answers; exits 1 if it does not
    Test {
        /// PROVIDER/MODEL [default: what agents think with]
        #[arg(value_parser = crate::config::model)]
        model: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is shown once
    Create {
        /// Who it is for
        #[arg(long, value_name = "NAME")]
        name: String,
        /// observer reads; operator talks to agents too; admin may do everything
        #[arg(long, value_name = "SCOPE", value_parser = scope)]
        scope: Scope,
    },
    /// All tokens, without what they are
    List,
    /// Make one worthless
    Revoke {
        /// The token's id
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// How much is in it
    Stats,
    /// Check every chain, head, segment, blob and row; exits 1 and names what is damaged
    Verify {
        /// First make the rows that lists read again, from the facts
        #[arg(long)]
        rebuild_rows: bool,
    },
    /// Write one agent as a folder of records, or with --full the whole ledger as one file
    Export(ExportArgs),
    /// Read a file that `export --full` wrote; all of it, or nothing
    Import {
        /// The file
        file: PathBuf,
    },
    /// Rebuild the scheduler's projection from a folder of records, and compare it with its expected.json
    Replay {
        /// The folder
        dir: PathBuf,
    },
    /// Make a new, stopped agent with the past of another
    Fork {
        /// The agent whose past it gets
        id: AgentId,
        /// The last fact they share, counted from 1
        #[arg(long, value_name = "SEQ", value_parser = seq, allow_negative_numbers = true)]
        at: Seq,
        /// The new agent's id
        #[arg(long = "as", value_name = "NEW")]
        name: AgentId,
    },
    /// Move old facts into compressed segments; nothing is dropped
    Compact {
        /// Facts older than this many days move
        #[arg(long, value_name = "DAYS", default_value_t = OLDER_THAN_DAYS)]
        older_than_days: u64,
        /// Move the oldest facts until the database holds at most this many bytes of them
        #[arg(long, value_name = "BYTES")]
        max_bytes: Option<u64>,
    },
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The agent
    #[arg(required_unless_present = "full", requires = "dir")]
    pub id: Option<AgentId>,
    /// The folder to write; it must not exist, or be empty
    pub dir: Option<PathBuf>,
    /// Write the whole ledger, losslessly, into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "dir"])]
    pub full: Option<PathBuf>,
}

fn seq(text: &str) -> Result<Seq, String> {
    text.parse().map_err(|_| "it takes a whole number, the seq of a fact".to_owned())
}

fn time(text: &str) -> Result<Time, String> {
    text.parse().map_err(|error: abide_kernel::time::BadTime| error.to_string())
}

fn every(text: &str) -> Result<Duration, String> {
    let every = span::duration(text)?;
    if span::as_ms(every) < TIMER_EVERY_MIN_MS {
        return Err(format!("it takes {TIMER_EVERY_MIN_MS}ms or more"));
    }
    Ok(every)
}

fn role(text: &str) -> Result<Role, String> {
    word(text, "orchestrator, execution")
}

fn priority(text: &str) -> Result<Priority, String> {
    word(text, "interject, next, normal, background")
}

fn post_kind(text: &str) -> Result<PostKind, String> {
    word(text, "operator_prompt, channel_event, webhook_event, callback_event")
}

fn catch_up(text: &str) -> Result<CatchUp, String> {
    word(text, "latest, none, all")
}

fn plan_status(text: &str) -> Result<PlanStatus, String> {
    word(text, "draft, ready, needs_input")
}

fn work_filter(text: &str) -> Result<WorkItemFilter, String> {
    word(text, "all, open, completed, current, queued, blocked, waiting")
}

fn delivery_mode(text: &str) -> Result<DeliveryMode, String> {
    word(text, "enqueue_message, wake_hint")
}

fn scope(text: &str) -> Result<Scope, String> {
    word(text, "observer, operator, admin")
}

/// A word as it goes over the wire, so that the shapes alone say what it may be.
fn word<T: serde::de::DeserializeOwned>(text: &str, known: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("it takes one of {known}"))
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it takes on or off".to_owned()),
    }
}
